"""Onshape JSON: entities and constraints, real sketches, damaged files, and the form that the API takes."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_forms import all_forms
from support.strategies import assert_refused, assert_same, assert_same_constraints, constraints_on, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import collect, detect_format, onshape, read, sketchgraphs, write
from sketchdnn.formats.format import ReadItem, Skipped
from sketchdnn.formats.onshape import sketch_to_feature
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
Json = dict[str, Any]


def entity(type_: str, id_: str, geometry: str = "", curve: Json | None = None, **fields: Any) -> Json:
    message: Json = {"entityId": id_, "isConstruction": False, **fields}
    if geometry:
        message["geometry"] = {"typeName": geometry, "message": curve}
    return {"typeName": type_, "message": message}


def line(id_: str, **fields: Any) -> Json:
    curve = {"dirX": 0.6, "dirY": 0.8, "pntX": 1.0, "pntY": 2.0}
    ends = {"startParam": 0.0, "endParam": 5.0}
    return entity("BTMSketchCurveSegment", id_, "BTCurveGeometryLine", curve, **(ends | fields))


ROUND = {"xCenter": 0.0, "yCenter": 0.0, "xDir": 0.0, "yDir": 1.0, "radius": 2.0, "clockwise": True}


def circle(id_: str, **fields: Any) -> Json:
    return entity("BTMSketchCurve", id_, "BTCurveGeometryCircle", ROUND, **fields)


def arc(id_: str, **fields: Any) -> Json:
    ends = {"startParam": 0.0, "endParam": 3 * math.pi / 2}
    return entity("BTMSketchCurveSegment", id_, "BTCurveGeometryCircle", ROUND, **(ends | fields))


def point(id_: str, **fields: Any) -> Json:
    return entity("BTMSketchPoint", id_, **({"x": 1.0, "y": 2.0} | fields))


def constraint(type_: str, **parameters: Any) -> Json:
    def parameter(key: str, value: Any) -> Json:
        if key.startswith("local"):
            return {"typeName": "BTMParameterString", "message": {"parameterId": key, "value": value}}
        if key.startswith("external"):
            return {"typeName": "BTMParameterQueryList", "message": {"parameterId": key, "queries": []}}
        if key in ("length", "angle") or key.startswith("label"):
            message = {"parameterId": key, "expression": value, "units": "", "value": 0.0}
            return {"typeName": "BTMParameterQuantity", "message": message}
        return {"typeName": "BTMParameterEnum", "message": {"parameterId": key, "value": value}}

    return {"message": {"constraintType": type_, "parameters": [parameter(*p) for p in parameters.items()]}}


def sketch(entities: list[Any], constraints: list[Any] | None = None) -> Json:
    head = {"featureType": "newSketch", "featureId": "F1", "name": "Sketch 1"}
    return {**head, "entities": entities, "constraints": constraints or []}


def found(tmp_path: Path, data: Any) -> list[ReadItem]:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    return list(onshape.read(path))


def only(tmp_path: Path, data: Any) -> Sketch:
    (one,) = found(tmp_path, data)
    assert isinstance(one, Sketch)
    return one


class TestMeaning:
    def test_entities(self, tmp_path: Path) -> None:
        one = only(tmp_path, [sketch([line("l"), circle("c", isConstruction=True), arc("a"), point("p")])])
        # The arc runs from the top three quarters round clockwise: counter-clockwise, from the left to the top.
        expected = (
            Line((1, 2), (4, 6)), Circle((0, 0), 2, True), Arc((0, 0), 2, -math.pi, 3 * math.pi / 2), Point((1, 2)),
        )  # fmt: skip
        assert_same(one, Sketch(expected), 1e-12)
        assert one.units == "m"
        assert one.extra == {"source": "onshape", "id": "a/F1", "group": "a", "name": "Sketch 1"}

    def test_constraints(self, tmp_path: Path) -> None:
        entities = [line("l"), arc("a"), point("p"), point("q"), circle("c", centerId="somewhere")]
        on_point = (Ref(2, Part.POINT), Ref(3, Part.POINT))
        distance = {"direction": "VERTICAL", "length": "0.5 in", "labelRatio": "0.5", "sketchToolType": "OFFSET"}
        cases = [
            (constraint("HORIZONTAL", localFirst="l"), Constraint(T.HORIZONTAL, (Ref(0),))),
            (
                constraint("COINCIDENT", externalSecond=1, localFirst="l.start"),
                Constraint(T.COINCIDENT, (Ref(0, Part.START), EXTERNAL)),
            ),
            (  # the arc is clockwise, so its start in the file is the end of ours
                constraint("COINCIDENT", localFirst="a.start", localSecond="l.end"),
                Constraint(T.COINCIDENT, (Ref(1, Part.END), Ref(0, Part.END))),
            ),
            (
                constraint("CONCENTRIC", local0="a.center", local1="somewhere"),
                Constraint(T.CONCENTRIC, (Ref(1, Part.CENTER), Ref(4, Part.CENTER))),
            ),
            (
                constraint("MIRROR", localMirror="l", localFirst="p", localSecond="q"),
                Constraint(T.SYMMETRIC, (*on_point, Ref(0))),
            ),
            (
                constraint("MIDPOINT", localEntity1="l.start", localEntity2="l.end", localMidpoint="p"),
                Constraint(T.MIDPOINT, (Ref(2, Part.POINT), Ref(0, Part.START), Ref(0, Part.END))),
            ),
            (
                constraint("DISTANCE", localFirst="p", localSecond="q", halfSpace0="LEFT", **distance),
                Constraint(T.VERTICAL_DISTANCE, on_point, 0.0127, extra={"halfSpace0": "LEFT"}),
            ),
            (
                constraint("LENGTH", localFirst="l", direction="MINIMUM", length="(#w) mm"),
                Constraint(T.LENGTH, (Ref(0),), extra={"length": "(#w) mm"}),
            ),
            (
                constraint("ANGLE", localFirst="l", externalSecond=1, angle="180.0*degree"),
                Constraint(T.ANGLE, (Ref(0), EXTERNAL), math.pi),
            ),
            (
                constraint("CENTERLINE_DIMENSION", localFirst="l", length="2 mm"),
                Constraint(T.OTHER, (Ref(0),), name="Centerline_Dimension", extra={"length": "2 mm"}),
            ),
        ]
        one = only(tmp_path, [sketch(entities, [stated for stated, _ in cases])])
        assert list(one.constraints) == [expected for _, expected in cases]

    @pytest.mark.parametrize(
        ("text", "meters"),
        [("12 mm", 0.012), ("7*millimeter", 0.007), (".5 in", 0.0127), ("2*ft", 0.6096), ("1e1 cm", 0.1), ("3 m", 3)],
    )
    def test_lengths(self, tmp_path: Path, text: str, meters: float) -> None:
        one = only(tmp_path, [sketch([circle("c")], [constraint("DIAMETER", localFirst="c", length=text)])])
        assert one.constraints[0].value == meters

    def test_unsupported_elements_are_counted(self, tmp_path: Path) -> None:
        others = [
            entity("BTMSketchCurveSegment", "s", "BTCurveGeometrySpline", {}),
            entity("BTMSketchCurve", "i", "BTCurveGeometryInterpolatedSpline", {}),
            entity("BTMSketchCurve", "e", "BTCurveGeometryEllipse", {}),
            entity("BTMSketchCurveSegment", "k", "BTCurveGeometryConic", {}), entity("BTMSketchTextEntity", "t"),
            entity("BTMSketchImageEntity", "m"), entity("BTMNew", "n"), line("z", endParam=0.0),
        ]  # fmt: skip
        on_them = [constraint("COINCIDENT", localFirst=f"{name}.start", localSecond="p") for name in "siektmnz?"]
        *skipped, one = found(tmp_path, [sketch([*others, point("p")], [*on_them, constraint("FIX", localFirst="p")])])
        assert isinstance(one, Sketch)
        assert one.primitives == (Point((1, 2)),)
        assert one.constraints == (Constraint(T.FIX, (Ref(0, Part.POINT),)),)
        assert one.extra["dropped_entities"] == 8
        assert collect(skipped).skipped == {
            "a spline": 2, "an ellipse": 1, "a conic": 1, "a text": 1, "an image": 1, "an entity of unknown type": 1,
            "a line of no length": 1, "a constraint on what was left out": 9,
        }  # fmt: skip

    @pytest.mark.parametrize(
        "wrap", [lambda s: s, lambda s: [s], lambda s: {"features": [s]}, lambda s: {"message": s}]
    )
    def test_ways_to_hold_sketch(self, tmp_path: Path, wrap: Any) -> None:
        assert len(only(tmp_path, wrap(sketch([point("p")])))) == 1

    def test_other_features_and_groups(self, tmp_path: Path) -> None:
        assert found(tmp_path, [{"featureType": "extrude"}, sketch([]), 5]) == [
            Skipped("a feature that is not a sketch"),
            Skipped("a sketch without a line, circle, arc or point", is_sketch=True),
            Skipped("a feature that is damaged", is_sketch=True),
        ]
        path = tmp_path / "00273126_d90a324875bc6891cbed2cf4_featurescript_005.json"
        path.write_text(json.dumps([sketch([point("p")])]))
        assert [s.extra["group"] for s in collect(onshape.read(path))] == ["00273126_d90a324875bc6891cbed2cf4"]


class TestBadFiles:
    def test_other_json_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        texts = (b"", b"\0" * 100, b"[", b'[{"entities": [', b"\xff\xfe\x00", b'"text"', b"5", b"null", b"{}")
        odd = (b'{"primitives": []}', b'{"entities": 5}', b"[" * 200_000, b'{"a":' * 100_000, b"[%b]" % (b"9" * 10_000))
        for text in texts + odd:
            path.write_bytes(text)
            assert_refused(onshape.read, path, r"a\.json: is not JSON with Onshape sketches")
        os.truncate(path, onshape.LARGEST_FILE + 1)
        assert_refused(onshape.read, path, "larger than 32 MiB")


def test_truncated_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    data = json.dumps([sketch([point("p")])]).encode()
    with tarfile.open(path, "w") as archive:
        for name in ("1.json", "2.json", "3.json"):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    whole = path.read_bytes()
    assert len(read(path)) == 3
    end = whole.rindex(b"3.json") + 512 + 512 * math.ceil(len(data) / 512)
    for suffix, compress in (("tar", bytes), ("tar.xz", lzma.compress), ("tar.gz", gzip.compress)):
        packed = tmp_path / f"b.{suffix}"
        for keep in range(0, end + 1, 256):
            packed.write_bytes(compress(whole[:keep]))
            with pytest.raises(FormatError):
                read(packed)


WRITTEN = Sketch(
    (Line((0.0, 0.0), (30.0, 0.0)), Arc((30.0, 10.0), 10.0, -math.pi / 2, math.pi),
        Circle((5.0, 5.0), 2.0, construction=True), Point((1.0, 2.0))),
    (Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))), Constraint(T.HORIZONTAL, (Ref(0),)),
        Constraint(T.TANGENT, (Ref(0), Ref(1))), Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
        Constraint(T.POINT_ON_CURVE, (Ref(3, Part.POINT), Ref(2))), Constraint(T.LENGTH, (Ref(0),), 30.0),
        Constraint(T.RADIUS, (Ref(1),), 10.0),
        Constraint(T.HORIZONTAL_DISTANCE, (Ref(2, Part.CENTER), Ref(3, Part.POINT)), -4.0)),
    "mm",
    {"name": "bracket"},
)  # fmt: skip


def trip(sketch: Sketch, path: Path) -> Sketch:
    onshape.write([sketch], path)
    reading = collect(onshape.read(path))
    assert not reading.skipped
    (again,) = reading
    return again


@given(st.data(), sketches(max_size=8, units="mm"))
def test_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, plain: Sketch) -> None:
    constraints = tuple(data.draw(st.lists(constraints_on(plain), max_size=6)))
    sketch = Sketch(plain.primitives, constraints, "mm").in_units("m")
    again = trip(sketch, tmp_path_factory.mktemp("trip") / "part.onshape.json")
    assert_same(sketch, again, 1e-12)
    assert_same_constraints(sketch, again, 1e-15)  # an angle is written in degrees


def test_every_form_of_constraint_survives(tmp_path: Path) -> None:
    for form in all_forms():
        in_meters = form.in_units("m")
        assert_same_constraints(in_meters, trip(in_meters, tmp_path / "form.onshape.json"), 1e-15)


def test_file_is_body_of_call_in_words_of_onshape(tmp_path: Path) -> None:
    path = tmp_path / "part.onshape.json"
    with pytest.raises(FormatError, match="there is none"):
        write([], path)
    assert not list(tmp_path.iterdir())
    write(WRITTEN, path)
    assert (detect_format(path).name, read(path).sketches[0].extra["name"]) == ("onshape", "bracket")
    call = json.loads(path.read_text())
    assert call["btType"] == "BTFeatureDefinitionCall-1406"
    feature = call["feature"]
    assert (feature["btType"], feature["featureType"]) == ("BTMSketch-151", "newSketch")
    types = ["CurveSegment-155", "CurveSegment-155", "Curve-4", "Point-158"]
    assert [e["btType"] for e in feature["entities"]] == [f"BTMSketch{type_}" for type_ in types]
    assert [e["isConstruction"] for e in feature["entities"]] == [False, False, True, False]
    line = feature["entities"][0]
    assert line["geometry"] == {"btType": "BTCurveGeometryLine-117", "dirX": 1, "dirY": 0, "pntX": 0, "pntY": 0}
    assert (line["startParam"], line["endParam"]) == (0, 0.03)
    assert {c["btType"] for c in feature["constraints"]} == {"BTMSketchConstraint-2"}
    feature = sketch_to_feature(WRITTEN)
    words = [c["constraintType"] for c in feature["constraints"]]
    assert words == ["COINCIDENT", "HORIZONTAL", "TANGENT", "COINCIDENT", "COINCIDENT", "LENGTH", "RADIUS", "DISTANCE"]
    values = [_values(c) for c in feature["constraints"]]
    assert values[0] == {"localFirst": "e0.end", "localSecond": "e1.start"}
    assert values[3]["externalSecond"] == 'query=qCreatedBy(makeId("Origin"), EntityType.VERTEX);'
    assert values[5] == {"localFirst": "e0", "direction": "MINIMUM", "length": "0.03*m"}
    assert values[7]["length"] == "0.004*m"  # Onshape's lengths have no sign
    assert [bool(c["name"]) for c in feature["constraints"]] == [False, False, False, True, True, False, False, True]


def _values(constraint: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for p in constraint["parameters"]:
        queries = [q["queryString"] for q in p.get("queries", [])]
        found[p["parameterId"]] = queries[0] if queries else p.get("expression", p.get("value"))
    return found


@pytest.mark.parametrize("note", ["{", "{}", '{"type":"tangent","refs":[[0,"whole"]]}', "[1]", '{"a":' * 3000])
def test_contradicting_note_is_ignored(tmp_path: Path, note: str) -> None:
    feature = sketch_to_feature(WRITTEN)
    feature["constraints"][0]["name"] = note
    (tmp_path / "part.json").write_text(json.dumps({"feature": feature}))
    (again,) = read(tmp_path / "part.json")
    assert again.constraints[0] == WRITTEN.constraints[0]


def test_real_sketches_are_read_and_survive(real_data: Path, tmp_path: Path) -> None:
    reading = read(real_data / "sketchgraphs/onshape_json.tar.xz")
    raw = reading.sketches
    assert len(raw) == 237 - 10
    assert reading.skipped == {
        "a spline": 66, "a text": 4, "an image": 1, "a line of no length": 8, "a constraint on what was left out": 103,
        "a sketch without a line, circle, arc or point": 10,
    }  # fmt: skip
    kinds = Counter(p.kind.label for s in reading for p in s)
    assert kinds == {"line": 1645 - 8, "arc": 321, "circle": 197, "point": 247}
    found = (s for s in sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy") if isinstance(s, Sketch))
    several = [*raw, *(s for i, s in enumerate(found) if i % 20 == 0)]
    assert len(several) > 450
    for sketch in several:
        again = trip(sketch, tmp_path / "real.onshape.json")
        assert_same(sketch, again, 1e-9)
        assert_same_constraints(sketch, again, 1e-15)
