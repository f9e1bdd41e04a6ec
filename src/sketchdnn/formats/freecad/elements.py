"""The XML elements of a FreeCAD sketch: curves as primitives, and constraints as FreeCAD writes them, `Relation`s.

FreeCAD writes a circle's plane by its normal and turns its x direction by `AngleXU`. Seen from above, an arc whose
normal points down runs clockwise. FreeCAD still calls the counter-clockwise end of such an arc its end, and so do we.

A relation refers to geometry by number and point. Numbers below zero are outside: −1 is the x axis (its start is the
origin), −2 the y axis, from −3 on external geometry. The display of a constraint (label position, virtual space) is not
read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec

_EXTENSION = "Sketcher::SketchGeometryExtension"
_MODE_FLAGS = 32
_CONSTRUCTION_BIT = 2  # the second flag from the right
_UNDEFINED = -2000
_SLOTS = ("First", "Second", "Third")
# The element that holds the numbers of each type of geometry.
_TAGS = {f"Geom{name}": name for name in ("LineSegment", "Circle", "ArcOfCircle")} | {"GeomPoint": "GeomPoint"}
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Text with characters replaced that XML cannot hold."""
    return _NOT_IN_XML.sub("?", text)


class RelationType(IntEnum):
    """FreeCAD's constraint types."""

    COINCIDENT, HORIZONTAL, VERTICAL, PARALLEL, TANGENT = range(1, 6)
    DISTANCE, DISTANCE_X, DISTANCE_Y, ANGLE, PERPENDICULAR = range(6, 11)
    RADIUS, EQUAL, POINT_ON_OBJECT, SYMMETRIC, INTERNAL_ALIGNMENT = range(11, 16)
    SNELLS_LAW, BLOCK, DIAMETER, WEIGHT, GROUP, TEXT = range(16, 22)


_R = RelationType
DIMENSIONS = {_R.DISTANCE, _R.DISTANCE_X, _R.DISTANCE_Y, _R.ANGLE, _R.RADIUS, _R.DIAMETER, _R.SNELLS_LAW, _R.WEIGHT}


class PointPos(IntEnum):
    """Which point of a geometry; a point's only one is its start, a circle's is its center."""

    WHOLE, START, END, CENTER = range(4)


class GeoId(NamedTuple):
    """A geometry's number, and which point of it."""

    geo: int
    pos: PointPos = PointPos.WHOLE


X_AXIS, Y_AXIS, ORIGIN = GeoId(-1), GeoId(-2), GeoId(-1, PointPos.START)


@dataclass(frozen=True, slots=True)
class Relation:
    """A constraint as FreeCAD writes it. A reference dimension is not driving; an inactive one is switched off."""

    type: RelationType
    ids: tuple[GeoId, ...]
    value: float = 0.0
    label: str = ""
    driving: bool = True
    active: bool = True

    @property
    def is_solved(self) -> bool:
        """Whether FreeCAD's solver uses it."""
        return self.active and self.driving

    def to_element(self) -> Element:
        attributes = {"Name": self.label, "Type": str(int(self.type)), "Value": repr(float(self.value))}
        for slot, (geo, pos) in zip(_SLOTS, (*self.ids, GeoId(_UNDEFINED), GeoId(_UNDEFINED)), strict=False):
            attributes |= {slot: str(geo), f"{slot}Pos": str(int(pos))}
        flags = {"IsDriving": self.driving, "IsInVirtualSpace": False, "IsActive": self.active}
        attributes |= {"LabelDistance": "10", "LabelPosition": "0"} | {k: str(int(v)) for k, v in flags.items()}
        return Element("Constrain", attributes)


