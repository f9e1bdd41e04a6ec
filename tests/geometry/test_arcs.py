"""Every way of writing an arc leads back to the same arc."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import (
    TAU,
    Arc,
    arc_from_angles,
    arc_from_bulge,
    arc_from_points,
    arc_from_signed_radius,
    arc_from_sweep,
    bulge,
    signed_radius,
)

# Minor and major arcs, semicircles and their neighbors, and sweeps close to nothing and to a full turn.
SWEEPS = st.one_of(
    st.floats(1e-3, TAU - 1e-3),
    st.sampled_from([math.pi / 2, math.pi, 3 * math.pi / 2]),
    st.floats(-1e-2, 1e-2).map(lambda d: math.pi + d),
    st.floats(1e-5, 1e-2),
    st.floats(1e-5, 1e-2).map(lambda d: TAU - d),
)
NEAR = st.floats(-5, 5)
ARCS = st.builds(Arc, st.tuples(NEAR, NEAR), st.floats(0.1, 5), st.floats(-10, 10), SWEEPS, st.booleans())
SEMICIRCLE = Arc((0.3, -4.1), 1.7, 0.777, math.pi)

Form = Callable[[Arc], Arc]


def by_angles(a: Arc) -> Arc:
    return arc_from_angles(a.center, a.radius, a.start_angle, a.end_angle, construction=a.construction)


def by_sweep(a: Arc) -> Arc:
    return arc_from_sweep(a.start, a.end, a.sweep, construction=a.construction)


def by_clockwise_sweep(a: Arc) -> Arc:
    return arc_from_sweep(a.end, a.start, -a.sweep, construction=a.construction)


def by_bulge(a: Arc) -> Arc:
    return arc_from_bulge(a.start, a.end, bulge(a), construction=a.construction)


def by_negative_bulge(a: Arc) -> Arc:
    return arc_from_bulge(a.end, a.start, -bulge(a), construction=a.construction)


def by_signed_radius(a: Arc) -> Arc:
    return arc_from_signed_radius(a.start, a.end, signed_radius(a), construction=a.construction)


def by_points(a: Arc) -> Arc:
    return arc_from_points(a.start, a.mid, a.end, construction=a.construction)


def by_points_backwards(a: Arc) -> Arc:
    return arc_from_points(a.end, a.at(0.3), a.start, construction=a.construction)


def astray(a: Arc, b: Arc) -> float:
    """How far apart two arcs run, at their ends and in between."""
    return max(math.dist(a.at(k / 8), b.at(k / 8)) for k in range(9))


def unsure(a: Arc) -> float:
    """How far a form with ends may stray when rounding moves the ends by one part in 1e16 of what is around."""
    reach = a.radius + max(map(abs, a.center))
    return 1e-9 + 1e-15 * reach * a.radius / math.dist(a.start, a.end)


@pytest.mark.parametrize("form", [by_angles, by_sweep, by_clockwise_sweep, by_bulge, by_negative_bulge])
@given(arc=ARCS)
@example(arc=SEMICIRCLE)
def test_arcs_survive_forms_with_a_sweep(form: Form, arc: Arc) -> None:
    back = form(arc)
    assert astray(arc, back) <= unsure(arc)
    assert back.construction == arc.construction


@given(ARCS)
@example(SEMICIRCLE)
def test_arcs_survive_the_signed_radius(arc: Arc) -> None:
    # This close to a semicircle, one part in 1e16 of the radius is 1e-8 of it in height: no computer can do better.
    assume(arc.sweep == math.pi or abs(arc.sweep - math.pi) > 1e-5)
    back = by_signed_radius(arc)
    assert astray(arc, back) <= unsure(arc) + 1e-15 * 10 / max(abs(arc.sweep - math.pi), 1e-5)
    assert back.radius == arc.radius
    assert back.construction == arc.construction


@given(st.floats(-1e-5, 1e-5), ARCS)
def test_the_signed_radius_is_good_to_1e_7_at_a_semicircle(off: float, arc: Arc) -> None:
    arc = replace(arc, sweep=math.pi + off)
    assert astray(arc, by_signed_radius(arc)) <= 2e-7 * (arc.radius + max(map(abs, arc.center)))


@pytest.mark.parametrize("form", [by_points, by_points_backwards])
@given(arc=ARCS)
@example(arc=SEMICIRCLE)
def test_arcs_survive_three_points(form: Form, arc: Arc) -> None:
    assume(1e-3 < arc.sweep < TAU - 1e-4)  # flatter than that, three points tell little about the center
    back = form(arc)
    assert astray(arc, back) <= 1e-9
    assert back.construction == arc.construction


@given(ARCS)
def test_the_sign_of_the_radius_tells_major_from_minor(arc: Arc) -> None:
    kappa = signed_radius(arc)
    assert (kappa < 0) == (arc.sweep > math.pi)
    assume(abs(arc.sweep - math.pi) > 1e-3)
    other = arc_from_signed_radius(arc.start, arc.end, -kappa)
    assert other.sweep == pytest.approx(TAU - arc.sweep)
    # Both run counter-clockwise between the same ends: together they are not one circle, but mirror images' halves.
    assert math.dist(other.start, arc.start) < 1e-6
    assert math.dist(other.end, arc.end) < 1e-6


@given(st.tuples(NEAR, NEAR), st.floats(0.1, 5), st.floats(-20, 20), st.floats(-20, 20))
def test_angles_may_be_written_in_any_turn(center: tuple[float, float], r: float, a: float, b: float) -> None:
    assume(1e-3 < (b - a) % TAU < TAU - 1e-3)
    plain, turned = arc_from_angles(center, r, a, b), arc_from_angles(center, r, a - 4 * TAU, b + 3 * TAU)
    assert astray(plain, turned) < 1e-9


@pytest.mark.parametrize("off", [0.0, 1e3, -1e5])
@pytest.mark.parametrize("ulps", [-2, -1, 0, 1, 2])
def test_a_semicircle_stays_one_whichever_way_its_radius_is_rounded(off: float, ulps: int) -> None:
    start, end = (off + 0.1, off + 0.7), (off - 1.3, off + 0.2)
    radius = math.dist(start, end) / 2 * (1 + ulps * 2.3e-16)
    for sign in (1, -1):
        assert arc_from_signed_radius(start, end, sign * radius).sweep == pytest.approx(
            math.pi, abs=1e-3 if off else 1e-7
        )


def test_a_radius_that_is_too_short_is_refused() -> None:
    with pytest.raises(GeometryError, match=r"no arc of radius 0\.99 joins ends 2\.0 apart"):
        arc_from_signed_radius((0, 0), (2, 0), -0.99)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, 1e300])
def test_scalars_that_make_no_arc_are_refused(bad: float) -> None:
    for make in (arc_from_sweep, arc_from_signed_radius):
        with pytest.raises(GeometryError):
            make((0, 0), (1, 0), bad)
    if bad != 1e300:  # beyond 1e16 a bulge is a full turn, and refused as that
        with pytest.raises(GeometryError):
            arc_from_bulge((0, 0), (1, 0), bad)
    with pytest.raises(GeometryError):
        arc_from_angles((0, 0), 1, 0, bad if bad != 1e300 else TAU)


@pytest.mark.parametrize("sweep", [5e-324, 1e-300, 1e-13, TAU, math.nextafter(TAU, 0), math.nextafter(TAU, 10)])
def test_sweeps_at_the_edge_of_nothing_are_refused_with_a_sentence(sweep: float) -> None:
    for make in (
        lambda: arc_from_sweep((0, 0), (1, 0), sweep),
        lambda: arc_from_sweep((1e6, 0), (1e6, 1e-9), -sweep),
    ):
        try:
            arc = make()
        except GeometryError:
            continue
        assert 0 < arc.sweep < TAU


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_places_that_are_no_numbers_make_no_arc(bad: float) -> None:
    for make in (
        lambda: arc_from_points((bad, 0), (0, 1), (1, 0)),
        lambda: arc_from_points((0, 0), (0, bad), (1, 0)),
        lambda: arc_from_sweep((0, bad), (1, 0), 1.0),
        lambda: arc_from_bulge((0, 0), (bad, 0), 0.5),
        lambda: arc_from_signed_radius((0, 0), (bad, 0), 3.0),
    ):
        with pytest.raises(GeometryError):
            make()


@pytest.mark.parametrize("places", [((0, 0), (1, 1), (2, 2)), ((0, 0), (0, 0), (1, 0)), ((0, 0), (1, 0), (0, 0))])
def test_three_points_on_a_line_make_no_arc(places: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(GeometryError, match="on one line"):
        arc_from_points(*places)
