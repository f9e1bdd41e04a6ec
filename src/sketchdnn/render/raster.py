"""Raster pictures: drawn several times larger with Pillow, then averaged down, which smooths every edge; and GIFs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Sketch, Vec

from .annotations import ConstraintStatus, Layer, legend, sketch_layers
from .style import EMPTY_TEXT, Frame, Stroke, Style, blend

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont


# Samples per pixel and axis: as many as keep the large picture about this wide, within these limits.
_LARGE_SIZE = 4000
_MIN_SAMPLES, _MAX_SAMPLES = 2, 6
_TEXT_SAMPLES = 4
# The distance of a chord from its arc, in pixels of the large picture.
_CHORD_ERROR = 0.25
# The distance of the corners of a straight edge, in the same pixels.
_CORNER_SPACING = 25


def png(
    sketch: Sketch, size: int = 400, *, style: Style | None = None, status: ConstraintStatus | None = None
) -> Image:
    """A square picture of a sketch, `size` pixels wide; `.save(path)` writes it.

    With a status, its constraints are drawn, with a legend below.

    >>> png(Sketch((Circle((0, 0), 2),)), 64).size
    (64, 64)
    """
    style = (style or Style()).sized(size)
    image = picture(sketch, size, size, style, status)
    return with_legend(image, [sketch], [status], style) if status else image


def picture(sketch: Sketch, width: int, height: int, style: Style, status: ConstraintStatus | None = None) -> Image:
    """A sketch on its background, without a legend."""
    if not len(sketch):
        image = draw_strokes((), Frame(width, height, (0.0, 0.0), 1.0), style)
        draw_text(image, EMPTY_TEXT, width / 2, height / 2, style)
        return image
    return draw_layers(sketch_layers(sketch, width, height, style, status), width, height, style.background)


def draw_strokes(items: Iterable[Stroke], view: Frame, style: Style) -> Image:
    """Draw strokes on the background of a style."""
    return draw_layers([Layer(tuple(items), view, style)], int(view.width), int(view.height), style.background)


def draw_layers(layers: Sequence[Layer], width: int, height: int, background: str) -> Image:
    """Draw layers in order, then all texts."""
    from PIL import Image, ImageDraw

    samples = max(_MIN_SAMPLES, min(_MAX_SAMPLES, _LARGE_SIZE // max(width, height)))
    large = Image.new("RGB", (width * samples, height * samples), background)
    pen = ImageDraw.Draw(large)
    for layer in layers:
        view, style = layer.view.times(samples), layer.style.times(samples)
        for stroke in layer.strokes:
            _draw_stroke(pen, stroke.times(samples), view, style)
    image = large.reduce(samples)
    for layer in layers:
        for text in layer.texts:
            draw_text(image, text.text, *text.at, layer.style, from_left=text.from_left)
    return image


def with_legend(image: Image, sketches: Sequence[Sketch], statuses: Sequence[ConstraintStatus], style: Style) -> Image:
    """An image with the legend of its colors and symbols below."""
    from PIL import Image

    layers, height = legend(sketches, statuses, image.width, style)
    lower = draw_layers(layers, image.width, max(1, math.ceil(height)), style.background)
    both = Image.new("RGB", (image.width, image.height + lower.height))
    both.paste(image, (0, 0))
    both.paste(lower, (0, image.height))
    return both


def draw_text(image: Image, text: str, x: float, y: float, style: Style, *, from_left: bool = False) -> None:
    """Draw a text around a pixel, or from there; large first, since fonts space small letters by whole pixels."""
    from PIL import Image, ImageDraw

    letters = _font(style.text_size * _TEXT_SAMPLES)
    if from_left:
        x += letters.getlength(text) / _TEXT_SAMPLES / 2
    left, top, right, bottom = letters.getbbox(text, anchor="mm")
    width = math.ceil(max(-left, right) / _TEXT_SAMPLES) + 1
    height = math.ceil(max(-top, bottom) / _TEXT_SAMPLES) + 1
    large = Image.new("L", (2 * width * _TEXT_SAMPLES, 2 * height * _TEXT_SAMPLES))
    middle = (width * _TEXT_SAMPLES, height * _TEXT_SAMPLES)
    ImageDraw.Draw(large).text(middle, text, fill=255, font=letters, anchor="mm")
    image.paste(style.text_color, (round(x) - width, round(y) - height), large.reduce(_TEXT_SAMPLES))


@cache
def _font(size: float) -> FreeTypeFont | ImageFont:
    """Pillow's built-in font: the same on every machine."""
    from PIL.ImageFont import load_default

    return load_default(size)


