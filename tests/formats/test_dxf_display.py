"""DXF: what is not shown is left out, dashed line types are construction, splines and ellipses become arcs."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import ezdxf
import pytest
from support.dxf_drawing import drawn, only, read

from sketchdnn.formats import ReadOptions, ReadResult, scan
from sketchdnn.formats import read as read_any
from sketchdnn.formats.dxf import FORMAT
from sketchdnn.geometry import Arc, Line, Sketch, profile

MM = 4  # $INSUNITS


def test_hidden_entities_are_left_out_and_counted(tmp_path: Path) -> None:
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
    assert reading.skipped == Counter(
        {
            "LINE on a layer that is off": 2,
            "CIRCLE on a layer that is frozen": 1,
            "INSERT on a layer that is frozen": 1,
            "POINT that is invisible": 1,
        }
    )
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


def test_own_construction_layer_reads_back_without_a_note(tmp_path: Path) -> None:
    sketch = Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1), True)), units="mm")
    FORMAT.write([sketch], tmp_path / "a.dxf")
    reading = read(tmp_path / "a.dxf")
    assert only(reading) == sketch
    assert not reading.skipped
    assert not reading.notes


def test_missing_units_are_said_and_can_be_named(tmp_path: Path) -> None:
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),))], tmp_path / "a.dxf")
    reading = read_any(tmp_path / "a.dxf")
    assert (only(reading).units, [note.split(",")[0] for note in reading.notes]) == (None, ["a drawing without units"])
    inches = read_any(tmp_path / "a.dxf", ReadOptions(assume_units="in"))
    assert (only(inches).units, inches.notes) == ("in", Counter())
    assert only(inches).primitives == only(reading).primitives
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),), units="cm")], tmp_path / "b.dxf")
    assert only(read_any(tmp_path / "b.dxf", ReadOptions(assume_units="in"))).units == "cm"


def test_splines_and_ellipses_close_the_outline(tmp_path: Path) -> None:
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
    coarse = drawn(tmp_path / "a.dxf", draw, options=ReadOptions(flatten=0.2))
    assert len(only(coarse)) < len(sketch)


def test_real_curves_are_followed_within_the_tolerance(real_data: Path) -> None:
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
    assert len(only(reading)) == 1
    assert reading.skipped.total() == 1


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
