"""Which constraints FreeCAD's solver can be given together.

It refuses a sketch in which one constraint follows from others, so those that do are switched off: they stay in the
file, inactive. So is what the sketch as it is does not keep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

from sketchdnn.geometry import Constraint, Kind, Part, Primitive, Sketch, bounds

from .equations import Geometry, residuals
from .independence import classes, independent
from .relation import At, Code, Pos, Relation
from .wording import Wording, wordings

REDUNDANT = "redundant: it follows from the others and is switched off"
MISSED = "the sketch as it is does not keep it: it is switched off"
TOO_SMALL = "what it refers to is too small or too close together to be solved: it is switched off"
UNSAID = "FreeCAD has no such constraint for what it refers to: it is only noted here"
OUTSIDE = "it refers to something outside the sketch: it is only noted here"

# The same in a report of what writing has changed.
REPORTED = {
    REDUNDANT: "a constraint switched off in FreeCAD: it follows from the others",
    MISSED: "a constraint switched off in FreeCAD: the geometry does not satisfy it ('sketchdnn constrain' moves it)",
    TOO_SMALL: "a constraint switched off in FreeCAD: what it refers to is too small or too close together",
    UNSAID: "a constraint only noted in the file: FreeCAD has no such constraint for what it refers to",
    OUTSIDE: "a constraint only noted in the file: it refers to something outside the sketch",
}

# How far a sketch may be from what a constraint demands, in parts of its size or radians.
HOLDS = 1e-5


@dataclass(frozen=True, slots=True)
class Said:
    """A constraint, the relations that say it to FreeCAD, and what there is to remark about it."""

    constraint: Constraint
    relations: tuple[Relation, ...]
    note: str = ""


def say(sketch: Sketch) -> list[Said]:
    """Every constraint of a sketch in FreeCAD's words, switched off where its solver would refuse it."""
    if not len(sketch):
        return [Said(constraint, (), UNSAID) for constraint in sketch.constraints]
    geometry = Geometry(sketch.primitives, bounds(sketch).size or 1.0)
    said = [_say_one(constraint, sketch.primitives, geometry) for constraint in sketch.constraints]
    said = _name_contacts(said, sketch.primitives, geometry)
    switched_on = [[r.active and r.driving for r in s.relations] for s in said]
    solved = [r for s, on in zip(said, switched_on, strict=True) for r in compress(s.relations, on)]
    verdicts = iter(independent(solved, geometry))
    return [
        _without_redundant(s, [not is_on or next(verdicts) for is_on in on])
        for s, on in zip(said, switched_on, strict=True)
    ]


def _say_one(constraint: Constraint, primitives: Sequence[Primitive], geometry: Geometry) -> Said:
    """In the first way that holds; if none does, in the first way, switched off."""
    ways = wordings(constraint, primitives)
    if not ways:
        is_outside = any(ref.part is Part.EXTERNAL for ref in constraint.refs)
        return Said(constraint, (), OUTSIDE if is_outside else UNSAID)
    complaints = [_complaint(way, geometry) for way in ways]
    if "" in complaints:
        return Said(constraint, ways[complaints.index("")])
    return Said(constraint, tuple(replace(relation, active=False) for relation in ways[0]), complaints[0])


def _complaint(way: Wording, geometry: Geometry) -> str:
    """Why relations cannot be solved for, if so. What is switched off or only measures is always fine."""
    try:
        misses = [
            miss for relation in way if relation.active and relation.driving for miss in residuals(relation, geometry)
        ]
    except ArithmeticError:
        return TOO_SMALL
    return "" if all(abs(miss) <= HOLDS for miss in misses) else MISSED


def _name_contacts(said: list[Said], primitives: Sequence[Primitive], geometry: Geometry) -> list[Said]:
    """Tangent curves that share a point are said to be tangent at it.

    Without it the solver would see the same demand twice: a curve through a point of another cannot come closer than
    tangent, so near a solution the distance between them does not change.
    """
    active = [relation for s in said for relation in s.relations if relation.active and relation.driving]
    shared = _shared_points(active, primitives)

    def at_contact(relation: Relation) -> Relation:
        if relation.code is not Code.TANGENT or any(at.pos is not Pos.WHOLE for at in relation.at):
            return relation
        via = shared.get(frozenset(at.geo for at in relation.at))
        if via is None:
            return relation
        at_point = replace(relation, at=(*relation.at, via))
        return relation if _complaint((at_point,), geometry) else at_point

    return [replace(s, relations=tuple(map(at_contact, s.relations))) for s in said]


def _shared_points(relations: Sequence[Relation], primitives: Sequence[Primitive]) -> dict[frozenset[int], At]:
    """For each two curves that are kept together at a point: such a point."""
    place_of = classes([relation.at for relation in relations if relation.code is Code.COINCIDENT])
    on: defaultdict[At, set[int]] = defaultdict(set)  # the curves that each place is kept on
    for geo, primitive in enumerate(primitives):
        if primitive.kind in (Kind.LINE, Kind.ARC):
            for at in (At(geo, Pos.START), At(geo, Pos.END)):
                on[place_of.get(at, at)].add(geo)
    for relation in relations:
        match relation:
            case Relation(Code.POINT_ON_OBJECT, (point, curve)):
                on[place_of.get(point, point)].add(curve.geo)
            case Relation(Code.SYMMETRIC, (start, end, middle)) if start.geo == end.geo and middle.pos is not Pos.WHOLE:
                on[place_of.get(middle, middle)].add(start.geo)
    return {frozenset((a, b)): at for at, curves in on.items() for a in curves for b in curves if a < b}


def _without_redundant(said: Said, keep: Sequence[bool]) -> Said:
    """When all of it is redundant, switched off; when some of it is, the rest says it all."""
    if any(keep) or not said.relations:
        return replace(said, relations=tuple(compress(said.relations, keep)))
    return Said(said.constraint, tuple(replace(relation, active=False) for relation in said.relations), REDUNDANT)
