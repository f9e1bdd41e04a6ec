"""What is drawn, before it is decided with what: a color and a dash pattern for each primitive, and its place.

The back ends (`vector`, `raster`) draw the same strokes through the same frame, so that an SVG and a PNG of a sketch
agree.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from sketchdnn.geometry import Circle, Kind, Point, Primitive, Sketch, Vec, bounds

# Each stands out from white by 3:1 or more, and from the next also to the commonest kinds of color-blind eye.
PALETTE = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # green
    "#7b4fa3",  # purple
    "#b08000",  # gold
    "#d6428a",  # pink
    "#27408b",  # navy
    "#2a9dd8",  # sky
    "#117733",  # forest
    "#882255",  # wine
)
EMPTY_TEXT = "empty sketch"

# The picture whose pixels `Style` is given in.
_REFERENCE_SIZE = 320
_MOST_AT_FULL_WIDTH = 40
_LENGTHS = ("width", "construction_width", "dash", "gap", "dot_radius", "text_size")


@dataclass(frozen=True, slots=True)
class Style:
    """How strokes look, in the pixels of a picture of 320; `sized` fits them to a larger or smaller one."""

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
        """The style for a picture of this size. Lengths grow more slowly than it, or large pictures would look fat."""
        return self.times(math.sqrt(pixels / _REFERENCE_SIZE))

    def thinned(self, count: int) -> Style:
        """Finer strokes for a drawing of very many primitives, which would run into one another."""
        return self.times(max(0.35, min(1.0, (_MOST_AT_FULL_WIDTH / count) ** 0.25)))

    def times(self, factor: float) -> Style:
        """Every length multiplied."""
        return replace(self, **{name: factor * getattr(self, name) for name in _LENGTHS})


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a sketch lies in a picture of `width` by `height` pixels, whose y runs down."""

    width: float
    height: float
    center: Vec
    scale: float

    def place(self, p: Vec) -> Vec:
        """The pixel of a place of the sketch. Relative to the center first, so that far-off sketches keep precision."""
        return (
            self.width / 2 + self.scale * (p[0] - self.center[0]),
            self.height / 2 - self.scale * (p[1] - self.center[1]),
        )

    def times(self, factor: float) -> Frame:
        """The same view in a picture that is so much larger."""
        return Frame(factor * self.width, factor * self.height, self.center, factor * self.scale)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A primitive, exact and in its own coordinates, with the look it gets; `dash` is (on, off) in pixels."""

    primitive: Primitive
    color: str
    width: float
    dash: tuple[float, float] | None = None

    def times(self, factor: float) -> Stroke:
        """The same stroke in a picture that is so much larger."""
        dash = self.dash and (factor * self.dash[0], factor * self.dash[1])
        return replace(self, width=factor * self.width, dash=dash)


def frame(sketch: Sketch, width: float, height: float, style: Style) -> Frame:
    """The largest view of the sketch that keeps its proportions and the margins."""
    if not len(sketch):
        return Frame(width, height, (0.0, 0.0), 1.0)
    box = bounds(sketch)
    margin = style.margin * min(width, height)
    wanted = max(box.width / (width - 2 * margin), box.height / (height - 2 * margin))
    # A lone point, or something too small for floating point, has no size to fit: it goes to the middle.
    scale = 1 / wanted if wanted > 1e-300 else 1.0
    return Frame(width, height, box.center, scale)


def strokes(sketch: Sketch, view: Frame, style: Style) -> list[Stroke]:
    """The primitives in the order they are painted: construction below, points on top. Colors follow their index."""
    painted = []
    for index, primitive in enumerate(sketch):
        color = style.palette[index % len(style.palette)]
        if isinstance(primitive, Point):
            painted.append((2, Stroke(primitive, color, style.construction_width)))
        elif primitive.construction:
            dash = _dash(primitive, view, style)
            painted.append((0, Stroke(primitive, color, style.construction_width, dash)))
        else:
            painted.append((1, Stroke(primitive, color, style.width)))
    return [stroke for _, stroke in sorted(painted, key=lambda item: item[0])]


def describe(sketch: Sketch) -> str:
    """What the sketch is made of, for captions and for those who cannot see it.

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
    """The style's dashes stretched a little: whole ones, and a dash at either end of an open curve."""
    length = max(primitive.length * view.scale, 1e-3)
    period = style.dash + style.gap
    if isinstance(primitive, Circle):
        stretch = length / (period * max(2, round(length / period)))
    else:
        count = max(2, round((length + style.gap) / period))
        stretch = length / (count * period - style.gap)
    return (style.dash * stretch, style.gap * stretch)


def printable(words: str) -> str:
    """Words from a file, without what would break a line, a picture, XML or a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in words).strip()
