"""The shapes of DXF entities, in the coordinates of the block they are in: straight, round, or a spline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Vec, arc_from_bulge

if TYPE_CHECKING:
    from ezdxf.math import BSpline, Vec3

MAX_DEGREE = 25
# What is tilted, stretched or bent by less than this part of its size counts as flat, round or straight.
TOLERANCE = 1e-6
NO_PRIMITIVE = "cannot be a primitive"
_SPLINE_FRAME = 16  # flag of a vertex that only steers a smoothed polyline


class LeftOut(Exception):  # noqa: N818 - it says why, and is no error
    """Why this is no primitive."""


@dataclass(frozen=True, slots=True)
class StraightShape:
    """One place for a POINT, two for a segment."""

    places: tuple[Vec3, ...]


@dataclass(frozen=True, slots=True)
class RoundShape:
    """The places center + u·cos t + v·sin t for t from `start` through `sweep`; a sweep of 0 is the full turn."""

    center: Vec3
    u: Vec3
    v: Vec3
    start: float = 0.0
    sweep: float = 0.0


@dataclass(frozen=True, slots=True)
class SplineShape:
    """A B-spline, in the coordinates of its block."""

    tool: BSpline


Shape = StraightShape | RoundShape | SplineShape | None  # None: one that cannot be


def flat(place: Vec3) -> Vec:
    return (place.x, place.y)


def no_shape(entity: Any) -> Iterator[Shape]:
    raise LeftOut(NO_PRIMITIVE)


def _line(entity: Any) -> Iterator[Shape]:
    yield StraightShape((entity.dxf.start, entity.dxf.end))


def _point(entity: Any) -> Iterator[Shape]:
    yield StraightShape((entity.dxf.location,))


def _circle(entity: Any) -> Iterator[Shape]:
    yield _on_plane(entity, entity.dxf.center, entity.dxf.radius)


def _arc(entity: Any) -> Iterator[Shape]:
    start, end = entity.dxf.start_angle, entity.dxf.end_angle
    yield _on_plane(
        entity, entity.dxf.center, entity.dxf.radius, math.radians(start), math.radians((end - start) % 360)
    )


def _ellipse(entity: Any) -> Iterator[Shape]:
    start, end = entity.dxf.start_param, entity.dxf.end_param
    yield RoundShape(entity.dxf.center, entity.dxf.major_axis, entity.minor_axis, start, (end - start) % TAU)


def _spline(entity: Any) -> Iterator[Shape]:
    if entity.dxf.degree > MAX_DEGREE:
        raise LeftOut(f"of a degree above {MAX_DEGREE}")
    yield SplineShape(entity.construction_tool())


def _lwpolyline(entity: Any) -> Iterator[Shape]:
    from ezdxf.math import Vec3

    vertices = [(Vec3(x, y, entity.dxf.elevation), bulge) for x, y, bulge in entity.get_points("xyb")]
    yield from _segments(entity, vertices, entity.closed)


def _polyline(entity: Any) -> Iterator[Shape]:
    corners = [vertex.dxf for vertex in entity.vertices if not vertex.dxf.flags & _SPLINE_FRAME]
    if entity.is_2d_polyline:
        height = entity.dxf.elevation.z
        yield from _segments(entity, [(c.location.replace(z=height), c.bulge) for c in corners], entity.is_closed)
    elif entity.is_3d_polyline:
        places = [corner.location for corner in corners]
        pairs = [*pairwise(places)] + [(places[-1], places[0])] * entity.is_closed
        yield from map(StraightShape, pairs)
    else:
        raise LeftOut("that is a mesh")


def _segments(entity: Any, vertices: list[tuple[Vec3, float]], closed: bool) -> Iterator[Shape]:
    """The segments and arcs of a flat polyline; a vertex's bulge bends the way to the next one."""
    ocs = entity.ocs()
    following = vertices[1:] + vertices[:1] if closed else vertices[1:]
    for (start, bulge), (end, _) in zip(vertices, following, strict=False):
        if abs(bulge) <= TOLERANCE or flat(start) == flat(end):  # what has no length is found out as a line
            yield StraightShape((ocs.to_wcs(start), ocs.to_wcs(end)))
        else:
            try:
                arc = arc_from_bulge(flat(start), flat(end), bulge)
                yield _on_plane(entity, start.replace(*arc.center), arc.radius, arc.start_angle, arc.sweep)
            except GeometryError:
                yield None


def _on_plane(entity: Any, center: Vec3, radius: float, start: float = 0.0, sweep: float = 0.0) -> RoundShape:
    """A round curve given in the entity's own plane."""
    from ezdxf.math import Vec3

    if not radius > 0:
        raise GeometryError(f"a radius of {radius}")
    ocs = entity.ocs()
    u, v = ocs.to_wcs(Vec3(radius, 0)), ocs.to_wcs(Vec3(0, radius))
    return RoundShape(ocs.to_wcs(center), u, v, start, sweep)


SHAPES: Mapping[str, Callable[[Any], Iterator[Shape]]] = {
    "LINE": _line,
    "POINT": _point,
    "CIRCLE": _circle,
    "ARC": _arc,
    "ELLIPSE": _ellipse,
    "SPLINE": _spline,
    "HELIX": _spline,
    "LWPOLYLINE": _lwpolyline,
    "POLYLINE": _polyline,
}
