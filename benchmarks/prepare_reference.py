"""The authors' preparation written plainly: one process, one sketch after the other, one entity after the other.

What `prepare --preset authors` is measured against, and checked against. Like the authors' code it makes an object of
every sketch, entity and constraint, keeps every matrix in memory and finds duplicates at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.formats import Skipped, scan
from sketchdnn.formats.sketchgraphs.constraints import SUBNODE
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.formats.sketchgraphs.pickles import STRUCTURE, EntityType, Op, PickleError, load_ops
from sketchdnn.formats.sketchgraphs.sketches import DAMAGED_CONSTRAINT, ON_SKIPPED_ENTITY
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch

MIN_ENTITIES, MAX_ENTITIES, MAX_CONSTRAINTS = 7, 16, 208
LEVELS = 256
_TAU = 2 * math.pi

# A row: construction, line, circle, arc, point, none, then line (4), circle (3), arc (5: center, radius, two angles in
# turns), point (2).
WIDTH = 20
_X, _Y = [6, 8, 10, 13, 18], [7, 9, 11, 14, 19]
_RADII = [12, 15]
_CIRCLES, _ARCS = (10, 11, 12), (13, 14, 15)
_OWN = {1: range(6, 10), 2: range(10, 13), 3: range(13, 18), 4: range(18, 20)}

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Matrices of the sketches that were kept, and for every sketch that fits, by id, the one that stands for it."""

    matrices: list[Matrix]
    stands_for: dict[str, str]
    split: NDArray[np.int64]


def prepare_plainly(files: Iterable[Path], limit: int | None = None) -> tuple[Prepared, int]:
    """The kept sketches of some SketchGraphs files, and how many sketches were looked at."""
    matrices: dict[str, Matrix] = {}
    looked_at = 0
    for sketch, constraints in _sketches(files):
        if looked_at == limit:
            break
        looked_at += 1
        entities = len(sketch) + sketch.extra.get("dropped_entities", 0)
        if not MIN_ENTITIES <= entities <= MAX_ENTITIES or not entities <= constraints <= MAX_CONSTRAINTS:
            continue
        matrix = in_box(np.stack([primitive_row(p) for p in sketch]))
        if matrix is not None:
            matrices[sketch.extra["id"]] = matrix
    first: dict[bytes, str] = {}
    stands_for = {name: first.setdefault(quantized(matrix), name) for name, matrix in matrices.items()}
    kept = [matrices[name] for name in first.values()]
    split = np.random.default_rng(4).choice(3, len(kept), p=(0.9, 0.05, 0.05))
    return Prepared(kept, stands_for, split), looked_at


def primitive_row(primitive: Primitive) -> NDArray[np.float64]:
    """One entity as a row."""
    row = np.zeros(WIDTH)
    row[0] = primitive.construction
    match primitive:
        case Line(start, end):
            row[1] = 1
            row[6:8] = start
            row[8:10] = end
        case Circle(center, radius):
            row[2] = 1
            row[10:12] = center
            row[12] = radius
        case Arc(center, radius, start_angle, sweep):
            row[3] = 1
            row[13:15] = center
            row[15] = radius
            row[16] = (start_angle % _TAU) / _TAU
            row[17] = ((start_angle + sweep) % _TAU) / _TAU
        case Point(at):
            row[4] = 1
            row[18:20] = at
    return row


def in_box(rows: NDArray[np.float64]) -> Matrix | None:
    """Center and scale by the box of all columns, unused zeros included, and of whole circles; pad to 16 rows."""
    lows, highs = [], []
    for axis, columns in enumerate((_X, _Y)):
        reach = [rows[:, columns]]
        for x, y, radius in (_CIRCLES, _ARCS):
            middle = rows[:, [(x, y)[axis]]]
            reach += [middle - rows[:, [radius]], middle + rows[:, [radius]]]
        every = np.concatenate(reach, axis=1)
        lows.append(every.min())
        highs.append(every.max())
    scale = max(highs[0] - lows[0], highs[1] - lows[1]) / 2
    if scale <= 0:
        return None
    center = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    matrix = np.zeros((MAX_ENTITIES, WIDTH), np.float32)
    matrix[len(rows) :, 5] = 1
    for index, row in enumerate(rows):
        kind = int(row[1:5].argmax()) + 1
        for axis, columns in enumerate((_X, _Y)):
            for column in columns:
                if column in _OWN[kind]:
                    row[column] = (row[column] - center[axis]) / scale
        row[_RADII] = row[_RADII] / scale
        matrix[index] = row
    return matrix if _is_storable(matrix) else None


