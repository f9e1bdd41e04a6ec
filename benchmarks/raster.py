"""Speed of drawing sketches as pictures for a score, beside a matplotlib loop like the authors'."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Table

from sketchdnn.data.loader import Dataset
from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.raster import SIZE, STROKE, rasterize
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Sketch, normalize
from sketchdnn.representation import Compact, decode_compact, encode

from .results import (
    OnStage,
    best_seconds,
    check_device,
    device_name,
    ignore_stage,
    markdown_table,
    processor_name,
    rich_table,
)

# Pictures per second: of the authors' own loop on one core, measured elsewhere, and the goals.
AUTHORS_RATE = 32
GOALS = {"cpu": 30 * AUTHORS_RATE, "cuda": 20_000}
MIN_PRIMITIVES, MAX_PRIMITIVES = 8, 16
# Pictures per batch, as in an evaluation; all at once would not fit in memory.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class RasterTiming:
    """Seconds for `count` pictures, and for `matplotlib_count` of the same sketches by matplotlib."""

    device: str
    device_type: str
    data: str
    primitives: float  # mean per sketch
    count: int
    seconds: float
    matplotlib_count: int
    matplotlib_seconds: float

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def matplotlib_rate(self) -> float:
        return self.matplotlib_count / self.matplotlib_seconds

    @property
    def ratio(self) -> float:
        return self.rate / self.matplotlib_rate

    def rows(self) -> list[tuple[str, str]]:
        """The names and values of the table."""
        size = f"{self.matplotlib_count:,} of 640 × 480 in {self.matplotlib_seconds:,.1f} s"
        matplotlib = f"{self.matplotlib_rate:,.1f} pictures/s; {size}"
        minutes = self.count / self.matplotlib_rate / 60
        return [
            ("device", self.device),
            ("sketches", f"{self.count:,} of {self.data}, {self.primitives:.1f} primitives on average"),
            ("rasterize", f"**{self.rate:,.0f} pictures/s**; {self.count:,} of {SIZE}² in {self.seconds:,.2f} s"),
            (
                "matplotlib, one core, same run",
                f"{matplotlib}; all would take {minutes:,.0f} minutes",
            ),
            ("ratio", f"**{self.ratio:,.0f} ×**"),
            ("authors' own loop", f"{AUTHORS_RATE} pictures/s a core, measured elsewhere"),
            ("goal", f"{GOALS[self.device_type]:,} pictures/s"),
        ]

    def table(self) -> Table:
        return rich_table("Drawing sketches for a score", ("", ""), self.rows(), show_header=False)

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(command=command, table=markdown_table(("", ""), self.rows()), size=SIZE, stroke=STROKE)


def time_raster(
    device: str = "cpu",
    count: int = 10_000,
    matplotlib_count: int = 100,
    data: Path | None = None,
    repeats: int = 3,
    on_stage: OnStage = ignore_stage,
) -> RasterTiming:
    """Draw `count` sketches of the built-in corpus, or of a test split repeated, and some of them with matplotlib."""
    check_device(device)
    device_type = device.partition(":")[0]
    on_stage("loading sketches")
    sketches, name = _load_sketches(data, count)
    batches = [sketches[start : start + BATCH] for start in range(0, count, BATCH)]

    def draw() -> None:
        for batch in batches:
            rasterize(batch, device=device)

    on_stage(f"drawing {count:,} of them")
    with _single_thread():
        seconds = (
            min(_processor_seconds(draw) for _ in range(repeats))
            if device_type == "cpu"
            else best_seconds(draw, device, repeats, 1)
        )
        on_stage(f"drawing {matplotlib_count:,} with matplotlib")
        plotted = [decoded.sketch for decoded in decode_compact(sketches[:matplotlib_count])]
        plot(plotted[:2])  # warm-up: imports, fonts
        matplotlib_seconds = _processor_seconds(lambda: plot(plotted))
    return RasterTiming(
        _device_words(device),
        device_type,
        name,
        float(sketches.counts.mean()),
        count,
        seconds,
        len(plotted),
        matplotlib_seconds,
    )


def plot(sketches: Sequence[Sketch]) -> list[NDArray[np.uint8]]:
    """Pixels of a 640 × 480 figure per sketch, with one plot call per primitive."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pictures = []
    for sketch in sketches:
        figure = Figure(figsize=(6.4, 4.8), dpi=100)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.axis("off")
        for primitive in sketch:
            style = "--" if primitive.construction else "-"
            match primitive:
                case Line((x1, y1), (x2, y2)):
                    axes.plot([x1, x2], [y1, y2], color="black", linestyle=style)
                case Circle(center, radius):
                    axes.plot(*_arc_points(center, radius, 0.0, TAU), color="black", linestyle=style)
                case Arc(center, radius, start_angle, sweep):
                    axes.plot(*_arc_points(center, radius, start_angle, sweep), color="black", linestyle=style)
                case Point((x, y)):
                    axes.plot([x], [y], color="black", marker="o")
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        pictures.append(np.asarray(pixels)[..., :3].copy())
    return pictures


def _arc_points(center: tuple[float, float], radius: float, start: float, sweep: float) -> NDArray[np.float64]:
    angles = start + np.linspace(0, sweep, 100)
    return np.stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)])


def _load_sketches(data: Path | None, count: int) -> tuple[Compact, str]:
    """`count` sketches of 8 to 16 primitives, and a description of them."""
    if data is None:
        parts: list[Sketch] = []
        index = 0
        while len(parts) < min(count, BATCH):
            sketch = procedural(0, index)
            index += 1
            if MIN_PRIMITIVES <= len(sketch) <= MAX_PRIMITIVES:
                parts.append(normalize(sketch)[0])
        compact, name = encode(parts), f"the built-in corpus, {len(parts):,} different"
    else:
        compact = Dataset.open(data).split("test").compact
        counts = compact.counts
        compact = compact[(counts >= MIN_PRIMITIVES) & (counts <= MAX_PRIMITIVES)]
        name = f"a test split, {len(compact):,} different"
        if not len(compact):
            raise SketchError(f"the test split of {data} has no sketch of 8 to 16 primitives")
    return compact[np.arange(count) % len(compact)], name


def _processor_seconds(run: Callable[[], object]) -> float:
    """Processor time of one run, which other work on the machine does not change."""
    start = time.process_time()
    run()
    return time.process_time() - start


@contextmanager
def _single_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _device_words(device: str) -> str:
    if device != "cpu":
        return f"{device_name(device)}; matplotlib beside it on one CPU core"
    return f"one core of {processor_name()}"


_PAGE = """# Speed of drawing sketches for a score

    {command}

{table}

**Measured.** `evaluation.raster.rasterize`: from compact rows to gray pictures of {size} × {size} with a stroke of
{stroke} pixels, in batches of a thousand; the best of several rounds. Tests compare every pixel with exact distances
(`sketchdnn/evaluation/raster.py`). Times on a CPU are seconds of one core's processor time; on a GPU, of the clock.

**Beside it**, a loop like the authors': a matplotlib figure of 640 × 480 per sketch, a plot call per primitive,
rendered to an array. It draws some sketches of the same set; the time for all is in proportion.
"""
