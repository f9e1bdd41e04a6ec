"""Sequences as sketches and back: which node is which part of which primitive, and which edge is which constraint.

Nodes are numbered as they come: 0 is everything outside the sketch, then each entity followed by its parts, last the
end. A constraint follows the last node it refers to, and lists its nodes from the last to the first. Three things that
a sketch of ours may say have no word here: which of a constraint's places is which, beyond their kinds; the origin and
the axes, which are external like everything outside; a point on a curve or two lines in line, which are coincident.
Parameters of our own keep them for us; they are written beside the sequence, since the official library refuses them.
Files of ours that have them in the sequence are read the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from pathlib import Path

from sketchdnn.errors import SketchError
from sketchdnn.formats.format import Losses, ReadItem, Skipped, format_losses
from sketchdnn.geometry import EXTERNAL, Kind, Part, Ref, Sketch

from .constraints import NAMES, SUBNODE, file_form, note_of
from .container import Sequences, open_sequences
from .drafts import DAMAGED, LEFT_OUT, OUTSIDE, Draft, Target, assemble
from .entities import Entities, entity_of
from .notes import LOST_PARAMETER, Notes, apart, dump_notes, load_notes, lost_parameters
from .ops import STRUCTURE, EntityType, Op, PickleError, SubnodeType, load_ops
from .packing import writing
from .pickling import dump_ops

_DAMAGED_NOTES = "damaged notes beside a sequence"
# Sequences turned into columns together: enough for numpy to pay, little enough to stream.
_TOGETHER = 256

_PART_OF: dict[int, Part] = {
    SubnodeType.START: Part.START,
    SubnodeType.END: Part.END,
    SubnodeType.CENTER: Part.CENTER,
}
_SUBNODES: dict[Kind, tuple[SubnodeType, ...]] = {
    Kind.LINE: (SubnodeType.START, SubnodeType.END),
    Kind.CIRCLE: (SubnodeType.CENTER,),
    Kind.ARC: (SubnodeType.CENTER, SubnodeType.START, SubnodeType.END),
    Kind.POINT: (),
}


def read(path: Path) -> Iterator[ReadItem]:
    """Every sequence of a file as a sketch in meters, with its constraints."""
    sequences = open_sequences(path)
    count = len(sequences)
    texts = repeat(b"") if sequences.notes is None else sequences.notes.pickles(0, count)
    pairs = zip(sequences.pickles(0, count), texts, strict=False)
    for start in range(0, count, _TOGETHER):
        yield from _read_some(sequences, start, islice(pairs, _TOGETHER))


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """A file that the official library opens, written as the sketches come. Without units they are taken as meters."""
    losses = Losses()
    with writing(path) as add:
        for sketch in sketches:
            ops, notes = apart(ops_of(sketch))
            add(dump_ops(ops), len(ops), dump_notes(notes))
            losses.update(format_losses(sketch, "sketchgraphs", constraints=True, units="m"))
            if lost := lost_parameters(sketch):
                losses.left_out[LOST_PARAMETER] += lost
    return losses


def ops_of(sketch: Sketch) -> list[Op]:
    """The sequence that means a sketch, with parameters of our own."""
    sketch = sketch.in_units("m")
    nodes: list[list[Op]] = [[slice(int(EntityType.EXTERNAL), {})]]  # each node, then the edges that follow it
    node_of: defaultdict[tuple[int | None, Part], int] = defaultdict(int)  # whatever is outside the sketch is node 0
    read_as = [EXTERNAL]  # what each node is when it is read
    for index, primitive in enumerate(sketch):
        entity = len(nodes)
        label, fields = entity_of(primitive)
        nodes.append([slice(int(label), fields)])
        node_of[index, Part.WHOLE] = node_of[index, Part.POINT] = entity
        read_as.append(Ref(index, Part.POINT if primitive.kind is Kind.POINT else Part.WHOLE))
        for subnode in _SUBNODES[primitive.kind]:
            read_as.append(Ref(index, _PART_OF[subnode]))
            node_of[index, _PART_OF[subnode]] = len(nodes)
            nodes.append([slice(int(subnode), {}), slice(SUBNODE, (len(nodes), entity), {})])
    for constraint in sketch.constraints:
        code, params = file_form(constraint)
        refs = sorted((node_of[ref.primitive, ref.part] for ref in constraint.refs), reverse=True)
        params |= note_of(constraint, tuple(read_as[node] for node in refs), params, sketch.primitives)
        nodes[refs[0]].append(slice(code, tuple(refs), params))
    nodes.append([slice(int(EntityType.STOP), {})])
    return [op for ops in nodes for op in ops]


def _read_some(
    sequences: Sequences, start: int, pairs: Iterable[tuple[bytes | Skipped, bytes | Skipped]]
) -> Iterator[ReadItem]:
    entities = Entities()
    drafts: list[Draft | Skipped] = []
    for owner, (data, text) in enumerate(pairs):
        if isinstance(data, Skipped):
            drafts.append(data)
            continue
        try:
            ops = load_ops(data)
        except PickleError as error:
            drafts.append(Skipped(str(error), is_sketch=True))
            continue
        index = start + owner
        draft = Draft({"source": "sketchgraphs", "id": sequences.id_of(index), "index": index})
        _follow(ops, _notes(text, draft), owner, entities, draft)
        drafts.append(draft)
    yield from assemble(drafts, entities)


def _notes(text: bytes | Skipped, draft: Draft) -> Notes:
    """The notes beside a sequence; damaged ones are counted, and the sequence is read without."""
    try:
        if not isinstance(text, Skipped):
            return load_notes(text)
    except SketchError:
        pass
    draft.skipped[_DAMAGED_NOTES] += 1
    return {}


def _follow(ops: list[Op], notes: Notes, owner: int, entities: Entities, draft: Draft) -> None:
    """Gather the entities and constraints of a sequence."""
    nodes: list[Target] = []
    number = -1
    for op in ops:
        if op.step is None:
            nodes.append(_node(op, owner, entities))
            continue
        code, refs, params = op.start, op.stop, op.step
        number += code != SUBNODE
        # References and names are whatever numbers and texts the file holds.
        is_sound = type(refs) is tuple and all(type(r) is int and 0 <= r < len(nodes) for r in refs)
        if code == SUBNODE and is_sound and len(refs) == 2:
            part, entity = refs
            nodes[part] = Target(nodes[entity].entity, nodes[part].part)
        elif is_sound and 0 <= code < len(NAMES) and type(params) is dict:
            draft.constraints.append((NAMES[code], tuple(nodes[r] for r in refs), notes.get(number, {}) | params))
        else:
            draft.skipped[DAMAGED] += 1


def _node(op: Op, owner: int, entities: Entities) -> Target:
    label = op.start
    if label not in STRUCTURE:
        number = len(entities)
        return Target(number, Part.WHOLE) if entities.add(owner, label, op.stop) else LEFT_OUT
    if label == EntityType.EXTERNAL:
        return OUTSIDE
    if label in _PART_OF:
        return Target(None, _PART_OF[label])  # until the edge that ties it to its entity
    return LEFT_OUT
