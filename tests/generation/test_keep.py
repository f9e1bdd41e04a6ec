"""A drawing is kept if it is what was asked for; if not, a sentence says what it lacks and a number how much."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import pulled_square, square
from support.strategies import sketches

from sketchdnn.generation.closed import CLOSE
from sketchdnn.generation.conditions import NO_CONDITIONS, Conditions
from sketchdnn.generation.keep import Keeper, shortfall, sketch_key
from sketchdnn.generation.score import score
from sketchdnn.geometry import Circle, Kind, Line, Point, Primitive, Sketch, normalize
from sketchdnn.representation import encode
from sketchdnn.systems import build_training_index

PLATE = Sketch((*square(), Circle((0, 0), 0.3), Line((-1, 0), (1, 0), True)))


def sketch(*primitives: Primitive) -> Sketch:
    return Sketch(primitives)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Conditions(primitives=(8, 9)), "it has 6 primitives, not 8 to 9"),
        (Conditions(kinds={Kind.LINE: 4, Kind.CIRCLE: 2}), "it has 1 circle besides construction, not 2"),
        (
            Conditions(kinds={Kind.LINE: 4, Kind.CIRCLE: 2}, count_construction=True),
            "it has 5 lines, not 4; it has 1 circle, not 2",
        ),
        (Conditions(construction=(0.5, 1.0)), "0.17 of it is construction, not 0.5 to 1"),
        (Conditions(aspect=(2.0, 2.0)), "its width is 1 of its height, not 2"),
    ],
)
def test_what_is_lacking_is_said(asked: Conditions, sentence: str) -> None:
    found = shortfall(asked, PLATE)
    assert found is not None
    assert found.sentence == sentence
    assert found.distance > 0


@pytest.mark.parametrize(
    "asked",
    [
        NO_CONDITIONS,
        Conditions(primitives=(6, 6), closed=True),
        Conditions(kinds={Kind.LINE: 4, Kind.CIRCLE: 1}, primitives=(6, 6)),
        Conditions(kinds={Kind.LINE: 5, Kind.CIRCLE: 1}, count_construction=True),
        Conditions(kinds={Kind.POINT: 0}, primitives=(1, 6)),
        Conditions(construction=(0.1, 0.2), aspect=(0.9, 1.1)),
    ],
)
def test_what_is_met_is_kept(asked: Conditions) -> None:
    assert shortfall(asked, PLATE) is None


def test_closed_forgives_the_gaps_of_a_sampler_and_no_more() -> None:
    closed = Conditions(closed=True)
    assert shortfall(closed, sketch(*pulled_square(0.015))) is None
    found = shortfall(closed, sketch(*pulled_square(0.05)))
    assert found is not None
    assert found.sentence == "1 chain is left open"
    nothing = shortfall(closed, sketch(Point((0, 0)), Point((1, 1))))
    assert nothing is not None
    assert nothing.sentence == "nothing in it closes"


@pytest.mark.parametrize(
    ("primitives", "sentence"),
    [
        ((*square(), Circle((1, 0), 0.3)), "curves cross or touch in 2 places"),
        ((*square(), Line((-1, -1), (1, 1))), "more than two ends meet in 2 places"),
        ((*square(), Circle((0, 0), 0.5), Circle((0, 0), 0.5)), "1 pair of curves overlap"),
        (
            (*(replace(line, construction=True) for line in square()), Circle((0, 0), 0.1), Circle((0.9, 0), 0.05)),
            "its largest outline is 0.10 of its size, not at least 0.5",
        ),
    ],
)
@pytest.mark.parametrize("close", [CLOSE, 1e-4])
def test_closed_means_extrudable_with_an_outline_of_some_size(
    primitives: tuple[Primitive, ...], sentence: str, close: float
) -> None:
    drawn = sketch(*primitives)
    found = shortfall(Conditions(closed=True), drawn, close)
    assert found is not None
    assert sentence in found.sentence
    assert score(drawn) < score(PLATE) == 1


def test_lines_that_are_construction_do_not_count_as_lines() -> None:
    dashed = sketch(*square()[:3], replace(square()[3], construction=True))
    found = shortfall(Conditions(kinds={Kind.LINE: 4}), dashed)
    assert found is not None
    assert found.sentence == "it has 3 lines besides construction, not 4"
    assert shortfall(Conditions(kinds={Kind.LINE: 4}, count_construction=True), dashed) is None


def test_the_closer_one_has_the_smaller_distance() -> None:
    def distance(asked: Conditions, *primitives: Primitive) -> float:
        found = shortfall(asked, sketch(*primitives))
        assert found is not None
        return found.distance

    eight = Conditions(primitives=(8, 8))
    assert distance(eight, *square()) > distance(eight, *square(), *square(0.5)[:3])
    wide = Conditions(aspect=(3.0, 4.0))
    assert distance(wide, *square()) > distance(wide, Line((0, 0), (2, 1)))
    # A line along an axis has no height at all.
    assert distance(wide, Line((0, 0), (2, 0))) < 1e6
    both = Conditions(primitives=(8, 8), closed=True)
    assert distance(both, *square()[:3]) > distance(both, *square())


@given(sketches(max_size=8), st.integers(-9, 9))
def test_the_same_drawing_has_the_same_key_at_any_size_and_in_any_order(one: Sketch, power: int) -> None:
    small, _ = normalize(one)
    # Powers of two, since any other size may round a number into the next cell.
    assert sketch_key(small) == sketch_key(small.moved(2.0**power))
    assert sketch_key(small) == sketch_key(Sketch(tuple(reversed(small.primitives))))


def test_unique_is_judged_by_what_was_kept() -> None:
    keeper = Keeper(Conditions(unique=True))
    assert keeper.shortfall(PLATE) is None
    assert keeper.shortfall(PLATE) is None  # nothing is kept by looking
    keeper.keep(PLATE)
    mirrored = Sketch((*square(), Circle((0, 0), 0.3), Line((0, -1), (0, 1), True)))
    found = keeper.shortfall(mirrored.moved(40.0, (3.0, 4.0)))
    assert found is not None
    assert found.sentence == "it repeats another sketch of this run"
    assert keeper.shortfall(replace(PLATE, primitives=PLATE.primitives[:5])) is None


def test_novel_is_judged_by_what_the_model_knows() -> None:
    known = build_training_index(encode([PLATE]))
    keeper = Keeper(Conditions(novel=True), known)
    found = keeper.shortfall(PLATE.moved(50.0))
    assert found is not None
    assert found.sentence == "it is in the training corpus"
    assert keeper.shortfall(Sketch(PLATE.primitives[:5])) is None
    assert Keeper(NO_CONDITIONS, known).shortfall(PLATE) is None
