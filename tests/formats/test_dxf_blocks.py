"""DXF blocks and planes: scaled, turned, mirrored, nested and tilted."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dxf_drawing import NO_FLATTENING, drawn, only
from support.strategies import numbers

from sketchdnn.geometry import Kind, arc_from_bulge


def test_what_is_mirrored_by_its_own_plane(tmp_path: Path) -> None:
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
    assert arc.sweep == pytest.approx(math.radians(80))
    assert numbers(circle) == pytest.approx([-1, 2, 3])
    assert bent.mid == pytest.approx(
        (-arc_from_bulge((0, 0), (2, 1), 0.4).mid[0], arc_from_bulge((0, 0), (2, 1), 0.4).mid[1])
    )


angle = st.floats(-360, 360)
scale = st.floats(0.1, 10).flatmap(lambda s: st.sampled_from([(s, s), (s, -s), (-s, s), (-s, -s)]))


@settings(max_examples=30)
@given(outer=st.tuples(scale, angle), inner=st.tuples(scale, angle), flipped=st.booleans())
def test_blocks_in_blocks_are_what_ezdxf_makes_of_them(
    tmp_path_factory: pytest.TempPathFactory, outer: Any, inner: Any, flipped: bool
) -> None:
    """Scaled, turned, mirrored and nested: the same as after ezdxf has exploded it all."""

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


def test_a_grid_of_inserts(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        document.blocks.new("dot").add_point((0, 0))
        grid = {"row_count": 2, "column_count": 3, "row_spacing": 10, "column_spacing": 5, "xscale": 7, "rotation": 90}
        space.add_blockref("dot", (100, 0), dxfattribs=grid)

    places = {(round(p.at[0], 9), round(p.at[1], 9)) for p in only(drawn(tmp_path / "a.dxf", draw))}
    assert places == {(100 - 10 * row, 5 * column) for row in range(2) for column in range(3)}


def test_what_is_stretched_or_tilted_is_counted(tmp_path: Path) -> None:
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
    assert reading.skipped == Counter(
        {
            "CIRCLE that is no circle": 1,
            "LWPOLYLINE that is no circle": 1,
            "CIRCLE out of the plane": 1,
            "LINE out of the plane": 2,
        }
    )


def test_a_block_takes_the_layer_of_its_insert(tmp_path: Path) -> None:
    def draw(document: Any, space: Any) -> None:
        block = document.blocks.new("part")
        block.add_line((0, 0), (1, 0))
        block.add_line((0, 0), (0, 1), {"layer": "walls"})
        space.add_blockref("part", (0, 0), dxfattribs={"layer": "Construction"})
        space.add_blockref("part", (0, 0))

    assert [p.construction for p in only(drawn(tmp_path / "a.dxf", draw))] == [True, False, False, False]
