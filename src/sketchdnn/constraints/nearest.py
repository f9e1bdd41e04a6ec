"""Equations solved: from where a sketch is drawn to the nearest numbers that satisfy them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv, dtrtrs
from scipy.sparse.linalg import splu

from .blocks import Block
from .rank import VOID, adds, orthonormal, seem_new
from .system import System
from .variables import Floats, Ints

# An equation that is missed by less, in parts of the sketch's size or in radians, holds.
HOLDS = 1e-9
# A constraint that the others already demand to within this share of itself says nothing of its own.
_REDUNDANT = 1e-6
# What constraints are missed by after they were solved together, if they contradict each other.
_CONFLICT = 1e-7
_STEPS = 30
# A step so long, in sizes of the sketch, leads nowhere.
_FAR = 3.0
# More equations than this are solved with sparse matrices, and what contradicts is looked for a few times only.
_MANY = 300
_ROUNDS = 6
# What others demand already, where the sketch is drawn, to within this share of itself may follow from them.
_SEEMS_NEW = 0.02


@dataclass(frozen=True, slots=True)
class Nearest:
    """Steps z that solve a block; `rows` are its independent equations. What they missed `before`, and still do."""

    z: Floats
    rows: list[int]
    before: float
    residual: float
    redundant: set[int] = field(default_factory=set)
    conflicting: set[int] = field(default_factory=set)


def nearest(block: Block, begin: Floats | None = None) -> Nearest:
    """Solve a block, leaving out what contradicts; from a solution to begin with, where there is one.

    First as if what seems to follow from others, where the sketch is drawn, does: mostly it turns out to.
    """
    system, z = block.system, np.zeros(block.system.free)
    if not len(system):
        return Nearest(np.zeros(len(block.columns)), [], 0.0, 0.0)
    missed, rows = system.evaluate(z)
    before = _largest(missed)
    chosen = seem_new(rows, _SEEMS_NEW)
    some = system if len(chosen) == len(system) else system.take(chosen)
    z = toward(some, z if begin is None else begin, steps=25)
    missed, rows = system.evaluate(z)
    if _largest(missed) <= HOLDS and _spans(rows, chosen):
        new = chosen.tolist()
        useful = {block.owners[i] for i in new}
        redundant = {owner for owner in block.owners if owner >= 0 and owner not in useful}
        return Nearest(z, new, before, _largest(missed), redundant)
    open_rows = np.flatnonzero(system.steps.any(axis=(0, 2)) | (np.abs(missed) > _CONFLICT)).tolist()
    if len(open_rows) < len(system):
        return _without_rounding(block, open_rows, begin)
    return _without_conflicts(block, before)


def _without_rounding(block: Block, open_rows: list[int], begin: Floats | None) -> Nearest:
    """Solve a block without those of its equations that have no free number and hold but for rounding."""
    owners = [block.owners[i] for i in open_rows]
    found = nearest(replace(block, system=block.system.take(open_rows), owners=owners), begin)
    redundant = found.redundant | {o for o in block.owners if o >= 0 and o not in owners}
    return replace(found, rows=[open_rows[i] for i in found.rows], redundant=redundant)


def _spans(rows: Floats, chosen: Ints) -> bool:
    """Whether the chosen rows are independent, and the others follow from them."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not len(chosen):
        return _largest(length) <= VOID
    q, r = orthonormal(rows[chosen])
    if (np.abs(r.diagonal()) <= _REDUNDANT * length[chosen]).any():
        return False
    if len(chosen) == len(rows):
        return True
    rest = rows - (rows @ q) @ q.T
    return bool((np.einsum("ij,ij->i", rest, rest) <= (_REDUNDANT * np.maximum(length, VOID)) ** 2).all())


def toward(system: System, z: Floats, steps: int = 40) -> Floats:
    """From numbers near a solution of independent equations to the one nearest to the drawing.

    Each step solves the equations to first order, and goes back along them toward the drawing: further or less far than
    the way is long, by how much the step before fell short or beyond where the equations are curved.
    """
    if not len(system):
        return np.zeros_like(z)
    stride, ahead = 1.0, np.zeros_like(z)
    for step in range(steps):
        c, j = system.evaluate(z)
        undo = _least(j)
        if undo is None:
            return z
        back = undo(j @ z) - z
        before = float(ahead @ ahead)
        if before:
            stride = min(max(stride / max(1 - float(back @ ahead) / before, 0.1), 0.1), 4.0)
        ahead = back
        change = (stride * back if step < steps - 2 else 0.0) - undo(c)  # the last steps only polish
        size = float(np.abs(change).max())
        if not size < _FAR:
            return z
        z = z + change
        if size < HOLDS / 100:
            break
    return z


