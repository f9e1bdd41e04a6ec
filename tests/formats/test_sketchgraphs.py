"""SketchGraphs files: entities and constraints, round trips, columns, notes, and real sequences."""

from __future__ import annotations

import io
import json
import math
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_forms import all_forms
from support.strategies import assert_same, assert_same_constraints, constraints_on, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import onshape, registry
from sketchdnn.formats.format import ReadResult, Skipped, collect
from sketchdnn.formats.sketchgraphs import count, read, read_table, write
from sketchdnn.formats.sketchgraphs.constraints import NAMES, NOTE, decode_constraint
from sketchdnn.formats.sketchgraphs.container import open_sequences, sequence_writer
from sketchdnn.formats.sketchgraphs.pickles import EntityType, Op, dump_ops, load_ops
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch, Vec
from sketchdnn.geometry.table import sketches_to_table

T = ConstraintType
START, STOP = slice(7, {}), slice(8, {})
LINE = {"isConstruction": False, "dirX": 1.0, "dirY": 0.0, "pntX": 0.0, "pntY": 0.0}
LINE |= {"startParam": -1.0, "endParam": 2.0}
CIRCLE = {"isConstruction": True, "clockwise": False, "xCenter": 1.0, "yCenter": 2.0, "xDir": 1.0, "yDir": 0.0}
CIRCLE["radius"] = 0.5
POINT = {"isConstruction": False, "x": 3.0, "y": 4.0}
NO_NUMBER = "an entity with a field that is missing or no number"


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
            Line((-1, 0), (2, 0)), Circle((1, 2), 0.5, True), Arc((1, 2), 0.5, 0, 1, True), Point((3, 4)),
        )  # fmt: skip
        assert (sketch.units, sketch.extra) == ("m", {"source": "sketchgraphs", "id": "a/0", "index": 0})
        path = write_ops(tmp_path / "a.npy", [START, slice(0, {"isConstruction": 1, "x": 2**39, "y": -3}), STOP])
        assert only(path).primitives == (Point((2.0**39, -3.0), True),)
        path = write_ops(tmp_path / "a.npy", [START, STOP], [START, slice(0, POINT), STOP], [START, slice(4, {}), STOP])
        reading = collect(read(path))
        assert len(reading) == 1
        assert reading.skipped == {"a sketch without a line, circle, arc or point": 2, "a spline": 1}
        table = read_table(path)
        assert (table.table.counts.tolist(), table.skipped) == ([0, 1, 0], reading.skipped)

    @given(
        center=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
        sizes=st.tuples(st.floats(1e-3, 10), st.floats(-math.pi, math.pi)),
        params=st.tuples(st.floats(-7, 7), st.floats(0.01, 2 * math.pi - 0.01), st.integers(-1, 1)),
        clockwise=st.booleans(),
    )
    def test_arc_follows_its_parameters(
        self, tmp_path_factory: pytest.TempPathFactory, center: Vec, sizes: Vec, params: Vec, clockwise: bool
    ) -> None:
        """Without angles: the curve turns from its direction towards its left, or right when clockwise."""
        (radius, direction), (start, span, turns) = sizes, params
        along = np.array([math.cos(direction), math.sin(direction)])
        side = np.array([-along[1], along[0]]) * (-1 if clockwise else 1)

        def at(t: float) -> np.ndarray:
            return np.array(center) + radius * (math.cos(t) * along + math.sin(t) * side)

        x, y = map(float, along)
        curve = {"clockwise": clockwise, "xCenter": center[0], "yCenter": center[1], "xDir": x, "yDir": y}
        curve["radius"] = radius
        ends = {"isConstruction": False, "startParam": start, "endParam": start + span + turns * 2 * math.pi}
        folder = tmp_path_factory.mktemp("arc")
        subnodes = [slice(103, {}), slice(101, (2, 1), {}), slice(101, {}), slice(101, (3, 1), {}), slice(102, {})]
        # A constraint on the arc's start alone, to see which end of ours it is.
        ops = [START, slice(6, curve | ends), *subnodes, slice(101, (4, 1), {}), slice(16, (3,), {}), STOP]
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
        message = {"entityId": "a", "geometry": {"typeName": "BTCurveGeometryCircle", "message": curve}} | ends
        local = {"typeName": "BTMParameterString", "message": {"parameterId": "localFirst", "value": "a.start"}}
        onshape_sketch = {
            "entities": [{"typeName": "BTMSketchCurveSegment", "message": message}],
            "constraints": [{"message": {"constraintType": "FIX", "parameters": [local]}}],
        }
        (folder / "arc.json").write_text(json.dumps([onshape_sketch]))
        (same,) = onshape.read(folder / "arc.json")
        assert isinstance(same, Sketch)
        assert (same.primitives, same.constraints) == (sketch.primitives, sketch.constraints)

    @pytest.mark.parametrize(("label", "fields", "reason"), [
        (1, LINE | {"endParam": -1.0}, "a line of no length"),
        (2, CIRCLE | {"radius": 0.0}, "a circle without a radius"),
        (2, CIRCLE | {"radius": -1e-18}, "a circle without a radius"),
        (6, CIRCLE | {"startParam": 1.0, "endParam": 1.0}, "an arc without a radius or sweep, or of a full turn"),
        (6, CIRCLE | {"startParam": 0.0, "endParam": 2 * math.pi}, "an arc without a radius or sweep"),
        (6, CIRCLE | {"startParam": 0.0, "endParam": 1e-18}, "an arc without a radius or sweep"),
        (6, CIRCLE | {"startParam": 0.0, "endParam": 1e-12, "xCenter": 1e9}, "an arc without a radius or sweep"),
        (0, {"x": 0.0, "y": 0.0}, NO_NUMBER),
        *((0, POINT | {"y": y}, NO_NUMBER) for y in (math.nan, -math.inf, "4.0", 1e13)),
        (0, POINT | {"isConstruction": "no"}, NO_NUMBER), (1, LINE | {"dirX": 1e308, "endParam": 1e10}, NO_NUMBER),
        (3, {}, "an ellipse"), (4, {}, "a spline"), (5, {}, "a conic"), (9, {}, "an entity of unknown type"),
        (77, {}, "an entity of unknown type"),
    ])  # fmt: skip
    def test_unsupported_entities_are_counted(
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
        assert (table.dropped.tolist(), table.constraints.tolist()) == ([1], [2])
        assert table.skipped == {skipped[0].reason: 1}


class TestConstraints:
    def read_one(self, tmp_path: Path, code: int, params: dict[str, object], refs: tuple[int, ...]) -> Constraint:
        ops = [START, slice(1, LINE), slice(0, POINT), slice(0, POINT), slice(code, refs, params), STOP]
        (constraint,) = only(write_ops(tmp_path / "a.npy", ops)).constraints
        return constraint

    @pytest.mark.parametrize(("code", "params", "expected"), [
        (0, {}, (T.COINCIDENT, None, None, {})),
        (3, {"direction": "MINIMUM", "length": "0.0127 METER"}, (T.DISTANCE, 0.0127, None, {})),
        (3,
            {"direction": "HORIZONTAL", "halfSpace0": "LEFT", "length": "1.0 METER"},
            (T.HORIZONTAL_DISTANCE, 1.0, None, {"halfSpace0": "LEFT"})),
        (3, {"direction": "VERTICAL", "length": "#h/2"}, (T.VERTICAL_DISTANCE, None, None, {"length": "#h/2"})),
        (3, {"direction": "SIDEWAYS"}, (T.DISTANCE, None, None, {"direction": "SIDEWAYS"})),
        (12, {"length": "1e-05 METER"}, (T.DIAMETER, 1e-5, None, {})),
        (12, {"length": "90.0 DEGREE"}, (T.DIAMETER, None, None, {"length": "90.0 DEGREE"})),
        (17,
            {"aligned": True, "clockwise": False, "angle": "90.0 DEGREE"},
            (T.ANGLE, math.pi / 2, None, {"aligned": True, "clockwise": False})),
        (1, {"projectionType": "USE"}, (T.OTHER, None, "Projected", {"projectionType": "USE"})),
        (21, {"length": "1.0 METER"}, (T.OTHER, None, "Centerline_Dimension", {"length": "1.0 METER"})),
        (29, {}, (T.OTHER, None, "Unknown", {})),
    ])  # fmt: skip
    def test_constraint_types_values_and_parameters(
        self, tmp_path: Path, code: int, params: dict[str, object], expected: tuple[object, ...]
    ) -> None:
        found = self.read_one(tmp_path, code, params, (3, 2))
        assert (found.type, found.value, found.name, found.extra) == expected
        assert found.refs == (Ref(2, Part.POINT), Ref(1, Part.POINT))

    def test_references_are_ordered_by_role(self, tmp_path: Path) -> None:
        line, a, b = Ref(0), Ref(1, Part.POINT), Ref(2, Part.POINT)
        assert self.read_one(tmp_path, 2, {}, (3, 2, 1)).refs == (b, a, line)
        assert self.read_one(tmp_path, 2, {}, (3, 1, 2)).refs == (b, a, line)
        assert self.read_one(tmp_path, 10, {}, (1, 3)).refs == (b, line)
        assert self.read_one(tmp_path, 3, {}, (3, 1)).refs == (b, line)

    @pytest.mark.parametrize(("xs", "expected"), [
        ((0.0, 1.0, 2.0), (1, 2, 0)),
        ((1.0, 2.0, 0.0), (0, 2, 1)),
        ((0.0, 2.0, 1.0 + 1e-6), (2, 1, 0)),
        ((0.0, 1.0, 3.0), (2, 1, 0)),  # none is halfway, so they stay as the file lists them
        ((1.0, 1.0 + 2e-16, 1.0), (2, 1, 0)),  # all are one place
    ])  # fmt: skip
    def test_midpoint_comes_first(self, tmp_path: Path, xs: tuple[float, ...], expected: tuple[int, ...]) -> None:
        points = [slice(0, POINT | {"x": x}) for x in xs]
        path = write_ops(tmp_path / "a.npy", [START, *points, slice(10, (3, 2, 1), {}), STOP])
        (constraint,) = only(path).constraints
        assert constraint == Constraint(T.MIDPOINT, tuple(Ref(i, Part.POINT) for i in expected))

    @pytest.mark.parametrize("edge", [
        slice(0, (9, 1), {}), slice(0, (-1, 1), {}), slice(55, (1,), {}), slice(3, (1,), {"length": math.nan}),
        slice(101, (1,), {}),
    ])  # fmt: skip
    def test_damaged_constraint_is_counted(self, tmp_path: Path, edge: Op) -> None:
        path = write_ops(tmp_path / "a.npy", [START, slice(0, POINT), edge, STOP])
        skipped, sketch = read(path)
        assert skipped == Skipped("a damaged constraint")
        assert isinstance(sketch, Sketch)
        assert not sketch.constraints


def test_entity_types_have_codes_of_official_enumeration() -> None:
    names = "point line circle ellipse spline conic arc external stop unknown"
    assert [e.name.lower() for e in sorted(EntityType)] == names.split()


class TestWriting:
    @given(st.lists(sketches(max_size=8), max_size=3), st.data())
    def test_round_trip(
        self, tmp_path_factory: pytest.TempPathFactory, plain: list[Sketch], data: st.DataObject
    ) -> None:
        originals = [
            Sketch(s.primitives, tuple(data.draw(st.lists(constraints_on(s), max_size=6))), "mm") for s in plain
        ]
        path = tmp_path_factory.mktemp("trip") / "trip.npy"
        write(iter(originals), path)
        reading = collect(read(path))
        assert not reading.skipped
        assert len(reading) == len(originals) == count(path)
        for original, found in zip(originals, reading, strict=True):
            in_meters = original.in_units("m")
            assert_same(in_meters, found, 1e-12)
            # Written behind the last node that each refers to; an angle is written in degrees.
            assert_same_constraints(in_meters, found, 1e-15, ordered=False)

    def test_angles_long_sequences_and_unknown_constraints_survive(self, tmp_path: Path) -> None:
        degrees = [math.radians(value) for value in (60.0, 22.5, 0.1, -135.25, 359.999)]
        radians = [580.828125, *(i / 7 for i in range(-5000, 5000))]
        for values, tolerance in ((degrees, 0), (radians, 1e-15)):
            angles = tuple(Constraint(T.ANGLE, (Ref(0), Ref(1)), value) for value in values)
            sketch = Sketch((Line((0, 0), (1, 0)), Line((0, 0), (1, 1))), angles)
            write([sketch], tmp_path / "a.npy")
            assert_same_constraints(sketch, only(tmp_path / "a.npy"), tolerance)
        line, circle, point = Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((1, 0))
        sketch = Sketch((line, circle, point), (
            Constraint(T.POINT_ON_CURVE, (Ref(2, Part.POINT), Ref(1))),
            Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
            Constraint(T.HORIZONTAL_DISTANCE, (Ref(0),), 1.0),
            Constraint(T.OTHER, (Ref(1),), 2.0, "Weight", {"list": [1], "driven": True}),
        ))  # fmt: skip
        write([sketch], tmp_path / "a.npy")
        *expected, weight = sketch.constraints
        expected.append(replace(weight, extra={"driven": True}))  # a list is no parameter
        assert_same_constraints(Sketch(sketch.primitives, tuple(expected)), only(tmp_path / "a.npy"), 0, ordered=False)
        primitives = tuple(Circle((i, 0), 1 + i) for i in range(5000))
        constraints = tuple(Constraint(T.EQUAL, (Ref(i + 1), Ref(i))) for i in range(4999))
        write([Sketch(primitives, constraints)], tmp_path / "a.npy")
        found = only(tmp_path / "a.npy")
        assert found.primitives == primitives
        assert len(next(iter(open_sequences(tmp_path / "a.npy").pickles(0, 1)))) > 2**16  # type: ignore[arg-type]
        assert set(found.constraints) == set(constraints)

    def test_notes_only_where_needed_and_known(self) -> None:
        constraint = Constraint(T.COINCIDENT, (Ref(1, Part.START), Ref(0, Part.END)))
        ops = sketch_to_ops(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1))), (constraint,)))
        assert [op.step for op in ops if op.step is not None and op.start == NAMES.index("Coincident")] == [{}]
        note = '{"type": "coincident", "refs": [[0, "point"], ["origin"]]}'
        assert decode_constraint("Coincident", (Ref(0), EXTERNAL), {NOTE: note}).refs == (Ref(0), EXTERNAL)

    @pytest.mark.parametrize("note", [
        "", "{", "null", "[" * 100_000, "9" * 10_000, '{"type": "fix"}', '{"type": "fix", "refs": [[0, "end"]]}',
        '{"type": "fix", "refs": []}', '{"type": "fix", "refs": [[7, "whole"]]}',
        '{"type": 1, "refs": [["origin"]]}',
        '{"type": "coincident", "refs": [["origin"], ["origin"]]}', '{"type": "other", "refs": [["origin"]]}',
        '{"type": "coincident", "refs": [[0, "start"], ["origin"], ["origin"]]}', "\ud800", 7, True, 0.5,
        '{"type": "fix", "refs": [[0, "start"], ["origin"]]}',
        '{"type": "collinear", "refs": [[0, ["start"]], {}]}',
    ])  # fmt: skip
    def test_note_that_does_not_fit_is_passed_over(self, note: object) -> None:
        refs = (Ref(0, Part.START), EXTERNAL)
        assert decode_constraint("Coincident", refs, {NOTE: note, "n": 1}) == Constraint(
            T.COINCIDENT, refs, extra={"n": 1}
        )

    def test_edge_follows_its_last_node(self) -> None:
        lines = (Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))
        both = Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
        outside = Constraint(T.OTHER, (EXTERNAL,), name="Fix")
        nodes = -1
        seen = 0
        for op in sketch_to_ops(Sketch(lines, (both, outside))):
            nodes += op.step is None
            if op.step is not None:
                assert (op.stop[0], list(op.stop)) == (nodes, sorted(op.stop, reverse=True))
                seen += op.start != 101
        assert (seen, nodes) == (2, 7)


