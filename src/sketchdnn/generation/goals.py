"""The goals of a completion, and which additions can stay.

| goal | what is added |
|---|---|
| close | curves that close the open ends of the part, and features inside |
| inside | features inside the closed outline of the part |
| extend | outlines beside the part or around it |

Additions that cannot belong to a result are removed: those that cross or touch the part, lie where the goal has no
place for them, or stay open. The rest of a suggestion may still be good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, get_args

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Box, Line, Point, Profile, Sketch, Vec, bounds
from sketchdnn.geometry.loops import build_graph
from sketchdnn.geometry.proximity import component_roots

from .conditions import CLOSE_TOLERANCE, joint_tolerance, outlines_of
from .distinct import difference

Goal = Literal["close", "inside", "extend"]
# Construction that repair moved by less than this, as a fraction of the size, is still the same.
_SAME_CONSTRUCTION = 0.03
# Smaller additions, as a fraction of the size, are specks.
_SPECK = 0.02
# Range of scales to try for each goal. Of real sketches with half of their primitives removed, 99 % lie within 1 to 2.
SCALES: Mapping[Goal, tuple[float, float]] = {"close": (1.0, 2.0), "inside": (1.0, 1.0), "extend": (1.3, 2.5)}


def resolve_goal(part: Sketch, goal: str | None) -> Goal:
    """The goal for a part; by default `close` if it has open ends, else `inside`.

    Raises:
        SketchError: If there is no such goal, or the part has nothing to close or no inside.
    """
    if goal is not None and goal not in get_args(Goal):
        raise SketchError(f"'{goal}' is no goal of a completion; use {', '.join(get_args(Goal))}")
    outlines = outlines_of(part.primitives, joint_tolerance(part.primitives))
    if goal == "close" and outlines.loops and not outlines.chains:
        raise SketchError("every outline of the part is closed: there is nothing to close; use the goal inside")
    if goal == "inside" and not outlines.loops:
        raise SketchError("the part has no closed outline, so it has no inside; use the goal close")
    if goal is not None:
        return goal  # type: ignore[return-value]  # checked above
    return "inside" if outlines.loops and not outlines.chains else "close"


def open_ends(part: Sketch) -> list[Vec]:
    """The loose ends of the part's curves."""
    shape = outlines_of(part.primitives, joint_tolerance(part.primitives))
    return [end for chain in shape.chains for end in (chain.start, chain.end)]


def prune(sketch: Sketch, num_given: int, goal: Goal, window: Box | None = None, *, final: bool) -> Sketch:
    """Remove what was added and cannot stay; the first `num_given` primitives stay.

    Args:
        sketch: The part, followed by what was added.
        num_given: Number of primitives of the part.
        goal: The goal.
        window: The box that additions must lie in, if any.
        final: Whether open additions are faults too: before repair, an open end may still be joined.
    """
    while True:
        faulty = next(_faulty_additions(sketch, num_given, goal, window, final=final), None)
        if faulty is None:
            return sketch
        sketch = sketch.select([number for number in range(len(sketch)) if number not in faulty])


def without_new_construction(before: Sketch, after: Sketch, num_given: int) -> Sketch:
    """Remove added construction that repair made of open curves."""
    size = bounds(before).size
    drawn = [p for p in before.primitives[num_given:] if p.construction]
    kept = [
        number
        for number, p in enumerate(after)
        if number < num_given
        or not p.construction
        or any(p.kind is q.kind and difference([p], [q], size) <= _SAME_CONSTRUCTION for q in drawn)
    ]
    return after if len(kept) == len(after) else after.select(kept)


def additions(sketch: Sketch, num_given: int) -> list[frozenset[int]]:
    """The added primitives in connected groups: curves whose ends meet; each construction and each point alone."""
    added = range(num_given, len(sketch))
    curves = {i: p for i in added if isinstance(p := sketch.primitives[i], Line | Arc) and not p.construction}
    size = bounds(sketch).size
    graph = build_graph(curves, size * joint_tolerance(sketch.primitives[:num_given], size))
    meeting = [[half_edge >> 1 for half_edge in half_edges] for half_edges in graph.outgoing if half_edges]
    roots = component_roots(len(sketch), meeting).tolist()
    groups: dict[int, set[int]] = {}
    for number in added:
        groups.setdefault(roots[number], set()).add(number)
    return [frozenset(group) for group in groups.values()]


