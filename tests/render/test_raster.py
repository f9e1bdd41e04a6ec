"""Raster pictures: ink along the curves, in proportion to length and width, and nowhere else; and GIFs."""

from __future__ import annotations

import math
from dataclasses import replace
from io import BytesIO

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
        case Arc():
            return primitive.at(fraction)
        case Point(at):
            return at


def at(pixels: np.ndarray, view: Frame, point: tuple[float, float]) -> float:
    """The darkest of the pixels around a point: a curve may run between two."""
    x, y = view.to_pixel(point)
    return float(pixels[round(y) - 1 : round(y) + 1, round(x) - 1 : round(x) + 1].max())


@given(st.lists(primitives, min_size=1, max_size=6), st.floats(-6, 6), st.sampled_from([64, 160, 333]))
@settings(max_examples=30)
def test_ink_along_every_curve(items: list[Primitive], magnitude: float, size: int) -> None:
    solid = [type(p)(*(getattr(p, name) for name in p.__slots__ if name != "construction")) for p in items]
    sketch = Sketch(tuple(solid)).moved(10**magnitude)
    view = frame(sketch, size, size, BLACK)
    pixels = ink(png(sketch, size, style=BLACK))
    for primitive in sketch:
        for fraction in np.linspace(0, 1, 17):
            # An end in the corner of a pixel inks no more than a quarter of it.
            assert at(pixels, view, along(primitive, float(fraction))) > 0.2


CURVES = [Line((0, 0), (10, 3)), Line((0, 0), (10, 0)), Circle((3, 4), 5), Arc((0, 0), 7, 0.4, 5), Arc((0, 0), 7, 2, 1)]


@pytest.mark.parametrize("size", [160, 400, 1000])
def test_ink_is_length_times_width(size: int) -> None:
    for primitive in CURVES:
        sketch = Sketch((primitive,))
        length = primitive.length * frame(sketch, size, size, BLACK).scale
        width = BLACK.sized(size).width
        expected = length * width + (0 if isinstance(primitive, Circle) else math.pi * width**2 / 4)
        assert ink(png(sketch, size, style=BLACK)).sum() == pytest.approx(expected, rel=0.06)


def test_ink_of_dashes() -> None:
    style = BLACK.sized(400)
    share = style.dash / (style.dash + style.gap)
    for primitive in (CURVES[0], CURVES[2], CURVES[3]):
        sketch = Sketch((replace(primitive, construction=True),))
        length = primitive.length * frame(sketch, 400, 400, BLACK).scale
        expected = length * style.construction_width * share
        assert ink(png(sketch, 400, style=BLACK)).sum() == pytest.approx(expected, rel=0.08)


def test_rest_of_an_arcs_circle_is_blank() -> None:
    """Quarter arc from the right to the top: the picture's lower left corner, and the chord's far side, stay white."""
    sketch = Sketch((Arc((0, 0), 1, 0, math.pi / 2),))
    view = frame(sketch, 300, 300, BLACK)
    pixels = ink(png(sketch, 300, style=BLACK))
    assert at(pixels, view, (math.sqrt(0.5), math.sqrt(0.5))) > 0.8
    assert at(pixels, view, (0.3, 0.3)) == 0
    assert at(pixels, view, (0.5, 0.5)) == 0


def test_margin_is_blank() -> None:
    style = Style(palette=("#000000",), margin=0.1)
    pixels = ink(png(Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1)), Circle((0.5, 0.5), 0.5))), 200, style=style))
    pixels[17:183, 17:183] = 0
    assert pixels.sum() == 0


def test_construction_point_is_hollow() -> None:
    size = 400
    sketch = Sketch((Point((0, 0)), Point((1, 1), construction=True)))
    view = frame(sketch, size, size, BLACK)
    pixels = ink(png(sketch, size, style=BLACK))
    assert at(pixels, view, (0, 0)) == 1
    x, y = view.to_pixel((1, 1))
    assert pixels[int(y), int(x)] == 0
    assert pixels[:200, 200:].sum() > 10


@given(sketches(max_size=4), st.floats(-6, 6))
@settings(max_examples=20)
def test_picture_is_independent_of_units(sketch: Sketch, magnitude: float) -> None:
    power = 2.0 ** round(magnitude * 3)  # exact in floating point
    assert png(sketch, 64).tobytes() == png(sketch.moved(power), 64).tobytes()


def test_extremes_empty_and_large_sketches_leave_ink() -> None:
    for sketch in (
        Sketch((Line((0, 0), (1e6, 1e-6)),)),
        Sketch((Circle((0, 0), 1e-9), Line((0, 0), (1e6, 0)))),
        Sketch((Arc((0, -1e11), 1e11, math.pi / 2 - 1e-8, 2e-8),)),
        Sketch((Line((0, 0), (1e-6, 0), True), Line((0, 0), (1, 1)))),
        Sketch((Circle((1e11, 1e11), 1e-6),)),
    ):
        assert ink(png(sketch, 160, style=BLACK)).sum() > 1
    assert 5 < ink(png(Sketch(()), 200)).sum() < 2000  # a text
    sketch = Sketch(tuple(Line((i % 100, i // 100), (i % 100 + 0.8, i // 100), i % 3 == 0) for i in range(10_000)))
    assert ink(png(sketch, 300)).sum() > 1000


PICTURES = [png(Sketch((Circle((0, 0), 1), Line((-1, 0), (x, 1)))), 80) for x in (0.1, 0.4, 0.7)]
SECONDS = [0.1, 0.25, 2.0]


def test_gif_keeps_pictures_and_durations_and_is_reproducible() -> None:
    assert gif(PICTURES, SECONDS) == gif(PICTURES, SECONDS)
    with Image.open(BytesIO(gif(PICTURES, SECONDS))) as read:
        assert read.info["loop"] == 0
        assert [page.info["duration"] for page in ImageSequence.Iterator(read)] == [100, 250, 2000]
        for page, picture in zip(ImageSequence.Iterator(read), PICTURES, strict=True):
            shown, meant = (np.asarray(each.convert("RGB"), dtype=int) for each in (page, picture))
            assert np.abs(shown - meant).max() < 64
            assert np.abs(shown - meant).mean() < 1
            assert (shown[0, 0] == 255).all()