def _least(j: Floats) -> Callable[[Floats], Floats] | None:
    """The shortest step that changes equations with the derivatives j by given amounts; None if there may be none."""
    if len(j) > _MANY:
        rows = sparse.csr_matrix(j)
        normal = (rows @ rows.T).tocsc()
        lu = splu((normal + 1e-13 * normal.diagonal().max() * sparse.identity(len(j), format="csc")).tocsc())
        return lambda by: np.asarray(rows.T @ lu.solve(by))
    q, r = orthonormal(j)
    if not r.diagonal().all():
        return None
    return lambda by: np.asarray(q @ dtrtrs(r[: len(j)], by, trans=1)[0])


@np.errstate(over="ignore", invalid="ignore")  # what is missed by more than numbers can say is missed
def settle(system: System, z: Floats, steps: int = _STEPS, enough: float = HOLDS / 10) -> tuple[Floats, Floats, Floats]:
    """Numbers near z that satisfy the equations as well as can be, whatever their rank, by how much they are missed
    there, and their derivatives: damped least squares.
    """
    c, j = system.evaluate(z)
    missed, damping = float(c @ c), 1e-7
    for _ in range(steps):
        if not len(c) or _largest(c) < enough:
            break
        along, info = _damped(j, c, damping)
        after = z - j.T @ along
        c_after, j_after = system.evaluate(after)
        now = float(c_after @ c_after)
        if info or not now < missed:
            damping *= 100
            if damping > 1e4:
                break
            continue
        z, c, j, missed, damping = after, c_after, j_after, now, max(damping / 10, 1e-12)
    return z, c, j


def _damped(j: Floats, c: Floats, damping: float) -> tuple[Floats, int]:
    """(j jᵀ + damping)⁻¹ c, and 0 if it could be found."""
    if len(j) > _MANY:
        rows = sparse.csr_matrix(j)
        squares = (rows @ rows.T).tocsc()
        damped = squares + sparse.diags(damping * (1 + squares.diagonal()), format="csc")
        return np.asarray(splu(damped.tocsc()).solve(c)), 0
    normal = j @ j.T
    normal.flat[:: len(normal) + 1] += damping * (1 + normal.diagonal())
    _, along, info = dposv(normal, c)
    return along, info


def _without_conflicts(block: Block, before: float) -> Nearest:
    """Where everything holds together, rank alone tells what is redundant. Otherwise a constraint that adds no rank and
    is missed contradicts those before it; it is set aside, and the rest is solved anew.
    """
    conflicting: set[int] = set()
    kept = list(range(len(block.owners)))
    z = np.zeros(block.system.free)
    of_row: list[bool] = []
    for _ in range(len(set(block.owners)) + 1 if len(block.owners) <= _MANY else _ROUNDS):
        kept = [i for i, owner in enumerate(block.owners) if owner not in conflicting]
        if not kept:
            break
        system = block.system.take(kept)
        z, c, j = settle(system, np.zeros_like(z))
        of_row = adds(j, _REDUNDANT) if len(j) <= _MANY else _in(seem_new(j, _REDUNDANT), len(j))
        if _largest(c) <= _CONFLICT:
            break
        owners = [block.owners[i] for i in kept]
        missed = {o for o, new, by in zip(owners, of_row, c, strict=True) if o >= 0 and not new and abs(by) > _CONFLICT}
        worst = [(abs(by), o) for by, o in zip(c, owners, strict=True) if o >= 0]
        if not worst:
            break
        last = max(missed) if missed else max(worst)[1]
        conflicting |= missed if missed and len(j) > _MANY else {last}
    rows = [i for i, new in zip(kept, of_row, strict=False) if new]
    useful = {block.owners[i] for i in rows}
    redundant = {o for o in block.owners if o >= 0} - useful - conflicting
    if not rows:
        return Nearest(np.zeros_like(z), rows, before, 0.0, redundant, conflicting)
    system = block.system.take(kept)
    found, c, _ = settle(system, toward(block.system.take(rows), z), enough=HOLDS / 100)
    if _largest(c) > HOLDS:  # a solution that is not the nearest is better than none
        found, c, _ = settle(system, z, enough=HOLDS / 100)
    return Nearest(found, rows, before, _largest(c), redundant, conflicting)


def _in(chosen: Ints, count: int) -> list[bool]:
    mask = np.zeros(count, dtype=bool)
    mask[chosen] = True
    return mask.tolist()


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
