"""Sets of constraints without redundant ones, and the dimensions that they lack."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.noisy_sketches import PLATE, add_noise
from support.outlines import rectangle, slot
from support.strategies import numbers, sketches

from benchmarks.freecad import run_in_freecad
from sketchdnn.constraints import Freedom, infer, solve
from sketchdnn.constraints.constrain import ConstrainOptions, ConstrainResult, constrain
from sketchdnn.constraints.equation_set import constraint_residuals, unmerged_equations
from sketchdnn.constraints.equations import arc_equations, build
from sketchdnn.constraints.variables import VariableMerging, Variables
from sketchdnn.constraints.well_constrained import missing_dimensions
from sketchdnn.formats import scan, write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Point, Primitive, Ref, Sketch, bounds

T = ConstraintType
# An outline that lacks a line, an arc on its chord, and lines in line with each other.
OPEN = Sketch((Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 30))))
CHORD = Sketch((Arc((0, 0), 10, np.pi / 2, np.pi), Line((0, 10), (0, -10))))
IN_LINE = Sketch((Line((0, 0), (10, 3)), Line((10, 3), (30, 9)), Line((0, 20), (35, 20)), Line((50, 20), (80, 20))))


def real_sketches(folder: Path, every: int) -> list[Sketch]:
    files = sorted((folder / "freecad").glob("*.FCStd"))
    items = [s for file in files for s in scan(file) if isinstance(s, Sketch) and 0 < len(s) <= 30]
    return [replace(s, constraints=()) for s in items[::every]]


def jacobian(sketch: Sketch, constraints: tuple[Constraint, ...]) -> np.ndarray:
    """The normalized rows of all equations, arcs included, without merged variables."""
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    own = [e for equations in unmerged_equations(constraints, variables) for e in equations]
    rows = build([*arc_equations(variables), *own], variable_map).evaluate(np.zeros(variable_map.num_free))[1]
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def rank(rows: np.ndarray) -> int:
    return int((np.linalg.svd(rows, compute_uv=False) > 1e-7).sum()) if len(rows) else 0


def is_well_constrained(result: ConstrainResult) -> bool:
    """Two constraints may overlap in half of each, such as two symmetric ones; but none follows from the others."""
    sketch, constraints = result.sketch, result.sketch.constraints
    rows = jacobian(sketch, constraints)
    width, found = rows.shape[1], rank(rows)
    fewer = ((*constraints[:k], *constraints[k + 1 :]) for k in range(len(constraints)))
    needed = len(rows) == found or all(width - rank(jacobian(sketch, some)) > result.dof for some in fewer)
    clean = not result.redundant and not solve(sketch).conflicting and Freedom.OVER not in result.freedom
    return needed and clean and result.dof == width - found


def test_inferred_constraints_are_irredundant() -> None:
    for sketch, close in product((OPEN, CHORD, IN_LINE, PLATE, add_noise(PLATE, 0.1)), (True, False)):
        result = constrain(sketch, ConstrainOptions(close=close))
        rows = jacobian(result.sketch, result.sketch.constraints)
        assert (len(rows), result.redundant, result.dof) == (rank(rows), (), rows.shape[1] - rank(rows))


@settings(max_examples=25)
@given(sketches(max_size=10))
def test_dof_agrees_with_the_rank(sketch: Sketch) -> None:
    drawn = replace(sketch, constraints=())
    for options in (ConstrainOptions(close=True), ConstrainOptions(repair=False)):
        result = constrain(drawn, options)
        assert result.warning or is_well_constrained(result)


def test_real_sketches_are_well_constrained(real_data: Path) -> None:
    drawing = next(s for s in scan(real_data / "dxf" / "4dc0d4_VP4.dxf") if isinstance(s, Sketch))
    for sketch in (drawing, *real_sketches(real_data, 2)):
        assert is_well_constrained(constrain(sketch, ConstrainOptions(close=True)))


def test_redundant_constraints_of_the_file_stay() -> None:
    given = constrain(add_noise(PLATE, 0.1)).sketch
    twice = replace(given, constraints=(*given.constraints, given.constraints[0]))
    result = constrain(twice)
    assert set(result.redundant) <= set(given.constraints) <= set(result.sketch.constraints)


_SCRIPT = """
def evaluate(document, task):
    sketch = document.Objects[0]
    return {"solve": sketch.solve(), "off": [str(c) for c in sketch.Constraints if not c.IsActive]}
