"""What FreeCAD has no place for, stored beside a sketch in a property of its own.

The property is a list of texts, each JSON. The first holds what came with the sketch, and the kinds of its primitives.
One follows for each constraint: our constraint, the relations that write it for FreeCAD, and a note, such as that it is
redundant. Reading restores our constraint where its relations are still there unchanged, so that a document edited in
FreeCAD is read as it is now.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sketchdnn.errors import SketchError
from sketchdnn.formats.json_files import dump_json
from sketchdnn.geometry import Constraint, Primitive, Sketch

from .elements import GeoId, PointPos, Relation, RelationType

PROPERTY = "SketchDNN"
_CLOSE = 1e-9  # values that differ by less, or by a smaller share of them, are the same


@dataclass(frozen=True, slots=True)
class Selected:
    """A constraint, the relations that write it for FreeCAD, and a note on why it is not active."""

    constraint: Constraint
    relations: tuple[Relation, ...]
    note: str = ""


class RestoredNotes(NamedTuple):
    """Our constraints, the relations that are none of ours, and what came with the sketch."""

    constraints: tuple[Constraint, ...]
    relations: tuple[Relation, ...]
    extra: Mapping[str, Any]


def write_notes(sketch: Sketch, selected: Sequence[Selected]) -> list[str]:
    """The texts to store with a sketch."""
    constraints = sketch.to_dict().get("constraints", [])
    head = {"primitives": _kinds(sketch.primitives), "extra": dict(sketch.extra)}
    return [dump_json(head)] + [
        dump_json({"note": s.note, "constraint": constraint, "relations": list(map(_to_list, s.relations))})
        for s, constraint in zip(selected, constraints, strict=True)
    ]


def read_notes(notes: Sequence[str], primitives: Sequence[Primitive], relations: Sequence[Relation]) -> RestoredNotes:
    """The constraints of notes, if these are ours, undamaged, and still match the primitives and relations."""
    try:
        head, *items = map(json.loads, notes)
        if head["primitives"] != _kinds(primitives):
            raise ValueError("other primitives")
        rest = _Relations(relations)
        constraints = [item["constraint"] for item in items if rest.take([_from_list(r) for r in item["relations"]])]
        sketch = Sketch.from_dict(Sketch(tuple(primitives)).to_dict() | {"constraints": constraints})
        return RestoredNotes(sketch.constraints, tuple(rest.left.values()), dict(head["extra"]))
    except (SketchError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError):
        return RestoredNotes((), tuple(relations), {})


class _Relations:
    """The relations of a sketch, `left` after some were taken.

    FreeCAD rounds values, so relations are looked up by the cell of a fine grid that their value is in, and by the
    cells beside it: the time does not depend on how many relations are alike.
    """

    def __init__(self, relations: Sequence[Relation]) -> None:
        self.left = dict(enumerate(relations))
        self._alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, relation in reversed(self.left.items()):
            self._alike[_signature(relation, _cell(relation.value))].append(index)

    def take(self, relations: Sequence[Relation]) -> bool:
        """Take all of these, or none if one is not there."""
        taken: list[tuple[list[int], int]] = []
        for relation in relations:
            if not (alike := self._like(relation)):
                for indices, index in reversed(taken):
                    indices.append(index)
                return False
            taken.append((alike, alike.pop()))
        for _, index in taken:
            del self.left[index]
        return True

    def _like(self, relation: Relation) -> list[int]:
        """The indices of relations like one, the first of them last; empty if there are none."""
        cell = _cell(relation.value)
        for near in (cell, cell - 1, cell + 1):
            alike = self._alike.get(_signature(relation, near))
            if alike and math.isclose(self.left[alike[-1]].value, relation.value, rel_tol=_CLOSE, abs_tol=_CLOSE):
                return alike
        return []


def _signature(relation: Relation, cell: int) -> tuple[object, ...]:
    return relation.type, relation.ids, relation.label, relation.driving, relation.active, cell


def _cell(value: float) -> int:
    """The cell of a value in a grid as fine as the difference of values that are the same."""
    if abs(value) < 1:
        return round(value / _CLOSE)
    return round(math.copysign(1 + math.log(abs(value)), value) / _CLOSE)


def _kinds(primitives: Sequence[Primitive]) -> str:
    """One letter for each primitive."""
    return "".join(primitive.kind.name[0] for primitive in primitives)


def _to_list(relation: Relation) -> list[Any]:
    ids = [[geo, int(pos)] for geo, pos in relation.ids]
    return [int(relation.type), ids, relation.value, relation.label, relation.driving, relation.active]


def _from_list(item: Any) -> Relation:
    type_, ids, value, label, driving, active = item
    geo_ids = tuple(GeoId(geo, PointPos(pos)) for geo, pos in ids)
    return Relation(RelationType(type_), geo_ids, value, label, driving, active)
