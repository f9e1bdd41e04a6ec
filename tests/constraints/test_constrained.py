"""Keep what a sketch says, add what it means, and lose only what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from support.shaky import PLATE, related, shaken

from sketchdnn.constraints import Freedom, solve
from sketchdnn.constraints.constrain import constrain
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Point, Ref, Sketch

T = ConstraintType
ROUGH = shaken(PLATE, 0.1)


@pytest.mark.parametrize("repairing", [True, False])
def test_what_comes_out_holds_and_says_what_it_leaves_free(repairing: bool) -> None:
    done = constrain(ROUGH, repairing=repairing)
    again = solve(done.sketch)
    assert done.warning is None
    assert again.residual < 1e-9
    assert again.dof == done.dof
    assert again.freedom == done.freedom
    assert not again.redundant
    assert 0 < done.displacement < 0.01


@pytest.mark.parametrize("repairing", [True, False])
def test_what_contradicts_is_lost_and_nothing_else(repairing: bool) -> None:
    fine = (Constraint(T.PARALLEL, (Ref(0), Ref(3))), Constraint(T.EQUAL, (Ref(6), Ref(7))))
    contrary = Constraint(T.PERPENDICULAR, (Ref(0), Ref(3)))
    done = constrain(replace(ROUGH, constraints=(*fine, contrary)), repairing=repairing)
    assert done.lost == (contrary,)
    assert set(fine) <= set(done.sketch.constraints)
    assert contrary not in done.sketch.constraints


def test_what_a_repair_drops_takes_its_constraints_along() -> None:
    twice = Sketch((*PLATE.primitives, Line((0, 0), (60, 0))))
    level = Constraint(T.HORIZONTAL, (Ref(len(twice) - 1),))
    done = constrain(replace(twice, constraints=(level,)))
    assert len(done.sketch) == len(PLATE)
    assert done.warning is None


def test_each_dimension_takes_one_freedom_until_none_is_left() -> None:
    plain, settled = constrain(ROUGH), constrain(ROUGH, dimensioned=True)
    added = settled.sketch.constraints[len(plain.sketch.constraints) :]
    assert settled.sketch.primitives == plain.sketch.primitives
    assert plain.dof == len(added) > 0
    assert settled.dof == 0
    assert set(settled.freedom) == {Freedom.FIXED}
    assert not settled.redundant


def test_a_failure_inside_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from sketchdnn.constraints import constrain as room

    def fail(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(room, "infer", fail)
    done = constrain(ROUGH, repairing=False)
    assert done.sketch == ROUGH
    assert done.warning == "SVD did not converge"
    assert len(done.freedom) == len(ROUGH)


@settings(max_examples=15)
@given(related())
def test_any_constraints_come_to_an_end(sketch: Sketch) -> None:
    """Those of hostile files too: a sketch comes back, with as many words on freedom as it has primitives."""
    done = constrain(sketch, repairing=False)
    assert len(done.freedom) == len(done.sketch) == len(sketch)
    assert set(done.lost) <= set(sketch.constraints)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200])
def test_vanishing_extent_does_not_stop_constraining(tiny: float) -> None:
    """Coordinates below what can be squared or inverted: no error, and nothing is moved far."""
    cross = (Line((0, 0), (tiny, 0)), Line((0, 0), (0, tiny)))
    for primitives in (
        cross,
        (Point((0, 0)), Point((tiny, 0))),
        (Circle((0, 0), tiny),),
        (Arc((0, 0), tiny, 0, 2),),
        (*cross, Line((1, 0), (0, tiny))),
    ):
        for repairing in (True, False):
            assert len(constrain(Sketch(primitives), repairing=repairing).sketch) <= len(primitives)
