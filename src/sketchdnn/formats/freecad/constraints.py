"""Our constraints as FreeCAD's relations, and back.

Some constraints can be written in several ways that differ in what our type leaves open: which of two angles is meant,
from which side a distance is counted, which of three points is the middle one. All are offered, and the one that holds
is the one meant.

In reading, an angle between lines refers to an end of each where FreeCAD does: the angle is then between the directions
away from those ends. A tangent or perpendicular pair may name where it meets, by ends of the two or by a third point.
Distances along an axis are signed, from the first point to the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, permutations, product
from typing import Any

from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Kind, Part, Primitive, Ref
from sketchdnn.geometry.constraints import ref_point

from .elements import DIMENSIONS, ORIGIN, X_AXIS, Y_AXIS, GeoId, PointPos, Relation, RelationType, printable

Relations = tuple[Relation, ...]
_R, _T, _P = RelationType, ConstraintType, PointPos
_OUTSIDE = {Part.ORIGIN: ORIGIN, Part.X_AXIS: X_AXIS, Part.Y_AXIS: Y_AXIS}
_POSITIONS = {Part.WHOLE: _P.WHOLE, Part.START: _P.START, Part.END: _P.END, Part.CENTER: _P.CENTER}
_PARTS = {pos: part for part, pos in _POSITIONS.items()}
_REFS: Mapping[GeoId, Ref] = {
    GeoId(Y_AXIS.geo, _P.START): Ref(None, Part.ORIGIN),
    **{geo_id: Ref(None, part) for part, geo_id in _OUTSIDE.items()},
}
# Most types have the same name in both.
_TYPES: Mapping[RelationType, ConstraintType] = {
    **{relation_type: _T[relation_type.name] for relation_type in _R if relation_type.name in _T.__members__},
    _R.DISTANCE_X: _T.HORIZONTAL_DISTANCE,
    _R.DISTANCE_Y: _T.VERTICAL_DISTANCE,
    _R.POINT_ON_OBJECT: _T.POINT_ON_CURVE,
    _R.BLOCK: _T.FIX,
}


class MissingGeometryError(ValueError):
    """A relation on geometry that is no primitive of ours, or does not exist."""


def to_constraint(relation: Relation, numbering: Sequence[int | None], primitives: Sequence[Primitive]) -> Constraint:
    """The constraint of a relation; `numbering[g]` is the primitive that FreeCAD's geometry g became, if any."""
    refs = tuple(_ref(geo_id, numbering, primitives) for geo_id in relation.ids)
    type_ = _TYPES.get(relation.type, _T.OTHER)
    match relation.type, refs:
        case (_R.DISTANCE, (_,)):
            type_ = _T.LENGTH
        case (_R.TANGENT, (a, b)) if _is_line(a, primitives) and _is_line(b, primitives):
            type_ = _T.COLLINEAR
        case (_R.DISTANCE_X | _R.DISTANCE_Y, (Ref(int(line), Part.WHOLE),)):
            refs = (Ref(line, Part.START), Ref(line, Part.END))
        case (_R.DISTANCE_X | _R.DISTANCE_Y, (point,)):
            refs = (_REFS[ORIGIN], point)
        case (_R.ANGLE, (_, _)):  # the start of an axis is a direction along it here, not the origin
            refs = tuple(
                _REFS.get(GeoId(g.geo), r) if g in _REFS else r for g, r in zip(relation.ids, refs, strict=True)
            )
    name = relation.type.name.title().replace("_", "") if type_ is _T.OTHER else None
    return Constraint(type_, refs, relation.value if relation.type in DIMENSIONS else None, name, _extra(relation))


def _ref(geo_id: GeoId, numbering: Sequence[int | None], primitives: Sequence[Primitive]) -> Ref:
    if geo_id.geo < 0:
        return _REFS.get(geo_id, EXTERNAL)
    index = numbering[geo_id.geo] if geo_id.geo < len(numbering) else None
    if index is None:
        raise MissingGeometryError(f"geometry {geo_id.geo}")
    if primitives[index].kind is Kind.POINT and geo_id.pos is not _P.WHOLE:
        return Ref(index, Part.POINT)
    return Ref(index, _PARTS[geo_id.pos])


def _is_line(ref: Ref, primitives: Sequence[Primitive]) -> bool:
    if ref.primitive is None:
        return ref.part in (Part.X_AXIS, Part.Y_AXIS)
    return ref.part is Part.WHOLE and primitives[ref.primitive].kind is Kind.LINE


