"""What is drawn in a DXF, as primitives: blocks unfolded, object coordinates and mirrored planes undone.

Every round curve is carried into the world as center + u·cos t + v·sin t, so that one test decides whether a CIRCLE, an
ARC, an ELLIPSE or a polyline's bulge is still round and flat after all scalings, rotations and mirrorings. A flat curve
that is not round, and a SPLINE, is approximated by lines and arcs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sketchdnn.formats.format import Note, Skipped
from sketchdnn.geometry import TAU, Arc, Circle, EllipticArc, Line, ParametricCurve, Point, Primitive, Vec

from .dxf_shapes import (
    NO_PRIMITIVE,
    SHAPES,
    TOLERANCE,
    LeftOut,
    RoundShape,
    Shape,
    SplineShape,
    StraightShape,
    flat,
    no_shape,
)
from .dxf_styles import Style, Styles
from .flattening import Flattener, TooManyCurvesError

if TYPE_CHECKING:
    from ezdxf.document import Drawing
    from ezdxf.math import BSpline, Matrix44

CONSTRUCTION_LAYER = "construction"
MAX_DEPTH = 32
_TYPE = re.compile("[A-Z0-9_]{1,40}")
NO_LENGTH = "of no length"
_IMPOSSIBLE = "with impossible numbers (no size, not a number, or too far out)"
# What ezdxf, and arithmetic on what it gives, raise for numbers that make no sense. A GeometryError is a ValueError.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class TooManyEntitiesError(Exception):
    """More than anyone draws in a sketch, such as an array of blocks of arrays of blocks."""


class _Budget:
    """How much may still be unfolded."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyEntitiesError


@dataclass(frozen=True, slots=True)
class _Drawn:
    """An entity, the way into the world from the block it is in, and the layer and line type that it shows with."""

    entity: Any
    to_world: Matrix44
    style: Style


class _FlatSpline:
    """A B-spline of the world, seen from above."""

    def __init__(self, tool: BSpline) -> None:
        knots = tool.knots()
        low, high = knots[tool.order - 1], knots[tool.count]
        self._evaluator = tool.evaluator
        self.breaks = tuple(sorted({low, high, *(knot for knot in knots if low < knot < high)}))
        points = (tool.control_points[0], tool.control_points[-1])
        self.ends = (flat(points[0]), flat(points[1])) if tool.is_clamped else (self.at(low)[0], self.at(high)[0])

    def at(self, t: float) -> tuple[Vec, Vec]:
        place, slope = self._evaluator.derivative(t, 1)
        return flat(place), flat(slope)


def primitives_of(document: Drawing, limit: int, flattener: Flattener) -> Iterator[Primitive | Skipped | Note]:
    """Each primitive of model space in drawing order, a `Skipped` for what is none, a `Note` for what was changed.

    No more than `limit` entities are followed.
    """
    from ezdxf.math import Matrix44

    budget = _Budget(limit)
    styles = Styles(document)
    for drawn in _unfold(document.modelspace(), Matrix44(), Style(), 0, budget, styles):
        if isinstance(drawn, Skipped):
            yield drawn
            continue
        kind = _kind(drawn.entity)
        on_layer = drawn.style.layer.lower() == CONSTRUCTION_LAYER
        construction = on_layer or drawn.style.is_dashed
        count = 0
        try:
            for shape in SHAPES.get(kind, no_shape)(drawn.entity):
                for found in _primitives_or_reason(shape, drawn.to_world, kind, flattener):
                    if isinstance(found, Skipped | Note):
                        yield found
                        continue
                    budget.spend()
                    count += 1
                    yield replace(found, construction=True) if construction else found
        except (LeftOut, *_NONSENSE) as error:
            yield Skipped(f"{kind} {error if isinstance(error, LeftOut) else _IMPOSSIBLE}")
        if count and construction and not on_layer:
            yield Note(f"{kind} of a dashed line type read as construction")


def _kind(entity: Any) -> str:
    kind = entity.dxftype()
    return kind if _TYPE.fullmatch(kind) else "an entity of a type without a proper name"


