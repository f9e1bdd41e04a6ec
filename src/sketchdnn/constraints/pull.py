"""Pull some variables toward goals along the solutions of equations, while the others move as little as possible.

The sum of the squared distances from the goals, times a large weight, and of the squared moves of all variables is
minimized subject to the equations: sequential quadratic programming with exact second derivatives, in the null space
of the equations' derivatives. Each step is short, and leads back to a solution, so the result is connected to where it
started by a path of solutions: nothing flips over.

Sizes (lengths, radii) have a lower limit. A size that reaches it is held there by one more equation, until it is
pulled away from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqrf, dorgqr, dposv, dtrtrs

from .curvature import curvature
from .equations import System, outside
from .variables import Floats

# How much more a goal counts than a move.
_WEIGHT = 1e6
# The same while a step is led back to a solution.
_CORRECTION_WEIGHT = 1e3
# The longest step of a variable, in sizes of the sketch; of a goal that is far away, in half of its distance.
_LONGEST = 0.25
_MAX_STEPS = 30
_MAX_CORRECTIONS = 8
# Equations with smaller residuals hold; shorter steps change nothing.
_HOLDS = 1e-12
_STILL = 1e-10
# Steps along which the sum hardly changes are not longer than a step of this stiffness.
_LEAST_STIFFNESS = 0.3
# A stiffness below this, relative to the largest, means that the start is a maximum in that direction.
_MAXIMUM = -1e-6
_NUDGE = 0.02
# A size of which a smaller share is free follows from what is held.
_DEPENDENT = 1e-4
# A size is released if it is pulled away from its limit by more than this, and not more often than that.
_RELEASE = 1e-9
_MAX_RELEASED = 8
# A goal that is missed by less, in sizes of the sketch, is reached exactly if there is such a solution.
_NEARLY = 1e-3


class Pull(NamedTuple):
    """Goals for weighted sums of variables: rows @ z should become `goals`."""

    rows: Floats
    goals: Floats

    def misses(self, z: Floats) -> Floats:
        return np.asarray(self.rows @ z - self.goals)


class Pulled(NamedTuple):
    """The variables, and which sizes stopped at their limit."""

    z: Floats
    stopped: tuple[int, ...]


class _Basis(NamedTuple):
    """Derivatives as jᵀ = range_ r, and the null space; both as orthonormal columns."""

    range_: Floats
    r: Floats
    null: Floats

    @classmethod
    def of(cls, j: Floats) -> _Basis:
        m, n = j.shape
        if not m:
            return cls(np.zeros((n, 0)), np.zeros((0, 0)), np.eye(n))
        square = np.zeros((n, n), order="F")
        square[:, :m] = j.T
        r, tau, _, _ = dgeqrf(square)
        q, _, _ = dorgqr(r, tau)
        return cls(q[:, :m], r[:m, :m], q[:, m:])

    def multipliers(self, gradient: Floats) -> Floats:
        """The weights with which the derivatives add up to minus the gradient, as far as possible."""
        if not len(self.r):
            return np.zeros(0)
        return -np.asarray(dtrtrs(self.r, self.range_.T @ gradient)[0])


def pull(system: System, sizes: System, z: Floats, goal: Pull) -> Pulled:
    """Pull variables toward goals.

    Args:
        system: Independent equations, which hold at z.
        sizes: Their residuals are sizes less their limits, which stay above zero.
        z: The variables.
        goal: The goals.

    Returns:
        The variables, for which the equations hold.
    """
    search = _Search(system, sizes, z, goal)
    for _ in range(_MAX_STEPS):
        if not search.step():
            break
    search.reach_exactly()
    return Pulled(search.z, tuple(sorted(search.held)))


class _Search:
    """The state of a pull: where the variables are, and which sizes are held at their limit."""

    def __init__(self, system: System, sizes: System, z: Floats, goal: Pull) -> None:
        self.system, self.sizes, self.z, self.start, self.goal = system, sizes, z, z.copy(), goal
        self.held: list[int] = []
        self.longest = _LONGEST
        self.nudged = False
        self.num_released = 0
        self.stiffness = _WEIGHT * goal.rows.T @ goal.rows
        # The inverse of 1 + weight · rowsᵀ rows.
        small = np.eye(len(goal.rows)) / _CORRECTION_WEIGHT + goal.rows @ goal.rows.T
        self.yielding = np.eye(len(z)) - goal.rows.T @ np.linalg.solve(small, goal.rows)

    def cost(self, z: Floats) -> float:
        missed, moved = self.goal.misses(z), z - self.start
        return float(_WEIGHT * (missed @ missed) + moved @ moved)

    def step(self) -> bool:
        """Make one step; whether there is another to make."""
        equations = self._equations()
        basis = _Basis.of(equations.evaluate(self.z)[1])
        gradient = _WEIGHT * self.goal.rows.T @ self.goal.misses(self.z) + self.z - self.start
        multipliers = basis.multipliers(gradient)
        along = self._newton_step(equations, basis, gradient, multipliers) if basis.null.shape[1] else None
        if along is not None and self._advance(along):
            return True
        # At a minimum along the limits: the size that is pulled away most from its own is released.
        pulls = multipliers[len(self.system) :]
        if not (pulls > _RELEASE).any() or self.num_released == _MAX_RELEASED:
            return False
        self.num_released += 1
        self.longest = _LONGEST
        del self.held[int(np.argmax(pulls))]
        return True

    def _equations(self, held: list[int] | None = None) -> System:
        held = self.held if held is None else held
        return self.system.concatenate(self.sizes.take(held)) if held else self.system

    def _newton_step(self, equations: System, basis: _Basis, gradient: Floats, multipliers: Floats) -> Floats | None:
        """The step to the minimum of the quadratic approximation, along the null space; None at a minimum."""
        null = basis.null
        hessian = null.T @ self.stiffness @ null + np.eye(null.shape[1])
        if len(equations):
            hessian += curvature(equations, self.z, multipliers, null)
        values, directions = np.linalg.eigh(hessian)
        slope = directions.T @ (null.T @ gradient)
        by = -slope / np.maximum(np.abs(values), _LEAST_STIFFNESS)
        if np.abs(by).max() < _STILL:
            if self.nudged or values[0] >= _MAXIMUM * max(values[-1], 1.0):
                return None
            self.nudged = True
            by[0] = _NUDGE
        return np.asarray(null @ (directions @ by))

    def _advance(self, along: Floats) -> bool:
        """Go along a direction as far as the cost falls and sizes allow; whether that moved anything."""
        reach = float(np.abs(along).max())
        unit = max(1.0, 2 * float(np.abs(self.goal.misses(self.z)).max()))
        while True:
            length = min(reach, self.longest * unit)
            move = along * (length / reach)
            share, blocking = self._free_share(self.z, self.z + move)
            held = self.held if blocking is None else self._with_held([blocking])
            after = self._try(self.z + share * move, held, length)
            if after is not None:
                has_moved = float(np.abs(after - self.z).max()) >= _STILL
                is_new = len(self.held) < len(held)
                self.z, self.held, self.longest = after, held, min(4 * length / unit, _LONGEST)
                return has_moved or is_new
            self.longest = length / unit / 4
            if length < _STILL:
                return False

    def _with_held(self, added: list[int]) -> list[int]:
        """The sizes that are held and further ones, without those that follow from the equations and the others."""
        held = list(self.held)
        for k in added:
            rows = self._equations([*held, k]).evaluate(self.z)[1]
            rest = outside(rows[-1], _Basis.of(rows[:-1]).range_.T)
            if float(rest @ rest) > _DEPENDENT**2 * float(rows[-1] @ rows[-1]):
                held.append(k)
        return held

    def _try(self, z: Floats, held: list[int], length: float) -> Floats | None:
        """The solution near the end of a step of some length; None if that is no better than before.

        Sizes that fell below their limit are added to `held`.
        """
        after = self._corrected(z, held)
        if after is None or float(np.abs(after - z).max()) > 0.5 * length:
            return None
        if self._free_share(self.z, after, 0.5)[1] is not None:
            return None
        low = [k for k in np.flatnonzero(self._sizes(after) < 0).tolist() if k not in held]
        if low:
            held[:] = self._with_held([*held[len(self.held) :], *low])
            after = self._corrected(after, held)
        is_better = after is not None and (len(held) > len(self.held) or self.cost(after) < self.cost(self.z))
        return after if is_better else None

    def _free_share(self, a: Floats, b: Floats, limits: float = 1.0) -> tuple[float, int | None]:
        """The share of the way from a to b that no size blocks, and the size that blocks the rest.

        A size that is held is not asked: its equation holds it.
        """
        if not len(self.sizes):
            return 1.0, None
        share = _blocked_share(self.sizes, a, b, limits)
        share[self.held] = np.inf
        blocking = int(np.argmin(share))
        return (1.0, None) if share[blocking] >= 1.0 else (max(float(share[blocking]), 0.0), blocking)

    def _sizes(self, z: Floats) -> Floats:
        """The sizes less their limits."""
        return np.asarray(np.abs(_vectors(self.sizes, z)) + self.sizes.base[4])

    def _corrected(self, z: Floats, held: list[int]) -> Floats | None:
        """The solution near z, found mostly by variables that have no goal; None if there is none near."""
        equations = self._equations(held)
        if not len(equations):
            return z
        for _ in range(_MAX_CORRECTIONS):
            residuals, rows = equations.evaluate(z)
            if float(np.abs(residuals).max()) <= _HOLDS:
                return z
            along = rows @ self.yielding
            _, by, info = dposv(along @ rows.T, residuals)
            if info:
                return None
            z = z - along.T @ by
        return z if float(np.abs(equations.evaluate(z)[0]).max()) <= 10 * _HOLDS else None

    def reach_exactly(self) -> None:
        """Reach a goal that is missed by very little, if there is a solution at the goal."""
        missed = self.goal.misses(self.z)
        if not 0 < float(np.abs(missed).max()) < _NEARLY:
            return
        equations, z = self._equations(), self.z
        for _ in range(3):
            residuals, rows = equations.evaluate(z)
            both = np.concatenate([rows, self.goal.rows])
            shortest, *_ = np.linalg.lstsq(both, np.concatenate([residuals, self.goal.misses(z)]), rcond=1e-9)
            z = z - shortest
        residuals = np.concatenate([equations.evaluate(z)[0], self.goal.misses(z)])
        if float(np.abs(residuals).max()) <= 10 * _HOLDS and self._free_share(self.z, z)[0] == 1.0:
            self.z = z


def keeps_sizes(sizes: System, a: Floats, b: Floats) -> bool:
    """Whether no size becomes less than half of its limit on the way from a to b."""
    return not len(sizes) or float(_blocked_share(sizes, a, b, 0.5).min()) >= 1.0


def _vectors(sizes: System, z: Floats) -> NDArray[np.complex128]:
    x, y = sizes.base[:2] + sizes.steps[:2] @ z
    return np.asarray(x + 1j * y)


def _blocked_share(sizes: System, a: Floats, b: Floats, limits: float) -> Floats:
    """For each size, the share s of the way from a to b where it falls to its limit times a factor."""
    first = _vectors(sizes, a)
    change = _vectors(sizes, b) - first
    # |first + s · change| is the limit.
    squares, half = np.abs(change) ** 2, (first.conj() * change).real
    rest = np.abs(first) ** 2 - (limits * sizes.base[4]) ** 2
    root = np.sqrt(np.maximum(half * half - squares * rest, 0.0))
    return np.where((half < 0) & (root > 0), (-half - root) / np.maximum(squares, 1e-300), np.inf)
