"""Conditions: which are refused, which sketches meet them, how far others are from them, and the score."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import pulled_square, square
from support.small_systems import small_system
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.generation import conditions as criteria
from sketchdnn.geometry import Circle, Kind, Line, Point, Primitive, Sketch, normalize
from sketchdnn.representation import encode
from sketchdnn.systems import build_training_index

PLATE = Sketch((*square(), Circle((0, 0), 0.3), Line((-1, 0), (1, 0), True)))
CLOSED = criteria.Conditions(closed=True)


def sentence(
    conditions: criteria.Conditions, *primitives: Primitive, tolerance: float = criteria.CLOSE_TOLERANCE
) -> str | None:
    shortfall = criteria.find_shortfall(conditions, Sketch(primitives), tolerance)
    assert shortfall is None or shortfall.distance > 0
    return shortfall and shortfall.sentence


def distance(conditions: criteria.Conditions, *primitives: Primitive) -> float:
    shortfall = criteria.find_shortfall(conditions, Sketch(primitives))
    assert shortfall is not None
    return shortfall.distance


def score(*primitives: Primitive) -> float:
    return criteria.score_sketch(Sketch(primitives))


def test_invalid_conditions_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"best_of": 0}, "at least 1 sketch"),
        ({"kinds": {}}, "how many of each"),
    ]
    cases += [({"primitives": (0, 4)}, "at least 1"), ({"primitives": (9, 8)}, "smaller number first")]
    cases += [({"construction": (0.2, 1.1)}, "0 to 1"), ({"construction": (math.nan, 0.5)}, "0 to 1")]
    cases += [({"aspect": (-1.0, 2.0)}, "at least 0"), ({"aspect": (1.0, math.inf)}, "at least 0")]
    cases += [({"aspect": (0.0, 0.0)}, "above 0"), ({"count_construction": True}, "name kinds as well")]
    cases += [({"kinds": {Kind.LINE: -1}}, "line=-1"), ({"kinds": {Kind.POINT: 0}}, "leaves the other kinds open")]
    cases += [
        ({"kinds": {Kind.LINE: 9, Kind.ARC: 4}, "primitives": (8, 12)}, "makes 13 primitives, more than the 8 to 12")
    ]
    cases += [({"kinds": dict.fromkeys(Kind, 2), "primitives": (9, 12)}, "fewer than the 9 to 12")]
    for options, message in cases:
        with pytest.raises(SketchError, match=message):
            criteria.Conditions(**options)


def test_words_and_values_parse_to_the_same_conditions() -> None:
    words = criteria.Conditions.parse(
        primitives="8..16", kinds="line=4,circle=2", construction="0.1..0.3", aspect="2", unique=True
    )
    assert words == criteria.Conditions.parse(
        primitives=(8, 16), kinds={"lines": 4, Kind.CIRCLE: 2}, construction=(0.1, 0.3), aspect=(2.0, 2.0), unique=True
    )
    assert criteria.Conditions.parse(primitives=9) == criteria.Conditions(primitives=(9, 9))
    named = {"primitives": "8..16", "kinds": "line=4,circle=2", "construction": "0.1..0.3", "aspect": "2"}
    assert (words.to_json(), criteria.Conditions().to_json()) == (named | {"unique": True}, {})
    assert criteria.Conditions(kinds={Kind.LINE: 8, Kind.CIRCLE: 2}).primitive_range == (10, 10)
    assert criteria.Conditions(kinds={Kind.LINE: 8}, primitives=(9, 12)).primitive_range == (9, 12)
    assert criteria.Conditions().primitive_range is None
    assert not criteria.Conditions().is_restrictive
    assert CLOSED.is_restrictive


def test_numbers_beyond_the_training_range_are_refused() -> None:
    system = small_system()
    low, high = criteria.trained_range(system)
    assert (low, high) == system.training_index.primitive_count_range  # type: ignore[union-attr]
    criteria.check_conditions(criteria.Conditions(primitives=(low, high)), system)
    criteria.check_conditions(criteria.Conditions(kinds={Kind.ARC: 1}, primitives=(low, high)), system)
    with pytest.raises(SketchError, match="20 primitives do not fit: a sketch of this model has 16 rows"):
        criteria.check_conditions(criteria.Conditions(primitives=(20, 20)), system)
    with pytest.raises(SketchError, match=f"trained on sketches of {low} to {high} primitives"):
        criteria.check_conditions(criteria.Conditions(primitives=(low - 1, high)), system)
    with pytest.raises(SketchError, match=f"ask for {low}..{high} primitives as well"):
        criteria.check_conditions(criteria.Conditions(kinds={Kind.ARC: 1}), system)
    system = small_system(knows=False)
    criteria.check_conditions(criteria.Conditions(primitives=(1, 16)), system)
    with pytest.raises(SketchError, match="no record of its training sketches"):
        criteria.check_conditions(criteria.Conditions(novel=True), system)
    with pytest.raises(SketchError, match="do not fit"):
        criteria.check_conditions(criteria.Conditions(kinds={Kind.LINE: 17}), system)


def test_shortfall_names_what_a_sketch_lacks() -> None:
    both = {Kind.LINE: 4, Kind.CIRCLE: 2}
    for conditions, words in (
        (criteria.Conditions(primitives=(8, 9)), "it has 6 primitives, not 8 to 9"),
        (criteria.Conditions(kinds=both), "it has 1 circle besides construction, not 2"),
        (criteria.Conditions(kinds=both, count_construction=True), "it has 5 lines, not 4; it has 1 circle, not 2"),
        (criteria.Conditions(construction=(0.5, 1.0)), "0.17 of it is construction, not 0.5 to 1"),
        (criteria.Conditions(aspect=(2.0, 2.0)), "its width is 1 of its height, not 2"),
    ):
        assert sentence(conditions, *PLATE) == words
    for conditions in (
        criteria.Conditions(),
        criteria.Conditions(primitives=(6, 6), closed=True),
        criteria.Conditions(kinds={Kind.LINE: 4, Kind.CIRCLE: 1}, primitives=(6, 6)),
        criteria.Conditions(kinds={Kind.LINE: 5, Kind.CIRCLE: 1}, count_construction=True),
        criteria.Conditions(kinds={Kind.POINT: 0}, primitives=(1, 6)),
        criteria.Conditions(construction=(0.1, 0.2), aspect=(0.9, 1.1)),
    ):
        assert sentence(conditions, *PLATE) is None
    dashed = (*square()[:3], replace(square()[3], construction=True))
    assert sentence(criteria.Conditions(kinds={Kind.LINE: 4}), *dashed) == "it has 3 lines besides construction, not 4"


def test_closed_requires_an_extrudable_outline_with_small_gaps() -> None:
    assert sentence(CLOSED, *pulled_square(0.015)) is None
    assert sentence(CLOSED, *pulled_square(0.05)) == "1 chain is left open"
    assert sentence(CLOSED, Point((0, 0)), Point((1, 1))) == "nothing in it closes"
    construction = [replace(line, construction=True) for line in square()]
    for primitives, words in (
        ((*square(), Circle((1, 0), 0.3)), "curves cross or touch in 2 places"),
        ((*square(), Line((-1, -1), (1, 1))), "more than two ends meet in 2 places"),
        ((*square(), Circle((0, 0), 0.5), Circle((0, 0), 0.5)), "1 pair of curves overlap"),
        ((*construction, Circle((0, 0), 0.1), Circle((0.9, 0), 0.05)), "outline is 0.10 of its size, not at least 0.5"),
    ):
        for tolerance in (criteria.CLOSE_TOLERANCE, 1e-4):
            assert words in str(sentence(CLOSED, *primitives, tolerance=tolerance))
        assert score(*primitives) < score(*PLATE) == 1


@given(sketches(max_size=8), st.integers(-9, 9))
def test_key_does_not_depend_on_size_or_order(sketch: Sketch, power: int) -> None:
    small, _ = normalize(sketch)
    # Powers of two, since any other size may round a number into the next cell.
    assert criteria.sketch_key(small) == criteria.sketch_key(small.moved(2.0**power))
    assert criteria.sketch_key(small) == criteria.sketch_key(Sketch(tuple(reversed(small.primitives))))


def test_unique_and_novel_compare_with_accepted_and_training_sketches() -> None:
    checker = criteria.ConditionChecker(criteria.Conditions(unique=True))
    assert checker.find_shortfall(PLATE) is checker.find_shortfall(PLATE) is None  # checking accepts nothing
    checker.accept(PLATE)
    mirrored = Sketch((*square(), Circle((0, 0), 0.3), Line((0, -1), (0, 1), True)))
    shortfall = checker.find_shortfall(mirrored.moved(40.0, (3.0, 4.0)))
    assert shortfall is not None
    assert shortfall.sentence == "it repeats another sketch of this run"
    assert checker.find_shortfall(Sketch(PLATE.primitives[:5])) is None
    known = build_training_index(encode([PLATE]))
    checker = criteria.ConditionChecker(criteria.Conditions(novel=True), known)
    shortfall = checker.find_shortfall(PLATE.moved(50.0))
    assert shortfall is not None
    assert shortfall.sentence == "it is in the training corpus"
    assert checker.find_shortfall(Sketch(PLATE.primitives[:5])) is None
    assert criteria.ConditionChecker(criteria.Conditions(), known).find_shortfall(PLATE) is None


def test_score_and_distance_prefer_closed_clean_and_close_sketches() -> None:
    assert score(*square(), Circle((0, 0), 0.5), Line((-1, 0), (1, 0), True), Point((0, 0))) == 1
    tight, gaping, more, wide = (score(*pulled_square(by)) for by in (0.0, 0.005, 0.015, 0.1))
    assert 1 == tight > gaping > more > wide
    assert score(*square(), Line((-1, -1), (0.5, -1))) < 1
    assert score(*square(), Line((3, 0), (4, 0.1))) < 1
    assert score(Point((0, 0)), Point((1, 0))) == score() == 0
    # A gap costs in proportion, up to half at 1 % of the size.
    assert score(*pulled_square(0.01)) == pytest.approx(0.75)
    assert score(*pulled_square(0.0199)) == pytest.approx(0.5, abs=0.01)
    # Four of five curves are in the loop; two of five lie on one another.
    assert score(*square(), square()[0]) == pytest.approx(4 / 5 - 2 / 5)
    eight = criteria.Conditions(primitives=(8, 8))
    assert distance(eight, *square()) > distance(eight, *square(), *square(0.5)[:3])
    wide = criteria.Conditions(aspect=(3.0, 4.0))
    assert distance(wide, *square()) > distance(wide, Line((0, 0), (2, 1)))
    assert distance(wide, Line((0, 0), (2, 0))) < 1e6  # no height at all
    both = criteria.Conditions(primitives=(8, 8), closed=True)
    assert distance(both, *square()[:3]) > distance(both, *square())


@given(sketches())
def test_score_is_bounded_and_does_not_depend_on_size(sketch: Sketch) -> None:
    value = criteria.score_sketch(sketch)
    assert -1.5 <= value <= 1
    assert criteria.score_sketch(sketch.moved(2.0)) == pytest.approx(value, abs=1e-6)


HOLE = Circle((0.4, 0.4), 0.2)


def test_closed_sketch_without_design_faults_is_accepted_only_where_it_is_judged() -> None:
    plain, judging = (criteria.ConditionChecker(CLOSED, exact=True, designed=designed) for designed in (False, True))
    centered = Sketch((*square(), Circle((0, 0), 0.3)))
    assert plain.find_shortfall(centered) is judging.find_shortfall(centered) is None
    for others, words in (
        ((Circle((0.0, 0.0), 0.5), Circle((0.1, 0.2), 0.2)), "inside a hole"),
        ((Circle((0.0, 0.0), 0.011),), "is a speck"),
        ((Circle((0.0, 0.0), 0.98),), "a strip of only"),
        ((HOLE, Line((-2, -0.7), (-1.3, 0.2), construction=True)), "refers to nothing else"),
        ((HOLE, Circle((-0.4, 0.4), 0.18)), "nearly, not exactly, equal"),
    ):
        sketch = Sketch((*square(), *others))
        assert plain.find_shortfall(sketch) is None
        shortfall = judging.find_shortfall(sketch)
        assert shortfall is not None
        assert words in shortfall.sentence
        assert 0 < shortfall.distance <= 1
    # A fault of the profile is named before those of design, which are the smaller distance.
    shortfall = judging.find_shortfall(Sketch((*pulled_square(0.1), Circle((0.0, 0.0), 0.011))))
    assert shortfall is not None
    assert "left open" in shortfall.sentence
    # Design is judged for closed sketches only.
    anything = criteria.ConditionChecker(criteria.Conditions(primitives=(5, 5)), designed=True)
    assert anything.find_shortfall(Sketch((*square(), Circle((0.13, 0.37), 0.011)))) is None
