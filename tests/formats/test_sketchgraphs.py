"""SketchGraphs files: what entities and constraints mean, round trips, and columns against sketches."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.formats import onshape
from sketchdnn.formats.format import Skipped, collect
from sketchdnn.formats.sketchgraphs import FORMAT, read, read_table
from sketchdnn.formats.sketchgraphs.container import sequence_writer
from sketchdnn.formats.sketchgraphs.pickles import EntityType, Op, dump_ops
from sketchdnn.geometry import (
    EXTERNAL,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Ref,
    Sketch,
)

T = ConstraintType
START, STOP = slice(7, {}), slice(8, {})
LINE = {
    "isConstruction": False,
    "dirX": 1.0,
    "dirY": 0.0,
    "pntX": 0.0,
    "pntY": 0.0,
    "startParam": -1.0,
    "endParam": 2.0,
}
CIRCLE = {
    "isConstruction": True,
    "clockwise": False,
    "xCenter": 1.0,
    "yCenter": 2.0,
    "xDir": 1.0,
    "yDir": 0.0,
    "radius": 0.5,
}
POINT = {"isConstruction": False, "x": 3.0, "y": 4.0}


def write_ops(path: Path, *sequences: list[Op]) -> Path:
    with sequence_writer(path) as add:
        for ops in sequences:
            add(dump_ops(ops), len(ops))
    return path


def only(path: Path) -> Sketch:
    (sketch,) = read(path)
    assert isinstance(sketch, Sketch)
    return sketch


class TestEntities:
    def test_each_kind(self, tmp_path: Path) -> None:
        arc = CIRCLE | {"startParam": 0.0, "endParam": 1.0}
        path = write_ops(
            tmp_path / "a.npy", [START, slice(1, LINE), slice(2, CIRCLE), slice(6, arc), slice(0, POINT), STOP]
        )
        sketch = only(path)
        assert sketch.primitives == (
            Line((-1, 0), (2, 0)),
            Circle((1, 2), 0.5, True),
            Arc((1, 2), 0.5, 0, 1, True),
            Point((3, 4)),
        )
        assert sketch.units == "m"
        assert sketch.extra == {"source": "sketchgraphs", "id": "a/0", "index": 0}

    @given(
        center=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
        radius=st.floats(1e-3, 10),
        direction=st.floats(-math.pi, math.pi),
        start=st.floats(-7, 7),
        span=st.floats(0.01, 2 * math.pi - 0.01),
        turns=st.integers(-1, 1),
        clockwise=st.booleans(),
    )
    def test_an_arc_is_the_curve_its_parameters_run_along(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        center: tuple[float, float],
        radius: float,
        direction: float,
        start: float,
        span: float,
        turns: int,
        clockwise: bool,
    ) -> None:
        """Without angles: the curve turns from its direction towards its left, or right when clockwise."""
        along = np.array([math.cos(direction), math.sin(direction)])
        side = np.array([-along[1], along[0]]) * (-1 if clockwise else 1)

        def at(t: float) -> np.ndarray:
            return np.array(center) + radius * (math.cos(t) * along + math.sin(t) * side)

        fields = {
            "isConstruction": False,
            "clockwise": clockwise,
            "xCenter": center[0],
            "yCenter": center[1],
            "xDir": float(along[0]),
            "yDir": float(along[1]),
            "radius": radius,
            "startParam": start,
            "endParam": start + span + turns * 2 * math.pi,
        }
        folder = tmp_path_factory.mktemp("arc")
        subnodes = [slice(103, {}), slice(101, (2, 1), {}), slice(101, {}), slice(101, (3, 1), {}), slice(102, {})]
        # A constraint on the arc's start alone, to see which end of ours it is.
        ops = [START, slice(6, fields), *subnodes, slice(101, (4, 1), {}), slice(16, (3,), {}), STOP]
        sketch = only(write_ops(folder / "arc.npy", ops))
        (arc,), (fix,) = sketch.primitives, sketch.constraints
        assert isinstance(arc, Arc)
        places = [at(start + fraction * span) for fraction in (0, 0.5, 1)]
        if clockwise:
            places.reverse()
        for found, expected in zip((arc.start, arc.mid, arc.end), places, strict=True):
            assert math.dist(found, expected) <= 1e-9
        assert fix.refs == (Ref(0, Part.END if clockwise else Part.START),)
        assert math.dist(arc.end if clockwise else arc.start, at(start)) <= 1e-9

        geometry = {"message": {k: fields[k] for k in ("clockwise", "xCenter", "yCenter", "xDir", "yDir", "radius")}}
        message = {"entityId": "a", "geometry": geometry | {"typeName": "BTCurveGeometryCircle"}}
        message |= {k: fields[k] for k in ("isConstruction", "startParam", "endParam")}
        local = {"typeName": "BTMParameterString", "message": {"parameterId": "localFirst", "value": "a.start"}}
        onshape_sketch = {
            "entities": [{"typeName": "BTMSketchCurveSegment", "message": message}],
            "constraints": [{"message": {"constraintType": "FIX", "parameters": [local]}}],
        }
        (folder / "arc.json").write_text(json.dumps([onshape_sketch]))
        (same,) = onshape.read(folder / "arc.json")
        assert isinstance(same, Sketch)
        assert (same.primitives, same.constraints) == (sketch.primitives, sketch.constraints)

    @pytest.mark.parametrize(
        ("label", "fields", "reason"),
        [
            (1, LINE | {"endParam": -1.0}, "a line of no length"),
            (2, CIRCLE | {"radius": 0.0}, "a circle without a radius"),
            (2, CIRCLE | {"radius": -1e-18}, "a circle without a radius"),
            (6, CIRCLE | {"startParam": 1.0, "endParam": 1.0}, "an arc without a radius or sweep, or of a full turn"),
            (6, CIRCLE | {"startParam": 0.0, "endParam": 2 * math.pi}, "an arc without a radius or sweep"),
            (6, CIRCLE | {"startParam": 0.0, "endParam": 1e-18}, "an arc without a radius or sweep"),
            (6, CIRCLE | {"startParam": 0.0, "endParam": 1e-12, "xCenter": 1e9}, "an arc without a radius or sweep"),
            (0, {"x": 0.0, "y": 0.0}, "an entity with a field that is missing or no number"),
            (0, POINT | {"x": math.nan}, "an entity with a field that is missing or no number"),
            (0, POINT | {"y": -math.inf}, "an entity with a field that is missing or no number"),
            (0, POINT | {"y": "4.0"}, "an entity with a field that is missing or no number"),
            (0, POINT | {"y": 1e13}, "an entity with a field that is missing or no number"),
            (0, POINT | {"isConstruction": "no"}, "an entity with a field that is missing or no number"),
            (1, LINE | {"dirX": 1e308, "endParam": 1e10}, "an entity with a field that is missing or no number"),
            (3, {}, "an ellipse"),
            (4, {}, "a spline"),
            (5, {}, "a conic"),
            (9, {}, "an entity of unknown type"),
            (77, {}, "an entity of unknown type"),
        ],
    )
    def test_what_is_no_primitive_is_counted_and_the_rest_kept(
        self, tmp_path: Path, label: int, fields: dict[str, object], reason: str
    ) -> None:
        ops = [START, slice(0, POINT), slice(label, fields), slice(0, (2, 1), {}), slice(4, (1, 0), {}), STOP]
        path = write_ops(tmp_path / "a.npy", ops)
        *skipped, sketch = read(path)
        assert all(isinstance(s, Skipped) and not s.is_sketch and s.count == 1 for s in skipped)
        assert [s.reason for s in skipped][1:] == ["a constraint on what was left out"]
        assert skipped[0].reason.startswith(reason)
        assert isinstance(sketch, Sketch)
        assert sketch.primitives == (Point((3, 4)),)
        assert sketch.constraints == (Constraint(T.HORIZONTAL, (Ref(0, Part.POINT), EXTERNAL)),)
        assert sketch.extra["dropped_entities"] == 1
        table = read_table(path)
        assert table.dropped.tolist() == [1]
        assert table.constraints.tolist() == [2]
        assert table.skipped == {skipped[0].reason: 1}

    def test_a_whole_number_is_a_number(self, tmp_path: Path) -> None:
        path = write_ops(tmp_path / "a.npy", [START, slice(0, {"isConstruction": 1, "x": 2**39, "y": -3}), STOP])
        assert only(path).primitives == (Point((2.0**39, -3.0), True),)

    def test_a_sketch_without_primitives_is_refused(self, tmp_path: Path) -> None:
        path = write_ops(tmp_path / "a.npy", [START, STOP], [START, slice(0, POINT), STOP], [START, slice(4, {}), STOP])
        reading = collect(read(path))
        assert len(reading) == 1
        assert reading.skipped == {"a sketch without a line, circle, arc or point": 2, "a spline": 1}
        table = read_table(path)
        assert table.table.counts.tolist() == [0, 1, 0]
        assert table.skipped == reading.skipped


class TestConstraints:
    def read_one(self, tmp_path: Path, code: int, params: dict[str, object], refs: tuple[int, ...]) -> Constraint:
        ops = [START, slice(1, LINE), slice(0, POINT), slice(0, POINT), slice(code, refs, params), STOP]
        (constraint,) = only(write_ops(tmp_path / "a.npy", ops)).constraints
        return constraint

    @pytest.mark.parametrize(
        ("code", "params", "expected"),
        [
            (0, {}, (T.COINCIDENT, None, None, {})),
            (3, {"direction": "MINIMUM", "length": "0.0127 METER"}, (T.DISTANCE, 0.0127, None, {})),
            (
                3,
                {"direction": "HORIZONTAL", "halfSpace0": "LEFT", "length": "1.0 METER"},
                (T.HORIZONTAL_DISTANCE, 1.0, None, {"halfSpace0": "LEFT"}),
            ),
            (3, {"direction": "VERTICAL", "length": "#h/2"}, (T.VERTICAL_DISTANCE, None, None, {"length": "#h/2"})),
            (3, {"direction": "SIDEWAYS"}, (T.DISTANCE, None, None, {"direction": "SIDEWAYS"})),
            (12, {"length": "1e-05 METER"}, (T.DIAMETER, 1e-5, None, {})),
            (12, {"length": "90.0 DEGREE"}, (T.DIAMETER, None, None, {"length": "90.0 DEGREE"})),
            (
                17,
                {"aligned": True, "clockwise": False, "angle": "90.0 DEGREE"},
                (T.ANGLE, math.pi / 2, None, {"aligned": True, "clockwise": False}),
            ),
            (1, {"projectionType": "USE"}, (T.OTHER, None, "Projected", {"projectionType": "USE"})),
            (21, {"length": "1.0 METER"}, (T.OTHER, None, "Centerline_Dimension", {"length": "1.0 METER"})),
            (29, {}, (T.OTHER, None, "Unknown", {})),
        ],
    )
    def test_types_values_and_what_else_a_file_says(
        self, tmp_path: Path, code: int, params: dict[str, object], expected: tuple[object, ...]
    ) -> None:
        found = self.read_one(tmp_path, code, params, (3, 2))
        assert (found.type, found.value, found.name, found.extra) == expected
        assert found.refs == (Ref(2, Part.POINT), Ref(1, Part.POINT))

    def test_references_are_read_in_their_roles_as_far_as_kinds_tell(self, tmp_path: Path) -> None:
        line, a, b = Ref(0), Ref(1, Part.POINT), Ref(2, Part.POINT)
        assert self.read_one(tmp_path, 2, {}, (3, 2, 1)).refs == (b, a, line)
        assert self.read_one(tmp_path, 2, {}, (3, 1, 2)).refs == (b, a, line)
        assert self.read_one(tmp_path, 10, {}, (1, 3)).refs == (b, line)
        assert self.read_one(tmp_path, 3, {}, (3, 1)).refs == (b, line)

    @pytest.mark.parametrize(
        ("xs", "expected"),
        [
            ((0.0, 1.0, 2.0), (1, 2, 0)),
            ((1.0, 2.0, 0.0), (0, 2, 1)),
            ((0.0, 2.0, 1.0 + 1e-6), (2, 1, 0)),
            ((0.0, 1.0, 3.0), (2, 1, 0)),  # none is halfway, so they stay as the file lists them
            ((1.0, 1.0 + 2e-16, 1.0), (2, 1, 0)),  # all are one place
        ],
    )
    def test_of_three_places_the_middle_one_is_read_first(
        self, tmp_path: Path, xs: tuple[float, ...], expected: tuple[int, ...]
    ) -> None:
        points = [slice(0, POINT | {"x": x}) for x in xs]
        path = write_ops(tmp_path / "a.npy", [START, *points, slice(10, (3, 2, 1), {}), STOP])
        (constraint,) = only(path).constraints
        assert constraint == Constraint(T.MIDPOINT, tuple(Ref(i, Part.POINT) for i in expected))

    @pytest.mark.parametrize(
        "edge",
        [
            slice(0, (9, 1), {}),
            slice(0, (-1, 1), {}),
            slice(55, (1,), {}),
            slice(3, (1,), {"length": math.nan}),
            slice(101, (1,), {}),
        ],
    )
    def test_a_damaged_constraint_is_counted(self, tmp_path: Path, edge: Op) -> None:
        path = write_ops(tmp_path / "a.npy", [START, slice(0, POINT), edge, STOP])
        skipped, sketch = read(path)
        assert skipped == Skipped("a damaged constraint")
        assert isinstance(sketch, Sketch)
        assert not sketch.constraints

    def test_a_reference_to_the_center_of_a_line_is_damage(self, tmp_path: Path) -> None:
        ops = [START, slice(1, LINE), slice(103, {}), slice(101, (2, 1), {}), slice(0, (2, 0), {}), STOP]
        skipped, _ = read(write_ops(tmp_path / "a.npy", ops))
        assert skipped == Skipped("a damaged constraint")


def test_the_format_is_recognized() -> None:
    assert FORMAT.recognizes(Path("a.npy"), b"\x93NUMPY\x01\x00")
    assert not FORMAT.recognizes(Path("a.npy"), b"PK\x03\x04")


def test_entity_types_have_the_codes_of_the_official_enumeration() -> None:
    names = "point line circle ellipse spline conic arc external stop unknown"
    assert [e.name.lower() for e in sorted(EntityType)] == names.split()
