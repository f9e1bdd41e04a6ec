"""Drag: the constraints hold, the part goes as near as they allow, and the rest moves little."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.noisy_sketches import CLOSED, LEVEL, PLATE, arbitrarily_constrained, constraint

from sketchdnn.constraints import ConstrainOptions, Drag, constrain, drag, solve
from sketchdnn.constraints.curvature import curvature
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.equations import System
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, ConstraintType, Line, Part, Point, Ref, Sketch, Vec, bounds
from sketchdnn.geometry.constraints import ref_point

T = ConstraintType
CORNERS = [(0.0, 0.0), (40.0, 0.0), (40.0, 20.0), (0.0, 20.0)]
RECTANGLE = Sketch(
    tuple(Line(a, b) for a, b in zip(CORNERS, [*CORNERS[1:], CORNERS[0]], strict=True)), (*CLOSED, *LEVEL)
)
# A crank of length 10 about the origin, a rod of length 15, and a slider on the x axis.
CRANK = Sketch(
    (Line((0, 0), (10, 0)), Line((10, 0), (25, 0.0))),
    (
        constraint(T.COINCIDENT, Ref(0, Part.START), Ref(None, Part.ORIGIN)),
        constraint(T.COINCIDENT, Ref(0, Part.END), Ref(1, Part.START)),
        constraint(T.POINT_ON_CURVE, Ref(1, Part.END), Ref(None, Part.X_AXIS)),
        constraint(T.LENGTH, 0, value=10.0),
        constraint(T.LENGTH, 1, value=15.0),
    ),
)
places = st.tuples(*[st.floats(-2, 2)] * 2)


def residual(sketch: Sketch) -> float:
    return max((value for value in constraint_residuals(sketch, sketch.constraints) if value is not None), default=0.0)


def is_near(p: Vec, q: Vec, within: float = 1e-6) -> bool:
    return math.dist(p, q) <= within


def largest_move(a: Sketch, b: Sketch) -> float:
    """The largest move of an end or center, as a share of the size."""
    refs = [Ref(i, part) for i, p in enumerate(a) for part in PARTS[type(p)]]
    moves = [math.dist(ref_point(ref, a.primitives) or (0, 0), ref_point(ref, b.primitives) or (0, 0)) for ref in refs]
    return max(moves) / bounds(a).size


PARTS = {
    Line: (Part.START, Part.END),
    Circle: (Part.CENTER,),
    Arc: (Part.START, Part.END, Part.CENTER),
    Point: (Part.POINT,),
}


@st.composite
def drags(draw: st.DrawFn, sketch: Sketch) -> Drag:
    """A drag of any part of a sketch to a place near it."""
    i = draw(st.integers(0, len(sketch) - 1))
    primitive = sketch.primitives[i]
    rounds = ("radius",) if isinstance(primitive, Circle | Arc) else ()
    part = draw(st.sampled_from((*PARTS[type(primitive)], Part.WHOLE, *rounds)))
    box, (x, y) = bounds(sketch), draw(places)
    to = (box.center[0] + x * box.size, box.center[1] + y * box.size)
    return Drag(i, part, to, box.center if part is Part.WHOLE else None)


@st.composite
def dragged_plates(draw: st.DrawFn) -> tuple[Sketch, Drag]:
    """The constrained plate, with some of its constraints, and a drag."""
    sketch = constrain(PLATE, ConstrainOptions(repair=False)).sketch
    kept = draw(st.sets(st.integers(0, len(sketch.constraints) - 1), min_size=len(sketch.constraints) // 2))
    sketch = replace(sketch, constraints=tuple(sketch.constraints[i] for i in sorted(kept)))
    return sketch, draw(drags(sketch))


def test_coincident_ends_follow_and_the_rest_stays() -> None:
    result = drag(RECTANGLE, Drag(1, "end", (50.0, 25.0)))
    ends = [line.end for line in result.sketch]
    assert (result.moved, result.message, result.dof) == (True, None, 4)
    assert np.allclose(ends, [(50, 0), (50, 25), (0, 25), (0, 0)], rtol=0, atol=1e-9)


def test_other_parts_of_the_sketch_stay_exactly_as_they_are() -> None:
    sketch = replace(
        RECTANGLE, primitives=(*RECTANGLE.primitives, Circle((0.1, 0.7), 0.3), Line((1 / 3, 2), (7, 1 / 7)))
    )
    result = drag(sketch, Drag(1, Part.END, (50.0, 25.0)))
    assert result.sketch.primitives[4:] == sketch.primitives[4:]
    assert result.sketch.constraints is sketch.constraints


def test_a_target_out_of_reach_gives_the_nearest_place() -> None:
    bent = drag(CRANK, Drag(0, "end", (0.0, 30.0)))
    assert is_near(bent.sketch.primitives[0].end, (0, 10), 1e-4)
    assert bent.message == "the constraints allow no more"
    assert residual(bent.sketch) <= 1e-9


def test_a_mechanism_passes_the_far_side_of_a_circle() -> None:
    around = drag(CRANK, Drag(0, "end", (-30.0, 0.0)))
    assert is_near(around.sketch.primitives[0].end, (-10, 0), 1e-4)


def test_dragging_there_and_back_returns() -> None:
    start = drag(CRANK, Drag(0, "end", (8.0, 6.0))).sketch
    there = drag(start, Drag(0, "end", (0.0, 10.0))).sketch
    back = drag(there, Drag(0, "end", (8.0, 6.0))).sketch
    assert largest_move(start, there) > 0.1
    assert largest_move(start, back) < 1e-8


@pytest.mark.parametrize("x", [5.0, -5.0, -60.0])
def test_a_rectangle_keeps_a_width_and_its_orientation(x: float) -> None:
    result = drag(RECTANGLE, Drag(1, "end", (x, 25.0)))
    width = result.sketch.primitives[0].end[0] - result.sketch.primitives[0].start[0]
    assert width == pytest.approx(max(x, 0.04), abs=1e-3)
    assert result.message == (None if x > 0 else "something would collapse beyond this")


def test_one_end_of_a_free_line_passes_the_other() -> None:
    (line,) = drag(Sketch((Line((0, 0), (40, 0)),)), Drag(0, "end", (-40.0, 0.0))).sketch
    assert is_near(line.end, (-40, 0))
    assert is_near(line.start, (0, 0))


def test_dimensions_keep_their_values() -> None:
    length = constraint(T.LENGTH, 0, value=40.0)
    (first, *_) = drag(replace(RECTANGLE, constraints=(*CLOSED, *LEVEL, length)), Drag(1, "end", (70.0, 50.0))).sketch
    assert first.end[0] - first.start[0] == pytest.approx(40, abs=1e-9)
    assert first.end[0] == pytest.approx(70)


def test_a_whole_primitive_is_moved_and_a_radius_pulled() -> None:
    circle = Sketch((Circle((5, 5), 2), Circle((5, 5), 4)), (constraint(T.CONCENTRIC, 0, 1),))
    moved = drag(circle, Drag(0, "whole", (13.0, 5.0), origin=(10.0, 4.0))).sketch
    assert [p.center for p in moved] == [(8, 6), (8, 6)]
    assert [p.radius for p in moved] == [2, 4]
    assert [p.radius for p in drag(circle, Drag(0, "radius", (5.0, 8.0))).sketch] == [3, 4]


def test_an_arc_may_grow_by_more_than_half_a_turn() -> None:
    sketch = Sketch(
        (Arc((0, 0), 10, 0.0, 0.5),), (constraint(T.FIX, Ref(0, Part.CENTER)), constraint(T.RADIUS, 0, value=10.0))
    )
    end = (10 * math.cos(4.5), 10 * math.sin(4.5))
    (arc,) = drag(sketch, Drag(0, "end", end)).sketch
    assert arc.sweep % math.tau == pytest.approx((4.5 - arc.start_angle) % math.tau)
    assert arc.radius == pytest.approx(10)


@pytest.mark.parametrize("far", [1e6, 1e12, -1e12])
def test_a_place_far_away_is_no_problem(far: float) -> None:
    lengths = [constraint(T.LENGTH, i, value=RECTANGLE.primitives[i].length) for i in (0, 1)]
    result = drag(replace(RECTANGLE, constraints=(*CLOSED, *LEVEL, *lengths)), Drag(0, "end", (far, far)))
    assert [line.length for line in result.sketch] == pytest.approx([40, 20, 40, 20], rel=1e-6)
    (point,) = drag(Sketch((Point((1.0, 2.0)),)), Drag(0, "point", (3.0, far / 1e11))).sketch
    assert point.at == pytest.approx((3.0, far / 1e11))


def test_fixed_geometry_does_not_move() -> None:
    fixed = Sketch((Line((0, 0), (9, 0)),), (constraint(T.FIX, 0),))
    result = drag(fixed, Drag(0, "end", (5.0, 5.0)))
    assert (result.sketch, result.moved, result.message) == (fixed, False, "the constraints hold it in its place")


def test_constraints_that_do_not_hold_yet_are_solved_first() -> None:
    sketch = Sketch((Line((0, 0), (10, 0.2)),), (constraint(T.HORIZONTAL, 0),))
    (line,) = drag(sketch, Drag(0, "end", (12.0, 3.0))).sketch
    assert is_near(line.end, (12, 3), 1e-9)
    assert line.start[1] == line.end[1]


def test_a_conflict_is_left_out_as_the_solver_does() -> None:
    lengths = [constraint(T.LENGTH, 0, value=value) for value in (10.0, 12.0)]
    result = drag(Sketch((Line((0, 0), (10, 0)),), tuple(lengths)), Drag(0, "end", (0.0, 20.0)))
    assert result.moved
    assert result.sketch.primitives[0].length == pytest.approx(10)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Drag(0, "middle", (0.0, 0.0)), "'middle' is no part to drag"),
        (lambda: Drag(0, "end", (math.nan, 0.0)), "has two coordinates up to"),
        (lambda: Drag(0, "whole", (0.0, 0.0)), "needs the place where it began"),
        (lambda: drag(RECTANGLE, Drag(4, "end", (0.0, 0.0))), "there is no primitive 4"),
        (lambda: drag(RECTANGLE, Drag(-1, "end", (0.0, 0.0))), "there is no primitive -1"),
        (lambda: drag(RECTANGLE, Drag(0, "radius", (0.0, 0.0))), "line 0 has no radius to drag"),
        (lambda: drag(RECTANGLE, Drag(0, "center", (0.0, 0.0))), "line 0 has no center to drag"),
    ],
)
def test_impossible_drags_are_refused(make: object, sentence: str) -> None:
    with pytest.raises(GeometryError, match=sentence):
        make()  # type: ignore[operator]


@settings(max_examples=60)
@given(dragged_plates())
def test_constraints_hold_after_any_drag(case: tuple[Sketch, Drag]) -> None:
    sketch, pull = case
    before, result = solve(sketch), drag(sketch, pull)
    assert residual(result.sketch) <= 1e-9
    assert result.dof == before.dof
    assert result.moved == (result.sketch != sketch)
    again = drag(result.sketch, pull)
    assert residual(again.sketch) <= 1e-9


@settings(max_examples=60)
@given(dragged_plates())
def test_dragging_to_the_current_place_changes_nothing(case: tuple[Sketch, Drag]) -> None:
    sketch, pull = case
    assume(pull.part not in ("whole", "radius"))
    at = ref_point(Ref(pull.primitive, Part(pull.part)), sketch.primitives)
    assert at is not None
    assert largest_move(sketch, drag(sketch, replace(pull, to=at)).sketch) < 1e-9


@settings(max_examples=60)
@given(st.data())
def test_arbitrary_constraints_never_fail(data: st.DataObject) -> None:
    sketch = data.draw(arbitrarily_constrained())
    assume(bounds(sketch).size > 0)
    result = drag(sketch, data.draw(drags(sketch)))
    values = [value for p in result.sketch for value in (p.length, *bounds([p]).low, *bounds([p]).high)]
    assert np.isfinite(values).all()
    if result.moved and not solve(sketch).conflicting:
        assert residual(result.sketch) <= 1e-8


@given(st.integers(0, 2**32 - 1))
def test_second_derivatives_are_those_of_the_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = np.eye(3)[:, rng.integers(0, 3, 6)]
    system = System(rng.normal(size=(5, 6)), rng.normal(size=(5, 6, 4)), kind)
    z, weights = rng.normal(size=4), rng.normal(size=6)
    five = system.base + system.steps @ z
    assume(min(np.hypot(five[0], five[1]).min(), np.hypot(five[2], five[3]).min()) > 0.3)
    steps = 1e-5 * np.eye(4)
    slopes = [(system.evaluate(z + h)[1] - system.evaluate(z - h)[1]).T @ weights / 2e-5 for h in steps]
    assert np.allclose(curvature(system, z, weights, np.eye(4)), slopes, atol=1e-4)
