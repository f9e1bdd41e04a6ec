"""A sketch of FreeCAD as the JSON of the server, in millimeters and radians.

Lines, circles, arcs and points become primitives. Ellipses, splines, their helpers and external geometry do not: a
constraint to one of these is sent as a reference `["external"]`, and a point that coincides with one is sent as fixed.
Reference dimensions and constraints that are switched off are not sent. `relations.py` is the way back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
Vec = tuple[float, float]
Ref = list[Any]

TAU = 2 * math.pi
MM_PER_UNIT = {
    "um": 1e-3,
    "mm": 1.0,
    "cm": 10.0,
    "dm": 100.0,
    "m": 1e3,
    "km": 1e6,
    "mil": 0.0254,
    "in": 25.4,
    "ft": 304.8,
    "yd": 914.4,
}
LENGTHS = frozenset({"distance", "horizontal_distance", "vertical_distance", "length", "radius", "diameter"})
DIMENSIONS = LENGTHS | {"angle"}
EXTERNAL: Ref = ["external"]
WHOLE, START, END, CENTER = range(4)
# What a constraint refers to when FreeCAD stores no geometry there.
UNDEFINED = -2000
KINDS = {
    "Part::GeomLineSegment": "line",
    "Part::GeomCircle": "circle",
    "Part::GeomArcOfCircle": "arc",
    "Part::GeomPoint": "point",
}
_PARTS = {WHOLE: "whole", START: "start", END: "end", CENTER: "center"}
_AXES = {-1: "x_axis", -2: "y_axis"}
_SAME_NAME = {"Horizontal", "Vertical", "Parallel", "Perpendicular", "Tangent", "Equal", "Symmetric", "Radius"}
_SAME_NAME |= {"Diameter", "Angle", "Coincident"}
_TYPES = {name: name.lower() for name in _SAME_NAME} | {"PointOnObject": "point_on_curve", "Block": "fix"}
_TYPES |= {"DistanceX": "horizontal_distance", "DistanceY": "vertical_distance", "Distance": "distance"}


@dataclass(frozen=True)
class SketchData:
    """A sketch as the server takes it, and where its parts are in FreeCAD.

    Attributes:
        record: The JSON sketch.
        geo_ids: The number of each primitive's geometry.
        unseen: How many of each other type of geometry the sketch has; these are not sent.
    """

    record: Record
    geo_ids: tuple[int, ...]
    unseen: Mapping[str, int]


def read_sketch(sketch: Any) -> SketchData:
    """The JSON of a `Sketcher::SketchObject`."""
    geometry = sketch.Geometry
    helpers = {c.First for c in sketch.Constraints if c.Type == "InternalAlignment"}
    primitives: list[Record] = []
    geo_ids: list[int] = []
    unseen: Counter[str] = Counter()
    for geo_id, shape in enumerate(geometry):
        if geo_id in helpers:
            continue
        if shape.TypeId not in KINDS:
            unseen[shape.TypeId.replace("Part::Geom", "")] += 1
            continue
        primitives.append(_primitive(sketch, geo_id, shape))
        geo_ids.append(geo_id)
    if num_external := sum(len(names) for _, names in sketch.ExternalGeometry):
        unseen["ExternalGeometry"] = num_external
    numbering = {geo_id: index for index, geo_id in enumerate(geo_ids)}
    constraints = list(_constraints(sketch.Constraints, numbering, primitives))
    return SketchData({"primitives": primitives, "constraints": constraints, "units": "mm"}, tuple(geo_ids), unseen)


def _primitive(sketch: Any, geo_id: int, shape: Any) -> Record:
    kind = KINDS[shape.TypeId]
    record: Record = {"type": kind, "construction": bool(sketch.getConstruction(geo_id))}
    if kind == "line":
        return record | {"start": _xy(shape.StartPoint), "end": _xy(shape.EndPoint)}
    if kind == "point":
        return record | {"at": [shape.X, shape.Y]}
    record |= {"center": _xy(shape.Center), "radius": shape.Radius}
    return record | _angles(sketch, geo_id, shape) if kind == "arc" else record


def _angles(sketch: Any, geo_id: int, arc: Any) -> Record:
    """The angles of an arc from its counter-clockwise start, which FreeCAD numbers as the start whatever its plane."""
    if arc.Axis.z > 0 and arc.AngleXU == 0:
        start, end = arc.FirstParameter, arc.LastParameter
    else:
        points = [sketch.getPoint(geo_id, pos) for pos in (START, END)]
        start, end = (math.atan2(p.y - arc.Center.y, p.x - arc.Center.x) for p in points)
    if end <= start:
        end += TAU
    return {"start_angle": start, "end_angle": end}


def _xy(point: Any) -> list[float]:
    return [point.x, point.y]


def _constraints(
    constraints: Sequence[Any], numbering: Mapping[int, int], primitives: Sequence[Record]
) -> Iterator[Record]:
    for constraint in constraints:
        is_on = constraint.Driving and getattr(constraint, "IsActive", True)
        if is_on and constraint.Type != "InternalAlignment":
            record = _constraint(constraint, numbering, primitives)
            if record is not None:
                yield record | ({"label": constraint.Name} if constraint.Name else {})


def _constraint(constraint: Any, numbering: Mapping[int, int], primitives: Sequence[Record]) -> Record | None:
    """The record of a constraint; none if it refers only to what is not sent."""
    places = _places(constraint)
    refs = [_ref(geo_id, pos, numbering, primitives) for geo_id, pos in places]
    if all(ref[0] in ("external", "origin", "x_axis", "y_axis") for ref in refs):
        return None
    if constraint.Type == "Coincident" and EXTERNAL in refs:
        return {"type": "fix", "refs": [ref for ref in refs if ref != EXTERNAL]}
    type_, refs = _type(constraint.Type, places, refs, primitives)
    record: Record = {"type": type_, "refs": refs}
    if type_ == "other":
        return record | {"name": constraint.Type}
    return record | {"value": constraint.Value} if type_ in DIMENSIONS else record


def _places(constraint: Any) -> list[tuple[int, int]]:
    """What a constraint refers to: numbers of geometry, and which point of each."""
    slots = ((getattr(constraint, name), getattr(constraint, f"{name}Pos")) for name in ("First", "Second", "Third"))
    return [(geo_id, int(pos)) for geo_id, pos in slots if geo_id != UNDEFINED]


def _ref(geo_id: int, pos: int, numbering: Mapping[int, int], primitives: Sequence[Record]) -> Ref:
    if geo_id in _AXES and pos == START:
        return ["origin"]
    if geo_id in _AXES:
        return [_AXES[geo_id]]
    if geo_id not in numbering:
        return EXTERNAL
    index = numbering[geo_id]
    if primitives[index]["type"] == "point" and pos != WHOLE:
        return [index, "point"]
    return [index, _PARTS[pos]]


def _type(
    name: str, places: Sequence[tuple[int, int]], refs: list[Ref], primitives: Sequence[Record]
) -> tuple[str, list[Ref]]:
    """The type of a constraint and its references in the server's format."""
    type_ = _TYPES.get(name, "other")
    is_point = [pos != WHOLE for _, pos in places]
    if name == "Tangent" and len(refs) == 2 and all(is_straight(ref, primitives) for ref in refs):
        return "collinear", refs
    if name == "Distance":
        if any(is_round(ref, primitives) for ref in refs):  # between the curves, or along an arc: not between centers
            return "other", refs
        return ("length" if len(refs) == 1 else type_), refs
    if name in ("DistanceX", "DistanceY") and len(refs) == 1:
        index = refs[0][0]
        return type_, [["origin"], refs[0]] if is_point[0] else [[index, "start"], [index, "end"]]
    if name == "Angle" and len(refs) == 2:  # the start of an axis is a direction along it here, not the origin
        return type_, [
            [_AXES[geo_id]] if geo_id in _AXES else ref for (geo_id, _), ref in zip(places, refs, strict=True)
        ]
    return type_, refs


