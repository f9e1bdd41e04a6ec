"""Rounded dimensions: values that a person would choose, exact coordinates, and what is left alone."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.noisy_sketches import PLATE, add_noise, arbitrarily_constrained
from support.outlines import rectangle, slot

from benchmarks.freecad import run_in_freecad
from sketchdnn.constraints import RoundOptions, RoundResult, repair, round_dimensions, solve
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.round_values import Steps
from sketchdnn.constraints.rounding import Origin
from sketchdnn.errors import GeometryError
from sketchdnn.formats import write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch, bounds, profile
from sketchdnn.geometry.constraints import ref_point

T = ConstraintType
# Drawn by hand: 80 × 40 with two holes of diameter 6, not at the origin.
DRAWN = Sketch(
    (*rectangle(3.1, 2.2, 79.987, 40.01), Circle((15.6, 14.75), 3.04), Circle((70.5, 14.7), 3.0)), units="mm"
)
READ_VALUES = """
def evaluate(document, task):
    sketch = document.Objects[0]
    named = {c.Name: c.Value for c in sketch.Constraints if c.Name}
    inactive = sum(not c.IsActive for c in sketch.Constraints)
    return {"solve": sketch.solve(), "values": named, "inactive": inactive}
"""


def rounded(sketch: Sketch, **options: object) -> RoundResult:
    return round_dimensions(repair(sketch, close=False).sketch, RoundOptions(**options))  # type: ignore[arg-type]


def values(result: RoundResult) -> dict[str, float]:
    """The named dimensions."""
    constraints = [item.constraint for item in result.rounded]
    return {c.extra["label"]: c.value for c in constraints if c.value is not None}


def assert_sound(before: Sketch, result: RoundResult, max_move: float = 0.02) -> None:
    """All constraints hold, nothing moved far, and the same curves form the same loops."""
    assert result.warning is None
    assert solve(result.sketch).warning is None
    residuals = constraint_residuals(result.sketch, result.sketch.constraints)
    assert max(abs(r) for r in residuals if r is not None) < 1e-9
    assert result.displacement <= max_move
    assert result.sketch.constraints[: len(before.constraints)] == before.constraints
    loops = [sorted(e.primitive_index for e in loop.edges) for loop in profile(before).loops]
    assert [sorted(e.primitive_index for e in loop.edges) for loop in profile(result.sketch).loops] == loops


def test_a_plate_gets_the_dimensions_that_were_meant() -> None:
    result = rounded(DRAWN)
    named = values(result)
    assert {name: named[name] for name in ("width", "height", "diameter_1", "pitch_1")} == {
        "width": 80.0,
        "height": 40.0,
        "diameter_1": 6.0,
        "pitch_1": 55.0,
    }
    assert named["x_1"] == named["y_1"] == 12.5
    assert result.is_fully_rounded
    # Coordinates are the decimal numbers themselves, and the corner is the origin.
    assert result.sketch.primitives[:4] == tuple(rectangle(0, 0, 80, 40))
    assert result.sketch.primitives[4:] == (Circle((12.5, 12.5), 3), Circle((67.5, 12.5), 3))
    assert solve(result.sketch).dof == 0
    assert round_dimensions(repair(DRAWN, close=False).sketch) == result


@pytest.mark.parametrize(
    ("value", "expected"),
    [(79.987, 80), (12.498, 12.5), (63.4, 63.5), (39.7, 40), (3.03, 3), (0.52, 0.5), (1.31, 1.3), (4.33, 4.5)],
)
def test_values_in_millimeters(value: float, expected: float) -> None:
    assert Steps.automatic(80, "mm").sizes(value)[0] == expected


def test_values_in_inches_are_fractions() -> None:
    steps = Steps.automatic(4, "in")
    chosen = [steps.sizes(value)[0] for value in (3.98, 1.26, 0.57, 0.13)]
    assert chosen == [4.0, 1.25, 0.5625, 0.125]
    # Below a 64th of an inch, steps are decimal.
    assert Steps.automatic(0.5, "in").step == 0.005


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 1e4), st.floats(0.01, 1.0), st.sampled_from(["mm", "in", None]))
def test_round_values_are_near_and_above_zero(size: float, share: float, units: str | None) -> None:
    steps, value = Steps.automatic(size, units), share * size
    for target in steps.sizes(value):
        assert target > 0
        assert abs(target - value) <= steps.step * (1 + 1e-9)
        assert target == float(f"{target:.12g}")


def test_a_given_step_is_kept_and_large_steps_leave_dimensions() -> None:
    result = rounded(DRAWN, step=1.0, units="mm")
    assert all(value == round(value) for value in values(result).values())
    assert_sound(repair(DRAWN, close=False).sketch, result)
    coarse = rounded(DRAWN, step=30.0)
    assert not coarse.is_fully_rounded
    assert all(value % 30 == 0 for value in values(coarse).values())
    assert {item.reason for item in coarse.left} <= {
        "something would move by more than 2% of the size",
        "the constraints do not allow it",
    }
    assert coarse.displacement <= 0.02
    # The same step in another unit.
    inches = rounded(DRAWN.in_units("in"), step=1.0, units="mm")
    assert values(inches)["width"] * 25.4 == pytest.approx(80)


def test_angles_and_equal_values() -> None:
    turn = math.radians(44.9)
    far = (20 + 30 * math.cos(turn), 30 * math.sin(turn))
    bent = Sketch(
        (Line((0, 0), (20, 0)), Line((20, 0), far), Circle((5, 20), 2.02), Circle((12, 30), 1.97)), units="mm"
    )
    result = round_dimensions(
        replace(bent, constraints=(Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),))
    )
    assert values(result)["angle_1"] == math.radians(45)
    line = result.sketch.primitives[1]
    assert isinstance(line, Line)
    assert math.degrees(math.atan2(line.end[1] - line.start[1], line.end[0] - line.start[0])) == pytest.approx(45)
    assert values(result)["diameter_1"] == values(result)["diameter_2"] == 4.0


@pytest.mark.parametrize("origin", ["corner", "center", "keep"])
def test_where_the_origin_lies(origin: str) -> None:
    result = rounded(DRAWN, origin=origin)
    box = bounds(result.sketch)
    assert (box.width, box.height) == (80, 40)
    wanted = {"corner": (40, 20), "center": (0, 0), "keep": (43, 22)}[origin]
    assert box.center == pytest.approx(wanted, abs=1e-9 if origin != "keep" else 0.6)
    assert all(abs(2 * c - round(2 * c)) < 1e-9 for c in (*box.low, *box.high))
    # A sketch that is tied to the origin stays there.
    tied = Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN)))
    at_origin = repair(replace(DRAWN.moved(1, (-3.1, -2.2)), constraints=(tied,)), close=False).sketch
    assert round_dimensions(at_origin, RoundOptions(origin=origin)).sketch.primitives[0].start == (0, 0)  # type: ignore[union-attr, arg-type]


def test_fixed_primitives_do_not_move() -> None:
    given = DRAWN.primitives[:4]
    sketch = repair(DRAWN, keep=range(4), close=False).sketch
    result = round_dimensions(sketch, RoundOptions(num_fixed=4))
    assert result.sketch.primitives[:4] == given
    assert result.rounded
    hole = result.sketch.primitives[4]
    assert isinstance(hole, Circle)
    assert hole.radius == 3
    # Measured from the corner of what is fixed.
    assert hole.center[0] - 3.1 == pytest.approx(12.5)
    assert hole.center[1] - 2.2 == pytest.approx(12.5)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_noisy_sketches_stay_sound(noise: float) -> None:
    outlines = [PLATE, Sketch(tuple(slot(31.7, 6.3)), units="mm")]
    for seed, outline in enumerate(outlines):
        for scale in (0.37, 1.0, 13.9):
            drawn = add_noise(outline, noise, seed).moved(scale)
            before = repair(drawn, close=False).sketch
            result = round_dimensions(before)
            assert_sound(before, result)
            assert result.is_fully_rounded
            assert solve(result.sketch).dof == 0


def test_a_dimension_that_would_close_a_gap_gets_a_finer_value() -> None:
    # Rounding both to whole steps would make the circle cross the line.
    tight = Sketch((*rectangle(0, 0, 100, 50), Circle((50, 46.7), 3.2)), units="mm")
    result = rounded(tight)
    assert result.is_fully_rounded
    circle = result.sketch.primitives[4]
    assert isinstance(circle, Circle)
    assert circle.center[1] + circle.radius < bounds(result.sketch.primitives[:4]).high[1]
    assert not profile(result.sketch).contacts


def test_nothing_to_round_and_constraints_that_do_not_hold() -> None:
    assert round_dimensions(Sketch(())).warning == "there is nothing to round"
    many = Sketch(tuple(Circle((3 * i, 0), 1) for i in range(151)))
    assert "up to 150 primitives" in str(round_dimensions(many).warning)
    line = Sketch((Line((0, 0), (50, 10)),), (Constraint(T.HORIZONTAL, (Ref(0),)), Constraint(T.VERTICAL, (Ref(0),))))
    assert round_dimensions(line).sketch.constraints[:2] == line.constraints
    for bad in ({"step": 0.0}, {"step": math.nan}, {"units": "parsec"}, {"max_move": 1.0}, {"num_fixed": -1}):
        with pytest.raises(GeometryError):
            RoundOptions(**bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="middle"):
        RoundOptions(origin="middle")  # type: ignore[arg-type]


def test_freecad_shows_the_rounded_values(freecadcmd: str, tmp_path: Path) -> None:
    oblique = Sketch((Line((0, 0), (40.03, 23.1)), Line((40.03, 23.1), (61, -12.2)), Arc((20, -20), 8.06, 0.1, 2.9)))
    results = [rounded(sketch) for sketch in (DRAWN, add_noise(PLATE, 0.1), replace(oblique, units="mm"))]
    tasks = []
    for number, result in enumerate(results):
        write(result.sketch, tmp_path / f"{number}.FCStd")
        tasks.append({"document": str(tmp_path / f"{number}.FCStd")})
    for result, answer in zip(results, run_in_freecad(freecadcmd, READ_VALUES, tasks), strict=True):
        assert answer is not None
        assert answer["solve"] == 0
        assert answer["inactive"] == 0
        assert {name: abs(value) for name, value in answer["values"].items()} == pytest.approx(
            {name: abs(value) for name, value in values(result).items()}, rel=0, abs=0
        )


@settings(max_examples=60, deadline=None)
@given(arbitrarily_constrained(), st.sampled_from([None, 0.5, 1e-3, 1e6]))
def test_any_sketch_is_rounded_or_returned_with_a_warning(sketch: Sketch, step: float | None) -> None:
    result = round_dimensions(sketch, RoundOptions(step, origin="keep"))  # type: ignore[arg-type]
    if result.warning:
        assert result.sketch is sketch
        return
    assert result.displacement <= 0.02
    assert len(result.sketch) == len(sketch)
    again = solve(result.sketch, [item.constraint for item in result.rounded])
    assert again.displacement < 1e-7


def test_near_corner_is_tied_to_the_origin() -> None:
    corners = [(0.2, 39.9), (0.2, 0.1), (79.7, 0.1), (79.7, 14.9), (24.9, 14.9), (24.9, 39.9)]
    outline = tuple(Line(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True))
    result = round_dimensions(repair(Sketch(outline, units="mm")).sketch, RoundOptions(origin=Origin.KEEP))
    tied = {ref for c in result.sketch.constraints if any(ref.primitive is None for ref in c.refs) for ref in c.refs}
    assert solve(result.sketch).dof == 0
    assert {ref_point(ref, result.sketch.primitives) for ref in tied if ref.primitive is not None} == {(0.0, 0.0)}
