"""The constraints that FreeCAD's solver can be given together, and the equations that decide it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_forms import all_forms
from support.noisy_sketches import CLOSED, add_noise
from support.noisy_sketches import constraint as c
from support.outlines import rectangle, slot
from support.strategies import assert_same, lines, sketches

from sketchdnn.constraints import infer
from sketchdnn.constraints.equations import arc_equations, build, residual
from sketchdnn.constraints.variables import VariableMerging, Variables
from sketchdnn.errors import SketchError
from sketchdnn.formats import read, write
from sketchdnn.formats.freecad import selection
from sketchdnn.formats.freecad.constraints import to_relations
from sketchdnn.formats.freecad.elements import ORIGIN, X_AXIS, GeoId, PointPos, Relation, RelationType, read_relation
from sketchdnn.formats.freecad.selection import MISSED, OUTSIDE, REDUNDANT, TOO_SMALL, UNSAID, select_relations
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Kind, Line, Part, Ref, Sketch
from sketchdnn.geometry.primitives import Primitive

T, R, P = ConstraintType, RelationType, PointPos
RECTANGLE = rectangle(0, 0, 4, 2)
FLAT, UPRIGHT = [c(T.HORIZONTAL, 0), c(T.HORIZONTAL, 2)], [c(T.VERTICAL, 1), c(T.VERTICAL, 3)]
FORMS = all_forms()


def notes(primitives: list[Primitive], *constraints: Constraint) -> list[str]:
    return [s.note for s in select_relations(Sketch(tuple(primitives), constraints))]


def residuals(relation: Relation, primitives: tuple[Primitive, ...]) -> list[float]:
    variables = Variables(primitives)
    return [residual(equation, variables.f) for equation in selection.relation_equations(relation, variables)]


def test_relations_hold_as_drawn_and_not_with_noise() -> None:
    for sketch in FORMS:
        noisy = add_noise(sketch, 0.5, seed=1).primitives
        for relation in (r for s in select_relations(sketch) for r in s.relations if r.type is not R.BLOCK):
            assert residuals(relation, sketch.primitives) == pytest.approx(
                [0] * len(residuals(relation, noisy)), abs=1e-9
            )
            assert max(map(abs, residuals(relation, noisy))) > 1e-6, (sketch.extra, relation)


@given(sketch=sketches(min_size=2, max_size=5), data=st.data())
def test_number_of_independent_relations_is_the_rank(sketch: Sketch, data: st.DataObject) -> None:
    positions = {Kind.CIRCLE: [P.CENTER], Kind.POINT: [P.START]}
    points = [GeoId(i, pos) for i, p in enumerate(sketch) for pos in positions.get(p.kind, [P.START, P.END])]
    pair = st.tuples(st.sampled_from(points), st.sampled_from([*points, ORIGIN])).filter(
        lambda pair: pair[0] != pair[1]
    )
    kinds = st.sampled_from([R.HORIZONTAL, R.VERTICAL, R.DISTANCE_X, R.DISTANCE_Y])
    relations = data.draw(st.lists(st.builds(Relation, kinds, pair), min_size=1, max_size=12))
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    arcs, own = arc_equations(variables), [e for r in relations for e in selection.relation_equations(r, variables)]
    rows = build([*arcs, *own], variable_map).evaluate(np.zeros(variable_map.num_free))[1]
    assert sum(selection.independent(relations, variables)) == np.linalg.matrix_rank(rows, tol=1e-6) - len(arcs)


def test_redundant_constraints_are_switched_off() -> None:
    parallel = c(T.PARALLEL, 0, 2)
    assert notes(RECTANGLE, *CLOSED, *FLAT, *UPRIGHT) == [""] * 8
    assert notes(RECTANGLE, *CLOSED, *FLAT, *UPRIGHT, parallel) == [""] * 8 + [REDUNDANT]
    assert notes(RECTANGLE, parallel, *CLOSED, *FLAT).count(REDUNDANT) == 1
    assert notes(RECTANGLE, *CLOSED, CLOSED[0]) == [""] * 4 + [REDUNDANT]
    fixed = c(T.FIX, 0)
    assert (notes(RECTANGLE, FLAT[0], fixed), notes(RECTANGLE, FLAT[1], fixed)) == ([REDUNDANT, ""], ["", ""])
    width, same, equal = c(T.LENGTH, 0, value=4.0), c(T.LENGTH, 2, value=4.0), c(T.EQUAL, 0, 2)
    assert notes(RECTANGLE, width, same, *FLAT, *UPRIGHT, *CLOSED) == ["", REDUNDANT] + [""] * 8
    assert notes(RECTANGLE, width, same, equal).count(REDUNDANT) == 1
    assert notes(RECTANGLE, width, same, equal)[2] == ""
    symmetric = c(T.SYMMETRIC, Ref(0, Part.START), Ref(0, Part.END), Ref(None, Part.Y_AXIS))
    assert notes([Line((-2, 1), (2, 1))], c(T.HORIZONTAL, 0), symmetric) == [REDUNDANT, ""]


def test_tangents_name_the_point_and_others_are_noted() -> None:
    tangents = [c(T.TANGENT, i, (i + 1) % 4) for i in range(4)]
    selected = select_relations(Sketch(tuple(slot(2, 1)), (*tangents, *CLOSED)))
    assert [s.note for s in selected] == [""] * 8
    assert [len(s.relations[0].ids) for s in selected] == [3] * 4 + [2] * 4
    origin, x_axis = Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS)
    for constraint in (
        Constraint(T.OTHER, (Ref(0),), name="Projected"),
        c(T.LENGTH, 0),  # without a value
        c(T.LENGTH, 0, value=0.0),
        c(T.PARALLEL, 0, 4),
        c(T.PARALLEL, 0, 0),
        c(T.PARALLEL, 0),
        c(T.EQUAL, 0, x_axis),
        c(T.RADIUS, 0, value=2.0),
        c(T.MIDPOINT, 4, 0),
        c(T.COINCIDENT, origin, x_axis),
        c(T.COINCIDENT, 0, 4),
        c(T.FIX, origin),
        c(T.ANGLE, 0, origin, value=1.0),
        c(T.TANGENT, Ref(4, Part.CENTER), 0),
        c(T.SYMMETRIC, 0, 4, 1),
    ):
        assert notes([*RECTANGLE, Circle((1, 1), 1)], constraint) == [UNSAID], constraint
    assert notes(RECTANGLE, c(T.PARALLEL, 0, EXTERNAL)) == [OUTSIDE]
    assert notes([], c(T.PARALLEL, EXTERNAL, EXTERNAL)) == [UNSAID]


def test_constraints_that_do_not_hold_are_switched_off() -> None:
    assert notes(RECTANGLE, c(T.VERTICAL, 0)) == [MISSED]
    assert notes(RECTANGLE, c(T.LENGTH, 0, value=4.1)) == [MISSED]
    assert notes(RECTANGLE, c(T.LENGTH, 0, value=4.000001)) == [""]
    assert notes([Arc((0, 0), 1, 0, 2)], c(T.ANGLE, 0, value=2 - math.tau)) == [MISSED]
    assert notes([Line((0, 0), (1e-12, 0)), Line((0, 0), (5, 5))], c(T.HORIZONTAL, 0)) == [TOO_SMALL]
    assert notes([Circle((0, 0), 1), Circle((0, 0), 2)], c(T.TANGENT, 0, 1)) == [TOO_SMALL]
    off = Constraint(T.VERTICAL, (Ref(0),), extra={"active": False, "label": "later"})
    measure = Constraint(T.LENGTH, (Ref(0),), 3.9, extra={"driving": False})
    selected = select_relations(Sketch(tuple(RECTANGLE), (off, measure)))
    assert [s.note for s in selected] == ["", ""]
    (first,), (second,) = (s.relations for s in selected)
    assert (first.active, first.driving, first.label) == (False, True, "later")
    assert (second.active, second.driving, second.label) == (True, False, "")


@given(first=lines, second=lines)
def test_angle_holds_in_one_of_its_readings(first: Line, second: Line) -> None:
    turn = [math.atan2(p.end[1] - p.start[1], p.end[0] - p.start[0]) for p in (first, second)]
    for angle in (turn[1] - turn[0], turn[0] - turn[1], math.pi - (turn[1] - turn[0])):
        ways = to_relations(c(T.ANGLE, 0, 1, value=angle), (first, second))
        assert min(abs(residuals(relation, (first, second))[0]) for (relation,) in ways) < 1e-6


def test_axis_is_a_line() -> None:
    line = (Line((0, 3), (4, 3)),)
    assert residuals(Relation(R.PARALLEL, (GeoId(0), X_AXIS)), line) == [0]
    assert residuals(Relation(R.DISTANCE, (GeoId(0, P.END), X_AXIS), 2.0), line) == [pytest.approx(1 / 4)]


@given(
    st.builds(
        Relation,
        st.sampled_from(R),
        st.lists(st.builds(GeoId, st.integers(-5, 99), st.sampled_from(P)), min_size=1, max_size=3).map(tuple),
        st.floats(-1e6, 1e6),
        st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=8),
        st.booleans(),
        st.booleans(),
    )
)
def test_relation_survives_xml(relation: Relation) -> None:
    assert read_relation(relation.to_element()) == relation


def test_dimensions_are_added_once(tmp_path: Path) -> None:
    plate = Sketch((*rectangle(5, 5, 60, 40), *slot(10.0, 2.0), Circle((20.0, 20.0), 3.0)), units="mm")
    related = replace(plate, constraints=infer(plate))
    write(related, tmp_path / "full.FCStd", dimensions=True)
    (again,) = read(tmp_path / "full.FCStd")
    assert_same(plate, again)
    assert again.constraints[: len(related.constraints)] == related.constraints
    assert T.DIAMETER in {added.type for added in again.constraints[len(related.constraints) :]}
    write(again, tmp_path / "again.FCStd", dimensions=True)
    assert read(tmp_path / "again.FCStd").sketches[0].constraints == again.constraints
    with pytest.raises(SketchError, match="'dimensions' is an option of freecad, not of json"):
        plate.save(tmp_path / "plate.json", dimensions=True)