def is_straight(ref: Ref, primitives: Sequence[Record]) -> bool:
    """Whether a reference is to a whole line or an axis."""
    if len(ref) == 1:
        return ref[0] in ("x_axis", "y_axis")
    return ref[1] == "whole" and primitives[ref[0]]["type"] == "line"


def is_round(ref: Ref, primitives: Sequence[Record]) -> bool:
    """Whether a reference is to a whole circle or arc."""
    return len(ref) == 2 and ref[1] == "whole" and primitives[ref[0]]["type"] in ("circle", "arc")


def point_of(ref: Ref, primitives: Sequence[Record]) -> Vec | None:
    """The point of a reference; none for a curve, an axis or external geometry."""
    if ref == ["origin"]:
        return (0.0, 0.0)
    if len(ref) == 1:
        return None
    primitive = primitives[ref[0]]
    if primitive["type"] == "point":
        return tuple(primitive["at"])
    if ref[1] == "whole":
        return None
    if primitive["type"] == "arc" and ref[1] != "center":
        return _on_arc(primitive, primitive[f"{ref[1]}_angle"])
    return tuple(primitive[ref[1]])


def _on_arc(arc: Record, angle: float) -> Vec:
    (x, y), radius = arc["center"], arc["radius"]
    return (x + radius * math.cos(angle), y + radius * math.sin(angle))


