"""Rank of equations: which rows of derivatives add to the span of those before them."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr

from .variables import Floats, Ints

# An equation whose derivative is shorter than this has no effect.
ZERO_ROW = 1e-6


def orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """An orthonormal basis of rows, at most as many as their length, as columns q, with rows = (q r)ᵀ.

    Only the upper triangle of r counts.
    """
    r, tau, _, _ = dgeqrf(rows.T)
    q, _, _ = dorgqr(r[:, : len(rows)], tau)
    return q, r


class Span:
    """The span of rows, as an orthonormal basis that grows."""

    def __init__(self, width: int) -> None:
        self._basis = np.zeros((width, width))
        self.rank = 0

    @property
    def basis(self) -> Floats:
        return self._basis[: self.rank]

    def add(self, row: Floats, least: float) -> bool:
        """Add a row if more than a share `least` of it is outside the span; whether it was."""
        length = float(row @ row)
        if length < ZERO_ROW**2 or self.rank == len(self._basis):
            return False
        rest = outside(row, self.basis)
        new = float(rest @ rest)
        if new <= least * least * length:
            return False
        rest = outside(rest / new**0.5, self.basis)  # once more, against rounding
        self._basis[self.rank] = rest / float(rest @ rest) ** 0.5
        self.rank += 1
        return True


def outside(rows: Floats, basis: Floats) -> Floats:
    """The part of rows outside the span of an orthonormal basis."""
    rest: Floats = rows - (rows @ basis.T) @ basis
    return rest


def row_lengths(rows: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


def adds_rank(rows: Floats, least: float) -> list[bool]:
    """Whether each row adds to the rank of those before it, by more than a share `least` of itself."""
    span = Span(rows.shape[1])
    return [span.add(row, least) for row in rows]


def likely_independent(rows: Floats, least: float) -> Ints:
    """The rows of which more than a share `least` is new to those before: fast, and a guess where some are not."""
    if len(rows) > rows.shape[1]:
        return np.flatnonzero(adds_rank(rows, least))
    new = np.abs(dgeqrf(rows.T)[0].diagonal())
    return np.flatnonzero(new > least * np.maximum(row_lengths(rows), ZERO_ROW))


def row_space(rows: Floats, least: float) -> Floats:
    """An orthonormal basis of rows, as rows, where a share of `least` or less of a row is rounding."""
    if 0 < len(rows) <= rows.shape[1]:
        q, r = orthonormal(rows)
        if (np.abs(r.diagonal()) > least * np.maximum(row_lengths(rows), ZERO_ROW)).all():
            return q.T
    span = Span(rows.shape[1])
    for row in rows:
        span.add(row, least)
    return span.basis
