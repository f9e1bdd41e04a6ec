"""What is drawn in a DXF, as primitives: blocks unfolded, object coordinates and mirrored planes undone.

Every curve is carried into the world as center + u·cos t + v·sin t, so that one test decides whether a CIRCLE, an ARC,
an ELLIPSE or a polyline's bulge is still round and flat after all scalings, rotations and mirrorings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sketchdnn.geometry import TAU, Arc, Circle, GeometryError, Line, Point, Primitive, Vec, arc_from_bulge

from .found import Skipped

if TYPE_CHECKING:
    from ezdxf.math import Matrix44, Vec3

CONSTRUCTION_LAYER = "construction"
MAX_DEPTH = 32
# What is tilted, stretched or bent by less than this part of its size counts as flat, round or straight.
TOLERANCE = 1e-6
_TYPE = re.compile("[A-Z0-9_]{1,40}")
_SPLINE_FRAME = 16  # flag of a vertex that only steers a smoothed polyline
NO_LENGTH = "of no length"
_IMPOSSIBLE = "with impossible numbers (no size, not a number, or too far out)"
# What ezdxf, and arithmetic on what it gives, raise for numbers that make no sense. A GeometryError is a ValueError.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class TooManyEntitiesError(Exception):
    """More than anyone draws in a sketch, such as an array of blocks of arrays of blocks."""


class _LeftOut(Exception):  # noqa: N818 - it says why, and is no error
    """Why this is no primitive."""


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
    """An entity, the way into the world from the block it is in, and the layer that it shows on."""

    entity: Any
    to_world: Matrix44
    layer: str


@dataclass(frozen=True, slots=True)
class _Path:
    """One place for a POINT, two for a segment."""

    places: tuple[Vec3, ...]


@dataclass(frozen=True, slots=True)
class _Curve:
    """The places center + u·cos t + v·sin t for t from `start` through `sweep`; a sweep of 0 is the full turn."""

    center: Vec3
    u: Vec3
    v: Vec3
    start: float = 0.0
    sweep: float = 0.0


_Shape = _Path | _Curve | None  # None: one that cannot be


def primitives_of(entities: Iterable[Any], limit: int) -> Iterator[Primitive | Skipped]:
    """Each primitive in drawing order, and a `Skipped` for what is none; no more than `limit` entities are followed."""
    from ezdxf.math import Matrix44

    budget = _Budget(limit)
    for drawn in _unfold(entities, Matrix44(), "0", 0, budget):
        if isinstance(drawn, Skipped):
            yield drawn
            continue
        kind = drawn.entity.dxftype()
        if not _TYPE.fullmatch(kind):
            kind = "an entity of a type without a proper name"
        try:
            for shape in _SHAPES.get(kind, _no_shape)(drawn.entity):
                budget.spend()
                yield _primitive_or_reason(shape, drawn, kind)
        except (_LeftOut, *_NONSENSE) as error:
            yield Skipped(f"{kind} {error if isinstance(error, _LeftOut) else _IMPOSSIBLE}")


def _unfold(
    entities: Iterable[Any], to_world: Matrix44, layer: str, depth: int, budget: _Budget
) -> Iterator[_Drawn | Skipped]:
    """The entities, and for each INSERT what its block holds. On layer 0 of a block, its INSERT's layer shows."""
    for entity in entities:
        budget.spend()
        own = getattr(entity.dxf, "layer", "0")  # ezdxf knows nothing about a type that it does not know
        own = layer if depth and own == "0" else own
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
                    yield from _unfold(block, placed * to_world, own, depth + 1, budget)
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


def _primitive_or_reason(shape: _Shape, drawn: _Drawn, kind: str) -> Primitive | Skipped:
    try:
        construction = drawn.layer.lower() == CONSTRUCTION_LAYER
        if shape is None:
            raise _LeftOut(_IMPOSSIBLE)
        if isinstance(shape, _Curve):
            return _round(shape, drawn.to_world, construction)
        places = [drawn.to_world.transform(place) for place in shape.places]
        if len(places) == 1:
            return Point(_flat(places[0]), construction)
        start, end = places
        if abs(end.z - start.z) > TOLERANCE * start.distance(end):
            raise _LeftOut("out of the plane")
        if _flat(start) == _flat(end):
            raise _LeftOut(NO_LENGTH)
        return Line(_flat(start), _flat(end), construction)
    except _LeftOut as reason:
        return Skipped(f"{kind} {reason}")
    except _NONSENSE:
        return Skipped(f"{kind} {_IMPOSSIBLE}")