class TestTable:
    @given(st.lists(sketches(max_size=6), max_size=4), st.integers(0, 5), st.integers(0, 5))
    def test_columns_are_those_of_sketches(
        self, tmp_path_factory: pytest.TempPathFactory, originals: list[Sketch], start: int, stop: int
    ) -> None:
        path = tmp_path_factory.mktemp("table") / "a.npy"
        write(originals, path)
        found = read_table(path, start, stop)
        expected = sketches_to_table(collect(read(path)).sketches[start:stop])
        assert found.table.num_sketches == expected.num_sketches
        for name in ("owner", "kind", "construction", "x", "y", "x2", "y2", "radius", "start_angle", "sweep"):
            np.testing.assert_array_equal(getattr(found.table, name), getattr(expected, name))


FLAGS = {True, False, "TRUE", "FALSE", "True", "False"}
# Every parameter that `sketch_from_sequence` of the official library accepts, and the members of its enumerations.
OFFICIAL: dict[str, set[Any] | type] = {
    "angle": str, "length": str, "direction": {"MINIMUM", "HORIZONTAL", "VERTICAL"}, "halfSpace0": {"LEFT", "RIGHT"},
    "halfSpace1": {"LEFT", "RIGHT"}, "alignment": {"ANTI_ALIGNED", "ALIGNED"}, "aligned": FLAGS, "clockwise": FLAGS,
}  # fmt: skip
NOTED = Sketch(
    (Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((1, 0))),
    (
        Constraint(T.POINT_ON_CURVE, (Ref(2, Part.POINT), Ref(1))),
        Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
        Constraint(T.LENGTH, (Ref(0),), 1.0, extra={"driving": False, "label": "width"}),
        Constraint(T.LENGTH, (Ref(0),), extra={"length": 7, "direction": "SIDEWAYS", "aligned": 1, "clockwise": "no"}),
        Constraint(T.OTHER, (Ref(1),), 2.0, "Weight", {"driven": True}),
        Constraint(T.ANGLE, (Ref(0),), 0.5, extra={"aligned": True, "clockwise": "FALSE", "alignment": "ALIGNED"}),
    ),
    "m",
)
PLAIN = Sketch(NOTED.primitives, (Constraint(T.COINCIDENT, (Ref(1, Part.CENTER), Ref(0, Part.START))),))


