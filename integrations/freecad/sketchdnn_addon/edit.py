"""Results of the server as changes of a Sketcher object: geometry and constraints are added, nothing else is replaced.

FreeCAD's solver decides which constraints can be added. A set of constraints is added at once; if the sketch then does
not solve, or its geometry moves by more than a small share of its size, the set is halved and each half tried alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import FreeCAD
import Part
import Sketcher

from . import texts
from .relations import Geometry, Relation, to_relations
from .sketch_json import KINDS, Record, SketchData, points_of, read_sketch, size_of

tr = texts.tr
Step = Callable[[], None]
_UP = FreeCAD.Vector(0, 0, 1)
_MOVED = 1e-3  # of the size: given geometry that moves farther was not meant to be constrained so
_SAME = 0.05  # of the size: a primitive of a repaired sketch that is farther from all others is a new one


class EditError(Exception):
    """Why a sketch cannot be changed, in one sentence."""


@dataclass
class Edited:
    """What was added to a sketch; `refused` are types of constraints that its solver did not accept."""

    geometry: int = 0
    constraints: int = 0
    removed: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def summary(self) -> str:
        """A line for the user."""
        parts = [tr("curves added: {0}").format(self.geometry)] if self.geometry else []
        parts.append(tr("constraints added: {0}").format(self.constraints))
        if self.removed:
            parts.append(tr("curves removed: {0}").format(self.removed))
        if self.refused:
            kinds = ", ".join(f"{n} {texts.constraint_name(type_)}" for type_, n in sorted(self.refused.items()))
            parts.append(tr("left out because they repeat others or do not hold: {0}").format(kinds))
        return "; ".join(parts)


@contextmanager
def transaction(document: Any, name: str) -> Iterator[None]:
    """One step of the undo list; what raises inside leaves the document as it was."""
    document.openTransaction(name)
    try:
        yield
    except BaseException:
        document.abortTransaction()
        raise
    document.commitTransaction()
    document.recompute()


def check_solves(sketch: Any) -> None:
    """Refuse a sketch that FreeCAD's solver does not accept as it is."""
    if sketch.solve() != 0:
        raise EditError(
            tr("The sketch has redundant or conflicting constraints; remove those that the Sketcher lists.")
        )


def complete(sketch: Any, given: SketchData, result: Record, num_given: int, on_step: Step = lambda: None) -> Edited:
    """Append what a suggestion adds: its primitives after the given ones, and the constraints that refer to these."""
    check_solves(sketch)
    added = result["primitives"][num_given:]
    geo_ids = (*given.geo_ids, *add_geometry(sketch, added))
    new = [c for c in result.get("constraints", []) if any(len(r) == 2 and r[0] >= num_given for r in c["refs"])]
    primitives = [*given.record["primitives"], *added]
    edited = Edited(geometry=len(added))
    add_constraints(sketch, new, Geometry(primitives, geo_ids), edited, on_step)
    return edited


def constrain(
    sketch: Any, given: SketchData, result: Record, new: Sequence[Record], on_step: Step = lambda: None
) -> Edited:
    """Move geometry to where a result has it, and add the constraints that it has more than the given sketch."""
    check_solves(sketch)
    move_geometry(sketch, given.geo_ids, given.record["primitives"], result["primitives"])
    edited = Edited()
    add_constraints(sketch, new, Geometry(result["primitives"], given.geo_ids), edited, on_step)
    return edited


