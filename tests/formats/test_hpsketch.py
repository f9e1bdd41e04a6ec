"""HPSketch vectors: what each command means, where sketches begin, and that real files agree with the open corpus."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.strategies import assert_refused, assert_same

from sketchdnn.formats import Skipped, collect, read
from sketchdnn.formats.hpsketch import FORMAT
from sketchdnn.formats.json_files import parse_record
from sketchdnn.geometry import Arc, Circle, Line, Sketch, normalize

LOOP, END = (6,), (5,)
SELECT = (10,)


def model(path: Path, rows: Sequence[Sequence[int]]) -> Path:
    vectors = np.full((len(rows), 21), -1, dtype=np.int32)
    for index, row in enumerate(rows):
        vectors[index, : len(row)] = row
    with h5py.File(path, "w") as file:
        file["vec"] = vectors
    return path


def sketches_of(path: Path) -> list[Sketch]:
    reading = collect(FORMAT.read(path))
    assert not reading.skipped
    return list(reading)


def test_lines_arcs_and_circles(tmp_path: Path) -> None:
    rows = [
        LOOP, (0, 138, 128), (1, 138, 148, 128, 1), (8, 128, 148), (9, 128, 128),
        SELECT, LOOP, (2, 133, 138, -1, -1, 3), LOOP, (7, 133, 138, -1, -1, 2), END, (0, 200, 200),
    ]  # fmt: skip
    (sketch,) = sketches_of(model(tmp_path / "00000007_1.h5", rows))
    line, arc, top, left, hole, inner = sketch
    assert line == Line((0.0, 0.0), (10.0, 0.0))
    assert isinstance(arc, Arc)
    assert (*arc.start, *arc.end, *arc.mid) == pytest.approx((10, 0, 10, 20, 20, 10))  # half a turn, bulging right
    assert (top, left) == (Line((10.0, 20.0), (0.0, 20.0)), Line((0.0, 20.0), (0.0, 0.0)))
    assert (hole, inner) == (Circle((5.0, 10.0), 3.0), Circle((5.0, 10.0), 2.0))
    assert sketch.units is None
    assert sketch.extra == {"source": "hpsketch", "group": "deepcad/00000007", "id": "00000007_1.0"}
    (sketch,) = sketches_of(model(tmp_path / "m.h5", [LOOP, (1, 138, 128, 64, 0), (0, 128, 128), END]))
    arc = sketch.primitives[0]
    assert isinstance(arc, Arc)
    assert arc.sweep == pytest.approx(np.pi / 2)
    assert arc.mid[1] > 0  # clockwise from left to right passes above the chord


def test_several_sketches_in_one_file(tmp_path: Path) -> None:
    square = [LOOP, (0, 138, 128), (0, 138, 138), (0, 128, 128)]
    inside = [LOOP, (0, 131, 129), (0, 131, 131), (0, 129, 129)]
    circle = [LOOP, (2, 176, 128, -1, -1, 47)]  # starts at (129, 128): center and radius were rounded apart
    path = model(tmp_path / "m.h5", [*square, *inside, *circle, *square, END])
    assert [len(sketch) for sketch in sketches_of(path)] == [6, 1, 3]
    spline = [LOOP, (0, 138, 128), (3,), (4, 138, 140), (4, 128, 128)]
    square = [LOOP, (0, 138, 128), (0, 138, 138), (0, 128, 128)]
    found = list(FORMAT.read(model(tmp_path / "m.h5", [*square, *spline, *square, END])))
    assert found[1] == Skipped("a sketch with a spline", is_sketch=True)
    assert [found[i].extra["id"] for i in (0, 2)] == ["m.0", "m.2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(("loop", "reason"), [
    ([(0, 128, 128)], "a line needs two different ends"),
    ([(2, 140, 140, -1, -1, 0)], "a circle's radius must be above zero"),
    ([(1, 138, 128, -1, 1), (0, 128, 128)], "an arc without a sweep"),
])  # fmt: skip
def test_impossible_geometry_is_counted(tmp_path: Path, loop: list[tuple[int, ...]], reason: str) -> None:
    (found,) = FORMAT.read(model(tmp_path / "m.h5", [LOOP, *loop, END]))
    assert isinstance(found, Skipped)
    assert found.reason.startswith(reason)


def test_other_or_external_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    for rows in ([(99,)], [(0, 1, 2)]):
        assert_refused(read, model(path, rows), r"m\.h5: (has an unknown command, 99|draws before)")
    for name, data, reason in (
        ("other", np.zeros((3, 21), int), "without the table"),
        ("vec", np.zeros((3, 20), int), "whole numbers in 21 columns"),
        ("vec", np.zeros((3, 21)), "whole numbers"),
    ):
        with h5py.File(path, "w") as file:
            file[name] = data
        assert_refused(read, path, reason)
    with h5py.File(path, "w") as file:
        file.create_group("vec")
    assert_refused(read, path, "without the table")
    model(tmp_path / "real.h5", [LOOP, (0, 138, 128), (0, 128, 128), END])
    (tmp_path / "secret").write_bytes(bytes(21 * 4))
    linked, outside = tmp_path / "linked.h5", tmp_path / "outside.h5"
    with h5py.File(linked, "w") as file:
        file["vec"] = h5py.ExternalLink("real.h5", "vec")
    with h5py.File(outside, "w") as file:
        file.create_dataset("vec", (1, 21), "int32", external=[(str(tmp_path / "secret"), 0, 84)])
    for path in (linked, outside):
        assert_refused(read, path, "without the table")


def test_real_files_agree_with_open_corpus(real_data: Path) -> None:
    """The corpus took the same files through another program, which scaled by a looser box and kept five digits."""
    ours = {sketch.extra["id"]: sketch for sketch in read(real_data / "hpsketch_sample.tar.xz")}
    compared = 0
    with lzma.open(real_data / "open-sketches.jsonl.xz") as corpus:
        for line in corpus:
            if b'"hpsketch"' not in line[:40] or (theirs := parse_record(line)).extra["id"][5:] not in ours:
                continue
            placed, _ = normalize(ours[theirs.extra["id"][5:]])
            assert_same(normalize(theirs)[0], placed, 1e-4)
            assert theirs.extra["group"] == placed.extra["group"]
            compared += 1
            if compared == 60:
                return
    pytest.fail(f"only {compared} sketches are in both")
