"""Our solver and FreeCAD's check each other: planegcs gets constraints, not our equations."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.noisy_sketches import PLATE
from support.strategies import assert_same

from benchmarks.constraint_recall import jitter_sketch, jitter_sketches
from sketchdnn.constraints import infer, planegcs, solve
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.variables import Variables
from sketchdnn.errors import GeometryError
from sketchdnn.formats import sketchgraphs
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Sketch

needs_planegcs = pytest.mark.skipif(
    find_spec("planegcs") is None,
    reason="planegcs is not installed; building it takes a C++ compiler, Eigen and Boost",
)
T = ConstraintType

SLANT = Line((0, 0), (10, 1))
CASES: list[tuple[tuple[Primitive, ...], Constraint]] = [
    (
        (SLANT, Line((10.1, 1.2), (12, 9))),
        Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
    ),
    ((SLANT, Point((4, 0.6))), Constraint(T.POINT_ON_CURVE, (Ref(1, Part.POINT), Ref(0)))),
    ((Circle((0, 0), 5), Point((4, 2.8))), Constraint(T.POINT_ON_CURVE, (Ref(1, Part.POINT), Ref(0)))),
    ((SLANT, Line((13, 1.5), (20, 2))), Constraint(T.COLLINEAR, (Ref(0), Ref(1)))),
    ((Circle((0, 0), 5), Circle((0.2, 0.1), 3)), Constraint(T.CONCENTRIC, (Ref(0), Ref(1)))),
    ((Circle((0, 0), 5), Circle((0.2, 0.1), 4.7)), Constraint(T.COINCIDENT, (Ref(0), Ref(1)))),
    ((SLANT,), Constraint(T.HORIZONTAL, (Ref(0),))),
    ((Circle((0, 0), 5), Circle((0.3, 20), 4)), Constraint(T.VERTICAL, (Ref(0, Part.CENTER), Ref(1, Part.CENTER)))),
    ((SLANT, Line((0, 4), (9, 5.5))), Constraint(T.PARALLEL, (Ref(0), Ref(1)))),
    ((SLANT, Line((3, 4), (2.5, 12))), Constraint(T.PERPENDICULAR, (Ref(0), Ref(1)))),
    ((Line((-9, 5.2), (10, 5)), Circle((0, 0), 5)), Constraint(T.TANGENT, (Ref(0), Ref(1)))),
    ((Circle((8.1, 0), 3), Circle((0, 0), 5)), Constraint(T.TANGENT, (Ref(0), Ref(1)))),
    ((Circle((1.9, 0), 3), Circle((0, 0), 5)), Constraint(T.TANGENT, (Ref(0), Ref(1)))),
    ((SLANT, Line((0, 4), (9, 5.5))), Constraint(T.EQUAL, (Ref(0), Ref(1)))),
    ((Circle((0, 0), 5), Arc((20, 3), 4.8, 0.3, 2)), Constraint(T.EQUAL, (Ref(0), Ref(1)))),
    ((SLANT, Point((5.2, 0.4))), Constraint(T.MIDPOINT, (Ref(1, Part.POINT), Ref(0)))),
    (
        (Line((0, -9), (0.3, 9)), Line((-5, 1), (5.2, 1.3))),
        Constraint(T.SYMMETRIC, (Ref(1, Part.START), Ref(1, Part.END), Ref(0))),
    ),
    (
        (Line((-5, 1), (5.2, 1.3)), Line((-5, 7), (4, 9))),
        Constraint(T.SYMMETRIC, (Ref(0, Part.START), Ref(0, Part.END), Ref(None, Part.Y_AXIS))),
    ),
]


@needs_planegcs
@pytest.mark.parametrize(("primitives", "constraint"), CASES, ids=lambda case: str(getattr(case, "type", "")))
def test_solvers_agree_on_each_type(primitives: tuple[Primitive, ...], constraint: Constraint) -> None:
    sketch = Sketch(primitives)
    variables = Variables(primitives)
    parameters = planegcs.solve(variables, [constraint])
    assert parameters is not None
    assert constraint_residuals(Sketch(variables.rebuild(parameters)), [constraint]) == [pytest.approx(0, abs=1e-9)]
    ours, theirs = solve(sketch, [constraint]), solve(sketch, [constraint], backend="planegcs")
    assert (ours.warning, theirs.warning) == (None, None)
    assert ours.dof == theirs.dof
    assert_same(ours.sketch, theirs.sketch, 1e-6)


@needs_planegcs
def test_solvers_agree_on_a_rounded_plate() -> None:
    plate = Sketch(PLATE.primitives[:6])
    for seed in range(10):
        shaken, _ = jitter_sketch(plate, 0.003, np.random.default_rng(seed))
        constraints = infer(shaken)
        ours, theirs = solve(shaken, constraints), solve(shaken, constraints, backend="planegcs")
        assert (ours.dof, ours.warning) == (theirs.dof, theirs.warning)
        assert_same(ours.sketch, theirs.sketch, 1e-6)


@needs_planegcs
def test_fixed_primitives_stay() -> None:
    primitives = (SLANT, Line((10.1, 1.2), (12, 9)))
    constraint = Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
    solution = solve(Sketch(primitives), [constraint], fixed=[1], backend="planegcs")
    assert solution.sketch.primitives[1] == primitives[1]
    assert solution.sketch.primitives[0].end == pytest.approx((10.1, 1.2))


@needs_planegcs
def test_solvers_agree_on_real_sketches(real_data: Path) -> None:
    found = sketchgraphs.FORMAT.read(real_data / "sketchgraphs" / "sg_subset.npy")
    sketches = [item for item in islice(found, 300, 450) if isinstance(item, Sketch) and len(item) >= 4]
    same = total = 0
    for one in jitter_sketches(sketches, 0.005):
        constraints = infer(one.sketch)
        ours, theirs = solve(one.sketch, constraints), solve(one.sketch, constraints, backend="planegcs")
        if ours.warning or ours.conflicting:
            continue
        total += 1
        assert theirs.warning or theirs.residual < 1e-9
        same += ours.dof == theirs.dof and abs(ours.displacement - theirs.displacement) < 1e-6
    assert total > 90
    # Where several solutions lie about as near, they may choose differently.
    assert same >= 0.95 * total


def test_unknown_or_missing_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    primitives, constraint = CASES[0]
    with pytest.raises(GeometryError, match="own or planegcs"):
        solve(Sketch(primitives), [constraint], backend="other")
    monkeypatch.setitem(sys.modules, "planegcs", None)
    with pytest.raises(GeometryError, match=r"pip install 'sketchdnn\[cad\]'.*pip install planegcs"):
        solve(Sketch(primitives), [constraint], backend="planegcs")