def points_of(primitive: Record) -> list[Vec]:
    """The points that make a primitive: its ends, center, and a radius beside it."""
    kind = primitive["type"]
    if kind == "line":
        return [tuple(primitive["start"]), tuple(primitive["end"])]
    if kind == "point":
        return [tuple(primitive["at"])]
    (x, y), radius = primitive["center"], primitive["radius"]
    points = [(x, y), (x + radius, y)]
    if kind == "arc":
        points += [_on_arc(primitive, primitive["start_angle"]), _on_arc(primitive, primitive["end_angle"])]
    return points


def bounds(primitives: Sequence[Record]) -> tuple[float, float, float, float] | None:
    """Left, bottom, right and top of some primitives, arcs taken as they are drawn; none without primitives."""
    xs: list[float] = []
    ys: list[float] = []
    for primitive in primitives:
        if primitive["type"] in ("line", "point"):
            points = points_of(primitive)
        else:
            start, end = primitive.get("start_angle", 0.0), primitive.get("end_angle", TAU)
            end += TAU * math.ceil((start - end) / TAU) if end <= start else 0.0
            quarters = range(math.ceil(start / (math.pi / 2)), math.floor(end / (math.pi / 2)) + 1)
            points = [_on_arc(primitive, angle) for angle in (start, end, *(q * math.pi / 2 for q in quarters))]
        xs += [x for x, _ in points]
        ys += [y for _, y in points]
    return (min(xs), min(ys), max(xs), max(ys)) if xs else None


def size_of(primitives: Sequence[Record]) -> float:
    """The larger side of the bounding box."""
    box = bounds(primitives)
    return max(box[2] - box[0], box[3] - box[1]) if box else 0.0


def in_mm(record: Record) -> Record:
    """A sketch in millimeters; one without units is in them already."""
    factor = MM_PER_UNIT.get(record.get("units") or "mm", 1.0)
    return record if factor == 1.0 else scaled(record, factor) | {"units": "mm"}


def scaled(record: Record, factor: float) -> Record:
    """A sketch with all lengths multiplied."""
    primitives = []
    for primitive in record["primitives"]:
        lengths = {k: [factor * x for x in primitive[k]] for k in ("start", "end", "center", "at") if k in primitive}
        if "radius" in primitive:
            lengths["radius"] = factor * primitive["radius"]
        primitives.append(primitive | lengths)
    constraints = [
        c | {"value": factor * c["value"]} if c["type"] in LENGTHS and c.get("value") is not None else c
        for c in record.get("constraints", [])
    ]
    return record | {"primitives": primitives, "constraints": constraints}
