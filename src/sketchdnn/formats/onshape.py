"""Onshape JSON, the source of SketchGraphs: files of sketch features, as its REST API gives and takes them.

Entities and constraints mean what they mean in SketchGraphs; here they have names instead of numbers. A constraint
refers to an entity by its id, to a part of one by `<id>.start`, and to anything outside by a query. Where a dimension's
label sits on the screen, and which tool drew a thing, is not read. Each object says its type in an old form,
`{"typeName": "BTMSketch", "message": {…}}`, or a new one, `{"btType": "BTMSketch-151", …}`. We write the new one: one
sketch as the body of the call that adds a feature, many as a list of features.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats.format import Losses, ReadItem, Skipped
from sketchdnn.geometry import Part, Sketch
from sketchdnn.io import atomic_write

from .format import Format, format_losses
from .onshape_features import Json, feature_of, noted
from .sketchgraphs.drafts import DAMAGED, LEFT_OUT, OUTSIDE, Draft, Target, assemble
from .sketchgraphs.entities import Entities
from .sketchgraphs.notes import LOST_PARAMETER, lost_parameters
from .sketchgraphs.ops import EntityType

# Real files reach a few MiB; JSON may need 20 bytes of memory for one of its own.
LARGEST_FILE = 32 * 2**20

_LABELS = {
    ("BTMSketchPoint", ""): EntityType.POINT,
    ("BTMSketchCurveSegment", "BTCurveGeometryLine"): EntityType.LINE,
    ("BTMSketchCurveSegment", "BTCurveGeometryCircle"): EntityType.ARC,
    ("BTMSketchCurve", "BTCurveGeometryCircle"): EntityType.CIRCLE,
}
_GEOMETRY_LABELS = {
    "BTCurveGeometryEllipse": EntityType.ELLIPSE,
    "BTCurveGeometrySpline": EntityType.SPLINE,
    "BTCurveGeometryInterpolatedSpline": EntityType.SPLINE,
    "BTCurveGeometryConic": EntityType.CONIC,
}
_NO_CURVE = {"BTMSketchTextEntity": "a text", "BTMSketchImageEntity": "an image"}
_PART_IDS = {"startPointId": Part.START, "endPointId": Part.END, "centerId": Part.CENTER}
_SUFFIXES = {"start": Part.START, "end": Part.END, "center": Part.CENTER}
# The place in a constraint that a parameter such as localFirst or externalSecond fills; others keep the file's order.
_PLACES = {"First": 0, "Second": 1, "Mirror": 2, "Midpoint": 0, "Entity1": 1, "Entity2": 2}
_DISPLAY = frozenset({"sketchToolType", "radiusDisplay"})
_DOCUMENT = re.compile(r"(\d+_[0-9a-f]{24})_featurescript_\d+")

Targets = dict[str, Target]


def read(path: Path) -> Iterator[ReadItem]:
    """The sketches of a file, in meters, with their constraints."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror})") from error
    if len(data) > LARGEST_FILE:
        raise FormatError(path, f"is larger than {LARGEST_FILE >> 20} MiB")
    features = _features(_parse(data))
    if features is None:
        raise FormatError(path, "is not JSON with Onshape sketches")
    yield from _sketches(features, path.stem)


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """One sketch as the body of a call to the API, several as the features of a document."""
    losses = Losses()
    stream = _counted(sketches, losses)
    first = list(islice(stream, 2))
    if not first:
        raise FormatError(path, "is to hold sketches, and there is none")
    try:
        if len(first) == 1:
            text = _text({"btType": "BTFeatureDefinitionCall-1406", "feature": feature_of(first[0])})
        else:
            features = [feature_of(sketch, number) for number, sketch in enumerate(chain(first, stream), start=1)]
            text = _text({"btType": "BTFeatureListResponse-2457", "features": features})
    except SketchError as error:
        raise FormatError(path, f"cannot be written: {error}") from error
    if len(text) > LARGEST_FILE:
        raise FormatError(path, f"would be larger than {LARGEST_FILE >> 20} MiB; write to a folder, a file a sketch")
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="ascii")
    return losses


def _counted(sketches: Iterable[Sketch], losses: Losses) -> Iterator[Sketch]:
    """The same sketches, and what a feature cannot hold of them."""
    for sketch in sketches:
        losses.update(format_losses(sketch, "onshape", constraints=True, keys=("name",), units="m"))
        if lost := lost_parameters(sketch):
            losses.left_out[LOST_PARAMETER] += lost
        if outside := sum(ref.part is Part.EXTERNAL for c in sketch.constraints for ref in c.refs):
            losses.changed["a reference to something outside the sketch, written as an empty query"] += outside
        yield sketch


