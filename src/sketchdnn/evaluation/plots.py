"""Plots and pictures of a report: matplotlib plots as SVG, sheets of random sketches, galleries by end gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchdnn.io import atomic_write
from sketchdnn.render.figures import BLUE, GREEN, ORANGE, PALE_BLUE, figure_svg, plot_style
from sketchdnn.render.html import Thumbnails
from sketchdnn.render.style import shorten
from sketchdnn.representation import Compact, decode_compact

from .curves import largest_gaps

SHEET_SIZE, SHEET_COLUMNS = 64, 8
GALLERY_SIZE = 16
GALLERY_SCORE = "the largest end gap of a sketch: the distance from an end of a line or arc to the nearest other end"
_GALLERY_TITLES = {"best": "Best", "typical": "Typical: around the median", "worst": "Worst"}
_WIDTH = 9.0  # inches
_MAX_LABEL = 40


class Curve(NamedTuple):
    """Values at named positions, in order."""

    name: str
    positions: Sequence[str]
    values: Sequence[float]


class Panel(NamedTuple):
    """Curves side by side over one scale, and a level to compare them with."""

    title: str
    curves: Sequence[Curve]
    level: float | None = None
    level_name: str = ""


def plot_panels(panels: Sequence[Panel]) -> str:
    """A row of panels as SVG: curves one after another along x, the level as a dashed line."""
    with plot_style(math=False) as new_figure:
        figure = new_figure(figsize=(_WIDTH, 2.9), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            positions = [name for curve in panel.curves for name in curve.positions]
            first, lines, labels = 0, [], [curve.name for curve in panel.curves]
            for curve, color in zip(panel.curves, (BLUE, GREEN), strict=False):
                x = range(first, first + len(curve.values))
                lines += axes.plot(x, curve.values, "o-", color=color, markersize=4)
                first += len(curve.values)
            if panel.level is not None:
                lines.append(axes.axhline(panel.level, color=ORANGE, linewidth=1.2, linestyle="--"))
                labels.append(shorten(panel.level_name, _MAX_LABEL))
            axes.set_xticks(range(len(positions)), positions, fontsize=7)
            axes.set_title(panel.title)
            axes.grid(axis="y", alpha=0.25)
            axes.legend(lines, labels, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.1))
        return figure_svg(figure)


def plot_distributions(
    first: Mapping[str, float], second: Mapping[str, float], names: tuple[str, str], label: str
) -> str:
    """Two distributions as paired columns in SVG, labeled with percentages."""
    categories = list(dict.fromkeys([*first, *second]))
    with plot_style(math=False) as new_figure:
        figure = new_figure(figsize=(_WIDTH, 2.3), layout="constrained")
        axes = figure.subplots()
        columns = []
        for offset, values, color in ((-0.2, first, ORANGE), (0.2, second, PALE_BLUE)):
            shares = [values.get(category, 0.0) for category in categories]
            columns.append(axes.bar(np.arange(len(categories)) + offset, shares, 0.38, color=color))
            axes.bar_label(columns[-1], [_percent(share) for share in shares], fontsize=6.5, padding=1)
        axes.set_xticks(range(len(categories)), categories)
        axes.set_xlabel(label)
        axes.yaxis.set_visible(False)
        axes.spines["left"].set_visible(False)
        axes.legend(columns, [shorten(name, _MAX_LABEL) for name in names], fontsize=8)
        return figure_svg(figure)


def write_sheet(compact: Compact, path: Path) -> None:
    """Write an image of 64 random sketches of a set; random, because a file may be sorted."""
    from sketchdnn.render import gallery_png

    index = np.random.default_rng(0).permutation(len(compact))[:SHEET_SIZE]
    sketches = [decoded.sketch for decoded in decode_compact(compact[index])]
    with atomic_write(path) as temporary:
        gallery_png(sketches, columns=SHEET_COLUMNS).save(temporary, format="png")


def select_galleries(compact: Compact) -> dict[str, list[int]]:
    """The disjoint indices of the best, typical and worst sketches by `GALLERY_SCORE`.

    Sketches without ends (only circles and points) have no score and are in none of them.
    """
    gaps = largest_gaps(compact)
    scored = np.flatnonzero(~np.isnan(gaps))
    order = scored[np.argsort(gaps[scored], kind="stable")]
    size = min(GALLERY_SIZE, len(order) // 3)
    middle = (len(order) - size) // 2
    return {
        "best": order[:size].tolist(),
        "typical": order[middle : middle + size].tolist(),
        "worst": order[len(order) - size :][::-1].tolist(),
    }


def make_galleries(compact: Compact, selection: Mapping[str, Sequence[int]]) -> list[Thumbnails]:
    """The selected sketches with their gaps as captions."""
    galleries = []
    for name, title in _GALLERY_TITLES.items():
        selected = compact[np.asarray(selection[name], np.int64)]
        captions = [f"gap {gap:.2g}" for gap in largest_gaps(selected).tolist()]
        galleries.append(Thumbnails([decoded.sketch for decoded in decode_compact(selected)], captions, title))
    return galleries


def _percent(share: float) -> str:
    """
    >>> _percent(0.123), _percent(0.004), _percent(0)
    ('12', '0.4', '0')
    """
    return f"{100 * share:.0f}" if share >= 0.0995 or not share else f"{100 * share:.1f}"
