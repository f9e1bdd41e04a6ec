"""Which settings are allowed, and how the learning rate goes over a run."""

import pytest

from sketchdnn.errors import SketchError
from sketchdnn.training.config import TrainConfig


def test_rate_rises_stays_and_falls_to_nothing_over_one_budget() -> None:
    config = TrainConfig(steps=100, learning_rate=0.5, warmup=4, decay=0.25)
    assert [config.rate(step, 0.0) for step in range(5)] == [0.125, 0.25, 0.375, 0.5, 0.5]
    shares = {0.1: 0.5, 0.75: 0.5, 0.875: 0.25, 0.95: 0.1, 1.0: 0.0, 1.5: 0.0}
    assert {progress: config.rate(50, progress) for progress in shares} == pytest.approx(shares)
    # Without decay it stays to the end.
    config = TrainConfig(steps=100, learning_rate=0.5, warmup=0, decay=0.0)
    assert [config.rate(step, step / 100) for step in (0, 50, 100)] == [0.5, 0.5, 0.5]
    for budget in ({}, {"steps": 1, "minutes": 1.0}):
        with pytest.raises(SketchError):
            TrainConfig(**budget)


LIMITS: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("seed", (0, 2**63 - 1), (-1, 2**63)), ("affine_augmentation", (0.0, 1.0), (-0.1, 1.1)),
    ("min_primitives", (0, 16), (-1, 17)), ("rare_oversampling", (1, 100), (0.9, 101)),
    ("ema", (0.0, 0.9999), (-0.1, 1.0, 1.5)), ("batch_size", (1,), (0,)),
    ("learning_rate", (1e-9, 10.0), (0.0, -1.0, 10.1, float("inf"))), ("weight_decay", (0.0, 100.0), (-0.1, 100.1)),
    ("clip", (0.0, 1e6), (-1.0, 1.1e6)), ("warmup", (0, 10**9), (-1, 10**9 + 1)), ("decay", (0.0, 1.0), (-0.1, 1.1)),
    ("conditioning", (0.0, 1.0), (-0.1, 1.1, float("nan"))), ("checkpoint_minutes", (0.0, 1e6), (-1.0, 1.1e6)),
    ("keep", (1, 10**6), (0, 10**6 + 1)), ("log_every", (1, 10**9), (0, 10**9 + 1)),
    ("validate_every", (0, 10**9), (-1, 10**9 + 1)), ("preview_every", (0, 10**9), (-1, 10**9 + 1)),
    ("minutes", (1e7,), (0.0, 1e7 + 1)), ("epochs", (1e9,), (1e9 + 1,)), ("steps", (10**12,), (10**12 + 1,)),
]  # fmt: skip


def test_numbers_have_limits() -> None:
    for name, allowed, refused in LIMITS:
        budget = {} if name in ("minutes", "epochs", "steps") else {"steps": 1}
        assert [getattr(TrainConfig(**budget, **{name: value}), name) for value in allowed] == [*allowed]
        for value in refused:
            with pytest.raises(SketchError, match=name.replace("_", ".")):
                TrainConfig(**budget, **{name: value})