def assert_official(path: Path) -> None:
    sequences = open_sequences(path)
    for data in sequences.pickles(0, len(sequences)):
        assert isinstance(data, bytes)
        for op in load_ops(data):
            for key, value in (op.step or {}).items():
                known = OFFICIAL[key]
                assert isinstance(value, known) if isinstance(known, type) else value in known, (key, value)
                assert type(value) is not int, (key, value)


def assert_survives(originals: list[Sketch], path: Path) -> None:
    reading = collect(read(path))
    assert not reading.skipped
    for original, found in zip(originals, reading, strict=True):
        assert sorted(original.in_units("m").constraints, key=repr) == sorted(found.constraints, key=repr)


def test_sequences_hold_only_official_parameters(tmp_path: Path, real_data: Path) -> None:
    originals = [NOTED, *all_forms(), *registry.read(real_data / "freecad")]
    write(originals, tmp_path / "a.npy")
    assert_official(tmp_path / "a.npy")
    assert_survives(originals, tmp_path / "a.npy")


def test_notes_are_an_optional_array(tmp_path: Path) -> None:
    with sequence_writer(tmp_path / "a.npy") as add:
        add(dump_ops(sketch_to_ops(NOTED)), 1)
    assert open_sequences(tmp_path / "a.npy").notes is None
    assert_survives([NOTED], tmp_path / "a.npy")
    write([NOTED], tmp_path / "noted.npy")
    write([Sketch(NOTED.primitives)], tmp_path / "plain.npy")
    assert b"sketchdnn_notes" not in (tmp_path / "plain.npy").read_bytes()
    data = (tmp_path / "noted.npy").read_bytes()
    array = np.lib.format.read_array(io.BytesIO(data[data.rindex(b"\x93NUMPY") :]), allow_pickle=False)
    assert (array.dtype, array.ndim) == (np.uint8, 1)
    write([], tmp_path / "a.npy")
    data = (tmp_path / "a.npy").read_bytes()
    first = np.lib.format.read_array(io.BytesIO(data[data.index(b"\x93NUMPY", 1) :]), allow_pickle=False)
    assert (first.shape, list(read(tmp_path / "a.npy"))) == ((0,), [])
    assert count(tmp_path / "a.npy") == len(read_table(tmp_path / "a.npy").table) == 0


