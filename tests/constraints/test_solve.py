"""The nearest sketch that satisfies constraints, and the degrees of freedom that they leave."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.noisy_sketches import CLOSED, LEVEL
from support.noisy_sketches import constraint as c
from support.outlines import rectangle
from support.strategies import assert_same, sketches

from sketchdnn.constraints import Freedom, infer, solve
from sketchdnn.constraints.equation_set import MAX_BLOCK, constraint_residuals, describe_freedom
from sketchdnn.constraints.equations import build, constraint_equations
from sketchdnn.constraints.infer import renumber
from sketchdnn.constraints.variables import VariableMerging, Variables
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
START, END, ORIGIN = Part.START, Part.END, Ref(None, Part.ORIGIN)
FIXED, PART, FREE, OVER = Freedom.FIXED, Freedom.PART, Freedom.FREE, Freedom.OVER
# Four lines, almost closed and almost square to the axes; and the same exactly.
A, B, C, D = (0.0, 0.0), (10.0, 0.02), (9.99, 6.0), (0.01, 5.98)
ROUGH = Sketch((Line(A, B), Line(B, C), Line(C, D), Line((0.01, 5.99), (0.0, 0.02))))
RECTANGLE = Sketch(tuple(rectangle(0, 0, 10, 6)))
SIZED = [c(T.LENGTH, 0, value=10.0), c(T.DISTANCE, 0, 2, value=6.0)]
AT_ORIGIN = c(T.COINCIDENT, Ref(0, START), ORIGIN)
LINE, OTHER = Line((0, 0), (10, 0.2)), Line((0, 5.9), (10, 6.1))
SMALL, LARGE = Circle((0, 0), 2), Circle((0.1, 0), 5)
ARC, FAR_CIRCLE, DOT = Arc((0, 0), 3, 0, 1.5), Circle((8, 0), 1), Point((5, -3))


def test_rectangle_has_two_sizes_and_a_position() -> None:
    solution = solve(ROUGH, [*CLOSED, *LEVEL])
    assert (solution.dof, solution.redundant, solution.conflicting, solution.warning) == (4, (), (), None)
    assert solution.residual < 1e-12
    assert 0 < solution.displacement < 0.003
    own = replace(ROUGH, constraints=(*CLOSED, *LEVEL))
    assert solve(own).sketch == replace(solution.sketch, constraints=own.constraints)


def test_redundant_conflicting_and_unsupported_constraints_are_named() -> None:
    follows = [c(T.PARALLEL, 0, 2), c(T.EQUAL, 1, 3), c(T.PERPENDICULAR, 0, 1)]
    redundant = solve(ROUGH, [*CLOSED, *LEVEL, *follows])
    assert (redundant.redundant, redundant.dof, redundant.warning) == (tuple(follows), 4, None)
    against = c(T.PARALLEL, 0, 1)
    conflicting = solve(ROUGH, [*CLOSED, *LEVEL, against])
    assert (conflicting.conflicting, conflicting.warning) == ((against,), None)
    assert_same(conflicting.sketch, solve(ROUGH, [*CLOSED, *LEVEL]).sketch, 1e-9)
    unknown = [c(T.COINCIDENT, Ref(0, START), EXTERNAL), Constraint(T.OTHER, (Ref(0),), name="offset")]
    assert solve(ROUGH, unknown).unsupported == tuple(unknown)
    assert solve(ROUGH, unknown).sketch == ROUGH


def test_constraints_that_collapse_a_line_conflict() -> None:
    short = Sketch((Line((0, 0), (1, 0)), Line((0, 0.05), (0.01, 0.051))))
    both_ends = [c(T.COINCIDENT, Ref(0, START), Ref(1, part)) for part in (START, END)]
    own_ends = [c(T.COINCIDENT, Ref(1, START), Ref(1, END))]
    for constraints in (own_ends, both_ends, [c(T.HORIZONTAL, 1), c(T.VERTICAL, 1)]):
        solution = solve(short, constraints)
        assert (solution.conflicting, solution.warning) == (tuple(constraints[-1:]), None)


def test_large_moves_and_too_large_blocks_are_refused() -> None:
    apart = Sketch((Line((0, 0), (1, 0)), Line((0, 1), (1, 1))))
    solution = solve(apart, [c(T.COINCIDENT, Ref(0, START), Ref(1, START))])
    assert (solution.sketch is apart, "50.0%" in str(solution.warning)) == (True, True)
    count = MAX_BLOCK // 2 + 2
    steps = [(float(i), float(i % 2)) for i in range(count)]
    lines = Sketch(tuple(Line(a, b) for a, b in pairwise(steps)))
    joined = [c(T.COINCIDENT, Ref(i, END), Ref(i + 1, START)) for i in range(count - 2)]
    equal = [c(T.EQUAL, i, i + 1) for i in range(count - 2)]
    solution = solve(lines, [*joined, *equal])
    assert (solution.skipped, "too many" in str(solution.warning)) == (tuple(equal), True)


def test_fillet_becomes_tangent() -> None:
    arc = Arc((8.02, 2), 2, -math.pi / 2 - 0.01, math.pi / 2)
    sketch = Sketch((Line((0, 0), (8, 0)), arc, Line((10, 2), (10, 6))))
    joined = [c(T.COINCIDENT, Ref(0, END), Ref(1, START)), c(T.TANGENT, 0, 1), c(T.TANGENT, 1, 2)]
    joined += [c(T.COINCIDENT, Ref(1, END), Ref(2, START)), c(T.HORIZONTAL, 0), c(T.VERTICAL, 2)]
    solution = solve(sketch, joined)
    assert (solution.warning, solution.redundant) == (None, ())
    line, fillet, wall = solution.sketch.primitives
    assert fillet.center[1] - line.end[1] == pytest.approx(fillet.radius)
    assert fillet.center[0] == pytest.approx(line.end[0])
    assert wall.start[0] - fillet.center[0] == pytest.approx(fillet.radius)


def test_solution_is_the_nearest() -> None:
    """No step that keeps the constraints leads closer to the drawing."""
    constraints = [*CLOSED, *LEVEL]
    drawn, solved = Variables(ROUGH.primitives), Variables(solve(ROUGH, constraints).sketch.primitives)
    equations = [e for each in constraints for e in constraint_equations(each, drawn, drawn.f, {}) or ()]
    at = (solved.f[:16].reshape(-1, 2) * solved.scale + solved.shift - drawn.shift) / drawn.scale
    moved = at.ravel() - drawn.f[:16]
    rows = build(equations, VariableMerging(drawn).variable_map()).evaluate(moved)[1]
    free = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    assert np.abs(free @ moved).max() < 1e-9


@given(sketches(min_size=2, max_size=6), st.integers(0, 2**32))
def test_derivatives_match_finite_differences(sketch: Sketch, seed: int) -> None:
    pairs = [(i, j) for i in range(len(sketch)) for j in range(len(sketch)) if i != j]
    guesses = [c(t, *pair) for t in (T.EQUAL, T.TANGENT, T.PERPENDICULAR, T.COLLINEAR) for pair in pairs]
    variables = Variables(sketch.primitives)
    equations = [e for guess in guesses for e in constraint_equations(guess, variables, variables.f, {}) or ()]
    assume(equations)
    system = build(equations, VariableMerging(variables).variable_map())
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.3, system.num_free)  # lengths vanish with probability zero there
    step = rng.normal(0, 1, len(x))
    residuals, rows = system.evaluate(x)
    slope, h = rows @ step, 1e-6
    ahead, behind = (system.evaluate(x + s * h * step)[0] for s in (1, -1))
    curvature = np.abs(ahead - 2 * residuals + behind) / h  # where it is large, a difference is no derivative
    assert (np.abs((ahead - behind) / (2 * h) - slope) <= 1e-3 * (1 + np.abs(slope)) + 10 * curvature).all()


@given(sketches(max_size=8))
def test_any_sketch_is_solved_or_returned(sketch: Sketch) -> None:
    constraints = infer(sketch)
    solution = solve(sketch, constraints)
    assert len(solution.sketch) == len(solution.freedom) == len(sketch)
    assert 0 <= solution.dof <= sum({0: 4, 1: 3, 2: 5, 3: 2}[p.kind] for p in sketch)
    if solution.dof == 0:
        assert set(solution.freedom) <= {FIXED, OVER}
    if solution.warning is None:
        assert solution.residual <= 1e-9
        again = solve(solution.sketch, constraints)
        assert again.displacement <= 1e-6 or again.warning is not None
    else:
        assert solution.sketch is sketch
    backwards = [renumber(each, range(len(sketch))[::-1]) for each in constraints]
    other = solve(Sketch(sketch.primitives[::-1]), backwards)
    assert (solution.dof, solution.freedom) == (other.dof, other.freedom[::-1])


def test_dimensions_hold_in_the_closest_reading() -> None:
    for primitives, dimension, dof in (
        ((LINE,), c(T.LENGTH, 0, value=10.1), 3),
        ((LINE,), c(T.DISTANCE, 0, value=10.1), 3),
        ((LINE,), c(T.HORIZONTAL_DISTANCE, 0, value=10.1), 3),
        ((LINE,), c(T.HORIZONTAL_DISTANCE, Ref(0, END), Ref(0, START), value=10.1), 3),
        ((LINE,), c(T.VERTICAL_DISTANCE, ORIGIN, Ref(0, END), value=0.3), 3),
        ((LINE, OTHER), c(T.DISTANCE, 0, 1, value=6.0), 6),
        ((OTHER, LINE), c(T.DISTANCE, 0, 1, value=6.0), 6),
        ((LINE, DOT), c(T.DISTANCE, Ref(1, Part.POINT), 0, value=3.1), 5),
        ((LINE, DOT), c(T.DISTANCE, 0, 1, value=3.1), 5),
        ((SMALL, FAR_CIRCLE), c(T.DISTANCE, 0, 1, value=8.2), 5),  # between centers
        ((SMALL, FAR_CIRCLE), c(T.DISTANCE, 0, 1, value=5.1), 5),  # between rims
        ((SMALL, Line((-5, 4), (5, 4.1))), c(T.DISTANCE, 1, 0, value=6.1), 6),  # to the far rim
        ((SMALL,), c(T.RADIUS, 0, value=2.1), 2),
        ((SMALL, LARGE), c(T.DIAMETER, 1, value=10.4), 5),
        ((ARC,), c(T.RADIUS, 0, value=3.1), 4),
        ((ARC,), c(T.ANGLE, 0, value=math.pi / 2), 4),
        ((LINE, Line((0, 0), (7, 7.1))), c(T.ANGLE, 0, 1, value=math.pi / 4), 7),
        ((LINE, Line((7, 7.1), (0, 0))), c(T.ANGLE, 1, 0, value=3 * math.pi / 4), 7),
        ((Line((0, 0), (7, -7.1)),), c(T.ANGLE, 0, value=math.pi / 4), 3),
        ((ARC,), c(T.FIX, 0), 0),
        ((LINE, SMALL), c(T.FIX, Ref(0, END), 1), 2),
    ):
        solution = solve(Sketch(primitives), [dimension])
        assert (solution.warning, solution.unsupported, solution.redundant, solution.dof) == (None, (), (), dof)
        assert solution.displacement < 0.05
        assert constraint_residuals(solution.sketch, [dimension]) == [pytest.approx(0, abs=1e-9)]
    unsupported = [c(T.DISTANCE, 0, 1), c(T.LENGTH, 1, value=3.0), c(T.RADIUS, 0, value=1.0), c(T.FIX, ORIGIN)]
    assert solve(Sketch((LINE, SMALL)), unsupported).unsupported == tuple(unsupported)
    against = c(T.LENGTH, 0, value=10.4)
    solution = solve(Sketch((LINE,)), [c(T.LENGTH, 0, value=10.0), against])
    assert (solution.conflicting, solution.warning) == ((against,), None)


def test_residuals_are_shares_of_the_size() -> None:
    lines = Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10, 8)), Line((0, 1), (10, 2))))
    constraints = [c(T.COINCIDENT, Ref(0, END), Ref(1, START)), c(T.PERPENDICULAR, 0, 1), c(T.PARALLEL, 0, 2)]
    residuals = constraint_residuals(lines, [*constraints, c(T.COINCIDENT, Ref(0, END), EXTERNAL)])
    assert residuals == pytest.approx([0, 0, math.sin(math.atan(0.1)), None])
    assert constraint_residuals(Sketch(()), []) == []


def test_freedom_of_a_rectangle_is_described() -> None:
    for constraints, dof, freedom in (
        ([], 16, [FREE] * 4),
        (CLOSED, 8, [FREE] * 4),  # any one line can be anything; the others follow
        ([*CLOSED, *LEVEL], 4, [PART] * 4),
        ([*CLOSED, *LEVEL, *SIZED], 2, [FIXED] * 4),  # it only moves as a whole
        ([*CLOSED, *LEVEL, *SIZED, AT_ORIGIN], 0, [FIXED] * 4),
        ([*CLOSED, *LEVEL, SIZED[0], AT_ORIGIN], 1, [FIXED, PART, PART, PART]),
        ([*CLOSED, *LEVEL, c(T.PARALLEL, 0, 2)], 4, [OVER, PART, OVER, PART]),
        ([*CLOSED, *LEVEL, c(T.FIX, 0)], 1, [FIXED, PART, PART, PART]),
    ):
        solution = solve(RECTANGLE, constraints)
        assert (solution.dof, list(solution.freedom)) == (dof, freedom)
    sketch = replace(RECTANGLE, primitives=(*RECTANGLE.primitives, Circle((30, 3), 1), Circle((5, 3), 2)))
    solution = solve(sketch, [*CLOSED, *LEVEL, *SIZED, c(T.RADIUS, 5, value=2.0)])
    names = [p.kind.label for p in sketch]
    assert describe_freedom(solution.freedom, names) == "circle 5 can partly move; circle 4 is free"
    assert describe_freedom([FIXED] * 4, names[:4]) == "fully constrained"
    # Sketches without constraints are free.
    assert [solve(Sketch(primitives)).dof for primitives in ((), (SMALL,))] == [0, 3]
    assert [solve(Sketch((p,)), []).freedom for p in (DOT, ARC)] == [(FREE,), (FREE,)]


def test_fixed_primitives_stay_exactly() -> None:
    sketch = Sketch((Line((0.1, 0.2), (10.3, 0.4)), Line((10.25, 0.45), (10, 6)), Arc((5, 5), 2, 0.3, 2.0)))
    solution = solve(sketch, [c(T.COINCIDENT, Ref(0, END), Ref(1, START)), c(T.VERTICAL, 1)], fixed=[0, 2])
    assert all(solution.sketch.primitives[i] is sketch.primitives[i] for i in (0, 2))
    line = solution.sketch.primitives[1]
    assert line.start == pytest.approx((10.3, 0.4), abs=1e-12)
    assert line.start[0] == line.end[0]
    assert (solution.dof, solution.freedom) == (1, (FIXED, PART, FIXED))
    rough = Sketch((Line((0, 0), (10, 0)), Line((10.02, 0.01), (10, 6))))
    assert [str(c.type) for c in infer(rough, fixed=[0])] == ["coincident", "vertical"]


def test_fixed_primitives_may_almost_hold_or_conflict() -> None:
    # The arc ends 7e-11 off both lines, and its tangent constraint has a residual as small.
    arc = Arc((0, 0), 1, -math.pi / 2, math.pi / 2)
    given = (Line((-9, -1 + 7e-11), (0, -1 + 7e-11)), arc, Line((1 + 7e-11, 0), (1 + 7e-11, 8)))
    sketch = Sketch((*given, Line((1.01, 8.01), (-9, 8))))
    constraints = [c(T.COINCIDENT, Ref(i, END), Ref(i + 1, START)) for i in range(3)] + [c(T.TANGENT, 0, 1)]
    solution = solve(sketch, constraints, fixed=[0, 1, 2])
    assert (solution.warning, solution.conflicting) == (None, ())
    assert solution.sketch.primitives[:3] == given
    assert max(by or 0 for by in constraint_residuals(solution.sketch, constraints)) < 1e-9
    # Two fixed lines are 5e-9 radians off parallel: more than a solution may miss, and less than a conflict.
    given = (Line((0, 0), (1, 0)), Line((0, 1), (1, 1 + 5e-9)))
    sketch = Sketch((*given, Line((1.001, 0), (2, 0.01))))
    constraints = [c(T.PARALLEL, 0, 1), c(T.COINCIDENT, Ref(0, END), Ref(2, START)), c(T.PARALLEL, 0, 2)]
    solution = solve(sketch, constraints, fixed=[0, 1])
    assert (solution.warning, solution.conflicting, solution.redundant) == (None, (), (constraints[0],))
    assert (solution.sketch.primitives[:2], solution.sketch.primitives[2].start) == (given, (1, 0))
    assert solution.freedom == (FIXED, FIXED, PART)
    apart = Sketch((Line((0, 0), (1, 0)), Line((0, 1), (1, 1.5))))
    against = [c(T.COINCIDENT, Ref(0, START), Ref(1, START)), c(T.PARALLEL, 0, 1)]
    solution = solve(apart, against, fixed=[0, 1])
    assert (solution.conflicting, solution.sketch, solution.dof) == (tuple(against), apart, 0)
