"""The paper's figure 4: sketches of the data above, those of one system after another below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch
from sketchdnn.render.figures import INK, draw_rule, draw_sketch, panel_of_sketch, save_figure, sheet

SIDE, GAP, MARGIN, BETWEEN = 66.0, 8.0, 22.0, 12.0

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Source:
    """Where sketches come from, by name, and some of them."""

    name: str
    sketches: Sequence[Sketch]


def by_lot(many: Sequence[Item], count: int, seed: int) -> list[Item]:
    """Some of many that nobody has chosen; all if there are no more."""
    if len(many) <= count:
        return list(many)
    index = np.random.default_rng(seed).choice(len(many), count, replace=False)
    return [many[i] for i in index.tolist()]


def write_comparison(folder: Path, sources: Sequence[Source], *, columns: int = 8) -> list[Path]:
    """PNG and SVG: a block of rows for each source, rules between."""
    for source in sources:
        if not source.sketches:
            raise SketchError(f"'{source.name}' has no sketches to show")
    if len(sources) < 2:
        raise SketchError("a comparison needs two sources of sketches at least")
    pitch = SIDE + GAP
    heights = [-(-len(source.sketches) // columns) * pitch for source in sources]
    width = MARGIN + columns * pitch
    top = sum(heights) + BETWEEN * (len(sources) - 1)
    with sheet(width, top) as (figure, axes):
        for number, (source, height) in enumerate(zip(sources, heights, strict=True)):
            if number:
                draw_rule(axes, 0, width, top + BETWEEN / 2)
            name = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold", "color": INK}
            # A file's name may hold dollars, which are no formula.
            axes.text(MARGIN / 2 - 2, top - height / 2, source.name, parse_math=False, **name)
            for index, sketch in enumerate(source.sketches):
                row, column = divmod(index, columns)
                x, y = MARGIN + (column + 0.5) * pitch, top - (row + 0.5) * pitch
                draw_sketch(axes, sketch, panel_of_sketch(sketch, x, y, SIDE))
            top -= height + BETWEEN
        return save_figure(figure, folder, "comparison")
