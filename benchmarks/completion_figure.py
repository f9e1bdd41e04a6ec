"""What became of half-hidden sketches, side by side: given black, added blue, the hidden truth light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sketchdnn.geometry import Primitive, Sketch
from sketchdnn.io import atomic_write
from sketchdnn.render import Style
from sketchdnn.render.gallery import BORDER_COLOR
from sketchdnn.render.raster import picture, write

from .completion_page import CompletionBench
from .half_hidden import Case

if TYPE_CHECKING:
    from PIL.Image import Image

GIVEN, ADDED, HIDDEN = "#1a1a1a", "#0072b2", "#c9ced4"
# Sketches shown: the first of the measurement, not the finest.
SHOWN = 8
CELL, GAP, HEADER = 190, 10, 30


def completion_figure(bench: CompletionBench) -> Image:
    """A row a setting and a column a sketch; the first row shows the halves."""
    from PIL import Image, ImageDraw

    cases = bench.cases[:SHOWN]
    titles = ["given, and what was hidden"]
    lines: list[list[tuple[Primitive, ...]]] = [[() for _ in cases]]
    for score in bench.scores:
        titles.append(f"{score.method}, frame {score.frame}, best of {bench.best_of}")
        pairs = zip(cases, score.chosen, strict=False)
        lines.append([sketch.primitives[len(case.part) :] for case, sketch in pairs])
    width = len(cases) * (CELL + GAP) + GAP
    height = len(lines) * (CELL + HEADER) + GAP
    page = Image.new("RGB", (width, height), "#ffffff")
    pen = ImageDraw.Draw(page)
    style = Style().sized(CELL).times(1.2)
    for row, (title, added) in enumerate(zip(titles, lines, strict=True)):
        top = row * (CELL + HEADER) + HEADER
        # Words are centered on their place, so what is to begin at the margin is put half its length further.
        write(page, title, GAP + pen.textlength(title, font_size=style.text_size) / 2, top - HEADER / 2, style)
        for column, (case, some) in enumerate(zip(cases, added, strict=True)):
            left = GAP + column * (CELL + GAP)
            page.paste(_cell(case, some, style), (left, top))
            pen.rectangle((left, top, left + CELL - 1, top + CELL - 1), outline=BORDER_COLOR)
    return page


def write_figure(bench: CompletionBench, path: Path) -> None:
    """The figure as a PNG, whole or not at all."""
    with atomic_write(path) as temporary:
        completion_figure(bench).save(temporary, format="png", optimize=True)


def _cell(case: Case, added: Sequence[Primitive], style: Style) -> Image:
    parts = (case.hidden, case.part.primitives, tuple(added))
    palette = tuple(color for part, color in zip(parts, (HIDDEN, GIVEN, ADDED), strict=True) for _ in part)
    return picture(Sketch(tuple(item for part in parts for item in part)), CELL, CELL, replace(style, palette=palette))
