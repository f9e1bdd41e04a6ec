"""Outlines that lack a line get one; strays beside a closed outline become construction; all or nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sketchdnn.constraints.mending.actions import ActionKind
from sketchdnn.constraints.mending.closing import Closed, closed
from sketchdnn.constraints.mending.worth import EXACT

from sketchdnn.geometry import Line, Primitive, Vec, profile


def path(*corners: Vec) -> list[Primitive]:
    return [Line(a, b) for a, b in pairwise(corners)]


def after(primitives: list[Primitive], tolerance: float = 1e-3) -> Closed:
    return closed(primitives, (), profile(primitives, EXACT), tolerance, ())


SQUARE = path((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))


@pytest.mark.parametrize(("scale", "depth", "closes"), [(1, 1, True), (8, 1, True), (1, 0.99, False), (8, 0.99, False)])
def test_a_line_is_added_up_to_half_of_what_it_closes(scale: float, depth: float, closes: bool) -> None:
    sides = path((0, depth * scale), (0, 0), (2 * scale, 0), (2 * scale, depth * scale))
    done = after(sides)
    assert done.profile.is_extrudable == closes
    assert len(done.primitives) == (4 if closes else 3)


@pytest.mark.parametrize(("gap", "closes"), [(0.25, False), (0.26, True), (0.1, False)])
def test_ends_within_the_tolerance_are_left_to_be_joined(gap: float, closes: bool) -> None:
    sides = path((0, gap), (0, 1), (1, 1), (1, 0), (0, 0))
    assert after(sides, tolerance=0.25).profile.is_extrudable == closes


def test_two_halves_are_joined_by_the_shortest_lines() -> None:
    left, right = path((1, 0), (0, 0), (0, 1), (1, 1)), path((1.5, 0), (3, 0), (3, 1), (1.5, 1))
    done = after([*left, *right])
    assert done.profile.is_extrudable
    assert {frozenset((p.start, p.end)) for p in done.primitives[6:] if isinstance(p, Line)} == {
        frozenset({(1, 0), (1.5, 0)}),
        frozenset({(1, 1), (1.5, 1)}),
    }


@pytest.mark.parametrize("stray_first", [True, False])
def test_an_end_is_joined_once(stray_first: bool) -> None:
    """The end of a stray is near one of the open ends, but farther than the other open end is."""
    outline, stray = path((0, 1), (0, 0), (1, 0), (1, 1)), path((-1.1, 1.2), (-1.1, 3.6))
    primitives = [*stray, *outline] if stray_first else [*outline, *stray]
    done = after(primitives)
    assert done.profile.is_extrudable
    assert len(done.primitives) == 5
    assert [action.kind for action in done.actions].count(ActionKind.ASIDE) == 1


@pytest.mark.parametrize(("length", "aside"), [(4.0, True), (4.01, False), (40.0, False)])
def test_strays_are_set_aside_up_to_half_of_the_profile(length: float, aside: bool) -> None:
    done = after([*SQUARE, Line((5, 0), (5 + length, 0))])
    assert done.profile.is_extrudable == aside
    assert [p.construction for p in done.primitives] == [False] * 4 + [aside]


def test_small_strays_beside_a_large_outline_are_set_aside() -> None:
    """The share counts, not the units."""
    large = path((0, 0), (100, 0), (100, 100), (0, 100), (0, 0))
    assert after([*large, Line((200, 0), (300, 0))]).profile.is_extrudable
