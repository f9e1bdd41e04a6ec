"""What FreeCAD has no place for, kept beside a sketch in a property of its own.

A list of texts, each JSON. The first says what came with the sketch, and the kinds of its primitives. Then comes one
for each constraint: the constraint as we say it, the relations that say it to FreeCAD, and a note where there is
something to remark, such as that it is redundant. Reading gives our own constraint back where its relations are still
there unchanged, so that a document edited in FreeCAD is read as what it has become.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.formats.json_files import dump_json
from sketchdnn.geometry import Constraint, Primitive, Sketch

from .relation import At, Code, Pos, Relation
from .selection import Said

PROPERTY = "SketchDNN"
_CLOSE = 1e-9  # values that differ by less, or by less than this part of them, are the same


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the notes still know: our constraints, the relations that are none of ours, what came with the sketch."""

    constraints: tuple[Constraint, ...]
    relations: tuple[Relation, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)


def to_notes(sketch: Sketch, said: Sequence[Said]) -> list[str]:
    """The texts to keep with a sketch."""
    constraints = sketch.to_dict().get("constraints", [])
    head = {"primitives": _kinds(sketch.primitives), "extra": dict(sketch.extra)}
    return [dump_json(head)] + [
        dump_json({"note": s.note, "constraint": constraint, "relations": list(map(_to_list, s.relations))})
        for s, constraint in zip(said, constraints, strict=True)
    ]


def recall(notes: Sequence[str], primitives: Sequence[Primitive], relations: Sequence[Relation]) -> Recalled:
    """What notes say about these primitives and relations: nothing, if they are not ours, damaged, or out of date."""
    try:
        head, *items = map(json.loads, notes)
        if head["primitives"] != _kinds(primitives):
            raise ValueError("other primitives")
        rest = _Relations(relations)
        kept = [item["constraint"] for item in items if rest.take([_from_list(r) for r in item["relations"]])]
        sketch = Sketch.from_dict(Sketch(tuple(primitives)).to_dict() | {"constraints": kept})
        return Recalled(sketch.constraints, rest.left(), dict(head["extra"]))
    except (SketchError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError):
        return Recalled((), tuple(relations))


class _Relations:
    """The relations of a sketch, from which those that are accounted for are taken.

    They are found by all that they say. FreeCAD rounds values, so these are looked up by the cell of a fine grid that
    they fall into, and by the cells beside it: the time does not depend on how many relations are alike.
    """

    def __init__(self, relations: Sequence[Relation]) -> None:
        self._relations = dict(enumerate(relations))
        self._alike: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, relation in reversed(self._relations.items()):
            self._alike[_signature(relation, _cell(relation.value))].append(index)

    def take(self, wanted: Sequence[Relation]) -> bool:
        """Take all of these, or none if one is not there."""
        found: list[tuple[list[int], int]] = []
        for relation in wanted:
            alike = self._like(relation)
            if alike is None:
                for where, index in reversed(found):
                    where.append(index)
                return False
            found.append((alike, alike.pop()))
        for _, index in found:
            del self._relations[index]
        return True

    def left(self) -> tuple[Relation, ...]:
        return tuple(self._relations.values())

    def _like(self, relation: Relation) -> list[int] | None:
        """Those like a relation that are left, the first of them last; none if there are none."""
        cell = _cell(relation.value)
        for near in (cell, cell - 1, cell + 1):
            alike = self._alike.get(_signature(relation, near))
            if alike and _is_close(self._relations[alike[-1]].value, relation.value):
                return alike
        return None


def _signature(relation: Relation, cell: int) -> tuple[object, ...]:
    return relation.code, relation.at, relation.label, relation.driving, relation.active, cell


def _cell(value: float) -> int:
    """Which cell of the grid a value falls into: they are as wide as values that are close may be apart."""
    if abs(value) < 1:
        return round(value / _CLOSE)
    return round(math.copysign(1 + math.log(abs(value)), value) / _CLOSE)


def _is_close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _kinds(primitives: Sequence[Primitive]) -> str:
    """One letter for each primitive: what the numbers in constraints count."""
    return "".join(primitive.kind.name[0] for primitive in primitives)


def _to_list(relation: Relation) -> list[Any]:
    at = [[place.geo, int(place.pos)] for place in relation.at]
    return [int(relation.code), at, relation.value, relation.label, relation.driving, relation.active]


def _from_list(item: Any) -> Relation:
    code, at, value, label, driving, active = item
    return Relation(Code(code), tuple(At(geo, Pos(pos)) for geo, pos in at), value, label, driving, active)
