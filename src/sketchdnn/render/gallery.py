"""Many sketches in one picture or page: white cards in a grid, each sketch as large as its card allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch

from . import raster, vector
from .display import Style, describe, printable
from .html import Card, gallery_page
from .legend import legend
from .notes import Notes

if TYPE_CHECKING:
    from PIL.Image import Image

PAGE_COLOR = "#f3f4f6"
BORDER_COLOR = "#dfe2e6"
# A picture in memory takes three bytes a pixel; past this it is better an SVG or a page.
MOST_PIXELS = 150_000_000
# The average letter is about this wide, as a part of the text size.
_LETTER_WIDTH = 0.52
# How round the corners of a card are, in pixels.
_INSET = 4
_KEY_WIDTH = 900


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the cards lie, in whole pixels."""

    count: int
    columns: int
    card_width: int
    card_height: int
    gap: int

    @property
    def size(self) -> tuple[int, int]:
        rows = math.ceil(self.count / self.columns)
        return (
            self.columns * self.card_width + (self.columns + 1) * self.gap,
            rows * self.card_height + (rows + 1) * self.gap,
        )

    def corners(self) -> Iterator[tuple[int, int]]:
        """The top left corner of each card, row by row."""
        for index in range(self.count):
            row, column = divmod(index, self.columns)
            yield (
                self.gap + column * (self.card_width + self.gap),
                self.gap + row * (self.card_height + self.gap),
            )


def gallery_svg(
    sketches: Sequence[Sketch],
    *,
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    cell: int = 200,
    style: Style | None = None,
    notes: Sequence[Notes] | None = None,
) -> str:
    """A grid of sketches, each in a card of `cell` pixels, with a line of text below it where captions are given.

    With notes, one for each, they are drawn with their constraints, and a legend is below all.
    """
    sketches, captions = cards(sketches, captions)
    style = (style or Style()).sized(cell)
    grid = _grid(len(sketches), columns, cell, _caption_height(captions, style))
    width, height = grid.size
    below, more = legend(sketches, notes, width, _legend_style(style)) if notes else ([], 0.0)
    box = f'width="{width}" height="{vector.num(height + more)}" viewBox="0 0 {width} {vector.num(height + more)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
        f'<rect width="100%" height="100%" fill="{PAGE_COLOR}"/>',
    ]
    for (x, y), sketch, caption, note in zip(
        grid.corners(), sketches, captions, notes_or_none(sketches, notes), strict=True
    ):
        parts.append(f'<g transform="translate({x} {y})">')
        parts.append(
            f'<rect x="0.5" y="0.5" width="{grid.card_width - 1}" height="{grid.card_height - 1}" rx="{_INSET}" '
            f'fill="{style.background}" stroke="{BORDER_COLOR}"/>'
        )
        parts.append(vector.drawing(sketch, cell, cell, style, note))
        if caption:
            parts.append(vector.text(_fitting(caption, cell, style), cell / 2, cell + style.text_size * 0.4, style))
        parts.append("</g>")
    if below:
        parts.append(f'<g transform="translate(0 {height})">\n{vector.layered(below)}\n</g>')
    return "\n".join([*parts, "</svg>\n"])


def gallery_png(
    sketches: Sequence[Sketch],
    *,
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    cell: int = 200,
    style: Style | None = None,
    notes: Sequence[Notes] | None = None,
) -> Image:
    """The same grid as `gallery_svg`, as pixels."""
    from PIL import Image, ImageDraw

    sketches, captions = cards(sketches, captions)
    style = (style or Style()).sized(cell)
    grid = _grid(len(sketches), columns, cell, _caption_height(captions, style))
    width, height = grid.size
    if width * height > MOST_PIXELS:
        raise SketchError(
            f"a gallery of {len(sketches)} sketches would be {width} × {height} pixels: "
            "show fewer, make them smaller, or write SVG or HTML"
        )
    page = Image.new("RGB", grid.size, PAGE_COLOR)
    pen = ImageDraw.Draw(page)
    for (x, y), sketch, caption, note in zip(
        grid.corners(), sketches, captions, notes_or_none(sketches, notes), strict=True
    ):
        card = (x, y, x + grid.card_width - 1, y + grid.card_height - 1)
        pen.rounded_rectangle(card, radius=_INSET, fill=style.background, outline=BORDER_COLOR)
        # Without its outermost pixels, which are blank, so that the card keeps its border.
        drawn = raster.picture(sketch, cell, cell, style, note)
        page.paste(drawn.crop((_INSET, _INSET, cell - _INSET, cell - _INSET)), (x + _INSET, y + _INSET))
        if caption:
            raster.write(page, _fitting(caption, cell, style), x + cell / 2, y + cell + style.text_size * 0.4, style)
    return raster.above(page, raster.legend_of(sketches, notes, width, _legend_style(style))) if notes else page


def gallery_html(
    sketches: Sequence[Sketch],
    *,
    title: str = "Sketches",
    subtitle: str = "",
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    cell: int = 200,
    style: Style | None = None,
    notes: Sequence[Notes] | None = None,
) -> str:
    """The same cards as a web page without outside resources.

    Cards stay white in the dark: the colors are chosen for white. With notes, one for each sketch, constraints are
    drawn, and each shows its name under the pointer.
    """
    sketches, captions = cards(sketches, [describe(sketch) for sketch in sketches] if captions is None else captions)
    figures = [
        Card(vector.svg(sketch, cell, style=style, notes=note, explained=False), caption, tooltip=describe(sketch))
        for sketch, caption, note in zip(sketches, captions, notes_or_none(sketches, notes), strict=True)
    ]
    larger = (style or Style()).times(1.25)
    key = vector.legend_svg(sketches, notes, _KEY_WIDTH, larger) if notes else ""
    tracks = f"repeat({columns}, minmax(0, 1fr))" if columns else f"repeat(auto-fill, minmax(min({cell}px, 100%), 1fr))"
    return gallery_page(title, figures, lead=[subtitle], legend=key, tracks=tracks)


def cards(sketches: Sequence[Sketch], captions: Sequence[str] | None) -> tuple[Sequence[Sketch], Sequence[str]]:
    """At least one card, and a caption for each, blank where none is wanted."""
    sketches = sketches or [Sketch(())]
    captions = [printable(words) for words in captions] if captions else [""] * len(sketches)
    if len(captions) != len(sketches):
        raise ValueError(f"{len(captions)} captions for {len(sketches)} sketches")
    return sketches, captions


def notes_or_none(sketches: Sequence[Sketch], notes: Sequence[Notes] | None) -> Sequence[Notes | None]:
    """The notes of each card, if there are any."""
    return notes or [None] * len(sketches)


def _legend_style(style: Style) -> Style:
    """Readable however small the cards are, on the page's own color."""
    return replace(style, background=PAGE_COLOR, text_size=max(style.text_size, Style().text_size))


def _grid(count: int, columns: int | None, cell: int, caption_height: int) -> Grid:
    columns = max(1, min(count, columns or math.ceil(math.sqrt(count))))
    return Grid(count, columns, cell, cell + caption_height, gap=max(4, round(cell * 0.05)))


def _caption_height(captions: Sequence[str], style: Style) -> int:
    return round(1.5 * style.text_size) if any(captions) else 0


def _fitting(words: str, width: float, style: Style) -> str:
    """The words, cut where they would leave the card."""
    room = int(0.88 * width / (_LETTER_WIDTH * style.text_size))
    return words if len(words) <= room else words[: max(1, room - 1)].rstrip() + "…"
