"""Constrain a sketch: its own constraints, inferred ones, dimensions and the origin."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from support.noisy_sketches import PLATE, add_noise, arbitrarily_constrained

from benchmarks.constraint_speed import line_chain, rectangle_grid
from sketchdnn.constraints import Freedom, solve
from sketchdnn.constraints.constrain import ConstrainOptions, constrain
from sketchdnn.constraints.repair.infer_solve import is_tangle
from sketchdnn.formats import read, write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
ROUGH = add_noise(PLATE, 0.1)
INFER_ONLY, BOTH = ConstrainOptions(repair=False), [ConstrainOptions(), ConstrainOptions(repair=False)]
ORIGIN, Y_AXIS = Ref(None, Part.ORIGIN), Ref(None, Part.Y_AXIS)
# A corner near the origin, and a circle above it whose center is near the y axis.
SIDES = Line((0.1, -0.05), (60, 0)), Line((60, 0.1), (60, 40)), Line((60, 40), (0, 40.1)), Line((0, 40), (0, 0))
CORNER = Sketch((*SIDES, Circle((0.05, 70), 6)), units="mm")


@pytest.mark.parametrize("options", BOTH, ids=["repair", "infer"])
def test_result_is_solved_and_only_conflicting_constraints_are_lost(options: ConstrainOptions) -> None:
    result = constrain(ROUGH, options)
    again = solve(result.sketch)
    assert (result.warning, again.dof, again.freedom, again.redundant) == (None, result.dof, result.freedom, ())
    assert again.residual < 1e-9
    assert 0 < result.displacement < 0.01
    fine = (Constraint(T.PARALLEL, (Ref(0), Ref(3))), Constraint(T.EQUAL, (Ref(6), Ref(7))))
    conflict = Constraint(T.PERPENDICULAR, (Ref(0), Ref(3)))
    result = constrain(replace(ROUGH, constraints=(*fine, conflict)), options)
    assert result.lost == (conflict,)
    assert set(fine) <= set(result.sketch.constraints) - {conflict}
    twice = Sketch((*PLATE.primitives, Line((0, 0), (60, 0))), (Constraint(T.HORIZONTAL, (Ref(len(PLATE)),)),))
    result = constrain(twice)
    assert (len(result.sketch), result.warning) == (len(PLATE), None)


def test_each_dimension_removes_one_degree_of_freedom() -> None:
    plain, full = constrain(ROUGH), constrain(ROUGH, ConstrainOptions(dimensions=True))
    assert full.sketch.primitives == plain.sketch.primitives
    assert plain.dof == len(full.sketch.constraints) - len(plain.sketch.constraints) > 0
    assert (full.dof, set(full.freedom), full.redundant) == (0, {Freedom.FIXED}, ())


def test_failure_of_the_solver_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(import_module("sketchdnn.constraints.constrain"), "infer", fail)
    result = constrain(ROUGH, INFER_ONLY)
    assert (result.sketch, result.warning, len(result.freedom)) == (ROUGH, "SVD did not converge", len(ROUGH))


@settings(max_examples=15)
@given(arbitrarily_constrained())
def test_arbitrary_constraints_are_handled(sketch: Sketch) -> None:
    result = constrain(sketch, INFER_ONLY)
    assert len(result.freedom) == len(result.sketch) == len(sketch)
    assert set(result.lost) <= set(sketch.constraints)


def test_vanishing_extent_is_handled() -> None:
    """Coordinates below what can be squared or inverted: no error."""
    for tiny, options in product((5e-324, 1e-310, 1e-200), BOTH):
        cross = (Line((0, 0), (tiny, 0)), Line((0, 0), (0, tiny)))
        round_ = ((Circle((0, 0), tiny),), (Arc((0, 0), tiny, 0, 2),))
        for primitives in (cross, (Point((0, 0)), Point((tiny, 0))), *round_, (*cross, Line((1, 0), (0, tiny)))):
            assert len(constrain(Sketch(primitives), options).sketch) <= len(primitives)


def outside(sketch: Sketch) -> list[Constraint]:
    return [c for c in sketch.constraints if any(ref.primitive is None for ref in c.refs)]


@pytest.mark.parametrize("options", BOTH, ids=["repair", "infer"])
def test_points_snap_to_the_origin_and_axes(options: ConstrainOptions) -> None:
    loose, tied = constrain(CORNER, options), constrain(CORNER, replace(options, origin=True))
    assert not outside(loose.sketch)
    corner, center = outside(tied.sketch)
    assert (corner.type, corner.refs[1]) == (T.COINCIDENT, ORIGIN)
    assert center == Constraint(T.POINT_ON_CURVE, (Ref(4, Part.CENTER), Y_AXIS))
    assert abs(tied.sketch.primitives[4].center[0]) < 1e-9
    assert tied.dof == loose.dof - 3 == solve(tied.sketch).dof
    assert (tied.redundant, tied.warning) == ((), None)
    options = ConstrainOptions(origin=True)  # only nearby, and once
    far = CORNER.moved(1.0, (300.0, 200.0))
    assert constrain(far, options).sketch == constrain(far).sketch
    known = Constraint(T.COINCIDENT, (Ref(0, Part.START), ORIGIN))
    result = constrain(replace(CORNER, constraints=(known,)), options)
    assert ([c.type for c in outside(result.sketch)], result.redundant) == ([T.COINCIDENT, T.POINT_ON_CURVE], ())


def test_origin_constraints_survive_every_format(tmp_path: Path) -> None:
    result = constrain(ROUGH, ConstrainOptions(origin=True))
    assert outside(result.sketch)
    for name in ("part.json", "part.FCStd", "part.npy"):
        write(result.sketch, tmp_path / name)
        (back,) = read(tmp_path / name).sketches
        assert {(c.type, c.refs) for c in back.constraints} == {(c.type, c.refs) for c in result.sketch.constraints}
        assert solve(back).dof == result.dof


def polygon(count: int) -> Sketch:
    """Its sides are much shorter than the tolerance, a share of the size."""
    at = [(100 * math.cos(k * math.tau / count), 100 * math.sin(k * math.tau / count)) for k in range(count)]
    return Sketch(tuple(Line(a, b) for a, b in zip(at, [*at[1:], at[0]], strict=True)))


@pytest.mark.parametrize("options", BOTH, ids=["repair", "infer"])
def test_large_sketches_get_level_constraints(options: ConstrainOptions) -> None:
    cases = (rectangle_grid(1200), 1200, 1200), (line_chain(1200), 1199, 1200), (polygon(1200), 1200, 4)
    for sketch, meeting, level in cases:
        result = constrain(sketch, options)
        types = Counter(str(c.type) for c in result.sketch.constraints)
        assert (result.warning, bool(result.skipped), types["coincident"]) == (None, True, meeting)
        assert types["horizontal"] + types["vertical"] >= level
        again = solve(result.sketch)
        assert (again.warning, again.redundant, again.conflicting, again.dof) == (None, (), (), result.dof)
        assert again.residual < 1e-9


def test_short_lines_are_not_dropped_and_a_tangle_is_not_repaired() -> None:
    drawn = line_chain(4000)  # a line of 6 mm is less than half the tolerance, and as large as its neighbors
    assert len(constrain(drawn).sketch) == len(drawn)
    lines = [Line((0, float(k)), (300, float(k))) for k in range(160)]
    tangle = Sketch((*lines, *(Line((float(k), -10), (float(k), 310)) for k in range(160))))
    assert is_tangle(tangle)
    result = constrain(tangle)
    assert Counter(c.type for c in result.sketch.constraints) == {T.HORIZONTAL: 160, T.VERTICAL: 160}
    assert result.sketch.primitives == tangle.primitives