def noted(path: Path, *texts: bytes) -> Path:
    """A file with a sequence for each text, and the text beside it."""
    with sequence_writer(path) as add:
        for text in texts:
            add(dump_ops(sketch_to_ops(PLAIN)), 1, text)
    return path


HEADER = struct.Struct("<3q")
LIST = HEADER.pack(-2356038617, 2, 2)


def test_damaged_note_list_is_refused(tmp_path: Path) -> None:
    path = noted(tmp_path / "a.npy", b"{}", b"{}")
    data = path.read_bytes()
    start = data.rindex(b"\x93NUMPY")
    for old, new in (
        (b"\x93NUMPY", b"\x93numpy"), (b"'|u1'", b"'<f8'"), (b"(", b"9"), (b"'shape'", b"'shade'"),
        (LIST, HEADER.pack(87374267, 2, 2)), (LIST, HEADER.pack(-2356038617, 2, 1)),
        (LIST, HEADER.pack(-2356038617, 2, 1 << 60)), (LIST, HEADER.pack(-2356038617, 2, -1)),
    ):  # fmt: skip
        assert old in data[start:]
        path.write_bytes(data[:start] + data[start:].replace(old, new, 1))
        with pytest.raises(FormatError):
            list(read(path))


DAMAGED_TEXTS = (
    *(b"{", b"\xff", b"[1]", b"7", b"[" * 100_000, b" " * (4 << 20) + b"{}"),
    *(b'{"0": 1}', b'{"": {}}', b'{"-1": {}}', b'{"' + b"9" * 5000 + b'": {}}'),
    *(b'{"0": {}, "0": {}}', b'{"0": {"n": NaN}}'),
)