def _round(curve: _Curve, to_world: Matrix44, construction: bool) -> Circle | Arc:
    """The circle or arc that a curve is, if it is one."""
    u, v = to_world.transform_direction(curve.u), to_world.transform_direction(curve.v)
    size = max(u.magnitude, v.magnitude)
    if max(abs(u.z), abs(v.z)) > TOLERANCE * size:
        raise _LeftOut("out of the plane")
    if abs(u.magnitude - v.magnitude) > TOLERANCE * size or abs(u.dot(v)) > TOLERANCE * size**2:
        raise _LeftOut("that is no circle")
    center = _flat(to_world.transform(curve.center))
    if curve.sweep == 0 or curve.sweep > TAU - 1e-9:
        return Circle(center, u.magnitude, construction)
    turn = math.atan2(u.y, u.x)
    mirrored = u.x * v.y - u.y * v.x < 0  # then t runs clockwise, and the arc starts where t ends
    start = turn - curve.start - curve.sweep if mirrored else turn + curve.start
    return Arc(center, u.magnitude, start, curve.sweep, construction)


def _flat(place: Vec3) -> Vec:
    return (place.x, place.y)


def _no_shape(entity: Any) -> Iterator[_Shape]:
    raise _LeftOut("cannot be a primitive")


def _line(entity: Any) -> Iterator[_Shape]:
    yield _Path((entity.dxf.start, entity.dxf.end))


def _point(entity: Any) -> Iterator[_Shape]:
    yield _Path((entity.dxf.location,))


def _circle(entity: Any) -> Iterator[_Shape]:
    yield _on_plane(entity, entity.dxf.center, entity.dxf.radius)


def _arc(entity: Any) -> Iterator[_Shape]:
    start, end = entity.dxf.start_angle, entity.dxf.end_angle
    yield _on_plane(
        entity, entity.dxf.center, entity.dxf.radius, math.radians(start), math.radians((end - start) % 360)
    )


def _ellipse(entity: Any) -> Iterator[_Shape]:
    start, end = entity.dxf.start_param, entity.dxf.end_param
    yield _Curve(entity.dxf.center, entity.dxf.major_axis, entity.minor_axis, start, (end - start) % TAU)


def _lwpolyline(entity: Any) -> Iterator[_Shape]:
    from ezdxf.math import Vec3

    vertices = [(Vec3(x, y, entity.dxf.elevation), bulge) for x, y, bulge in entity.get_points("xyb")]
    yield from _segments(entity, vertices, entity.closed)


def _polyline(entity: Any) -> Iterator[_Shape]:
    corners = [vertex.dxf for vertex in entity.vertices if not vertex.dxf.flags & _SPLINE_FRAME]
    if entity.is_2d_polyline:
        height = entity.dxf.elevation.z
        yield from _segments(entity, [(c.location.replace(z=height), c.bulge) for c in corners], entity.is_closed)
    elif entity.is_3d_polyline:
        places = [corner.location for corner in corners]
        pairs = [*pairwise(places)] + [(places[-1], places[0])] * entity.is_closed
        yield from map(_Path, pairs)
    else:
        raise _LeftOut("that is a mesh")


def _segments(entity: Any, vertices: list[tuple[Vec3, float]], closed: bool) -> Iterator[_Shape]:
    """The segments and arcs of a flat polyline; a vertex's bulge bends the way to the next one."""
    ocs = entity.ocs()
    following = vertices[1:] + vertices[:1] if closed else vertices[1:]
    for (start, bulge), (end, _) in zip(vertices, following, strict=False):
        if abs(bulge) <= TOLERANCE or _flat(start) == _flat(end):  # what has no length is found out as a line
            yield _Path((ocs.to_wcs(start), ocs.to_wcs(end)))
        else:
            try:
                arc = arc_from_bulge(_flat(start), _flat(end), bulge)
                yield _on_plane(entity, start.replace(*arc.center), arc.radius, arc.start_angle, arc.sweep)
            except GeometryError:
                yield None


def _on_plane(entity: Any, center: Vec3, radius: float, start: float = 0.0, sweep: float = 0.0) -> _Curve:
    """A round curve given in the entity's own plane."""
    from ezdxf.math import Vec3

    if not radius > 0:
        raise GeometryError(f"a radius of {radius}")
    ocs = entity.ocs()
    u, v = ocs.to_wcs(Vec3(radius, 0)), ocs.to_wcs(Vec3(0, radius))
    return _Curve(ocs.to_wcs(center), u, v, start, sweep)


_SHAPES: Mapping[str, Callable[[Any], Iterator[_Shape]]] = {
    "LINE": _line,
    "POINT": _point,
    "CIRCLE": _circle,
    "ARC": _arc,
    "ELLIPSE": _ellipse,
    "LWPOLYLINE": _lwpolyline,
    "POLYLINE": _polyline,
}
