"""How the learning rate goes over a run."""

from __future__ import annotations

import pytest

from sketchdnn.training.config import TrainConfig


def test_rate_rises_stays_and_falls_to_nothing() -> None:
    config = TrainConfig(steps=100, learning_rate=0.5, warmup=4, decay=0.25)
    assert [config.rate(step, 0.0) for step in range(5)] == [0.125, 0.25, 0.375, 0.5, 0.5]
    shares = {0.1: 0.5, 0.75: 0.5, 0.875: 0.25, 0.95: 0.1, 1.0: 0.0, 1.5: 0.0}
    assert {progress: config.rate(50, progress) for progress in shares} == pytest.approx(shares)


def test_without_decay_the_rate_stays_to_the_end() -> None:
    config = TrainConfig(steps=100, learning_rate=0.5, warmup=0, decay=0.0)
    assert [config.rate(step, step / 100) for step in (0, 50, 100)] == [0.5, 0.5, 0.5]