def _faulty_additions(
    sketch: Sketch, num_given: int, goal: Goal, window: Box | None, *, final: bool
) -> Iterator[frozenset[int]]:
    """Groups of additions that cannot stay, the surest first."""
    groups = additions(sketch, num_given)
    size = bounds(sketch).size
    shape = outlines_of(sketch.primitives, joint_tolerance(sketch.primitives[:num_given], size))
    given = frozenset(range(num_given))
    attached = {group: _closes_part(shape, group, given) for group in groups}
    if window is not None:
        yield from (group for group in groups if not _lies_in(sketch, group, window))
    yield from (group for group in groups if not attached[group] and _is_speck(sketch, group, size))
    if goal == "inside":
        outside = bounds(sketch.primitives[:num_given])
        yield from (group for group in groups if not _lies_in(sketch, group, outside))
    # After repair joined ends are equal, so a crossing beside a joint is one.
    meeting = (*shape.meetings, *outlines_of(sketch.primitives).meetings) if final else shape.meetings
    # A group that meets the part anywhere but at a joint of ends, or where two curves are joined already.
    yield from (group for group in groups if _meet(meeting, group, given))
    branches = [set(branch.primitives) for branch in shape.branches]
    yield from (group for group in groups if any(group & branch for branch in branches))
    in_chains = {edge.primitive_index for chain in shape.chains for edge in chain.edges}
    for first, second in combinations(groups, 2):
        if _meet(meeting, first, second):
            yield min(first, second, key=lambda group: (attached[group], _length(sketch, group)))
    for group in groups:
        is_open = bool(in_chains & group)
        stays_open = is_open and (final or (goal != "close" and not attached[group]))
        # While an outline is open, what will be inside it still seems to lie beside it.
        is_placed = is_open or (in_chains and not final) or _has_place(shape, group, given, goal)
        if stays_open or not is_placed:
            yield group


def _meet(pairs: Sequence[tuple[int, int]], first: Collection[int], second: Collection[int]) -> bool:
    return any((a in first and b in second) or (a in second and b in first) for a, b in pairs)


def _closes_part(shape: Profile, group: frozenset[int], given: frozenset[int]) -> bool:
    """Whether the group is in a loop with curves of the part."""
    loops = [{edge.primitive_index for edge in loop.edges} for loop in shape.loops]
    return any(loop & group and loop & given for loop in loops)


def _has_place(shape: Profile, group: frozenset[int], given: frozenset[int], goal: Goal) -> bool:
    """Whether every loop of the group alone lies where the goal has a place for it."""
    for loop in shape.loops:
        members = {edge.primitive_index for edge in loop.edges}
        if not members <= group:
            continue
        if goal == "extend":
            if loop.depth != 0:
                return False
        elif loop.depth % 2 == 0:
            # Beside the part, or inside one of its holes. Inside an added hole is an island.
            parent = None if loop.parent is None else shape.loops[loop.parent]
            if parent is None or {edge.primitive_index for edge in parent.edges} & given:
                return False
    return True


def _is_speck(sketch: Sketch, group: frozenset[int], size: float) -> bool:
    items = [sketch.primitives[i] for i in group]
    return not any(isinstance(item, Point) for item in items) and bounds(items).size < _SPECK * size


def _lies_in(sketch: Sketch, group: frozenset[int], window: Box) -> bool:
    box = bounds([sketch.primitives[i] for i in group])
    slack = CLOSE_TOLERANCE * bounds(sketch).size
    return all(
        low - slack <= least and most <= high + slack
        for low, high, least, most in zip(window.low, window.high, box.low, box.high, strict=True)
    )


def _length(sketch: Sketch, group: frozenset[int]) -> float:
    return sum(sketch.primitives[i].length for i in group if not isinstance(sketch.primitives[i], Point))