def _extra(relation: Relation) -> dict[str, Any]:
    """What else FreeCAD stores; `offset` is the turn that it locks a tangent or perpendicular pair to."""
    extra: dict[str, Any] = {"label": relation.label} if relation.label else {}
    extra |= {key: False for key in ("driving", "active") if not getattr(relation, key)}
    if relation.value and relation.type in (_R.TANGENT, _R.PERPENDICULAR):
        extra["offset"] = relation.value
    return extra


def to_relations(constraint: Constraint, primitives: Sequence[Primitive]) -> list[Relations]:
    """The ways to write a constraint as relations, best first; none where FreeCAD has no such constraint."""
    try:
        ways = list(_WRITERS[constraint.type](_Operands(constraint, primitives)))
    except (KeyError, _UnsupportedError):
        return []
    return [tuple(_with_extra(r, constraint, len(way)) for r in way) for way in ways if all(map(_is_sound, way))]


def _is_sound(relation: Relation) -> bool:
    """FreeCAD takes each point once, needs something that can move, and an axis has no size."""
    outside = [geo_id.geo < 0 for geo_id in relation.ids]
    sizes_axis = relation.type is _R.EQUAL and any(outside)
    return len(set(relation.ids)) == len(relation.ids) and not all(outside) and not sizes_axis


def _with_extra(relation: Relation, constraint: Constraint, num_relations: int) -> Relation:
    """With what FreeCAD stored besides, when the constraint came from there."""
    extra = constraint.extra
    label, offset = extra.get("label"), extra.get("offset")
    is_locked = relation.type in (_R.TANGENT, _R.PERPENDICULAR)
    value = offset if is_locked and isinstance(offset, float) else relation.value
    label = printable(label) if isinstance(label, str) and num_relations == 1 else ""
    driving, active = extra.get("driving") is not False, extra.get("active") is not False
    return Relation(relation.type, relation.ids, value, label, driving, active)


class _UnsupportedError(Exception):
    """FreeCAD has no such constraint."""


class _Operands:
    """The references of a constraint as FreeCAD's, and its value."""

    def __init__(self, constraint: Constraint, primitives: Sequence[Primitive]) -> None:
        self.primitives = primitives
        self.ids = [self._geo_id(ref) for ref in constraint.refs]
        self.is_point = [geo_id.pos is not _P.WHOLE for geo_id in self.ids]
        self._value = constraint.value

    def _geo_id(self, ref: Ref) -> GeoId:
        if ref.primitive is None:
            return _OUTSIDE[ref.part]  # a KeyError where FreeCAD has no such reference
        if self.primitives[ref.primitive].kind is Kind.POINT:
            return GeoId(ref.primitive, _P.START)
        return GeoId(ref.primitive, _POSITIONS[ref.part])

    @property
    def value(self) -> float:
        if self._value is None:
            raise _UnsupportedError
        return self._value

    @property
    def size(self) -> float:
        return abs(self.value)

    @property
    def pairs(self) -> list[tuple[GeoId, GeoId]]:
        """The first with each of the others."""
        if len(self.ids) < 2:
            raise _UnsupportedError
        return [(self.ids[0], other) for other in self.ids[1:]]

    def kind(self, g: GeoId) -> Kind:
        return Kind.LINE if g.geo < 0 else self.primitives[g.geo].kind

    def is_line(self, g: GeoId) -> bool:
        """A line or an axis."""
        return g.pos is _P.WHOLE and self.kind(g) is Kind.LINE

    def is_round(self, g: GeoId) -> bool:
        return g.pos is _P.WHOLE and self.kind(g) is not Kind.LINE

    def is_end(self, g: GeoId) -> bool:
        """An end of a line or arc."""
        return g.geo >= 0 and self.kind(g) in (Kind.LINE, Kind.ARC) and g.pos in (_P.START, _P.END)

    def center(self, g: GeoId) -> GeoId:
        """The center of a circle or arc; anything else itself."""
        return GeoId(g.geo, _P.CENTER) if self.is_round(g) else g


