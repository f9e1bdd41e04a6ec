"""The plots of docs/results/index.md, from kept reports and the tables of the pages beside it; nothing is measured.

A page is read by the names of its columns, so that its tables may move and grow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sketchdnn.errors import SketchError
from sketchdnn.evaluation import load_report
from sketchdnn.render.figures import BLUE, GRAY, GREEN, INK, ORANGE, PALE_BLUE, plot_style, save_figure

# The folders of the kept reports, and how the plot names them.
SYSTEMS = {
    "sketchdnn": "SketchDNN",
    "sketchdnn-pos": "SketchDNN (Pos.)",
    "sketchdnn-cat": "SketchDNN (Cat.)",
    "vitruvion--arcs-sweep": "Vitruvion",
    "sketchgen": "SketchGen",
    "latent": "latent diffusion",
}
_NUMBER = re.compile(r"[−-]?[\d,]*\.?\d+")


class Bar(NamedTuple):
    """A value with its interval, or with the value itself where there is none."""

    name: str
    value: float
    low: float
    high: float


def tables(page: str, *columns: str) -> Iterator[list[dict[str, str]]]:
    """Every table of a page that has these columns: its rows, each by the names of the columns."""
    for table in re.findall(r"(?:^\|.*\|$\n?)+", page, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
        if set(columns) <= set(head):
            yield [dict(zip(head, row, strict=False)) for row in rows]


def numbers(cell: str) -> list[float]:
    """The numbers of a cell: `95.8% (86.0–98.8)` has three."""
    return [float(text.replace(",", "").replace("−", "-")) for text in _NUMBER.findall(cell.replace("–", " to "))]


def write_results(reports: Path, pages: Path, out: Path) -> list[Path]:
    """Draw all plots.

    Args:
        reports: The folder of the six systems' reports.
        pages: The folder of `samplers.md`, `generate.md` and `completion.md`.
        out: The folder to write to.
    """
    written = write_systems(out, *systems(reports))
    written += write_steps(out, list(steps(_page(pages / "samplers.md"))))
    written += write_speed(out, speeds(_page(pages / "generate.md")))
    return written + write_completion(out, completion(_page(pages / "completion.md")))


def _page(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SketchError(f"{path}: the page cannot be read; name the folder docs/results") from error


def systems(reports: Path) -> tuple[list[Bar], Bar]:
    """FID of each system against the test split, and of real sketches."""
    scores = {name: load_report(reports / folder / "report")["scores"]["test"] for folder, name in SYSTEMS.items()}
    floor = next(iter(scores.values()))["floor"]["fid"]
    return [_bar(name, score["system"]["fid"]) for name, score in scores.items()], _bar("real sketches", floor)


def _bar(name: str, score: Mapping[str, Any]) -> Bar:
    return Bar(name, score["value"], score["low"], score["high"])


def steps(page: str) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """FID over steps for each sampler and section of `samplers.md`, of the tables with the most sketches."""
    for title, section in re.findall(r"^#+ (.*)\n((?:(?!^#).*\n?)*)", page, re.MULTILINE):
        for rows in tables(section, "sampler", "steps", "seconds", "FID"):
            by_sampler: dict[str, list[tuple[float, float]]] = {}
            for row in rows:
                by_sampler.setdefault(row["sampler"], []).append((numbers(row["steps"])[0], numbers(row["FID"])[0]))
            for sampler, points in by_sampler.items():
                yield f"{sampler}, {title[0].lower()}{title[1:]}", sorted(points)
            break  # the later tables of a section are of fewer sketches


def speeds(page: str) -> list[Bar]:
    """Sketches a second by device and model."""
    bars = []
    for device, rows in zip(("H200", "2 cores"), tables(page, "model", "execution", "sketches/s"), strict=False):
        for row in rows:
            name = f"{row['model']}\n{row['execution'].partition(' (')[0]}, {row['steps']} steps, {device}"
            value = numbers(row["sketches/s"])[0]
            bars.append(Bar(name, value, value, value))
    return bars


def completion(page: str) -> dict[str, list[Bar]]:
    """Two scores of `completion.md` by task, of the page's first table."""
    scores = {
        "the first suggestion can be extruded": "extrudable, first",
        "hidden primitives recovered, best of 8": "recovered, best of 8",
    }
    rows = next(tables(page, "task", "ideas of", *scores.values()), [])
    bars: dict[str, list[Bar]] = {}
    for title, column in scores.items():
        for row in rows:
            if row["ideas of"] == "both" and len(found := numbers(row[column])) >= 3:
                bars.setdefault(title, []).append(Bar(row["task"], *found[:3]))
    return bars


