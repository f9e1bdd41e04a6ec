"""Raster pictures: ink along the curves, in proportion to length and width, and nowhere else; and GIFs."""

from __future__ import annotations

import math
from dataclasses import replace
from io import BytesIO
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageSequence
from support.strategies import primitives, sketches

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch
from sketchdnn.render import Frame, Style, frame, png
from sketchdnn.render.raster import gif

BLACK = Style(palette=("#000000",))


def ink(image: Image.Image) -> np.ndarray:
    """0 for white to 1 for black."""
    return 1 - np.asarray(image.convert("L"), dtype=float) / 255


def along(primitive: Primitive, fraction: float) -> tuple[float, float]:
    match primitive:
        case Line((x1, y1), (x2, y2)):
            return (x1 + fraction * (x2 - x1), y1 + fraction * (y2 - y1))
        case Circle(center, radius):
            return Arc(center, radius, 0.0, math.tau * 0.999).at(fraction)
    return primitive.at if isinstance(primitive, Point) else primitive.at(fraction)


def at(pixels: np.ndarray, view: Frame, point: tuple[float, float]) -> float:
    """The darkest of the pixels around a point: a curve may run between two."""
    x, y = view.to_pixel(point)
    return float(pixels[round(y) - 1 : round(y) + 1, round(x) - 1 : round(x) + 1].max())


@given(st.lists(primitives, min_size=1, max_size=6), st.floats(-6, 6), st.sampled_from([64, 160, 333]))
@settings(max_examples=30)
def test_ink_along_every_curve(items: list[Primitive], magnitude: float, size: int) -> None:
    solid = [replace(p, construction=False) for p in items]
    sketch = Sketch(tuple(solid)).moved(10**magnitude)
    view = frame(sketch, size, size, BLACK)
    pixels = ink(png(sketch, size, style=BLACK))
    for primitive in sketch:
        for fraction in np.linspace(0, 1, 17):
            # An end in the corner of a pixel inks no more than a quarter of it.
            assert at(pixels, view, along(primitive, float(fraction))) > 0.2


CURVES = [Line((0, 0), (10, 3)), Line((0, 0), (10, 0)), Circle((3, 4), 5), Arc((0, 0), 7, 0.4, 5), Arc((0, 0), 7, 2, 1)]


def test_ink_is_length_times_width() -> None:
    for primitive, size in product(CURVES, [160, 400, 1000]):
        sketch = Sketch((primitive,))
        length = primitive.length * frame(sketch, size, size, BLACK).scale
        width = BLACK.sized(size).width
        expected = length * width + (0 if isinstance(primitive, Circle) else math.pi * width**2 / 4)
        assert ink(png(sketch, size, style=BLACK)).sum() == pytest.approx(expected, rel=0.06)
    style = BLACK.sized(400)
    share = style.dash / (style.dash + style.gap)
    for primitive in (CURVES[0], CURVES[2], CURVES[3]):
        sketch = Sketch((replace(primitive, construction=True),))
        length = primitive.length * frame(sketch, 400, 400, BLACK).scale
        expected = length * style.construction_width * share
        assert ink(png(sketch, 400, style=BLACK)).sum() == pytest.approx(expected, rel=0.08)


def test_rest_of_an_arcs_circle_margin_and_construction_point_are_blank() -> None:
    # A quarter arc from the right to the top: the lower left corner and the chord's far side stay white.
    sketch = Sketch((Arc((0, 0), 1, 0, math.pi / 2),))
    view = frame(sketch, 300, 300, BLACK)
    pixels = ink(png(sketch, 300, style=BLACK))
    assert at(pixels, view, (math.sqrt(0.5), math.sqrt(0.5))) > 0.8
    assert at(pixels, view, (0.3, 0.3)) == at(pixels, view, (0.5, 0.5)) == 0
    style = Style(palette=("#000000",), margin=0.1)
    pixels = ink(png(Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1)), Circle((0.5, 0.5), 0.5))), 200, style=style))
    pixels[17:183, 17:183] = 0
    assert pixels.sum() == 0
    # A construction point is hollow.
    sketch = Sketch((Point((0, 0)), Point((1, 1), construction=True)))
    view = frame(sketch, 400, 400, BLACK)
    pixels = ink(png(sketch, 400, style=BLACK))
    x, y = map(int, view.to_pixel((1, 1)))
    assert (at(pixels, view, (0, 0)), pixels[y, x]) == (1, 0)
    assert pixels[:200, 200:].sum() > 10


@given(sketches(max_size=4), st.integers(-18, 18))
@settings(max_examples=20)
def test_picture_is_independent_of_units(sketch: Sketch, exponent: int) -> None:
    assert png(sketch, 64).tobytes() == png(sketch.moved(2.0**exponent), 64).tobytes()  # exact in floating point


def test_extremes_empty_and_large_sketches_leave_ink() -> None:
    single = Line((0, 0), (1e6, 1e-6)), Arc((0, -1e11), 1e11, math.pi / 2 - 1e-8, 2e-8), Circle((1e11, 1e11), 1e-6)
    tiny = (Circle((0, 0), 1e-9), Line((0, 0), (1e6, 0))), (Line((0, 0), (1e-6, 0), True), Line((0, 0), (1, 1)))
    for drawn in (*((p,) for p in single), *tiny):
        assert ink(png(Sketch(drawn), 160, style=BLACK)).sum() > 1
    assert 5 < ink(png(Sketch(()), 200)).sum() < 2000  # a text
    sketch = Sketch(tuple(Line((i % 100, i // 100), (i % 100 + 0.8, i // 100), i % 3 == 0) for i in range(10_000)))
    assert ink(png(sketch, 300)).sum() > 1000


def test_gif_keeps_pictures_and_durations_and_is_reproducible() -> None:
    pictures = [png(Sketch((Circle((0, 0), 1), Line((-1, 0), (x, 1)))), 80) for x in (0.1, 0.4, 0.7)]
    animation, again = (gif(pictures, [0.1, 0.25, 2.0]) for _ in range(2))
    assert animation == again
    with Image.open(BytesIO(animation)) as read:
        assert read.info["loop"] == 0
        assert [page.info["duration"] for page in ImageSequence.Iterator(read)] == [100, 250, 2000]
        for page, picture in zip(ImageSequence.Iterator(read), pictures, strict=True):
            shown, meant = (np.asarray(each.convert("RGB"), dtype=int) for each in (page, picture))
            assert np.abs(shown - meant).max() < 64
            assert np.abs(shown - meant).mean() < 1
            assert shown[0, 0].min() == 255
