"""DXF: what is drawn comes back as primitives, and what cannot is counted."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import ezdxf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dxf_drawing import NO_FLATTENING, drawn, only, read
from support.strategies import assert_same, numbers, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats.dxf import FORMAT
from sketchdnn.geometry import MM_PER_UNIT, Circle, Line, Point, Sketch, arc_from_bulge


@settings(max_examples=30)
@given(sketch=sketches(), units=st.sampled_from([None, *MM_PER_UNIT]))
def test_what_is_written_is_read_and_passes_the_official_audit(
    tmp_path_factory: pytest.TempPathFactory, sketch: Sketch, units: str | None
) -> None:
    path = tmp_path_factory.mktemp("dxf") / "a.dxf"
    sketch = Sketch(sketch.primitives, units=units)
    FORMAT.write([sketch], path)
    back = read(path)
    assert not back.skipped
    assert only(back).units == units
    assert_same(sketch, only(back))
    auditor = ezdxf.readfile(path).audit()
    assert not auditor.errors
    assert not auditor.fixes


def test_real_sketches_come_back(real_data: Path, tmp_path: Path) -> None:
    from itertools import islice

    from sketchdnn.formats.json_files import CORPUS

    found = CORPUS.read(real_data / "open-sketches.jsonl.xz")
    real = [item for item in islice(found, 0, 4_000, 100) if isinstance(item, Sketch)]
    assert len(real) >= 20
    for sketch in real:
        path = tmp_path / "a.dxf"
        FORMAT.write([sketch], path)
        assert_same(sketch, only(read(path)))
        assert not ezdxf.readfile(path).audit().errors


def test_construction_is_on_a_dashed_layer_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.dxf"
    FORMAT.write([Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1), True)))], path)
    document = ezdxf.readfile(path)
    solid, dashed = document.modelspace()
    assert solid.dxf.layer == "0"
    assert document.layers.get(dashed.dxf.layer).dxf.linetype == "DASHED"


def test_a_file_holds_one_sketch(tmp_path: Path) -> None:
    sketch = Sketch((Point((0, 0)),))
    for wrong in ([], [sketch, sketch]):
        with pytest.raises(FormatError, match="one sketch"):
            FORMAT.write(wrong, tmp_path / "a.dxf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("version", ["R12", "R2000", "R2018"])
@pytest.mark.parametrize("fmt", ["asc", "bin"])
def test_versions_and_the_binary_form(tmp_path: Path, version: str, fmt: str) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_line((0, 0), (1, 2))
        space.add_arc((1, 1), 2, 350, 10)
        space.add_polyline2d([(0, 0, 1), (2, 0, 0)], format="xyb")

    line, arc, half = only(drawn(tmp_path / "a.dxf", draw, version, fmt=fmt))
    assert numbers(line) == pytest.approx([0, 0, 1, 2])
    assert arc.sweep == pytest.approx(math.radians(20))
    assert numbers(half) == pytest.approx(numbers(arc_from_bulge((0, 0), (2, 0), 1)))


CODES = {1: "in", 2: "ft", 4: "mm", 5: "cm", 6: "m", 7: "km", 9: "mil", 10: "yd", 13: "um", 14: "dm"}


@pytest.mark.parametrize("code", range(25))
def test_units_by_their_codes(tmp_path: Path, code: int) -> None:
    """A meter stays a meter, under whichever name; a unit that we do not know is none."""

    def draw(document: Any, space: Any) -> None:
        document.units = code
        space.add_line((0, 0), (1, 0))

    path = tmp_path / "a.dxf"
    if code in (19, 20):  # a light year is further than anyone draws
        with pytest.raises(FormatError, match="units"):
            drawn(path, draw)
        return
    sketch = only(drawn(path, draw))
    assert (sketch.units is None) == (code == 0)
    if code in CODES:
        assert sketch.units == CODES[code]
    meters = {
        3: 1609.344,
        8: 2.54e-8,
        11: 1e-10,
        12: 1e-9,
        15: 10,
        16: 100,
        17: 1e9,
        18: 149597870700,
        21: 0.3048006096,
    }
    if code in meters:
        (line,) = sketch.in_units("m")
        assert line.length == pytest.approx(meters[code])


def test_polylines_are_segments_and_arcs(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_lwpolyline([(0, 0, 0), (4, 0, 1), (4, 2, 0), (0, 2, -0.5), (0, 2, 0)], format="xyb", close=True)
        space.add_polyline3d([(0, 0, 5), (1, 0, 5), (1, 0, 6)], close=True)

    reading = drawn(tmp_path / "a.dxf", draw)
    bottom, cap, top, side, flat = only(reading)
    assert numbers(bottom) == [0, 0, 4, 0]
    assert numbers(cap) == pytest.approx(numbers(arc_from_bulge((4, 0), (4, 2), 1)))
    assert cap.mid == pytest.approx((5, 1))  # counter-clockwise from the lower to the upper right corner
    assert (numbers(top), numbers(side)) == ([4, 2, 0, 2], [0, 2, 0, 0])
    assert numbers(flat) == [0, 0, 1, 0]
    assert reading.skipped == Counter({"LWPOLYLINE of no length": 1, "POLYLINE out of the plane": 2})


def test_an_ellipse_that_is_a_circle_is_one(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_ellipse((1, 2), (0, 3), 1.0)
        space.add_ellipse((1, 2), (0, 3), 1.0, start_param=0, end_param=math.pi / 2)
        space.add_ellipse((1, 2), (0, 3), 0.5)

    reading = drawn(tmp_path / "a.dxf", draw, options=NO_FLATTENING)
    circle, arc = only(reading)
    assert numbers(circle) == pytest.approx([1, 2, 3])
    assert arc.start == pytest.approx((1, 5))  # along its major axis, which points up
    assert arc.end == pytest.approx((-2, 2))
    assert reading.skipped == Counter({"ELLIPSE that is no circle": 1})
    assert reading.sketches[0].extra == {"dropped_entities": 1}


def test_an_arc_of_a_full_turn_is_a_circle(tmp_path: Path) -> None:
    (circle,) = only(drawn(tmp_path / "a.dxf", lambda _, space: space.add_arc((0, 0), 2, 0, 360)))
    assert circle == Circle((0, 0), 2)


def test_what_is_no_primitive_is_counted_by_type(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_circle((0, 0), 1)
        space.add_spline([(0, 0), (1, 1), (2, 0)])
        for _ in range(3):
            space.add_text("hello")
        space.add_hatch()
        space.add_linear_dim(base=(0, 2), p1=(0, 0), p2=(1, 0)).render()
        space.add_3dface([(0, 0), (1, 0), (1, 1)])
        space.add_blockref("nowhere", (0, 0))
        document.layout("Layout1").add_line((0, 0), (1, 1))

    reading = drawn(tmp_path / "a.dxf", draw, options=NO_FLATTENING)
    assert len(only(reading)) == 1
    assert reading.skipped == Counter(
        {
            "SPLINE cannot be a primitive": 1,
            "TEXT cannot be a primitive": 3,
            "HATCH cannot be a primitive": 1,
            "DIMENSION cannot be a primitive": 1,
            "3DFACE cannot be a primitive": 1,
            "INSERT of a block that is not in the file": 1,
            "an entity in paper space": 1,
        }
    )
    assert reading.sketches[0].extra == {"dropped_entities": 2}  # the curve and what the block may hold


def test_what_is_no_curve_leaves_a_sketch_complete(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_circle((0, 0), 1)
        space.add_text("hello")
        space.add_line((1, 1), (1, 1))

    reading = drawn(tmp_path / "a.dxf", draw)
    assert reading.skipped.total() == 2
    assert reading.sketches[0].extra == {}


def test_a_drawing_of_text_alone_is_no_sketch(tmp_path: Path) -> None:
    reading = drawn(tmp_path / "a.dxf", lambda _, space: space.add_text("hello"))
    assert not len(reading)
    assert reading.skipped["a drawing without a line, circle, arc or point"] == 1


def test_every_real_drawing_is_read_and_nothing_is_lost(real_data: Path) -> None:
    """Each type of entity in the file's own text is found again among the primitives or the reasons."""
    files = sorted((real_data / "dxf").glob("*.dxf"))
    assert len(files) == 24
    with_sketch = 0
    for path in files:
        reading = read(path)
        with_sketch += len(reading)
        found = Counter(p.kind.name for sketch in reading for p in sketch)
        found.update({note.split()[0]: count for note, count in reading.notes.items()})
        for type_, count in _entities_in_text(path).items():
            if type_ in ("VIEWPORT", "VERTEX", "SEQEND", "INSERT", "LWPOLYLINE", "POLYLINE", "ENDSEC"):
                continue
            skipped = sum(n for reason, n in reading.skipped.items() if reason.split()[0] == type_)
            in_paper = reading.skipped["an entity in paper space"]
            assert found[type_] + skipped + in_paper >= count, (path.name, type_)
    assert with_sketch == 23  # and one holds a table only


def _entities_in_text(path: Path) -> Counter[str]:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    tags = list(zip(lines[0::2], lines[1::2], strict=False))
    start = tags.index(("2", "ENTITIES"))
    end = tags.index(("0", "ENDSEC"), start)
    return Counter(value for code, value in tags[start:end] if code == "0")
