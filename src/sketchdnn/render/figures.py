"""Figures made with matplotlib: the style of plots, bar charts for reports, and sketches side by side on a sheet.

A sheet is measured in points, with y up. A sketch has the same strokes there as in a gallery.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from sketchdnn.geometry import Point, Primitive, Sketch, Vec, tessellate
from sketchdnn.io import atomic_write

from .style import Frame, Stroke, Style, frame, shorten, strokes

ORANGE, BLUE, GREEN, GRAY, INK = "#d95f02", "#1f6fb4", "#2e8b57", "#8a8a8a", "#222222"
_TICKS, _AXES = "#444444", "#666666"
PALE_BLUE = "#8fb8d8"

POINTS_PER_INCH = 72
# The deviation of a drawn curve, in points.
_TOLERANCE = 0.04
_MAX_LABEL = 64
_CHART_WIDTH = 8.0  # inches

_SETTINGS: dict[Any, Any] = {"font.size": 9, "font.family": "DejaVu Sans", "legend.frameon": False, "text.color": INK}
_SETTINGS |= {"axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelcolor": INK}
_SETTINGS |= {"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": _AXES}
_SETTINGS |= {"xtick.color": _TICKS, "ytick.color": _TICKS, "lines.linewidth": 1.8}
_SETTINGS |= {"figure.dpi": 150, "savefig.dpi": 150, "svg.hashsalt": "sketchdnn"}


@contextmanager
def plot_style(*, math: bool = True) -> Iterator[Any]:
    """Yield `matplotlib.figure.Figure` with the project's style; `pyplot` is slower to import and not needed.

    Without `math`, dollar signs in text are plain characters, as text from files needs.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS | {"text.parse_math": math}):
        yield Figure


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, atomically.

    Returns:
        The paths of the files.
    """
    paths = {folder / f"{name}.png": "Software", folder / f"{name}.svg": "Date"}
    for path, left_out in paths.items():
        with atomic_write(path) as temporary:
            figure.savefig(temporary, bbox_inches="tight", metadata={left_out: None})
    return list(paths)


def figure_svg(figure: Any) -> str:
    """A figure as SVG to be inserted into a page: text stays text, and its dark grays follow the page's color.

    Make the figure with `layout="constrained"`, so that its labels are within its size.
    """
    import matplotlib as mpl

    for artist in figure.findobj():
        artist.set_clip_on(False)  # clip paths have ids, which would clash between the plots of a page
    buffer = StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # letters that the font lacks: the browser has others
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    picture = buffer.getvalue()[buffer.getvalue().index("<svg") :]
    picture = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", picture, flags=re.DOTALL)  # it would style the page
    picture = re.sub(r' id="[a-zA-Z]+[\w.]*_\d+"', "", picture)
    picture = re.sub("|".join((INK, _TICKS, _AXES)), "currentColor", picture)
    return picture.replace("<svg", '<svg role="img"', 1)


def bar_chart(values: Mapping[str, int], *, total: int | None = None, parts: Mapping[str, int] | None = None) -> str:
    """Horizontal bars as SVG, a row for each name.

    Args:
        values: The count of each name.
        total: What percentages are taken of; none are shown without it.
        parts: For some names, the part of the count that is drawn darker.
    """
    with plot_style(math=False) as new_figure:
        figure = new_figure(figsize=(_CHART_WIDTH, 0.1 + 0.27 * len(values)), layout="constrained")
        axes = figure.subplots()
        names = [shorten(name, _MAX_LABEL) for name in values]
        rows = range(len(values))
        bars = axes.barh(rows, list(values.values()), color=PALE_BLUE, height=0.78)
        if parts:
            axes.barh(rows, [parts.get(name, 0) for name in values], color=BLUE, height=0.78)
        labels = [f"{value:,} · {_percent(value, total)}" if total else f"{value:,}" for value in values.values()]
        axes.bar_label(bars, labels, padding=4)
        axes.set_xlim(0, 1.2 * max([*values.values(), 1]))
        axes.set_yticks(rows, names)
        axes.set_ylim(len(values) - 0.5, -0.5)
        return _without_axis(figure, axes, axes.xaxis)


def column_chart(values: Mapping[str, int], label: str) -> str:
    """A histogram as SVG: a column for each name, in order, with its count above it."""
    with plot_style(math=False) as new_figure:
        figure = new_figure(figsize=(min(_CHART_WIDTH, 0.9 + 0.7 * len(values)), 2.0), layout="constrained")
        axes = figure.subplots()
        columns = axes.bar(range(len(values)), list(values.values()), color=PALE_BLUE, width=0.82)
        axes.bar_label(columns, [_compact(value) for value in values.values()], padding=2, fontsize=8)
        axes.set_xticks(range(len(values)), [shorten(name, _MAX_LABEL) for name in values])
        axes.set_xlabel(shorten(label, _MAX_LABEL))
        axes.set_xlim(-0.6, len(values) - 0.4)
        return _without_axis(figure, axes, axes.yaxis)


def _without_axis(figure: Any, axes: Any, axis: Any) -> str:
    """A chart as SVG, without lines, ticks and one of its axes."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, colors=INK)
    axis.set_visible(False)
    return figure_svg(figure)


