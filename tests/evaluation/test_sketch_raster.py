"""Every pixel agrees with the definition by exact distances, for any curve and on every device."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.corpora import open_sketches, parts
from support.sketch_sets import rows
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.raster import CONSTRUCTION_INK, MARGIN, POINT_RADIUS, SIZE, STROKE, rasterize
from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Sketch, arc_from_sweep, normalize
from sketchdnn.representation import Compact, encode, layout


def definition(compact: Compact, size: int, stroke: float) -> NDArray[np.float64]:
    """The gray of all pixels, one primitive after another, in float64 and by angles."""
    half, scale = size / 2, size * (1 - 2 * MARGIN) / 2
    column, row = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5)
    x, y = (column - half) / scale, (half - row) / scale
    ink = np.zeros((len(compact), size, size))
    for image, kinds, flags, numbers in zip(ink, compact.kind, compact.construction, compact.params, strict=True):
        for kind, flag, params in zip(kinds, flags, numbers.astype(np.float64), strict=True):
            if kind == layout.NONE:
                continue
            reach = 0.5 + (POINT_RADIUS * stroke if kind == Kind.POINT else stroke / 2)
            shade = np.clip(reach - scale * distance(kind, params, x, y), 0, 1)
            np.maximum(image, shade * (CONSTRUCTION_INK if flag else 1), out=image)
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


def raw(kind: Kind, *params: float) -> Compact:
    """A single row, even one that is not a valid primitive."""
    numbers = np.zeros((1, 1, layout.MAX_KIND_PARAMS), np.float32)
    numbers[0, 0, : len(params)] = params
    return Compact(np.full((1, 1), kind, np.uint8), np.zeros((1, 1), bool), numbers)


def assert_as_defined(compact: Compact, size: int = SIZE, stroke: float = STROKE) -> None:
    image = rasterize(compact, size=size, stroke=stroke).numpy()
    assert image.dtype == np.uint8
    # Half a level for rounding, and a little for a ten-thousandth of a pixel and float32.
    assert np.abs(image - definition(compact, size, stroke)).max(initial=0) <= 0.6


@given(st.lists(sketches(max_size=6), min_size=1, max_size=3))
@settings(max_examples=40)
def test_random_sketches_agree_with_the_definition(items: list[Sketch]) -> None:
    assert_as_defined(encode([normalize(sketch)[0] for sketch in items]), 160)


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
def test_any_rows_agree_with_the_definition(items: list[tuple[float, ...]], size: int, stroke: float) -> None:
    for kind, *params in items:
        assert_as_defined(raw(Kind(int(kind)), *params), size, min(stroke, size * 0.9))


@given(st.floats(-6, 0), st.floats(-5, -0.01), number, number, st.floats(0, TAU))
@settings(max_examples=60)
def test_tiny_curves_agree_with_the_definition(power: float, bend: float, x: float, y: float, turn: float) -> None:
    small, dx, dy = 10**power, math.cos(turn) * 10**power, math.sin(turn) * 10**power
    assert_as_defined(raw(Kind.CIRCLE, x, y, small), 64)
    assert_as_defined(raw(Kind.LINE, x, y, x + dx, y + dy), 64)
    for angle in (10**bend, math.pi - 10**bend, math.pi + 10**bend, TAU - 10**bend - 1e-6):
        assert_as_defined(raw(Kind.ARC, x, y, x + dx, y + dy, angle), 64)


@given(st.floats(-9, -1), st.floats(0, TAU), st.floats(0.05, 1.4))
@settings(max_examples=40)
def test_nearly_straight_arcs_agree_with_the_definition(power: float, turn: float, half: float) -> None:
    x, y = half * math.cos(turn), half * math.sin(turn)
    assert_as_defined(raw(Kind.ARC, x, y, -x, -y, 10**power), 96)


def test_circles_of_all_sizes_and_wide_strokes() -> None:
    radii = (0, 1e-4, 0.001, 0.004, 0.008, 0.0102, 0.0103, 0.011, 0.02, 0.0247, 0.1, 0.5, 1, 1.5, 40)
    for radius, stroke in product(radii, (0.2, 1.0, 1.75, 1.828, 1.83, 2.5, 12.0)):
        for x, y in ((0.0, 0.0), (0.003, -0.002), (0.9, 1.05), (-1.1, 0.2)):
            assert_as_defined(raw(Kind.CIRCLE, x, y, radius), 130, stroke)
    for size, x in product((1, 3, 6, 11), np.linspace(-1.7, 1.7, 9)):
        assert_as_defined(raw(Kind.CIRCLE, x, 0.14, 0.006), size, 0.9 * size)
        assert_as_defined(raw(Kind.LINE, x, 1.13, 1.5, x / 2), size, 0.9 * size)
        assert_as_defined(raw(Kind.ARC, x, -0.97, -0.83, x, 3.14), size, 0.9 * size)


def test_procedural_and_real_sketches_agree_with_the_definition(real_data: Path) -> None:
    assert_as_defined(encode([normalize(part)[0] for part in parts(12)]))
    real = [normalize(sketch)[0] for sketch in open_sketches(real_data, 60)]
    assert_as_defined(encode(real, max_primitives=max(map(len, real))))


def test_frame_and_amount_of_ink() -> None:
    image = rasterize(rows([Circle((0, 0), 1)]))[0]
    inked = (image < 255).nonzero()
    edge = SIZE * MARGIN
    assert (inked.min(), inked.max()) == (math.floor(edge - STROKE / 2), SIZE - 1 - math.floor(edge - STROKE / 2))
    # A quarter circle from the right to the top is in the upper right: y is up, arcs run counter-clockwise.
    image = rasterize(rows([Arc((0, 0), 1, 0.1, math.pi / 2 - 0.2)]), size=100)[0] < 255
    assert image[:50, 50:].any()
    assert image.sum() == image[:50, 50:].sum()
    for item in (Line((-1, -0.3), (1, 0.8)), Circle((0.1, 0), 0.8), Arc((0, 0), 0.9, 1.0, 4.0)):
        length = item.length * SIZE * (1 - 2 * MARGIN) / 2
        caps = 0 if isinstance(item, Circle) else STROKE
        ink = 1 - rasterize(rows([item])).double() / 255
        assert float(ink.sum()) == pytest.approx((length + caps * math.pi / 4) * STROKE, rel=0.01)
    # Construction has half the ink, and a line under construction keeps its own.
    ink = 255 - rasterize(rows([Line((-1, 0), (1, 0))], [Line((-1, 0), (1, 0), True)])).double()
    assert float(ink[1].sum()) == pytest.approx(CONSTRUCTION_INK * float(ink[0].sum()), rel=0.005)
    both = Sketch((Line((-1, 0), (1, 0)), Line((-1, 0), (1, 0), construction=True)))
    alone = Sketch(both.primitives[:1])
    assert torch.equal(*rasterize(encode([both, alone])))
    dot = rasterize(raw(Kind.LINE, 0.3, 0.2, 0.3, 0.2))
    assert 0 < (255 - dot.long()).sum() < 255 * 10
    assert torch.equal(dot, rasterize(raw(Kind.ARC, 0.3, 0.2, 0.3, 0.2, 2.0)))


def test_empty_and_invalid_images() -> None:
    compact = encode([normalize(part)[0] for part in parts(80)])
    together = rasterize(compact)
    shuffled = np.argsort(np.random.default_rng(0).random(compact.kind.shape), axis=1)
    assert torch.equal(rasterize(compact.permuted(shuffled)), together)
    assert torch.equal(torch.cat([rasterize(compact[i : i + 1]) for i in range(80)]), together)
    for compact in (
        raw(Kind.CIRCLE, 1e30, 0, 1),
        raw(Kind.LINE, 1e30, 3, -1e30, 3),
        raw(Kind.ARC, 3, -1e20, 3, 1e20, 1e-30),
        raw(Kind.ARC, 5, 5, 9e9, 9e9, 0.1),
        raw(Kind.POINT, 5e37, -1),
    ):
        assert bool((rasterize(compact) == 255).all())
    assert_as_defined(raw(Kind.LINE, -2000, -1500, 2000, 1500), 100)
    images = rasterize(encode([Sketch(()), Sketch((Circle((0, 0), 1),))]))
    assert bool((images[0] == 255).all())
    assert bool((images[1] == 0).any())
    assert rasterize(encode([])).shape == (0, SIZE, SIZE)
    # Read-only arrays can be drawn.
    compact = encode([Sketch((Circle((0, 0), 1),))])
    for array in (compact.kind, compact.construction, compact.params):
        array.flags.writeable = False
    assert bool((rasterize(compact) == 0).any())
    for value in (math.nan, math.inf, -math.inf):
        compact = encode([Sketch((Circle((0, 0), 1),))] * 5)
        compact.params[[1, 3], 0, 0] = value
        with pytest.raises(SketchError, match="2 of 5 sketches hold a number that is not finite"):
            rasterize(compact)
    circle = raw(Kind.CIRCLE, 0, 0, -0.1)
    for compact in (circle, *(raw(Kind.ARC, 0, 0, 1, 0, sweep) for sweep in (0, 6.2831855, -1))):
        with pytest.raises(SketchError, match="1 of 1 sketches hold an arc or circle that cannot exist"):
            rasterize(compact)
    for size, stroke in ((0, 1.0), (10, 0.0), (10, math.nan), (10, 10.0)):
        with pytest.raises(SketchError, match="cannot be drawn with a stroke"):
            rasterize(encode([]), size=size, stroke=stroke)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_gpu_draws_the_same_images() -> None:
    compact = encode([normalize(part)[0] for part in parts(300)])
    items = (raw(Kind.ARC, -1, 0, 1, 0.1, 1e-5), raw(Kind.CIRCLE, 0.2, 0.1, 1e-3), raw(Kind.LINE, -9, 2, 8, -3))
    for each in (compact, *items):
        here, there = rasterize(each), rasterize(each, device="cuda").cpu()
        assert int((here.int() - there.int()).abs().max()) <= 1
