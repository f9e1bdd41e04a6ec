"""Sketches as Onshape features: what is written is read back, constraints and all, and has the form its API takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.freecad_forms import all_forms
from support.strategies import assert_same, assert_same_constraints, constraints_on, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import collect, detect_format, onshape, read, sketchgraphs, write
from sketchdnn.formats.onshape import sketch_to_feature
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
PART = Sketch(
    (
        Line((0.0, 0.0), (30.0, 0.0)),
        Arc((30.0, 10.0), 10.0, -math.pi / 2, math.pi),
        Circle((5.0, 5.0), 2.0, construction=True),
        Point((1.0, 2.0)),
    ),
    (
        Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
        Constraint(T.HORIZONTAL, (Ref(0),)),
        Constraint(T.TANGENT, (Ref(0), Ref(1))),
        Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
        Constraint(T.POINT_ON_CURVE, (Ref(3, Part.POINT), Ref(2))),
        Constraint(T.LENGTH, (Ref(0),), 30.0),
        Constraint(T.RADIUS, (Ref(1),), 10.0),
        Constraint(T.HORIZONTAL_DISTANCE, (Ref(2, Part.CENTER), Ref(3, Part.POINT)), -4.0),
    ),
    "mm",
    {"name": "bracket"},
)


def trip(sketch: Sketch, path: Path) -> Sketch:
    onshape.write([sketch], path)
    reading = collect(onshape.read(path))
    assert not reading.skipped
    (again,) = reading
    return again


@given(st.data(), sketches(max_size=8, units="mm"))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, plain: Sketch
) -> None:
    constraints = tuple(data.draw(st.lists(constraints_on(plain), max_size=6)))
    sketch = Sketch(plain.primitives, constraints, "mm").in_units("m")
    again = trip(sketch, tmp_path_factory.mktemp("trip") / "part.onshape.json")
    assert_same(sketch, again, 1e-12)
    assert_same_constraints(sketch, again, 1e-15)  # an angle is written in degrees


@settings(max_examples=10)
@given(st.lists(sketches(max_size=4, units="m"), min_size=2, max_size=4))
def test_many_are_features_of_one_file(tmp_path_factory: pytest.TempPathFactory, many: list[Sketch]) -> None:
    path = tmp_path_factory.mktemp("many") / "many.onshape.json"
    write(iter(many), path)
    for sketch, again in zip(many, read(path), strict=True):
        assert_same(sketch, again, 1e-12)


def test_every_form_of_constraint_survives(tmp_path: Path) -> None:
    for form in all_forms():
        in_meters = form.in_units("m")
        assert_same_constraints(in_meters, trip(in_meters, tmp_path / "form.onshape.json"), 1e-15)


def test_the_file_is_the_body_of_a_call(tmp_path: Path) -> None:
    path = tmp_path / "part.onshape.json"
    write(PART, path)
    assert detect_format(path).name == "onshape"
    assert read(path).sketches[0].extra["name"] == "bracket"
    call = json.loads(path.read_text())
    assert call["btType"] == "BTFeatureDefinitionCall-1406"
    feature = call["feature"]
    assert (feature["btType"], feature["featureType"]) == ("BTMSketch-151", "newSketch")
    assert [e["btType"] for e in feature["entities"]] == [
        "BTMSketchCurveSegment-155",
        "BTMSketchCurveSegment-155",
        "BTMSketchCurve-4",
        "BTMSketchPoint-158",
    ]
    assert [e["isConstruction"] for e in feature["entities"]] == [False, False, True, False]
    line = feature["entities"][0]
    assert line["geometry"] == {"btType": "BTCurveGeometryLine-117", "dirX": 1, "dirY": 0, "pntX": 0, "pntY": 0}
    assert (line["startParam"], line["endParam"]) == (0, 0.03)
    assert {c["btType"] for c in feature["constraints"]} == {"BTMSketchConstraint-2"}


def test_constraints_say_what_onshape_says(tmp_path: Path) -> None:
    """In the words of real files; a name holds a note only where those words fall short."""
    feature = sketch_to_feature(PART)
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
def test_a_note_that_says_something_else_is_not_believed(tmp_path: Path, note: str) -> None:
    feature = sketch_to_feature(PART)
    feature["constraints"][0]["name"] = note
    (tmp_path / "part.json").write_text(json.dumps({"feature": feature}))
    (again,) = read(tmp_path / "part.json")
    assert again.constraints[0] == PART.constraints[0]


def test_nothing_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is none"):
        write([], tmp_path / "none.onshape.json")
    assert not list(tmp_path.iterdir())


def test_real_sketches_survive(real_data: Path, tmp_path: Path) -> None:
    """Onshape's own, and those of SketchGraphs, with every constraint."""
    raw = read(real_data / "sketchgraphs/onshape_json.tar.xz").sketches
    found = (s for s in sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy") if isinstance(s, Sketch))
    several = [*raw, *(s for i, s in enumerate(found) if i % 20 == 0)]
    assert len(several) > 450
    for sketch in several:
        again = trip(sketch, tmp_path / "real.onshape.json")
        assert_same(sketch, again, 1e-9)
        assert_same_constraints(sketch, again, 1e-15)
