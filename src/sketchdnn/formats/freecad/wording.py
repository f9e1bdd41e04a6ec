"""Our constraints in FreeCAD's words: the relations that together say the same.

Some can be said in several ways that differ in what our word leaves open: which of two angles is meant, from which side
a distance is counted, which of three points is the middle one. All are offered, and the one that holds is the one
meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, permutations, product

from sketchdnn.geometry import Constraint, ConstraintType, Kind, Primitive

from .places import NoWordsError, Places, is_point
from .relation import ORIGIN, X_AXIS, Y_AXIS, At, Code, Pos, Relation, printable

Wording = tuple[Relation, ...]


def wordings(constraint: Constraint, primitives: Sequence[Primitive]) -> list[Wording]:
    """The ways to say a constraint, best first; none when FreeCAD has no words for it."""
    try:
        ways = list(_WORDINGS[constraint.type](Places(constraint, primitives)))
    except (KeyError, NoWordsError):
        return []
    return [tuple(_as_in_freecad(r, constraint, len(way)) for r in way) for way in ways if all(map(_is_sound, way))]


def _is_sound(relation: Relation) -> bool:
    """FreeCAD takes each place once, needs something that can move, and an axis has no size."""
    outside = [at.geo < 0 for at in relation.at]
    is_measured = relation.code is Code.EQUAL and any(outside)
    return len(set(relation.at)) == len(relation.at) and not all(outside) and not is_measured


def _as_in_freecad(relation: Relation, constraint: Constraint, relations: int) -> Relation:
    """What FreeCAD said besides, when the constraint came from there."""
    extra = constraint.extra
    label, offset = extra.get("label"), extra.get("offset")
    is_locked = relation.code in (Code.TANGENT, Code.PERPENDICULAR)
    return replace(
        relation,
        value=offset if is_locked and isinstance(offset, float) else relation.value,
        label=printable(label) if isinstance(label, str) and relations == 1 else "",
        driving=extra.get("driving") is not False,
        active=extra.get("active") is not False,
    )


def _meeting(of: Places, a: At, b: At) -> Wording:
    """Two places become one; of two curves, each lies on the other."""
    if is_point(a) and is_point(b):
        return (Relation(Code.COINCIDENT, (a, b)),)
    if is_point(a) or is_point(b):
        return (Relation(Code.POINT_ON_OBJECT, (a, b) if is_point(a) else (b, a)),)
    if of.is_line(a) and of.is_line(b):
        return (Relation(Code.TANGENT, (a, b)),)
    if of.is_round(a) and of.is_round(b):
        return Relation(Code.COINCIDENT, (of.middle(a), of.middle(b))), Relation(Code.EQUAL, (a, b))
    raise NoWordsError


def _coincident(of: Places) -> Iterator[Wording]:
    yield tuple(relation for pair in of.pairs for relation in _meeting(of, *pair))


def _concentric(of: Places) -> Iterator[Wording]:
    pairs = [(of.middle(a), of.middle(b)) for a, b in of.pairs]
    yield tuple(relation for pair in pairs for relation in _meeting(of, *pair))


def _level(code: Code) -> Callable[[Places], Iterator[Wording]]:
    def ways(of: Places) -> Iterator[Wording]:
        if all(map(of.is_line, of.at)):
            yield tuple(Relation(code, (line,)) for line in of.at)
        elif all(map(is_point, of.at)):
            yield tuple(Relation(code, pair) for pair in of.pairs)

    return ways


def _alike(code: Code, *, round_too: bool) -> Callable[[Places], Iterator[Wording]]:
    """A relation of the first line to each of the others, or of round curves likewise."""

    def ways(of: Places) -> Iterator[Wording]:
        if all(map(of.is_line, of.at)) or (round_too and all(map(of.is_round, of.at))):
            yield tuple(Relation(code, pair) for pair in of.pairs)

    return ways


def _meeting_at(code: Code) -> Callable[[Places], Iterator[Wording]]:
    """Tangent or perpendicular curves, which may say where: by an end of the first, of both, or by a third place."""

    def ways(of: Places) -> Iterator[Wording]:
        points = [is_point(at) for at in of.at]
        if not all(map(of.is_end, compress(of.at[:2], points))):
            return
        if points in ([True, True], [True, False], [False, False, True]):
            yield (Relation(code, tuple(of.at)),)
        elif points == [False, True]:
            yield (Relation(code, (of.at[1], of.at[0])),)
        elif any(points) or (code is Code.PERPENDICULAR and sum(map(of.is_round, of.at)) > 1):
            return
        else:
            yield tuple(Relation(code, pair) for pair in of.pairs)

    return ways


def _midpoint(of: Places) -> Iterator[Wording]:
    if len(of.at) == 2:
        for point, line in permutations(of.at):
            if is_point(point) and of.is_line(line) and line.geo >= 0:
                yield (Relation(Code.SYMMETRIC, (At(line.geo, Pos.START), At(line.geo, Pos.END), point)),)
    elif len(of.at) == 3 and all(map(is_point, of.at)):
        a, b, c = of.at
        for middle, *ends in ((a, b, c), (b, a, c), (c, a, b)):
            yield (Relation(Code.SYMMETRIC, (*ends, middle)),)


def _symmetric(of: Places) -> Iterator[Wording]:
    if len(of.at) != 3:
        return
    x, y, z = of.at
    for a, b, about in ((x, y, z), (y, z, x), (x, z, y)):
        if of.is_round(about):
            continue
        if is_point(a) and is_point(b):
            yield (Relation(Code.SYMMETRIC, (a, b, about)),)
        elif not is_point(a) and not is_point(b) and min(a.geo, b.geo) >= 0:
            yield from _mirrored(of, a, b, about)


def _mirrored(of: Places, a: At, b: At, about: At) -> Iterator[Wording]:
    """Two curves of a kind: their ends in one order or the other, and the size of what is round."""
    kinds = {of.primitives[at.geo].kind for at in (a, b)}
    sides = {Kind.LINE: (Pos.START, Pos.END), Kind.ARC: (Pos.START, Pos.END), Kind.CIRCLE: (Pos.CENTER,)}
    if len(kinds) > 1:
        return
    kind = kinds.pop()
    same_size = () if kind is Kind.LINE else (Relation(Code.EQUAL, (a, b)),)
    for order in permutations(sides[kind]):
        ends = zip(sides[kind], order, strict=True)
        pairs = tuple(Relation(Code.SYMMETRIC, (At(a.geo, p), At(b.geo, q), about)) for p, q in ends)
        yield pairs + same_size


def _fix(of: Places) -> Iterator[Wording]:
    relations: list[Relation] = []
    for at in of.at:
        if at.geo < 0:
            raise NoWordsError
        if not is_point(at) or of.primitives[at.geo].kind is Kind.POINT:
            relations.append(Relation(Code.BLOCK, (At(at.geo),)))
        else:
            x, y = of.place(at)
            relations += [Relation(Code.DISTANCE_X, (at,), x), Relation(Code.DISTANCE_Y, (at,), y)]
    yield tuple(relations)


def _distance(of: Places) -> Iterator[Wording]:
    """Of points, lines and centers; lines at a distance are parallel."""
    if len(of.at) == 1:
        yield from _length(of)
    elif len(of.at) == 2:
        a, b = sorted(map(of.middle, of.at), key=lambda at: (at in (X_AXIS, Y_AXIS), not is_point(at)))
        if not of.size:
            yield _meeting(of, a, b)
        elif is_point(a):
            yield (Relation(Code.DISTANCE, (a, b), of.size),)
        else:
            yield Relation(Code.PARALLEL, (a, b)), Relation(Code.DISTANCE, (At(a.geo, Pos.START), b), of.size)


def _distance_along(code: Code) -> Callable[[Places], Iterator[Wording]]:
    def ways(of: Places) -> Iterator[Wording]:
        at = [of.middle(at) for at in of.at]
        if len(at) == 1:
            at = [ORIGIN, at[0]] if is_point(at[0]) else [At(at[0].geo, Pos.START), At(at[0].geo, Pos.END)]
        if len(at) == 2 and all(map(is_point, at)):
            yield from ((Relation(code, pair, of.value),) for pair in permutations(at))

    return ways


def _length(of: Places) -> Iterator[Wording]:
    if len(of.at) == 1 and of.is_line(of.at[0]) and of.size:
        yield (Relation(Code.DISTANCE, (of.at[0],), of.size),)


def _radius(code: Code) -> Callable[[Places], Iterator[Wording]]:
    def ways(of: Places) -> Iterator[Wording]:
        if all(map(of.is_round, of.at)) and of.size:
            yield tuple(Relation(code, (at,), of.size) for at in of.at)

    return ways


def _angle(of: Places) -> Iterator[Wording]:
    """Of lines: between any ways along them that hold. Of three places: of two curves at a point."""
    points = [is_point(at) for at in of.at]
    if points == [False, False, True] or (points == [False] and (of.is_line(of.at[0]) or of.is_arc(of.at[0]))):
        yield (Relation(Code.ANGLE, tuple(of.at), of.value),)
    elif len(of.at) == 2 and all(of.is_line(at) or (of.is_end(at) and of.is_line(At(at.geo))) for at in of.at):
        ends = tuple(At(at.geo, at.pos or Pos.START) if any(points) else at for at in of.at)
        yield (Relation(Code.ANGLE, ends, of.value),)
        for (a, b), p, q in product(permutations(of.at), (Pos.START, Pos.END), (Pos.START, Pos.END)):
            yield (Relation(Code.ANGLE, (At(a.geo, p), At(b.geo, q)), of.value),)


_WORDINGS: Mapping[ConstraintType, Callable[[Places], Iterator[Wording]]] = {
    ConstraintType.COINCIDENT: _coincident,
    ConstraintType.POINT_ON_CURVE: _coincident,
    ConstraintType.HORIZONTAL: _level(Code.HORIZONTAL),
    ConstraintType.VERTICAL: _level(Code.VERTICAL),
    ConstraintType.PARALLEL: _alike(Code.PARALLEL, round_too=False),
    ConstraintType.PERPENDICULAR: _meeting_at(Code.PERPENDICULAR),
    ConstraintType.COLLINEAR: _coincident,
    ConstraintType.TANGENT: _meeting_at(Code.TANGENT),
    ConstraintType.EQUAL: _alike(Code.EQUAL, round_too=True),
    ConstraintType.CONCENTRIC: _concentric,
    ConstraintType.MIDPOINT: _midpoint,
    ConstraintType.SYMMETRIC: _symmetric,
    ConstraintType.FIX: _fix,
    ConstraintType.DISTANCE: _distance,
    ConstraintType.HORIZONTAL_DISTANCE: _distance_along(Code.DISTANCE_X),
    ConstraintType.VERTICAL_DISTANCE: _distance_along(Code.DISTANCE_Y),
    ConstraintType.LENGTH: _length,
    ConstraintType.RADIUS: _radius(Code.RADIUS),
    ConstraintType.DIAMETER: _radius(Code.DIAMETER),
    ConstraintType.ANGLE: _angle,
}