def read_relation(element: Element) -> Relation:
    """The relation of a `Constrain` element; raises `ValueError` for what FreeCAD would not write."""
    value = float(element.get("Value", "0"))
    if not math.isfinite(value) or len(element.get("ElementIds", "").split()) > len(_SLOTS):
        raise ValueError("a value that is not a number, or more than three references")
    ids: list[GeoId] = []
    for slot in _SLOTS:
        geo = int(element.get(slot, _UNDEFINED))
        if geo == _UNDEFINED:
            break
        ids.append(GeoId(geo, PointPos(int(element.get(f"{slot}Pos", 0)))))
    if not ids:
        raise ValueError("no reference")
    driving, active = (element.get(name, "1") != "0" for name in ("IsDriving", "IsActive"))
    type_ = RelationType(int(element.get("Type", "0")))
    return Relation(type_, tuple(ids), value, element.get("Name", ""), driving, active)


def read_primitive(element: Element) -> Primitive | str:
    """The primitive of a `Geometry` element, or the reason why there is none."""
    kind = element.get("type", "").rpartition("::")[2]
    if kind not in _TAGS:
        return f"{kind or 'geometry without a type'} cannot be a primitive"
    shape = element.find(_TAGS[kind])
    try:
        return _primitive(kind, {} if shape is None else shape.attrib, _is_construction(element, kind))
    except (KeyError, ValueError):  # a GeometryError is a ValueError
        return f"{kind} with impossible numbers"


def primitive_element(primitive: Primitive) -> Element:
    """The `Geometry` element of a primitive."""
    match primitive:
        case Line(start, end):
            kind, numbers = "GeomLineSegment", _vector("Start", *start) | _vector("End", *end)
        case Circle(center, radius):
            kind, numbers = "GeomCircle", _plane(*center) | _numbers(Radius=radius)
        case Arc(center, radius, start_angle, sweep):
            angles = _numbers(Radius=radius, StartAngle=start_angle, EndAngle=start_angle + sweep)
            kind, numbers = "GeomArcOfCircle", _plane(*center) | angles
        case Point(at):
            kind, numbers = "GeomPoint", _vector("", *at)
    element = Element("Geometry", type=f"Part::{kind}")
    flags = f"{_CONSTRUCTION_BIT * primitive.construction:0{_MODE_FLAGS}b}"
    extension = {"type": _EXTENSION, "internalGeometryType": "0", "geometryModeFlags": flags, "geometryLayer": "0"}
    # FreeCAD stops reading at a geometry without an extension.
    SubElement(SubElement(element, "GeoExtensions", count="1"), "GeoExtension", extension)
    SubElement(element, _TAGS[kind], numbers)
    return element


def _is_construction(element: Element, kind: str) -> bool:
    extension = element.find(f"GeoExtensions/GeoExtension[@type='{_EXTENSION}']")
    if extension is None:
        # Before FreeCAD 0.19. A point was never part of a profile then, and FreeCAD reads it as construction today.
        old = element.find("Construction")
        return kind == "GeomPoint" or (old is not None and old.get("value") == "1")
    # Helpers of an ellipse or a spline, such as its axes, are no part of a profile either.
    helper = extension.get("internalGeometryType", "0") != "0"
    return helper or extension.get("geometryModeFlags", "")[-_CONSTRUCTION_BIT:-1] == "1"


def _primitive(kind: str, of: Mapping[str, str], construction: bool) -> Primitive:
    if kind == "GeomLineSegment":
        return Line(_place(of, "Start"), _place(of, "End"), construction)
    if kind == "GeomPoint":
        return Point(_place(of, ""), construction)
    center, radius, faces_up = _place(of, "Center"), float(of["Radius"]), _faces_up(of)
    if kind == "GeomCircle":
        return Circle(center, radius, construction)
    turn, start, end = float(of.get("AngleXU", 0)), float(of["StartAngle"]), float(of["EndAngle"])
    if not math.isfinite(turn + start + end):
        raise GeometryError("an arc has an angle that is not a number")
    # Seen from above, a plane that faces down has its x direction along −x and turns clockwise: t is at π − t.
    begins = turn + start if faces_up else math.pi - turn - end
    return Arc(center, radius, begins, (end - start) % TAU, construction)


def _place(of: Mapping[str, str], name: str) -> Vec:
    return (float(of[f"{name}X"]), float(of[f"{name}Y"]))


def _faces_up(of: Mapping[str, str]) -> bool:
    """Whether a circle's plane faces up rather than down; any other plane is not that of a sketch."""
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
