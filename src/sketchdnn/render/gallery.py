"""Many sketches in one picture or page: white cards in a grid, each with its sketch as large as possible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
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


class GalleryOptions(TypedDict, total=False):
    """Options of the galleries.

    Attributes:
        columns: By default about as many as rows; on a page, as many as the window fits.
        captions: A line of text below each sketch.
        cell: The width of a card in pixels; by default 200.
        style: The look of strokes.
        palettes: If given, the colors of each sketch.
        statuses: If given, one for each sketch: constraints are drawn, with a legend.
    """

    columns: int | None
    captions: Sequence[str] | None
    cell: int
    style: Style | None
    palettes: Sequence[tuple[str, ...]] | None
    statuses: Sequence[ConstraintStatus] | None


class _Grid:
    """The cards of a gallery in rows, in whole pixels."""

    def __init__(self, sketches: Sequence[Sketch], options: GalleryOptions) -> None:
        self.sketches, self.captions = _with_captions(sketches, options.get("captions"))
        self.statuses = options.get("statuses")
        self.cell = options.get("cell", 200)
        self.style = (options.get("style") or Style()).sized(self.cell)
        palettes = options.get("palettes") or [self.style.palette] * len(self.sketches)
        self.styles = [replace(self.style, palette=palette) for palette in palettes]
        # Text of at least the standard size, on the page's color.
        text_size = max(self.style.text_size, Style().text_size)
        self.legend_style = replace(self.style, background=PAGE_COLOR, text_size=text_size)
        columns = options.get("columns") or math.ceil(math.sqrt(len(self.sketches)))
        self.columns = max(1, min(len(self.sketches), columns))
        rows = math.ceil(len(self.sketches) / self.columns)
        self.gap = max(4, round(self.cell * 0.05))
        self.card_height = self.cell + (round(1.5 * self.style.text_size) if any(self.captions) else 0)
        width = self.columns * self.cell + (self.columns + 1) * self.gap
        self.size = (width, rows * self.card_height + (rows + 1) * self.gap)

    def cells(self) -> Iterator[tuple[int, int, Sketch, Style, str, ConstraintStatus | None]]:
        """The position of each card in pixels, its sketch and style, its caption cut to its width, and its status."""
        limit = int(0.88 * self.cell / (LETTER_WIDTH * self.style.text_size))
        for index, (sketch, caption) in enumerate(zip(self.sketches, self.captions, strict=True)):
            row, column = divmod(index, self.columns)
            x = self.gap + column * (self.cell + self.gap)
            y = self.gap + row * (self.card_height + self.gap)
            short = caption if len(caption) <= limit else caption[: max(1, limit - 1)].rstrip() + "…"
            yield x, y, sketch, self.styles[index], short, self.statuses[index] if self.statuses else None


def gallery_svg(sketches: Sequence[Sketch], **options: Unpack[GalleryOptions]) -> str:
    """A grid of sketches as SVG, with a legend below if statuses are given; without sketches, an empty card.

    The card of an empty sketch says so, unless its caption does.
    """
    grid = _Grid(sketches, options)
    look, cell = grid.style, grid.cell
    width, height = grid.size
    below, more = legend(grid.sketches, grid.statuses, width, grid.legend_style) if grid.statuses else ([], 0.0)
    parts = [vector.svg_start(width, height + more), f'<rect width="100%" height="100%" fill="{PAGE_COLOR}"/>']
    for x, y, sketch, style, caption, status in grid.cells():
        border = f'rx="{_INSET}" fill="{look.background}" stroke="{BORDER_COLOR}"'
        parts += [
            f'<g transform="translate({x} {y})">',
            f'<rect x="0.5" y="0.5" width="{cell - 1}" height="{grid.card_height - 1}" {border}/>',
            vector.drawing(sketch, cell, cell, style, status) if len(sketch) or not caption else "",
        ]
        if caption:
            parts.append(vector.text(caption, cell / 2, cell + look.text_size * 0.4, look))
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
    for x, y, sketch, style, caption, status in grid.cells():
        box = (x, y, x + cell - 1, y + grid.card_height - 1)
        pen.rounded_rectangle(box, radius=_INSET, fill=look.background, outline=BORDER_COLOR)
        if len(sketch) or not caption:
            # Without its outermost pixels, which are blank, so that the card keeps its border.
            picture = raster.picture(sketch, cell, cell, style, status)
            page.paste(picture.crop((_INSET, _INSET, cell - _INSET, cell - _INSET)), (x + _INSET, y + _INSET))
        if caption:
            raster.draw_text(page, caption, x + cell / 2, y + cell + look.text_size * 0.4, look)
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
    cards = []
    for sketch, caption, status in zip(sketches, captions, each, strict=True):
        drawn = vector.svg(sketch, cell, style=style, status=status, has_legend=False)
        cards.append(Card(drawn, caption, tooltip=describe(sketch)))
    larger = (style or Style()).times(1.25)
    key = vector.legend_svg(sketches, statuses, _LEGEND_WIDTH, larger) if statuses else ""
    columns = 1 if len(sketches) == 1 else options.get("columns")
    width = f"minmax(min({cell}px, 100%), 1fr)"
    tracks = f"repeat({columns}, minmax(0, {cell}px))" if columns else f"repeat(auto-fill, {width})"
    return gallery_page(title, cards, lead=[subtitle], legend=key, tracks=tracks)


def _with_captions(sketches: Sequence[Sketch], captions: Sequence[str] | None) -> tuple[list[Sketch], list[str]]:
    """At least one sketch, and a caption for each."""
    sketches = list(sketches) or [Sketch(())]
    captions = [printable(text) for text in captions] if captions else [""] * len(sketches)
    if len(captions) != len(sketches):
        raise ValueError(f"{len(captions)} captions for {len(sketches)} sketches")
    return sketches, captions
