"""The SVG is well-formed and holds the exact shapes."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import arcs, sketches

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch, arc_from_sweep
from sketchdnn.render import Style, frame, svg

SVG = "{http://www.w3.org/2000/svg}"
PLACES = {"x1", "y1", "x2", "y2", "cx", "cy"}
NUMBERS = {"r", "d", "stroke-width", "stroke-dasharray"}


def elements(text: str) -> list[ET.Element]:
    group = ET.fromstring(text).find(f"{SVG}g")
    return [] if group is None else list(group)


@given(sketches(max_size=30), st.floats(-6, 6))
def test_one_element_per_primitive(sketch: Sketch, magnitude: float) -> None:
    text = svg(sketch.moved(10**magnitude), 300)
    tags = sorted(e.tag.removeprefix(SVG) for e in elements(text))
    names = {Kind.LINE: "line", Kind.CIRCLE: "circle", Kind.POINT: "circle", Kind.ARC: "path"}
    assert tags == sorted(names[p.kind] for p in sketch)
    attributes = [item for element in elements(text) for item in element.attrib.items()]
    assert all(0 <= float(value) <= 300 for name, value in attributes if name in PLACES)
    assert all(re.fullmatch(r"[-\d. MLA]+", value) for name, value in attributes if name in NUMBERS)


@given(arcs)
def test_arc_path(arc: Arc) -> None:
    """Rebuilt from the path alone: the arcs between its stops have the stated radius and lie where the arc does."""
    sketch = Sketch((arc,))
    view = frame(sketch, 400, 400, Style())
    (path,) = elements(svg(sketch, 400))
    move, *steps = re.findall(r"([MLA])([^MLA]*)", path.attrib["d"])
    stops = [tuple(float(n) for n in body.split()[-2:]) for _, body in (move, *steps)]
    assert max(math.dist(stops[k], view.to_pixel(end)) for k, end in ((0, arc.start), (-1, arc.end))) < 0.01
    for k, ((command, body), start, end) in enumerate(zip(steps, stops[:-1], stops[1:], strict=True)):
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        if command == "A":
            radius, _, rotation, large, side, _, _ = (float(n) for n in body.split())
            assert radius == pytest.approx(arc.radius * view.scale, abs=0.01)
            assert (rotation, large, side) == (0, 0, 0)
            # Side 0 is counter-clockwise once y points up again.
            piece = arc_from_sweep((start[0], -start[1]), (end[0], -end[1]), arc.sweep / len(steps))
            middle = (piece.mid[0], -piece.mid[1])
        assert math.dist(middle, view.to_pixel(arc.at((k + 0.5) / len(steps)))) < 0.05


def test_only_construction_is_dashed_or_hollow() -> None:
    text = svg(Sketch((Line((0, 0), (5, 0), construction=True), Line((0, 0), (0, 5)), Circle((1, 1), 1))))
    assert ["stroke-dasharray" in e.attrib for e in elements(text)] == [True, False, False]
    full, hollow = elements(svg(Sketch((Point((0, 0)), Point((1, 0), construction=True)))))
    assert hollow.attrib["fill"] == Style().background
    assert {full.attrib["fill"], hollow.attrib["stroke"]} <= set(Style().palette)
    # A tiny circle is a dot.
    tiny, _ = elements(svg(Sketch((Circle((0, 0), 1e-9), Line((0, 0), (1, 1))))))
    assert float(tiny.attrib["r"]) > 0
