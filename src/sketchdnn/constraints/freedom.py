"""What of a sketch can still move, primitive by primitive.

A sketch that nothing ties to the origin, an axis or a fixed primitive can always slide and turn as a whole. That does
not count, unless the sketch is very large: the primitives that are stiff against most others stand still, and the
others are free as far as they move against those.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .sharing import Slots
from .variables import Floats, Ints, Variables

# The square of a motion that is only rounding, of motions of length one.
_STILL = 1e-11
# Of more primitives than this, that the whole sketch can slide and turn does count.
_MOST_TOGETHER = 150


class Freedom(StrEnum):
    """How much of a primitive can still move; `OVER` takes part in a constraint that contradicts or repeats others."""

    FIXED = "fixed"
    PART = "partly"
    FREE = "free"
    OVER = "over"


def freedoms(variables: Variables, f: Floats, slots: Slots, held: Sequence[tuple[Ints, Floats]]) -> list[Freedom]:
    """The freedom of each primitive where the sketch is at `f`.

    `held` says which steps are not free, piece by piece: the numbers that occur in a piece, and orthonormal columns.
    """
    count, last = len(variables.primitives), len(slots.start)
    rows = variables.rows
    slot = np.append(slots.slot, last)[rows]
    root = np.append(slots.root, np.full(last + 1 - slots.free, np.inf))  # constants do not move
    free = (slot[:, :, None] == slot[:, None, :]) / (root[slot][:, :, None] * root[slot][:, None, :])
    for columns, q in held:
        local = np.full(last + 1, len(columns))
        local[columns] = np.arange(len(columns))
        here = np.flatnonzero((local[slot] < len(columns)).any(axis=1))
        part = np.append(q / slots.root[columns, None], np.zeros((1, q.shape[1])), axis=0)[local[slot[here]]]
        free[here] -= part @ part.transpose(0, 2, 1)
    still = np.trace(free, axis1=1, axis2=2) <= _STILL
    if count <= _MOST_TOGETHER and not still.any():
        still = _still_together(variables, f, slots, held)
    ways = (np.linalg.eigvalsh(free) > _STILL).sum(axis=1)
    most = np.array([0, 0, 2, 3, 4, 0, 0, 5])[(rows < len(f)).sum(axis=1)]
    return [
        Freedom.FIXED if is_still else Freedom.FREE if is_free else Freedom.PART
        for is_still, is_free in zip(still.tolist(), (ways == most).tolist(), strict=True)
    ]


def named(freedom: Sequence[Freedom], words: Sequence[str]) -> str:
    """A sentence on what is not settled, or that all is.

    >>> named([Freedom.FIXED, Freedom.PART, Freedom.FREE], ["line", "arc", "circle"])
    'arc 1 can partly move; circle 2 is free'
    """
    said = {
        Freedom.OVER: ("is constrained too much", "are constrained too much"),
        Freedom.PART: ("can partly move", "can partly move"),
        Freedom.FREE: ("is free", "are free"),
    }
    sentences = []
    for kind, (one, many) in said.items():
        who = [f"{word} {i}" for i, (word, f) in enumerate(zip(words, freedom, strict=True)) if f is kind]
        if who:
            listed = who[0] if len(who) == 1 else f"{', '.join(who[:-1])} and {who[-1]}"
            sentences.append(f"{listed} {one if len(who) == 1 else many}")
    return "; ".join(sentences) or "everything is settled"


def _still_together(
    variables: Variables, f: Floats, slots: Slots, held: Sequence[tuple[Ints, Floats]]
) -> NDArray[np.bool_]:
    """Which primitives move only with the whole sketch, if that can move."""
    steps = np.zeros((len(slots.start), len(slots.start)))
    steps.flat[: slots.free * (len(slots.start) + 1) : len(slots.start) + 1] = 1.0
    for columns, q in held:
        steps[np.ix_(columns, columns)] -= q @ q.T
    steps[: slots.free, : slots.free] /= slots.root[:, None] * slots.root
    free = np.zeros((len(f) + 1, len(f) + 1))
    free[:-1, :-1] = steps[slots.slot[:, None], slots.slot]
    basis = np.zeros((len(f), 3))  # sliding, and turning about the middle of all places
    x, y = slice(0, 2 * variables.count, 2), slice(1, 2 * variables.count, 2)
    basis[x, 0] = basis[y, 1] = variables.count**-0.5
    basis[x, 2], basis[y, 2] = f[y].mean() - f[y], f[x] - f[x].mean()
    basis[:, 2] /= max(float(np.linalg.norm(basis[:, 2])), _STILL)
    size, turn = np.linalg.eigh(basis.T @ free[:-1, :-1] @ basis)
    whole = basis @ turn[:, size > 1 - _STILL]  # as far as the sketch can
    if not whole.shape[1]:
        return np.zeros(len(variables.rows), dtype=bool)
    return _still(free, np.append(whole, np.zeros((1, whole.shape[1])), axis=0), variables.rows)


def _still(free: Floats, whole: Floats, rows: Ints) -> NDArray[np.bool_]:
    """Which primitives stand still when one is held, the one that holds most others: with any of them, if several do.

    To hold one is to leave out what it does of the rigid motions.
    """
    parts = whole[rows]
    held = free[:, rows].transpose(1, 0, 2) @ parts  # for each one held, what everything does in its rigid motions
    size, turn = np.linalg.eigh(parts.transpose(0, 2, 1) @ held[np.arange(len(rows))[:, None], rows])
    weight = np.where(size > _STILL, 1 / np.sqrt(np.maximum(size, _STILL)), 0.0)
    left = np.diagonal(free) - ((held @ (turn * weight[:, None, :])) ** 2).sum(axis=2)
    still = left[:, rows].sum(axis=2) <= _STILL
    count = still.sum(axis=1)
    chosen: NDArray[np.bool_] = still[count == count.max()].any(axis=0)
    return chosen