def repair(sketch: Any, given: SketchData, result: Record, on_step: Step = lambda: None) -> Edited:
    """Make the geometry of a sketch that of its repaired form: move, remove and add curves, then add constraints."""
    before, after = given.record["primitives"], result["primitives"]
    partners = match(before, after)
    kept = {partner: number for number, partner in enumerate(partners) if partner is not None}
    surviving = sorted(kept)
    geo_ids = [given.geo_ids[i] for i in surviving]
    move_geometry(sketch, geo_ids, [before[i] for i in surviving], [after[kept[i]] for i in surviving])
    for geo_id, i in zip(geo_ids, surviving, strict=True):
        if sketch.getConstruction(geo_id) != (construction := bool(after[kept[i]].get("construction"))):
            sketch.setConstruction(geo_id, construction)
    gone = [given.geo_ids[i] for i in range(len(before)) if i not in kept]
    if gone:
        sketch.delGeometries(gone)
    geo_id_of = {kept[i]: given.geo_ids[i] - sum(g < given.geo_ids[i] for g in gone) for i in surviving}
    added = [number for number, partner in enumerate(partners) if partner is None]
    geo_id_of |= dict(zip(added, add_geometry(sketch, [after[n] for n in added]), strict=True))
    check_solves(sketch)
    edited = Edited(geometry=len(added), removed=len(gone))
    new = _renumbered_new(given.record, result, partners)
    geometry = Geometry(after, [geo_id_of[n] for n in range(len(after))])
    add_constraints(sketch, new, geometry, edited, on_step)
    return edited


def fill(sketch: Any, record: Record, on_step: Step = lambda: None) -> Edited:
    """Put a whole sketch into an empty Sketcher object."""
    primitives = record["primitives"]
    geo_ids = add_geometry(sketch, primitives)
    edited = Edited(geometry=len(primitives))
    add_constraints(sketch, record.get("constraints", []), Geometry(primitives, geo_ids), edited, on_step)
    return edited


def added_constraints(given: Record, result: Record) -> list[Record]:
    """The constraints of a result beyond those of the given sketch, whose primitives it has in the same order."""
    return _renumbered_new(given, result, list(range(len(result["primitives"]))))


def _renumbered_new(given: Record, result: Record, partners: Sequence[int | None]) -> list[Record]:
    old = Counter(_key(c["type"], c["refs"]) for c in given.get("constraints", []))
    new: list[Record] = []
    for constraint in result.get("constraints", []):
        refs = [[partners[r[0]], r[1]] if len(r) == 2 else r for r in constraint["refs"]]
        key = _key(constraint["type"], refs)
        if old[key] > 0:
            old[key] -= 1
        else:
            new.append(constraint)
    return new


def _key(type_: str, refs: Sequence[Any]) -> tuple[Any, ...]:
    return type_, tuple(tuple(ref) for ref in refs)


def match(before: Sequence[Record], after: Sequence[Record]) -> list[int | None]:
    """For each primitive of a repaired sketch the one that it was, if any: the nearest of its kind not yet taken."""
    limit = _SAME * (size_of(before) or 1.0)
    offers = sorted(
        (distance, number, index)
        for number, new in enumerate(after)
        for index, old in enumerate(before)
        if (distance := _distance(old, new)) <= limit
    )
    partners: list[int | None] = [None] * len(after)
    taken: set[int] = set()
    for _, number, index in offers:
        if partners[number] is None and index not in taken:
            partners[number] = index
            taken.add(index)
    return partners


def _distance(old: Record, new: Record) -> float:
    if old["type"] != new["type"]:
        return math.inf
    return max(math.dist(p, q) for p, q in zip(points_of(old), points_of(new), strict=True))


def add_geometry(sketch: Any, primitives: Sequence[Record]) -> list[int]:
    """Append primitives; their numbers."""
    geo_ids = []
    for primitive in primitives:
        construction = bool(primitive.get("construction"))
        geo_id = sketch.addGeometry(_shape(primitive), construction)
        if sketch.getConstruction(geo_id) != construction:  # FreeCAD 0.20 makes each point construction
            sketch.setConstruction(geo_id, construction)
        geo_ids.append(geo_id)
    return geo_ids


def _shape(primitive: Record) -> Any:
    kind = primitive["type"]
    if kind == "line":
        return Part.LineSegment(_vector(primitive["start"]), _vector(primitive["end"]))
    if kind == "point":
        return Part.Point(_vector(primitive["at"]))
    circle = Part.Circle(_vector(primitive["center"]), _UP, primitive["radius"])
    if kind == "circle":
        return circle
    start, end = primitive["start_angle"], primitive["end_angle"]
    return Part.ArcOfCircle(circle, start, end if end > start else end + 2 * math.pi)


def _vector(point: Sequence[float]) -> Any:
    return FreeCAD.Vector(point[0], point[1], 0)


