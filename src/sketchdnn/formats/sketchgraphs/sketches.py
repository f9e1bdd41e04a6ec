"""Sequences of operations as sketches and back.

Nodes are numbered as they come: 0 is everything outside the sketch, then each entity followed by its parts, last the
end. A constraint follows the last node that it refers to, and lists its nodes from the last to the first. Unsupported
entities are skipped and counted, and so are the constraints on them; `extra["dropped_entities"]` of the sketch counts
the entities. A sketch without a primitive is refused.

`SketchDraft` and `build_sketches` serve Onshape files too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.formats.format import Losses, ReadItem, Skipped
from sketchdnn.geometry import EXTERNAL, Constraint, Kind, Part, Ref, Sketch
from sketchdnn.geometry.constraints import PARTS_OF_KIND
from sketchdnn.geometry.table import PrimitiveTable, table_to_sketches

from .constraints import NAMES, ambiguity_note, canonical_refs, decode_constraint, encode_constraint, losses_in_meters
from .container import Sequences, open_sequences, sequence_writer
from .entities import Columns, EntityCollector, primitive_to_entity
from .notes import Notes, load_notes, split_notes
from .pickles import STRUCTURE, SUBNODE, EntityType, Op, SubnodeType, dump_ops

NO_PRIMITIVES = "a sketch without a line, circle, arc or point"
ON_SKIPPED_ENTITY = "a constraint on what was left out"
DAMAGED_CONSTRAINT = "a damaged constraint"
# Sequences that become columns together: enough for the speed of numpy, few enough to stream.
_SEQUENCES_PER_BATCH = 256

_PARTS: dict[int, Part] = {SubnodeType[part.name]: part for part in (Part.CENTER, Part.START, Part.END)}
_REVERSED = {Part.START: Part.END, Part.END: Part.START}


class Target(NamedTuple):
    """A reference of a constraint: a part of an entity by its index in `EntityCollector`, None for a skipped one."""

    entity: int | None
    part: Part


OUTSIDE = Target(None, Part.EXTERNAL)
SKIPPED = Target(None, Part.WHOLE)


@dataclass(slots=True)
class SketchDraft:
    """A sketch whose primitives are still in an `EntityCollector`."""

    extra: dict[str, Any]
    constraints: list[tuple[str, tuple[Target, ...], Mapping[str, Any]]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class SequenceTable:
    """Sequences `start`, `start` + 1, … of a file as a table with one sketch each, in meters.

    Attributes:
        start: The index of the first sequence.
        table: The primitives. A sequence that `read` refuses is a sketch without primitives.
        constraints: The number of constraints of each sequence, including those on skipped entities.
        dropped: The number of skipped entities of each sequence.
        skipped: Counts by reason.
    """

    start: int
    table: PrimitiveTable
    constraints: NDArray[np.int64]
    dropped: NDArray[np.int64]
    skipped: Counter[str]


def read(path: Path) -> Iterator[ReadItem]:
    """Every sequence of a file as a sketch in meters, with its constraints."""
    sequences = open_sequences(path)
    count = len(sequences)
    texts = repeat(b"") if sequences.notes is None else sequences.notes.pickles(0, count)
    pairs = zip(sequences.ops(0, count), texts, strict=False)
    for start in range(0, count, _SEQUENCES_PER_BATCH):
        yield from _read_batch(sequences, start, islice(pairs, _SEQUENCES_PER_BATCH))


def count(path: Path) -> int:
    """The number of sequences in a file."""
    return len(open_sequences(path))


def read_table(path: Path, start: int = 0, stop: int | None = None) -> SequenceTable:
    """Sequences start … stop − 1 as columns, without creating primitives; those beyond the end are missing."""
    sequences = open_sequences(path)
    start = min(max(start, 0), len(sequences))
    stop = len(sequences) if stop is None else min(max(stop, start), len(sequences))
    entities = EntityCollector()
    skipped: Counter[str] = Counter()
    constraints = np.zeros(stop - start, np.int64)
    is_read = np.zeros(stop - start, np.bool_)
    for owner, ops in enumerate(sequences.ops(start, stop)):
        if isinstance(ops, Skipped):
            skipped[ops.reason] += 1
            continue
        edges = 0
        for op in ops:
            if op.step is not None:
                edges += op.start != SUBNODE
            elif op.start not in STRUCTURE:
                entities.add(owner, op.start, op.stop)
        constraints[owner] = edges
        is_read[owner] = True
    columns = entities.columns(stop - start)
    skipped.update(reason for _, reason in columns.skipped)
    owners = np.array([owner for owner, _ in columns.skipped], np.int64)
    dropped = np.bincount(owners, minlength=stop - start).astype(np.int64)
    if empty := np.count_nonzero(is_read & (columns.table.counts == 0)):
        skipped[NO_PRIMITIVES] += int(empty)
    return SequenceTable(start, columns.table, constraints, dropped, skipped)


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """Write a file that the official library opens, in meters; sketches without units are taken to be in meters."""
    losses = Losses()
    with sequence_writer(path) as add:
        for sketch in sketches:
            ops, notes = split_notes(sketch_to_ops(sketch))
            add(dump_ops(ops), len(ops), notes)
            losses.update(losses_in_meters(sketch, "sketchgraphs"))
    return losses


def sketch_to_ops(sketch: Sketch) -> list[Op]:
    """The sequence of a sketch, with parameters of our own."""
    sketch = sketch.in_units("m")
    nodes: list[list[Op]] = [[slice(int(EntityType.EXTERNAL), {})]]  # each node, then the edges that follow it
    node_of: defaultdict[tuple[int | None, Part], int] = defaultdict(int)  # everything outside the sketch is node 0
    read_back = [EXTERNAL]  # the reference that each node is read back as
    for index, primitive in enumerate(sketch):
        entity = len(nodes)
        label, fields = primitive_to_entity(primitive)
        nodes.append([slice(int(label), fields)])
        node_of[index, Part.WHOLE] = node_of[index, Part.POINT] = entity
        read_back.append(Ref(index, Part.POINT if primitive.kind is Kind.POINT else Part.WHOLE))
        for subnode, part in _PARTS.items():
            if part in PARTS_OF_KIND[primitive.kind]:
                read_back.append(Ref(index, part))
                node_of[index, part] = len(nodes)
                nodes.append([slice(int(subnode), {}), slice(SUBNODE, (len(nodes), entity), {})])
    for constraint in sketch.constraints:
        code, params = encode_constraint(constraint)
        refs = sorted((node_of[ref.primitive, ref.part] for ref in constraint.refs), reverse=True)
        params |= ambiguity_note(constraint, tuple(read_back[node] for node in refs), params, sketch.primitives)
        nodes[refs[0]].append(slice(code, tuple(refs), params))
    nodes.append([slice(int(EntityType.STOP), {})])
    return [op for ops in nodes for op in ops]


def build_sketches(drafts: Sequence[SketchDraft | Skipped], entities: EntityCollector) -> Iterator[ReadItem]:
    """The sketches of drafts, which own the entities by index, each after the counts of what it lost."""
    columns = entities.columns(len(drafts))
    lost: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for owner, reason in columns.skipped:
        lost[owner][reason] += 1
    positions = _positions(columns)
    for owner, (draft, sketch) in enumerate(zip(drafts, table_to_sketches(columns.table), strict=True)):
        if isinstance(draft, Skipped):
            yield draft
            continue
        skipped = lost[owner] + draft.skipped
        constraints: list[Constraint] = []
        for name, targets, params in draft.constraints:
            try:
                refs = tuple(_ref(target, positions) for target in targets)
                constraint = decode_constraint(name, refs, params)
                ordered = canonical_refs(constraint.type, refs, sketch.primitives)
                # Other references than `refs` are those of a note, in their order.
                keep = ordered is refs or constraint.refs is not refs
                constraints.append(constraint if keep else replace(constraint, refs=ordered))
            except _SkippedEntityError:
                skipped[ON_SKIPPED_ENTITY] += 1
            except GeometryError:
                skipped[DAMAGED_CONSTRAINT] += 1
        yield from (Skipped(reason, count=number) for reason, number in skipped.items())
        dropped = {"dropped_entities": lost[owner].total()} if lost[owner] else {}
        whole = Sketch(sketch.primitives, tuple(constraints), units="m", extra=draft.extra | dropped)
        yield whole if len(whole) else Skipped(NO_PRIMITIVES, is_sketch=True)


class _SkippedEntityError(Exception):
    """A constraint refers to an entity that was skipped."""


# For each entity its index in its sketch, its kind, and whether it was reversed; None if it was skipped.
_Positions = list[tuple[int, Kind, bool] | None]


def _positions(columns: Columns) -> _Positions:
    table = columns.table
    index = np.arange(len(table)) - np.searchsorted(table.owner, table.owner)
    is_reversed = columns.clockwise[columns.is_valid]
    valid = zip(index.tolist(), map(Kind, table.kind.tolist()), is_reversed.tolist(), strict=True)
    return [next(valid) if is_valid else None for is_valid in columns.is_valid.tolist()]


def _ref(target: Target, positions: _Positions) -> Ref:
    if target is OUTSIDE:
        return EXTERNAL
    position = None if target.entity is None else positions[target.entity]
    if position is None:
        raise _SkippedEntityError
    index, kind, is_reversed = position
    part = Part.POINT if kind is Kind.POINT and target.part is Part.WHOLE else target.part
    if part not in PARTS_OF_KIND[kind]:
        raise GeometryError(DAMAGED_CONSTRAINT)
    return Ref(index, _REVERSED.get(part, part) if is_reversed else part)


def _read_batch(
    sequences: Sequences, start: int, pairs: Iterable[tuple[list[Op] | Skipped, bytes | Skipped]]
) -> Iterator[ReadItem]:
    entities = EntityCollector()
    drafts: list[SketchDraft | Skipped] = []
    for owner, (ops, text) in enumerate(pairs):
        if isinstance(ops, Skipped):
            drafts.append(ops)
            continue
        index = start + owner
        draft = SketchDraft({"source": "sketchgraphs", "id": sequences.sketch_id(index), "index": index})
        notes = None if isinstance(text, Skipped) else load_notes(text)
        if notes is None:  # they are ignored
            draft.skipped["damaged notes beside a sequence"] += 1
        _collect_ops(ops, notes or {}, owner, entities, draft)
        drafts.append(draft)
    yield from build_sketches(drafts, entities)


def _collect_ops(ops: list[Op], notes: Notes, owner: int, entities: EntityCollector, draft: SketchDraft) -> None:
    """Collect the entities and constraints of a sequence."""
    nodes: list[Target] = []
    index = -1
    for op in ops:
        if op.step is None:
            nodes.append(_node(op, owner, entities))
            continue
        code, refs, params = op.start, op.stop, op.step
        index += code != SUBNODE
        # References and names are any numbers and texts that the file holds.
        is_valid = type(refs) is tuple and all(type(r) is int and 0 <= r < len(nodes) for r in refs)
        if code == SUBNODE and is_valid and len(refs) == 2:
            part, entity = refs
            nodes[part] = Target(nodes[entity].entity, nodes[part].part)
        elif is_valid and 0 <= code < len(NAMES) and type(params) is dict:
            draft.constraints.append((NAMES[code], tuple(nodes[r] for r in refs), notes.get(index, {}) | params))
        else:
            draft.skipped[DAMAGED_CONSTRAINT] += 1


def _node(op: Op, owner: int, entities: EntityCollector) -> Target:
    label = op.start
    if label not in STRUCTURE:
        entity = len(entities)
        return Target(entity, Part.WHOLE) if entities.add(owner, label, op.stop) else SKIPPED
    if label == EntityType.EXTERNAL:
        return OUTSIDE
    if label in _PARTS:
        return Target(None, _PARTS[label])  # until the edge that refers to its entity
    return SKIPPED
