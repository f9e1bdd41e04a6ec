"""DXF: entities, blocks, layers and line types as primitives, what is skipped, and broken or hostile files."""

from __future__ import annotations

import math
import os
import resource
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import ezdxf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dxf_drawing import NO_FLATTENING, drawn, only, read
from support.strategies import assert_refused, assert_same, numbers, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import ReadOptions, ReadResult, collect, scan
from sketchdnn.formats import read as read_any
from sketchdnn.formats.dxf import FORMAT, MAX_ENTITIES
from sketchdnn.geometry import MM_PER_UNIT, Arc, Circle, Kind, Line, Point, Sketch, arc_from_bulge, profile


@settings(max_examples=30)
@given(sketch=sketches(), units=st.sampled_from([None, *MM_PER_UNIT]))
def test_round_trip_passes_ezdxf_audit(
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


@pytest.mark.parametrize("version", ["R12", "R2000", "R2018"])
@pytest.mark.parametrize("fmt", ["asc", "bin"])
def test_versions_and_binary_form(tmp_path: Path, version: str, fmt: str) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_line((0, 0), (1, 2))
        space.add_arc((1, 1), 2, 350, 10)
        space.add_polyline2d([(0, 0, 1), (2, 0, 0)], format="xyb")

    line, arc, half = only(drawn(tmp_path / "a.dxf", draw, version, fmt=fmt))
    assert (numbers(line), arc.sweep) == (pytest.approx([0, 0, 1, 2]), pytest.approx(math.radians(20)))
    assert numbers(half) == pytest.approx(numbers(arc_from_bulge((0, 0), (2, 0), 1)))


# The unit of each $INSUNITS code, or the meters that it is read as.
CODES: dict[int, str | float | None] = {
    0: None, 1: "in", 2: "ft", 4: "mm", 5: "cm", 6: "m", 7: "km", 9: "mil", 10: "yd", 13: "um", 14: "dm",
    3: 1609.344, 8: 2.54e-8, 11: 1e-10, 12: 1e-9, 15: 10, 16: 100, 17: 1e9, 18: 149597870700, 21: 0.3048006096,
}  # fmt: skip


@pytest.mark.parametrize("code", range(25))
def test_units_by_their_codes(tmp_path: Path, code: int) -> None:

    def draw(document: Any, space: Any) -> None:
        document.units = code
        space.add_line((0, 0), (1, 0))

    path = tmp_path / "a.dxf"
    if code in (19, 20):  # a light year is further than anyone draws
        with pytest.raises(FormatError, match="units"):
            drawn(path, draw)
        return
    sketch = only(drawn(path, draw))
    expected = CODES.get(code, sketch.units)
    if isinstance(expected, float | int):
        assert sketch.in_units("m").primitives[0].length == pytest.approx(expected)
    else:
        assert sketch.units == expected
    assert (sketch.units is None) == (code == 0)


def test_polylines_are_segments_and_arcs(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_lwpolyline([(0, 0, 0), (4, 0, 1), (4, 2, 0), (0, 2, -0.5), (0, 2, 0)], format="xyb", close=True)
        space.add_polyline3d([(0, 0, 5), (1, 0, 5), (1, 0, 6)], close=True)

    reading = drawn(tmp_path / "a.dxf", draw)
    bottom, cap, top, side, flat = only(reading)
    assert numbers(bottom) == [0, 0, 4, 0]
    assert numbers(cap) == pytest.approx(numbers(arc_from_bulge((4, 0), (4, 2), 1)))
    assert cap.mid == pytest.approx((5, 1))  # counter-clockwise from the lower to the upper right corner
    assert (numbers(top), numbers(side), numbers(flat)) == ([4, 2, 0, 2], [0, 2, 0, 0], [0, 0, 1, 0])
    assert reading.skipped == Counter({"LWPOLYLINE of no length": 1, "POLYLINE out of the plane": 2})


def test_ellipse_or_arc_that_is_circle_is_one(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_ellipse((1, 2), (0, 3), 1.0)
        space.add_ellipse((1, 2), (0, 3), 1.0, start_param=0, end_param=math.pi / 2)
        space.add_ellipse((1, 2), (0, 3), 0.5)
        space.add_arc((0, 0), 2, 0, 360)

    reading = drawn(tmp_path / "a.dxf", draw, options=NO_FLATTENING)
    circle, arc, full_turn = only(reading)
    assert (full_turn, numbers(circle)) == (Circle((0, 0), 2), pytest.approx([1, 2, 3]))
    assert arc.start == pytest.approx((1, 5))  # along its major axis, which points up
    assert (arc.end, reading.skipped) == (pytest.approx((-2, 2)), Counter({"ELLIPSE that is no circle": 1}))
    assert reading.sketches[0].extra == {"dropped_entities": 1}


def test_unsupported_entities_are_counted_by_type(tmp_path: Path) -> None:
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
    assert reading.skipped == Counter({
        "SPLINE cannot be a primitive": 1, "TEXT cannot be a primitive": 3, "HATCH cannot be a primitive": 1,
        "DIMENSION cannot be a primitive": 1, "3DFACE cannot be a primitive": 1,
        "INSERT of a block that is not in the file": 1, "an entity in paper space": 1,
    })  # fmt: skip
    assert reading.sketches[0].extra == {"dropped_entities": 2}  # the curve and what the block may hold
    alone = drawn(tmp_path / "a.dxf", lambda _, space: space.add_text("hello"))
    assert not len(alone)
    assert alone.skipped["a drawing without a line, circle, arc or point"] == 1


def test_real_drawings_are_read_completely(real_data: Path) -> None:
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


def test_mirrored_by_its_own_plane(tmp_path: Path) -> None:
    """AutoCAD mirrors an entity by turning its plane over; ezdxf knows where its ends are then."""
    down = {"extrusion": (0, 0, -1)}
    expected: list[Any] = []

    def draw(document: Any, space: Any) -> None:
        expected.append(space.add_arc((1, 2), 3, 20, 100, dxfattribs=down))
        space.add_circle((1, 2), 3, dxfattribs=down)
        expected.append(space.add_lwpolyline([(0, 0, 0.4), (2, 1, 0)], format="xyb", dxfattribs=down))

    arc, circle, bent = only(drawn(tmp_path / "a.dxf", draw))
    ends = {tuple(round(c, 9) for c in (p.x, p.y)) for p in (expected[0].start_point, expected[0].end_point)}
    assert {tuple(round(c, 9) for c in end) for end in (arc.start, arc.end)} == ends
    assert (arc.sweep, numbers(circle)) == (pytest.approx(math.radians(80)), pytest.approx([-1, 2, 3]))
    assert bent.mid == pytest.approx(
        (-arc_from_bulge((0, 0), (2, 1), 0.4).mid[0], arc_from_bulge((0, 0), (2, 1), 0.4).mid[1])
    )


angle = st.floats(-360, 360)
scale = st.floats(0.1, 10).flatmap(lambda s: st.sampled_from([(s, s), (s, -s), (-s, s), (-s, -s)]))


@settings(max_examples=30)
@given(outer=st.tuples(scale, angle), inner=st.tuples(scale, angle), flipped=st.booleans())
def test_nested_blocks_agree_with_ezdxf_explode(
    tmp_path_factory: pytest.TempPathFactory, outer: Any, inner: Any, flipped: bool
) -> None:

    def place(space: Any, name: str, how: Any, extrusion: tuple[int, int, int]) -> Any:
        (x, y), rotation = how
        attributes = {"xscale": x, "yscale": y, "rotation": rotation, "extrusion": extrusion}
        return space.add_blockref(name, (3, 4), dxfattribs=attributes)

    def draw(document: Any, space: Any) -> None:
        part = document.blocks.new("part", base_point=(1, 1))
        part.add_line((0, 0), (2, 1))
        part.add_arc((1, 0), 2, 30, 200)
        part.add_circle((2, 2), 0.5)
        part.add_point((1, 3))
        part.add_lwpolyline([(0, 0, 0.3), (1, 0, 0), (1, 1, -0.7), (0, 1, 0)], format="xyb", close=True)
        whole = document.blocks.new("whole")
        place(whole, "part", inner, (0, 0, 1))
        insert = place(space, "whole", outer, (0, 0, -1 if flipped else 1))
        if is_exploded:
            for entity in list(insert.explode()):
                if entity.dxftype() == "INSERT":
                    entity.explode()

    folder = tmp_path_factory.mktemp("dxf")
    is_exploded = False
    ours = only(drawn(folder / "a.dxf", draw))
    is_exploded = True
    theirs = only(drawn(folder / "b.dxf", draw))
    assert Counter(p.kind for p in ours) == {Kind.LINE: 3, Kind.ARC: 3, Kind.CIRCLE: 1, Kind.POINT: 1}
    for p, q in zip(sorted(ours, key=_order), sorted(theirs, key=_order), strict=True):
        assert sorted(numbers(p)) == pytest.approx(sorted(numbers(q)), abs=1e-9)


def _order(primitive: Any) -> tuple[Any, ...]:
    """The same for a line whichever way round it is."""
    xs = numbers(primitive)
    return primitive.kind, round(sum(xs[0::2]), 6), round(sum(xs[1::2]), 6)


def test_grid_of_inserts(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        document.blocks.new("dot").add_point((0, 0))
        grid = {"row_count": 2, "column_count": 3, "row_spacing": 10, "column_spacing": 5, "xscale": 7, "rotation": 90}
        space.add_blockref("dot", (100, 0), dxfattribs=grid)

    places = {(round(p.at[0], 9), round(p.at[1], 9)) for p in only(drawn(tmp_path / "a.dxf", draw))}
    assert places == {(100 - 10 * row, 5 * column) for row in range(2) for column in range(3)}


def test_stretched_or_tilted_is_counted(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        block = document.blocks.new("part")
        block.add_circle((0, 0), 1)
        block.add_lwpolyline([(0, 0, 1), (1, 0, 0)], format="xyb")
        block.add_line((0, 0), (1, 1))
        space.add_blockref("part", (0, 0), dxfattribs={"xscale": 2, "yscale": 3})
        space.add_circle((0, 0), 1, dxfattribs={"extrusion": (1, 0, 1)})
        space.add_line((0, 0, 0), (1, 1, 1))
        space.add_line((0, 0, 0), (0, 0, 1))
        space.add_line((2, 2, 7), (3, 3, 7))  # as high as you like, as long as it is level

    reading = drawn(tmp_path / "a.dxf", draw, options=NO_FLATTENING)
    assert [numbers(p) for p in only(reading)] == [[0, 0, 2, 3], [2, 2, 3, 3]]
    assert reading.skipped == Counter({
        "CIRCLE that is no circle": 1, "LWPOLYLINE that is no circle": 1, "CIRCLE out of the plane": 1,
        "LINE out of the plane": 2,
    })  # fmt: skip


MM = 4  # $INSUNITS


def test_hidden_entities_are_counted(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        document.layers.add("OFF").off()
        document.layers.add("FROZEN").freeze()
        part = document.blocks.new("part")
        part.add_line((0, 0), (1, 0))
        part.add_line((0, 0), (0, 1), {"layer": "SHOWN"})
        space.add_line((0, 0), (5, 0))
        space.add_line((0, 0), (5, 5), {"layer": "off"})
        space.add_circle((0, 0), 5, {"layer": "FROZEN"})
        space.add_point((9, 9), {"invisible": 1})
        space.add_blockref("part", (0, 0), {"layer": "FROZEN"})
        space.add_blockref("part", (10, 0), {"layer": "OFF"})  # only what is on layer 0 of the block is off with it

    reading = drawn(tmp_path / "a.dxf", draw)
    assert [(p.start, p.end) for p in only(reading) if isinstance(p, Line)] == [((0, 0), (5, 0)), ((10, 0), (10, 1))]
    assert reading.skipped == Counter({
        "LINE on a layer that is off": 2, "CIRCLE on a layer that is frozen": 1,
        "INSERT on a layer that is frozen": 1, "POINT that is invisible": 1,
    })  # fmt: skip
    assert only(reading).extra == {}  # nothing that is drawn is missing


def test_dashed_line_types_are_construction(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        for name in ("CENTER", "HIDDEN2", "Strichlinie"):
            document.linetypes.add(name, pattern=[1.0, 0.75, -0.25])
        document.layers.add("AXES", linetype="CENTER")
        block = document.blocks.new("part")
        block.add_line((0, 0), (1, 0), {"linetype": "BYBLOCK"})
        for x, style in enumerate(({}, {"layer": "AXES"}, {"linetype": "HIDDEN2"}, {"linetype": "strichlinie"})):
            space.add_line((x, 0), (x, 1), style)
        space.add_line((0, 9), (1, 9), {"layer": "AXES", "linetype": "CONTINUOUS"})
        space.add_blockref("part", (0, 5), {"linetype": "CENTER"})

    reading = drawn(tmp_path / "a.dxf", draw)
    assert [p.construction for p in only(reading)] == [False, True, True, True, False, True]
    assert reading.notes["LINE of a dashed line type read as construction"] == 4


def test_own_construction_layer_is_dashed_and_reads_back_without_note(tmp_path: Path) -> None:
    sketch = Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1), True)), units="mm")
    FORMAT.write([sketch], tmp_path / "a.dxf")
    document = ezdxf.readfile(tmp_path / "a.dxf")
    solid, dashed = document.modelspace()
    assert (solid.dxf.layer, document.layers.get(dashed.dxf.layer).dxf.linetype) == ("0", "DASHED")
    reading = read(tmp_path / "a.dxf")
    assert only(reading) == sketch
    assert not reading.skipped
    assert not reading.notes


def test_missing_units_are_noted(tmp_path: Path) -> None:
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),))], tmp_path / "a.dxf")
    reading = read_any(tmp_path / "a.dxf")
    assert (only(reading).units, [note.split(",")[0] for note in reading.notes]) == (None, ["a drawing without units"])
    inches = read_any(tmp_path / "a.dxf", ReadOptions(assume_units="in"))
    assert (only(inches).units, inches.notes) == ("in", Counter())
    assert only(inches).primitives == only(reading).primitives
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),), units="cm")], tmp_path / "b.dxf")
    assert only(read_any(tmp_path / "b.dxf", ReadOptions(assume_units="in"))).units == "cm"


