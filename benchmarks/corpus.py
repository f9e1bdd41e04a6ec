"""A corpus as large as wanted from a small one: every sequence moved, scaled and bent a little, so that all differ."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sketchdnn.data.workers import run_all
from sketchdnn.errors import FormatError
from sketchdnn.formats.sketchgraphs.container import open_sequences, sequence_writer
from sketchdnn.formats.sketchgraphs.pickles import EntityType, Op, dump_ops, load_ops

SEQUENCES_A_FILE = 62_500

# How the fields of an entity change: by a shift as well as a factor, by a factor, or by an angle.
_PLACES = ("x", "y", "pntX", "pntY", "xCenter", "yCenter")
_LENGTHS = ("radius",)
_ALONG = ("startParam", "endParam")
# Far more than a step of the 8-bit grid, and little enough that sketches stay sketches.
_SHIFT, _STRETCH, _TURN = 0.05, 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences start … stop − 1 of the large corpus, and where they go."""

    path: Path
    start: int
    stop: int


def write_distinct(base: Path, folder: Path, count: int, workers: int) -> list[Path]:
    """`count` sequences, no two alike, in SketchGraphs files made from those of `base`."""
    batches = [
        Batch(folder / f"sequences-{number:03d}.npy", start, min(start + SEQUENCES_A_FILE, count))
        for number, start in enumerate(range(0, count, SEQUENCES_A_FILE))
    ]
    return sorted(run_all(partial(_write, base), batches, workers))


def perturbed(ops: Sequence[Op], dice: random.Random) -> list[Op]:
    """The same entities and constraints with other numbers."""
    # A sketch that lies at the origin alone has no size to go by, and must change all the same.
    size = max((abs(v) for op in ops if op.step is None for k, v in op.stop.items() if k in _PLACES), default=0) or 1.0
    scale = dice.uniform(0.5, 2.0)
    return [slice(op.start, _changed(op, size, scale, dice)) if op.step is None and op.stop else op for op in ops]


def _changed(op: Op, size: float, scale: float, dice: random.Random) -> dict[str, Any]:
    fields = dict(op.stop)
    stretch = scale * (1 + dice.uniform(-_STRETCH, _STRETCH))
    turn = dice.uniform(-_TURN, _TURN)
    for name in fields:
        if name in _PLACES:
            fields[name] = scale * (fields[name] + size * dice.uniform(-_SHIFT, _SHIFT))
        elif name in _LENGTHS:
            fields[name] = stretch * fields[name]
        elif name in _ALONG:
            # Along a line these are lengths, around an arc angles.
            fields[name] = fields[name] + turn if op.start == EntityType.ARC else stretch * fields[name]
    return fields


def _write(base: Path, batch: Batch) -> Path:
    sequences = open_sequences(base)
    known = [load_ops(data) for data in sequences.pickles(0, len(sequences)) if isinstance(data, bytes)]
    if not known:
        raise FormatError(base, "holds no sequence that can be read")
    with sequence_writer(batch.path) as add:
        for index in range(batch.start, batch.stop):
            # The first round is the corpus itself.
            ops = known[index % len(known)]
            changed = perturbed(ops, random.Random(index)) if index >= len(known) else list(ops)
            add(dump_ops(changed), len(changed))
    return batch.path