def move_geometry(sketch: Any, geo_ids: Sequence[int], before: Sequence[Record], after: Sequence[Record]) -> None:
    """Give geometry other numbers; its identity, flags and constraints stay."""
    geometry = sketch.Geometry
    changed = False
    for geo_id, old, new in zip(geo_ids, before, after, strict=True):
        if _distance(old, new) == 0.0:
            continue
        changed = True
        shape, fresh = geometry[geo_id], _shape(new)
        for extension in shape.getExtensions():  # identity and flags
            fresh.setExtension(extension)
        geometry[geo_id] = fresh
    if changed:
        sketch.Geometry = geometry


def add_constraints(
    sketch: Any, constraints: Sequence[Record], geometry: Geometry, edited: Edited, on_step: Step
) -> None:
    """Add constraints that the solver accepts; `edited` counts them and those it refuses."""
    for old in sketch.Constraints:
        first, second = (old.First, int(old.FirstPos)), (old.Second, int(old.SecondPos))
        if old.Type == "PointOnObject":
            geometry.on_curve.append((first, old.Second))
        elif old.Type in ("Coincident", "Tangent", "Perpendicular") and first[1] and second[1]:
            geometry.join(first, second)
    relations, unsupported = to_relations(constraints, geometry)
    edited.refused.update(c["type"] for c in unsupported)
    sketch.solve()
    _Adder(sketch, edited, on_step).add(relations)


class _Adder:
    """Adds relations to a sketch as long as it solves and stays where it is."""

    def __init__(self, sketch: Any, edited: Edited, on_step: Step) -> None:
        self.sketch, self.edited, self.on_step = sketch, edited, on_step
        self.names = {c.Name for c in sketch.Constraints if c.Name}
        self.limit = _MOVED * (size_of(read_sketch(sketch).record["primitives"]) or 1.0)

    def add(self, relations: Sequence[Relation]) -> None:
        if not relations:
            return
        self.on_step()
        if self._try(relations):
            self.edited.constraints += len(relations)
            self._name(relations)
        elif len(relations) == 1:
            self.edited.refused[relations[0].type] += 1
        else:
            middle = len(relations) // 2
            self.add(relations[:middle])
            self.add(relations[middle:])

    def _try(self, relations: Sequence[Relation]) -> bool:
        sketch, before = self.sketch, self.sketch.Geometry
        first = sketch.ConstraintCount
        sketch.addConstraint([Sketcher.Constraint(*relation.arguments) for relation in relations])
        if sketch.solve() == 0 and self._displacement(before) <= self.limit:
            return True
        for index in reversed(range(first, sketch.ConstraintCount)):
            sketch.delConstraint(index)
        sketch.Geometry = before
        sketch.solve()
        return False

    def _displacement(self, before: Sequence[Any]) -> float:
        pairs = zip(before, self.sketch.Geometry, strict=True)
        return max((_shape_distance(a, b) for a, b in pairs if a.TypeId in KINDS), default=0.0)

    def _name(self, relations: Sequence[Relation]) -> None:
        first = self.sketch.ConstraintCount - len(relations)
        for index, relation in enumerate(relations, first):
            if name := self._free(relation.name):
                self.sketch.renameConstraint(index, name)
                self.names.add(name)

    def _free(self, name: str) -> str:
        """The name, with a number where the sketch has it already."""
        clean = "".join(c if c.isalnum() else "_" for c in name)
        if not clean or not clean[0].isalpha():
            return ""
        free, number = clean, 2
        while free in self.names:
            free, number = f"{clean}_{number}", number + 1
        return free


def _shape_distance(a: Any, b: Any) -> float:
    if a.TypeId == "Part::GeomPoint":
        return math.hypot(a.X - b.X, a.Y - b.Y)
    if a.TypeId == "Part::GeomLineSegment":
        return max(a.StartPoint.distanceToPoint(b.StartPoint), a.EndPoint.distanceToPoint(b.EndPoint))
    moved = max(a.Center.distanceToPoint(b.Center), abs(a.Radius - b.Radius))
    if a.TypeId == "Part::GeomArcOfCircle":
        moved = max(moved, a.StartPoint.distanceToPoint(b.StartPoint), a.EndPoint.distanceToPoint(b.EndPoint))
    return moved
