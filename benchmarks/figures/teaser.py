"""The paper's figure 1: sketches of the model, every primitive in a color of its own, construction dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch
from sketchdnn.render.figures import draw_sketch, fitted, save_figure, sheet

SIDE, GAP = 92.0, 8.0


def write_teaser(folder: Path, sketches: Sequence[Sketch], *, columns: int = 8) -> list[Path]:
    """PNG and SVG of a grid of sketches, in the order they come."""
    if not sketches:
        raise SketchError("a figure needs at least one sketch")
    columns = min(columns, len(sketches))
    rows = math.ceil(len(sketches) / columns)
    pitch = SIDE + GAP
    with sheet(columns * pitch, rows * pitch) as (figure, axes):
        for index, sketch in enumerate(sketches):
            row, column = divmod(index, columns)
            draw_sketch(axes, sketch, fitted(sketch, (column + 0.5) * pitch, (rows - row - 0.5) * pitch, SIDE))
        return save_figure(figure, folder, "teaser")
