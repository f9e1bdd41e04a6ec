"""SketchGraphs files as we write them: sketches survive the trip, and columns are those of the sketches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_same, assert_same_constraints, constraints_on, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.formats import registry
from sketchdnn.formats.format import collect
from sketchdnn.formats.sketchgraphs import count, read, read_table, write
from sketchdnn.formats.sketchgraphs.constraints import NAMES, NOTE, decode_constraint
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.formats.sketchgraphs.pickles import dump_ops, load_ops
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch
from sketchdnn.geometry.table import sketches_to_table

T = ConstraintType


def only(path: Path) -> Sketch:
    (sketch,) = read(path)
    assert isinstance(sketch, Sketch)
    return sketch


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

    def test_every_angle_survives_degrees_to_rounding(self, tmp_path: Path) -> None:
        """Numbers of degrees come back exactly. Some radians are those of no number of degrees: these are rounded."""
        degrees = [math.radians(value) for value in (60.0, 22.5, 0.1, -135.25, 359.999)]
        radians = [580.828125, *(i / 7 for i in range(-5000, 5000))]
        for values, tolerance in ((degrees, 0), (radians, 1e-15)):
            angles = tuple(Constraint(T.ANGLE, (Ref(0), Ref(1)), value) for value in values)
            sketch = Sketch((Line((0, 0), (1, 0)), Line((0, 0), (1, 1))), angles)
            write([sketch], tmp_path / "a.npy")
            assert_same_constraints(sketch, only(tmp_path / "a.npy"), tolerance)

    def test_what_sketchgraphs_has_no_word_for(self, tmp_path: Path) -> None:
        line, circle, point = Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((1, 0))
        sketch = Sketch(
            (line, circle, point),
            (
                Constraint(T.POINT_ON_CURVE, (Ref(2, Part.POINT), Ref(1))),
                Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
                Constraint(T.HORIZONTAL_DISTANCE, (Ref(0),), 1.0),
                Constraint(T.OTHER, (Ref(1),), 2.0, "Weight", {"list": [1], "driven": True}),
            ),
        )
        write([sketch], tmp_path / "a.npy")
        *expected, weight = sketch.constraints
        expected.append(replace(weight, extra={"driven": True}))  # a list is no parameter
        assert_same_constraints(Sketch(sketch.primitives, tuple(expected)), only(tmp_path / "a.npy"), 0, ordered=False)

    def test_what_sketchgraphs_says_itself_needs_no_note(self) -> None:
        constraint = Constraint(T.COINCIDENT, (Ref(1, Part.START), Ref(0, Part.END)))
        ops = sketch_to_ops(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1))), (constraint,)))
        assert [op.step for op in ops if op.step is not None and op.start == NAMES.index("Coincident")] == [{}]

    @pytest.mark.parametrize(
        "note",
        [
            "", "{", "null", "[" * 100_000, "9" * 10_000, '{"type": "fix"}', '{"type": "fix", "refs": [[0, "end"]]}',
            '{"type": "fix", "refs": []}', '{"type": "fix", "refs": [[7, "whole"]]}',
            '{"type": 1, "refs": [["origin"]]}',
            '{"type": "coincident", "refs": [["origin"], ["origin"]]}', '{"type": "other", "refs": [["origin"]]}',
            '{"type": "coincident", "refs": [[0, "start"], ["origin"], ["origin"]]}', "\ud800", 7, True, 0.5,
            '{"type": "fix", "refs": [[0, "start"], ["origin"]]}',
            '{"type": "collinear", "refs": [[0, ["start"]], {}]}',
        ],
    )  # fmt: skip
    def test_a_note_that_does_not_fit_is_passed_over(self, note: object) -> None:
        refs = (Ref(0, Part.START), EXTERNAL)
        assert decode_constraint("Coincident", refs, {NOTE: note, "n": 1}) == Constraint(
            T.COINCIDENT, refs, extra={"n": 1}
        )

    def test_a_note_cannot_name_a_part_that_is_not_there(self) -> None:
        note = '{"type": "coincident", "refs": [[0, "point"], ["origin"]]}'
        assert decode_constraint("Coincident", (Ref(0), EXTERNAL), {NOTE: note}).refs == (Ref(0), EXTERNAL)

    def test_real_constraints_survive(self, tmp_path: Path, real_data: Path) -> None:
        originals = [sketch.in_units("m") for sketch in registry.read(real_data / "freecad")]
        assert sum(len(sketch.constraints) for sketch in originals) > 1000
        write(originals, tmp_path / "a.npy")
        for original, found in zip(originals, collect(read(tmp_path / "a.npy")), strict=True):
            assert_same_constraints(original, found, 1e-15, ordered=False)

    def test_an_edge_follows_the_last_node_it_refers_to_and_names_it_first(self) -> None:
        lines = (Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))
        both = Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
        outside = Constraint(T.OTHER, (EXTERNAL,), name="Fix")
        nodes = -1
        seen = 0
        for op in sketch_to_ops(Sketch(lines, (both, outside))):
            nodes += op.step is None
            if op.step is not None:
                assert op.stop[0] == nodes
                assert list(op.stop) == sorted(op.stop, reverse=True)
                seen += op.start != 101
        assert seen == 2
        assert nodes == 7

    def test_no_units_are_meters(self, tmp_path: Path) -> None:
        write([Sketch((Circle((0, 0), 1),))], tmp_path / "a.npy")
        assert only(tmp_path / "a.npy").primitives == (Circle((0, 0), 1),)

    def test_a_long_sequence_is_read_back(self, tmp_path: Path) -> None:
        """Longer than one pickle frame of the official writer, and than what is unpickled without checks."""
        primitives = tuple(Circle((i, 0), 1 + i) for i in range(5000))
        constraints = tuple(Constraint(T.EQUAL, (Ref(i + 1), Ref(i))) for i in range(4999))
        write([Sketch(primitives, constraints)], tmp_path / "a.npy")
        found = only(tmp_path / "a.npy")
        assert found.primitives == primitives
        assert len(next(iter(open_sequences(tmp_path / "a.npy").pickles(0, 1)))) > 2**16  # type: ignore[arg-type]
        assert set(found.constraints) == set(constraints)

    def test_a_failure_leaves_nothing(self, tmp_path: Path) -> None:
        def failing() -> Iterator[Sketch]:
            yield Sketch((Point((0, 0)),))
            raise GeometryError("no more")

        with pytest.raises(GeometryError):
            write(failing(), tmp_path / "a.npy")
        assert not list(tmp_path.iterdir())

    def test_no_sketches_make_a_file_of_none(self, tmp_path: Path) -> None:
        write([], tmp_path / "a.npy")
        assert count(tmp_path / "a.npy") == 0
        assert list(read(tmp_path / "a.npy")) == []
        assert len(read_table(tmp_path / "a.npy").table) == 0


class TestTable:
    @given(st.lists(sketches(max_size=6), max_size=4), st.integers(0, 5), st.integers(0, 5))
    def test_the_columns_are_those_of_the_sketches(
        self, tmp_path_factory: pytest.TempPathFactory, originals: list[Sketch], start: int, stop: int
    ) -> None:
        path = tmp_path_factory.mktemp("table") / "a.npy"
        write(originals, path)
        found = read_table(path, start, stop)
        expected = sketches_to_table(collect(read(path)).sketches[start:stop])
        assert found.table.num_sketches == expected.num_sketches
        for name in ("owner", "kind", "construction", "x", "y", "x2", "y2", "radius", "start_angle", "sweep"):
            np.testing.assert_array_equal(getattr(found.table, name), getattr(expected, name))


def test_ops_survive_their_pickle() -> None:
    ops = sketch_to_ops(Sketch((Line((0, 0), (1, 1)), Arc((0, 0), 1, 0.1, 2)), (Constraint(T.LENGTH, (Ref(0),), 1.5),)))
    assert load_ops(dump_ops(ops)) == ops