def write_systems(out: Path, bars: list[Bar], floor: Bar) -> list[Path]:
    """FID as bars, with intervals, and real sketches as a line."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(6.4, 2.6), layout="constrained")
        axes = figure.subplots()
        _draw(axes, bars, lambda bar: BLUE if bar.name.startswith("SketchDNN") else GRAY)
        axes.axvline(floor.value, color=ORANGE, linestyle="--", linewidth=1.2)
        axes.text(floor.value, -0.6, f"real sketches {floor.value:.1f}", color=ORANGE, ha="center", fontsize=8)
        axes.set_xlabel("FID against held-out sketches; less is better")
        return save_figure(figure, out, "systems")


def write_steps(out: Path, curves: list[tuple[str, list[tuple[float, float]]]]) -> list[Path]:
    """FID over the number of steps, a curve for each sampler."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        colors = [BLUE, GREEN, GRAY, ORANGE, PALE_BLUE, INK]
        for number, (name, points) in enumerate(curves):
            axes.plot(*zip(*points, strict=True), "o-", color=colors[number % len(colors)], label=name, markersize=4)
        axes.set_xscale("log", base=2)
        ticks = sorted({int(step) for _, points in curves for step, _ in points})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("steps: evaluations of the network")
        axes.set_ylabel("FID")
        axes.grid(axis="y", alpha=0.25)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        return save_figure(figure, out, "steps")


def write_speed(out: Path, bars: list[Bar]) -> list[Path]:
    """Sketches a second on a logarithmic scale."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(6.4, 0.6 + 0.5 * len(bars)), layout="constrained")
        axes = figure.subplots()
        _draw(axes, bars, lambda bar: BLUE if "as used" in bar.name else GRAY, log=True)
        axes.set_xlabel("sketches a second")
        return save_figure(figure, out, "speed")


def write_completion(out: Path, panels: dict[str, list[Bar]]) -> list[Path]:
    """Shares of parts by task, a panel for each score."""
    with plot_style() as new_figure:
        figure = new_figure(figsize=(7.4, 2.4), layout="constrained")
        for axes, (title, bars) in zip(
            figure.subplots(1, max(1, len(panels)), squeeze=False, sharey=True)[0], panels.items(), strict=False
        ):
            _draw(axes, bars, lambda bar: BLUE if bar.name == "all" else PALE_BLUE, percent=True)
            axes.set_xlim(0, 120)
            axes.set_title(title)
            axes.set_xticks(range(0, 101, 25))
        return save_figure(figure, out, "completion")


def _draw(axes: Any, bars: list[Bar], color: Callable[[Bar], str], *, log: bool = False, percent: bool = False) -> None:
    """Horizontal bars from above to below, with their intervals and values."""
    for place, bar in enumerate(bars):
        axes.barh(place, bar.value, height=0.62, color=color(bar), log=log)
        if bar.high > bar.low:
            axes.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1.2)
        if percent:
            axes.text(119, place, f"{bar.value:.0f} %", va="center", ha="right", fontsize=8, color=INK)
        else:
            text = f" {bar.value:.3g}" if bar.value < 1000 else f" {bar.value:,.0f}"
            axes.text(bar.high, place, text, va="center", fontsize=8, color=INK)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.5, -0.5)
