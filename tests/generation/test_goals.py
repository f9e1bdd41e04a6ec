"""Goals of a completion: which one fits a part, and which additions can stay."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sketchdnn.errors import SketchError
from sketchdnn.generation.goals import Goal, additions, open_ends, prune, resolve_goal, without_new_construction
from sketchdnn.geometry import Arc, Box, Circle, Line, Point, Primitive, Sketch

CORNERS = ((0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0))
SIDES = tuple(Line(a, b) for a, b in pairwise((*CORNERS, CORNERS[0])))
CLOSED, OPEN = Sketch(SIDES), Sketch(SIDES[:3])
HOLE = Circle((20, 20), 5)


def stays(part: Sketch, *added: Primitive, goal: Goal = "inside", window: Box | None = None, final: bool = True) -> int:
    """How many additions stay. The part always does."""
    kept = prune(Sketch((*part, *added)), len(part), goal, window, final=final)
    assert kept.primitives[: len(part)] == part.primitives
    return len(kept) - len(part)


def test_goal_follows_from_the_part() -> None:
    only_arc = Sketch((Arc((0, 0), 5, 0, 2),))
    assert [resolve_goal(part, None) for part in (OPEN, CLOSED, only_arc)] == ["close", "inside", "close"]
    assert resolve_goal(CLOSED, "extend") == "extend"
    assert resolve_goal(Sketch((*OPEN, HOLE)), "inside") == "inside"
    for part, goal, message in (
        (CLOSED, "close", "nothing to close"),
        (OPEN, "inside", "has no inside"),
        (OPEN, "shrink", "'shrink' is no goal"),
    ):
        with pytest.raises(SketchError, match=message):
            resolve_goal(part, goal)
    assert (open_ends(CLOSED), sorted(open_ends(OPEN))) == ([], [(0.0, 0.0), (0.0, 40.0)])


@pytest.mark.parametrize(
    ("added", "inside", "extend"),
    [
        ((HOLE,), 1, 0),
        ((Circle((60, 20), 5), HOLE), 2, 0),
        ((Circle((80, 20), 5),), 0, 0),  # across the outline
        ((Circle((20, 35), 5),), 0, 0),  # touches it
        ((Circle((120, 20), 5),), 0, 1),  # beside the part
        ((Circle((20, 20), 5), Circle((24, 20), 5)), 1, 0),  # one of two that cross
        ((HOLE, Circle((20, 20), 0.3)), 1, 0),  # a speck
        ((Line((10, 10), (30, 30)),), 0, 0),  # open
        ((Line((10, 10), (30, 10)), Line((30, 10), (20, 30)), Line((20, 30), (10, 10))), 3, 0),
        ((Line((0, 20), (80, 20), construction=True),), 1, 1),
        ((Point((5, 5)),), 1, 1),
    ],
)
def test_additions_stay_where_the_goal_has_a_place(added: tuple[Primitive, ...], inside: int, extend: int) -> None:
    assert stays(CLOSED, *added) == inside
    assert stays(CLOSED, *added, goal="extend") == extend


def test_only_what_is_added_to_a_hole_is_misplaced() -> None:
    part = Sketch((*CLOSED, Circle((40, 20), 15)))
    assert stays(part, Circle((40, 20), 5)) == 0  # inside the part's own hole
    assert stays(part, Circle((10, 20), 5), Circle((10, 20), 2)) == 2  # a new hole with an island


def test_open_outline_is_closed_and_may_be_open_until_repair() -> None:
    assert stays(OPEN, SIDES[3], goal="close") == 1
    assert stays(OPEN, SIDES[3], HOLE, goal="close") == 2
    assert stays(OPEN, HOLE, goal="close", final=False) == 1
    nearly = Line((0, 40), (0, 4))
    assert [stays(OPEN, nearly, goal="close", final=final) for final in (False, True)] == [1, 0]
    across = (Line((0, 40), (40, -10)), Line((40, -10), (0, 0)))
    assert stays(OPEN, *across, goal="close", final=False) == 0


def test_crossing_beside_a_joint_goes_after_repair() -> None:
    overshoot = Line((0.3, -0.3), (0, 40))
    assert stays(OPEN, overshoot, goal="close", final=False) == 1
    assert stays(OPEN, overshoot, goal="close") == 0
    assert stays(OPEN, Line((0, 0), (0, 40)), goal="close") == 1


def test_additions_lie_in_the_window() -> None:
    window = Box((0, 0), (40, 40))
    assert stays(CLOSED, HOLE, Circle((60, 20), 5), window=window) == 1


def test_groups_are_connected_curves() -> None:
    triangle = (Line((10, 10), (30, 10)), Line((30, 10), (20, 30)), Line((20, 30), (10, 10)))
    sketch = Sketch((*OPEN, *triangle, HOLE, Line((0, 20), (9, 20), construction=True), SIDES[3]))
    assert sorted(map(sorted, additions(sketch, 3))) == [[3, 4, 5], [6], [7], [8]]


def test_construction_that_repair_made_of_curves_goes() -> None:
    axis, curve = Line((0, 20), (80, 20), construction=True), Line((10, 10), (30, 30))
    made = Line((10, 10), (30, 30), construction=True)
    moved = Line((0, 20.1), (80, 20.1), construction=True)
    before, after = Sketch((*CLOSED, axis, curve)), Sketch((*CLOSED, moved, made))
    assert without_new_construction(before, after, 4).primitives == (*CLOSED, moved)
    assert without_new_construction(before, before, 4) == before
