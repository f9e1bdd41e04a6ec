"""Constraints of the server as the arguments of FreeCAD's `Sketcher.Constraint`.

Some constraints leave open which of several relations of FreeCAD they mean: from which side a distance is counted,
which of two angles between lines, which of three points is in the middle. The one that the geometry satisfies is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

from .sketch_json import (
    CENTER,
    END,
    START,
    WHOLE,
    Record,
    Ref,
    Vec,
    is_round,
    is_straight,
    point_of,
    points_of,
    size_of,
)

GeoId = tuple[int, int]
Arguments = tuple[Any, ...]
_ORIGIN: GeoId = (-1, START)
_OUTSIDE: Mapping[str, GeoId] = {"origin": _ORIGIN, "x_axis": (-1, WHOLE), "y_axis": (-2, WHOLE)}
_POSITIONS = {"whole": WHOLE, "start": START, "end": END, "center": CENTER, "point": START}
_VIA_POINT = {"tangent": "TangentViaPoint", "perpendicular": "PerpendicularViaPoint"}
_JOINS = ("coincident", "concentric", "point_on_curve")
_HOLDS = 1e-4  # of the size of the sketch, or radians


@dataclass(frozen=True)
class Relation:
    """One constraint of FreeCAD, and the server's type of which it is (a part)."""

    arguments: Arguments
    type: str
    name: str = ""


class UnsupportedError(Exception):
    """FreeCAD has no such constraint."""


