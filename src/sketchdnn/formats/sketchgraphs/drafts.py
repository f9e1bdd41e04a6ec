"""From entities and constraints as a file states them to sketches, for SketchGraphs and Onshape alike.

What is no primitive is left out and counted, and so are the constraints on it; the rest of the sketch is kept, and says
in `extra["dropped_entities"]` how many it lost. A sketch with no primitive at all is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.formats.format import ReadItem, Skipped
from sketchdnn.geometry import EXTERNAL, Constraint, Kind, Part, Primitive, Ref, Sketch
from sketchdnn.geometry.constraints import PARTS_OF_KIND
from sketchdnn.geometry.table import table_to_sketches

from .constraints import constraint_of, in_reading_order
from .entities import Columns, Entities

EMPTY = "a sketch without a line, circle, arc or point"
ON_LEFT_OUT = "a constraint on what was left out"
DAMAGED = "a damaged constraint"


@dataclass(frozen=True, slots=True)
class Target:
    """What a constraint refers to: a part of an entity, by its number in `Entities`; or None for one left out."""

    entity: int | None
    part: Part


OUTSIDE = Target(None, Part.EXTERNAL)
LEFT_OUT = Target(None, Part.WHOLE)


@dataclass(slots=True)
class Draft:
    """A sketch in the making, whose primitives wait in `Entities`."""

    extra: dict[str, Any]
    constraints: list[tuple[str, tuple[Target, ...], Mapping[str, Any]]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def assemble(drafts: Sequence[Draft | Skipped], entities: Entities) -> Iterator[ReadItem]:
    """The sketches of drafts that are the owners 0, 1, … of the entities, each behind what it lost."""
    columns = entities.columns(len(drafts))
    lost: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for owner, reason in columns.left_out:
        lost[owner][reason] += 1
    places = _places(columns)
    for owner, (draft, sketch) in enumerate(zip(drafts, table_to_sketches(columns.table), strict=True)):
        if isinstance(draft, Skipped):
            yield draft
            continue
        skipped = lost[owner] + draft.skipped
        constraints: list[Constraint] = []
        for name, targets, params in draft.constraints:
            try:
                refs = tuple(_ref(target, places) for target in targets)
                constraints.append(_constraint(name, refs, params, sketch.primitives))
            except _LeftOut:
                skipped[ON_LEFT_OUT] += 1
            except GeometryError:
                skipped[DAMAGED] += 1
        for reason, count in skipped.items():
            yield Skipped(reason, count=count)
        if not len(sketch):
            yield Skipped(EMPTY, is_sketch=True)
            continue
        dropped = {"dropped_entities": lost[owner].total()} if lost[owner] else {}
        yield Sketch(sketch.primitives, tuple(constraints), units="m", extra=draft.extra | dropped)


class _LeftOut(Exception):  # noqa: N818  not an error: it only ends the reading of one constraint
    """A constraint refers to what is no primitive."""


# Of each entity its place in its sketch, its kind, and whether it was turned over; None if it was left out.
Places = list[tuple[int, Kind, bool] | None]


def _places(columns: Columns) -> Places:
    table = columns.table
    index = np.arange(len(table)) - np.searchsorted(table.owner, table.owner)
    turned = columns.clockwise[columns.kept]
    kept = zip(index.tolist(), map(Kind, table.kind.tolist()), turned.tolist(), strict=True)
    return [next(kept) if is_kept else None for is_kept in columns.kept.tolist()]


def _ref(target: Target, places: Places) -> Ref:
    if target is OUTSIDE:
        return EXTERNAL
    place = None if target.entity is None else places[target.entity]
    if place is None:
        raise _LeftOut
    index, kind, turned = place
    part = Part.POINT if kind is Kind.POINT and target.part is Part.WHOLE else target.part
    if part not in PARTS_OF_KIND[kind]:
        raise GeometryError(DAMAGED)
    return Ref(index, _TURNED.get(part, part) if turned else part)


def _constraint(
    name: str, refs: tuple[Ref, ...], params: Mapping[str, Any], primitives: Sequence[Primitive]
) -> Constraint:
    constraint = constraint_of(name, refs, params)
    if constraint.refs is not refs:  # a note has said which is which
        return constraint
    ordered = in_reading_order(constraint.type, refs, primitives)
    return constraint if ordered is refs else replace(constraint, refs=ordered)


_TURNED = {Part.START: Part.END, Part.END: Part.START}
