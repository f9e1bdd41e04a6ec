"""Sketches as pixels: drawn several times larger with Pillow, then averaged down, which smooths every edge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Sketch, Vec

from .display import EMPTY_TEXT, Frame, Stroke, Style, frame, strokes
from .legend import legend
from .notes import Layer, Notes, noted

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

# Samples a pixel and side: as many as keep the large picture about this wide, so that a poster fits in memory too.
_LARGE = 4000
_FEWEST_SAMPLES, _MOST_SAMPLES = 2, 6
_TEXT_SAMPLES = 4
# How far a chord may stay off its arc, in pixels of the large picture.
_CHORD_ERROR = 0.25
# How far apart the corners of a straight edge are, likewise.
_CORNER_SPACING = 25


def png(sketch: Sketch, size: int = 400, *, style: Style | None = None, notes: Notes | None = None) -> Image:
    """A square picture of a sketch, `size` pixels wide; `.save(path)` writes it. With notes, a legend is below it.

    >>> png(Sketch((Circle((0, 0), 2),)), 64).size
    (64, 64)
    """
    style = (style or Style()).sized(size)
    drawn = picture(sketch, size, size, style, notes)
    return drawn if notes is None else above(drawn, legend_of([sketch], [notes], size, style))


def picture(sketch: Sketch, width: int, height: int, style: Style, notes: Notes | None = None) -> Image:
    """The sketch on its background, for a picture or for a card of a gallery."""
    if not len(sketch):
        image = painted((), Frame(width, height, (0.0, 0.0), 1.0), style)
        write(image, EMPTY_TEXT, width / 2, height / 2, style)
        return image
    if notes is not None:
        return layered(noted(sketch, width, height, style, notes), width, height, style.background)
    style = style.thinned(len(sketch))
    view = frame(sketch, width, height, style)
    return painted(strokes(sketch, view, style), view, style)


def painted(items: Iterable[Stroke], view: Frame, style: Style) -> Image:
    """Strokes on the background, in a view of whole pixels."""
    return layered([Layer(tuple(items), view, style)], int(view.width), int(view.height), style.background)


def layered(layers: Sequence[Layer], width: int, height: int, background: str) -> Image:
    """Layers one above the other, and all words on top."""
    from PIL import Image, ImageDraw

    samples = max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, _LARGE // max(width, height)))
    large = Image.new("RGB", (width * samples, height * samples), background)
    pen = ImageDraw.Draw(large)
    for layer in layers:
        view, style = layer.view.times(samples), layer.style.times(samples)
        for stroke in layer.strokes:
            _draw(pen, stroke.times(samples), view, style)
    image = large.reduce(samples)
    for layer in layers:
        for words in layer.words:
            write(image, words.text, *words.at, layer.style, from_left=words.from_left)
    return image


def legend_of(sketches: Sequence[Sketch], notes: Sequence[Notes], width: int, style: Style) -> Image:
    """What colors and signs mean."""
    layers, height = legend(sketches, notes, width, style)
    return layered(layers, width, max(1, math.ceil(height)), style.background)


def above(upper: Image, lower: Image) -> Image:
    """Two images of one width as one."""
    from PIL import Image

    both = Image.new("RGB", (upper.width, upper.height + lower.height))
    both.paste(upper, (0, 0))
    both.paste(lower, (0, upper.height))
    return both


def write(image: Image, words: str, x: float, y: float, style: Style, *, from_left: bool = False) -> None:
    """Words about a place of the image, or from there; drawn large first: fonts space small letters by whole pixels."""
    from PIL import Image, ImageDraw

    letters = _font(style.text_size * _TEXT_SAMPLES)
    if from_left:
        x += letters.getlength(words) / _TEXT_SAMPLES / 2
    left, top, right, bottom = letters.getbbox(words, anchor="mm")
    width = math.ceil(max(-left, right) / _TEXT_SAMPLES) + 1
    height = math.ceil(max(-top, bottom) / _TEXT_SAMPLES) + 1
    large = Image.new("L", (2 * width * _TEXT_SAMPLES, 2 * height * _TEXT_SAMPLES))
    middle = (width * _TEXT_SAMPLES, height * _TEXT_SAMPLES)
    ImageDraw.Draw(large).text(middle, words, fill=255, font=letters, anchor="mm")
    image.paste(style.text_color, (round(x) - width, round(y) - height), large.reduce(_TEXT_SAMPLES))


@cache
def _font(size: float) -> FreeTypeFont | ImageFont:
    """Pillow's own typeface: the same on every machine."""
    from PIL.ImageFont import load_default

    return load_default(size)


def _draw(pen: ImageDraw, stroke: Stroke, view: Frame, style: Style) -> None:
    color, width = stroke.color, stroke.width
    match stroke.primitive:
        case Line(start, end):
            p, q = view.place(start), view.place(end)
            for a, b in _runs(stroke, view):
                _bar(pen, _between(p, q, a), _between(p, q, b), width, color)
            ends = [p, q]
        case Circle(center, radius):
            for a, b in _runs(stroke, view):
                _band(pen, view.place(center), radius * view.scale, a * TAU, (b - a) * TAU, width, color)
            ends = []
        case Arc(center, radius, start_angle, sweep) as arc:
            for a, b in _runs(stroke, view):
                angle = start_angle + a * sweep
                _band(pen, view.place(center), radius * view.scale, angle, (b - a) * sweep, width, color)
            ends = [view.place(arc.start), view.place(arc.end)]
        case Point(at, construction):
            inner, rim = (style.background, color) if construction else (color, style.background)
            _disc(pen, view.place(at), style.dot_radius + width / 2, rim)
            _disc(pen, view.place(at), style.dot_radius - width / 2, inner)
            return
    if stroke.dash is None:  # round ends, so that strokes that meet leave no notch; dashes are cut straight
        for end in ends:
            _disc(pen, end, width / 2, color)


def _runs(stroke: Stroke, view: Frame) -> list[tuple[float, float]]:
    """The drawn stretches of a curve as fractions of its length: all of it, or one stretch a dash."""
    if stroke.dash is None:
        return [(0.0, 1.0)]
    on, off = stroke.dash
    length = max(stroke.primitive.length * view.scale, on)
    count = math.ceil(length / (on + off) - 1e-6)
    return [(k * (on + off) / length, min(1.0, (k * (on + off) + on) / length)) for k in range(count)]


def _between(p: Vec, q: Vec, fraction: float) -> Vec:
    return (p[0] + fraction * (q[0] - p[0]), p[1] + fraction * (q[1] - p[1]))


# Pillow cuts the corners of a polygon to whole pixels, and fills every row of pixels up to and including its edges.
# The first is made up for by many corners, whose errors cancel; the second by drawing the edges a little further in.


def _bar(pen: ImageDraw, p: Vec, q: Vec, width: float, color: str) -> None:
    """A stroke along a line: there along one edge and back along the other."""
    length, rise = math.dist(p, q), abs(q[1] - p[1])
    if length == 0:
        return
    excess = 1.0 if rise < 1 else rise / length  # a pixel along the row is this much across the line
    half = max(width - excess, 0) / 2
    aside = np.array([p[1] - q[1], q[0] - p[0]]) * (half / length)
    middle = np.linspace(p, q, 2 + int(length / _CORNER_SPACING))
    edge = np.concatenate([middle + aside, (middle - aside)[::-1]])
    pen.polygon(edge.ravel().tolist(), fill=color)


def _band(pen: ImageDraw, center: Vec, radius: float, angle: float, sweep: float, width: float, color: str) -> None:
    """A stroke along an arc, likewise."""
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