def _join(of: _Operands, a: GeoId, b: GeoId) -> Relations:
    """Two points coincide, a point is on a curve, or one curve is on another."""
    is_point, other_is_point = a.pos is not _P.WHOLE, b.pos is not _P.WHOLE
    if is_point != other_is_point:
        return (Relation(_R.POINT_ON_OBJECT, (a, b) if is_point else (b, a)),)
    if is_point or (of.is_line(a) and of.is_line(b)):
        return (Relation(_R.COINCIDENT if is_point else _R.TANGENT, (a, b)),)
    if of.is_round(a) and of.is_round(b):
        return Relation(_R.COINCIDENT, (of.center(a), of.center(b))), Relation(_R.EQUAL, (a, b))
    raise _UnsupportedError


def _coincident(of: _Operands, *, centers: bool = False) -> Iterator[Relations]:
    pairs = [(of.center(a), of.center(b)) for a, b in of.pairs] if centers else of.pairs
    yield tuple(relation for a, b in pairs for relation in _join(of, a, b))


def _level(of: _Operands, kind: RelationType) -> Iterator[Relations]:
    if all(map(of.is_line, of.ids)):
        yield tuple(Relation(kind, (line,)) for line in of.ids)
    elif all(of.is_point):
        yield tuple(Relation(kind, pair) for pair in of.pairs)


def _pairwise(of: _Operands, kind: RelationType, *, round_too: bool) -> Iterator[Relations]:
    """A relation of the first line to each of the others, or of round curves likewise."""
    if all(map(of.is_line, of.ids)) or (round_too and all(map(of.is_round, of.ids))):
        yield tuple(Relation(kind, pair) for pair in of.pairs)


def _at_contact(of: _Operands, kind: RelationType) -> Iterator[Relations]:
    """Tangent or perpendicular curves, which may name the contact: an end of the first, of both, or a third point."""
    points = of.is_point
    if not all(map(of.is_end, compress(of.ids[:2], points))):
        return
    if points in ([True, True], [True, False], [False, False, True]):
        yield (Relation(kind, tuple(of.ids)),)
    elif points == [False, True]:
        yield (Relation(kind, (of.ids[1], of.ids[0])),)
    elif not any(points) and not (kind is _R.PERPENDICULAR and sum(map(of.is_round, of.ids)) > 1):
        yield tuple(Relation(kind, pair) for pair in of.pairs)


def _midpoint(of: _Operands) -> Iterator[Relations]:
    if len(of.ids) == 2:
        for point, line in permutations(of.ids):
            if point.pos is not _P.WHOLE and of.is_line(line) and line.geo >= 0:
                yield (Relation(_R.SYMMETRIC, (GeoId(line.geo, _P.START), GeoId(line.geo, _P.END), point)),)
    elif len(of.ids) == 3 and all(of.is_point):
        a, b, c = of.ids
        yield from ((Relation(_R.SYMMETRIC, ids),) for ids in ((b, c, a), (a, c, b), (a, b, c)))


def _symmetric(of: _Operands) -> Iterator[Relations]:
    if len(of.ids) != 3:
        return
    x, y, z = of.ids
    for a, b, about in ((x, y, z), (y, z, x), (x, z, y)):
        points = a.pos is not _P.WHOLE, b.pos is not _P.WHOLE
        if of.is_round(about):
            continue
        if all(points):
            yield (Relation(_R.SYMMETRIC, (a, b, about)),)
        elif not any(points) and min(a.geo, b.geo) >= 0 and of.kind(a) is of.kind(b):
            yield from _symmetric_curves(of, a, b, about)


def _symmetric_curves(of: _Operands, a: GeoId, b: GeoId, about: GeoId) -> Iterator[Relations]:
    """Two curves of a kind: their ends in one order or the other, and the size of round ones."""
    points = (_P.CENTER,) if of.kind(a) is Kind.CIRCLE else (_P.START, _P.END)
    same_size = () if of.kind(a) is Kind.LINE else (Relation(_R.EQUAL, (a, b)),)
    for order in permutations(points):
        pairs = zip(points, order, strict=True)
        yield *(Relation(_R.SYMMETRIC, (GeoId(a.geo, p), GeoId(b.geo, q), about)) for p, q in pairs), *same_size


def _fix(of: _Operands) -> Iterator[Relations]:
    relations: list[Relation] = []
    for g in of.ids:
        if g.geo < 0:
            raise _UnsupportedError
        if g.pos is _P.WHOLE or of.kind(g) is Kind.POINT:
            relations.append(Relation(_R.BLOCK, (GeoId(g.geo),)))
        else:
            x, y = ref_point(Ref(g.geo, _PARTS[g.pos]), of.primitives) or (0.0, 0.0)
            relations += [Relation(_R.DISTANCE_X, (g,), x), Relation(_R.DISTANCE_Y, (g,), y)]
    yield tuple(relations)