def test_splines_and_ellipses_close_outline(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        document.units = MM
        space.add_line((0, 0), (40, 0))
        space.add_ellipse((40, 10), (0, -10), 0.5, start_param=0, end_param=math.pi)
        space.add_open_spline([(40, 20), (30, 35), (10, 5), (0, 20)])
        space.add_line((0, 20), (0, 0))

    reading = drawn(tmp_path / "a.dxf", draw)
    sketch = only(reading)
    found = profile(sketch)
    assert len(found.loops) == 1
    assert not found.chains
    assert not reading.skipped
    assert reading.notes == {
        "ELLIPSE read as lines and arcs within 0.01 mm": 1,
        "SPLINE read as lines and arcs within 0.01 mm": 1,
    }
    ends = [end for p in sketch if isinstance(p, Line | Arc) for end in (p.start, p.end)]
    assert all(sum(math.dist(a, b) < 1e-12 * 40 for b in ends) == 2 for a in ends)
    coarse = drawn(tmp_path / "a.dxf", draw, options=ReadOptions(curve_tolerance_mm=0.2))
    assert len(only(coarse)) < len(sketch)


def test_real_curves_are_followed_within_tolerance(real_data: Path) -> None:
    path = next((real_data / "dxf").glob("*_BASE.dxf"))
    reading: ReadResult = read(path)
    pieces = [p for p in only(reading) if isinstance(p, Line | Arc)]
    curves = ezdxf.readfile(path).modelspace().query("SPLINE ELLIPSE")
    assert len(curves) == 175
    for curve in list(curves)[::10]:
        for place in curve.flattening(0.1):
            assert min(_distance((place.x, place.y), p) for p in pieces) <= 0.0101


def _distance(place: tuple[float, float], p: Line | Arc) -> float:
    if isinstance(p, Line):
        (ax, ay), (bx, by) = p.start, p.end
        dx, dy = bx - ax, by - ay
        t = min(1.0, max(0.0, ((place[0] - ax) * dx + (place[1] - ay) * dy) / (dx * dx + dy * dy)))
        return math.dist(place, (ax + t * dx, ay + t * dy))
    angle = math.atan2(place[1] - p.center[1], place[0] - p.center[0])
    if (angle - p.start_angle) % math.tau <= p.sweep:
        return abs(math.dist(place, p.center) - p.radius)
    return min(math.dist(place, p.start), math.dist(place, p.end))


@pytest.mark.parametrize("damage", ["knots", "weights", "degree", "tilted"])
def test_impossible_splines_are_counted(tmp_path: Path, damage: str) -> None:
    def draw(document: Any, space: Any) -> None:
        space.add_line((0, 0), (1, 0))
        spline = space.add_open_spline([(0, 0, 0), (1, 2, 0), (2, 2, 5 * (damage == "tilted")), (3, 0, 0)])
        if damage == "knots":
            spline.knots = [0.0] * 8
        if damage == "weights":
            spline.weights = [0.0] * 4
        if damage == "degree":
            spline.dxf.degree = 1000

    reading = drawn(tmp_path / "a.dxf", draw)
    assert (len(only(reading)), reading.skipped.total()) == (1, 1)


def test_work_on_curves_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sketchdnn.formats import flattening

    monkeypatch.setattr(flattening, "MAX_EVALUATIONS", 500)
    document = ezdxf.new(units=MM)
    document.modelspace().add_line((0, 0), (1, 0))
    for _ in range(20):
        document.modelspace().add_ellipse((0, 0), (50, 0), 0.4)
    document.saveas(tmp_path / "a.dxf")
    (reason,) = [item.reason for item in scan(tmp_path / "a.dxf") if hasattr(item, "reason")]
    assert reason.startswith("ELLIPSE left out: more curves than are approximated in one drawing")


HEAD, TAIL = "0\nSECTION\n2\nENTITIES\n", "0\nENDSEC\n0\nEOF\n"
SKETCH = Sketch((Line((0, 0), (4, 0)), Arc((1, 2), 3, 0.5, 2), Circle((0, 1), 2, True), Point((3, 3))), units="mm")


refused = partial(assert_refused, FORMAT.read)


def file(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def entity(type_: str, **tags: object) -> str:
    """`x10=1` stands for group code 10, value 1."""
    return f"0\n{type_}\n8\n0\n" + "".join(f"{name[1:]}\n{value}\n" for name, value in tags.items())


LINE = entity("LINE", x10=0, x20=0, x11=1, x21=1)


@pytest.mark.parametrize(("content", "match"), [
    (b"", "empty"), (b"\x89PNG\r\n\x1a\n" + bytes(1000), "not a DXF"),
    (b"hello, this is a letter\n" * 50, "not a DXF"), ((HEAD + entity("LINE", x10=0, x20=0)).encode(), "cut off"),
    (b"AutoCAD Binary DXF\r\n\x1a\x00" + bytes(range(256)) * 4, "cut off"),
    (b"AutoCAD Binary DXF\r\n\x1a\x00" + bytes(range(256)) * 4 + b"EOF\x00", "too broken"),
])  # fmt: skip
def test_no_drawing_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(file(tmp_path / "a.dxf", content), match)


def test_missing_eof_is_accepted_if_sections_are_closed(tmp_path: Path) -> None:
    FORMAT.write([SKETCH], tmp_path / "a.dxf")
    whole = (tmp_path / "a.dxf").read_bytes()
    for content, count in (((HEAD + LINE + "0\nENDSEC\n").encode(), 1), (whole[: whole.rindex(b"  0\nEOF")], 4)):
        reading = collect(FORMAT.read(file(tmp_path / "b.dxf", content)))
        assert [len(sketch) for sketch in reading] == [count]
        assert any("EOF" in note for note in reading.notes)
    before_entities = whole[: whole.index(b"ENTITIES")].rindex(b"ENDSEC") + len(b"ENDSEC\n")
    refused(file(tmp_path / "b.dxf", whole[:before_entities]), "cut off")
    # A section that is not closed: the plain reader gives up, the repairing one does not.
    repaired = collect(FORMAT.read(file(tmp_path / "b.dxf", HEAD + LINE + "0\nEOF\n")))
    assert [len(sketch) for sketch in repaired] == [1]


@pytest.mark.parametrize("number", ["nan", "inf", "-1e400", "1e300", "abc"])
def test_impossible_numbers_are_counted(tmp_path: Path, number: str) -> None:
    drawing = (
        HEAD
        + entity("LINE", x10=number, x20=0, x11=1, x21=1)
        + entity("CIRCLE", x10=0, x20=0, x40=number)
        + entity("ARC", x10=0, x20=number, x40=1, x50=0, x51=90)
        + entity("LWPOLYLINE", x100="AcDbEntity")
        + f"100\nAcDbPolyline\n90\n3\n70\n0\n10\n{number}\n20\n0\n42\n1\n10\n5\n20\n0\n10\n6\n20\n0\n"
        + LINE
        + TAIL
    )
    try:
        reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    except FormatError:
        assert number == "abc"  # no number at all spoils the file; the others are numbers of a sort
        return
    assert [len(sketch) for sketch in reading] == [2]  # the last line, and the sound half of the polyline
    assert sum(reading.skipped.values()) == 4


@pytest.mark.parametrize("text", [
    entity("LINE", x10=0, x20=0), entity("CIRCLE", x10=0, x20=0, x40=0), entity("CIRCLE", x10=0, x20=0, x40=-3),
    entity("ARC", x10=0, x20=0, x40=1, x50="nan", x51=1),
    entity("CIRCLE", x10=0, x20=0, x40=1, x210=0, x220=0, x230=0),
    entity("ELLIPSE", x10=0, x20=0, x11=0, x21=0, x40=1),
    entity("LWPOLYLINE", x100="AcDbEntity") + "100\nAcDbPolyline\n90\n0\n70\n1\n",
    entity("INSERT", x2="nothing", x10=0, x20=0),
])  # fmt: skip
def test_degenerate_entities_do_not_spoil_rest(tmp_path: Path, text: str) -> None:
    drawing = HEAD + text + LINE + TAIL
    reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    assert len(reading.sketches[0]) in (1, 2)


def test_huge_files_are_refused_at_once(tmp_path: Path) -> None:
    lines = "".join(entity("LINE", x10=i, x20=0, x11=i, x21=1) for i in range(1000))
    path = file(tmp_path / "a.dxf", HEAD + lines * 1000 + TAIL)
    began, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "holds more than 2,000,000 tags")
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 200 * 1024  # KiB
    path = file(tmp_path / "a.dxf", HEAD)
    os.truncate(path, 10**9)
    refused(path, "MiB")


@pytest.mark.parametrize("depth", [2, 12])
def test_block_bomb_is_refused(tmp_path: Path, depth: int) -> None:
    """Arrays of blocks of arrays of blocks: by their size or by their depth, 10^12 lines or none at all."""
    document = ezdxf.new()
    block = document.blocks.new("B0")
    if depth == 2:
        block.add_line((0, 0), (1, 1))
    grid = {"row_count": 1000, "column_count": 1000} if depth == 2 else {"row_count": 10, "column_count": 1}
    for level in range(1, depth + 1):
        attributes = grid | {"row_spacing": 1, "column_spacing": 1}
        document.blocks.new(f"B{level}").add_blockref(f"B{level - 1}", (0, 0), dxfattribs=attributes)
    document.modelspace().add_blockref(f"B{depth}", (0, 0))
    document.saveas(tmp_path / "a.dxf")
    began = time.process_time()
    refused(tmp_path / "a.dxf", f"expands to more than {MAX_ENTITIES:,}")
    assert time.process_time() - began < 10


def test_blocks_that_repeat_and_unknown_types_are_counted(tmp_path: Path) -> None:
    document = ezdxf.new()
    document.blocks.new("B").add_lwpolyline([(i, i % 2) for i in range(2000)])
    grid = {"row_count": 100, "column_count": 1, "row_spacing": 1}
    document.modelspace().add_blockref("B", (0, 0), dxfattribs=grid)
    document.saveas(tmp_path / "a.dxf")
    refused(tmp_path / "a.dxf", "expands")
    document = ezdxf.new()
    block = document.blocks.new("B")
    block.add_line((0, 0), (1, 1))
    block.add_blockref("B", (1, 0))
    document.modelspace().add_blockref("B", (0, 0))
    document.saveas(tmp_path / "a.dxf")
    reading = collect(FORMAT.read(tmp_path / "a.dxf"))
    assert reading.skipped["INSERT more than 32 blocks deep"] == 1
    drawing = HEAD + entity("WORMHOLE") * 2 + entity("li ne?") + LINE + TAIL
    reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    assert [len(sketch) for sketch in reading] == [1]
    assert reading.skipped == {
        "WORMHOLE cannot be a primitive": 2,
        "an entity of a type without a proper name cannot be a primitive": 1,
    }
