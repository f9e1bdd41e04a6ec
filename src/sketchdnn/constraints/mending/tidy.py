"""Less is drawn, and the drawing is the same: slivers and copies go, lines and arcs on top of each other become one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sketchdnn.errors import SketchError
from sketchdnn.geometry import (
    TAU,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Vec,
    bounds,
    overlaps,
)
from sketchdnn.geometry.intersections import find_duplicates

from .actions import Action, ActionKind

# What merges may lie on top of what has merged already.
_ROUNDS = 6
# However small a circle, an arc that lacks more of it is not all of it.
_ALMOST_ROUND = 0.2


@dataclass(frozen=True, slots=True)
class Tidied:
    """What is left: primitive k came from `sources[k]`. Constraints whose subject is gone are `lost`.

    The first `own` constraints came from the first ones that were asked about, as many as the caller named.
    """

    primitives: list[Primitive]
    sources: list[tuple[int, ...]]
    actions: list[Action]
    constraints: list[Constraint]
    lost: list[Constraint]
    own: int = 0


def tidy(
    primitives: Sequence[Primitive],
    constraints: Sequence[Constraint],
    within: float,
    keep: Collection[int],
    own: int = 0,
) -> Tidied:
    """Tidy up a sketch of size one. What is in `keep` stays as it is; `within` is what counts as nothing."""
    now: dict[int, Primitive] = dict(enumerate(primitives))
    sources: dict[int, tuple[int, ...]] = {i: (i,) for i in now}
    actions = []
    for i in _slivers(primitives, within, keep):
        size = extent(now.pop(i))
        actions.append(Action(ActionKind.DROP, (i,), detail=f"it is only {100 * size:.2g} % of the size"))
    _drop_copies(now, sources, actions, keep)
    for _ in range(_ROUNDS):
        if not _merge_once(now, sources, actions, within, keep):
            break
    order = sorted(now)
    number = {source: k for k, i in enumerate(order) for source in sources[i]}
    after = [now[i] for i in order]
    moved = [_carried(c, primitives, after, number, within) for c in constraints]
    return Tidied(
        after,
        [sources[i] for i in order],
        actions,
        list(dict.fromkeys(c for c in moved if c is not None)),
        [c for c, m in zip(constraints, moved, strict=True) if m is None],
        len({c for c in moved[:own] if c is not None}),
    )


def _slivers(primitives: Sequence[Primitive], within: float, keep: Collection[int]) -> list[int]:
    """Curves too small to be meant, unless the drawing would be smaller without them."""
    small = [i for i, p in enumerate(primitives) if i not in keep and extent(p) < within]
    rest = [p for i, p in enumerate(primitives) if i not in set(small)]
    return small if small and rest and bounds(rest).size > 1 - 4 * within else []


def _drop_copies(
    now: dict[int, Primitive], sources: dict[int, tuple[int, ...]], actions: list[Action], keep: Collection[int]
) -> None:
    """All but one of what is drawn several times exactly alike; of those to keep none goes."""
    kept_first = sorted(now.items(), key=lambda item: (item[0] not in keep, item[0]))
    for copy in find_duplicates(kept_first)[0]:
        stays, goes = sorted((copy.first, copy.second), key=lambda i: (i not in keep, i))
        if goes not in keep:
            sources[stays] += sources.pop(goes)
            del now[goes]
            actions.append(Action(ActionKind.DROP, (goes,)))


def _merge_once(
    now: dict[int, Primitive],
    sources: dict[int, tuple[int, ...]],
    actions: list[Action],
    within: float,
    keep: Collection[int],
) -> bool:
    """Merge pairs that lie on top of each other, each primitive once; whether there were any."""
    order = sorted(now)
    found = False
    touched: set[int] = set()
    for overlap in overlaps([now[i] for i in order], within):
        i, j = order[overlap.first], order[overlap.second]
        if i in touched or j in touched or (i in keep and j in keep):
            continue
        a, b = now[i], now[j]
        try:
            one = _union(a, b, within)
        except SketchError:
            continue
        if one is None:
            continue
        stays, goes = (j, i) if j in keep else (i, j)
        if stays in keep:
            if not _covers(now[stays], now[goes], within):
                continue
            one = now[stays]
        touched |= {i, j}
        found = True
        same = _covers(a, b, within) and _covers(b, a, within)
        if same:
            actions.append(Action(ActionKind.DROP, sources[goes]))
        else:
            actions.append(Action(ActionKind.MERGE, tuple(sorted({*sources[i], *sources[j]}))))
        now[stays] = one
        sources[stays] += sources.pop(goes)  # the one it runs like comes first
        del now[goes]
    return found


def extent(p: Primitive) -> float:
    """How large a curve is; a point is small by nature."""
    match p:
        case Point():
            return math.inf
        case Circle():
            return 2 * p.radius
        case _:
            return p.length


def _union(a: Primitive, b: Primitive, within: float) -> Primitive | None:
    """All of two primitives that lie on top of each other, or None where that is no one primitive."""
    match a, b:
        case Point(p), Point(q):
            return replace(a, at=((p[0] + q[0]) / 2, (p[1] + q[1]) / 2))
        case Line(), Line():
            return _long_line(a, b)
        case Circle(p), Circle(q):
            return replace(a, center=((p[0] + q[0]) / 2, (p[1] + q[1]) / 2), radius=(a.radius + b.radius) / 2)
        case (Circle(), Arc()) | (Arc(), Circle()):
            return a if isinstance(a, Circle) else b
        case Arc(), Arc():
            return _long_arc(a, b, within)
    return None


def _long_line(a: Line, b: Line) -> Line:
    """From the outermost end to the outermost end, the way the longer one runs."""
    longer = a if a.length >= b.length else b
    (x0, y0), (x1, y1) = longer.start, longer.end
    ends = sorted((a.start, a.end, b.start, b.end), key=lambda p: (p[0] - x0) * (x1 - x0) + (p[1] - y0) * (y1 - y0))
    first, last = ends[0], ends[-1]
    forward = (a.end[0] - a.start[0]) * (x1 - x0) + (a.end[1] - a.start[1]) * (y1 - y0) >= 0
    return replace(a, start=first, end=last) if forward else replace(a, start=last, end=first)


def _long_arc(a: Arc, b: Arc, within: float) -> Arc | Circle | None:
    """On the longer one's circle, as far round as both of them go."""
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    (cx, cy), radius = longer.center, longer.radius
    start, middle, end = (math.atan2(y - cy, x - cx) for x, y in (shorter.start, shorter.mid, shorter.end))
    turn = (middle - start) % TAU + (end - middle) % TAU
    if abs(turn * radius - shorter.length) > 4 * within:
        return None  # it bends the other way
    begin = (start - longer.start_angle) % TAU
    if begin <= longer.sweep:
        low, high = 0.0, max(longer.sweep, begin + turn)
    else:  # it begins before the longer one does
        low, high = begin - TAU, max(longer.sweep, begin + turn - TAU)
    if high - low >= TAU - min(within / radius, _ALMOST_ROUND):
        return Circle(longer.center, radius, a.construction)
    return replace(a, center=longer.center, radius=radius, start_angle=longer.start_angle + low, sweep=high - low)


