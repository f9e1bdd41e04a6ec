"""What of a sketch can still move."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from sketchdnn.constraints.holding import missed_by
from support.strategies import sketches

from sketchdnn.constraints import Freedom, infer, solve
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
FIXED, PART, FREE, OVER = Freedom.FIXED, Freedom.PART, Freedom.FREE, Freedom.OVER


def _c(kind: ConstraintType, *refs: Ref | int, value: float | None = None) -> Constraint:
    return Constraint(kind, tuple(ref if isinstance(ref, Ref) else Ref(ref) for ref in refs), value)


CORNERS = [(0.0, 0.0), (10.0, 0.0), (10.0, 6.0), (0.0, 6.0)]
RECTANGLE = Sketch(tuple(Line(CORNERS[i], CORNERS[(i + 1) % 4]) for i in range(4)))
CLOSED = [_c(T.COINCIDENT, Ref(i, Part.END), Ref((i + 1) % 4, Part.START)) for i in range(4)]
LEVEL = [_c(T.HORIZONTAL, 0), _c(T.VERTICAL, 1), _c(T.HORIZONTAL, 2), _c(T.VERTICAL, 3)]
SIZED = [_c(T.LENGTH, 0, value=10.0), _c(T.DISTANCE, 0, 2, value=6.0)]
AT_ORIGIN = _c(T.COINCIDENT, Ref(0, Part.START), Ref(None, Part.ORIGIN))


@pytest.mark.parametrize(
    ("constraints", "dof", "freedom"),
    [
        ([], 16, [FREE] * 4),
        (CLOSED, 8, [FREE] * 4),  # any one line can be anything; the others follow
        ([*CLOSED, *LEVEL], 4, [PART] * 4),
        ([*CLOSED, *LEVEL, *SIZED], 2, [FIXED] * 4),  # it only slides as a whole
        ([*CLOSED, *LEVEL, *SIZED, AT_ORIGIN], 0, [FIXED] * 4),
        ([*CLOSED, *LEVEL, SIZED[0], AT_ORIGIN], 1, [FIXED, PART, PART, PART]),
        ([*CLOSED, *LEVEL, _c(T.PARALLEL, 0, 2)], 4, [OVER, PART, OVER, PART]),
        ([*CLOSED, *LEVEL, _c(T.FIX, 0)], 1, [FIXED, PART, PART, PART]),
    ],
)
def test_a_rectangle(constraints: list[Constraint], dof: int, freedom: list[Freedom]) -> None:
    solution = solve(RECTANGLE, constraints)
    assert (solution.dof, list(solution.freedom)) == (dof, freedom)


def test_parts_are_named() -> None:
    sketch = replace(RECTANGLE, primitives=(*RECTANGLE.primitives, Circle((30, 3), 1), Circle((5, 3), 2)))
    solution = solve(sketch, [*CLOSED, *LEVEL, *SIZED, _c(T.RADIUS, 5, value=2.0)])
    assert solution.parts == "circle 5 can partly move; circle 4 is free"
    assert solve(RECTANGLE, [*CLOSED, *LEVEL, *SIZED]).parts == "everything is settled"


def test_what_no_constraint_names_is_free_even_alone() -> None:
    assert solve(Sketch((Point((1, 2)),)), []).freedom == (FREE,)
    assert solve(Sketch((Arc((1, 2), 3, 0, 1),)), []).freedom == (FREE,)


def test_what_is_fixed_stays_exactly_and_says_so() -> None:
    shaky = Sketch((Line((0.1, 0.2), (10.3, 0.4)), Line((10.25, 0.45), (10, 6)), Arc((5, 5), 2, 0.3, 2.0)))
    constraints = [_c(T.COINCIDENT, Ref(0, Part.END), Ref(1, Part.START)), _c(T.VERTICAL, 1)]
    solution = solve(shaky, constraints, fixed=[0, 2])
    assert solution.sketch.primitives[0] is shaky.primitives[0]
    assert solution.sketch.primitives[2] is shaky.primitives[2]
    line = solution.sketch.primitives[1]
    assert isinstance(line, Line)
    assert line.start == pytest.approx((10.3, 0.4), abs=1e-12)
    assert line.start[0] == line.end[0]
    assert (solution.dof, solution.freedom) == (1, (FIXED, PART, FIXED))


def test_fixed_primitives_that_meet_but_for_rounding_stay_bit_by_bit() -> None:
    """The arc ends 7e-11 off both lines, and its tangent constraint is missed by as little."""
    arc = Arc((0, 0), 1, -math.pi / 2, math.pi / 2)
    given = (Line((-9, -1 + 7e-11), (0, -1 + 7e-11)), arc, Line((1 + 7e-11, 0), (1 + 7e-11, 8)))
    sketch = Sketch((*given, Line((1.01, 8.01), (-9, 8))))
    constraints = [
        _c(T.COINCIDENT, Ref(0, Part.END), Ref(1, Part.START)),
        _c(T.COINCIDENT, Ref(1, Part.END), Ref(2, Part.START)),
        _c(T.TANGENT, 0, 1),
        _c(T.COINCIDENT, Ref(2, Part.END), Ref(3, Part.START)),
    ]
    solution = solve(sketch, constraints, fixed=[0, 1, 2])
    assert (solution.warning, solution.conflicting) == (None, ())
    assert solution.sketch.primitives[:3] == given
    assert max(by or 0 for by in missed_by(solution.sketch, constraints)) < 1e-9


def test_fixed_primitives_that_hold_but_for_rounding_leave_the_rest_to_be_solved() -> None:
    """Two fixed lines are 5e-9 radians off parallel, more than a solution may miss and less than a contradiction."""
    given = (Line((0, 0), (1, 0)), Line((0, 1), (1, 1 + 5e-9)))
    sketch = Sketch((*given, Line((1.001, 0), (2, 0.01))))
    constraints = [
        _c(T.PARALLEL, 0, 1),
        _c(T.COINCIDENT, Ref(0, Part.END), Ref(2, Part.START)),
        _c(T.PARALLEL, 0, 2),
    ]
    solution = solve(sketch, constraints, fixed=[0, 1])
    assert (solution.warning, solution.conflicting) == (None, ())
    assert solution.redundant == (constraints[0],)
    assert solution.sketch.primitives[:2] == given
    assert solution.sketch.primitives[2].start == (1, 0)  # type: ignore[union-attr]
    assert solution.freedom == (FIXED, FIXED, PART)


def test_what_two_fixed_primitives_contradict_is_named() -> None:
    apart = Sketch((Line((0, 0), (1, 0)), Line((0, 1), (1, 1.5))))
    against = [_c(T.COINCIDENT, Ref(0, Part.START), Ref(1, Part.START)), _c(T.PARALLEL, 0, 1)]
    solution = solve(apart, against, fixed=[0, 1])
    assert solution.conflicting == tuple(against)
    assert solution.sketch == apart
    assert solution.dof == 0


def test_fixed_primitives_pull_the_others() -> None:
    shaky = Sketch((Line((0, 0), (10, 0)), Line((10.02, 0.01), (10, 6))))
    constraints = infer(shaky, fixed=[0])
    assert [str(c.type) for c in constraints] == ["coincident", "vertical"]


@given(sketches(min_size=1, max_size=6))
def test_the_order_of_primitives_does_not_matter(sketch: Sketch) -> None:
    constraints = infer(sketch)
    last = len(sketch) - 1
    backwards = [
        replace(c, refs=tuple(r if r.primitive is None else Ref(last - r.primitive, r.part) for r in c.refs))
        for c in constraints
    ]
    one, other = solve(sketch, constraints), solve(Sketch(sketch.primitives[::-1]), backwards)
    assert one.dof == other.dof
    assert one.freedom == other.freedom[::-1]


@given(sketches(max_size=6))
def test_freedom_fits_what_is_free(sketch: Sketch) -> None:
    solution = solve(sketch, infer(sketch))
    assert len(solution.freedom) == len(sketch)
    assert 0 <= solution.dof <= sum({0: 4, 1: 3, 2: 5, 3: 2}[p.kind] for p in sketch)
    if solution.dof == 0:
        assert set(solution.freedom) <= {FIXED, OVER}