def quantized(matrix: Matrix) -> bytes:
    """Every row on 256 levels between its own smallest and largest number."""
    low = matrix.min(axis=1, keepdims=True)
    high = matrix.max(axis=1, keepdims=True)
    levels = np.rint((matrix - low) / (high - low + np.float32(1e-8)) * np.float32(LEVELS - 1))
    return bytes(levels.astype(np.uint8))


def _is_storable(matrix: Matrix) -> bool:
    """No primitive may vanish in single precision. (The authors keep such rows; both versions here refuse them.)"""
    for row in matrix:
        if row[1] and (row[6:8] == row[8:10]).all():
            return False
        if row[2] and row[12] <= 0:
            return False
        if row[3]:
            angles = row[16:18].astype(np.float64) * _TAU
            ends = row[13:15, None] + row[15] * np.array([np.cos(angles), np.sin(angles)])
            if (ends[:, 0].astype(np.float32) == ends[:, 1].astype(np.float32)).all():
                return False
    return bool(np.isfinite(matrix).all())


def _sketches(files: Iterable[Path]) -> Iterator[tuple[Sketch, int]]:
    """Each sketch, and how many constraints its sequence states, on entities that were left out too."""
    for file in files:
        lost = 0
        for found in scan(file):
            if isinstance(found, Skipped) and not found.is_sketch:
                lost += found.count if found.reason in (ON_SKIPPED_ENTITY, DAMAGED_CONSTRAINT) else 0
                continue
            if isinstance(found, Sketch):
                yield found, len(found.constraints) + lost
            lost = 0


_TAU = 2 * math.pi


def prepare_leanly(files: Iterable[Path], limit: int | None = None) -> tuple[list[Matrix], int]:
    """The kept sketches of some SketchGraphs files, and how many sequences were looked at."""
    first: dict[bytes, Matrix] = {}
    looked_at = 0
    for ops in _sequences(files):
        if looked_at == limit:
            break
        looked_at += 1
        entities = [op for op in ops if op.step is None and op.start not in STRUCTURE]
        constraints = sum(1 for op in ops if op.step is not None and op.start != SUBNODE)
        if not MIN_ENTITIES <= len(entities) <= MAX_ENTITIES or not len(entities) <= constraints <= MAX_CONSTRAINTS:
            continue
        rows = [row for op in entities if (row := entity_row(op.start, op.stop)) is not None]
        matrix = in_box(np.stack(rows)) if rows else None
        if matrix is not None:
            first.setdefault(quantized(matrix), matrix)
    return list(first.values()), looked_at


def entity_row(label: int, fields: dict[str, Any]) -> NDArray[np.float64] | None:
    """One entity as a row; None for one that is no primitive or has no extent."""
    row = np.zeros(WIDTH)
    row[0] = fields.get("isConstruction", 0)
    match label:
        case EntityType.LINE:
            point = np.array([fields["pntX"], fields["pntY"]])
            direction = np.array([fields["dirX"], fields["dirY"]])
            row[1] = 1
            row[6:8] = point + fields["startParam"] * direction
            row[8:10] = point + fields["endParam"] * direction
            return row if (row[6:8] != row[8:10]).any() else None
        case EntityType.CIRCLE:
            row[2] = 1
            row[10:13] = fields["xCenter"], fields["yCenter"], fields["radius"]
            return row if fields["radius"] > 0 else None
        case EntityType.ARC:
            zero = np.arctan2(fields["yDir"], fields["xDir"])
            start, end = fields["startParam"], fields["endParam"]
            angle = zero - end if fields["clockwise"] else zero + start
            sweep = (end - start) % _TAU
            row[3] = 1
            row[13:16] = fields["xCenter"], fields["yCenter"], fields["radius"]
            row[16:18] = (angle % _TAU) / _TAU, ((angle + sweep) % _TAU) / _TAU
            return row if fields["radius"] > 0 and sweep > 0 else None
        case EntityType.POINT:
            row[4] = 1
            row[18:20] = fields["x"], fields["y"]
            return row
    return None


def _sequences(files: Iterable[Path]) -> Iterator[list[Op]]:
    for file in files:
        sequences = open_sequences(file)
        for data in sequences.pickles(0, len(sequences)):
            if isinstance(data, bytes):
                with suppress(PickleError):
                    yield load_ops(data)
