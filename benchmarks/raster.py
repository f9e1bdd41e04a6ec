"""How fast sketches become pictures for a score, beside a matplotlib loop as the authors draw them, in one run."""

from __future__ import annotations

import platform
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

from .generate import best

# The authors' own loop, measured elsewhere on one core; and what was asked for, as pictures a second.
AUTHORS_RATE = 32
WANTED = {"cpu": 30 * AUTHORS_RATE, "cuda": 20_000}
FEWEST, MOST = 8, 16
# Pictures drawn at a time, as an evaluation does; all at once would fill the memory with pictures.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class RasterTiming:
    """What was measured: seconds for `count` pictures by us, and for `plotted` of the same sketches by matplotlib."""

    device: str
    kind: str
    data: str
    primitives: float  # a sketch, on average
    count: int
    seconds: float
    plotted: int
    plot_seconds: float

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def plot_rate(self) -> float:
        return self.plotted / self.plot_seconds

    @property
    def ratio(self) -> float:
        return self.rate / self.plot_rate

    def rows(self) -> list[tuple[str, str]]:
        """What a person wants to know, in order."""
        plotted = f"{self.plot_rate:,.1f} pictures/s ({self.plotted:,} of 640 × 480 in {self.plot_seconds:,.1f} s)"
        minutes = self.count / self.plot_rate / 60
        return [
            ("device", self.device),
            ("sketches", f"{self.count:,} of {self.data}, {self.primitives:.1f} primitives on average"),
            ("rasterize", f"**{self.rate:,.0f} pictures/s** ({self.count:,} of {SIZE}² in {self.seconds:,.2f} s)"),
            ("matplotlib, one core, same run", f"{plotted}; all would take {minutes:,.0f} minutes"),
            ("ratio", f"**{self.ratio:,.0f} ×**"),
            ("authors' own loop", f"{AUTHORS_RATE} pictures/s a core, measured elsewhere"),
            ("wanted", f"{WANTED[self.kind]:,} pictures/s"),
        ]

    def table(self) -> Table:
        """The rows for a terminal."""
        table = Table("", "", title="Drawing sketches for a score", show_header=False)
        for name, value in self.rows():
            table.add_row(name, value.replace("**", ""))
        return table

    def markdown(self, command: str) -> str:
        """The rows as a page."""
        lines = [f"| {name} | {value} |" for name, value in self.rows()]
        return _PAGE.format(command=command, rows="\n".join(lines), size=SIZE, stroke=STROKE)


def time_raster(
    device: str = "cpu",
    count: int = 10_000,
    plotted: int = 100,
    data: Path | None = None,
    repeats: int = 3,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> RasterTiming:
    """Draw `count` sketches of the built-in corpus, or of a prepared one's test split over and over, both ways."""
    kind = device.partition(":")[0]
    if kind not in WANTED:
        raise SketchError(f"the device to draw on is cpu or cuda, not {device}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise SketchError("no CUDA device is available here; draw with --device cpu")
    on_stage("looking for sketches")
    sketches, name = _sketches(data, count)
    batches = [sketches[start : start + BATCH] for start in range(0, count, BATCH)]

    def draw() -> None:
        for batch in batches:
            rasterize(batch, device=device)

    on_stage(f"drawing {count:,} of them")
    with _one_thread():
        seconds = (
            min(_processor_seconds(draw) for _ in range(repeats)) if kind == "cpu" else best(draw, device, repeats, 1)
        )
        on_stage(f"drawing {plotted:,} with matplotlib")
        some = [decoded.sketch for decoded in decode_compact(sketches[:plotted])]
        plot(some[:2])  # imports, fonts
        plot_seconds = _processor_seconds(lambda: plot(some))
    return RasterTiming(
        _device_name(device), kind, name, float(sketches.counts.mean()), count, seconds, len(some), plot_seconds
    )


def plot(sketches: Sequence[Sketch]) -> list[NDArray[np.uint8]]:
    """A figure of 640 × 480 for each sketch and a plot call for each primitive, as arrays of pixels."""
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
                    axes.plot(*_around(center, radius, 0.0, TAU), color="black", linestyle=style)
                case Arc(center, radius, start_angle, sweep):
                    axes.plot(*_around(center, radius, start_angle, sweep), color="black", linestyle=style)
                case Point((x, y)):
                    axes.plot([x], [y], color="black", marker="o")
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        pictures.append(np.asarray(pixels)[..., :3].copy())
    return pictures


def _around(center: tuple[float, float], radius: float, start: float, sweep: float) -> NDArray[np.float64]:
    angles = start + np.linspace(0, sweep, 100)
    return np.stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)])


def _sketches(data: Path | None, count: int) -> tuple[Compact, str]:
    """As many as asked for, of 8 to 16 primitives each, and what they are."""
    if data is None:
        found: list[Sketch] = []
        index = 0
        while len(found) < min(count, BATCH):
            sketch = procedural(0, index)
            index += 1
            if FEWEST <= len(sketch) <= MOST:
                found.append(normalize(sketch)[0])
        compact, name = encode(found), f"the built-in corpus ({len(found):,} different)"
    else:
        compact = Dataset.open(data).split("test").compact
        counts = compact.counts
        compact = compact[(counts >= FEWEST) & (counts <= MOST)]
        name = f"a test split ({len(compact):,} different)"
        if not len(compact):
            raise SketchError(f"the test split of {data} has no sketch of {FEWEST} to {MOST} primitives")
    return compact[np.arange(count) % len(compact)], name


def _processor_seconds(run: Callable[[], object]) -> float:
    """What one thread needs of a core: unlike the clock, it leaves out what others do on the machine meanwhile."""
    start = time.process_time()
    run()
    return time.process_time() - start


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _device_name(device: str) -> str:
    if device != "cpu":
        return f"{torch.cuda.get_device_name(device)} (matplotlib beside it on one CPU core)"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"one core of {names[0] if names else platform.machine()}"


_PAGE = """# Drawing sketches for a score: how fast

    {command}

| | |
|---|---|
{rows}

**What is timed.** `evaluation.raster.rasterize`: from compact rows to gray pictures of {size} × {size} with a stroke of
{stroke} pixels, in batches of a thousand; the best of several rounds. Its definition is exact distances
(`sketchdnn/evaluation/raster.py`); tests hold every pixel to it. Work on a CPU is one thread's, in seconds of its
processor, so that a busy machine does not count; on a GPU it is in seconds by the clock.

**Beside it**, a loop as the authors draw: a matplotlib figure of 640 × 480 for each sketch, a plot call for each
primitive, rendered to an array. A few sketches of the same set, and the time for all in proportion.
"""
