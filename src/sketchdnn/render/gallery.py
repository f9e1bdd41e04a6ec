"""Many sketches in one picture or page: white cards in a grid, each with its sketch as large as possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch

from . import raster, vector
from .annotations import ConstraintStatus, legend
from .html import Card, gallery_page
from .style import LETTER_WIDTH, Style, describe, printable

if TYPE_CHECKING:
    from PIL.Image import Image

PAGE_COLOR = "#f3f4f6"
BORDER_COLOR = "#dfe2e6"
# A picture in memory takes three bytes a pixel.
MAX_PIXELS = 150_000_000
# The radius of the corners of a card, in pixels.
_INSET = 4
_LEGEND_WIDTH = 900


@dataclass(frozen=True, slots=True)
class _Cell:
    """A card of a gallery: its position in pixels, its sketch, caption and status."""

    x: int
    y: int
    sketch: Sketch
    caption: str
    status: ConstraintStatus | None


class GalleryOptions(TypedDict, total=False):
    """Options of the galleries.

    Attributes:
        columns: By default about as many as rows; on a page, as many as the window fits.
        captions: A line of text below each sketch.
        cell: The width of a card in pixels; by default 200.
        style: The look of strokes.
        statuses: If given, one for each sketch: constraints are drawn, with a legend.
    """

    columns: int | None
    captions: Sequence[str] | None
    cell: int
    style: Style | None
    statuses: Sequence[ConstraintStatus] | None


class _Grid:
    """The cards of a gallery in rows, in whole pixels."""

    def __init__(self, sketches: Sequence[Sketch], options: GalleryOptions) -> None:
        self.sketches, self.captions = _with_captions(sketches, options.get("captions"))
        self.statuses = options.get("statuses")
        self.cell = options.get("cell", 200)
        self.style = (options.get("style") or Style()).sized(self.cell)
        columns = options.get("columns") or math.ceil(math.sqrt(len(self.sketches)))
        self.columns = max(1, min(len(self.sketches), columns))

    @property
    def gap(self) -> int:
        return max(4, round(self.cell * 0.05))

    @property
    def card_height(self) -> int:
        return self.cell + (round(1.5 * self.style.text_size) if any(self.captions) else 0)

    @property
    def size(self) -> tuple[int, int]:
        rows = math.ceil(len(self.sketches) / self.columns)
        return (
            self.columns * self.cell + (self.columns + 1) * self.gap,
            rows * self.card_height + (rows + 1) * self.gap,
        )

    @property
    def legend_style(self) -> Style:
        """Text of at least the standard size, on the page's color."""
        return replace(self.style, background=PAGE_COLOR, text_size=max(self.style.text_size, Style().text_size))

    def cells(self) -> Iterator[_Cell]:
        """The cards row by row, captions cut to their width."""
        limit = int(0.88 * self.cell / (LETTER_WIDTH * self.style.text_size))
        for index, (sketch, caption) in enumerate(zip(self.sketches, self.captions, strict=True)):
            row, column = divmod(index, self.columns)
            x = self.gap + column * (self.cell + self.gap)
            y = self.gap + row * (self.card_height + self.gap)
            short = caption if len(caption) <= limit else caption[: max(1, limit - 1)].rstrip() + "…"
            yield _Cell(x, y, sketch, short, self.statuses[index] if self.statuses else None)


