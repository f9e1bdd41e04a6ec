"""Pictures for scores: every pixel as its exact distance says, whatever the curve, and the same on every device."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.corpora import open_sketches, parts
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.raster import CONSTRUCTION_INK, MARGIN, POINT_RADIUS, SIZE, STROKE, rasterize
from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Point, Sketch, arc_from_sweep, normalize
from sketchdnn.representation import Compact, encode, layout


def definition(compact: Compact, size: int, stroke: float, *, construction: bool = True) -> NDArray[np.float64]:
    """The gray of all pixels, one primitive after another, in float64 and by angles: slow and plain."""
    half, scale = size / 2, size * (1 - 2 * MARGIN) / 2
    column, row = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5)
    x, y = (column - half) / scale, (half - row) / scale
    ink = np.zeros((len(compact), size, size))
    for picture, kinds, flags, rows in zip(ink, compact.kind, compact.construction, compact.params, strict=True):
        for kind, flag, params in zip(kinds, flags, rows.astype(np.float64), strict=True):
            if kind == layout.NONE or (flag and not construction):
                continue
            reach = 0.5 + (POINT_RADIUS * stroke if kind == Kind.POINT else stroke / 2)
            shade = np.clip(reach - scale * distance(kind, params, x, y), 0, 1)
            np.maximum(picture, shade * (CONSTRUCTION_INK if flag else 1), out=picture)
    return 255 * (1 - ink)


def distance(
    kind: int, params: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    x1, y1, x2, y2, sweep = params
    if kind == Kind.POINT:
        return np.hypot(x - x1, y - y1)
    if kind == Kind.CIRCLE:
        return np.abs(np.hypot(x - x1, y - y1) - x2)
    if kind == Kind.LINE:
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        along = np.clip(((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length**2, 0, 1)
        return np.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1))
    ends = np.minimum(np.hypot(x - x1, y - y1), np.hypot(x - x2, y - y2))
    if (x1, y1) == (x2, y2):
        return ends
    arc = arc_from_sweep((x1, y1), (x2, y2), sweep)
    # In long doubles: a nearly straight arc has its center very far away.
    dx, dy = np.longdouble(x) - arc.center[0], np.longdouble(y) - arc.center[1]
    passed = np.mod(np.arctan2(dy, dx) - arc.start_angle, TAU) <= sweep
    return np.where(passed, np.abs(np.hypot(dx, dy) - arc.radius), ends).astype(np.float64)


def rows(*items: Line | Circle | Arc | Point) -> Compact:
    """One picture for each."""
    return encode([Sketch((item,)) for item in items], max_primitives=1)


def raw(kind: Kind, *params: float) -> Compact:
    """A single row, even one that no `Sketch` would hold."""
    numbers = np.zeros((1, 1, layout.MAX_KIND_PARAMS), np.float32)
    numbers[0, 0, : len(params)] = params
    return Compact(np.full((1, 1), kind, np.uint8), np.zeros((1, 1), bool), numbers)


def assert_as_defined(compact: Compact, size: int = SIZE, stroke: float = STROKE, *, construction: bool = True) -> None:
    drawn = rasterize(compact, size=size, stroke=stroke, construction=construction).numpy()
    wanted = definition(compact, size, stroke, construction=construction)
    assert drawn.dtype == np.uint8
    # Half a level for rounding, and a little for a ten-thousandth of a pixel and float32.
    assert np.abs(drawn - wanted).max(initial=0) <= 0.6


@given(st.lists(sketches(max_size=6), min_size=1, max_size=3), st.booleans())
@settings(max_examples=40)
def test_random_sketches_are_drawn_as_defined(items: list[Sketch], construction: bool) -> None:
    normal = [normalize(sketch)[0] for sketch in items]
    assert_as_defined(encode(normal), 160, construction=construction)


number = st.floats(-1.625, 1.625, width=32)
sweep = st.one_of(
    st.floats(0.01, 6.28).map(lambda a: float(np.float32(a))),
    st.floats(-6, -1).map(lambda e: float(np.float32(10**e))),
    st.floats(-5, -1).map(lambda e: float(np.float32(TAU - 10**e))),
    st.sampled_from([math.pi / 2, math.pi, 3 * math.pi / 2]),
)
any_row = st.one_of(
    st.tuples(st.just(Kind.LINE), number, number, number, number),
    st.tuples(st.just(Kind.CIRCLE), number, number, st.floats(0, 2.5, width=32)),
    st.tuples(st.just(Kind.ARC), number, number, number, number, sweep),
    st.tuples(st.just(Kind.POINT), number, number),
)


@given(st.lists(any_row, min_size=1, max_size=4), st.integers(1, 90), st.floats(0.3, 6))
@settings(max_examples=150)
def test_any_rows_are_drawn_as_defined(items: list[tuple[float, ...]], size: int, stroke: float) -> None:
    """In and out of the frame, of any size of picture and width of stroke."""
    for kind, *params in items:
        assert_as_defined(raw(Kind(int(kind)), *params), size, min(stroke, size * 0.9))


@given(st.floats(-6, 0), st.floats(-5, -0.01), number, number, st.floats(0, TAU))
@settings(max_examples=60)
def test_small_things_are_drawn_as_defined(power: float, bend: float, x: float, y: float, turn: float) -> None:
    """Down to a millionth of the frame: circles, lines and arcs that are a pixel or less."""
    small, dx, dy = 10**power, math.cos(turn) * 10**power, math.sin(turn) * 10**power
    assert_as_defined(raw(Kind.CIRCLE, x, y, small), 64)
    assert_as_defined(raw(Kind.LINE, x, y, x + dx, y + dy), 64)
    for angle in (10**bend, math.pi - 10**bend, math.pi + 10**bend, TAU - 10**bend - 1e-6):
        assert_as_defined(raw(Kind.ARC, x, y, x + dx, y + dy, angle), 64)


@given(st.floats(-9, -1), st.floats(0, TAU), st.floats(0.05, 1.4))
@settings(max_examples=40)
def test_nearly_straight_arcs_are_drawn_as_defined(power: float, turn: float, half: float) -> None:
    """Radii of up to a thousand million frames."""
    x, y = half * math.cos(turn), half * math.sin(turn)
    assert_as_defined(raw(Kind.ARC, x, y, -x, -y, 10**power), 96)


@pytest.mark.parametrize(
    "radius", [0, 1e-4, 0.001, 0.004, 0.008, 0.0102, 0.0103, 0.011, 0.02, 0.0247, 0.1, 0.5, 1, 1.5, 40]
)
@pytest.mark.parametrize("stroke", [0.2, 1.0, 1.75, 1.828, 1.83, 2.5, 12.0])
def test_circles_of_all_sizes_have_no_gaps(radius: float, stroke: float) -> None:
    """Also where a window is just long enough: 2√2·R a little below and above a whole number."""
    for x, y in ((0.0, 0.0), (0.003, -0.002), (0.9, 1.05), (-1.1, 0.2)):
        assert_as_defined(raw(Kind.CIRCLE, x, y, radius), 130, stroke)


@pytest.mark.parametrize("size", [1, 3, 6, 11])
def test_strokes_wider_than_the_picture_are_drawn_as_defined(size: int) -> None:
    for x in np.linspace(-1.7, 1.7, 9):
        assert_as_defined(raw(Kind.CIRCLE, x, 0.14, 0.006), size, 0.9 * size)
        assert_as_defined(raw(Kind.LINE, x, 1.13, 1.5, x / 2), size, 0.9 * size)
        assert_as_defined(raw(Kind.ARC, x, -0.97, -0.83, x, 3.14), size, 0.9 * size)


def test_built_in_parts_are_drawn_as_defined() -> None:
    assert_as_defined(encode([normalize(part)[0] for part in parts(12)]))


def test_real_sketches_are_drawn_as_defined(real_data: Path) -> None:
    found = [normalize(s)[0] for s in open_sketches(real_data, 60)]
    assert_as_defined(encode(found, max_primitives=max(map(len, found))))


def test_the_sketch_fills_the_frame_but_for_the_margin() -> None:
    picture = rasterize(rows(Circle((0, 0), 1)))[0]
    inked = (picture < 255).nonzero()
    edge = SIZE * MARGIN
    assert inked.min() == math.floor(edge - STROKE / 2)
    assert inked.max() == SIZE - 1 - math.floor(edge - STROKE / 2)


def test_y_runs_up_and_arcs_counter_clockwise() -> None:
    """A quarter from the right to the top is in the upper right."""
    picture = rasterize(rows(Arc((0, 0), 1, 0.1, math.pi / 2 - 0.2)), size=100)[0] < 255
    assert picture[:50, 50:].any()
    assert picture.sum() == picture[:50, 50:].sum()


@pytest.mark.parametrize("item", [Line((-1, -0.3), (1, 0.8)), Circle((0.1, 0), 0.8), Arc((0, 0), 0.9, 1.0, 4.0)])
def test_the_ink_is_length_times_stroke(item: Line | Circle | Arc) -> None:
    length = item.length * SIZE * (1 - 2 * MARGIN) / 2
    caps = 0 if isinstance(item, Circle) else STROKE
    ink = 1 - rasterize(rows(item)).double() / 255
    assert float(ink.sum()) == pytest.approx((length + caps * math.pi / 4) * STROKE, rel=0.01)


def test_construction_is_half_as_dark_or_absent() -> None:
    solid, dashed = Sketch((Line((-1, 0), (1, 0)),)), Sketch((Line((-1, 0), (1, 0), construction=True),))
    ink = 255 - rasterize(encode([solid, dashed])).double()
    assert float(ink[1].sum()) == pytest.approx(CONSTRUCTION_INK * float(ink[0].sum()), rel=0.005)
    assert bool((rasterize(encode([dashed]), construction=False) == 255).all())


def test_a_solid_line_stays_solid_under_construction() -> None:
    both = Sketch((Line((-1, 0), (1, 0)), Line((-1, 0), (1, 0), construction=True)))
    alone = Sketch(both.primitives[:1])
    assert torch.equal(*rasterize(encode([both, alone])))


def test_order_and_company_do_not_matter() -> None:
    compact = encode([normalize(part)[0] for part in parts(80)])
    together = rasterize(compact)
    shuffled = np.argsort(np.random.default_rng(0).random(compact.kind.shape), axis=1)
    assert torch.equal(rasterize(compact.permuted(shuffled)), together)
    assert torch.equal(torch.cat([rasterize(compact[i : i + 1]) for i in range(80)]), together)


def test_lines_without_length_are_dots() -> None:
    dot = rasterize(raw(Kind.LINE, 0.3, 0.2, 0.3, 0.2))
    assert 0 < (255 - dot.long()).sum() < 255 * 10
    assert torch.equal(dot, rasterize(raw(Kind.ARC, 0.3, 0.2, 0.3, 0.2, 2.0)))


def test_what_lies_far_outside_is_not_drawn() -> None:
    for compact in (
        raw(Kind.CIRCLE, 1e30, 0, 1),
        raw(Kind.LINE, 1e30, 3, -1e30, 3),
        raw(Kind.ARC, 3, -1e20, 3, 1e20, 1e-30),
        raw(Kind.ARC, 5, 5, 9e9, 9e9, 0.1),
        raw(Kind.POINT, 5e37, -1),
    ):
        assert bool((rasterize(compact) == 255).all())


def test_a_line_through_the_frame_is_drawn_however_long() -> None:
    assert_as_defined(raw(Kind.LINE, -2000, -1500, 2000, 1500), 100)


def test_empty_sketches_are_blank() -> None:
    pictures = rasterize(encode([Sketch(()), Sketch((Circle((0, 0), 1),))]))
    assert bool((pictures[0] == 255).all())
    assert bool((pictures[1] == 0).any())
    assert rasterize(encode([])).shape == (0, SIZE, SIZE)


def test_mapped_arrays_can_be_drawn() -> None:
    compact = encode([Sketch((Circle((0, 0), 1),))])
    for array in (compact.kind, compact.construction, compact.params):
        array.flags.writeable = False
    assert bool((rasterize(compact) == 0).any())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    compact = encode([Sketch((Circle((0, 0), 1),))] * 5)
    compact.params[[1, 3], 0, 0] = value
    with pytest.raises(SketchError, match="2 of 5 sketches hold a number that is not finite"):
        rasterize(compact)


@pytest.mark.parametrize(
    "compact",
    [
        raw(Kind.CIRCLE, 0, 0, -0.1),
        raw(Kind.ARC, 0, 0, 1, 0, 0),
        raw(Kind.ARC, 0, 0, 1, 0, 6.2831855),
        raw(Kind.ARC, 0, 0, 1, 0, -1),
    ],
)
def test_what_cannot_exist_is_refused(compact: Compact) -> None:
    with pytest.raises(SketchError, match="1 of 1 sketches hold an arc or circle that cannot exist"):
        rasterize(compact)


@pytest.mark.parametrize(("size", "stroke"), [(0, 1.0), (10, 0.0), (10, math.nan), (10, 10.0)])
def test_impossible_pictures_are_refused(size: int, stroke: float) -> None:
    with pytest.raises(SketchError, match="cannot be drawn with a stroke"):
        rasterize(encode([]), size=size, stroke=stroke)


def test_a_gpu_draws_the_same(cuda: str) -> None:
    compact = encode([normalize(part)[0] for part in parts(300)])
    here, there = rasterize(compact), rasterize(compact, device=cuda).cpu()
    assert int((here.int() - there.int()).abs().max()) <= 1
    for item in (raw(Kind.ARC, -1, 0, 1, 0.1, 1e-5), raw(Kind.CIRCLE, 0.2, 0.1, 1e-3), raw(Kind.LINE, -9, 2, 8, -3)):
        here, there = rasterize(item), rasterize(item, device=cuda).cpu()
        assert int((here.int() - there.int()).abs().max()) <= 1


@pytest.fixture
def cuda() -> str:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device is here")
    return "cuda"