def _unfold(
    entities: Iterable[Any], to_world: Matrix44, above: Style, depth: int, budget: _Budget, styles: Styles
) -> Iterator[_Drawn | Skipped]:
    """The entities that are shown, and for each INSERT what its block holds."""
    for entity in entities:
        budget.spend()
        own = styles.of(entity, above if depth else None)
        if reason := own.hidden(entity):
            yield Skipped(f"{_kind(entity)} {reason}")
            continue
        if entity.dxftype() != "INSERT":
            yield _Drawn(entity, to_world, own)
            continue
        yield from (_Drawn(attribute, to_world, own) for attribute in entity.attribs)
        block = entity.block()
        if block is None or block.block.is_xref:
            yield Skipped("INSERT of a block that is not in the file")
        elif depth == MAX_DEPTH:
            yield Skipped(f"INSERT more than {MAX_DEPTH} blocks deep")
        else:
            try:
                for placed in _copies(entity):
                    budget.spend()
                    yield from _unfold(block, placed * to_world, own, depth + 1, budget, styles)
            except _NONSENSE:
                yield Skipped(f"INSERT {_IMPOSSIBLE}")


def _copies(insert: Any) -> Iterator[Matrix44]:
    """The way out of the block for each copy of it: one, or a grid of them that turns with it but does not scale."""
    from ezdxf.math import Matrix44, Vec3

    base = insert.matrix44()
    rows = max(1, insert.dxf.row_count) if insert.dxf.row_spacing else 1
    columns = max(1, insert.dxf.column_count) if insert.dxf.column_spacing else 1
    for row in range(rows):
        for column in range(columns):
            offset = Vec3(column * insert.dxf.column_spacing, row * insert.dxf.row_spacing)
            yield base * Matrix44.translate(*insert.ocs().to_wcs(offset.rotate_deg(insert.dxf.rotation)))


def _primitives_or_reason(
    shape: Shape, to_world: Matrix44, kind: str, flattener: Flattener
) -> tuple[Primitive | Skipped | Note, ...]:
    """The one primitive that a shape is, or those that approximate it with a note, or why there is none."""
    try:
        if shape is None:
            raise LeftOut(_IMPOSSIBLE)
        if isinstance(shape, StraightShape):
            return (_straight(shape, to_world),)
        curve = _round(shape, to_world) if isinstance(shape, RoundShape) else _spline_curve(shape, to_world)
        if isinstance(curve, Circle | Arc):
            return (curve,)
        if not flattener.is_on:
            raise LeftOut("that is no circle" if isinstance(shape, RoundShape) else NO_PRIMITIVE)
        return (*flattener.pieces(curve), flattener.note(kind))
    except LeftOut as reason:
        return (Skipped(f"{kind} {reason}"),)
    except TooManyCurvesError as error:
        return (Skipped(f"{kind} left out: {error}"),)
    except _NONSENSE:
        return (Skipped(f"{kind} {_IMPOSSIBLE}"),)


def _straight(path: StraightShape, to_world: Matrix44) -> Point | Line:
    places = [to_world.transform(place) for place in path.places]
    if len(places) == 1:
        return Point(flat(places[0]))
    start, end = places
    if abs(end.z - start.z) > TOLERANCE * start.distance(end):
        raise LeftOut("out of the plane")
    if flat(start) == flat(end):
        raise LeftOut(NO_LENGTH)
    return Line(flat(start), flat(end))


def _round(curve: RoundShape, to_world: Matrix44) -> Circle | Arc | EllipticArc:
    """The circle or arc that a curve is, if it is one."""
    u, v = to_world.transform_direction(curve.u), to_world.transform_direction(curve.v)
    size = max(u.magnitude, v.magnitude)
    if max(abs(u.z), abs(v.z)) > TOLERANCE * size:
        raise LeftOut("out of the plane")
    center = flat(to_world.transform(curve.center))
    is_full = curve.sweep == 0 or curve.sweep > TAU - 1e-9
    if abs(u.magnitude - v.magnitude) > TOLERANCE * size or abs(u.dot(v)) > TOLERANCE * size**2:
        return EllipticArc(center, flat(u), flat(v), curve.start, TAU if is_full else curve.sweep)
    if is_full:
        return Circle(center, u.magnitude)
    turn = math.atan2(u.y, u.x)
    mirrored = u.x * v.y - u.y * v.x < 0  # then t runs clockwise, and the arc starts where t ends
    start = turn - curve.start - curve.sweep if mirrored else turn + curve.start
    return Arc(center, u.magnitude, start, curve.sweep)


def _spline_curve(spline: SplineShape, to_world: Matrix44) -> ParametricCurve:
    tool = spline.tool.transform(to_world)
    points = tool.control_points
    size = max(points[0].distance(point) for point in points)
    if max(abs(point.z - points[0].z) for point in points) > TOLERANCE * size:
        raise LeftOut("out of the plane")
    return _FlatSpline(tool)
