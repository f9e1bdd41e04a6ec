"""The entities of a DXF document as primitives in world coordinates.

Blocks are expanded, and object coordinate systems and mirrored planes are resolved. A round curve is transformed as
center + u·cos t + v·sin t; one test then decides whether a CIRCLE, an ARC, an ELLIPSE or the bulge of a polyline is
still round and in the plane after all scalings, rotations and reflections. Other planar curves are approximated by
lines and arcs.

ezdxf can expand blocks too (`Insert.virtual_entities`, `multi_insert`). That copies every entity of a block, recurses
without a limit and walks a grid of any size, so this module passes a matrix down instead and counts against a budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, EllipticArc, Line, Point, Primitive, Vec, arc_from_bulge

from .flattening import Budget, Flattener, TooManyCurvesError
from .format import Note, Skipped

if TYPE_CHECKING:
    from ezdxf.document import Drawing
    from ezdxf.math import BSpline, Matrix44, Vec3

CONSTRUCTION_LAYER = "construction"
MAX_DEPTH = 32
MAX_DEGREE = 25
# Relative tolerance for a curve to be planar, round or straight.
TOLERANCE = 1e-6

OFF = "on a layer that is off"
FROZEN = "on a layer that is frozen"
INVISIBLE = "that is invisible"
NO_LENGTH = "of no length"
# Reasons of entities that a sketch does not need to be complete.
NO_LOSS = (NO_LENGTH, OFF, FROZEN, INVISIBLE)
_NO_PRIMITIVE = "cannot be a primitive"
_INVALID = "with impossible numbers (no size, not a number, or too far out)"
# What ezdxf, and arithmetic on its values, raise for invalid numbers. A GeometryError is a ValueError.
_NUMBER_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_TYPE = re.compile("[A-Z0-9_]{1,40}")
_SPLINE_FRAME = 16  # flag of a vertex that only controls a smoothed polyline
# Names of dashed line types, for files that use them without a definition.
_DASHED_NAMES = re.compile("CENTER|DASH|HIDDEN|PHANTOM|DOT|DIVIDE|BORDER|ACAD_ISO", re.IGNORECASE)
_DASH_LENGTH, _SHAPE = 49, 74  # group codes of a line type's pattern


class TooManyEntitiesError(Exception):
    """More entities than the limit, such as an array of blocks of arrays of blocks."""


class _NotPrimitiveError(Exception):
    """The reason why an entity is not a primitive."""


def read_entities(document: Drawing, limit: int, flattener: Flattener) -> Iterator[Primitive | Skipped | Note]:
    """The primitives of model space in drawing order, with a `Skipped` or `Note` where one applies.

    Raises:
        TooManyEntitiesError: If more than `limit` entities are expanded.
    """
    from ezdxf.math import Matrix44

    budget = Budget(limit, TooManyEntitiesError)
    styles = _Styles(document)
    for visible in _expand(document.modelspace(), Matrix44(), _Style(), 0, budget, styles):
        if isinstance(visible, Skipped):
            yield visible
            continue
        entity, to_world, style = visible
        kind = _type_name(entity)
        on_layer = style.layer.lower() == CONSTRUCTION_LAYER
        construction = on_layer or style.is_dashed
        count = 0
        try:
            for shape in _SHAPES.get(kind, _no_shape)(entity):
                for item in _convert(shape, to_world, kind, flattener):
                    if isinstance(item, Skipped | Note):
                        yield item
                        continue
                    budget.spend()
                    count += 1
                    yield replace(item, construction=True) if construction else item
        except (_NotPrimitiveError, *_NUMBER_ERRORS) as error:
            yield Skipped(f"{kind} {error if isinstance(error, _NotPrimitiveError) else _INVALID}")
        if count and construction and not on_layer:
            yield Note(f"{kind} of a dashed line type read as construction")


def _type_name(entity: Any) -> str:
    kind = entity.dxftype()
    return kind if _TYPE.fullmatch(kind) else "an entity of a type without a proper name"


def _expand(
    entities: Iterable[Any], to_world: Matrix44, parent: _Style, depth: int, budget: Budget, styles: _Styles
) -> Iterator[tuple[Any, Matrix44, _Style] | Skipped]:
    """The visible entities, each with its transform and style; an INSERT is replaced by the entities of its block."""
    for entity in entities:
        budget.spend()
        style = styles.resolve(entity, parent if depth else None)
        if reason := style.hidden_reason(entity):
            yield Skipped(f"{_type_name(entity)} {reason}")
            continue
        if entity.dxftype() != "INSERT":
            yield entity, to_world, style
            continue
        yield from ((attribute, to_world, style) for attribute in entity.attribs)
        block = entity.block()
        if block is None or block.block.is_xref:
            yield Skipped("INSERT of a block that is not in the file")
        elif depth == MAX_DEPTH:
            yield Skipped(f"INSERT more than {MAX_DEPTH} blocks deep")
        else:
            try:
                for transform in _insert_transforms(entity):
                    budget.spend()
                    yield from _expand(block, transform * to_world, style, depth + 1, budget, styles)
            except _NUMBER_ERRORS:
                yield Skipped(f"INSERT {_INVALID}")


def _insert_transforms(insert: Any) -> Iterator[Matrix44]:
    """The transform of each copy of a block: one, or a grid that rotates with the INSERT but does not scale."""
    from ezdxf.math import Matrix44, Vec3

    base, dxf = insert.matrix44(), insert.dxf
    rows = max(1, dxf.row_count) if dxf.row_spacing else 1
    columns = max(1, dxf.column_count) if dxf.column_spacing else 1
    for row in range(rows):
        for column in range(columns):
            offset = Vec3(column * dxf.column_spacing, row * dxf.row_spacing)
            yield base * Matrix44.translate(*insert.ocs().to_wcs(offset.rotate_deg(dxf.rotation)))


# Shapes in the coordinates of their block ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RoundShape:
    """center + u·cos t + v·sin t, for t from `start` to `start + sweep`; a sweep of 0 is a full turn."""

    center: Vec3
    u: Vec3
    v: Vec3
    start: float = 0.0
    sweep: float = 0.0


# A point or the two ends of a segment; a round curve; a B-spline; None for an invalid one.
_Shapes = Iterator[Any]


def _no_shape(entity: Any) -> _Shapes:
    raise _NotPrimitiveError(_NO_PRIMITIVE)


def _arc_shape(entity: Any) -> _Shapes:
    start, end = entity.dxf.start_angle, entity.dxf.end_angle
    sweep = math.radians((end - start) % 360)
    yield _planar_shape(entity, entity.dxf.center, entity.dxf.radius, math.radians(start), sweep)


def _ellipse_shape(entity: Any) -> _Shapes:
    start, end = entity.dxf.start_param, entity.dxf.end_param
    yield _RoundShape(entity.dxf.center, entity.dxf.major_axis, entity.minor_axis, start, (end - start) % TAU)


def _spline_shape(entity: Any) -> _Shapes:
    if entity.dxf.degree > MAX_DEGREE:
        raise _NotPrimitiveError(f"of a degree above {MAX_DEGREE}")
    yield entity.construction_tool()


def _lwpolyline_shapes(entity: Any) -> _Shapes:
    from ezdxf.math import Vec3

    vertices = [(Vec3(x, y, entity.dxf.elevation), bulge) for x, y, bulge in entity.get_points("xyb")]
    yield from _segments(entity, vertices, entity.closed)


def _polyline_shapes(entity: Any) -> _Shapes:
    vertices = [vertex.dxf for vertex in entity.vertices if not vertex.dxf.flags & _SPLINE_FRAME]
    if entity.is_2d_polyline:
        z = entity.dxf.elevation.z
        yield from _segments(entity, [(v.location.replace(z=z), v.bulge) for v in vertices], entity.is_closed)
    elif entity.is_3d_polyline:
        locations = [vertex.location for vertex in vertices]
        yield from [*pairwise(locations)] + [(locations[-1], locations[0])] * entity.is_closed
    else:
        raise _NotPrimitiveError("that is a mesh")


def _segments(entity: Any, vertices: list[tuple[Vec3, float]], closed: bool) -> _Shapes:
    """The segments and arcs of a planar polyline; the bulge of a vertex bends the segment to the next one."""
    ocs = entity.ocs()
    following = vertices[1:] + vertices[:1] if closed else vertices[1:]
    for (start, bulge), (end, _) in zip(vertices, following, strict=False):
        if abs(bulge) <= TOLERANCE or _flat(start) == _flat(end):  # a segment of no length is counted as a line
            yield ocs.to_wcs(start), ocs.to_wcs(end)
        else:
            try:
                arc = arc_from_bulge(_flat(start), _flat(end), bulge)
                yield _planar_shape(entity, start.replace(*arc.center), arc.radius, arc.start_angle, arc.sweep)
            except GeometryError:
                yield None


def _planar_shape(entity: Any, center: Vec3, radius: float, start: float = 0.0, sweep: float = 0.0) -> _RoundShape:
    """A round curve in the plane of its entity."""
    from ezdxf.math import Vec3

    if not radius > 0:
        raise GeometryError(f"a radius of {radius}")
    ocs = entity.ocs()
    u, v = ocs.to_wcs(Vec3(radius, 0)), ocs.to_wcs(Vec3(0, radius))
    return _RoundShape(ocs.to_wcs(center), u, v, start, sweep)


_SHAPES: Mapping[str, Callable[[Any], _Shapes]] = {
    "LINE": lambda entity: iter([(entity.dxf.start, entity.dxf.end)]),
    "POINT": lambda entity: iter([(entity.dxf.location,)]),
    "CIRCLE": lambda entity: iter([_planar_shape(entity, entity.dxf.center, entity.dxf.radius)]),
    "ARC": _arc_shape, "ELLIPSE": _ellipse_shape, "SPLINE": _spline_shape, "HELIX": _spline_shape,
    "LWPOLYLINE": _lwpolyline_shapes, "POLYLINE": _polyline_shapes,
}  # fmt: skip

# From shapes to primitives ------------------------------------------------------------------------------------------


def _convert(shape: Any, to_world: Matrix44, kind: str, flattener: Flattener) -> tuple[Primitive | Skipped | Note, ...]:
    """The primitive of a shape, or its approximation with a note, or the reason why there is none."""
    try:
        if shape is None:
            raise _NotPrimitiveError(_INVALID)
        if isinstance(shape, tuple):
            return (_straight(shape, to_world),)
        is_round = isinstance(shape, _RoundShape)
        curve = _round(shape, to_world) if is_round else _spline(shape, to_world)
        if isinstance(curve, Circle | Arc):
            return (curve,)
        if (pieces := flattener.flatten(curve, kind)) is None:
            raise _NotPrimitiveError("that is no circle" if is_round else _NO_PRIMITIVE)
        return pieces
    except _NotPrimitiveError as reason:
        return (Skipped(f"{kind} {reason}"),)
    except TooManyCurvesError as error:
        return (Skipped(f"{kind} left out: {error}"),)
    except _NUMBER_ERRORS:
        return (Skipped(f"{kind} {_INVALID}"),)


def _straight(points: tuple[Vec3, ...], to_world: Matrix44) -> Point | Line:
    start, *rest = (to_world.transform(point) for point in points)
    if not rest:
        return Point(_flat(start))
    if abs(rest[0].z - start.z) > TOLERANCE * start.distance(rest[0]):
        raise _NotPrimitiveError("out of the plane")
    if _flat(start) == _flat(rest[0]):
        raise _NotPrimitiveError(NO_LENGTH)
    return Line(_flat(start), _flat(rest[0]))


def _round(shape: _RoundShape, to_world: Matrix44) -> Circle | Arc | EllipticArc:
    u, v = to_world.transform_direction(shape.u), to_world.transform_direction(shape.v)
    size = max(u.magnitude, v.magnitude)
    if max(abs(u.z), abs(v.z)) > TOLERANCE * size:
        raise _NotPrimitiveError("out of the plane")
    center = _flat(to_world.transform(shape.center))
    is_full = shape.sweep == 0 or shape.sweep > TAU - 1e-9
    if abs(u.magnitude - v.magnitude) > TOLERANCE * size or abs(u.dot(v)) > TOLERANCE * size**2:
        return EllipticArc(center, _flat(u), _flat(v), shape.start, TAU if is_full else shape.sweep)
    if is_full:
        return Circle(center, u.magnitude)
    angle = math.atan2(u.y, u.x)
    is_mirrored = u.x * v.y - u.y * v.x < 0  # then t runs clockwise, and the arc starts at the largest t
    start = angle - shape.start - shape.sweep if is_mirrored else angle + shape.start
    return Arc(center, u.magnitude, start, shape.sweep)


def _spline(spline: BSpline, to_world: Matrix44) -> _FlatSpline:
    spline = spline.transform(to_world)
    points = spline.control_points
    size = max(points[0].distance(point) for point in points)
    if max(abs(point.z - points[0].z) for point in points) > TOLERANCE * size:
        raise _NotPrimitiveError("out of the plane")
    return _FlatSpline(spline)


class _FlatSpline:
    """A B-spline in world coordinates, projected to the plane."""

    def __init__(self, spline: BSpline) -> None:
        knots = spline.knots()
        low, high = knots[spline.order - 1], knots[spline.count]
        self._evaluator = spline.evaluator
        self.breaks = tuple(sorted({low, high, *(knot for knot in knots if low < knot < high)}))
        points = (spline.control_points[0], spline.control_points[-1])
        self.ends = (_flat(points[0]), _flat(points[1])) if spline.is_clamped else (self.at(low)[0], self.at(high)[0])

    def at(self, t: float) -> tuple[Vec, Vec]:
        position, derivative = self._evaluator.derivative(t, 1)
        return _flat(position), _flat(derivative)


def _flat(point: Vec3) -> Vec:
    return (point.x, point.y)


# Layers and line types ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Style:
    """The layer and line type of an entity by name, and their effect on it."""

    layer: str = "0"
    linetype: str = "CONTINUOUS"
    is_off: bool = False
    is_frozen: bool = False
    is_dashed: bool = False

    def hidden_reason(self, entity: Any) -> str:
        """Why an entity is hidden; empty if it is not. An INSERT on a layer that is off shows its other layers."""
        if getattr(entity.dxf, "invisible", 0):
            return INVISIBLE
        if self.is_frozen:
            return FROZEN
        return OFF if self.is_off and entity.dxftype() != "INSERT" else ""


class _Styles:
    """The layers and line types of a document."""

    def __init__(self, document: Drawing) -> None:
        self._layers = {
            layer.dxf.name.lower(): _Style(layer.dxf.name, layer.dxf.linetype, layer.is_off(), layer.is_frozen())
            for layer in document.layers
        }
        self._dashed = {linetype.dxf.name.lower(): _has_gaps(linetype) for linetype in document.linetypes}

    def resolve(self, entity: Any, parent: _Style | None) -> _Style:
        """The style of an entity. In a block, `parent` is that of its INSERT, which applies to layer 0 and BYBLOCK."""
        # Entities of types that ezdxf does not support have no attributes.
        name, linetype = getattr(entity.dxf, "layer", "0"), getattr(entity.dxf, "linetype", "BYLAYER")
        if parent is not None and name == "0":
            name = parent.layer
        layer = self._layers.get(name.lower(), _Style())
        if linetype.upper() == "BYBLOCK":
            linetype = parent.linetype if parent is not None else "CONTINUOUS"
        elif linetype.upper() == "BYLAYER":
            linetype = layer.linetype
        is_dashed = self._dashed.get(linetype.lower(), bool(_DASHED_NAMES.search(linetype)))
        return _Style(name, linetype, layer.is_off, layer.is_frozen, is_dashed)


def _has_gaps(linetype: Any) -> bool:
    """Whether a line type is dashed. One with texts or shapes in its gaps (a fence, a gas line) is not."""
    tags = linetype.pattern_tags.tags
    has_gaps = any(tag.code == _DASH_LENGTH and tag.value <= 0 for tag in tags)
    return has_gaps and not any(tag.code == _SHAPE and tag.value for tag in tags)
