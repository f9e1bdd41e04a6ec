"""Auxiliary training samples: which they are, how they are transformed, and where they are excluded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.corpora import parts, written

from sketchdnn.data import PrepareConfig, prepare
from sketchdnn.diffusion.loss import Loss
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Kind, Line, Sketch, normalize
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import encode
from sketchdnn.systems import load_preset
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.system import ConditionMask
from sketchdnn.training.config import RunError, TrainConfig
from sketchdnn.training.corpus import AffineAugmentation, Corpus, apply_affine, sample_affine, to_device
from sketchdnn.training.run import Run
from sketchdnn.training.start import _load_corpora
from sketchdnn.training.step import batch_loss, random_numbers, timestep_cdf

COUNT = 24


def sketches() -> list[Sketch]:
    """Built-in parts; of every third the first four primitives alone."""
    fitting = [normalize(s)[0] for s in parts(60) if 8 <= len(s) <= layout.MAX_PRIMITIVES][:COUNT]
    return [replace(s, primitives=s.primitives[:4]) if i % 3 == 0 else s for i, s in enumerate(fitting)]


def corpus() -> Corpus:
    return to_device(encode(sketches()), "cpu")


def make_system(**settings: Any) -> RowDenoiser[Any]:
    preset = load_preset("tiny")
    config = replace(preset.config, network=replace(preset.config.network, auxiliary=True), **settings)
    torch.manual_seed(0)
    system = type(preset.make())(config)
    assert isinstance(system, RowDenoiser)
    return system


def batch_of(config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, ConditionMask]:
    """The parameters of a batch, and what was told of it."""
    seen: list[tuple[Any, ConditionMask]] = []
    system, rows = make_system(), corpus()

    def loss(x0: Any, t: Any, noise: Any, given: ConditionMask) -> Loss | None:
        seen.append((x0, given))
        return None

    monkeypatch.setattr(system, "loss", loss)
    numbers = torch.arange(COUNT)
    edges = timestep_cdf(system.max_steps, config.timestep_sampling)
    batch_loss(system, rows, edges, numbers, numbers, random_numbers(0, numbers, rows.kind.shape[1]), config)
    ((x0, given),) = seen
    return x0.params, given


def test_small_sketches_are_auxiliary(monkeypatch: pytest.MonkeyPatch) -> None:
    _, given = batch_of(TrainConfig(steps=1, augment=False, min_primitives=8), monkeypatch)
    assert given.auxiliary is not None
    assert given.auxiliary.tolist() == [number % 3 == 0 for number in range(COUNT)]
    assert batch_of(TrainConfig(steps=1), monkeypatch)[1].auxiliary is None


def test_min_primitives_is_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third sketch has four primitives."""
    for fewest, aside in ((4, False), (5, True)):
        _, given = batch_of(TrainConfig(steps=1, augment=False, min_primitives=fewest), monkeypatch)
        assert given.auxiliary is not None
        assert given.auxiliary[::3].tolist() == [aside] * (COUNT // 3)
        assert not given.auxiliary[1::3].any()


def test_transformed_sketches_are_auxiliary(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = batch_of(TrainConfig(steps=1, augment=False), monkeypatch)
    varied, given = batch_of(TrainConfig(steps=1, augment=False, affine_augmentation=0.5), monkeypatch)
    assert given.auxiliary is not None
    assert 4 <= int(given.auxiliary.sum()) <= COUNT - 4
    same = (plain == varied).flatten(1).all(dim=1)
    assert torch.equal(same, ~given.auxiliary)


@pytest.mark.parametrize("number", range(COUNT))
def test_affine_keeps_shape_or_stretches_straight_sketches(number: int) -> None:
    before = encode(sketches()[number : number + 1])
    rows = to_device(before, "cpu")
    how = torch.rand(1, 3, generator=torch.Generator().manual_seed(number))
    after = apply_affine(rows.kind, rows.params, AffineAugmentation(torch.ones(1, dtype=torch.bool), how)).numpy()
    assert np.abs(after[..., :2]).max() <= 1 + 1e-5
    (was,) = decode_compact(before)
    (now,) = decode_compact(Compact(before.kind, before.construction, after))
    assert len(now.sketch) == len(was.sketch)
    straight = not any(p.kind in (Kind.CIRCLE, Kind.ARC) for p in was.sketch)
    ratios = {round(n, 3) for n in _ratios(was.sketch, now.sketch)}
    assert (len(ratios) == 1) or straight
    # Ends that met still meet.
    for one, other in _meetings(was.sketch):
        ends = [end for p in now.sketch for end in _ends(p)]
        assert np.allclose(ends[one], ends[other], atol=1e-5)


def _ratios(was: Sketch, now: Sketch) -> list[float]:
    """By how much everything that has a size grew."""
    found = []
    for a, b in zip(was, now, strict=True):
        if a.kind in (Kind.CIRCLE, Kind.ARC):
            found.append(b.radius / a.radius)  # type: ignore[union-attr]
        elif a.kind is Kind.LINE:
            found.append(np.linalg.norm(np.subtract(*_ends(b))) / np.linalg.norm(np.subtract(*_ends(a))))
    return found


def _ends(primitive: Any) -> list[tuple[float, float]]:
    return [primitive.start, primitive.end] if primitive.kind in (Kind.LINE, Kind.ARC) else []


def _meetings(sketch: Sketch) -> list[tuple[int, int]]:
    ends = [end for p in sketch for end in _ends(p)]
    return [(i, j) for i, a in enumerate(ends) for j, b in enumerate(ends[:i]) if np.allclose(a, b, atol=1e-6)]


def test_only_straight_sketches_are_stretched() -> None:
    """By the third number: from half the width at 0 to all of it at 1; the height stays."""
    square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    lines = tuple(Line(a, b) for a, b in zip(square, [*square[1:], square[0]], strict=True))
    drawings = to_device(encode([Sketch(lines), Sketch((*lines, Circle((0, 0), 0.5)))]), "cpu")
    for width, expected in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0)):
        how = torch.tensor([0.0, 1.0, width]).expand(2, 3)
        straight, with_circle = apply_affine(
            drawings.kind, drawings.params, AffineAugmentation(torch.ones(2, dtype=torch.bool), how)
        )
        assert torch.allclose(with_circle, drawings.params[1])
        ends = straight[:4, :4].unflatten(1, (2, 2))
        assert float(ends[..., 0].abs().max()) == pytest.approx(expected)
        assert float(ends[..., 1].abs().max()) == pytest.approx(1)