"""


def test_freecad_finds_nothing_redundant_or_conflicting(real_data: Path, freecadcmd: str, tmp_path: Path) -> None:
    tasks = []
    for number, sketch in enumerate([OPEN, CHORD, IN_LINE, add_noise(PLATE, 0.1), *real_sketches(real_data, 4)]):
        result = constrain(sketch, ConstrainOptions(close=True, origin=True)).sketch
        path = tmp_path / f"{number}.FCStd"
        write(replace(result.moved(100 / bounds(result).size), units="mm", extra={}), path)
        tasks.append({"document": str(path)})
    assert all(answer == {"solve": 0, "off": []} for answer in run_in_freecad(freecadcmd, _SCRIPT, tasks))


@settings(max_examples=60)
@given(sketches(max_size=8))
def test_dimensions_match_the_degrees_of_freedom_and_hold(sketch: Sketch) -> None:
    dimensions = missing_dimensions(sketch)
    assert len(set(dimensions)) == len(dimensions) == solve(sketch, []).dof
    assert constraint_residuals(sketch, dimensions) == pytest.approx([0] * len(dimensions), abs=1e-6)


@settings(max_examples=30)
@given(st.data(), sketches(max_size=4))
def test_any_move_changes_a_dimension(data: st.DataObject, sketch: Sketch) -> None:
    size = bounds(sketch).size
    index = data.draw(st.integers(0, len(sketch) - 1))
    direction = data.draw(st.lists(st.floats(-1, 1), min_size=5, max_size=5))
    step = 1e-4 * min(size, *(p.length or size for p in sketch))
    moved = nudge(sketch.primitives[index], [step * d for d in direction])
    other = replace(sketch, primitives=(*sketch.primitives[:index], moved, *sketch.primitives[index + 1 :]))
    change = np.abs(np.subtract(numbers(moved), numbers(sketch.primitives[index]))).max()
    assume(change > 0.1 * step)
    residuals = constraint_residuals(other, missing_dimensions(sketch))
    assert max(residual or 0 for residual in residuals) * bounds(other).size > 1e-5 * change


def nudge(p: Primitive, by: list[float]) -> Primitive:
    a, b, c, d, e = by
    match p:
        case Line((x0, y0), (x1, y1)):
            return Line((x0 + a, y0 + b), (x1 + c, y1 + d))
        case Circle((x, y), r):
            return Circle((x + a, y + b), r + c)
        case Arc((x, y), r, start, sweep):
            return Arc((x + a, y + b), r + c, start + d / r, sweep + e / r)
        case Point((x, y)):
            return Point((x + a, y + b))


def test_dimensions_of_simple_shapes_are_not_repeated() -> None:
    plate = Sketch(tuple(rectangle(10, 20, 30, 40)))
    dimensions = missing_dimensions(plate, infer(plate))
    assert [d.type for d in dimensions] == [T.LENGTH, T.LENGTH, T.HORIZONTAL_DISTANCE, T.VERTICAL_DISTANCE]
    assert [d.value for d in dimensions] == [30, 40, 10, 20]
    centered = Sketch(tuple(slot(20.0, 5.0)))  # on both axes: no distance of zero, which CAD programs refuse
    dimensions = missing_dimensions(centered, infer(centered))
    assert T.RADIUS in {d.type for d in dimensions}
    assert all(d.value is None or abs(d.value) > 1e-6 for d in dimensions)
    hole = Sketch((Circle((3.0, 4.0), 2.0),), (Constraint(T.RADIUS, (Ref(0),), 2.0),))
    dimensions = missing_dimensions(hole)
    assert [d.type for d in dimensions] == [T.HORIZONTAL_DISTANCE, T.VERTICAL_DISTANCE]
    full, many = (*hole.constraints, *dimensions), Sketch(tuple(Point((float(i), 0.0)) for i in range(800)))
    assert [missing_dimensions(s) for s in (replace(hole, constraints=full), Sketch(()), many)] == [(), (), ()]