def _distance(of: _Operands) -> Iterator[Relations]:
    """Of points, lines and centers; lines at a distance are parallel."""
    if len(of.ids) == 1:
        yield from _length(of)
    elif len(of.ids) == 2:
        a, b = sorted(map(of.center, of.ids), key=lambda g: (g in (X_AXIS, Y_AXIS), g.pos is _P.WHOLE))
        if not of.size:
            yield _join(of, a, b)
        elif a.pos is not _P.WHOLE:
            yield (Relation(_R.DISTANCE, (a, b), of.size),)
        else:
            yield Relation(_R.PARALLEL, (a, b)), Relation(_R.DISTANCE, (GeoId(a.geo, _P.START), b), of.size)


def _distance_along(of: _Operands, kind: RelationType) -> Iterator[Relations]:
    ids = [of.center(g) for g in of.ids]
    if len(ids) == 1:
        geo = ids[0].geo
        ids = [ORIGIN, ids[0]] if ids[0].pos is not _P.WHOLE else [GeoId(geo, _P.START), GeoId(geo, _P.END)]
    if len(ids) == 2 and all(g.pos is not _P.WHOLE for g in ids):
        yield from ((Relation(kind, pair, of.value),) for pair in permutations(ids))


def _length(of: _Operands) -> Iterator[Relations]:
    if len(of.ids) == 1 and of.is_line(of.ids[0]) and of.size:
        yield (Relation(_R.DISTANCE, (of.ids[0],), of.size),)


def _radius(of: _Operands, kind: RelationType) -> Iterator[Relations]:
    if all(map(of.is_round, of.ids)) and of.size:
        yield tuple(Relation(kind, (g,), of.size) for g in of.ids)


def _angle(of: _Operands) -> Iterator[Relations]:
    """Of lines: between any directions along them that hold. Of three references: of two curves at a point."""
    ids, points = of.ids, of.is_point
    if points == [False, False, True] or (points == [False] and of.kind(ids[0]) in (Kind.LINE, Kind.ARC)):
        yield (Relation(_R.ANGLE, tuple(ids), of.value),)
    elif len(ids) == 2 and all(of.is_line(g) or (of.is_end(g) and of.is_line(GeoId(g.geo))) for g in ids):
        ends = tuple(GeoId(g.geo, g.pos or _P.START) if any(points) else g for g in ids)
        yield (Relation(_R.ANGLE, ends, of.value),)
        for (a, b), p, q in product(permutations(ids), (_P.START, _P.END), (_P.START, _P.END)):
            yield (Relation(_R.ANGLE, (GeoId(a.geo, p), GeoId(b.geo, q)), of.value),)


_WRITERS: Mapping[ConstraintType, Callable[[_Operands], Iterator[Relations]]] = {
    _T.COINCIDENT: _coincident, _T.POINT_ON_CURVE: _coincident, _T.COLLINEAR: _coincident,
    _T.CONCENTRIC: partial(_coincident, centers=True), _T.FIX: _fix, _T.MIDPOINT: _midpoint, _T.SYMMETRIC: _symmetric,
    _T.HORIZONTAL: partial(_level, kind=_R.HORIZONTAL), _T.VERTICAL: partial(_level, kind=_R.VERTICAL),
    _T.PERPENDICULAR: partial(_at_contact, kind=_R.PERPENDICULAR), _T.TANGENT: partial(_at_contact, kind=_R.TANGENT),
    _T.PARALLEL: partial(_pairwise, kind=_R.PARALLEL, round_too=False),
    _T.EQUAL: partial(_pairwise, kind=_R.EQUAL, round_too=True),
    _T.DISTANCE: _distance, _T.LENGTH: _length, _T.ANGLE: _angle,
    _T.HORIZONTAL_DISTANCE: partial(_distance_along, kind=_R.DISTANCE_X),
    _T.VERTICAL_DISTANCE: partial(_distance_along, kind=_R.DISTANCE_Y),
    _T.RADIUS: partial(_radius, kind=_R.RADIUS), _T.DIAMETER: partial(_radius, kind=_R.DIAMETER),
}  # fmt: skip
