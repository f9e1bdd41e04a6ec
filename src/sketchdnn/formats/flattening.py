"""Approximation of the curves of a drawing by lines and arcs, with a bound on the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sketchdnn.errors import GeometryError
from sketchdnn.formats.format import Note
from sketchdnn.geometry import Arc, Line, ParametricCurve, Vec, approximate

# Curve evaluations for one drawing, some seconds of work. An ellipse of 100 by 40 mm takes 400 at 0.01 mm.
MAX_EVALUATIONS = 400_000
_TOO_MANY = "more curves than are approximated in one drawing; --flatten with a larger length takes more"


class TooManyCurvesError(GeometryError):
    """The curves of a drawing take more than `MAX_EVALUATIONS` evaluations."""


class Budget:
    """Counts work on a drawing, and raises an error when more than `limit` units are spent."""

    def __init__(self, limit: int, error: Callable[[], Exception]) -> None:
        self._left = limit
        self._error = error

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._error()


class Flattener:
    """Approximates the curves of one drawing.

    Args:
        tolerance: The tolerance in millimeters; None to skip curves.
        mm_per_unit: The size of the drawing's unit.
    """

    def __init__(self, tolerance: float | None, mm_per_unit: float) -> None:
        self._tolerance = tolerance
        self._mm_per_unit = mm_per_unit
        self._budget = Budget(MAX_EVALUATIONS, partial(TooManyCurvesError, _TOO_MANY))

    def flatten(self, curve: ParametricCurve, name: str) -> tuple[Line | Arc | Note, ...] | None:
        """The lines and arcs that approximate a curve, and a note on it; None if curves are skipped.

        Raises:
            GeometryError: There are none, or the work is spent.
        """
        if self._tolerance is None:
            return None
        pieces = approximate(_Counted(curve, self._budget), self._tolerance / self._mm_per_unit)
        return (*pieces, Note(f"{name} read as lines and arcs within {self._tolerance:g} mm"))


class _Counted:
    """A curve that counts its evaluations."""

    def __init__(self, curve: ParametricCurve, budget: Budget) -> None:
        self.breaks, self.ends = curve.breaks, curve.ends
        self._curve, self._budget = curve, budget

    def at(self, t: float) -> tuple[Vec, Vec]:
        self._budget.spend()
        return self._curve.at(t)
