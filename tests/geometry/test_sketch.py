"""Sketches and constraints are consistent values; moving, scaling and converting units keeps them so."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.noisy_sketches import T, constraint
from support.strategies import assert_same, sketches

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.formats import read
from sketchdnn.geometry import EXTERNAL, MM_PER_UNIT, Arc, Circle, Constraint, Line, Part, Point, Ref, Sketch
from sketchdnn.geometry.constraints import LENGTHS, OUTSIDE

PLATE = Sketch(
    (Line((0, 0), (4, 0)), Circle((1, 1), 0.5), Arc((2, 2), 1, 0, 2), Point((3, 3))),
    (
        constraint(T.LENGTH, 0, value=4.0),
        constraint(T.RADIUS, 1, value=0.5),
        constraint(T.ANGLE, 0, EXTERNAL, value=math.pi / 6),
        constraint(T.HORIZONTAL, 0),
        constraint(T.DISTANCE, Ref(2, Part.CENTER), Ref(3, Part.POINT), value=math.sqrt(2)),
        Constraint(T.OTHER, (Ref(0),), 7.0, "Offset"),
    ),
    "mm",
    {"id": "plate"},
)


def test_invalid_references_and_constraints_are_refused() -> None:
    for part in Part:
        wrong, right = (0, None) if part in OUTSIDE else (None, 3)
        assert Ref(right, part).primitive == right
        with pytest.raises(GeometryError, match="cannot mean"):
            Ref(wrong, part)
    with pytest.raises(GeometryError, match="start at 0"):
        Ref(-1, Part.START)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(GeometryError, match="has the value"):
            Constraint(T.DISTANCE, (EXTERNAL,), value)
    with pytest.raises(GeometryError, match="refers to nothing"):
        Constraint(T.HORIZONTAL, ())
    assert Constraint(T.OTHER, (EXTERNAL,), name="Projected").name == "Projected"
    with pytest.raises(GeometryError, match="needs the name"):
        Constraint(T.OTHER, (EXTERNAL,))
    with pytest.raises(GeometryError, match="refers to primitive 1, not there"):
        Sketch((Point((0, 0)),), (Constraint(T.FIX, (Ref(1),)),))
    for index, part in ((0, Part.CENTER), (1, Part.START), (2, Part.POINT), (3, Part.END), (0, Part.POINT)):
        with pytest.raises(GeometryError, match=f"refers to the {part} of an? "):
            Sketch(PLATE.primitives, (Constraint(T.FIX, (Ref(index, part),)),))


def test_constraints_and_sketches_are_values() -> None:
    a, b = (Constraint(T.RADIUS, (Ref(0),), 2.5, extra={"label": ["d1"]}) for _ in range(2))
    assert a == b
    assert len({a, b}) == 1  # hashable, whatever is in extra
    assert (PLATE.moved(), len({PLATE, PLATE.moved()})) == (PLATE, 1)
    assert (list(PLATE), len(PLATE)) == (list(PLATE.primitives), 4)
    assert T.ANGLE not in LENGTHS
    assert {T.DISTANCE, T.RADIUS, T.DIAMETER, T.LENGTH} <= LENGTHS


def test_moving_scales_lengths_and_units_keep_the_size() -> None:
    moved = PLATE.moved(3, (10, -1))
    assert [c.value for c in moved.constraints] == [12.0, 1.5, math.pi / 6, None, 3 * math.sqrt(2), 7.0]
    assert moved.primitives[0] == Line((10, -1), (22, -1))
    assert moved.primitives[2].sweep == PLATE.primitives[2].sweep  # type: ignore[union-attr]
    assert (moved.units, moved.extra) == (PLATE.units, PLATE.extra)
    for scale in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(GeometryError):
            PLATE.moved(scale)
    for units, millimeters in MM_PER_UNIT.items():
        converted = PLATE.in_units(units)
        assert (converted.units, converted.primitives[0].length * millimeters) == (units, pytest.approx(4.0))
        assert converted.constraints[0].value == pytest.approx(converted.primitives[0].length)
        assert_same(PLATE, converted.in_units("mm"), 1e-12)
    bare = Sketch((Line((0, 0), (2, 0)),))
    assert (bare.in_units("in").primitives, bare.in_units("in").units) == (bare.primitives, "in")
    for make in (lambda: Sketch((), units="furlong"), lambda: PLATE.in_units("furlong")):
        with pytest.raises(GeometryError, match="'furlong' is not a known unit"):
            make()


@given(sketches(), st.floats(0.01, 100), st.tuples(st.floats(-50, 50), st.floats(-50, 50)))
def test_moving_can_be_undone(sketch: Sketch, scale: float, by: tuple[float, float]) -> None:
    there = sketch.moved(scale, by)
    assert_same(sketch, there.moved(1 / scale, (-by[0] / scale, -by[1] / scale)), 1e-9)
    assert [p.length for p in there] == pytest.approx([scale * p.length for p in sketch])


def test_save_writes_the_format_of_the_suffix_or_name(tmp_path: Path) -> None:
    sketch = Sketch((Line((0, 0), (80, 0)), Circle((40, 20), 5)), units="mm")
    for name in ("part.json", "part.svg", "part.dxf", "part.FCStd"):
        sketch.save(tmp_path / name)
        assert_same(sketch, read(tmp_path / name).sketches[0].in_units("mm"), tolerance=1e-4)
    sketch.save(str(tmp_path / "part"), format="svg")
    assert "<circle" in (tmp_path / "part").read_text()
    with pytest.raises(SketchError, match="must end in"):
        sketch.save(tmp_path / "part.obj")
    assert "<circle" in sketch._repr_svg_()  # the picture in a notebook
    assert "empty" in Sketch(())._repr_svg_()
