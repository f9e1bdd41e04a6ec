"""A small sketch for each thing that a constraint can say."""

import math

from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Sketch

T = ConstraintType
ORIGIN, X, Y = Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS), Ref(None, Part.Y_AXIS)


def form(name: str, primitives: list[Primitive], *constraints: Constraint) -> Sketch:
    return Sketch(tuple(primitives), constraints, "mm", {"name": name})


def all_forms() -> list[Sketch]:
    """Each of them keeps its constraints."""
    flat, up, slant = Line((1, 1), (5, 1)), Line((1, 2), (1, 6)), Line((2, 2), (5, 6))
    beside, round_, arc = Line((1, 3), (6, 3)), Circle((4, 4), 2), Arc((4, 4), 2, 0.3, 2)
    dot, other_dot = Point((3, 1)), Point((3, 5))
    parts = (Part.WHOLE, Part.START, Part.END, Part.POINT, Part.CENTER)
    whole, start, end, at, center = ([Ref(i, part) for i in range(3)] for part in parts)
    onwards, axis = Line((5, 1), (6, 4)), Line((3, 0), (3, 9))

    def c(type_: ConstraintType, *refs: Ref, value: float | None = None) -> Constraint:
        return Constraint(type_, refs, value)

    angle = math.atan2(4, 3)
    touching = Line((0, 6), (4, 6))  # from the left to the top of `round_`
    quarter = Arc((4, 4), 2, math.pi / 2, math.pi / 2)  # from the top of `round_` to its left
    lower = Arc((4, 4), 2, 0.3, TAU - 1)
    joined, tangent = c(T.COINCIDENT, end[0], start[1]), c(T.TANGENT, whole[0], whole[1])
    return [
        form("coincident ends", [flat, onwards], c(T.COINCIDENT, end[0], start[1])),
        form("coincident with the origin", [Line((0, 0), (1, 2))], c(T.COINCIDENT, start[0], ORIGIN)),
        form("coincident, three", [flat, onwards, Point((5, 1))], c(T.COINCIDENT, end[0], start[1], at[2])),
        form("coincident with a line", [flat, dot], c(T.COINCIDENT, at[1], whole[0])),
        form("coincident with a circle", [round_, Point((6, 4))], c(T.COINCIDENT, whole[0], at[1])),
        form("coincident lines", [flat, Line((7, 1), (9, 1))], c(T.COINCIDENT, whole[0], whole[1])),
        form("coincident circles", [round_, arc], c(T.COINCIDENT, whole[0], whole[1])),
        form("point on an axis", [Line((3, 0), (4, 4))], c(T.POINT_ON_CURVE, start[0], X)),
        form("point on an arc", [arc, Point((6, 4))], c(T.POINT_ON_CURVE, at[1], whole[0])),
        form("horizontal", [flat], c(T.HORIZONTAL, whole[0])),
        form("horizontal places", [flat, Circle((8, 1), 1)], c(T.HORIZONTAL, end[0], center[1])),
        form("horizontal lines", [flat, beside], c(T.HORIZONTAL, whole[0], whole[1])),
        form("vertical", [up], c(T.VERTICAL, whole[0])),
        form("vertical places", [dot, other_dot], c(T.VERTICAL, at[0], at[1])),
        form("parallel", [flat, beside], c(T.PARALLEL, whole[0], whole[1])),
        form("parallel to an axis", [flat], c(T.PARALLEL, whole[0], X)),
        form("perpendicular", [flat, up], c(T.PERPENDICULAR, whole[0], whole[1])),
        form("perpendicular to a circle", [round_, Line((4, 4), (9, 4))], c(T.PERPENDICULAR, whole[0], whole[1])),
        form("perpendicular at ends", [flat, Line((5, 1), (5, 4))], c(T.PERPENDICULAR, end[0], start[1])),
        form("collinear", [flat, Line((7, 1), (9, 1))], c(T.COLLINEAR, whole[0], whole[1])),
        form("collinear and joined", [flat, Line((5, 1), (9, 1))], c(T.COLLINEAR, *whole[:2]), joined),
        form("tangent line and circle", [round_, touching], c(T.TANGENT, whole[0], whole[1])),
        form("tangent circles outside", [round_, Circle((9, 4), 3)], c(T.TANGENT, whole[0], whole[1])),
        form("tangent circles inside", [round_, Circle((5, 4), 1)], c(T.TANGENT, whole[0], whole[1])),
        form("tangent and joined", [touching, quarter], tangent, joined),
        form("tangent at ends", [touching, quarter], c(T.TANGENT, end[0], start[1])),
        form("tangent at an end", [touching, round_], c(T.TANGENT, end[0], whole[1])),
        form("tangent at a point on both", [touching, round_], tangent, c(T.POINT_ON_CURVE, end[0], whole[1])),
        form("equal lines", [flat, up], c(T.EQUAL, whole[0], whole[1])),
        form("equal radii", [arc, Circle((9, 9), 2)], c(T.EQUAL, whole[0], whole[1])),
        form("equal, three", [flat, up, Line((7, 7), (7, 11))], c(T.EQUAL, *whole)),
        form("concentric", [round_, Circle((4, 4), 5)], c(T.CONCENTRIC, whole[0], whole[1])),
        form("concentric places", [round_, Point((4, 4))], c(T.CONCENTRIC, center[0], at[1])),
        form("midpoint", [flat, dot], c(T.MIDPOINT, at[1], whole[0])),
        form("midpoint of places", [dot, Point((1, 1)), Point((5, 1))], c(T.MIDPOINT, at[0], at[1], at[2])),
        form("symmetric about an axis", [Line((-3, 1), (3, 1))], c(T.SYMMETRIC, start[0], end[0], Y)),
        form("symmetric about a place", [other_dot, Point((3, -3)), dot], c(T.SYMMETRIC, at[0], at[1], at[2])),
        form("mirrored lines", [Line((4, 1), (6, 2)), Line((2, 1), (0, 2)), axis], c(T.SYMMETRIC, *whole)),
        form("mirrored arcs", [Arc((5, 5), 2, 0, 1), Arc((1, 5), 2, math.pi - 1, 1), axis], c(T.SYMMETRIC, *whole)),
        form("mirrored circles", [Circle((5, 5), 1), Circle((1, 5), 1), axis], c(T.SYMMETRIC, *whole)),
        form("fixed", [dot, flat], c(T.FIX, whole[1])),
        form("fixed place", [dot, slant], c(T.FIX, end[1])),
        form("distance of places", [flat, other_dot], c(T.DISTANCE, start[0], at[1], value=math.hypot(2, 4))),
        form("distance from a line", [flat, other_dot], c(T.DISTANCE, whole[0], at[1], value=4)),
        form("distance of lines", [flat, beside], c(T.DISTANCE, whole[0], whole[1], value=2)),
        form("distance from an axis", [flat], c(T.DISTANCE, whole[0], X, value=1)),
        form("distance of circles", [round_, Circle((8, 7), 1)], c(T.DISTANCE, whole[0], whole[1], value=5)),
        form("no distance", [flat, dot], c(T.DISTANCE, at[1], whole[0], value=0)),
        form("horizontal distance", [flat, Point((2, 7))], c(T.HORIZONTAL_DISTANCE, end[0], at[1], value=3)),
        form("signed distance", [flat, Point((2, 7))], c(T.HORIZONTAL_DISTANCE, end[0], at[1], value=-3)),
        form("vertical distance of a line", [slant], c(T.VERTICAL_DISTANCE, whole[0], value=4)),
        form("height", [slant], c(T.VERTICAL_DISTANCE, ORIGIN, end[0], value=6)),
        form("length", [slant], c(T.LENGTH, whole[0], value=5)),
        form("radius", [arc], c(T.RADIUS, whole[0], value=2)),
        form("diameter", [lower], c(T.DIAMETER, whole[0], value=4)),
        form("angle of lines", [flat, slant], c(T.ANGLE, whole[0], whole[1], value=angle)),
        form("angle the other way", [slant, flat], c(T.ANGLE, whole[0], whole[1], value=angle)),
        form("obtuse angle", [flat, slant], c(T.ANGLE, whole[0], whole[1], value=math.pi - angle)),
        form("angle at ends", [flat, slant], c(T.ANGLE, end[0], start[1], value=angle - math.pi)),
        form("angle with an axis", [slant], c(T.ANGLE, whole[0], X, value=angle)),
        form("angle of a line", [slant], c(T.ANGLE, whole[0], value=angle)),
        form("angle of an arc", [arc], c(T.ANGLE, whole[0], value=2)),
    ]
