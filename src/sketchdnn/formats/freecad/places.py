"""What a constraint refers to, in FreeCAD's numbers, and what lies there."""

from __future__ import annotations

from collections.abc import Sequence

from sketchdnn.geometry import Arc, Constraint, Kind, Line, Part, Point, Primitive, Ref, Vec

from .relation import ORIGIN, X_AXIS, Y_AXIS, At, Pos

_OUTSIDE = {Part.ORIGIN: ORIGIN, Part.X_AXIS: X_AXIS, Part.Y_AXIS: Y_AXIS}
_POSITIONS = {Part.WHOLE: Pos.WHOLE, Part.START: Pos.START, Part.END: Pos.END, Part.CENTER: Pos.CENTER}


class NoWordsError(Exception):
    """FreeCAD cannot say this."""


class Places:
    """The places `at` which a constraint reads, and its value. External geometry has no place."""

    def __init__(self, constraint: Constraint, primitives: Sequence[Primitive]) -> None:
        self.primitives = primitives
        self.at = [self._at(ref) for ref in constraint.refs]
        self._value = constraint.value

    def _at(self, ref: Ref) -> At:
        if ref.primitive is None:
            if ref.part not in _OUTSIDE:
                raise NoWordsError
            return _OUTSIDE[ref.part]
        if self.primitives[ref.primitive].kind is Kind.POINT:
            return At(ref.primitive, Pos.START)
        return At(ref.primitive, _POSITIONS[ref.part])

    @property
    def value(self) -> float:
        if self._value is None:
            raise NoWordsError
        return self._value

    @property
    def size(self) -> float:
        """The value where its sign says nothing."""
        return abs(self.value)

    @property
    def pairs(self) -> list[tuple[At, At]]:
        """The first place with each of the others."""
        if len(self.at) < 2:
            raise NoWordsError
        return [(self.at[0], other) for other in self.at[1:]]

    def is_line(self, at: At) -> bool:
        """A line, or an axis."""
        return at.pos is Pos.WHOLE and (at.geo < 0 or self.primitives[at.geo].kind is Kind.LINE)

    def is_round(self, at: At) -> bool:
        return at.pos is Pos.WHOLE and not self.is_line(at)

    def is_arc(self, at: At) -> bool:
        return self.is_round(at) and self.primitives[at.geo].kind is Kind.ARC

    def is_end(self, at: At) -> bool:
        """An end of a line or arc."""
        has_ends = at.geo >= 0 and self.primitives[at.geo].kind in (Kind.LINE, Kind.ARC)
        return has_ends and at.pos in (Pos.START, Pos.END)

    def middle(self, at: At) -> At:
        """The center of what is round; a point or a line itself."""
        return At(at.geo, Pos.CENTER) if self.is_round(at) else at

    def place(self, at: At) -> Vec:
        """Where a point of a primitive is."""
        match self.primitives[at.geo], at.pos:
            case (Line() | Arc() as curve, Pos.START):
                return curve.start
            case (Line() | Arc() as curve, Pos.END):
                return curve.end
            case (Point(place), _):
                return place
            case (Line(), _):
                raise NoWordsError
            case (curve, _):
                return curve.center


def is_point(at: At) -> bool:
    return at.pos is not Pos.WHOLE