def test_damaged_notes_are_counted(tmp_path: Path) -> None:
    reading = collect(read(noted(tmp_path / "a.npy", b'{"0": {"mine": 1}}', *DAMAGED_TEXTS)))
    extras = [c.extra for sketch in reading for c in sketch.constraints]
    assert extras == [{"mine": 1}, *({} for _ in DAMAGED_TEXTS)]
    assert reading.skipped == {"damaged notes beside a sequence": len(DAMAGED_TEXTS)}
    note = json.dumps({"0": {"mine": 1, "list": [1], "deep": {"a": {}}}, "7": {"mine": 2}}).encode()
    reading = collect(read(noted(tmp_path / "a.npy", note, b"")))
    assert [c.extra for sketch in reading for c in sketch.constraints] == [{"mine": 1}, {}]
    assert not reading.skipped


T = ConstraintType


@pytest.fixture(scope="module")
def path(real_data: Path) -> Path:
    return real_data / "sketchgraphs" / "sg_subset.npy"


@pytest.fixture(scope="module")
def reading(path: Path) -> ReadResult:
    return collect(read(path))


def test_every_sequence_is_read(path: Path, reading: ReadResult) -> None:
    assert count(path) == len(reading) == 5441
    assert reading.skipped == {
        "a line of no length": 25, "a circle without a radius": 3,
        "an arc without a radius or sweep, or of a full turn": 5, "a constraint on what was left out": 143,
    }  # fmt: skip
    assert [s.extra["index"] for s in reading] == list(range(5441))
    kinds = Counter(p.kind.label for s in reading for p in s)
    assert kinds == {"line": 18847 - 25, "circle": 3343 - 3, "arc": 1827 - 5, "point": 2708}
    assert sum(len(s.constraints) for s in reading) == 105451 - 46518 - 143


