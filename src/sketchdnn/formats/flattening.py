"""Curves of a drawing as lines and arcs, within the tolerance that was asked for and a bound on the work."""

from __future__ import annotations

from sketchdnn.errors import GeometryError
from sketchdnn.formats.format import Note
from sketchdnn.geometry import Arc, Line, ParametricCurve, Vec, approximate

# Evaluations of curves in one drawing, some seconds of work: an ellipse of 100 by 40 mm takes 400 at 0.01 mm.
MAX_EVALUATIONS = 400_000


class TooManyCurvesError(GeometryError):
    """A drawing whose curves take more evaluations than are allowed."""


class Flattener:
    """Approximates the curves of one drawing.

    Args:
        millimeters: the tolerance; None where curves are to be left out.
        mm_per_unit: the size of the drawing's unit.
    """

    def __init__(self, millimeters: float | None, mm_per_unit: float) -> None:
        self._millimeters = millimeters
        self._mm_per_unit = mm_per_unit
        self._left = MAX_EVALUATIONS

    @property
    def is_on(self) -> bool:
        return self._millimeters is not None

    def pieces(self, curve: ParametricCurve) -> tuple[Line | Arc, ...]:
        """Lines and arcs that follow a curve; `GeometryError` where there are none or no work is left to spend."""
        if self._millimeters is None:
            raise GeometryError("curves are left out")
        return approximate(_Counted(curve, self), self._millimeters / self._mm_per_unit)

    def note(self, what: str) -> Note:
        """What is said of a curve that was approximated."""
        return Note(f"{what} read as lines and arcs within {self._millimeters:g} mm")

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooManyCurvesError(
                "more curves than are approximated in one drawing; --flatten with a larger length takes more"
            )


class _Counted:
    """A curve whose evaluations are counted."""

    def __init__(self, curve: ParametricCurve, flattener: Flattener) -> None:
        self.breaks, self.ends = curve.breaks, curve.ends
        self._curve, self._flattener = curve, flattener

    def at(self, t: float) -> tuple[Vec, Vec]:
        self._flattener.spend()
        return self._curve.at(t)
