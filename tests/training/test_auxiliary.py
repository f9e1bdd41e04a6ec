"""Auxiliary training samples: which they are, how they are transformed, and where they are excluded."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from support.corpora import parts, written
from support.sketch_sets import rows, square

from sketchdnn.data import Dataset, PrepareConfig, prepare
from sketchdnn.geometry import Arc, Circle, Kind, Line, Sketch, normalize
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import encode
from sketchdnn.systems import load_preset
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.system import ConditionMask
from sketchdnn.training.config import RunError, TrainConfig
from sketchdnn.training.corpus import AffineAugmentation, Corpus, apply_affine, sample_affine, to_device
from sketchdnn.training.run import Run
from sketchdnn.training.start import load_corpora
from sketchdnn.training.step import Objective, random_numbers

COUNT = 24


def sketches() -> list[Sketch]:
    """Built-in parts; of every third the first four primitives alone."""
    fitting = [normalize(s)[0] for s in parts(60) if 8 <= len(s) <= layout.MAX_PRIMITIVES][:COUNT]
    return [replace(s, primitives=s.primitives[:4]) if i % 3 == 0 else s for i, s in enumerate(fitting)]


def corpus() -> Corpus:
    return to_device(encode(sketches()), "cpu")


def make_system() -> RowDenoiser[Any]:
    preset = load_preset("tiny")
    torch.manual_seed(0)
    return type(preset.make())(replace(preset.config, network=replace(preset.config.network, auxiliary=True)))


def batch_of(config: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, ConditionMask]:
    """The parameters of a batch, and the mask of its loss."""
    system, sketches = make_system(), corpus()
    loss = Mock(wraps=system.loss)
    monkeypatch.setattr(system, "loss", loss)
    numbers = torch.arange(COUNT)
    Objective(system, sketches, config)(numbers, numbers, *random_numbers(0, numbers, layout.MAX_PRIMITIVES))
    x0, _, _, given = loss.call_args.args
    return x0.params, given


def test_small_and_transformed_sketches_are_auxiliary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third sketch has four primitives, all others eight at least."""
    for min_primitives, expected in ((4, False), (5, True), (8, True)):
        _, given = batch_of(TrainConfig(steps=1, augment=False, min_primitives=min_primitives), monkeypatch)
        assert given.auxiliary.tolist() == [expected and number % 3 == 0 for number in range(COUNT)]
    assert batch_of(TrainConfig(steps=1), monkeypatch)[1].auxiliary is None
    plain, _ = batch_of(TrainConfig(steps=1, augment=False), monkeypatch)
    varied, given = batch_of(TrainConfig(steps=1, augment=False, affine_augmentation=0.5), monkeypatch)
    assert 4 <= int(given.auxiliary.sum()) <= COUNT - 4
    same = (plain == varied).flatten(1).all(dim=1)
    assert torch.equal(same, ~given.auxiliary)


def transformed(rows: Corpus, numbers: torch.Tensor) -> torch.Tensor:
    """The parameters of all sketches, transformed by three numbers each, or by the same three."""
    everything = torch.ones(len(rows), dtype=torch.bool)
    return apply_affine(rows.kind, rows.params, AffineAugmentation(everything, numbers.expand(len(rows), 3)))


def ends(sketch: Sketch) -> list[tuple[float, float]]:
    return [end for p in sketch if isinstance(p, Line | Arc) for end in (p.start, p.end)]


def test_affine_keeps_shape_or_stretches_straight_sketches() -> None:
    before = encode(sketches())
    after = transformed(corpus(), torch.rand(COUNT, 3, generator=torch.Generator().manual_seed(0))).numpy()
    assert np.abs(after[..., :2]).max() <= 1 + 1e-5
    images = decode_compact(Compact(before.kind, before.construction, after))
    for was, now in ((a.sketch, b.sketch) for a, b in zip(decode_compact(before), images, strict=True)):
        assert len(now) == len(was)
        ratios = {round(q.length / p.length, 3) for p, q in zip(was, now, strict=True) if p.length}
        assert len(ratios) == 1 or not any(isinstance(p, Circle | Arc) for p in was)
        # Ends that met still meet.
        for (a, new_a), (b, new_b) in combinations(zip(ends(was), ends(now), strict=True), 2):
            assert not np.allclose(a, b, atol=1e-6) or np.allclose(new_a, new_b, atol=1e-5)
    # By the third number: from half the width at 0 to all of it at 1; the height stays.
    drawings = to_device(rows(square(), [*square(), Circle((0, 0), 0.5)]), "cpu")
    for width, expected in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0)):
        straight, with_circle = transformed(drawings, torch.tensor([0.0, 1.0, width]))
        assert torch.allclose(with_circle, drawings.params[1])
        places = straight[:4, :4].unflatten(1, (2, 2))
        assert float(places[..., 0].abs().max()) == pytest.approx(expected)
        assert float(places[..., 1].abs().max()) == pytest.approx(1)


def test_affine_fraction_is_sampled_and_axis_aligned_lines_stay_aligned_without_rotation() -> None:
    uniform = torch.rand(4000, 4, generator=torch.Generator().manual_seed(0))
    for fraction, tolerance in ((0.3, 0.03), (0.0, 0.0), (1.0, 0.0)):
        selected = sample_affine(uniform, fraction).selected.float().mean()
        assert float(selected) == pytest.approx(fraction, abs=tolerance)
    before = corpus()
    after = transformed(before, torch.tensor([0.3, 0.2, 0.7]))
    level = (before.kind == Kind.LINE.value) & (before.params[..., 1] == before.params[..., 3])
    assert int(level.sum()) > COUNT
    assert torch.equal(after[..., 1][level], after[..., 3][level])


def test_auxiliary_samples_need_a_network_with_that_input(tmp_path: Path) -> None:
    config = TrainConfig(batch_size=8, steps=6, warmup=0, min_primitives=8, affine_augmentation=0.25)
    system = make_system()
    run = Run(system, corpus(), config)
    while not run.done:
        run.advance()
    assert system.get_parameter("network.auxiliary").abs().max() > 0
    with pytest.raises(RunError, match=r"set network\.auxiliary too"):
        Run(load_preset("tiny").make(), corpus(), config)
    # Validation excludes them.
    small = [replace(s, primitives=s.primitives[:4]) for s in parts(60) if len(s) >= 8]
    source = written(parts(60) + small, tmp_path / "parts.jsonl")
    prepare([source], tmp_path / "corpus", PrepareConfig(min_primitives=4), workers=1)
    dataset = Dataset.open(tmp_path / "corpus")
    everything, held_out = (load_corpora(dataset, "cpu", min_primitives) for min_primitives in (0, 8))
    all_train, all_held, train, held = [
        (some.kind != layout.NONE).sum(dim=1) for some in (*everything, *held_out) if some is not None
    ]
    assert torch.equal(train, all_train)
    assert int(all_held.min()) == 4
    assert torch.equal(held, all_held[all_held >= 8])
    assert load_corpora(dataset, "cpu", layout.MAX_PRIMITIVES + 1)[1] is None
    # The identity of a run omits later settings at their defaults.
    assert not {"min_primitives", "affine_augmentation"} & TrainConfig(steps=1).identity().keys()
    assert TrainConfig(steps=1, min_primitives=8).identity()["min_primitives"] == 8
