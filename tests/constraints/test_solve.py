"""The nearest sketch that satisfies constraints."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketchdnn.constraints.blocks import MOST_NUMBERS
from sketchdnn.constraints.sharing import Sharing
from sketchdnn.constraints.system import build
from support.strategies import assert_same, sketches

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.equations import equations_of
from sketchdnn.constraints.variables import Variables
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch

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


@pytest.mark.parametrize(
    "against",
    [
        [_c(T.COINCIDENT, Ref(1, Part.START), Ref(1, Part.END))],
        [
            _c(T.COINCIDENT, Ref(0, Part.START), Ref(1, Part.START)),
            _c(T.COINCIDENT, Ref(0, Part.START), Ref(1, Part.END)),
        ],
        [_c(T.HORIZONTAL, 1), _c(T.VERTICAL, 1)],
    ],
)
def test_what_would_leave_nothing_of_a_line_is_named(against: list[Constraint]) -> None:
    short = Sketch((Line((0, 0), (1, 0)), Line((0, 0.05), (0.01, 0.051))))
    solution = solve(short, against)
    assert solution.conflicting == tuple(against[-1:])
    assert solution.warning is None


def test_too_large_a_piece_is_skipped() -> None:
    count = MOST_NUMBERS // 2 + 2
    steps = [(float(i), float(i % 2)) for i in range(count)]
    lines = Sketch(tuple(Line(a, b) for a, b in pairwise(steps)))
    joined = [_c(T.COINCIDENT, Ref(i, Part.END), Ref(i + 1, Part.START)) for i in range(count - 2)]
    equal = [_c(T.EQUAL, i, i + 1) for i in range(count - 2)]
    solution = solve(lines, [*joined, *equal])
    assert solution.skipped == tuple(equal)
    assert solution.warning is not None
    assert "too many" in solution.warning


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
    drawn, there = Variables(_rectangle().primitives), solve(_rectangle(), constraints).sketch
    slots = Sharing(drawn).slots()
    equations = [e for c in constraints for e in equations_of(c, drawn, drawn.f, {}) or ()]
    x = Variables(there.primitives)
    at = (x.f[:16].reshape(-1, 2) * x.scale + x.shift - drawn.shift) / drawn.scale
    moved = at.ravel() - drawn.f[:16]
    rows = build(equations, slots).evaluate(moved)[1]
    free = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    assert np.abs(free @ moved).max() < 1e-9


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
    equations = [e for guess in guesses for e in equations_of(guess, variables, variables.f, {}) or ()]
    if not equations:
        return
    system = build(equations, Sharing(variables).slots())
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.3, system.free)  # away from where lengths vanish, nearly surely
    step = rng.normal(0, 1, len(x))
    missed, rows = system.evaluate(x)
    slope = rows @ step
    h = 1e-6
    ahead, behind = (system.evaluate(x + s * h * step)[0] for s in (1, -1))
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
