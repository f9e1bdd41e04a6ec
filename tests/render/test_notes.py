"""A picture with constraints: colors by freedom, signs with names, a legend; pixels and vectors alike."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from support.shaky import MEANT, PLATE, related

from sketchdnn.geometry import Constraint, ConstraintType, Line, Part, Ref, Sketch
from sketchdnn.render import Style, gallery_html, gallery_png, gallery_svg, png, svg
from sketchdnn.render.annotations import FREEDOM, ConstraintStatus, count_without_symbol, describe_constraint

SVG = "{http://www.w3.org/2000/svg}"
SKETCH = replace(PLATE, constraints=MEANT)
NOTES = ConstraintStatus(("fixed", "partly", "free", "over", *["partly"] * 6), frozenset({9}), dof=17)


@settings(max_examples=40)
@given(related())
def test_any_constraints_make_well_formed_vectors(sketch: Sketch) -> None:
    text = svg(sketch, 300, notes=ConstraintStatus(("free",) * len(sketch)))
    for element in ET.fromstring(text).iter():
        for name in ("x1", "y1", "x2", "y2", "cx", "cy", "r", "x", "y"):
            assert re.fullmatch(r"-?[\d.]+", element.attrib.get(name, "0"))


def test_primitives_have_the_color_of_their_freedom() -> None:
    root = ET.fromstring(svg(SKETCH, 400, notes=NOTES))
    group = root.find(f"{SVG}g")
    assert group is not None
    painted = [element.attrib["stroke"] for element in group]
    assert sorted(painted) == sorted(FREEDOM[word][0] for word in NOTES.freedom)


def test_signs_have_names_and_those_at_fault_stand_out() -> None:
    root = ET.fromstring(svg(SKETCH, 400, notes=NOTES))
    titles = {group.findtext(f"{SVG}title"): group for group in root.iter(f"{SVG}g")}
    said = {describe_constraint(c, SKETCH) for c in MEANT}
    assert said <= set(titles)
    for name, group in titles.items():
        if name in said:
            is_fault = name == describe_constraint(MEANT[9], SKETCH)
            assert is_fault == any(e.attrib.get("stroke") == FREEDOM["over"][0] for e in group)


def test_the_legend_counts_what_there_is() -> None:
    words = [e.text for e in ET.fromstring(svg(SKETCH, 400, notes=NOTES)).iter(f"{SVG}text")]
    assert {"1 fixed", "7 partly free", "1 free", "1 over-constrained", "17 degrees of freedom"} <= set(words)
    assert {"1 coincident", "1 point on curve", "1 dimension"} <= set(words)
    assert not any("midpoint" in (word or "") for word in words)


def test_pixels_show_what_vectors_do() -> None:
    plain, noted = png(SKETCH, 400), png(SKETCH, 400, notes=NOTES)
    assert plain.size == (400, 400)
    height = float(ET.fromstring(svg(SKETCH, 400, notes=NOTES)).attrib["height"])
    assert noted.width == 400
    assert noted.height == pytest.approx(height, abs=1)
    colors = {tuple(c) for c in np.asarray(noted).reshape(-1, 3).tolist()}
    for word in NOTES.freedom:
        color = FREEDOM[word][0]
        assert tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) in colors


def test_galleries_have_signs_and_one_legend() -> None:
    many, notes = [SKETCH, Sketch(()), SKETCH], [NOTES, ConstraintStatus(()), NOTES]
    text = gallery_svg(many, cell=200, notes=notes, captions=["a", "b", "c"])
    words = [e.text for e in ET.fromstring(text).iter(f"{SVG}text")]
    assert words.count("14 partly free") == 1
    drawn = gallery_png(many, cell=200, notes=notes)
    assert drawn.height > gallery_png(many, cell=200).height
    page = gallery_html(many, notes=notes)
    assert page.count("14 partly free") == 1
    assert page.count("<title>horizontal: line 0</title>") == 2


def test_a_picture_without_notes_is_as_before() -> None:
    assert svg(SKETCH, 300) == svg(replace(SKETCH, constraints=()), 300)


def test_freedom_must_be_that_of_the_sketch() -> None:
    with pytest.raises(ValueError, match="freedom of 2 primitives"):
        svg(SKETCH, notes=ConstraintStatus(("free", "free")))


def test_constraints_in_words() -> None:
    sketch = Sketch((Line((0, 0), (1, 0)),))
    value = Constraint(ConstraintType.VERTICAL_DISTANCE, (Ref(0, Part.END), Ref(None, Part.X_AXIS)), 12.7)
    assert describe_constraint(value, sketch) == "vertical distance: end of line 0, x axis = 12.7"
    other = Constraint(ConstraintType.OTHER, (Ref(0),), name="Projected")
    assert describe_constraint(other, sketch) == "Projected: line 0"
    assert count_without_symbol(replace(sketch, constraints=(value, other))) == 1
    hostile = replace(other, name="\x1b]0;owned\x07\n" + "x" * 10_000)
    assert re.fullmatch(r"\]0;owned  x{1,60}: line 0", describe_constraint(hostile, sketch))


def test_what_is_at_fault_is_drawn_above_what_is_not() -> None:
    """Two dots on one place, but for rounding."""
    corner = Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)), Line((1 + 1e-12, 0), (2, 2))))
    ends = [(Ref(0, Part.END), Ref(1, Part.START)), (Ref(2, Part.START), Ref(0, Part.END))]
    sketch = replace(corner, constraints=tuple(Constraint(ConstraintType.COINCIDENT, refs) for refs in ends))
    for fault in (0, 1):
        text = svg(sketch, 300, notes=ConstraintStatus(("over",) * 3, frozenset({fault})))
        titles = re.findall("<title>(coincident[^<]*)", text)
        assert titles[-1] == describe_constraint(sketch.constraints[fault], sketch)


def test_marks_shrink_where_there_is_much_to_draw() -> None:
    """A thousand lines, each with a sign, in a moment and inside the picture."""
    lines = tuple(Line((x, y), (x + 0.8, y)) for x in range(40) for y in range(25))
    level = tuple(Constraint(ConstraintType.HORIZONTAL, (Ref(i),)) for i in range(len(lines)))
    text = svg(Sketch(lines, level), 800, notes=ConstraintStatus(("partly",) * len(lines)), style=Style())
    assert text.count("<title>horizontal") == len(lines)
