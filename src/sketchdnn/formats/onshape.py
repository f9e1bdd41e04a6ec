"""Onshape JSON, the source of SketchGraphs: files of sketch features, as its REST API returns and takes them.

Entities and constraints are those of SketchGraphs, with names instead of numbers. A constraint refers to an entity by
its id, to a part by `<id>.start`, and to anything outside by a query. Label positions and drawing tools are not read.
Objects come in an old form, `{"typeName": "BTMSketch", "message": {…}}`, and a new one,
`{"btType": "BTMSketch-151", …}`. The new one is written: one sketch as the body of the call that adds a feature, many
as a list of features.

Onshape has fewer types of constraints. Where a constraint would be read back as another one, its `name`, a text that
Onshape does not interpret, holds ours as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.geometry import Constraint, Kind, Part, Primitive, Ref, Sketch
from sketchdnn.geometry.constraints import LENGTHS, PARTS_OF_KIND
from sketchdnn.geometry.records import constraint_to_dict, parse_constraint
from sketchdnn.io import atomic_write

from .checks import read_bounded
from .format import Format, Losses, ReadItem, Skipped
from .json_files import dump_json, parse_json
from .sketchgraphs.constraints import NAMES, NOTE, ambiguity_note, encode_constraint, losses_in_meters, plain, quantity
from .sketchgraphs.entities import EntityCollector, primitive_to_entity
from .sketchgraphs.pickles import EntityType
from .sketchgraphs.sketches import DAMAGED_CONSTRAINT, OUTSIDE, SKIPPED, SketchDraft, Target, build_sketches

Json = dict[str, Any]

# Real files reach a few MiB; JSON may need 20 bytes of memory for one of its own.
LARGEST_FILE = 32 * 2**20

_GEOMETRY_LABELS = {
    "BTCurveGeometryEllipse": EntityType.ELLIPSE, "BTCurveGeometryConic": EntityType.CONIC,
    "BTCurveGeometrySpline": EntityType.SPLINE, "BTCurveGeometryInterpolatedSpline": EntityType.SPLINE,
}  # fmt: skip
_NOT_CURVES = {"BTMSketchTextEntity": "a text", "BTMSketchImageEntity": "an image"}
_PART_IDS = {"startPointId": Part.START, "endPointId": Part.END, "centerId": Part.CENTER}
# The position of a reference such as localFirst or externalSecond; others keep the order of the file.
_POSITIONS = {"First": 0, "Second": 1, "Mirror": 2, "Midpoint": 0, "Entity1": 1, "Entity2": 2}
_DISPLAY_KEYS = ("sketchToolType", "radiusDisplay")
_DOCUMENT = re.compile(r"(\d+_[0-9a-f]{24})_featurescript_\d+")

_GEOMETRY = {
    Kind.LINE: ("BTMSketchCurveSegment-155", "BTCurveGeometryLine-117"),
    Kind.ARC: ("BTMSketchCurveSegment-155", "BTCurveGeometryCircle-115"),
    Kind.CIRCLE: ("BTMSketchCurve-4", "BTCurveGeometryCircle-115"),
    Kind.POINT: ("BTMSketchPoint-158", ""),
}
# Types without their versions.
_LABELS = {tuple(name.split("-")[0] for name in names): EntityType[kind.name] for kind, names in _GEOMETRY.items()}
_ENTITY_FIELDS = ("startParam", "endParam", "isConstruction")  # the others belong to the geometry
_ENUMS = {
    "direction": "DimensionDirection", "alignment": "DimensionAlignment", "projectionType": "SketchProjectionType",
    **{f"halfSpace{i}": "DimensionHalfSpace" for i in range(4)},
}  # fmt: skip
_FLAGS = {"driven", "aligned", "clockwise", "flipped", "openPattern"}
_QUANTITIES = {"length", "angle", "patterng", "patternc1", "patternc2"}
# On the plane "Top", the other two default planes appear edge-on as the axes.
_OUTSIDE = {
    Part.ORIGIN: ('qCreatedBy(makeId("Origin"), EntityType.VERTEX)',),
    Part.X_AXIS: ('qCreatedBy(makeId("Front"), EntityType.FACE)',),
    Part.Y_AXIS: ('qCreatedBy(makeId("Right"), EntityType.FACE)',),
    Part.EXTERNAL: (),  # an object of the original document
}

Targets = dict[str, Target]


def read(path: Path) -> Iterator[ReadItem]:
    """The sketches of a file, in meters, with their constraints."""
    data = read_bounded(path, LARGEST_FILE)
    features = None
    with suppress(ValueError, RecursionError):  # not JSON, not UTF-8, a number of too many digits; nested too deeply
        features = _features(json.loads(data))
    if features is None:
        raise FormatError(path, "is not JSON with Onshape sketches")
    yield from _sketches(features, path.stem)


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """Write one sketch as the body of an API call, several as the features of a document."""
    losses = Losses()
    features: list[Json] = []
    for number, sketch in enumerate(sketches, start=1):
        losses.update(losses_in_meters(sketch, "onshape", keys=("name",)))
        if outside := sum(ref.part is Part.EXTERNAL for c in sketch.constraints for ref in c.refs):
            losses.changed["a reference to something outside the sketch, written as an empty query"] += outside
        try:
            features.append(sketch_to_feature(sketch, number))
        except SketchError as error:
            raise FormatError(path, f"cannot be written: {error}") from error
    if not features:
        raise FormatError(path, "is to hold sketches, and there is none")
    body: Json = {"btType": "BTFeatureListResponse-2457", "features": features}
    if len(features) == 1:
        body = {"btType": "BTFeatureDefinitionCall-1406", "feature": features[0]}
    text = json.dumps(body, indent=1, allow_nan=False) + "\n"
    if len(text) > LARGEST_FILE:
        raise FormatError(path, f"would be larger than {LARGEST_FILE >> 20} MiB; write to a folder, a file a sketch")
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="ascii")
    return losses


def _features(parsed: object) -> list[Any] | None:
    """The features in a list, in an object that lists them, or a single one; None for anything else."""
    match parsed:
        case list(features) | {"features": list(features)}:
            return features
        case {"feature": dict(feature)}:
            return [feature]
        case {"entities": list()} | {"message": {"entities": list()}}:
            return [parsed]
    return None


def _sketches(features: list[Any], stem: str) -> Iterator[ReadItem]:
    entities = EntityCollector()
    drafts: list[SketchDraft | Skipped] = []
    document = _DOCUMENT.fullmatch(stem)
    for index, feature in enumerate(features):
        match feature:
            case {"message": {"entities": list()} as sketch} | ({"entities": list()} as sketch):
                feature_id = sketch.get("featureId")
                name = f"{stem}/{feature_id if isinstance(feature_id, str) else index}"
                extra = {"source": "onshape", "id": name, "group": document[1] if document else stem}
                drafts.append(_read_draft(sketch, index, entities, extra))
            case dict():
                drafts.append(Skipped("a feature that is not a sketch"))
            case _:
                drafts.append(Skipped("a feature that is damaged", is_sketch=True))
    yield from build_sketches(drafts, entities)


def _read_draft(sketch: Json, owner: int, entities: EntityCollector, extra: Json) -> SketchDraft:
    draft = SketchDraft(extra | ({"name": sketch["name"]} if isinstance(sketch.get("name"), str) else {}))
    targets: Targets = {}
    for item in sketch["entities"]:
        _add_entity(item, owner, entities, targets)
    constraints = sketch.get("constraints")
    for item in constraints if isinstance(constraints, list) else []:
        match _open(item)[1]:
            case {"constraintType": str(name), "parameters": list(parameters), **fields} if name:
                refs, params = _parameters(parameters, targets)
                # SketchGraphs has the same names, in mixed case.
                draft.constraints.append((name.title(), refs, _apply_note(fields.get("name"), params)))
            case _:
                draft.skipped[DAMAGED_CONSTRAINT] += 1
    return draft


def _add_entity(item: object, owner: int, entities: EntityCollector, targets: Targets) -> None:
    type_, fields = _open(item)
    if not type_ or type_ in _NOT_CURVES:
        entities.skip(owner, _NOT_CURVES.get(type_, "an entity of unknown type"))
        return
    geometry, curve = _open(fields.get("geometry"))
    if geometry:
        fields = curve | fields
    label = _LABELS.get((type_, geometry), _GEOMETRY_LABELS.get(geometry, EntityType.UNKNOWN))
    if entities.add(owner, label, fields):
        for key, part in {"entityId": Part.WHOLE, **_PART_IDS}.items():
            if isinstance(fields.get(key), str) and fields[key]:
                targets.setdefault(fields[key], Target(len(entities) - 1, part))


def _parameters(parameters: list[Any], targets: Targets) -> tuple[tuple[Target, ...], Json]:
    """The references of a constraint in their order, and its other parameters."""
    refs: list[tuple[int, Target]] = []
    params: Json = {}
    for parameter in parameters:
        match _open(parameter):
            case ("BTMParameterString", {"parameterId": str(key), "value": str(name)}) if key.startswith("local"):
                refs.append((_position(key.removeprefix("local")), _target(name, targets)))
            case (_, {"parameterId": str(key)}) if key.startswith("external"):
                refs.append((_position(key.removeprefix("external")), OUTSIDE))
            case (_, {"parameterId": str(key)}) if key.startswith("label") or key in _DISPLAY_KEYS:
                pass
            case (_, {"parameterId": str(key), "expression": value} | {"parameterId": str(key), "value": value}):
                params[key] = value
    return tuple(target for _, target in sorted(refs, key=lambda ref: ref[0])), params


def _open(item: object) -> tuple[str, Json]:
    """The type and fields of an object in either form; empty where it has none."""
    if not isinstance(item, dict):
        return "", {}
    old, new, fields = item.get("typeName"), item.get("btType"), item.get("message")
    if isinstance(fields, dict):
        return old if isinstance(old, str) else "", fields
    return (new.partition("-")[0], item) if isinstance(new, str) else ("", {})


def _position(role: str) -> int:
    return int(role) if role.isdecimal() and len(role) < 4 else _POSITIONS.get(role, 0)


def _target(name: str, targets: Targets) -> Target:
    if name in targets:
        return targets[name]
    entity_id, _, suffix = name.rpartition(".")
    if entity_id in targets and suffix in _PART_IDS.values():
        return Target(targets[entity_id].entity, Part(suffix))
    return SKIPPED  # a spline, a text, an image, or not in this sketch


def sketch_to_feature(sketch: Sketch, number: int = 1) -> Json:
    """The feature of a sketch on the plane "Top", in meters; a sketch without units is taken to be in meters."""
    sketch = sketch.in_units("m")
    name = sketch.extra.get("name")
    return {
        "btType": "BTMSketch-151",
        "featureType": "newSketch",
        "name": name if isinstance(name, str) and name else f"Sketch {number}",
        "suppressed": False,
        "parameters": [_queries("sketchPlane", ('qCreatedBy(makeId("Top"), EntityType.FACE)',))],
        "entities": [_entity(i, primitive) for i, primitive in enumerate(sketch)],
        "constraints": [_constraint(i, c, sketch.primitives) for i, c in enumerate(sketch.constraints)],
    }


def _apply_note(text: object, params: Json) -> Json:
    """The parameters of a constraint, completed by its name if that is a note of ours."""
    if not isinstance(text, str) or not text.startswith("{"):
        return params
    try:
        note = parse_constraint(parse_json(text))
    except SketchError:
        return params
    params = {**plain(note.extra), **params, NOTE: text}
    if note.name is not None:
        params["name"] = note.name
    if note.value is not None and note.type not in LENGTHS:
        params["value"] = note.value
    elif note.value is not None and quantity(params.get("length"), is_angle=False) == abs(note.value):
        params["length"] = f"{note.value!r} METER"  # a signed distance; Onshape stores none
    return params


def _entity(index: int, primitive: Primitive) -> Json:
    _, fields = primitive_to_entity(primitive)
    own = {key: fields.pop(key) for key in _ENTITY_FIELDS if key in fields}
    type_, curve = _GEOMETRY[primitive.kind]
    entity: Json = {"btType": type_, "entityId": _id(Ref(index))}
    if primitive.kind is Kind.POINT:
        return {**entity, **own, "isUserPoint": True, **fields}
    own_parts = PARTS_OF_KIND[primitive.kind]
    parts = {key: _id(Ref(index, part)) for key, part in _PART_IDS.items() if part in own_parts}
    return {**entity, **parts, **own, "geometry": {"btType": curve, **fields}}


def _constraint(index: int, constraint: Constraint, primitives: Sequence[Primitive]) -> Json:
    code, params = encode_constraint(constraint)
    roles = _roles(NAMES[code], len(constraint.refs))
    parameters = [_reference(ref, role) for ref, role in zip(constraint.refs, roles, strict=True)]
    written = {key: parameter for key, value in params.items() if (parameter := _parameter(key, value))}
    accepted = {key: params[key] for key in written}
    return {
        "btType": "BTMSketchConstraint-2",
        "constraintType": NAMES[code].upper(),
        "entityId": f"c{index}",
        "name": _note(constraint, params, accepted, primitives),
        "parameters": [*parameters, *written.values()],
    }


def _note(constraint: Constraint, params: Json, accepted: Json, primitives: Sequence[Primitive]) -> str:
    """Our own constraint as JSON, if the parameters that Onshape accepts do not define it; else empty."""
    refs = tuple(_read_back(ref, primitives) for ref in constraint.refs)
    signed = constraint.type in LENGTHS and constraint.value is not None and constraint.value < 0
    other = {key: value for key, value in params.items() if key not in accepted}
    if not (ambiguity_note(constraint, refs, accepted, primitives) or signed or other):
        return ""
    value = constraint.value if signed or "value" in other else None
    extra = {key: value for key, value in other.items() if key not in ("name", "value")}
    note = Constraint(constraint.type, constraint.refs, value, constraint.name, extra)
    return dump_json(constraint_to_dict(note))


def _read_back(ref: Ref, primitives: Sequence[Primitive]) -> Ref:
    """The reference that is read back from the file."""
    if ref.primitive is None:
        return Ref(None, Part.EXTERNAL)
    return Ref(ref.primitive, Part.POINT) if primitives[ref.primitive].kind is Kind.POINT else ref


def _roles(name: str, count: int) -> tuple[str, ...]:
    """The names that Onshape gives to the references of a constraint, in our order."""
    if name == "Mirror" and count == 3:
        return ("First", "Second", "Mirror")
    if name == "Midpoint" and count in (2, 3):
        return ("Midpoint", "Entity1", "Entity2")[3 - count :]
    return ("First", "Second")[:count] if count <= 2 else tuple(map(str, range(count)))


def _reference(ref: Ref, role: str) -> Json:
    if ref.primitive is None:
        return _queries(f"external{role}", _OUTSIDE[ref.part])
    return {"btType": "BTMParameterString-149", "parameterId": f"local{role}", "value": _id(ref)}


def _id(ref: Ref) -> str:
    part = "" if ref.part in (Part.WHOLE, Part.POINT) else f".{ref.part.value}"
    return f"e{ref.primitive}{part}"


def _queries(key: str, queries: Sequence[str]) -> Json:
    items = [{"btType": "BTMIndividualQuery-138", "queryString": f"query={query};"} for query in queries]
    return {"btType": "BTMParameterQueryList-148", "parameterId": key, "queries": items}


def _parameter(key: str, value: object) -> Json | None:
    """A parameter as Onshape writes it; None if it has no such parameter."""
    if isinstance(value, bool) and key in _FLAGS:
        return {"btType": "BTMParameterBoolean-144", "parameterId": key, "value": value}
    if isinstance(value, str) and key in _ENUMS:
        return {"btType": "BTMParameterEnum-145", "parameterId": key, "enumName": _ENUMS[key], "value": value}
    if not isinstance(value, str) or key not in _QUANTITIES:
        return None
    words = value.replace(" METER", "*m").replace(" DEGREE", "*deg")
    words = words.removeprefix("-") if key == "length" else words
    return {"btType": "BTMParameterQuantity-147", "parameterId": key, "expression": words, "isInteger": False}


def _recognizes(path: Path, head: bytes) -> bool:
    words = (b'"constraintType"', b'"entities"', b'"featureType"', b'"BTM')
    return path.suffix.lower() == ".json" and b'"primitives"' not in head and any(word in head for word in words)


FORMAT = Format("onshape", (".onshape.json",), True, _recognizes, read, write, is_text=True)