def _draw_stroke(pen: ImageDraw, stroke: Stroke, view: Frame, style: Style) -> None:
    color, width = stroke.color, stroke.width
    match stroke.primitive:
        case Line(start, end):
            p, q = view.to_pixel(start), view.to_pixel(end)
            for a, b in _intervals(stroke, view):
                _bar(pen, _between(p, q, a), _between(p, q, b), width, color)
            ends = [p, q]
        case Circle(center, radius) | Arc(center, radius) as curve:
            angle, sweep = (curve.start_angle, curve.sweep) if isinstance(curve, Arc) else (0.0, TAU)
            for a, b in _intervals(stroke, view):
                _band(pen, view.to_pixel(center), radius * view.scale, angle + a * sweep, (b - a) * sweep, width, color)
            ends = [view.to_pixel(curve.start), view.to_pixel(curve.end)] if isinstance(curve, Arc) else []
        case Point(at, construction):
            inner, rim = (style.background, color) if construction else (color, style.background)
            _disc(pen, view.to_pixel(at), style.dot_radius + width / 2, rim)
            _disc(pen, view.to_pixel(at), style.dot_radius - width / 2, inner)
            return
    if stroke.dash is None:  # round ends leave no notch where strokes meet; dashes have straight ends
        for end in ends:
            _disc(pen, end, width / 2, color)


def _intervals(stroke: Stroke, view: Frame) -> list[tuple[float, float]]:
    """The drawn intervals of a curve as fractions of its length: all of it, or one interval per dash."""
    if stroke.dash is None:
        return [(0.0, 1.0)]
    on, off = stroke.dash
    length = max(stroke.primitive.length * view.scale, on)
    count = math.ceil(length / (on + off) - 1e-6)
    return [(k * (on + off) / length, min(1.0, (k * (on + off) + on) / length)) for k in range(count)]


def _between(p: Vec, q: Vec, fraction: float) -> Vec:
    return (p[0] + fraction * (q[0] - p[0]), p[1] + fraction * (q[1] - p[1]))


# Pillow rounds the corners of a polygon to whole pixels, and fills every row of pixels including its edges. Many
# corners compensate the first, since their errors cancel; edges drawn slightly further in compensate the second.


def _bar(pen: ImageDraw, p: Vec, q: Vec, width: float, color: str) -> None:
    """A stroke along a line, as a polygon."""
    length, rise = math.dist(p, q), abs(q[1] - p[1])
    if length == 0:
        return
    excess = 1.0 if rise < 1 else rise / length  # a pixel along the row is this much across the line
    half = max(width - excess, 0) / 2
    offset = np.array([p[1] - q[1], q[0] - p[0]]) * (half / length)
    middle = np.linspace(p, q, 2 + int(length / _CORNER_SPACING))
    edge = np.concatenate([middle + offset, (middle - offset)[::-1]])
    pen.polygon(edge.ravel().tolist(), fill=color)


def _band(pen: ImageDraw, center: Vec, radius: float, angle: float, sweep: float, width: float, color: str) -> None:
    """A stroke along an arc, as a polygon."""
    half = max(width - 2 / math.pi, 0) / 2  # the mean of the excess over a full turn
    outer, inner = radius + half, max(radius - half, 0.0)
    step = 2 * math.sqrt(2 * _CHORD_ERROR / max(outer, 1.0))
    angles = np.linspace(angle, angle + sweep, max(2, math.ceil(sweep / step) + 1))
    unit = np.stack([np.cos(angles), -np.sin(angles)], axis=1)  # y runs down
    edge = np.concatenate([outer * unit, inner * unit[::-1]]) + center
    pen.polygon(edge.ravel().tolist(), fill=color)


def _disc(pen: ImageDraw, center: Vec, radius: float, color: str) -> None:
    half = max(radius - 0.5, 0.0)
    x, y = center
    pen.ellipse((int(x - half), int(y - half), int(x + half), int(y + half)), fill=color)


# The number of shades between the background and each color: strokes are smoothed.
_SHADES = 6


def gif(pictures: Sequence[Image], seconds: Sequence[float], style: Style | None = None) -> bytes:
    """An endless animation of pictures, each shown for its seconds. Equal pictures give equal bytes.

    All colors are shades of the style's.
    """
    from PIL import Image

    style = style or Style()
    steps = [step / _SHADES for step in range(1, _SHADES + 1)]
    shades = [blend(color, style.background, step) for color in dict.fromkeys(style.palette) for step in steps]
    table = Image.new("P", (1, 1))
    table.putpalette([value for color in (style.background, *shades) for value in bytes.fromhex(color[1:])])
    pages = [picture.quantize(palette=table, dither=Image.Dither.NONE) for picture in pictures]
    file = BytesIO()
    durations = [round(1000 * duration) for duration in seconds]
    pages[0].save(file, "gif", save_all=True, append_images=pages[1:], duration=durations, loop=0, optimize=False)
    return file.getvalue()
