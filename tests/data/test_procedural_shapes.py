"""Outlines close, and their arcs are tangent to the lines they join."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import primitives

from sketchdnn.data.procedural.shapes import belt, chamfered, curved_slot, mirrored, outline, rectangle, slot, turned
from sketchdnn.geometry import TAU, Arc, Line, Point, Primitive, Vec
from sketchdnn.geometry.profiles import profile


def tangents(p: Primitive) -> dict[Vec, Vec]:
    """The direction of travel, up to its sign, at both ends."""
    if isinstance(p, Line):
        way = ((p.end[0] - p.start[0]) / p.length, (p.end[1] - p.start[1]) / p.length)
        return {p.start: way, p.end: way}
    assert isinstance(p, Arc)
    return {end: ((end[1] - p.center[1]) / p.radius, (p.center[0] - end[0]) / p.radius) for end in (p.start, p.end)}


def kinks(parts: list[Primitive]) -> int:
    """How many of the places where two pieces meet are not smooth. Fails where none or several meet."""
    count = 0
    everything = [(i, end, way) for i, p in enumerate(parts) for end, way in tangents(p).items()]
    for i, end, (x, y) in everything:
        (other,) = [w for j, e, w in everything if (j, e) != (i, end) and math.dist(e, end) < 1e-9]
        count += abs(x * other[1] - y * other[0]) > 1e-6
    return count // 2


def test_a_rounded_outline_has_no_kinks_and_a_sharp_one_only_kinks() -> None:
    corners: list[Vec] = [(0, 0), (10, 0), (10, 4), (4, 4), (4, 9), (0, 9)]
    assert kinks(outline(corners)) == 6
    assert kinks(outline(corners, 1.0)) == 0
    assert kinks(outline(corners, [1, 0, 1, 0, 1, 0])) == 3
    # Five corners turn one way and lose (1 − π/4)·r² each, the inner one gains as much.
    assert profile(outline(corners, 1.0)).area == pytest.approx(60 - 4 * (1 - math.pi / 4))


def test_fillets_that_use_up_a_side_leave_no_line_there() -> None:
    parts = outline(rectangle(10, 4), 2.0)
    assert [type(p) for p in parts].count(Line) == 2
    assert kinks(parts) == 0


def test_chamfers_cut_the_corners() -> None:
    parts = outline(chamfered(rectangle(10, 6), 1.0))
    assert len(parts) == 8
    assert profile(parts).area == pytest.approx(60 - 4 * 0.5)


@given(st.floats(1, 20), st.floats(1, 20), st.floats(1.01, 4), st.floats(0, TAU))
def test_a_belt_around_two_discs_is_smooth_and_encloses_them(a: float, b: float, far: float, angle: float) -> None:
    span = far * (a + b)
    other = (span * math.cos(angle), span * math.sin(angle))
    parts = belt([((0.0, 0.0), a), (other, b)])
    assert kinks(parts) == 0
    arcs = [p for p in parts if isinstance(p, Arc)]
    assert sum(arc.sweep for arc in arcs) == pytest.approx(TAU)
    larger = max(arcs, key=lambda arc: arc.radius)
    assert larger.sweep >= math.pi - 1e-9
    assert profile(parts).is_extrudable


def test_a_belt_around_three_discs_in_a_row_touches_the_middle_one_twice() -> None:
    parts = belt([((-30.0, 0.0), 5.0), ((0.0, 0.0), 12.0), ((30.0, 0.0), 5.0), ((0.0, 0.0), 12.0)])
    assert kinks(parts) == 0
    assert [p.radius for p in parts if isinstance(p, Arc)] == [5, 12, 5, 12]


def test_slots_have_the_area_of_their_parts() -> None:
    assert profile(slot((0, 0), (10, 0), 2)).area == pytest.approx(10 * 4 + math.pi * 4)
    bent = curved_slot(20, 3, 0.5, 1.5)
    assert kinks(bent) == 0
    assert profile(bent).area == pytest.approx(20 * 1.5 * 6 + math.pi * 9)


@given(primitives, st.floats(0, TAU))
def test_turning_and_mirroring_keep_lengths_and_what_meets(p: Primitive, angle: float) -> None:
    assert turned(p, angle).length == pytest.approx(p.length)
    assert mirrored(p).length == p.length
    if isinstance(p, Point):
        return
    if not isinstance(p, Line | Arc):
        assert mirrored(p).center == (-p.center[0], p.center[1])
        return
    there = sorted((-x, y) for x, y in (p.start, p.end))
    for (x, y), (u, v) in zip(there, sorted((mirrored(p).start, mirrored(p).end)), strict=True):
        assert math.dist((x, y), (u, v)) < 1e-9


@given(primitives)
def test_four_quarter_turns_are_exactly_none(p: Primitive) -> None:
    there = p
    for _ in range(4):
        there = turned(there, TAU / 4)
    match p, there:
        case Arc(center, radius), Arc():
            assert (there.center, there.radius) == (center, radius)
            assert math.dist(there.start, p.start) < 1e-9
        case _:
            assert there == p
