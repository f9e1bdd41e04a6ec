"""Which constraints a drawn sketch means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_same

from benchmarks.constraint_recall import missed_by, shake
from sketchdnn.constraints import infer, solve
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec


def _kinds(sketch: Sketch, tolerance: float = 0.005) -> Counter[str]:
    return Counter(str(constraint.type) for constraint in infer(sketch, tolerance))


def _plate() -> Sketch:
    """A plate with rounded corners on one side, two holes and a center line."""
    quarter = math.pi / 2
    return Sketch(
        (
            Line((0, 0), (80, 0)),
            Arc((80, 10), 10, -quarter, quarter),
            Line((90, 10), (90, 40)),
            Arc((80, 40), 10, 0, quarter),
            Line((80, 50), (0, 50)),
            Line((0, 50), (0, 0)),
            Circle((20, 25), 6),
            Circle((20, 25), 11),
            Circle((60, 25), 6),
            Line((0, 25), (90, 25), construction=True),
        )
    )


def test_a_plate() -> None:
    shaken, _ = shake(_plate(), 0.002, np.random.default_rng(3))
    constraints = infer(shaken, 0.002)
    kinds = Counter(str(c.type) for c in constraints)
    assert kinds["coincident"] == 6
    assert kinds["concentric"] == 1
    assert kinds["tangent"] == 4
    assert kinds["horizontal"] >= 3
    misses = missed_by(_plate(), constraints)
    assert all(miss is not None and miss < 1e-9 for miss in misses)
    solution = solve(shaken, constraints)
    assert (solution.warning, solution.conflicting, solution.redundant) == (None, (), ())
    assert solution.dof <= 10


@pytest.mark.parametrize(
    ("primitives", "kind"),
    [
        ((Line((0, 0), (10, 3)), Line((0, 5), (10, 8.02))), "parallel"),
        ((Line((0, 0), (10, 3)), Line((2, 9), (5.01, -1))), "perpendicular"),
        ((Line((0, 0), (4, 1)), Line((8, 2.01), (12, 3)), Line((0, 9), (1, 2))), "collinear"),
        ((Circle((0, 0), 2), Circle((9, 4), 2.01)), "equal"),
        ((Circle((0, 0), 2), Circle((0.01, 0), 5)), "concentric"),
        ((Circle((0, 0), 2), Line((-6, 2.01), (7, 2))), "tangent"),
        ((Circle((0, 0), 2), Circle((3, 4.01), 3)), "tangent"),
        ((Line((0, 0), (10, 3)), Point((5.01, 1.5))), "midpoint"),
        ((Line((0, 0), (10, 3)), Point((2.0, 0.61))), "point_on_curve"),
        (
            (Line((0, -6), (0, 6), construction=True), Line((-3, 1), (-4, 5)), Line((3.01, 1), (4, 5.01))),
            "symmetric",
        ),
    ],
)
def test_each_kind(primitives: tuple[Primitive, ...], kind: str) -> None:
    assert _kinds(Sketch(primitives))[kind] >= 1


def test_chains_not_all_pairs() -> None:
    lines = tuple(Line((0, 3.0 * i), (10 + 1.7 * i, 3.0 * i + 4 + 0.68 * i)) for i in range(5))
    assert _kinds(Sketch(lines))["parallel"] == 4
    circles = tuple(Circle((7.0 * i, 1.3 * i * i), 2) for i in range(5))
    assert _kinds(Sketch(circles))["equal"] == 4


def test_places_that_meet_are_joined_once() -> None:
    star = tuple(Line((0, 0), (10 * math.cos(a), 10 * math.sin(a))) for a in (0.2, 1.1, 2.3, 3.9, 5.2))
    assert _kinds(Sketch(star))["coincident"] == 4


def test_the_ends_of_a_short_line_stay_apart() -> None:
    sketch = Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10.02, 0.02)), Line((10.02, 0.02), (10, 8))))
    solution = solve(sketch, infer(sketch))
    assert solution.warning is None
    assert all(p.length > 0.005 for p in solution.sketch)


def test_far_from_true_is_not_believed() -> None:
    assert infer(Sketch((Line((0, 0), (10, 1.5)), Line((3, 7), (9, 2.2))))) == ()


def test_constraints_are_ranked_by_what_they_explain() -> None:
    """Places that are one come first, then what settles more numbers, then what is missed by less."""
    middle = (Line((0, 0), (10, 3)), Point((5.01, 1.5)))
    circles = (Circle((20, 0), 2), Circle((29, 4), 2), Circle((29, 4.03), 0.7))
    for primitives in ((*middle, *circles), (*circles, *middle)):
        assert [str(c.type) for c in infer(Sketch(primitives))] == ["concentric", "midpoint", "equal"]
    rough, fine = Line((0, 0), (10, 0.04)), Line((3, 7), (13, 7.01))
    for lines, first in (((rough, fine), 1), ((fine, rough), 0)):
        level = [c for c in infer(Sketch(lines)) if c.type == "horizontal"]
        assert [c.refs[0].primitive for c in level] == [first, 1 - first]


@pytest.mark.parametrize(("sine", "is_parallel"), [(0.0, True), (0.075, True), (0.085, False), (0.2, False)])
def test_a_short_line_turned_by_more_than_a_twelfth_is_not_parallel(sine: float, is_parallel: bool) -> None:
    """However little its end is off, beside what may be missed in a sketch of this size."""
    angle = math.atan2(37, 100) + math.asin(sine)
    sketch = Sketch((Line((0, 0), (100, 37)), Line((50, 0), (50 + 12 * math.cos(angle), 12 * math.sin(angle)))))
    assert any(c.type == "parallel" for c in infer(sketch)) == is_parallel


def test_bad_tolerance_and_nothing() -> None:
    assert infer(Sketch(())) == ()
    with pytest.raises(GeometryError, match="share of the size"):
        infer(_plate(), 0.5)


def _moved(sketch: Sketch, place: Callable[[Vec], Vec], scale: float = 1.0, mirror: bool = False) -> Sketch:
    """Every place goes where `place` says; arcs follow by their ends, swapped in a mirror."""

    def one(p: Primitive) -> Primitive:
        match p:
            case Line(a, b):
                return replace(p, start=place(a), end=place(b))
            case Circle(c, r):
                return replace(p, center=place(c), radius=scale * r)
            case Arc(c, r):
                center, begin = place(c), place(p.end if mirror else p.start)
                angle = math.atan2(begin[1] - center[1], begin[0] - center[0])
                return replace(p, center=center, radius=scale * r, start_angle=angle)
            case Point(at):
                return replace(p, at=place(at))

    return replace(sketch, primitives=tuple(one(p) for p in sketch))


WAYS: dict[str, Callable[[Sketch], Sketch]] = {
    "quarter turn": lambda s: _moved(s, lambda p: (-p[1], p[0])),
    "mirror": lambda s: _moved(s, lambda p: (-p[0], p[1]), mirror=True),
    "large": lambda s: _moved(s, lambda p: (1e6 * p[0], 1e6 * p[1]), 1e6),
    "small": lambda s: _moved(s, lambda p: (1e-6 * p[0], 1e-6 * p[1]), 1e-6),
    "backwards": lambda s: replace(s, primitives=s.primitives[::-1]),
}


@pytest.mark.parametrize("way", WAYS)
@given(seed=st.integers(0, 2**32))
def test_how_it_lies_does_not_matter(way: str, seed: int) -> None:
    shaken, _ = shake(_plate(), 0.003, np.random.default_rng(seed))
    move = WAYS[way]
    first = solve(move(solve(shaken, infer(shaken)).sketch), [])
    second = solve(move(shaken), infer(move(shaken)))
    assert_same(first.sketch, second.sketch, 1e-6)