def test_columns_agree_and_pickles_equal_official_ones(path: Path, reading: ReadResult) -> None:
    found = read_table(path)
    expected = sketches_to_table(reading)
    for name in ("owner", "kind", "construction", "x", "y", "x2", "y2", "radius", "start_angle", "sweep"):
        np.testing.assert_allclose(getattr(found.table, name), getattr(expected, name), rtol=0, atol=1e-12)
    dropped = [s.extra.get("dropped_entities", 0) for s in reading]
    assert found.dropped.tolist() == dropped
    assert found.constraints.sum() == sum(len(s.constraints) for s in reading) + 143
    whole = [i for i, n in enumerate(dropped) if not n]
    assert [found.constraints[i] for i in whole] == [len(reading.sketches[i].constraints) for i in whole]
    parts = [read_table(path, start, start + 1000) for start in range(0, 6000, 1000)]
    assert [len(p.dropped) for p in parts] == [1000] * 5 + [441]
    np.testing.assert_array_equal(np.concatenate([p.table.sweep for p in parts]), found.table.sweep)
    sequences = open_sequences(path)
    for raw in sequences.pickles(0, 1000):
        assert isinstance(raw, bytes)
        ops = load_ops(raw)
        assert load_ops(dump_ops(ops)) == ops


def place(sketch: Sketch, ref: Ref) -> Vec | None:
    """Where a reference lies, when it is a single place."""
    primitive = sketch.primitives[ref.primitive] if ref.primitive is not None else None
    match primitive, ref.part:
        case Point(at), _:
            return at
        case (Line() | Arc()) as p, (Part.START | Part.END) as part:
            return p.start if part is Part.START else p.end
        case ((Circle(center) | Arc(center)), Part.CENTER):
            return center
    return None


