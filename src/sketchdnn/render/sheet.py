"""Sketches side by side on white paper, measured in points: what the figures of sketches are laid out on.

Strokes are those of `render`, so a sketch looks here as it does in a gallery; matplotlib writes both PNG and SVG.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sketchdnn.geometry import Point, Primitive, Sketch, Vec, tessellate
from sketchdnn.render import Frame, Stroke, Style, frame, strokes
from sketchdnn.render.figure_style import GRAY, drawing

POINTS_PER_INCH = 72
# How far a drawn curve may stray from the true one, in points: less than any printer shows.
_STRAY = 0.04


@dataclass(frozen=True, slots=True)
class Panel:
    """A square on the sheet, by its center and side in points, and the part of the plane that it shows."""

    x: float
    y: float
    side: float
    view: Frame

    @property
    def corner(self) -> Vec:
        """The lower left one."""
        return (self.x - self.side / 2, self.y - self.side / 2)

    def place(self, p: Vec) -> Vec:
        """Where on the sheet a place of the sketch lies."""
        (cx, cy), scale = self.view.center, self.view.scale
        return (self.x + scale * (p[0] - cx), self.y + scale * (p[1] - cy))


@contextmanager
def sheet(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its one set of axes, whose unit is the point and whose y runs up."""
    with drawing() as plt:
        figure = plt.figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
        axes.axis("off")
        yield figure, axes


def fitted(sketch: Sketch, x: float, y: float, side: float) -> Panel:
    """A panel that shows a sketch as large as it goes."""
    return Panel(x, y, side, frame(sketch, side, side, Style()))


def window(x: float, y: float, side: float, half: float) -> Panel:
    """A panel that shows the plane from −half to half, whatever is in it."""
    return Panel(x, y, side, Frame(side, side, (0.0, 0.0), side / (2 * half)))


def draw_sketch(axes: Any, sketch: Sketch, panel: Panel, style: Style | None = None) -> None:
    """A sketch in its colors, construction dashed."""
    for stroke in strokes(sketch, panel.view, style or Style().sized(panel.side)):
        draw_stroke(axes, stroke, panel)


def draw_stroke(axes: Any, stroke: Stroke, panel: Panel, *, clip: Any = None) -> None:
    """One primitive; `clip` is a patch to stay inside of."""
    if isinstance(stroke.primitive, Point):
        x, y = panel.place(stroke.primitive.at)
        hollow = stroke.primitive.construction
        (drawn,) = axes.plot(
            [x],
            [y],
            "o",
            markersize=2.6 * stroke.width + 1,
            markerfacecolor="white" if hollow else stroke.color,
            markeredgecolor=stroke.color if hollow else "white",
            markeredgewidth=0.6 * stroke.width,
        )
    else:
        places = outline(stroke.primitive, panel)
        dash = stroke.dash and (0, tuple(length / stroke.width for length in stroke.dash))
        (drawn,) = axes.plot(
            *zip(*places, strict=True),
            color=stroke.color,
            linewidth=stroke.width,
            linestyle=dash or "solid",
            solid_capstyle="round",
            solid_joinstyle="round",
        )
    if clip is not None:
        drawn.set_clip_path(clip)


def outline(primitive: Primitive, panel: Panel) -> list[Vec]:
    """A curve as places on the sheet."""
    fine = tessellate(primitive, _STRAY / panel.view.scale)
    return [panel.place((x, y)) for x, y in fine.tolist()]


def draw_frame(axes: Any, panel: Panel, *, color: str = "#d5d8dc", width: float = 0.6) -> Any:
    """A thin border, which can be clipped to."""
    from matplotlib.patches import Rectangle

    border = Rectangle(panel.corner, panel.side, panel.side, facecolor="none", edgecolor=color, linewidth=width)
    axes.add_patch(border)
    return border


def rule(axes: Any, x0: float, x1: float, y: float) -> None:
    """A thin line across the sheet."""
    axes.plot([x0, x1], [y, y], color=GRAY, linewidth=0.6)
