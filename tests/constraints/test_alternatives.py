"""Alternatives: distinct, with the sketch's own constraints first, from coincidences to full dimensions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from support.noisy_sketches import PLATE, add_noise, arbitrarily_constrained, constraint

from sketchdnn.constraints import ConstrainAlternative, ConstrainOptions, RoundOptions, alternatives, solve
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Ref, Sketch

T = ConstraintType
ROUGH = add_noise(PLATE, 0.1)
MODES = [ConstrainOptions(), ConstrainOptions(repair=False)]


def by_name(sketch: Sketch, options: ConstrainOptions | None = None) -> dict[str, ConstrainAlternative]:
    return {alternative.name: alternative for alternative in alternatives(sketch, options)}


@pytest.mark.parametrize("options", MODES)
def test_alternatives_go_from_coincidences_to_full_dimensions(options: ConstrainOptions) -> None:
    offered = by_name(ROUGH, options)
    assert list(offered) == [
        "Coincidences",
        "Geometric relations",
        "Equal and symmetric",
        "Lengths",
        "Lengths without equalities",
        "Ordinate dimensions",
        "Rounded dimensions",
    ]
    dof = {name: alternative.result.dof for name, alternative in offered.items()}
    assert dof["Coincidences"] > dof["Geometric relations"] > dof["Equal and symmetric"] > 0
    full = {name for name, alternative in offered.items() if alternative.result.fully_constrained}
    assert full == {*list(offered)[3:]}
    kinds = {c.type for c in offered["Coincidences"].result.sketch.constraints}
    assert kinds <= {T.COINCIDENT, T.CONCENTRIC, T.POINT_ON_CURVE}
    for alternative in offered.values():
        sketch, solution = alternative.result.sketch, solve(alternative.result.sketch)
        assert max(value or 0.0 for value in constraint_residuals(sketch, sketch.constraints)) <= 1e-8
        assert (solution.warning, solution.conflicting, solution.dof) == (None, (), alternative.result.dof)
        assert alternative.constraints + alternative.dimensions == len(sketch.constraints)


def test_fewer_constraints_move_less() -> None:
    offered = by_name(ROUGH)
    moved = {name: alternative.result.displacement for name, alternative in offered.items()}
    assert moved["Coincidences"] < moved["Equal and symmetric"]


def test_rounded_dimensions_are_round_and_the_others_measured() -> None:
    offered = by_name(ROUGH, ConstrainOptions(rounding=RoundOptions(step=1.0)))
    rounded = [c.value for c in offered["Rounded dimensions"].result.sketch.constraints if c.value is not None]
    assert len(rounded) > 3
    assert all(abs(value - round(value)) < 1e-9 for value in rounded)


def test_own_constraints_stay_first_with_their_names() -> None:
    own = Constraint(T.RADIUS, (Ref(8),), 8.0, name="bore", extra={"label": "bore"})
    sketch = replace(PLATE, constraints=(own, constraint(T.HORIZONTAL, 0)))
    for alternative in alternatives(sketch):
        assert alternative.result.sketch.constraints[:2] == sketch.constraints


def test_equal_results_appear_once() -> None:
    offered = alternatives(Sketch((Circle((3, 4), 2),), units="mm"))
    assert [(a.name, a.result.fully_constrained, a.dimensions) for a in offered] == [("Lengths", True, 3)]


def test_a_sketch_that_cannot_be_constrained_says_why() -> None:
    (nothing,) = alternatives(Sketch(()))
    assert (nothing.constraints, nothing.dimensions, nothing.result.fully_constrained) == (0, 0, False)
    far = Sketch((Line((1e11, 0), (1e11 + 1, 0.001)),))
    assert all(a.result.warning or a.result.sketch for a in alternatives(far))


@settings(max_examples=25)
@given(arbitrarily_constrained())
def test_arbitrary_sketches_have_distinct_alternatives(sketch: Sketch) -> None:
    offered = alternatives(sketch)
    assert len({a.name for a in offered}) == len(offered) >= 1
    for alternative in offered:
        result = alternative.result
        assert result.fully_constrained == (result.dof == 0 and not result.unsupported)