def gallery_svg(sketches: Sequence[Sketch], **options: Unpack[GalleryOptions]) -> str:
    """A grid of sketches as SVG, with a legend below if statuses are given; without sketches, an empty card."""
    grid = _Grid(sketches, options)
    look, cell = grid.style, grid.cell
    width, height = grid.size
    below, more = legend(grid.sketches, grid.statuses, width, grid.legend_style) if grid.statuses else ([], 0.0)
    parts = [vector.svg_start(width, height + more), f'<rect width="100%" height="100%" fill="{PAGE_COLOR}"/>']
    for card in grid.cells():
        border = f'rx="{_INSET}" fill="{look.background}" stroke="{BORDER_COLOR}"'
        parts += [
            f'<g transform="translate({card.x} {card.y})">',
            f'<rect x="0.5" y="0.5" width="{cell - 1}" height="{grid.card_height - 1}" {border}/>',
            vector.drawing(card.sketch, cell, cell, look, card.status),
        ]
        if card.caption:
            parts.append(vector.text(card.caption, cell / 2, cell + look.text_size * 0.4, look))
        parts.append("</g>")
    if below:
        parts.append(f'<g transform="translate(0 {height})">\n{vector.draw_layers(below)}\n</g>')
    return "\n".join([*parts, "</svg>\n"])


def gallery_png(sketches: Sequence[Sketch], **options: Unpack[GalleryOptions]) -> Image:
    """The same grid as `gallery_svg`, as pixels."""
    from PIL import Image, ImageDraw

    grid = _Grid(sketches, options)
    look, cell = grid.style, grid.cell
    width, height = grid.size
    if width * height > MAX_PIXELS:
        raise SketchError(
            f"a gallery of {len(grid.sketches)} sketches would be {width} × {height} pixels: "
            "show fewer, make them smaller, or write SVG or HTML"
        )
    page = Image.new("RGB", grid.size, PAGE_COLOR)
    pen = ImageDraw.Draw(page)
    for card in grid.cells():
        x, y = card.x, card.y
        box = (x, y, x + cell - 1, y + grid.card_height - 1)
        pen.rounded_rectangle(box, radius=_INSET, fill=look.background, outline=BORDER_COLOR)
        # Without its outermost pixels, which are blank, so that the card keeps its border.
        picture = raster.picture(card.sketch, cell, cell, look, card.status)
        page.paste(picture.crop((_INSET, _INSET, cell - _INSET, cell - _INSET)), (x + _INSET, y + _INSET))
        if card.caption:
            raster.draw_text(page, card.caption, x + cell / 2, y + cell + look.text_size * 0.4, look)
    return raster.with_legend(page, grid.sketches, grid.statuses, grid.legend_style) if grid.statuses else page


def gallery_html(
    sketches: Sequence[Sketch], *, title: str = "Sketches", subtitle: str = "", **options: Unpack[GalleryOptions]
) -> str:
    """The same cards as a web page without outside resources.

    Cards stay white in dark mode: the colors are chosen for white. Each symbol of a constraint shows its name under the
    pointer.
    """
    captions = options.get("captions") or [describe(sketch) for sketch in sketches]
    sketches, captions = _with_captions(sketches, captions)
    cell, style, statuses = options.get("cell", 200), options.get("style"), options.get("statuses")
    each: Sequence[ConstraintStatus | None] = statuses or [None] * len(sketches)
    cards = [
        Card(vector.svg(sketch, cell, style=style, status=status, has_legend=False), caption, tooltip=describe(sketch))
        for sketch, caption, status in zip(sketches, captions, each, strict=True)
    ]
    larger = (style or Style()).times(1.25)
    key = vector.legend_svg(sketches, statuses, _LEGEND_WIDTH, larger) if statuses else ""
    columns, width = options.get("columns"), f"minmax(min({cell}px, 100%), 1fr)"
    tracks = f"repeat({columns}, minmax(0, 1fr))" if columns else f"repeat(auto-fill, {width})"
    return gallery_page(title, cards, lead=[subtitle], legend=key, tracks=tracks)


def _with_captions(
    sketches: Sequence[Sketch], captions: Sequence[str] | None
) -> tuple[Sequence[Sketch], Sequence[str]]:
    """At least one sketch, and a caption for each."""
    sketches = sketches or [Sketch(())]
    captions = [printable(text) for text in captions] if captions else [""] * len(sketches)
    if len(captions) != len(sketches):
        raise ValueError(f"{len(captions)} captions for {len(sketches)} sketches")
    return sketches, captions
