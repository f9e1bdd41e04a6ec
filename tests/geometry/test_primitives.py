"""Primitives refuse to be impossible, and say why."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from support.strategies import arcs, primitives

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Point, Primitive

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e300, -1e300])
@pytest.mark.parametrize(
    ("make", "slots"),
    [
        (lambda a, b, c, d: Line((a, b), (c, d)), 4),
        (lambda a, b, c, _: Circle((a, b), c), 3),
        (lambda a, b, c, d: Arc((a, b), c, d, 1.0), 4),
        (lambda a, b, _, d: Arc((a, b), 1.0, 0.0, d), 4),
        (lambda a, b, *_: Point((a, b)), 2),
    ],
)
def test_numbers_that_are_none_are_refused(make: Any, slots: int, bad: float) -> None:
    good = [0.5, 1.5, 2.5, 3.5]
    make(*good)
    for slot in range(slots):
        if make(*good) == make(*good[:slot], 0.25, *good[slot + 1 :]):
            continue  # this kind does not use that number
        with pytest.raises(GeometryError, match=r"not a number|is beyond|above zero|between 0 and 2π"):
            make(*good[:slot], bad, *good[slot + 1 :])


@pytest.mark.parametrize("radius", [0.0, -0.0, -1.0])
def test_no_radius_no_circle(radius: float) -> None:
    with pytest.raises(GeometryError, match="a circle's radius must be above zero"):
        Circle((0, 0), radius)
    with pytest.raises(GeometryError, match="an arc's radius must be above zero"):
        Arc((0, 0), radius, 0, 1)


def test_a_line_of_no_length_is_refused() -> None:
    with pytest.raises(GeometryError, match="two different ends"):
        Line((1, 2), (1, 2))


@pytest.mark.parametrize("sweep", [0.0, TAU, -1.0, 7.0, -0.0])
def test_an_arc_turns_neither_nothing_nor_all_the_way(sweep: float) -> None:
    with pytest.raises(GeometryError, match="sweep lies between 0 and 2π"):
        Arc((0, 0), 1, 0, sweep)


def test_an_arc_too_small_to_have_two_ends_is_refused() -> None:
    with pytest.raises(GeometryError, match="two different ends"):
        Arc((1e6, 1e6), 1e-3, 0, 1e-9)


def test_what_is_wrong_is_a_value_error_for_people() -> None:
    assert issubclass(GeometryError, SketchError)
    assert issubclass(SketchError, ValueError)


@given(primitives)
def test_primitives_are_values(p: Primitive) -> None:
    assert dataclasses.replace(p) == p
    assert hash(dataclasses.replace(p)) == hash(p)
    assert dataclasses.replace(p, construction=not p.construction) != p
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.construction = True  # type: ignore[misc]


@given(arcs)
def test_an_arc_keeps_its_radius_and_runs_counter_clockwise(arc: Arc) -> None:
    for fraction in (0, 0.25, 0.5, 0.75, 1):
        assert math.dist(arc.at(fraction), arc.center) == pytest.approx(arc.radius)
    assert (arc.start, arc.mid, arc.end) == (arc.at(0), arc.at(0.5), arc.at(1))
    # A hundred small chords add up to the arc's length, each of them turning left about the center.
    places = [arc.at(k / 100) for k in range(101)]
    assert sum(map(math.dist, places, places[1:])) == pytest.approx(arc.length, rel=1e-3)
    cx, cy = arc.center
    for (ax, ay), (bx, by) in pairwise(places):
        assert (ax - cx) * (by - cy) - (ay - cy) * (bx - cx) > 0


def test_lengths() -> None:
    assert Line((0, 0), (3, 4)).length == 5
    assert Circle((7, 7), 2).length == pytest.approx(4 * math.pi)
    assert Point((1, 1)).length == 0


def test_kinds_have_the_order_of_the_papers_columns() -> None:
    assert [kind.label for kind in Kind] == ["line", "circle", "arc", "point"]
    assert [p.kind for p in (Line((0, 0), (1, 0)), Circle((0, 0), 1), Arc((0, 0), 1, 0, 1), Point((0, 0)))] == list(
        Kind
    )
