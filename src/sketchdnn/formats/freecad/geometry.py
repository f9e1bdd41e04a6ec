"""The curves of a FreeCAD sketch as primitives, and back.

FreeCAD writes a circle's plane by its normal and turns its x direction by `AngleXU`; seen from above, an arc whose
normal points down runs clockwise. FreeCAD itself still calls the counter-clockwise end of such an arc its end, and so
do we.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive

_EXTENSION = "Sketcher::SketchGeometryExtension"
_MODE_FLAGS = 32
_CONSTRUCTION_BIT = 2  # the second flag from the right


def from_element(element: Element) -> Primitive | str:
    """The primitive that a `Geometry` element means, or why it means none."""
    kind = element.get("type", "").rpartition("::")[2]
    if kind not in _READERS:
        return f"{kind or 'geometry without a type'} cannot be a primitive"
    tag, reader = _READERS[kind]
    shape = element.find(tag)
    try:
        if shape is None:
            raise ValueError
        return reader(shape.attrib, _is_construction(element, kind))
    except (KeyError, ValueError):  # a GeometryError is a ValueError
        return f"{kind} with impossible numbers"


def to_element(primitive: Primitive) -> Element:
    """The `Geometry` element that means a primitive."""
    match primitive:
        case Line(start, end):
            kind, shape = "GeomLineSegment", Element("LineSegment", _vector("Start", *start) | _vector("End", *end))
        case Circle(center, radius):
            kind, shape = "GeomCircle", Element("Circle", _plane(*center) | _numbers(Radius=radius))
        case Arc(center, radius, start_angle, sweep):
            angles = _numbers(Radius=radius, StartAngle=start_angle, EndAngle=start_angle + sweep)
            kind, shape = "GeomArcOfCircle", Element("ArcOfCircle", _plane(*center) | angles)
        case Point(at):
            kind, shape = "GeomPoint", Element("GeomPoint", _vector("", *at))
    element = Element("Geometry", type=f"Part::{kind}")
    flags = f"{_CONSTRUCTION_BIT * primitive.construction:0{_MODE_FLAGS}b}"
    # FreeCAD stops reading at a geometry that has no extension.
    SubElement(
        SubElement(element, "GeoExtensions", count="1"),
        "GeoExtension",
        type=_EXTENSION,
        internalGeometryType="0",
        geometryModeFlags=flags,
        geometryLayer="0",
    )
    element.append(shape)
    return element


def _is_construction(element: Element, kind: str) -> bool:
    extension = element.find(f"GeoExtensions/GeoExtension[@type='{_EXTENSION}']")
    if extension is None:
        # Before FreeCAD 0.19. A point then never took part in a profile, and FreeCAD reads it as construction today.
        old = element.find("Construction")
        return kind == "GeomPoint" or (old is not None and old.get("value") == "1")
    # Helpers of an ellipse or a spline, such as its axes, are no part of a profile either.
    helper = extension.get("internalGeometryType", "0") != "0"
    return helper or extension.get("geometryModeFlags", "")[-_CONSTRUCTION_BIT:-1] == "1"


def _line(of: Mapping[str, str], construction: bool) -> Primitive:
    return Line((float(of["StartX"]), float(of["StartY"])), (float(of["EndX"]), float(of["EndY"])), construction)


def _circle(of: Mapping[str, str], construction: bool) -> Primitive:
    _is_upright(of)
    return Circle((float(of["CenterX"]), float(of["CenterY"])), float(of["Radius"]), construction)


def _arc(of: Mapping[str, str], construction: bool) -> Primitive:
    turn, start, end = float(of.get("AngleXU", 0)), float(of["StartAngle"]), float(of["EndAngle"])
    if not math.isfinite(turn + start + end):
        raise GeometryError("an arc has an angle that is not a number")
    # Seen from above, a plane that faces down has its x direction along −x and turns clockwise: t is at π − t.
    begins = turn + start if _is_upright(of) else math.pi - turn - end
    center, radius = (float(of["CenterX"]), float(of["CenterY"])), float(of["Radius"])
    return Arc(center, radius, begins, (end - start) % TAU, construction)


def _point(of: Mapping[str, str], construction: bool) -> Primitive:
    return Point((float(of["X"]), float(of["Y"])), construction)


def _is_upright(of: Mapping[str, str]) -> bool:
    """Whether a circle's plane faces up rather than down; any other way is no plane of a sketch."""
    x, y, z = (float(of.get(f"Normal{axis}", default)) for axis, default in (("X", 0), ("Y", 0), ("Z", 1)))
    if not math.hypot(x, y) <= 1e-9 * abs(z):
        raise GeometryError("a circle that is not in the plane of its sketch")
    return z > 0


def _numbers(**values: float) -> dict[str, str]:
    return {name: repr(float(value)) for name, value in values.items()}


def _vector(name: str, x: float, y: float, z: float = 0.0) -> dict[str, str]:
    return _numbers(**{f"{name}X": x, f"{name}Y": y, f"{name}Z": z})


def _plane(x: float, y: float) -> dict[str, str]:
    return _vector("Center", x, y) | _vector("Normal", 0, 0, 1) | _numbers(AngleXU=0)


_READERS = {
    "GeomLineSegment": ("LineSegment", _line),
    "GeomCircle": ("Circle", _circle),
    "GeomArcOfCircle": ("ArcOfCircle", _arc),
    "GeomPoint": ("GeomPoint", _point),
}