def _covers(a: Primitive, b: Primitive, within: float) -> bool:
    """Whether b, which lies on top of a, does not stick out of it."""
    both = _union(a, b, within)
    return both is not None and both.kind == a.kind and both.length <= a.length + 2 * within


def _carried(
    constraint: Constraint,
    before: Sequence[Primitive],
    after: Sequence[Primitive],
    number: dict[int, int],
    within: float,
) -> Constraint | None:
    """A constraint in the new numbers; None where what it is about is gone."""
    refs = []
    for ref in constraint.refs:
        if ref.primitive is None:
            refs.append(ref)
            continue
        k = number.get(ref.primitive)
        if k is None:
            return None
        old, new = before[ref.primitive], after[k]
        part = ref.part
        if old != new and isinstance(old, Line | Arc) and part in (Part.START, Part.END):
            found = _end_at(new, old.start if part is Part.START else old.end, 3 * within)
            if found is None:
                return None
            part = found
        refs.append(Ref(k, part))
    if len(refs) > 1 and len(set(refs)) < len(refs):
        return None  # about one thing twice
    if constraint.type in _OF_TWO and len({ref.primitive for ref in refs}) < len(refs):
        return None
    return replace(constraint, refs=tuple(refs))


_OF_TWO = frozenset(
    {
        ConstraintType.PARALLEL,
        ConstraintType.PERPENDICULAR,
        ConstraintType.COLLINEAR,
        ConstraintType.TANGENT,
        ConstraintType.EQUAL,
        ConstraintType.CONCENTRIC,
        ConstraintType.COINCIDENT,
        ConstraintType.POINT_ON_CURVE,
    }
)


def _end_at(p: Primitive, place: Vec, within: float) -> Part | None:
    if not isinstance(p, Line | Arc):
        return None
    start, end = math.dist(p.start, place), math.dist(p.end, place)
    if min(start, end) > within:
        return None
    return Part.START if start <= end else Part.END
