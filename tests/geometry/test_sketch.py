"""A sketch holds together: constraints refer to what is there, and moving it moves all of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_same, sketches

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.formats import read
from sketchdnn.geometry import (
    EXTERNAL,
    MM_PER_UNIT,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Ref,
    Sketch,
)

PLATE = Sketch(
    (Line((0, 0), (4, 0)), Circle((1, 1), 0.5), Arc((2, 2), 1, 0, 2), Point((3, 3))),
    (
        Constraint(ConstraintType.LENGTH, (Ref(0),), 4.0),
        Constraint(ConstraintType.RADIUS, (Ref(1),), 0.5),
        Constraint(ConstraintType.ANGLE, (Ref(0), EXTERNAL), math.pi / 6),
        Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),
        Constraint(ConstraintType.DISTANCE, (Ref(2, Part.CENTER), Ref(3, Part.POINT)), math.sqrt(2)),
        Constraint(ConstraintType.OTHER, (Ref(0),), 7.0, "Offset"),
    ),
    "mm",
    {"id": "plate"},
)


def test_constraints_refer_to_primitives_that_are_there() -> None:
    with pytest.raises(GeometryError, match="refers to primitive 1, not there"):
        Sketch((Point((0, 0)),), (Constraint(ConstraintType.FIX, (Ref(1),)),))


@pytest.mark.parametrize(
    ("index", "part"), [(0, Part.CENTER), (1, Part.START), (2, Part.POINT), (3, Part.END), (0, Part.POINT)]
)
def test_constraints_refer_to_parts_that_the_kind_has(index: int, part: Part) -> None:
    with pytest.raises(GeometryError, match=f"refers to the {part} of an? "):
        Sketch(PLATE.primitives, (Constraint(ConstraintType.FIX, (Ref(index, part),)),))


def test_moving_scales_lengths_and_keeps_angles() -> None:
    moved = PLATE.moved(3, (10, -1))
    assert [c.value for c in moved.constraints] == [12.0, 1.5, math.pi / 6, None, 3 * math.sqrt(2), 7.0]
    assert moved.primitives[0] == Line((10, -1), (22, -1))
    assert moved.primitives[2].sweep == PLATE.primitives[2].sweep  # type: ignore[union-attr]
    assert (moved.units, moved.extra) == (PLATE.units, PLATE.extra)


@given(sketches(), st.floats(0.01, 100), st.tuples(st.floats(-50, 50), st.floats(-50, 50)))
def test_moving_there_and_back_changes_nothing(sketch: Sketch, scale: float, by: tuple[float, float]) -> None:
    there = sketch.moved(scale, by)
    assert_same(sketch, there.moved(1 / scale, (-by[0] / scale, -by[1] / scale)), 1e-9)
    assert [p.length for p in there] == pytest.approx([scale * p.length for p in sketch])


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_sketch_is_not_scaled_to_nothing(scale: float) -> None:
    with pytest.raises(GeometryError):
        PLATE.moved(scale)


@pytest.mark.parametrize("units", sorted(MM_PER_UNIT))
def test_units_change_the_numbers_and_not_the_size(units: str) -> None:
    measured = PLATE.in_units(units)
    assert measured.units == units
    assert measured.primitives[0].length * MM_PER_UNIT[units] == pytest.approx(4.0)
    assert measured.constraints[0].value == pytest.approx(measured.primitives[0].length)
    assert_same(PLATE, measured.in_units("mm"), 1e-12)


def test_a_sketch_without_units_takes_the_first_it_is_given() -> None:
    bare = Sketch((Line((0, 0), (2, 0)),))
    assert bare.in_units("in").primitives == bare.primitives
    assert bare.in_units("in").units == "in"


def test_unknown_units_are_refused() -> None:
    with pytest.raises(GeometryError, match="'furlong' is no known unit"):
        Sketch((), units="furlong")
    with pytest.raises(GeometryError, match="'furlong' is no known unit"):
        PLATE.in_units("furlong")


def test_sketches_are_values() -> None:
    assert PLATE.moved() == PLATE
    assert len({PLATE, PLATE.moved()}) == 1
    assert list(PLATE) == list(PLATE.primitives)
    assert len(PLATE) == 4


@pytest.mark.parametrize("name", ["part.json", "part.svg", "part.dxf", "part.FCStd"])
def test_a_sketch_saves_itself(tmp_path: Path, name: str) -> None:
    sketch = Sketch((Line((0, 0), (80, 0)), Circle((40, 20), 5)), units="mm")
    sketch.save(tmp_path / name)
    assert_same(sketch, read(tmp_path / name).sketches[0].in_units("mm"), tolerance=1e-4)


def test_a_sketch_saves_itself_in_a_format_by_name(tmp_path: Path) -> None:
    Sketch((Circle((0, 0), 5),)).save(str(tmp_path / "part"), format="svg")
    assert "<circle" in (tmp_path / "part").read_text()
    with pytest.raises(SketchError, match="must end in"):
        Sketch((Circle((0, 0), 5),)).save(tmp_path / "part.obj")


def test_a_notebook_shows_a_sketch_as_a_picture() -> None:
    assert "<circle" in Sketch((Circle((0, 0), 5),))._repr_svg_()
    assert "empty" in Sketch(())._repr_svg_()
