"""What is drawn, independent of the back end: a color, a width and a dash pattern for each primitive, and the view.

The back ends (`vector`, `raster`, `figures`) draw the same strokes in the same frame, so that the SVG and the PNG of a
sketch agree. `superposed_strokes` draws the uncertain primitives of a diffusion state: the less probable, the paler.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sketchdnn.geometry import Circle, Kind, Point, Primitive, Sketch, Vec, bounds

# The contrast to white is at least 3:1, and neighbors differ for the commonest kinds of color blindness.
# Blue, vermilion, green, purple and gold; pink, navy, sky, forest and wine.
PALETTE: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#7b4fa3", "#b08000")
PALETTE += ("#d6428a", "#27408b", "#2a9dd8", "#117733", "#882255")
EMPTY_TEXT = "empty sketch"

# The average width of a letter, in parts of the text size.
LETTER_WIDTH = 0.52
# The size of the picture whose pixels are the unit of `Style`.
_REFERENCE_SIZE = 320
_MAX_AT_FULL_WIDTH = 40
_LENGTHS = ("width", "construction_width", "dash", "gap", "dot_radius", "text_size")


@dataclass(frozen=True, slots=True)
class Style:
    """The look of strokes, in the pixels of a picture of 320; `sized` scales them to another size."""

    palette: tuple[str, ...] = PALETTE
    background: str = "#ffffff"
    text_color: str = "#5b6770"
    text_size: float = 13.0
    width: float = 1.8
    construction_width: float = 1.4
    dash: float = 6.5
    gap: float = 4.0
    dot_radius: float = 3.2
    margin: float = 0.09  # of the picture's smaller side

    def sized(self, pixels: float) -> Style:
        """The style for a picture of this size. Lengths grow with its square root."""
        return self.times(math.sqrt(pixels / _REFERENCE_SIZE))

    def thinned(self, count: int) -> Style:
        """Finer strokes for a drawing of many primitives."""
        return self.times(max(0.35, min(1.0, (_MAX_AT_FULL_WIDTH / count) ** 0.25)))

    def times(self, factor: float) -> Style:
        """All lengths multiplied."""
        return replace(self, **{name: factor * getattr(self, name) for name in _LENGTHS})


@dataclass(frozen=True, slots=True)
class Frame:
    """The view of a sketch in a picture of `width` by `height` pixels, with y down."""

    width: float
    height: float
    center: Vec
    scale: float

    def to_pixel(self, p: Vec) -> Vec:
        """The pixel of a point. Subtracts the center first, so that sketches far from the origin keep precision."""
        dx, dy = p[0] - self.center[0], p[1] - self.center[1]
        return (self.width / 2 + self.scale * dx, self.height / 2 - self.scale * dy)

    def times(self, factor: float) -> Frame:
        """The same view in a picture `factor` times as large."""
        return Frame(factor * self.width, factor * self.height, self.center, factor * self.scale)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A primitive in the coordinates of its sketch, with its look; `dash` is (on, off) in pixels."""

    primitive: Primitive
    color: str
    width: float
    dash: tuple[float, float] | None = None

    def times(self, factor: float) -> Stroke:
        """The same stroke in a picture `factor` times as large."""
        dash = self.dash and (factor * self.dash[0], factor * self.dash[1])
        return replace(self, width=factor * self.width, dash=dash)


def frame(sketch: Sketch, width: float, height: float, style: Style) -> Frame:
    """The largest view of the sketch that keeps its proportions and the margins."""
    if not len(sketch):
        return Frame(width, height, (0.0, 0.0), 1.0)
    box = bounds(sketch)
    margin = style.margin * min(width, height)
    extent = max(box.width / (width - 2 * margin), box.height / (height - 2 * margin))
    # A single point has no size: it is drawn in the middle.
    scale = 1 / extent if extent > 1e-300 else 1.0
    return Frame(width, height, box.center, scale)