@dataclass
class Geometry:
    """Primitives and their numbers in FreeCAD, with the points that constraints already join or put on curves."""

    primitives: Sequence[Record]
    geo_ids: Sequence[int]
    joined: dict[GeoId, GeoId] = field(default_factory=dict)
    on_curve: list[tuple[GeoId, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = {geo_id: p["type"] for geo_id, p in zip(self.geo_ids, self.primitives, strict=True)}
        self.tolerance = _HOLDS * (size_of(self.primitives) or 1.0)

    def geo_id(self, ref: Ref) -> GeoId:
        """FreeCAD's number and position of a reference."""
        if len(ref) == 1:
            if ref[0] not in _OUTSIDE:
                raise UnsupportedError
            return _OUTSIDE[ref[0]]
        if self.primitives[ref[0]]["type"] == "point":
            return self.geo_ids[ref[0]], START
        return self.geo_ids[ref[0]], _POSITIONS[ref[1]]

    def root(self, point: GeoId) -> GeoId:
        """The one of the points that are joined to a point which stands for all of them."""
        while point in self.joined:
            point = self.joined[point]
        return point

    def join(self, a: GeoId, b: GeoId) -> None:
        """Record that two points coincide."""
        a, b = self.root(a), self.root(b)
        if a != b:
            self.joined[b] = a

    def shared_end(self, a: int, b: int) -> GeoId | None:
        """An end of one curve that is an end of another, or on it."""
        on = {(self.root(point), curve) for point, curve in self.on_curve}
        for p, q in product((START, END), repeat=2):
            if self.root((a, p)) == self.root((b, q)) or (self.root((a, p)), b) in on:
                return a, p
            if (self.root((b, q)), a) in on:
                return b, q
        return None


def to_relations(constraints: Sequence[Record], geometry: Geometry) -> tuple[list[Relation], list[Record]]:
    """The relations that constraints mean, joining ones first, and the constraints that FreeCAD has no form of."""
    relations: list[Relation] = []
    unsupported: list[Record] = []
    for constraint in sorted(constraints, key=lambda c: c["type"] not in _JOINS):
        try:
            arguments = list(_WRITERS[constraint["type"]](constraint, geometry))
        except (KeyError, IndexError, UnsupportedError):
            arguments = []
        if not arguments:
            unsupported.append(constraint)
            continue
        label = constraint.get("label") or constraint.get("name") or ""
        name = label if len(arguments) == 1 else ""
        relations += [Relation(args, constraint["type"], name) for args in arguments]
        for args in arguments:
            if args[0] == "Coincident":
                geometry.join((args[1], args[2]), (args[3], args[4]))
            elif args[0] == "PointOnObject":
                geometry.on_curve.append(((args[1], args[2]), args[3]))
    return relations, unsupported


def _pairs(constraint: Record) -> list[tuple[Ref, Ref]]:
    """The first reference with each of the others."""
    first, *others = constraint["refs"]
    if not others:
        raise UnsupportedError
    return [(first, other) for other in others]


def _center(ref: Ref, of: Geometry) -> Ref:
    """The center of a circle or arc; anything else itself."""
    return [ref[0], "center"] if is_round(ref, of.primitives) else ref


def _is_point(ref: Ref, of: Geometry) -> bool:
    return point_of(ref, of.primitives) is not None


def _coincident(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    for a, b in _pairs(constraint):
        if constraint["type"] == "concentric":
            a, b = _center(a, of), _center(b, of)
        yield from _join(a, b, of)


def _join(a: Ref, b: Ref, of: Geometry) -> Iterator[Arguments]:
    """Two points coincide, a point is on a curve, or a curve lies along another."""
    (g, p), (h, q) = of.geo_id(a), of.geo_id(b)
    if g < 0 and h < 0:
        raise UnsupportedError
    points = _is_point(a, of), _is_point(b, of)
    if all(points):
        yield ("Coincident", g, p, h, q) if g >= 0 else ("Coincident", h, q, g, p)
    elif any(points):
        yield ("PointOnObject", g, p, h) if points[0] else ("PointOnObject", h, q, g)
    elif is_straight(a, of.primitives) and is_straight(b, of.primitives):
        yield ("Tangent", g, h)
    elif is_round(a, of.primitives) and is_round(b, of.primitives):
        yield ("Coincident", g, CENTER, h, CENTER)
        yield ("Equal", g, h)
    else:
        raise UnsupportedError


def _level(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    name = constraint["type"].title()
    refs = constraint["refs"]
    if all(is_straight(ref, of.primitives) for ref in refs):
        yield from ((name, of.geo_id(ref)[0]) for ref in refs)
        return
    for a, b in _pairs(constraint):
        if not (_is_point(a, of) and _is_point(b, of)):
            raise UnsupportedError
        yield (name, *of.geo_id(a), *of.geo_id(b))


def _pairwise(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    name = constraint["type"].title()
    for pair in _pairs(constraint):
        shapes = [is_straight(ref, of.primitives) for ref in pair]
        rounds = [is_round(ref, of.primitives) for ref in pair]
        (g, _), (h, _) = map(of.geo_id, pair)
        if not (all(shapes) or (name == "Equal" and all(rounds))) or (name == "Equal" and min(g, h) < 0):
            raise UnsupportedError
        yield (name, g, h)


def _at_contact(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """Tangent or perpendicular curves, which may name where they meet: ends of the two, or a third point."""
    name, refs = constraint["type"].title(), constraint["refs"]
    ids = [of.geo_id(ref) for ref in refs]
    is_point = [pos != WHOLE for _, pos in ids]
    if is_point == [False, False, True]:
        yield (_VIA_POINT[constraint["type"]], ids[0][0], ids[1][0], *ids[2])
    elif is_point in ([True, True], [True, False]):
        yield (name, *ids[0], *ids[1]) if all(is_point) else (name, *ids[0], ids[1][0])
    elif is_point == [False, True]:
        yield (name, *ids[1], ids[0][0])
    elif not any(is_point):
        for (g, _), (h, _) in ((ids[0], other) for other in ids[1:]):
            yield from _at_shared_end(constraint["type"], g, h, of)


def _at_shared_end(type_: str, g: int, h: int, of: Geometry) -> Iterator[Arguments]:
    """Curves that share an end are tangent there: otherwise the solver gets the same equation twice."""
    are_lines = all(n < 0 or of.kinds[n] == "line" for n in (g, h))
    if type_ == "perpendicular" and not are_lines and all(n >= 0 and of.kinds[n] != "line" for n in (g, h)):
        raise UnsupportedError
    end = None if are_lines else of.shared_end(g, h)
    yield (type_.title(), g, h) if end is None else (_VIA_POINT[type_], g, h, *end)


def _symmetric(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """Two points about a line or a third point; two curves about a line by their ends or centers."""
    if len(constraint["refs"]) != 3:
        raise UnsupportedError
    for a, b, about in _orders(constraint["refs"]):
        if is_round(about, of.primitives):
            continue
        pairs = _mirrored_points(a, b, of)
        candidates = [pairs] if len(pairs) < 2 else [pairs, [(pairs[0][0], pairs[1][1]), (pairs[1][0], pairs[0][1])]]
        for matched in candidates:
            if matched and all(_is_symmetric(p, q, about, of) for p, q in matched):
                for p, q in matched:
                    yield ("Symmetric", *of.geo_id(p), *of.geo_id(q), *_about(about, of))
                if is_round(a, of.primitives):
                    yield ("Equal", of.geo_id(a)[0], of.geo_id(b)[0])
                return


def _orders(refs: Sequence[Ref]) -> Iterator[tuple[Ref, Ref, Ref]]:
    a, b, c = refs
    yield from ((a, b, c), (b, c, a), (a, c, b))


def _about(ref: Ref, of: Geometry) -> tuple[int, ...]:
    geo, pos = of.geo_id(ref)
    return (geo,) if pos == WHOLE else (geo, pos)


def _mirrored_points(a: Ref, b: Ref, of: Geometry) -> list[tuple[Ref, Ref]]:
    """The points of two curves of a kind that a symmetry pairs, or the two points themselves."""
    if _is_point(a, of) and _is_point(b, of):
        return [(a, b)]
    if len(a) == 1 or len(b) == 1 or _is_point(a, of) or _is_point(b, of):
        return []
    kinds = {of.primitives[ref[0]]["type"] for ref in (a, b)}
    if len(kinds) > 1:
        return []
    parts = ("center",) if kinds == {"circle"} else ("start", "end")
    return [([a[0], part], [b[0], part]) for part in parts]


def _is_symmetric(p: Ref, q: Ref, about: Ref, of: Geometry) -> bool:
    (x, y), (z, w) = _point(p, of), _point(q, of)
    middle = ((x + z) / 2, (y + w) / 2)
    point = point_of(about, of.primitives)
    if point is not None:
        return math.dist(middle, point) < of.tolerance
    (u, v), (s, t) = _ends(about, of)
    length = math.hypot(s - u, t - v) or 1.0
    across = ((middle[0] - u) * (t - v) - (middle[1] - v) * (s - u)) / length
    along = ((z - x) * (s - u) + (w - y) * (t - v)) / length
    return max(abs(across), abs(along)) < of.tolerance


def _midpoint(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """A point in the middle of a line, or of two other points."""
    refs = constraint["refs"]
    if len(refs) == 2:
        for point, line in permutations(refs):
            if _is_point(point, of) and is_straight(line, of.primitives) and len(line) == 2:
                geo = of.geo_id(line)[0]
                yield ("Symmetric", geo, START, geo, END, *of.geo_id(point))
                return
    elif len(refs) == 3 and all(_is_point(ref, of) for ref in refs):
        yield from _symmetric(constraint, of)


def _fix(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    for ref in constraint["refs"]:
        geo, pos = of.geo_id(ref)
        if geo < 0:
            raise UnsupportedError
        if pos == WHOLE or of.kinds[geo] == "point":
            yield ("Block", geo)
        else:
            x, y = _point(ref, of)
            yield ("DistanceX", *_ORIGIN, geo, pos, x)
            yield ("DistanceY", *_ORIGIN, geo, pos, y)


def _distance(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """The length of a line, or the distance of points, lines and centers; lines at a distance are parallel."""
    refs, value = [_center(ref, of) for ref in constraint["refs"]], abs(constraint["value"])
    if len(refs) == 1:
        if not is_straight(refs[0], of.primitives) or len(refs[0]) == 1 or not value:
            raise UnsupportedError
        yield ("Distance", of.geo_id(refs[0])[0], value)
        return
    a, b = sorted(refs, key=lambda ref: (len(ref) == 1, not _is_point(ref, of)))
    if not _is_point(a, of):
        a, b = sorted((a, b), key=lambda ref: len(ref) == 1)
    if not value:
        yield from _join(a, b, of)
    elif _is_point(a, of) and _is_point(b, of):
        yield ("Distance", *of.geo_id(a), *of.geo_id(b), value)
    elif _is_point(a, of):
        yield ("Distance", *of.geo_id(a), of.geo_id(b)[0], value)
    elif _is_point(b, of):
        yield ("Distance", *of.geo_id(b), of.geo_id(a)[0], value)
    else:
        geo, other = of.geo_id(a)[0], of.geo_id(b)[0]
        yield ("Parallel", geo, other)
        yield ("Distance", geo, START, other, value)


def _distance_along(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """A distance along an axis, from the smaller coordinate to the larger."""
    axis = 0 if constraint["type"] == "horizontal_distance" else 1
    refs = [_center(ref, of) for ref in constraint["refs"]]
    if len(refs) == 1:
        refs = [["origin"], refs[0]] if _is_point(refs[0], of) else [[refs[0][0], "start"], [refs[0][0], "end"]]
    refs.sort(key=lambda ref: _point(ref, of)[axis])
    a, b = refs
    value = abs(constraint["value"])
    if value <= of.tolerance * 1e-3:
        yield ("Vertical" if axis == 0 else "Horizontal", *of.geo_id(a), *of.geo_id(b))
    else:
        yield ("DistanceX" if axis == 0 else "DistanceY", *of.geo_id(a), *of.geo_id(b), value)


def _radius(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    for ref in constraint["refs"]:
        if not is_round(ref, of.primitives):
            raise UnsupportedError
        yield (constraint["type"].title(), of.geo_id(ref)[0], abs(constraint["value"]))


def _angle(constraint: Record, of: Geometry) -> Iterator[Arguments]:
    """The sweep of an arc, the direction of a line, or the angle from a direction of one line to one of another."""
    refs, value = constraint["refs"], constraint["value"]
    if len(refs) == 1 and len(refs[0]) == 2 and not _is_point(refs[0], of):
        yield from _own_angle(refs[0], value, of)
    elif len(refs) == 2:
        lines = [[ref[0], "whole"] if len(ref) == 2 else ref for ref in refs]
        if not all(is_straight(line, of.primitives) for line in lines):
            raise UnsupportedError
        ways = list(product(permutations(lines), (START, END), (START, END)))
        angles = [_from_to(a, p, b, q, of) for (a, b), p, q in ways]
        off, ((a, b), p, q) = min(zip((_turned(x - value) for x in angles), ways, strict=True), key=lambda x: x[0])
        if off < 0.01:
            yield ("Angle", of.geo_id(a)[0], p, of.geo_id(b)[0], q, value)


def _own_angle(ref: Ref, value: float, of: Geometry) -> Iterator[Arguments]:
    primitive = of.primitives[ref[0]]
    if primitive["type"] == "arc":
        yield ("Angle", of.geo_id(ref)[0], value)
    elif primitive["type"] == "line":
        (x, y), (z, w) = _ends(ref, of)
        angle = math.atan2(w - y, z - x)
        geo = of.geo_id(ref)[0]
        if _turned(angle - value) < 0.01:
            yield ("Angle", geo, value)
        elif _turned(angle + math.pi - value) < 0.01:
            yield ("Angle", -1, START, geo, END, value)


def _from_to(a: Ref, p: int, b: Ref, q: int, of: Geometry) -> float:
    """The angle from line `a` to line `b`, both directed away from an end."""
    (x, y), (z, w) = _ends(a, of) if p == START else _ends(a, of)[::-1]
    (s, t), (u, v) = _ends(b, of) if q == START else _ends(b, of)[::-1]
    return math.atan2(v - t, u - s) - math.atan2(w - y, z - x)


def _turned(angle: float) -> float:
    """How far an angle is from a multiple of a full turn."""
    return abs(math.remainder(angle, 2 * math.pi))


def _ends(ref: Ref, of: Geometry) -> tuple[Vec, Vec]:
    if len(ref) == 1:
        return (0.0, 0.0), ((1.0, 0.0) if ref[0] == "x_axis" else (0.0, 1.0))
    start, end = points_of(of.primitives[ref[0]])
    return start, end


def _point(ref: Ref, of: Geometry) -> Vec:
    point = point_of(ref, of.primitives)
    if point is None:
        raise UnsupportedError
    return point


_WRITERS: Mapping[str, Callable[[Record, Geometry], Iterator[Arguments]]] = {
    "coincident": _coincident, "point_on_curve": _coincident, "collinear": _coincident, "concentric": _coincident,
    "horizontal": _level, "vertical": _level, "parallel": _pairwise, "equal": _pairwise,
    "tangent": _at_contact, "perpendicular": _at_contact, "midpoint": _midpoint, "symmetric": _symmetric, "fix": _fix,
    "distance": _distance, "length": _distance, "angle": _angle, "radius": _radius, "diameter": _radius,
    "horizontal_distance": _distance_along, "vertical_distance": _distance_along,
}  # fmt: skip
