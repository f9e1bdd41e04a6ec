"""What ties a sketch to its origin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.shaky import PLATE, shaken

from sketchdnn.constraints import solve
from sketchdnn.constraints.constrain import constrain
from sketchdnn.formats import read, write
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch

T = ConstraintType
ORIGIN, X_AXIS, Y_AXIS = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))
# A corner near the origin, and a circle above it whose center is near the y axis.
DRAWN = Sketch(
    (
        Line((0.1, -0.05), (60, 0)),
        Line((60, 0.1), (60, 40)),
        Line((60, 40), (0, 40.1)),
        Line((0, 40), (0, 0)),
        Circle((0.05, 70), 6),
    ),
    units="mm",
)


def _outside(sketch: Sketch) -> list[Constraint]:
    return [c for c in sketch.constraints if any(ref.primitive is None for ref in c.refs)]


@pytest.mark.parametrize("repairing", [True, False])
def test_places_on_origin_and_axes_are_inferred(repairing: bool) -> None:
    loose = constrain(DRAWN, repairing=repairing)
    tied = constrain(DRAWN, repairing=repairing, origin=True)
    assert not _outside(loose.sketch)
    corner, center = _outside(tied.sketch)
    assert (corner.type, corner.refs[1]) == (T.COINCIDENT, ORIGIN)
    assert center == Constraint(T.POINT_ON_CURVE, (Ref(4, Part.CENTER), Y_AXIS))
    circle = tied.sketch.primitives[4]
    assert isinstance(circle, Circle)
    assert abs(circle.center[0]) < 1e-9
    assert tied.dof == loose.dof - 3 == solve(tied.sketch).dof
    assert (tied.redundant, tied.warning) == ((), None)


def test_nothing_far_from_the_origin_is_tied() -> None:
    far = DRAWN.moved(1.0, (300.0, 200.0))
    assert constrain(far, origin=True).sketch == constrain(far).sketch


def test_what_follows_is_not_tied_again() -> None:
    known = Constraint(T.COINCIDENT, (Ref(0, Part.START), ORIGIN))
    done = constrain(replace(DRAWN, constraints=(known,)), origin=True)
    assert [c.type for c in _outside(done.sketch)] == [T.COINCIDENT, T.POINT_ON_CURVE]
    assert not done.redundant


def test_tied_sketch_survives_every_format_with_constraints(tmp_path: Path) -> None:
    done = constrain(shaken(PLATE, 0.1), origin=True)
    assert _outside(done.sketch)
    for name in ("part.json", "part.FCStd", "part.npy"):
        write(done.sketch, tmp_path / name)
        (back,) = read(tmp_path / name).sketches
        assert {(c.type, c.refs) for c in back.constraints} == {(c.type, c.refs) for c in done.sketch.constraints}
        assert solve(back).dof == done.dof