def strokes(sketch: Sketch, view: Frame, style: Style) -> list[Stroke]:
    """The strokes in painting order: construction below, points on top. The color follows from the index."""
    painted = []
    for index, primitive in enumerate(sketch):
        color = style.palette[index % len(style.palette)]
        order = 2 if isinstance(primitive, Point) else 0 if primitive.construction else 1
        width = style.width if order == 1 else style.construction_width
        dash = _dash(primitive, view, style) if order == 0 else None
        painted.append((order, Stroke(primitive, color, width, dash)))
    return [stroke for _, stroke in sorted(painted, key=lambda item: item[0])]


def describe(sketch: Sketch) -> str:
    """A summary of the primitives, for captions and alternative texts.

    >>> describe(Sketch((Circle((0, 0), 2), Circle((0, 0), 3, construction=True), Point((0, 0)))))
    '2 circles, 1 point (1 dashed)'
    """
    if not len(sketch):
        return EMPTY_TEXT
    counts = Counter(p.kind for p in sketch)
    parts = [f"{counts[kind]} {kind.label}{'s' * (counts[kind] > 1)}" for kind in Kind if counts[kind]]
    construction = sum(p.construction for p in sketch)
    return ", ".join(parts) + (f" ({construction} dashed)" if construction else "")


def _dash(primitive: Primitive, view: Frame, style: Style) -> tuple[float, float]:
    """The style's dashes, stretched to a whole number; an open curve has a dash at either end."""
    length = max(primitive.length * view.scale, 1e-3)
    period = style.dash + style.gap
    if isinstance(primitive, Circle):
        stretch = length / (period * max(2, round(length / period)))
    else:
        count = max(2, round((length + style.gap) / period))
        stretch = length / (count * period - style.gap)
    return (style.dash * stretch, style.gap * stretch)


def printable(text: str) -> str:
    """Text from a file without control characters, as lines, XML and terminals need it."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


def shorten(text: str, limit: int) -> str:
    """Printable text of at most `limit` letters; what is cut off becomes an ellipsis."""
    text = printable(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Less probable primitives are not drawn.
MIN_PROBABILITY = 0.03
# The ink is this power of the probability: thin strokes on white look paler than they are.
_POWER = 0.75
# Nor are curves longer than this many widths of the picture: they would have too many dashes.
_MAX_LENGTH = 12


class WeightedPrimitive(NamedTuple):
    """A primitive, its probability, and its row in the diffusion state, which determines the color."""

    primitive: Primitive
    probability: float
    row: int


def superposed_strokes(items: Iterable[WeightedPrimitive], view: Frame, style: Style) -> Iterator[Stroke]:
    """The strokes of uncertain primitives, the more probable on top. Those of probability 1 look as in any picture.

    Colors are blended with the background, not transparent, so that crossing strokes do not add up and every back end
    draws the same.
    """
    by_probability = attrgetter("probability")
    longest = _MAX_LENGTH * max(view.width, view.height) / view.scale
    visible = [item for item in items if item.probability >= MIN_PROBABILITY and item.primitive.length <= longest]
    for probability, group in groupby(sorted(visible, key=by_probability), key=by_probability):
        members = list(group)
        ink, colors = probability**_POWER, len(style.palette)
        palette = tuple(blend(style.palette[item.row % colors], style.background, ink) for item in members)
        yield from strokes(Sketch(tuple(item.primitive for item in members)), view, replace(style, palette=palette))


def blend(color: str, background: str, share: float) -> str:
    """A share of a color on a background; both are #rrggbb.

    >>> blend("#000000", "#ffffff", 0.2), blend("#0072b2", "#ffffff", 1.0)
    ('#cccccc', '#0072b2')
    """
    channels = zip(bytes.fromhex(color[1:]), bytes.fromhex(background[1:]), strict=True)
    return "#" + bytes(round(share * ink + (1 - share) * paper) for ink, paper in channels).hex()
