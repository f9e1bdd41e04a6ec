"""How sketches are drawn to be traced: with noise of `sketchdnn.drawing`, by Matplotlib, and by cairo."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sketchdnn.drawing import HAND, INERTIA, PHOTO, PRECISE, DrawingOptions, draw
from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Sketch
from sketchdnn.representation import encode

from .trace_scores import Floats

Picture = NDArray[np.uint8]

# Pixels a side of the pictures.
SIDE = 384
# Half the side of what other programs draw, where the larger side of a sketch is from −1 to 1.
_REACH = 1.19
_PEN, _DASH, _DOT = 2.6, (10.0, 7.0), 4.0
# The wobble of cairo's pictures, as shares of the diagonal: of knots, of whole strokes, of ends along the stroke. The
# distance of knots is a share, too.
_KNOT, _STROKE, _END, _BETWEEN = 0.006, 0.005, 0.008, 0.09


class Drawn(NamedTuple):
    """A picture, and the map from sketch coordinates to its pixels, `3, 3`."""

    picture: Picture
    placement: Floats


Style = Callable[[Sketch, int], Drawn]


def _with_noise(options: DrawingOptions) -> Style:
    def picture(sketch: Sketch, seed: int) -> Drawn:
        rows = encode([sketch])
        tensors = (torch.from_numpy(rows.kind.astype(np.int64)), torch.from_numpy(rows.construction))
        generator = torch.Generator().manual_seed(seed)
        drawn = draw(*tensors, torch.from_numpy(rows.params), replace(options, size=SIDE), generator)
        gray = (255 * drawn.gray[0].numpy()).round().astype(np.uint8)
        # The center of pixel k is k + 0.5 in the picture, and k in arrays.
        pixels = np.array([[SIDE, 0, -0.5], [0, SIDE, -0.5], [0, 0, 1]])
        return Drawn(np.repeat(gray[..., None], 3, 2), pixels @ drawn.placement[0].double().numpy())

    return picture


def draw_xkcd(sketch: Sketch, seed: int) -> Drawn:
    """A picture in the style xkcd of Matplotlib; the seed has no effect."""
    import matplotlib.pyplot as plt
    from PIL import Image

    with plt.xkcd():
        figure = plt.figure(figsize=(SIDE / 96, SIDE / 96), dpi=96)
        axes = figure.add_axes((0, 0, 1, 1))
        for p in sketch:
            if isinstance(p, Point):
                axes.plot(*p.at, "ko", markersize=5)
            else:
                axes.plot(*_places(p, 2 if isinstance(p, Line) else 200).T, "k--" if p.construction else "k-", lw=2)
        axes.set(xlim=(-_REACH, _REACH), ylim=(-_REACH, _REACH))
        axes.axis("off")
        file = BytesIO()
        figure.savefig(file, format="png", dpi=96)
        plt.close(figure)
    picture = np.asarray(Image.open(file).convert("RGB"))
    return Drawn(picture, _placement(picture.shape[0]))


def cairo() -> Any:
    """The module `cairocffi`.

    Raises:
        SketchError: It, or the library, is not installed.
    """
    try:
        return import_module("cairocffi")
    except (ImportError, OSError) as error:
        raise SketchError("pictures of cairo need it: pip install cairocffi, and the library libcairo2") from error


def draw_cairo(sketch: Sketch, seed: int) -> Drawn:
    """An exact picture by cairo; the seed has no effect."""
    surface, pen = _paper()
    scale = SIDE / (2 * _REACH)
    for p in sketch:
        pen.set_dash(_DASH if p.construction else ())
        match p:
            case Line(start, end):
                pen.move_to(*_pixel(start))
                pen.line_to(*_pixel(end))
            case Circle(center, radius):
                pen.new_sub_path()
                pen.arc(*_pixel(center), scale * radius, 0, TAU)
            case Arc(center, radius, start_angle, sweep):
                pen.new_sub_path()
                pen.arc_negative(*_pixel(center), scale * radius, -start_angle, -start_angle - sweep)
            case Point(at):
                _dot(pen, _pixel(at))
        pen.stroke()
    return Drawn(_pixels(surface), _placement(SIDE))


def draw_cairo_by_hand(sketch: Sketch, seed: int) -> Drawn:
    """A picture by cairo with a wobble: smooth curves through knots that are off the stroke, as are its ends."""
    surface, pen = _paper()
    rng = np.random.default_rng(seed)
    box = np.array([at for p in sketch for at in ([p.at] if isinstance(p, Point) else _places(p, 60).tolist())])
    diagonal = float(np.linalg.norm(np.ptp(box, axis=0))) or 1.0
    for p in sketch:
        pen.set_dash(_DASH if p.construction else ())
        if isinstance(p, Point):
            _dot(pen, _pixel(np.array(p.at) + _STROKE * diagonal * rng.standard_normal(2)))
            continue
        pen.set_line_width(_PEN * rng.uniform(0.7, 1.4))
        knots = _places(p, max(3, math.ceil(p.length / (_BETWEEN * diagonal)) + 1))
        for end, inner in ((0, 1), (-1, -2)):
            outward = knots[end] - knots[inner]
            knots[end] += outward / np.linalg.norm(outward) * _END * diagonal * rng.standard_normal()
        knots += _KNOT * diagonal * rng.standard_normal(knots.shape) + _STROKE * diagonal * rng.standard_normal(2)
        _smooth(pen, np.array([_pixel(at) for at in knots]))
        pen.stroke()
    return Drawn(_pixels(surface), _placement(SIDE))


STYLES: Mapping[str, Style] = {
    "precise": _with_noise(PRECISE),
    "hand": _with_noise(HAND),
    "inertia": _with_noise(INERTIA),
    "photo": _with_noise(PHOTO),
    "xkcd": draw_xkcd,
    "cairo": draw_cairo,
    "cairo-hand": draw_cairo_by_hand,
}
DESCRIPTIONS = {
    "precise": "precise",
    "hand": "hand-drawn: Gaussian process",
    "inertia": "pen with inertia",
    "photo": "photo, all kinds of noise",
    "xkcd": "Matplotlib xkcd",
    "cairo": "cairo, precise",
    "cairo-hand": "cairo, with wobble",
}
_CAIRO = ("cairo", "cairo-hand")


def choose_styles(wanted: Sequence[str] | None) -> tuple[tuple[str, ...], str]:
    """The styles to measure, and a sentence about those that are left out; "" if none is.

    Args:
        wanted: Names of `STYLES`; None for all that can be drawn here.

    Raises:
        SketchError: A style is unknown, or needs a library that is missing.
    """
    if unknown := [style for style in wanted or () if style not in STYLES]:
        raise SketchError(f"there is no style {unknown[0]!r}; use {', '.join(STYLES)}")
    styles = tuple(dict.fromkeys(wanted or STYLES))
    if not set(styles) & set(_CAIRO):
        return styles, ""
    try:
        cairo()
    except SketchError as error:
        if wanted:
            raise
        return tuple(style for style in styles if style not in _CAIRO), f"Left out: {error}."
    return styles, ""


def _places(p: Line | Circle | Arc, count: int) -> Floats:
    return np.array([p.at(float(f)) for f in np.linspace(0, 1, count)])


def _placement(side: int) -> Floats:
    scale = side / (2 * _REACH)
    return np.array([[scale, 0, _REACH * scale - 0.5], [0, -scale, _REACH * scale - 0.5], [0, 0, 1]])


def _pixel(at: Sequence[float] | Floats) -> tuple[float, float]:
    """A place in cairo's picture, where the center of pixel k is k + 0.5."""
    scale = SIDE / (2 * _REACH)
    return ((at[0] + _REACH) * scale, (_REACH - at[1]) * scale)