def gap(sketch: Sketch, constraint: Constraint) -> float | None:
    """How far apart two places are that should coincide."""
    places = [place(sketch, ref) for ref in constraint.refs]
    return math.dist(*places) if len(places) == 2 and None not in places else None  # type: ignore[arg-type]


def test_places_that_should_coincide_do(reading: ReadResult) -> None:
    """The files' own word on where entities end: it fails for clockwise arcs if their ends are not turned over."""
    gaps = [
        (gap(sketch, c), any(r.part in (Part.START, Part.END) and is_arc(sketch, r) for r in c.refs))
        for sketch in reading
        for c in sketch.constraints
        if c.type is T.COINCIDENT
    ]
    together = [g <= 1e-6 for g, _ in gaps if g is not None]
    at_arcs = [g <= 1e-6 for g, arc in gaps if arc and g is not None]
    assert len(together) > 20_000
    assert len(at_arcs) > 2_000
    assert np.mean(together) > 0.999
    assert np.mean(at_arcs) > 0.999


def is_arc(sketch: Sketch, ref: Ref) -> bool:
    return ref.primitive is not None and isinstance(sketch.primitives[ref.primitive], Arc)


def test_real_dimensions_and_midpoints_say_what_is_drawn(reading: ReadResult) -> None:
    right: Counter[tuple[str, bool]] = Counter()
    for sketch in reading:
        for c in sketch.constraints:
            primitive = sketch.primitives[c.refs[0].primitive or 0]
            measured = {
                T.DIAMETER: getattr(primitive, "radius", 0) * 2,
                T.RADIUS: getattr(primitive, "radius", 0),
                T.LENGTH: primitive.length,
            }.get(c.type)
            if measured is not None and c.value is not None:
                right[c.type, math.isclose(measured, c.value, rel_tol=6e-4)] += 1
    for type_, least in ((T.DIAMETER, 2400), (T.RADIUS, 220), (T.LENGTH, 30)):
        assert right[type_, True] >= least
        assert right[type_, False] <= 0.01 * least
    seen = 0
    for sketch in reading:
        for c in sketch.constraints:
            at = [place(sketch, ref) for ref in c.refs]
            if c.type is T.MIDPOINT and len(at) == 3 and None not in at:
                middle, (x, y), (u, v) = at  # type: ignore[misc]
                assert math.dist(middle, ((x + u) / 2, (y + v) / 2)) < 1e-9  # type: ignore[arg-type]
                seen += 1
    assert seen > 1400


def test_round_trip(tmp_path: Path, reading: ReadResult) -> None:
    write(reading, tmp_path / "again.npy")
    again = collect(read(tmp_path / "again.npy"))
    assert not again.skipped
    in_order = 0
    for original, found in zip(reading, again, strict=True):
        assert_same(original, found, 1e-9)
        assert_same_constraints(original, found, 0, ordered=False)  # angles were read from degrees: exact
        in_order += original.constraints == found.constraints
    # A clockwise arc is turned over, so that its ends come in another order, and the constraints on them.
    assert in_order > 5350
    third = tmp_path / "third.npy"
    write(again.sketches[:500], third)
    for second, last in zip(again.sketches[:500], read(third), strict=True):
        assert isinstance(last, Sketch)
        assert second.constraints == last.constraints
