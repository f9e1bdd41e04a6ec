"""From blocks of sketches to the selection of a corpus: filter, normalize, encode, hash, de-duplicate and split.

Every step works on all sketches of a block at once, and none depends on the order of sketches or primitives. Hashes are
64 bits and the same on every machine: two of 15 million different sketches share one with a chance of about 6 in a
million.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Kind
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.table import PrimitiveTable
from sketchdnn.representation import Compact, encode_table, layout
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.hashing import Keys, mix, pack, row_codes, symmetric_keys

from .config import SAME_LEVELS, SPLITS, PrepareConfig
from .sources import Block, Origins, Tally

TOO_FINE = "a primitive too small beside the whole for single precision"
NO_EXTENT = "no extent"
_LOW_BITS = np.uint64(0xFFFF)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Normalized sketches that may enter the corpus: point = center + scale · stored point.

    Of those with the same `duplicate` key one is kept: the smallest by `content`, then by `tie`. `content` also orders
    the corpus; `split` determines the split. `symmetric` is equal for all images of a sketch under the symmetries of
    the square, and 0 where splits need not be distinct. A sketch without an id is named by its content.
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


def make_candidates(block: Block, config: PrepareConfig, tally: Tally) -> Candidates:
    """Filter, normalize and encode the sketches of a block, and compute their keys."""
    block = filter_block(block, config, tally)
    center, scale = placements(block.table, config)
    valid = scale > 0
    tally.refuse(NO_EXTENT, int((~valid).sum()))
    block, center, scale = block.select(valid), center[valid], scale[valid]
    table = normalize_table(block.table, center, scale)
    compact = encode_table(table, canonical_lines=config.canonical_lines)
    by_rows = config.duplicates == "sorted"
    # Two sketches are duplicates if these agree; `sketch, prim`.
    codes = row_codes(compact, config.half_extent) if by_rows else _authors_codes(table, compact)

    # The keys below are those of the canonical rows, so that the selection does not depend on `order`.
    drawn = encode_table(table, canonical_lines=False) if config.order == "drawn" else None
    fine = ~collapsed(compact)
    tally.refuse(TOO_FINE, int((~fine).sum()))
    drawn = None if drawn is None else drawn[fine]
    compact, codes, center, scale = compact[fine], codes[fine], center[fine], scale[fine]
    origins = block.origins.select(fine)

    rows = row_keys(compact)
    if by_rows:
        # The rows of a sketch are sorted by grid cell, then by exact value.
        order = np.lexsort((rows, codes), axis=-1)
        compact = compact.permuted(order)
        rows, codes = np.take_along_axis(rows, order, axis=1), np.take_along_axis(codes, order, axis=1)
    content = fold_keys(rows)
    texts = [text_keys(column) for column in origins]
    tie = fold_keys(np.stack([*texts, *np.stack([*center.T, scale]).view(np.uint64)], axis=1))
    split = content
    if config.split_by == "group":
        split = np.where(np.array([g != "" for g in origins.group], bool), text_keys(origins.group), content)
    symmetric = np.zeros_like(content)
    if config.distinct_splits:
        symmetric = symmetric_keys(_unit(compact, config.half_extent), SAME_LEVELS)
    if drawn is not None:
        # For sketches that differ in their order alone: the choice must not depend on the order of the input.
        tie, compact = tie & ~_LOW_BITS | fold_keys(row_keys(drawn)) & _LOW_BITS, drawn
    names = [name or f"{key:016x}" for name, key in zip(origins.id, content.tolist(), strict=True)]
    origins = origins._replace(id=names)
    return Candidates(compact, center, scale, origins, fold_keys(codes), content, tie, split, symmetric)


def filter_block(block: Block, config: PrepareConfig, tally: Tally) -> Block:
    """The sketches that the settings admit; the others are counted by reason."""
    entities, limit = block.table.counts + config.constrained * block.dropped, config.max_constraints
    reasons = [
        (block.table.counts == 0, "no primitives"),
        (entities < config.min_primitives, f"fewer than {config.min_primitives} primitives"),
        (entities > config.max_primitives, f"more than {config.max_primitives} primitives"),
        (config.constrained & (block.constraints < entities), "fewer constraints than primitives"),
        (config.constrained & (block.constraints > limit), f"more than {limit} constraints"),
        ((not config.keep_incomplete) & (block.dropped > 0), "an entity that is no primitive"),
    ]
    # A sketch is counted under the first reason that applies.
    keep = np.ones(len(entities), bool)
    for wrong, reason in reasons:
        tally.refuse(reason, int((keep & wrong).sum()))
        keep &= ~wrong
    return block.select(keep)


def placements(table: PrimitiveTable, config: PrepareConfig) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The center and scale of each sketch; the scale is the length of one stored unit in the original."""
    box = table_bounds(table) if config.frame == "tight" else _authors_bounds(table)
    low, high = box[:, :2], box[:, 2:]
    return (low + high) / 2 + 0.0, (high - low).max(axis=1, initial=0) / (2 * config.half_extent)


def normalize_table(table: PrimitiveTable, center: NDArray[np.float64], scale: NDArray[np.float64]) -> PrimitiveTable:
    """Every point p becomes (p − center) / scale."""
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


def _unit(compact: Compact, half_extent: float) -> Compact:
    """The same sketches scaled to a box of ±1."""
    params = compact.params / np.float32(half_extent)
    params[..., layout.BEND] = compact.params[..., layout.BEND]  # the angle of an arc, else zero
    return replace(compact, params=params)


LEVELS = 256


