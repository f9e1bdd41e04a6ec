"""Equations, and all their derivatives at once.

Every relation we know is one shape: two vectors v and w, each a sum of places, joined by a form (how far w reaches off
the direction of v, the sine between them, the difference of their lengths), plus a sum of features. So a whole sketch's
constraints are five constant matrices, and no relation needs a derivative of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from .sharing import Slots
from .variables import Floats, Ints

Sum = tuple[tuple[int, float], ...]
_TINY = 1e-12
_FORMS = np.array([[1], [2], [3]])  # offsets, sines and lengths


class Form(IntEnum):
    """How v and w are joined: not at all, v̂ × w, v̂ × ŵ, |v| − |w|."""

    NONE = 0
    OFFSET = 1
    SINE = 2
    LENGTHS = 3


class Equation(NamedTuple):
    """form(v, w) + linear − constant = 0; v and w sum places, `linear` sums features; w is turned by `turn` first,
    given as a cosine and a sine.
    """

    form: Form
    v: Sum = ()
    w: Sum = ()
    linear: Sum = ()
    constant: float = 0.0
    turn: tuple[float, float] = (1.0, 0.0)


class System:
    """Equations as matrices: vx, vy, wx, wy and the linear part of each are `base` + `steps` z.

    `kind` says which equations are offsets, sines and lengths, as ones and zeros.
    """

    def __init__(self, base: Floats, steps: Floats, kind: Floats) -> None:
        self.base, self.steps, self.kind = base, steps, kind

    def __len__(self) -> int:
        return int(self.base.shape[1])

    @property
    def free(self) -> int:
        """How many numbers there are to choose."""
        return int(self.steps.shape[2])

    def take(self, rows: Sequence[int] | Ints) -> System:
        """Some of the equations."""
        chosen = np.asarray(rows, dtype=int)
        return System(self.base[:, chosen], self.steps[:, chosen], self.kind[:, chosen])

    def and_(self, other: System) -> System:
        """These equations and others."""
        return System(
            np.concatenate([self.base, other.base], axis=1),
            np.concatenate([self.steps, other.steps], axis=1),
            np.concatenate([self.kind, other.kind], axis=1),
        )

    def evaluate(self, z: Floats) -> tuple[Floats, Floats]:
        """By how much each equation is missed, and its derivatives by z. Vectors are complex numbers here."""
        five = self.base + self.steps @ z
        v, w = five[0] + 1j * five[1], five[2] + 1j * five[3]
        long, wide = np.abs(v), np.abs(w)
        v_length, w_length = np.maximum(long, _TINY), np.maximum(wide, _TINY)
        u, t = v / v_length, w / w_length
        offset, sine, lengths = self.kind
        angle = u.conj() * t
        reach = offset * wide + sine
        missed: Floats = five[4] + reach * angle.imag + lengths * (long - wide)
        by_v = u * (lengths - 1j * (reach * angle.real / v_length))
        by_w = 1j * offset * u + t * (1j * (sine * angle.real / w_length) - lengths)
        by = np.array([by_v.real, by_v.imag, by_w.real, by_w.imag])
        rows: Floats = np.einsum("bi,bij->ij", by, self.steps[:4]) + self.steps[4]
        return missed, rows


def build(equations: Sequence[Equation], slots: Slots) -> System:
    """The matrices of some equations."""
    m, width = len(equations), len(slots.start)
    forms, vs, ws, linears, constants, turns = zip(*equations, strict=True) if m else ((),) * 6
    iv, kv, v = _terms(vs)
    iw, kw, w = _terms(ws)
    il, kl, linear = _terms(linears)
    kv, kw = 2 * kv, 2 * kw
    cos, sin = np.array(turns).reshape(-1, 2)[iw].T * w
    rows = np.concatenate([iv, m + iv, 2 * m + iw, 2 * m + iw, 3 * m + iw, 3 * m + iw, 4 * m + il])
    columns = np.concatenate([kv, kv + 1, kw, kw + 1, kw, kw + 1, kl])
    weights = np.concatenate([v, v, cos, -sin, sin, cos, linear])
    vectors = np.bincount(rows * width + slots.slot[columns], weights, 5 * m * width).reshape(5, m, width)
    base = vectors @ slots.start
    base[4] -= constants
    kind = (np.array(forms, dtype=int) == _FORMS).astype(float)
    return System(base, vectors[:, :, : slots.free] / slots.root, kind)


def _terms(sums: Sequence[Sum]) -> tuple[Ints, Ints, Floats]:
    """All terms of sums: which sum each is of, what it takes, and its weight."""
    counts = [len(terms) for terms in sums]
    what = [k for terms in sums for k, _ in terms]
    weights = [weight for terms in sums for _, weight in terms]
    return np.arange(len(counts)).repeat(counts), np.array(what, dtype=int), np.array(weights, dtype=float)


def missed(equation: Equation, f: Floats) -> float:
    """By how much one equation is missed where the features are `f`."""
    (vx, vy), (wx, wy) = (_sum(terms, f) for terms in (equation.v, equation.w))
    cos, sin = equation.turn
    wx, wy = cos * wx - sin * wy, sin * wx + cos * wy
    long, wide = math.hypot(vx, vy), math.hypot(wx, wy)
    rest = sum(float(f[k]) * weight for k, weight in equation.linear) - equation.constant
    match equation.form:
        case Form.OFFSET:
            return (vx * wy - vy * wx) / max(long, _TINY) + rest
        case Form.SINE:
            return (vx * wy - vy * wx) / max(long * wide, _TINY) + rest
        case Form.LENGTHS:
            return long - wide + rest
    return rest


def _sum(terms: Sum, f: Floats) -> tuple[float, float]:
    return sum(float(f[2 * k]) * w for k, w in terms), sum(float(f[2 * k + 1]) * w for k, w in terms)
