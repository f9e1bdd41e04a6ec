"""Which demands add something to those before them."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr

from .variables import Floats, Ints

# A demand whose derivative is shorter than this says nothing at all.
VOID = 1e-6


def orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """An orthonormal basis of rows, no more than their length, as columns q, with rows = (q r)ᵀ.

    Only the upper triangle of r counts.
    """
    r, tau, _, _ = dgeqrf(rows.T)
    q, _, _ = dorgqr(r[:, : len(rows)], tau)
    return q, r


class Span:
    """What some rows demand, as an orthonormal basis that grows."""

    def __init__(self, width: int) -> None:
        self._basis = np.zeros((width, width))
        self.rank = 0

    @property
    def basis(self) -> Floats:
        return self._basis[: self.rank]

    def beyond(self, rows: Floats) -> Floats:
        """What of the rows is not in the span."""
        basis = self._basis[: self.rank]
        rest: Floats = rows - (rows @ basis.T) @ basis
        return rest

    def add(self, row: Floats, least: float) -> bool:
        """Take a row in if more than a share `least` of it is new; whether it was."""
        length = float(row @ row)
        if length < VOID**2 or self.rank == len(self._basis):
            return False
        rest = self.beyond(row)
        new = float(rest @ rest)
        if new <= least * least * length:
            return False
        rest = self.beyond(rest / new**0.5)  # once more, against rounding
        self._basis[self.rank] = rest / float(rest @ rest) ** 0.5
        self.rank += 1
        return True


def seem_new(rows: Floats, least: float) -> Ints:
    """The rows of which more than a share `least` is new to those before; quick, and a guess where some are not."""
    if len(rows) > rows.shape[1]:
        return np.flatnonzero(adds(rows, least))
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    new = np.abs(dgeqrf(rows.T)[0].diagonal())
    return np.flatnonzero(new > least * np.maximum(length, VOID))


def spanned(rows: Floats, least: float) -> Floats:
    """An orthonormal basis, as rows, of what rows demand, where a share of `least` or less of a row is rounding."""
    if 0 < len(rows) <= rows.shape[1]:
        q, r = orthonormal(rows)
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        if (np.abs(r.diagonal()) > least * np.maximum(length, VOID)).all():
            return q.T
    span = Span(rows.shape[1])
    for row in rows:
        span.add(row, least)
    return span.basis


def adds(rows: Floats, least: float) -> list[bool]:
    """For each row whether it adds to those before it."""
    span = Span(rows.shape[1])
    return [span.add(row, least) for row in rows]
