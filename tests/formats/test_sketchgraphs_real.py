"""Real SketchGraphs sequences: each is read or refused with a reason, fits its own constraints and survives writing."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.strategies import assert_same, assert_same_constraints

from sketchdnn.formats.format import ReadResult, collect
from sketchdnn.formats.sketchgraphs import count, read, read_table, write
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.formats.sketchgraphs.pickles import dump_ops, load_ops
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch, Vec
from sketchdnn.geometry.table import sketches_to_table

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


def test_columns_agree_with_sketches(path: Path, reading: ReadResult) -> None:
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


def test_dimensions_say_what_is_drawn(reading: ReadResult) -> None:
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


def test_midpoint_comes_first_in_real_files(reading: ReadResult) -> None:
    """The files list them by number, and another place first in one of six."""
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


def test_pickles_equal_official_ones(path: Path) -> None:
    sequences = open_sequences(path)
    for raw in sequences.pickles(0, 1000):
        assert isinstance(raw, bytes)
        ops = load_ops(raw)
        assert load_ops(dump_ops(ops)) == ops