def _authors_bounds(table: PrimitiveTable) -> NDArray[np.float64]:
    """Low x, low y, high x, high y of each sketch, as in the authors' code.

    Their rows hold the parameters of every kind, zero where unused, and all are counted: the box always includes the
    origin. Arcs count by their whole circle.
    """
    at = np.stack([table.x, table.y], axis=1)
    # The radius of a line is zero, and x2, y2 of the other kinds are zeros, which count too.
    other = np.stack([table.x2, table.y2], axis=1)
    reach = table.radius[:, None]
    box = np.zeros((table.num_sketches, 4))
    np.minimum.at(box[:, :2], table.owner, np.minimum(at - reach, other))
    np.maximum.at(box[:, 2:], table.owner, np.maximum(at + reach, other))
    return box


def _authors_codes(table: PrimitiveTable, compact: Compact) -> NDArray[np.uint64]:
    """Each primitive as one integer, as in the authors' code: its numbers on 256 levels between the row's extremes.

    The row holds a one-hot kind and flag, and zeros in unused columns, so its minimum is at most 0 and its maximum at
    least 1; the levels of 0 and 1 are part of the code. An arc is center, radius and two angles in turns.
    """
    arc = table.kind == Kind.ARC
    third = np.where(arc | (table.kind == Kind.CIRCLE), table.radius, table.x2)
    fourth = np.where(arc, (table.start_angle % TAU) / TAU, table.y2)
    fifth = np.where(arc, ((table.start_angle + table.sweep) % TAU) / TAU, 0.0)
    zeros, ones = np.zeros(len(table)), np.ones(len(table))
    numbers = np.stack([table.x, table.y, third, fourth, fifth, zeros, ones], axis=1).astype(np.float32)
    low, high = numbers.min(axis=1, keepdims=True), numbers.max(axis=1, keepdims=True)
    levels = np.rint((numbers - low) / (high - low + np.float32(1e-8)) * np.float32(LEVELS - 1))
    codes = np.zeros(compact.kind.shape, np.uint64)
    codes[compact.kind != layout.NONE] = pack(table.kind, table.construction, levels.astype(np.uint64))
    return codes


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept candidates in the order of the corpus: their index, and the number of their split.

    `group_sizes` counts the groups of duplicates by size. `repeated` counts, by split, the sketches that were left out
    because an earlier split has a symmetric image.
    """

    index: NDArray[np.int64]
    split: NDArray[np.int8]
    group_sizes: Counter[int]
    repeated: dict[str, int]

    def __len__(self) -> int:
        return len(self.index)

    def count(self, split: str) -> int:
        """The number of sketches of a split."""
        return int((self.split == SPLITS.index(split)).sum())


def select_candidates(keys: NDArray[np.uint64], config: PrepareConfig) -> Selection:
    """The smallest of each group of duplicates by content and tie, ordered by split, content and tie.

    `keys` are those of `Candidates`, `key, candidate`. The result does not depend on the order of the candidates.
    """
    duplicate, content, tie, split, symmetric = keys
    by_group = np.lexsort((tie, content, duplicate))
    first = np.flatnonzero(np.diff(duplicate[by_group], prepend=~duplicate[by_group[:1]]))
    sizes = np.diff(first, append=len(by_group))
    selected = by_group[first]
    split_number = assign_splits(split[selected], config)
    repeats = np.zeros(len(selected), bool)
    for number in range(1, len(SPLITS) if config.distinct_splits else 1):
        is_here, is_earlier = split_number == number, split_number < number
        repeats[is_here] = np.isin(symmetric[selected[is_here]], symmetric[selected[is_earlier]])
    repeated = {name: int((repeats & (split_number == number)).sum()) for number, name in enumerate(SPLITS)}
    selected, split_number = selected[~repeats], split_number[~repeats]
    order = np.lexsort((tie[selected], content[selected], split_number))
    group_sizes = Counter(dict(zip(*(c.tolist() for c in np.unique(sizes, return_counts=True)), strict=True)))
    return Selection(selected[order].astype(np.int64), split_number[order], group_sizes, repeated)


def assign_splits(keys: Keys, config: PrepareConfig) -> NDArray[np.int8]:
    """The number of the split of each key. Adding sketches to a corpus does not move the others."""
    seed = mix(np.array([config.split_seed], np.uint64))
    uniform = mix(keys ^ seed) / 2.0**64  # a pseudo-random number in [0, 1) for each key
    return np.searchsorted(np.cumsum(config.fractions)[:-1], uniform, side="right").astype(np.int8)


def fold_keys(columns: NDArray[np.uint64]) -> Keys:
    """A key for each sequence of numbers along the last axis."""
    key = np.zeros(columns.shape[:-1], np.uint64)
    for column in range(columns.shape[-1]):
        key = mix(key ^ columns[..., column])
    return key


def row_keys(compact: Compact) -> NDArray[np.uint64]:
    """A key for each row at full precision."""
    numbers = (compact.params + np.float32(0)).view(np.uint32).astype(np.uint64)  # + 0 turns −0 into 0
    labels = compact.kind.astype(np.uint64) << np.uint64(1) | compact.construction
    return fold_keys(np.concatenate([numbers, labels[..., None]], axis=-1))


def text_keys(texts: Sequence[str]) -> Keys:
    """A key for each text."""
    distinct, index = np.unique(np.array(texts, object), return_inverse=True)
    digests = [hashlib.blake2b(t.encode(errors="backslashreplace"), digest_size=8).digest() for t in distinct]
    return np.frombuffer(b"".join(digests), "<u8")[index].astype(np.uint64)
