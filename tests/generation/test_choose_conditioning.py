"""Conditioning states what was requested, depends on the index of the sketch, and follows the training corpus."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from support.small_systems import small_system

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import Conditioning, SamplingOptions
from sketchdnn.generation.conditioning import MIN_EMPTY_ROWS, choose_added_kinds, choose_conditioning
from sketchdnn.generation.conditions import Conditions
from sketchdnn.geometry import Circle, Kind, Line, Sketch
from sketchdnn.representation import layout
from sketchdnn.representation.batch import decode
from sketchdnn.systems import System, TrainingIndex


@pytest.fixture(scope="module")
def system() -> System:
    return small_system()


def choose(conditions: Conditions, system: System, count: int = 5, seed: int = 0) -> Conditioning:
    conditioning = choose_conditioning(conditions, seed, torch.arange(count), system)
    assert conditioning is not None
    return conditioning


def test_number_of_primitives_fixes_the_empty_rows_or_the_kinds(system: System) -> None:
    known = choose(Conditions(primitives=(10, 10)), system, 4)
    assert known.method == "conditional"
    for mask in (known.kind, known.construction, known.params.all(dim=-1), known.params.any(dim=-1)):
        assert mask.tolist() == [[False] * 10 + [True] * 6] * 4
    assert (known.batch.kind[known.kind].argmax(-1) == layout.NONE).all()
    assert (known.batch.params[known.params] == 0).all()
    assert (known.batch.construction[known.construction].argmax(-1) == 0).all()
    for count in range(17 - MIN_EMPTY_ROWS, 17):
        known = choose(Conditions(primitives=(count, count)), system)
        assert known.kind.all()
        assert not known.construction.any()
        assert not known.params.any()
        assert ((known.batch.kind.argmax(-1) != layout.NONE).sum(-1) == count).all()
    # Without a training index there are no mixtures to choose from.
    known = choose(Conditions(primitives=(15, 15)), small_system(knows=False), 1)
    assert known.kind.tolist() == [[False] * 15 + [True]]
    for conditions in (Conditions(), Conditions(closed=True, aspect=(1.0, 2.0))):
        assert choose_conditioning(conditions, 0, torch.arange(3), system) is None


@pytest.mark.parametrize("knows", [True, False])
def test_kinds_are_fixed_for_every_row_and_nothing_else(knows: bool) -> None:
    conditions = Conditions(kinds={Kind.LINE: 5, Kind.POINT: 4}, primitives=(10, 14))
    known = choose(conditions, small_system(knows=knows), 40, seed=3)
    assert known.kind.all()
    assert not known.construction.any()
    assert not known.params.any()
    for kinds in known.batch.kind.argmax(-1).tolist():
        assert (kinds.count(Kind.LINE), kinds.count(Kind.POINT)) == (5, 4)
        assert 10 <= 16 - kinds.count(layout.NONE) <= 14


def test_choice_follows_seed_index_and_corpus(system: System) -> None:
    conditions = Conditions(primitives=(8, 16))
    many, other = (choose(conditions, system, 200, seed) for seed in (5, 6))
    some = choose_conditioning(conditions, 5, torch.tensor([7, 150 + (3 << 32)]), system)
    assert some is not None
    assert torch.equal(some.kind, many.kind[[7, 150]])
    assert torch.equal(some.batch.kind, many.batch.kind[[7, 150]])
    assert not torch.equal(other.kind, many.kind)
    index = system.training_index
    assert index is not None
    known = choose(Conditions(primitives=(8, 13)), system, 4000)
    frequency = Counter((16 - known.kind.sum(-1)).tolist())
    counts = index.kind_counts.sum(axis=1)
    total = index.frequency[(counts >= 8) & (counts <= 13)].sum()
    for count in range(8, 14):
        share = index.frequency[counts == count].sum() / total
        assert frequency[count] / 4000 == pytest.approx(share, abs=4 * (share / 4000) ** 0.5 + 1e-9)


def test_untrained_model_draws_the_kinds_it_is_conditioned_on(system: System) -> None:
    known = choose(Conditions(kinds={Kind.LINE: 6, Kind.CIRCLE: 3}), system, 8)
    batch = system.sample(seeded_noise(0, torch.arange(8)), SamplingOptions(steps=4, conditioning=known))
    for decoded in decode(batch, "sweep"):
        kinds = Counter(p.kind for p in decoded.sketch)
        assert (kinds[Kind.LINE], kinds[Kind.CIRCLE]) == (6, 3 - len(decoded.rejects))
        assert kinds[Kind.ARC] == kinds[Kind.POINT] == 0


def test_added_kinds_are_those_of_training_sketches_that_could_hold_the_part() -> None:
    """Of any kind where no training sketch could."""
    part = Sketch((*(Line((i, 0), (i, 1)) for i in range(3)), Circle((0, 0), 1)))
    mixtures = np.array([[3, 3, 1, 1], [9, 0, 0, 0], [3, 1, 2, 2]])
    index = TrainingIndex(np.zeros(0, np.uint64), mixtures, np.array([1, 8, 1], np.int64))
    chance = np.linspace(0, 0.999, 40)
    two = {(Kind.CIRCLE,) * 2 + (Kind.ARC, Kind.POINT), (Kind.ARC,) * 2 + (Kind.POINT,) * 2}
    assert set(choose_added_kinds(part, 8, chance, index)) == two
    free = choose_added_kinds(part, 9, chance, index)
    assert ({len(kinds) for kinds in free}, {kind for kinds in free for kind in kinds}) == ({5}, set(Kind))
