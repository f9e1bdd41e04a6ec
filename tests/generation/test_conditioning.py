"""What the model is told is what was asked for, belongs to the sketch's number, and is chosen as the corpus has it."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from support.small_systems import small_system

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.generation.conditioning import MIN_EMPTY_ROWS, choose_conditioning
from sketchdnn.generation.conditions import NO_CONDITIONS, Conditions
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.codec import decode
from sketchdnn.systems.sketchdnn import SketchDNN


@pytest.fixture(scope="module")
def system() -> SketchDNN:
    return small_system()


def numbers(count: int) -> torch.Tensor:
    return torch.arange(count)


def test_nothing_is_given_if_nothing_was_asked(system: SketchDNN) -> None:
    assert choose_conditioning(NO_CONDITIONS, 0, numbers(3), system) is None
    assert choose_conditioning(Conditions(closed=True, aspect=(1.0, 2.0)), 0, numbers(3), system) is None


def test_a_number_is_told_by_the_rows_that_stay_empty(system: SketchDNN) -> None:
    given = choose_conditioning(Conditions(primitives=(10, 10)), 0, numbers(4), system)
    assert given is not None
    assert given.way == "clean"
    for mask in (given.kind, given.construction, given.params.all(dim=-1), given.params.any(dim=-1)):
        assert mask.tolist() == [[False] * 10 + [True] * 6] * 4
    assert (given.batch.kind[given.kind].argmax(-1) == layout.NONE).all()
    assert (given.batch.params[given.params] == 0).all()
    assert (given.batch.construction[given.construction].argmax(-1) == 0).all()


def test_few_empty_rows_are_not_enough_so_kinds_are_told(system: SketchDNN) -> None:
    for count in range(17 - MIN_EMPTY_ROWS, 17):
        given = choose_conditioning(Conditions(primitives=(count, count)), 0, numbers(5), system)
        assert given is not None
        assert given.kind.all()
        assert not given.construction.any()
        assert not given.params.any()
        assert ((given.batch.kind.argmax(-1) != layout.NONE).sum(-1) == count).all()
    # A model that knows no mixtures is told what can be told.
    unknowing = choose_conditioning(Conditions(primitives=(15, 15)), 0, numbers(1), small_system(knows=False))
    assert unknowing is not None
    assert unknowing.kind.tolist() == [[False] * 15 + [True]]


@pytest.mark.parametrize("knows", [True, False])
def test_kinds_are_told_for_every_row_and_nothing_else(knows: bool) -> None:
    system = small_system(knows=knows)
    is_restrictive = Conditions(kinds={Kind.LINE: 5, Kind.POINT: 4}, primitives=(10, 14))
    given = choose_conditioning(is_restrictive, 3, numbers(40), system)
    assert given is not None
    assert given.kind.all()
    assert not given.construction.any()
    assert not given.params.any()
    for kinds in given.batch.kind.argmax(-1).tolist():
        assert kinds.count(Kind.LINE) == 5
        assert kinds.count(Kind.POINT) == 4
        assert 10 <= 16 - kinds.count(layout.NONE) <= 14


def test_a_choice_belongs_to_the_seed_and_the_number_and_outlasts_attempts(system: SketchDNN) -> None:
    is_restrictive = Conditions(primitives=(8, 16))
    many = choose_conditioning(is_restrictive, 5, numbers(200), system)
    some = choose_conditioning(is_restrictive, 5, torch.tensor([7, 150 + (3 << 32)]), system)
    other = choose_conditioning(is_restrictive, 6, numbers(200), system)
    assert many is not None
    assert some is not None
    assert other is not None
    assert torch.equal(some.kind, many.kind[[7, 150]])
    assert torch.equal(some.batch.kind, many.batch.kind[[7, 150]])
    assert not torch.equal(other.kind, many.kind)


def test_a_range_is_used_as_the_corpus_uses_it(system: SketchDNN) -> None:
    known = system.known
    assert known is not None
    given = choose_conditioning(Conditions(primitives=(8, 13)), 0, numbers(4000), system)
    assert given is not None
    found = Counter((16 - given.kind.sum(-1)).tolist())
    counts = known.kind_counts.sum(axis=1)
    total = known.frequency[(counts >= 8) & (counts <= 13)].sum()
    for count in range(8, 14):
        share = known.frequency[counts == count].sum() / total
        assert found[count] / 4000 == pytest.approx(share, abs=4 * (share / 4000) ** 0.5 + 1e-9)


def test_even_an_untrained_model_draws_the_kinds_it_was_given(system: SketchDNN) -> None:
    is_restrictive = Conditions(kinds={Kind.LINE: 6, Kind.CIRCLE: 3})
    given = choose_conditioning(is_restrictive, 0, numbers(8), system)
    drawn = system.sample(seeded_noise(0, numbers(8)), steps=4, given=given)
    for one in decode(drawn, "sweep"):
        kinds = Counter(p.kind for p in one.sketch)
        lost = len(one.rejects)
        assert kinds[Kind.LINE] == 6
        assert kinds[Kind.CIRCLE] == 3 - lost
        assert kinds[Kind.ARC] == kinds[Kind.POINT] == 0
