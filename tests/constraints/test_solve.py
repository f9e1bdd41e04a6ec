"""The nearest sketch that satisfies constraints."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_same, sketches

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.equations import System
from sketchdnn.constraints.solve import MOST_NUMBERS, demands
from sketchdnn.constraints.variables import Variables
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType


def _c(kind: ConstraintType, *refs: Ref | int) -> Constraint:
    return Constraint(kind, tuple(ref if isinstance(ref, Ref) else Ref(ref) for ref in refs))


def _rectangle() -> Sketch:
    """Four lines, about closed and about square to the axes."""
    a, b, c, d = (0.0, 0.0), (10.0, 0.02), (9.99, 6.0), (0.01, 5.98)
    return Sketch((Line(a, b), Line(b, c), Line(c, d), Line((0.01, 5.99), (0.0, 0.02))))


CLOSED = [_c(T.COINCIDENT, Ref(i, Part.END), Ref((i + 1) % 4, Part.START)) for i in range(4)]
LEVEL = [_c(T.HORIZONTAL, 0), _c(T.VERTICAL, 1), _c(T.HORIZONTAL, 2), _c(T.VERTICAL, 3)]


def test_a_rectangle_keeps_two_sizes_and_a_place() -> None:
    solution = solve(_rectangle(), [*CLOSED, *LEVEL])
    assert (solution.dof, solution.redundant, solution.conflicting, solution.warning) == (4, (), (), None)
    assert solution.residual < 1e-12
    assert 0 < solution.displacement < 0.003


def test_what_follows_is_named() -> None:
    follows = [_c(T.PARALLEL, 0, 2), _c(T.EQUAL, 1, 3), _c(T.PERPENDICULAR, 0, 1)]
    solution = solve(_rectangle(), [*CLOSED, *LEVEL, *follows])
    assert solution.redundant == tuple(follows)
    assert solution.dof == 4
    assert solution.warning is None


def test_what_contradicts_is_named_and_left_out() -> None:
    against = _c(T.PARALLEL, 0, 1)
    solution = solve(_rectangle(), [*CLOSED, *LEVEL, against])
    assert solution.conflicting == (against,)
    assert solution.warning is None
    assert_same(solution.sketch, solve(_rectangle(), [*CLOSED, *LEVEL]).sketch, 1e-9)


def test_what_it_does_not_know_is_named() -> None:
    unknown = [_c(T.COINCIDENT, Ref(0, Part.START), EXTERNAL), Constraint(T.OTHER, (Ref(0),), name="offset")]
    solution = solve(_rectangle(), unknown)
    assert solution.unread == tuple(unknown)
    assert solution.sketch == _rectangle()


def test_nothing_moves_further_than_allowed() -> None:
    apart = Sketch((Line((0, 0), (1, 0)), Line((0, 1), (1, 1))))
    solution = solve(apart, [_c(T.COINCIDENT, Ref(0, Part.START), Ref(1, Part.START))])
    assert solution.sketch is apart
    assert solution.warning is not None
    assert "50.0%" in solution.warning


def test_a_line_that_would_vanish_comes_back() -> None:
    short = Sketch((Line((0, 0), (1, 0)), Line((0, 0.5), (0.01, 0.5))))
    solution = solve(short, [_c(T.COINCIDENT, Ref(1, Part.START), Ref(1, Part.END))])
    assert solution.sketch is short
    assert solution.warning is not None


def test_too_large_a_sketch_is_refused_at_once() -> None:
    many = Sketch(tuple(Point((float(i), 0.0)) for i in range(MOST_NUMBERS)))
    assert solve(many, [_c(T.HORIZONTAL, Ref(0, Part.POINT), Ref(1, Part.POINT))]).warning is not None


def test_nothing_to_solve() -> None:
    assert solve(Sketch(())).dof == 0
    assert solve(Sketch((Circle((0, 0), 1),))).dof == 3


def test_a_fillet_stays_smooth() -> None:
    arc = Arc((8.02, 2), 2, -math.pi / 2 - 0.01, math.pi / 2)
    sketch = Sketch((Line((0, 0), (8, 0)), arc, Line((10, 2), (10, 6))))
    joined = [_c(T.COINCIDENT, Ref(0, Part.END), Ref(1, Part.START)), _c(T.TANGENT, 0, 1), _c(T.TANGENT, 1, 2)]
    joined += [_c(T.COINCIDENT, Ref(1, Part.END), Ref(2, Part.START)), _c(T.HORIZONTAL, 0), _c(T.VERTICAL, 2)]
    solution = solve(sketch, joined)
    assert (solution.warning, solution.redundant) == (None, ())
    line, fillet, wall = solution.sketch.primitives
    assert isinstance(line, Line)
    assert isinstance(fillet, Arc)
    assert isinstance(wall, Line)
    assert fillet.center[1] - line.end[1] == pytest.approx(fillet.radius)
    assert fillet.center[0] == pytest.approx(line.end[0])
    assert wall.start[0] - fillet.center[0] == pytest.approx(fillet.radius)


def test_it_is_the_nearest() -> None:
    """No other rectangle close by is nearer: a random step that keeps the constraints leads further away."""
    constraints = [*CLOSED, *LEVEL]
    drawn = Variables(_rectangle().primitives)
    x = Variables(solve(_rectangle(), constraints).sketch.primitives)
    there = (x.x * x.scale + np.tile(x.shift, 8) - np.tile(drawn.shift, 8)) / drawn.scale
    system = System([e for d in demands(constraints, drawn) for e in d or ()], drawn.num_features)
    rows = system.evaluate(drawn.features(there))[1] @ drawn.derivatives(there)
    free = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    assert np.abs(free @ (drawn.x - there)).max() < 1e-9


@given(sketches(min_size=2, max_size=6), st.integers(0, 2**32))
def test_derivatives_are_those_of_the_equations(sketch: Sketch, seed: int) -> None:
    refs = [Ref(i) for i in range(len(sketch))]
    guesses = [
        Constraint(t, (a, b))
        for t in (T.EQUAL, T.TANGENT, T.PERPENDICULAR, T.COLLINEAR)
        for a in refs
        for b in refs
        if a != b
    ]
    variables = Variables(sketch.primitives)
    equations = [e for demand in demands(guesses, variables) for e in demand or ()]
    if not equations:
        return
    system = System(equations, variables.num_features)
    rng = np.random.default_rng(seed)
    x = variables.x + rng.normal(0, 0.3, len(variables.x))  # away from where lengths vanish, nearly surely
    step = rng.normal(0, 1, len(x))
    missed, rows = system.evaluate(variables.features(x))
    slope = rows @ variables.derivatives(x) @ step
    h = 1e-6
    ahead, behind = (system.evaluate(variables.features(x + s * h * step))[0] for s in (1, -1))
    bent = np.abs(ahead - 2 * missed + behind) / h  # where a function bends much, a difference is no derivative
    assert (np.abs((ahead - behind) / (2 * h) - slope) <= 1e-3 * (1 + np.abs(slope)) + 10 * bent).all()


@given(sketches(max_size=8))
def test_any_sketch_comes_back_valid_and_what_it_means_holds(sketch: Sketch) -> None:
    solution = solve(sketch, infer(sketch))
    assert len(solution.sketch) == len(sketch)
    if solution.warning is None:
        assert solution.residual <= 1e-9
        again = solve(solution.sketch, infer(sketch))
        assert again.displacement <= 1e-6 or again.warning is not None
    else:
        assert solution.sketch is sketch


def test_its_own_constraints_are_the_default() -> None:
    sketch = replace(_rectangle(), constraints=(*CLOSED, *LEVEL))
    solution = solve(sketch)
    assert solution.sketch.constraints == sketch.constraints
    assert solution.sketch.primitives == solve(_rectangle(), sketch.constraints).sketch.primitives
