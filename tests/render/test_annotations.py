"""Constraints in pictures: marks near their primitives, colors by freedom, named symbols, and a legend."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.noisy_sketches import MEANT, PLATE, arbitrarily_constrained

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch
from sketchdnn.render import Style, frame, gallery_html, gallery_png, gallery_svg, png, svg
from sketchdnn.render.annotations import FREEDOM, ConstraintStatus, count_without_symbol, describe_constraint
from sketchdnn.render.constraint_marks import Mark, PlacedMark, arrange_marks, constraint_marks

T = ConstraintType


def place_all(sketch: Sketch, size: float = 400) -> list[PlacedMark]:
    return arrange_marks(sketch, frame(sketch, size, size, Style()), 6)


def test_marks_are_near_their_primitives_and_do_not_overlap() -> None:
    sketch = Sketch(PLATE.primitives, MEANT)
    placed = place_all(sketch)
    assert {n for item in placed for n in item.mark.numbers} == set(range(len(MEANT)))
    view = frame(sketch, 400, 400, Style())
    near = {T.COINCIDENT: (60, 0), T.PERPENDICULAR: (60, 0), T.TANGENT: (60, 30)}
    near |= {T.CONCENTRIC: (50, 30), T.POINT_ON_CURVE: (30, 18), T.FIX: (0, 0)}
    for item in placed:
        if item.mark.kind in near:
            far = math.dist(item.at, view.to_pixel(near[item.mark.kind]))
            assert far == 0 if item.mark.pinned else far < 25
    assert {item.mark.text for item in placed if item.mark.kind is T.RADIUS} == {"R8"}
    placed = [item for item in place_all(Sketch(PLATE.primitives, MEANT), 500) if not item.mark.pinned]
    for i, item in enumerate(placed):
        for other in placed[:i]:
            apart = [abs(item.at[k] - other.at[k]) - item.half[k] - other.half[k] for k in (0, 1)]
            assert max(apart) > -3, (item.mark, other.mark)


def test_groups_have_one_mark_per_line_and_numbers() -> None:
    lines = tuple(Line((k, 0), (k, 5 if k < 3 else 9)) for k in range(5))
    chain = [Constraint(T.EQUAL, (Ref(0), Ref(1))), Constraint(T.EQUAL, (Ref(1), Ref(2)))]
    found = constraint_marks(Sketch(lines, tuple(chain)))
    assert [(mark.beside, mark.text) for mark in found] == [(line, "") for line in lines[:3]]
    found = constraint_marks(Sketch(lines, (*chain, Constraint(T.EQUAL, (Ref(3), Ref(4))))))
    assert {mark.beside: mark.text for mark in found} == dict(zip(lines, "11122", strict=True))


def test_positions_of_midpoint_dimension_and_tangency() -> None:
    points = (Point((5, 0)), Point((0, 0)), Point((10, 0)))
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        (mark,) = constraint_marks(Sketch(points, (Constraint(T.MIDPOINT, tuple(Ref(i) for i in order)),)))
        assert mark.beside == points[0]
    # A dimension between the ends of a line is beside it.
    line = Line((0, 0), (10, 0))
    distance = Constraint(T.DISTANCE, (Ref(0, Part.END), Ref(0, Part.START)), -12.5)
    (mark,) = constraint_marks(Sketch((line,), (distance,)))
    assert mark == Mark(T.DISTANCE, line, (0,), text="12.5", angle=mark.angle)

    # Tangency is marked at the tangent point.
    beside, above = (Circle((15, 0), 5), Circle((6, 0), 4)), (Line((-20, 10), (20, 10)), Arc((0, 20), 10, 4, 1.5))
    for other, where in (*((p, (10, 0)) for p in beside), *((p, (0, 10)) for p in above)):
        for refs in ((Ref(0), Ref(1)), (Ref(1), Ref(0))):
            (mark,) = constraint_marks(Sketch((Circle((0, 0), 10), other), (Constraint(T.TANGENT, refs),)))
            assert math.dist(mark.beside.at, where) < 1e-9


# Its dimension has a longer text in another scale, takes another place, and a mark gets the place that is left.
_MOVED_BY_A_TEXT = Sketch(
    (Circle((0, 0), 1),),
    (
        Constraint(T.OTHER, (Ref(0, Part.CENTER),), name="Pierce"),
        Constraint(T.COINCIDENT, (Ref(0),)),
        Constraint(T.DISTANCE, (Ref(0),), 626.0),
    ),
)


@example(_MOVED_BY_A_TEXT, 4.0)
@given(arbitrarily_constrained(), st.floats(-6, 6))
def test_layout_is_independent_of_scale(sketch: Sketch, magnitude: float) -> None:
    before, after = place_all(sketch), place_all(sketch.moved(2.0 ** round(magnitude)))
    for item in before:
        assert all(0 <= n < len(sketch.constraints) for n in item.mark.numbers)
        assert all(math.isfinite(number) for number in (*item.at, *item.half))
    for item, other in zip(before, after, strict=True):
        if item.mark.text != other.mark.text:
            break  # this mark and those after it may take other places
        assert math.dist(item.at, other.at) < 1e-6


SVG = "{http://www.w3.org/2000/svg}"
SKETCH = replace(PLATE, constraints=MEANT)
STATUS = ConstraintStatus(("fixed", "partly", "free", "over", *["partly"] * 6), frozenset({9}), dof=17)


@settings(max_examples=40)
@given(arbitrarily_constrained())
def test_svg_is_well_formed(sketch: Sketch) -> None:
    for element in ET.fromstring(svg(sketch, 300, status=ConstraintStatus(("free",) * len(sketch)))).iter():
        for name in ("x1", "y1", "x2", "y2", "cx", "cy", "r", "x", "y"):
            assert re.fullmatch(r"-?[\d.]+", element.attrib.get(name, "0"))


def test_colors_titles_and_legend_of_a_picture() -> None:
    root = ET.fromstring(svg(SKETCH, 400, status=STATUS))
    painted = [element.attrib["stroke"] for element in root.findall(f"{SVG}g")[1]]  # the first holds ties
    assert sorted(painted) == sorted(FREEDOM[word][0] for word in STATUS.freedom)
    titles = {group.findtext(f"{SVG}title"): group for group in root.iter(f"{SVG}g")}
    for name in {describe_constraint(c, SKETCH) for c in MEANT}:
        is_fault = name == describe_constraint(MEANT[9], SKETCH)
        assert is_fault == any(e.attrib.get("stroke") == FREEDOM["over"][0] for e in titles[name])
    words = [e.text for e in root.iter(f"{SVG}text")]
    assert {"1 fixed", "7 partly free", "1 free", "1 over-constrained", "17 degrees of freedom"} <= set(words)
    assert {"1 coincident", "1 point on curve", "1 dimension"} <= set(words)
    assert not any("midpoint" in (word or "") for word in words)


def test_png_agrees_with_svg() -> None:
    plain, annotated = png(SKETCH, 400), png(SKETCH, 400, status=STATUS)
    height = float(ET.fromstring(svg(SKETCH, 400, status=STATUS)).attrib["height"])
    assert (plain.size, annotated.width) == ((400, 400), 400)
    assert annotated.height == pytest.approx(height, abs=1)
    colors = {tuple(c) for c in np.asarray(annotated).reshape(-1, 3).tolist()}
    assert {tuple(bytes.fromhex(FREEDOM[word][0][1:])) for word in STATUS.freedom} <= colors


def test_gallery_has_one_legend() -> None:
    many, statuses = [SKETCH, Sketch(()), SKETCH], [STATUS, ConstraintStatus(()), STATUS]
    text = gallery_svg(many, cell=200, statuses=statuses, captions=["a", "b", "c"])
    words = [e.text for e in ET.fromstring(text).iter(f"{SVG}text")]
    assert words.count("14 partly free") == 1
    assert gallery_png(many, cell=200, statuses=statuses).height > gallery_png(many, cell=200).height
    page = gallery_html(many, statuses=statuses)
    assert (page.count("14 partly free"), page.count("<title>horizontal: line 0</title>")) == (1, 2)
    # Constraints are drawn only with a status that fits.
    assert svg(SKETCH, 300) == svg(replace(SKETCH, constraints=()), 300)
    with pytest.raises(ValueError, match="freedom of 2 primitives"):
        svg(SKETCH, status=ConstraintStatus(("free", "free")))


def test_descriptions_of_constraints() -> None:
    sketch = Sketch((Line((0, 0), (1, 0)),))
    value = Constraint(ConstraintType.VERTICAL_DISTANCE, (Ref(0, Part.END), Ref(None, Part.X_AXIS)), 12.7)
    assert describe_constraint(value, sketch) == "vertical distance: end of line 0, x axis = 12.7"
    other = Constraint(ConstraintType.OTHER, (Ref(0),), name="Projected")
    assert describe_constraint(other, sketch) == "Projected: line 0"
    assert count_without_symbol(replace(sketch, constraints=(value, other))) == 1
    hostile = replace(other, name="\x1b]0;owned\x07\n" + "x" * 10_000)
    assert re.fullmatch(r"\]0;owned  x{1,60}: line 0", describe_constraint(hostile, sketch))


def test_faults_are_drawn_on_top_and_a_thousand_marks() -> None:
    # Two dots on one place, but for rounding.
    corner = Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)), Line((1 + 1e-12, 0), (2, 2))))
    ends = [(Ref(0, Part.END), Ref(1, Part.START)), (Ref(2, Part.START), Ref(0, Part.END))]
    sketch = replace(corner, constraints=tuple(Constraint(ConstraintType.COINCIDENT, refs) for refs in ends))
    for fault in (0, 1):
        text = svg(sketch, 300, status=ConstraintStatus(("over",) * 3, frozenset({fault})))
        titles = re.findall("<title>(coincident[^<]*)", text)
        assert titles[-1] == describe_constraint(sketch.constraints[fault], sketch)
    lines = tuple(Line((x, y), (x + 0.8, y)) for x in range(40) for y in range(25))
    level = tuple(Constraint(ConstraintType.HORIZONTAL, (Ref(i),)) for i in range(len(lines)))
    text = svg(Sketch(lines, level), 800, status=ConstraintStatus(("partly",) * len(lines)), style=Style())
    assert text.count("<title>horizontal") == len(lines)
