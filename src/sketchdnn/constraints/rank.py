"""Which demands add something to those before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .variables import Floats


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
        rest: Floats = rows - (rows @ self.basis.T) @ self.basis
        return rest

    def add(self, row: Floats, least: float) -> bool:
        """Take a row in if more than a share `least` of it is new; whether it was."""
        length = float(np.sqrt(row @ row))
        if length == 0.0 or self.rank == len(self._basis):
            return False
        rest = self.beyond(row)
        new = float(np.sqrt(rest @ rest))
        if new <= least * length:
            return False
        rest = self.beyond(rest / new)  # once more, against rounding
        self._basis[self.rank] = rest / np.sqrt(rest @ rest)
        self.rank += 1
        return True


def spanned(rows: Floats, least: float) -> Span:
    """What rows demand, where a share of `least` or less of a row is rounding."""
    span = Span(rows.shape[1])
    q, new = _factors(rows)
    if new is not None and new.min() > least:
        span.rank = len(rows)
        span._basis[: span.rank] = q.T
    else:
        for row in rows:
            span.add(row, least)
    return span


def _factors(rows: Floats) -> tuple[Floats, Floats | None]:
    """An orthonormal basis, and which share of each row is new to those before: right as long as all of them are."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not len(rows) or len(rows) > rows.shape[1] or not length.all():
        return rows, None
    q, r = np.linalg.qr(rows.T)
    return q, np.abs(np.diagonal(r)) / length


def adds(rows: Floats, owners: Sequence[int], count: int, least: float) -> tuple[list[bool], list[bool]]:
    """For each row whether it adds to those before, and for each owner whether one of its rows does."""
    _, share = _factors(rows)
    if share is not None and share.min() > least:
        return [True] * len(rows), [i in set(owners) for i in range(count)]
    span = Span(rows.shape[1])
    of_row = [span.add(row, least) for row in rows]
    of_owner = [False] * count
    for owner, new in zip(owners, of_row, strict=True):
        of_owner[owner] |= new
    return of_row, of_owner