def _paper() -> tuple[Any, Any]:
    module = cairo()
    surface = module.ImageSurface(module.FORMAT_RGB24, SIDE, SIDE)
    pen = module.Context(surface)
    pen.set_source_rgb(1, 1, 1)
    pen.paint()
    pen.set_source_rgb(0, 0, 0)
    pen.set_line_width(_PEN)
    pen.set_line_cap(module.LINE_CAP_ROUND)
    pen.set_line_join(module.LINE_JOIN_ROUND)
    return surface, pen


def _dot(pen: Any, at: tuple[float, float]) -> None:
    pen.new_sub_path()
    pen.arc(*at, _DOT, 0, TAU)
    pen.fill()


def _smooth(pen: Any, knots: Floats) -> None:
    """A curve through all knots (Catmull and Rom), as Bézier curves."""
    padded = np.vstack((2 * knots[0] - knots[1], knots, 2 * knots[-1] - knots[-2]))
    pen.move_to(*knots[0])
    for before, start, end, after in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        pen.curve_to(*(start + (end - before) / 6), *(end - (after - start) / 6), *end)


def _pixels(surface: Any) -> Picture:
    surface.flush()
    values = np.frombuffer(surface.get_data(), np.uint8).reshape(SIDE, surface.get_stride() // 4, 4)
    return np.ascontiguousarray(values[:, :SIDE, 2::-1])