def test_affine_fraction_is_sampled() -> None:
    uniform = torch.rand(4000, 4, generator=torch.Generator().manual_seed(0))
    assert abs(float(sample_affine(uniform, 0.3).selected.float().mean()) - 0.3) < 0.03
    assert not sample_affine(uniform, 0.0).selected.any()
    assert sample_affine(uniform, 1.0).selected.all()


def test_axis_aligned_lines_stay_aligned_without_rotation() -> None:
    rows = corpus()
    how = torch.tensor([[0.3, 0.2, 0.7]]).expand(COUNT, 3)
    after = apply_affine(rows.kind, rows.params, AffineAugmentation(torch.ones(COUNT, dtype=torch.bool), how))
    level = (rows.kind == Kind.LINE.value) & (rows.params[..., 1] == rows.params[..., 3])
    assert int(level.sum()) > COUNT
    assert torch.equal(after[..., 1][level], after[..., 3][level])


def test_auxiliary_samples_need_a_network_with_that_input() -> None:
    config = TrainConfig(batch_size=8, steps=6, warmup=0, min_primitives=8, affine_augmentation=0.25)
    system = make_system()
    run = Run(system, corpus(), config)
    while not run.done:
        run.advance()
    assert system.get_parameter("network.auxiliary").abs().max() > 0
    with pytest.raises(RunError, match=r"set network\.auxiliary too"):
        Run(load_preset("tiny").make(), corpus(), config)


def test_validation_excludes_auxiliary_sketches(tmp_path: Path) -> None:
    small = [replace(s, primitives=s.primitives[:4]) for s in parts(60) if len(s) >= 8]
    source = written(parts(60) + small, tmp_path / "parts.jsonl")
    prepare([source], tmp_path / "corpus", PrepareConfig(min_primitives=4), workers=1)
    everything, held_out = _load_corpora(tmp_path / "corpus", "cpu", 0), _load_corpora(tmp_path / "corpus", "cpu", 8)
    all_train, all_held, train, held = [
        (rows.kind != layout.NONE).sum(dim=1) for rows in (*everything, *held_out) if rows is not None
    ]
    assert torch.equal(train, all_train)
    assert int(all_held.min()) == 4
    assert torch.equal(held, all_held[all_held >= 8])
    assert _load_corpora(tmp_path / "corpus", "cpu", layout.MAX_PRIMITIVES + 1)[1] is None


@pytest.mark.parametrize(
    "wrong",
    [{"min_primitives": -1}, {"min_primitives": 17}, {"affine_augmentation": -0.1}, {"affine_augmentation": 1.5}],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SketchError, match="must lie in"):
        TrainConfig(steps=1, **wrong)


def test_identity_omits_later_settings_at_their_defaults(tmp_path: Path) -> None:
    assert not {"min_primitives", "affine_augmentation"} & TrainConfig(steps=1).identity().keys()
    assert TrainConfig(steps=1, min_primitives=8).identity()["min_primitives"] == 8