def _percent(value: int, total: int) -> str:
    share = 100 * value / total
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %" if share >= 0.1 else "< 0.1 %"


def _compact(value: int) -> str:
    """A count in at most four characters.

    >>> _compact(950), _compact(12_345), _compact(4_100_000)
    ('950', '12k', '4.1M')
    """
    if value < 1_000:
        return str(value)
    scaled, unit = (value / 1_000_000, "M") if value >= 1_000_000 else (value / 1_000, "k")
    return f"{scaled:.0f}{unit}" if scaled >= 10 else f"{scaled:.1f}{unit}"


class Panel(NamedTuple):
    """A square on the sheet, by its center and side in points, and its view of the plane."""

    x: float
    y: float
    side: float
    view: Frame

    def to_sheet(self, p: Vec) -> Vec:
        """The position of a point of the sketch on the sheet."""
        (cx, cy), scale = self.view.center, self.view.scale
        return (self.x + scale * (p[0] - cx), self.y + scale * (p[1] - cy))


@contextmanager
def sheet(width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, in points, with y up."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
        axes.axis("off")
        yield figure, axes


def panel_of_sketch(sketch: Sketch, x: float, y: float, side: float) -> Panel:
    """A panel that shows a sketch as large as possible."""
    return Panel(x, y, side, frame(sketch, side, side, Style()))


def draw_sketch(axes: Any, sketch: Sketch, panel: Panel, style: Style | None = None) -> None:
    """Draw a sketch in its colors, construction dashed."""
    for stroke in strokes(sketch, panel.view, style or Style().sized(panel.side)):
        draw_stroke(axes, stroke, panel)


def draw_stroke(axes: Any, stroke: Stroke, panel: Panel) -> Any:
    """Draw a primitive; returns its artist."""
    if isinstance(stroke.primitive, Point):
        x, y = panel.to_sheet(stroke.primitive.at)
        fill, rim = ("white", stroke.color) if stroke.primitive.construction else (stroke.color, "white")
        return axes.plot([x], [y], "o", ms=2.6 * stroke.width + 1, mfc=fill, mec=rim, mew=0.6 * stroke.width)[0]
    dash = (0, tuple(length / stroke.width for length in stroke.dash)) if stroke.dash else "solid"
    look = {"color": stroke.color, "linewidth": stroke.width, "linestyle": dash, "solid_capstyle": "round"}
    return axes.plot(*zip(*polyline(stroke.primitive, panel), strict=True), **look)[0]


def polyline(primitive: Primitive, panel: Panel) -> list[Vec]:
    """A curve as points on the sheet."""
    return [panel.to_sheet((x, y)) for x, y in tessellate(primitive, _TOLERANCE / panel.view.scale).tolist()]


def draw_rule(axes: Any, x0: float, x1: float, y: float) -> None:
    """Draw a thin horizontal line."""
    axes.plot([x0, x1], [y, y], color=GRAY, linewidth=0.6)
