"""The steps from a block of sketches to candidates for the corpus: filter, normalize, encode, and the keys by which
duplicates are found. Every step works on all sketches of a block at once, and none looks at the order of anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Kind
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.primitives import LARGEST_COORDINATE
from sketchdnn.geometry.table import PrimitiveTable
from sketchdnn.representation import Compact, encode_table, layout
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.grid import row_codes
from sketchdnn.representation.symmetric import symmetric_keys

from .authors import authors_bounds, authors_codes
from .blocks import Block, Origins, Tally
from .config import SAME_LEVELS, PrepareConfig
from .hashing import Keys, fold, row_keys, word_keys

TOO_FINE = "a primitive too small beside the whole for single precision"
NO_EXTENT = "no extent"
IMPOSSIBLE = "a primitive that cannot exist"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Sketches that may enter the corpus, normalized: true place = center + scale · stored place.

    Of those with the same `duplicate` key one is kept: the smallest by `content`, then by `tie`. `content` also orders
    the corpus, `split` decides which part a sketch falls into. `symmetric` is shared by all images of a sketch under
    the symmetries of the square, and 0 where splits need not be distinct. A sketch without a name is named by its
    content.
    """

    compact: Compact
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    origins: Origins
    duplicate: Keys
    content: Keys
    tie: Keys
    split: Keys
    symmetric: Keys

    def __len__(self) -> int:
        return len(self.scale)


def candidates(block: Block, config: PrepareConfig, tally: Tally) -> Candidates:
    """Filter → normalize → encode → keys."""
    block = fitting(block, config, tally)
    center, scale = frames(block.table, config)
    wide = scale > 0
    tally.refuse(NO_EXTENT, int((~wide).sum()))
    block, center, scale = block.select(wide), center[wide], scale[wide]
    placed = normalized(block.table, center, scale)
    compact = encode_table(placed, canonical_lines=config.canonical_lines)
    codes = _codes(placed, compact, config)

    fine = ~collapsed(compact)
    tally.refuse(TOO_FINE, int((~fine).sum()))
    return _keyed(compact[fine], codes[fine], center[fine], scale[fine], block.origins.select(fine), config)


def fitting(block: Block, config: PrepareConfig, tally: Tally) -> Block:
    """The sketches of the wanted size whose primitives are possible; the others are counted by reason."""
    entities = block.table.counts + (block.left_out if config.constrained else 0)
    reasons = [
        (block.table.counts == 0, "no primitives"),
        (entities < config.min_primitives, f"fewer than {config.min_primitives} primitives"),
        (entities > config.max_primitives, f"more than {config.max_primitives} primitives"),
        (_impossible(block.table), IMPOSSIBLE),
    ]
    if config.constrained:
        reasons.append((block.constraints < entities, "fewer constraints than primitives"))
        reasons.append((block.constraints > config.max_constraints, f"more than {config.max_constraints} constraints"))
    if not config.keep_incomplete:
        reasons.append((block.left_out > 0, "an entity that is no primitive"))
    # A sketch is counted once, under the first reason that holds.
    keep = np.ones(len(entities), bool)
    for wrong, reason in reasons:
        tally.refuse(reason, int((keep & wrong).sum()))
        keep &= ~wrong
    return block.select(keep)


def frames(table: PrimitiveTable, config: PrepareConfig) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Center and scale of each sketch: what one unit of the stored sketch measures in the original."""
    box = table_bounds(table) if config.frame == "tight" else authors_bounds(table)
    low, high = box[:, :2], box[:, 2:]
    return (low + high) / 2 + 0.0, (high - low).max(axis=1, initial=0) / (2 * config.half_extent)


def normalized(table: PrimitiveTable, center: NDArray[np.float64], scale: NDArray[np.float64]) -> PrimitiveTable:
    """Every place p becomes (p − center) / scale."""
    (cx, cy), size = center[table.owner].T, scale[table.owner]
    lines = table.kind == Kind.LINE
    return replace(
        table,
        x=(table.x - cx) / size,
        y=(table.y - cy) / size,
        x2=np.where(lines, (table.x2 - cx) / size, 0.0),
        y2=np.where(lines, (table.y2 - cy) / size, 0.0),
        radius=table.radius / size,
    )


def _impossible(table: PrimitiveTable) -> NDArray[np.bool_]:
    """Sketches with a row that no `Primitive` could hold. Readers refuse these; this is the last look."""
    numbers = np.stack([table.x, table.y, table.x2, table.y2, table.radius, table.start_angle, table.sweep])
    wrong = ~(np.abs(numbers) <= LARGEST_COORDINATE).all(axis=0)
    wrong |= (table.kind == Kind.LINE) & (table.x == table.x2) & (table.y == table.y2)
    wrong |= ((table.kind == Kind.CIRCLE) | (table.kind == Kind.ARC)) & ~(table.radius > 0)
    wrong |= (table.kind == Kind.ARC) & ~((table.sweep > 0) & (table.sweep < TAU))
    return np.bincount(table.owner, wrong, table.num_sketches) > 0


def _codes(placed: PrimitiveTable, compact: Compact, config: PrepareConfig) -> NDArray[np.uint64]:
    """An integer for each row, `sketch, prim`: two sketches are duplicates when these agree."""
    if config.duplicates == "sorted":
        return row_codes(compact, config.half_extent)
    codes = np.zeros(compact.kind.shape, np.uint64)
    counts = placed.counts
    row = np.arange(len(placed)) - (np.cumsum(counts) - counts)[placed.owner]
    codes[placed.owner, row] = authors_codes(placed)
    return codes


def _keyed(
    compact: Compact,
    codes: NDArray[np.uint64],
    center: NDArray[np.float64],
    scale: NDArray[np.float64],
    origins: Origins,
    config: PrepareConfig,
) -> Candidates:
    rows = row_keys(compact)
    if config.duplicates == "sorted":
        # One order for the rows of a sketch, whatever its file had: by cell of the grid, then by exact value.
        order = np.lexsort((rows, codes), axis=-1)
        compact = compact.permuted(order)
        rows, codes = np.take_along_axis(rows, order, axis=1), np.take_along_axis(codes, order, axis=1)
    content = fold(rows)
    numbers = np.concatenate([center, scale[:, None]], axis=1)
    words = [word_keys(column) for column in origins.columns()]
    tie = fold(np.stack([*words, *numbers.T.copy().view(np.uint64)], axis=1))
    split = content
    if config.split_by == "group":
        split = np.where(np.array([g != "" for g in origins.group], bool), word_keys(origins.group), content)
    named = [name or f"{key:016x}" for name, key in zip(origins.id, content.tolist(), strict=True)]
    symmetric = np.zeros_like(content)
    if config.distinct_splits:
        symmetric = symmetric_keys(_unit(compact, config.half_extent), SAME_LEVELS)
    return Candidates(compact, center, scale, replace(origins, id=named), fold(codes), content, tie, split, symmetric)


def _unit(compact: Compact, half_extent: float) -> Compact:
    """The same sketches in a box of ±1."""
    arcs = compact.kind == Kind.ARC
    params = compact.params / np.float32(half_extent)
    params[arcs, layout.BEND] = compact.params[arcs, layout.BEND]  # an angle
    return Compact(compact.kind, compact.construction, params)
