"""SketchGraphs files as we write them: sketches survive the trip, and columns are those of the sketches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_same, sketches

from sketchdnn.formats.found import gather
from sketchdnn.formats.sketchgraphs import count, read, read_table, write
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.formats.sketchgraphs.ops import load_ops
from sketchdnn.formats.sketchgraphs.pickling import dump_ops
from sketchdnn.formats.sketchgraphs.sketches import ops_of
from sketchdnn.geometry import (
    EXTERNAL,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    GeometryError,
    Line,
    Part,
    Point,
    Ref,
    Sketch,
)
from sketchdnn.geometry.constraints import PARTS_OF_KIND
from sketchdnn.geometry.table import to_table

T = ConstraintType


def only(path: Path) -> Sketch:
    (sketch,) = read(path)
    assert isinstance(sketch, Sketch)
    return sketch


def unordered(constraint: Constraint) -> tuple[object, ...]:
    """All that SketchGraphs keeps of a constraint: not the order of its places."""
    return (
        constraint.type,
        tuple(sorted((-1 if r.primitive is None else r.primitive, r.part) for r in constraint.refs)),
        constraint.value,
        constraint.name,
        tuple(sorted(constraint.extra.items())),
    )


def assert_same_constraints(a: Sketch, b: Sketch) -> None:
    assert sorted(map(unordered, a.constraints), key=repr) == sorted(map(unordered, b.constraints), key=repr)


def constraints_on(sketch: Sketch) -> st.SearchStrategy[Constraint]:
    places = [
        Ref(i, part)
        for i, p in enumerate(sketch)
        for part in PARTS_OF_KIND[p.kind]
        # A point has one node, read back as its point.
        if not (isinstance(p, Point) and part is Part.WHOLE)
    ]
    ref = st.sampled_from([*places, EXTERNAL])
    refs = st.lists(ref, min_size=1, max_size=5).map(tuple)
    value = st.none() | st.floats(-1e3, 1e3)
    extra = st.dictionaries(
        st.sampled_from(["halfSpace0", "driven", "note", "n"]),
        st.booleans() | st.text(max_size=300) | st.floats(-1, 1) | st.integers(-(2**63), 2**63 - 1),
        max_size=2,
    )
    no_words = {T.OTHER, T.POINT_ON_CURVE, T.COLLINEAR}
    named = st.builds(
        Constraint, st.sampled_from([t for t in T if t not in no_words]), refs, value, st.none() | st.just("d1"), extra
    )
    other = st.builds(
        Constraint, st.just(T.OTHER), refs, value, st.sampled_from(["Pierce", "Unknown", "Snell's law"]), extra
    )
    return named | other


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
        reading = gather(read(path))
        assert not reading.skipped
        assert len(reading) == len(originals) == count(path)
        for original, found in zip(originals, reading, strict=True):
            in_metres = original.in_units("m")
            assert_same(in_metres, found, 1e-12)
            assert_same_constraints(in_metres, found)

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
        assert {unordered(c) for c in only(tmp_path / "a.npy").constraints} == {
            unordered(c)
            for c in (
                Constraint(T.COINCIDENT, (Ref(2, Part.POINT), Ref(1))),
                Constraint(T.COINCIDENT, (Ref(0, Part.START), EXTERNAL)),
                Constraint(T.HORIZONTAL_DISTANCE, (Ref(0),), 1.0),
                Constraint(T.OTHER, (Ref(1),), 2.0, "Weight", {"driven": True}),
            )
        }

    def test_an_edge_follows_the_last_node_it_refers_to_and_names_it_first(self) -> None:
        lines = (Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))
        both = Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
        outside = Constraint(T.OTHER, (EXTERNAL,), name="Fix")
        nodes = -1
        seen = 0
        for op in ops_of(Sketch(lines, (both, outside))):
            nodes += op.step is None
            if op.step is not None:
                assert op.stop[0] == nodes
                assert list(op.stop) == sorted(op.stop, reverse=True)
                seen += op.start != 101
        assert seen == 2
        assert nodes == 7

    def test_no_units_are_metres(self, tmp_path: Path) -> None:
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
        assert {unordered(c) for c in found.constraints} == {unordered(c) for c in constraints}

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
        expected = to_table(gather(read(path)).sketches[start:stop])
        assert found.table.num_sketches == expected.num_sketches
        for name in ("owner", "kind", "construction", "x", "y", "x2", "y2", "radius", "start_angle", "sweep"):
            np.testing.assert_array_equal(getattr(found.table, name), getattr(expected, name))


def test_ops_survive_their_pickle() -> None:
    ops = ops_of(Sketch((Line((0, 0), (1, 1)), Arc((0, 0), 1, 0.1, 2)), (Constraint(T.LENGTH, (Ref(0),), 1.5),)))
    assert load_ops(dump_ops(ops)) == ops