def _text(value: Json) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _parse(data: bytes) -> object:
    """What JSON text holds, or None."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):  # not JSON or not UTF-8, a number too long to read; nested too deeply
        return None


def _features(parsed: object) -> list[Any] | None:
    """A list of features, one feature, or an object that lists them; None for anything else."""
    match parsed:
        case list():
            return parsed
        case {"features": list(features)}:
            return features
        case {"feature": dict(feature)}:
            return [feature]
        case {"entities": list()} | {"message": {"entities": list()}}:
            return [parsed]
    return None


def _sketches(features: list[Any], stem: str) -> Iterator[ReadItem]:
    entities = Entities()
    drafts: list[Draft | Skipped] = []
    document = _DOCUMENT.fullmatch(stem)
    for index, feature in enumerate(features):
        match feature:
            case {"message": {"entities": list()} as sketch} | ({"entities": list()} as sketch):
                feature_id = sketch.get("featureId")
                extra = {
                    "source": "onshape",
                    "id": f"{stem}/{feature_id if isinstance(feature_id, str) else index}",
                    "group": document[1] if document else stem,
                }
                drafts.append(_draft(sketch, index, entities, extra))
            case dict():
                drafts.append(Skipped("a feature that is not a sketch"))
            case _:
                drafts.append(Skipped("a feature that is damaged", is_sketch=True))
    yield from assemble(drafts, entities)


def _draft(sketch: Json, owner: int, entities: Entities, extra: Json) -> Draft:
    draft = Draft(extra | ({"name": sketch["name"]} if isinstance(sketch.get("name"), str) else {}))
    targets: Targets = {}
    for item in sketch["entities"]:
        _add_entity(item, owner, entities, targets)
    constraints = sketch.get("constraints")
    for item in constraints if isinstance(constraints, list) else []:
        match _opened(item)[1]:
            case {"constraintType": str(name), "parameters": list(parameters), **fields} if name:
                refs, params = _parameters(parameters, targets)
                # SketchGraphs has the same names, in other letters.
                draft.constraints.append((name.title(), refs, noted(fields.get("name"), params)))
            case _:
                draft.skipped[DAMAGED] += 1
    return draft


def _add_entity(item: object, owner: int, entities: Entities, targets: Targets) -> None:
    type_, fields = _opened(item)
    if not type_:
        entities.leave_out(owner, "an entity of unknown type")
        return
    if type_ in _NO_CURVE:
        entities.leave_out(owner, _NO_CURVE[type_])
        return
    geometry, curve = _opened(fields.get("geometry"))
    if geometry:
        fields = curve | fields
    label = _LABELS.get((type_, geometry), _GEOMETRY_LABELS.get(geometry, EntityType.UNKNOWN))
    number = len(entities)
    if not entities.add(owner, label, fields):
        return
    for key, part in {"entityId": Part.WHOLE, **_PART_IDS}.items():
        if isinstance(fields.get(key), str) and fields[key]:
            targets.setdefault(fields[key], Target(number, part))


def _parameters(parameters: list[Any], targets: Targets) -> tuple[tuple[Target, ...], Json]:
    """What a constraint refers to, in the order it is read, and its other parameters."""
    refs: list[tuple[int, Target]] = []
    params: Json = {}
    for parameter in parameters:
        match _opened(parameter):
            case ("BTMParameterString", {"parameterId": str(key), "value": str(name)}) if key.startswith("local"):
                refs.append((_place(key.removeprefix("local")), _target(name, targets)))
            case (_, {"parameterId": str(key)}) if key.startswith("external"):
                refs.append((_place(key.removeprefix("external")), OUTSIDE))
            case (_, {"parameterId": str(key)}) if key.startswith("label") or key in _DISPLAY:
                pass
            case (_, {"parameterId": str(key), "expression": value}):
                params[key] = value
            case (_, {"parameterId": str(key), "value": value}):
                params[key] = value
    return tuple(target for _, target in sorted(refs, key=lambda ref: ref[0])), params


def _opened(item: object) -> tuple[str, Json]:
    """The type of an object and its fields, in either form; no type or no fields where there is none."""
    if not isinstance(item, dict):
        return "", {}
    old, new, fields = item.get("typeName"), item.get("btType"), item.get("message")
    if isinstance(fields, dict):
        return old if isinstance(old, str) else "", fields
    return (new.partition("-")[0], item) if isinstance(new, str) else ("", {})


def _place(role: str) -> int:
    return int(role) if role.isdecimal() and len(role) < 4 else _PLACES.get(role, 0)


def _target(name: str, targets: Targets) -> Target:
    if name in targets:
        return targets[name]
    entity_id, _, suffix = name.rpartition(".")
    if entity_id in targets and suffix in _SUFFIXES:
        return Target(targets[entity_id].entity, _SUFFIXES[suffix])
    return LEFT_OUT  # of a spline, a text, an image, or of nothing in this sketch


def _recognizes(path: Path, head: bytes) -> bool:
    words = (b'"constraintType"', b'"entities"', b'"featureType"', b'"BTM')
    return path.suffix.lower() == ".json" and b'"primitives"' not in head and any(word in head for word in words)


FORMAT = Format(
    "onshape", (".onshape.json",), holds_many=True, recognizes=_recognizes, read=read, write=write, is_text=True
)
