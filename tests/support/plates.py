"""Sketches with constraints for tests of editing: a plate with dimensions, and an outline with gaps."""

from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch

_T = ConstraintType


def plate(*, dimensions: bool = True) -> Sketch:
    """A rectangle of 60 by 40 mm with a hole: corners joined, sides square, and sizes if asked for."""
    corners = [(0.0, 0.0), (60.0, 0.0), (60.0, 40.0), (0.0, 40.0)]
    sides = [Line(corners[i], corners[(i + 1) % 4]) for i in range(4)]
    constraints = [Constraint(_T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4)]
    constraints += [Constraint(_T.HORIZONTAL, (Ref(i),)) for i in (0, 2)]
    constraints += [Constraint(_T.VERTICAL, (Ref(i),)) for i in (1, 3)]
    if dimensions:
        constraints += [
            Constraint(_T.LENGTH, (Ref(0),), 60.0, "Width"),
            Constraint(_T.LENGTH, (Ref(1),), 40.0, "Height"),
            Constraint(_T.DIAMETER, (Ref(4),), 16.0),
        ]
    return Sketch((*sides, Circle((30.0, 20.0), 8.0)), tuple(constraints), "mm")


def open_outline() -> Sketch:
    """The sides of a rectangle, of which two corners are 0.3 mm apart."""
    return Sketch(
        (Line((0, 0), (60, 0)), Line((60, 0.3), (60, 40)), Line((60, 40), (0, 40)), Line((0, 39.7), (0, 0))), units="mm"
    )
