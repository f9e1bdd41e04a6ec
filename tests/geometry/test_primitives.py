"""Primitives refuse invalid numbers, and every notation of an arc gives the same arc."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.strategies import arcs

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Arc, Circle, Kind, Line, Point
from sketchdnn.geometry.primitives import arc_from_angles, arc_from_bulge, arc_from_sweep, bulge

# Minor and major arcs, semicircles and their neighbors, and sweeps close to zero and to a full turn.
SWEEPS = st.one_of(
    st.floats(1e-3, math.tau - 1e-3),
    st.sampled_from([math.pi / 2, math.pi, 3 * math.pi / 2]),
    st.floats(-1e-2, 1e-2).map(lambda d: math.pi + d),
    st.floats(1e-5, 1e-2),
    st.floats(1e-5, 1e-2).map(lambda d: math.tau - d),
)
NEAR = st.floats(-5, 5)
ARCS = st.builds(Arc, st.tuples(NEAR, NEAR), st.floats(0.1, 5), st.floats(-10, 10), SWEEPS, st.booleans())
SEMICIRCLE = Arc((0.3, -4.1), 1.7, 0.777, math.pi)
SWEEP_FORMS: dict[str, Callable[[Arc], Arc]] = {
    "angles": lambda a: arc_from_angles(a.center, a.radius, a.start_angle, a.end_angle, construction=a.construction),
    "sweep": lambda a: arc_from_sweep(a.start, a.end, a.sweep, construction=a.construction),
    "clockwise sweep": lambda a: arc_from_sweep(a.end, a.start, -a.sweep, construction=a.construction),
    "bulge": lambda a: arc_from_bulge(a.start, a.end, bulge(a), construction=a.construction),
    "negative bulge": lambda a: arc_from_bulge(a.end, a.start, -bulge(a), construction=a.construction),
}


@pytest.mark.parametrize(
    ("make", "slots"),
    [
        (lambda a, b, c, d: Line((a, b), (c, d)), 4),
        (lambda a, b, c, _: Circle((a, b), c), 3),
        (lambda a, b, c, d: Arc((a, b), c, d, 1.0), 4),
        (lambda a, b, _, d: Arc((a, b), 1.0, 0.0, d), 4),
        (lambda a, b, *_: Point((a, b)), 2),
    ],
)
def test_invalid_numbers_are_refused(make: Any, slots: int) -> None:
    good = [0.5, 1.5, 2.5, 3.5]
    for slot in range(slots):
        if make(*good) == make(*good[:slot], 0.25, *good[slot + 1 :]):
            continue  # this kind does not use that number
        for bad in (math.nan, math.inf, -math.inf, 1e300, -1e300):
            with pytest.raises(GeometryError, match=r"not a number|is beyond|above zero|between 0 and 2π"):
                make(*good[:slot], bad, *good[slot + 1 :])


def test_degenerate_primitives_are_refused_and_others_have_lengths_and_kinds() -> None:
    for radius in (0.0, -0.0, -1.0):
        with pytest.raises(GeometryError, match="a circle's radius must be above zero"):
            Circle((0, 0), radius)
        with pytest.raises(GeometryError, match="an arc's radius must be above zero"):
            Arc((0, 0), radius, 0, 1)
    for sweep in (0.0, math.tau, -1.0, 7.0, -0.0):
        with pytest.raises(GeometryError, match="sweep lies between 0 and 2π"):
            Arc((0, 0), 1, 0, sweep)
    with pytest.raises(GeometryError, match="two different ends"):
        Line((1, 2), (1, 2))
    with pytest.raises(GeometryError, match="two different ends"):
        Arc((1e6, 1e6), 1e-3, 0, 1e-9)
    assert GeometryError.__mro__[1:3] == (SketchError, ValueError)
    items = (Line((0, 0), (3, 4)), Circle((7, 7), 2), Arc((0, 0), 1, 0, 1), Point((1, 1)))
    assert ([p.length for p in items], [p.kind for p in items]) == (pytest.approx([5, 4 * math.pi, 1, 0]), list(Kind))
    assert [kind.label for kind in Kind] == ["line", "circle", "arc", "point"]


@given(arcs)
def test_arc_keeps_its_radius_and_runs_counter_clockwise(arc: Arc) -> None:
    assert [math.dist(arc.at(k / 4), arc.center) for k in range(5)] == pytest.approx([arc.radius] * 5)
    assert (arc.start, arc.mid, arc.end) == (arc.at(0), arc.at(0.5), arc.at(1))
    # A hundred small chords add up to the arc's length, each of them turning left about the center.
    points = [arc.at(k / 100) for k in range(101)]
    assert sum(map(math.dist, points, points[1:])) == pytest.approx(arc.length, rel=1e-3)
    cx, cy = arc.center
    assert all((ax - cx) * (by - cy) > (ay - cy) * (bx - cx) for (ax, ay), (bx, by) in pairwise(points))


def deviation(a: Arc, b: Arc) -> float:
    return max(math.dist(a.at(k / 8), b.at(k / 8)) for k in range(9))


def conditioning(a: Arc) -> float:
    """The deviation that rounding of the ends by one part in 1e16 causes."""
    reach = a.radius + max(map(abs, a.center))
    return 1e-9 + 1e-15 * reach * a.radius / math.dist(a.start, a.end)


@pytest.mark.parametrize("form", SWEEP_FORMS)
@given(arc=ARCS)
@example(arc=SEMICIRCLE)
def test_forms_with_a_sweep_round_trip(form: str, arc: Arc) -> None:
    back = SWEEP_FORMS[form](arc)
    assert deviation(arc, back) <= conditioning(arc)
    assert back.construction == arc.construction


@given(st.tuples(NEAR, NEAR), st.floats(0.1, 5), st.floats(-20, 20), st.floats(-20, 20))
def test_full_turns_in_angles_do_not_matter(center: tuple[float, float], r: float, a: float, b: float) -> None:
    assume(1e-3 < (b - a) % math.tau < math.tau - 1e-3)
    plain, turned = arc_from_angles(center, r, a, b), arc_from_angles(center, r, a - 4 * math.tau, b + 3 * math.tau)
    assert deviation(plain, turned) < 1e-9


def test_invalid_numbers_and_extreme_sweeps_of_arcs_are_refused() -> None:
    a, b, not_finite = (0, 0), (1, 0), (math.nan, math.inf, -math.inf)
    cases: list[tuple[Any, ...]] = [(arc_from_angles, a, 1, 0, bad) for bad in (*not_finite, 0.0, math.tau)]
    cases += [(arc_from_sweep, a, b, bad) for bad in (*not_finite, 0.0, 1e300)]
    cases += [(arc_from_bulge, a, b, bad) for bad in (*not_finite, 0.0)]
    for bad in (math.nan, math.inf, 1e300):
        cases += [(arc_from_sweep, (0, bad), b, 1.0), (arc_from_bulge, a, (bad, 0), 0.5)]
    for make, *arguments in cases:
        with pytest.raises(GeometryError):
            make(*arguments)
    for sweep in (5e-324, 1e-300, 1e-13, math.tau, math.nextafter(math.tau, 0), math.nextafter(math.tau, 10)):
        for start, end, signed in (((0, 0), (1, 0), sweep), ((1e6, 0), (1e6, 1e-9), -sweep)):
            try:
                arc = arc_from_sweep(start, end, signed)
            except GeometryError:
                continue
            assert 0 < arc.sweep < math.tau
