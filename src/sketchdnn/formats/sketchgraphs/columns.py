"""Sequences straight into columns: no value is made for a primitive, so a corpus of millions is read at speed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sketchdnn.formats.format import Skipped
from sketchdnn.geometry.table import PrimitiveTable

from .constraints import SUBNODE
from .container import open_sequences
from .drafts import EMPTY
from .entities import Entities
from .ops import STRUCTURE, PickleError, load_ops


@dataclass(frozen=True, slots=True)
class SequenceTable:
    """Sequences `start`, `start` + 1, … of a file, one sketch of the table each, in meters.

    A sequence that `read` refuses is a sketch without primitives. `constraints` counts what each sequence states, even
    about entities left out; `dropped` counts the entities of each that are no primitive.
    """

    start: int
    table: PrimitiveTable
    constraints: NDArray[np.int64]
    dropped: NDArray[np.int64]
    skipped: Counter[str]


def count(path: Path) -> int:
    """How many sequences a file holds."""
    return len(open_sequences(path))


def read_table(path: Path, start: int = 0, stop: int | None = None) -> SequenceTable:
    """Sequences start … stop − 1; those beyond the end of the file are not there."""
    sequences = open_sequences(path)
    start = min(max(start, 0), len(sequences))
    stop = len(sequences) if stop is None else min(max(stop, start), len(sequences))
    entities = Entities()
    skipped: Counter[str] = Counter()
    constraints = np.zeros(stop - start, np.int64)
    is_read = np.zeros(stop - start, np.bool_)
    for owner, data in enumerate(sequences.pickles(start, stop)):
        if isinstance(data, Skipped):
            skipped[data.reason] += 1
            continue
        try:
            ops = load_ops(data)
        except PickleError as error:
            skipped[str(error)] += 1
            continue
        edges = 0
        for op in ops:
            label = op.start
            if op.step is not None:
                edges += label != SUBNODE
            elif label not in STRUCTURE:
                entities.add(owner, label, op.stop)
        constraints[owner] = edges
        is_read[owner] = True
    columns = entities.columns(stop - start)
    skipped.update(reason for _, reason in columns.left_out)
    owners = np.array([owner for owner, _ in columns.left_out], np.int64)
    dropped = np.bincount(owners, minlength=stop - start).astype(np.int64)
    if empty := np.count_nonzero(is_read & (columns.table.counts == 0)):
        skipped[EMPTY] += int(empty)
    return SequenceTable(start, columns.table, constraints, dropped, skipped)
