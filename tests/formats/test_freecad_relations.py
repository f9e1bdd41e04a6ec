"""What relations demand, and which of them follow from others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketchdnn.formats.freecad.equations import Geometry, gradients, residuals
from sketchdnn.formats.freecad.independence import classes, independent
from sketchdnn.formats.freecad.relation import ORIGIN, X_AXIS, At, Code, Pos, Relation, from_element
from sketchdnn.formats.freecad.wording import wordings
from support.freecad_forms import all_forms
from support.strategies import lines, sketches

from sketchdnn.formats.freecad.selection import MISSED, OUTSIDE, REDUNDANT, TOO_SMALL, UNSAID, say
from sketchdnn.geometry import (
    EXTERNAL,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
)

T = ConstraintType
FORMS = all_forms()


def notes(primitives: list[Primitive], *constraints: Constraint) -> list[str]:
    return [said.note for said in say(Sketch(tuple(primitives), constraints))]


def rectangle(width: float = 4, height: float = 2) -> list[Primitive]:
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    return [Line(corners[i], corners[(i + 1) % 4]) for i in range(4)]


CORNERS = [Constraint(T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4)]
LEVEL = [Constraint(T.HORIZONTAL, (Ref(0),)), Constraint(T.HORIZONTAL, (Ref(2),))]
UPRIGHT = [Constraint(T.VERTICAL, (Ref(1),)), Constraint(T.VERTICAL, (Ref(3),))]


@pytest.mark.parametrize("sketch", FORMS, ids=lambda sketch: sketch.extra["name"])
def test_derivatives_are_those_of_the_equations(sketch: Sketch) -> None:
    """Against differences, at a sketch pushed off what it keeps, where nothing vanishes by chance."""
    rng = np.random.default_rng(0)
    for said in say(sketch):
        for relation in said.relations:
            geometry = Geometry(sketch.primitives, 10.0)
            for row in geometry.numbers:
                row[:] = [number + 1e-3 * rng.standard_normal() for number in row]
            where, rows = gradients(relation, geometry)
            for column, (geo, index) in enumerate(where):
                here = geometry.numbers[geo][index]
                sides = []
                for step in (1e-6, -1e-6):
                    geometry.numbers[geo][index] = here + step
                    sides.append(np.array(residuals(relation, geometry)))
                geometry.numbers[geo][index] = here
                expected = (sides[0] - sides[1]) / 2e-6
                if relation.code is Code.BLOCK:
                    continue  # stays wherever it is, so it never misses
                assert [row[column] for row in rows] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("sketch", FORMS, ids=lambda sketch: sketch.extra["name"])
def test_a_sketch_pushed_off_does_not_keep_its_constraint(sketch: Sketch) -> None:
    """The equations do tell: at random places nearby, none of them is zero."""
    geometry = Geometry(sketch.primitives, 10.0)
    rng = np.random.default_rng(1)
    for row in geometry.numbers:
        row[:] = [number + 0.05 * rng.standard_normal() for number in row]
    relations = [relation for said in say(sketch) for relation in said.relations if relation.code is not Code.BLOCK]
    assert all(max(map(abs, residuals(relation, geometry))) > 1e-6 for relation in relations)


@given(sketch=sketches(min_size=2, max_size=5), data=st.data())
def test_as_many_are_kept_as_the_rank_says(sketch: Sketch, data: st.DataObject) -> None:
    """Against the singular values of all derivatives at once."""
    geometry = Geometry(sketch.primitives, 100.0)
    ends = [At(i, pos) for i, p in enumerate(sketch) for pos in _positions(p)]
    pair = st.tuples(st.sampled_from(ends), st.sampled_from([*ends, ORIGIN])).filter(lambda pair: pair[0] != pair[1])
    code = st.sampled_from([Code.HORIZONTAL, Code.VERTICAL, Code.DISTANCE_X, Code.DISTANCE_Y])
    relations = data.draw(st.lists(st.builds(Relation, code, pair), min_size=1, max_size=12))
    matrix = np.zeros((len(relations), sum(map(len, geometry.numbers))))
    offsets = np.cumsum([0, *map(len, geometry.numbers)])
    for row, relation in zip(matrix, relations, strict=True):
        where, (derivatives,) = gradients(relation, geometry)
        row[[offsets[geo] + i for geo, i in where]] = derivatives
    assert sum(independent(relations, geometry)) == np.linalg.matrix_rank(matrix, tol=1e-6)


def _positions(primitive: Primitive) -> list[Pos]:
    match primitive:
        case Line() | Arc():
            return [Pos.START, Pos.END]
        case Circle():
            return [Pos.CENTER]
        case Point():
            return [Pos.START]


def test_what_follows_from_the_rest_is_redundant() -> None:
    parallel = Constraint(T.PARALLEL, (Ref(0), Ref(2)))
    assert notes(rectangle(), *CORNERS, *LEVEL, *UPRIGHT) == [""] * 8
    assert notes(rectangle(), *CORNERS, *LEVEL, *UPRIGHT, parallel) == [""] * 8 + [REDUNDANT]
    assert notes(rectangle(), parallel, *CORNERS, *LEVEL).count(REDUNDANT) == 1
    assert notes(rectangle(), *CORNERS, CORNERS[0]) == [""] * 4 + [REDUNDANT]


def test_of_a_geometric_and_a_measured_one_the_measured_is_redundant() -> None:
    width = Constraint(T.LENGTH, (Ref(0),), 4.0)
    same = Constraint(T.LENGTH, (Ref(2),), 4.0)
    assert notes(rectangle(), width, same, *LEVEL, *UPRIGHT, *CORNERS) == ["", REDUNDANT] + [""] * 8
    equal = Constraint(T.EQUAL, (Ref(0), Ref(2)))
    assert notes(rectangle(), width, same, equal).count(REDUNDANT) == 1
    assert notes(rectangle(), width, same, equal)[2] == ""


def test_half_of_a_demand_costs_the_single_ones() -> None:
    """FreeCAD blames the lone constraint when half of a symmetry follows from it, so we do as well."""
    beside = [Line((-2, 1), (2, 1))]
    symmetric = Constraint(T.SYMMETRIC, (Ref(0, Part.START), Ref(0, Part.END), Ref(None, Part.Y_AXIS)))
    assert notes(beside, Constraint(T.HORIZONTAL, (Ref(0),)), symmetric) == [REDUNDANT, ""]


def test_tangents_that_share_a_point_are_not_redundant() -> None:
    """A slot: by the distance from line to center alone, all four would be."""
    slot: list[Primitive] = [
        Line((0, 0), (2, 0)),
        Arc((2, 1), 1, -math.pi / 2, math.pi),
        Line((2, 2), (0, 2)),
        Arc((0, 1), 1, math.pi / 2, math.pi),
    ]
    tangents = [Constraint(T.TANGENT, (Ref(i), Ref((i + 1) % 4))) for i in range(4)]
    assert notes(slot, *tangents, *CORNERS) == [""] * 8
    said = say(Sketch(tuple(slot), (*tangents, *CORNERS)))
    assert [len(s.relations[0].at) for s in said] == [3] * 4 + [2] * 4


def test_what_a_sketch_does_not_keep() -> None:
    assert notes(rectangle(), Constraint(T.VERTICAL, (Ref(0),))) == [MISSED]
    assert notes(rectangle(), Constraint(T.LENGTH, (Ref(0),), 4.1)) == [MISSED]
    assert notes(rectangle(), Constraint(T.LENGTH, (Ref(0),), 4.000001)) == [""]
    assert notes([Line((0, 0), (1e-12, 0)), Line((0, 0), (5, 5))], Constraint(T.HORIZONTAL, (Ref(0),))) == [TOO_SMALL]


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint(T.OTHER, (Ref(0),), name="Projected"),
        Constraint(T.LENGTH, (Ref(0),)),  # of what length
        Constraint(T.LENGTH, (Ref(0),), 0.0),
        Constraint(T.PARALLEL, (Ref(0), Ref(4))),
        Constraint(T.PARALLEL, (Ref(0), Ref(0))),
        Constraint(T.PARALLEL, (Ref(0),)),
        Constraint(T.EQUAL, (Ref(0), Ref(None, Part.X_AXIS))),
        Constraint(T.RADIUS, (Ref(0),), 2.0),
        Constraint(T.MIDPOINT, (Ref(4), Ref(0))),
        Constraint(T.COINCIDENT, (Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS))),
        Constraint(T.FIX, (Ref(None, Part.ORIGIN),)),
        Constraint(T.ANGLE, (Ref(0), Ref(None, Part.ORIGIN)), 1.0),
        Constraint(T.TANGENT, (Ref(4, Part.CENTER), Ref(0))),
        Constraint(T.SYMMETRIC, (Ref(0), Ref(4), Ref(1))),
    ],
)
def test_what_freecad_has_no_words_for(constraint: Constraint) -> None:
    assert notes([*rectangle(), Circle((1, 1), 1)], constraint) == [UNSAID]


def test_what_lies_outside() -> None:
    assert notes(rectangle(), Constraint(T.PARALLEL, (Ref(0), EXTERNAL))) == [OUTSIDE]


def test_what_freecad_switched_off_stays_so() -> None:
    off = Constraint(T.VERTICAL, (Ref(0),), extra={"active": False, "label": "later"})
    measure = Constraint(T.LENGTH, (Ref(0),), 3.9, extra={"driving": False})
    said = say(Sketch(tuple(rectangle()), (off, measure)))
    assert [s.note for s in said] == ["", ""]
    assert [(s.relations[0].active, s.relations[0].driving, s.relations[0].label) for s in said] == [
        (False, True, "later"),
        (True, False, ""),
    ]


@given(first=lines, second=lines, value=st.floats(-7, 7))
def test_an_angle_is_found_whichever_way_it_was_meant(first: Line, second: Line, value: float) -> None:
    """Of two lines, the angle between any of their directions holds in some wording."""
    geometry = Geometry((first, second), 1.0)
    turn = [math.atan2(p.end[1] - p.start[1], p.end[0] - p.start[0]) for p in (first, second)]
    for angle in (turn[1] - turn[0], turn[0] - turn[1], math.pi - (turn[1] - turn[0])):
        ways = wordings(Constraint(T.ANGLE, (Ref(0), Ref(1)), angle), (first, second))
        assert min(abs(residuals(relation, geometry)[0]) for (relation,) in ways) < 1e-6


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_classes_hold_what_is_tied_together(pairs: list[tuple[int, int]]) -> None:
    reach = np.eye(10, dtype=bool)
    for a, b in pairs:
        reach[a, b] = reach[b, a] = True
    for _ in range(10):
        reach = reach @ reach
    leader = classes(pairs)
    for a in leader:
        for b in leader:
            assert (leader[a] == leader[b]) == reach[a, b]


relations = st.builds(
    Relation,
    st.sampled_from(Code),
    st.lists(st.builds(At, st.integers(-5, 99), st.sampled_from(Pos)), min_size=1, max_size=3).map(tuple),
    st.floats(-1e6, 1e6),
    st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=8),
    st.booleans(),
    st.booleans(),
)


@given(relation=relations)
def test_a_relation_survives_xml(relation: Relation) -> None:
    assert from_element(relation.element()) == relation


def test_a_block_leaves_nothing_to_demand() -> None:
    """What is fixed keeps whatever it keeps already."""
    fixed = Constraint(T.FIX, (Ref(0),))
    assert notes(rectangle(), LEVEL[0], fixed) == [REDUNDANT, ""]
    assert notes(rectangle(), LEVEL[1], fixed) == ["", ""]


def test_an_axis_is_as_good_as_a_line() -> None:
    geometry = Geometry((Line((0, 3), (4, 3)),), 1.0)
    assert residuals(Relation(Code.PARALLEL, (At(0), X_AXIS)), geometry) == [0]
    assert residuals(Relation(Code.DISTANCE, (At(0, Pos.END), X_AXIS), 2.0), geometry) == [1]
    assert replace(Relation(Code.PARALLEL, (At(0), X_AXIS)), active=False).element().get("IsActive") == "0"
