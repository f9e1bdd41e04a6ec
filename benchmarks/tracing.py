"""Tracing of pictures: real test sketches are drawn in several ways, traced, and compared with the originals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Table

from sketchdnn.drawing import HAND, INERTIA, PHOTO, PRECISE, DrawingOptions, draw
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, mean_estimate, share_estimate
from sketchdnn.generation.trace import trace
from sketchdnn.geometry import Point, Sketch, profile
from sketchdnn.representation import encode
from sketchdnn.systems import System
from sketchdnn.tracing import TraceResult
from sketchdnn.tracing.overlay import draw_over

from .completion_cases import held_out_sketches
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table
from .trace_scores import PIXELS, Agreement, Floats, compare, places, transformed, visible

Picture = NDArray[np.uint8]

# Pixels a side of the pictures.
SIDE = 384
GOALS = {"precise": 0.90, "hand": 0.87}
_MAX_CHAMFER = 1.0
_COLUMNS = (
    "pictures", "n", "primitive F1", "F1, as stored", "tokens", "flags", "Chamfer", "MSE", "closed", "refused", "CPU s"
)  # fmt: skip


class Drawn(NamedTuple):
    """A picture, and the map from sketch coordinates to its pixels, `3, 3`."""

    picture: Picture
    placement: Floats


class Case(NamedTuple):
    """A sketch and what came of it; without a result it was refused."""

    truth: Sketch
    drawn: Drawn
    result: TraceResult | None
    agreement: Agreement | None
    stored: Agreement | None
    seconds: float


def _with_noise(options: DrawingOptions) -> Callable[[Sketch, int], Drawn]:
    def picture(sketch: Sketch, seed: int) -> Drawn:
        rows = encode([sketch])
        tensors = (torch.from_numpy(rows.kind.astype(np.int64)), torch.from_numpy(rows.construction))
        generator = torch.Generator().manual_seed(seed)
        drawn = draw(*tensors, torch.from_numpy(rows.params), replace(options, size=SIDE), generator)
        gray = (255 * drawn.gray[0].numpy()).round().astype(np.uint8)
        # The center of pixel k is k + 0.5 in the picture, and k in arrays.
        pixels = np.array([[SIDE, 0, -0.5], [0, SIDE, -0.5], [0, 0, 1]])
        return Drawn(np.repeat(gray[..., None], 3, 2), pixels @ drawn.placement[0].double().numpy())

    return picture


def draw_xkcd(sketch: Sketch, seed: int) -> Drawn:
    """A picture in the style xkcd of Matplotlib; the seed has no effect."""
    import matplotlib.pyplot as plt

    with plt.xkcd():
        figure = plt.figure(figsize=(SIDE / 96, SIDE / 96), dpi=96)
        axes = figure.add_axes((0, 0, 1, 1))
        for p in sketch:
            if isinstance(p, Point):
                axes.plot(*p.at, "ko", markersize=5)
            else:
                at = np.array([p.at(float(f)) for f in np.linspace(0, 1, 2 if p.kind.label == "line" else 200)])
                axes.plot(*at.T, "k--" if p.construction else "k-", linewidth=2)
        axes.set(xlim=(-1.19, 1.19), ylim=(-1.19, 1.19))
        axes.axis("off")
        file = BytesIO()
        figure.savefig(file, format="png", dpi=96)
        plt.close(figure)
    from PIL import Image

    picture = np.asarray(Image.open(file).convert("RGB"))
    scale = picture.shape[0] / 2.38
    return Drawn(picture, np.array([[scale, 0, 1.19 * scale - 0.5], [0, -scale, 1.19 * scale - 0.5], [0, 0, 1]]))


STYLES: Mapping[str, Callable[[Sketch, int], Drawn]] = {
    "precise": _with_noise(PRECISE),
    "hand": _with_noise(HAND),
    "inertia": _with_noise(INERTIA),
    "photo": _with_noise(PHOTO),
    "xkcd": draw_xkcd,
}
DESCRIPTIONS = {
    "precise": "precise",
    "hand": "hand-drawn: Gaussian process",
    "inertia": "pen with inertia",
    "photo": "photo, all kinds of noise",
    "xkcd": "Matplotlib xkcd",
}


@dataclass(frozen=True, slots=True)
class TraceBenchmark:
    """The cases of each style."""

    cases: Mapping[str, Sequence[Case]]

    def rows(self) -> Iterator[tuple[str, ...]]:
        for style, cases in self.cases.items():
            traced = [case.agreement for case in cases if case.agreement is not None]
            closed = [c for c in cases if profile(visible(c.truth)).is_extrudable]
            still = sum(c.result is not None and profile(c.result.sketch).is_extrudable for c in closed)
            hits = sum(a.hits for a in traced)
            yield (
                DESCRIPTIONS[style],
                str(len(cases)),
                percent(self.f1(style)),
                percent(mean_estimate([c.stored.f1 if c.stored else 0.0 for c in cases])),
                percent(mean_estimate([a.tokens / a.all_tokens if (a := c.agreement) else 0.0 for c in cases])),
                percent(share_estimate(sum(a.flags for a in traced), hits)) if hits else "",
                _median([a.chamfer for a in traced]),
                f"{np.mean([a.mse for a in traced]):.4f}",
                f"{percent(share_estimate(still, len(closed)))} of {len(closed)}" if closed else "",
                str(len(cases) - len(traced)),
                f"{np.median([c.seconds for c in cases]):.2f} (at most {max(c.seconds for c in cases):.1f})",
            )

    def f1(self, style: str) -> Estimate:
        """The mean F1 of visible primitives; 0 for a refused picture."""
        return mean_estimate([case.agreement.f1 if case.agreement else 0.0 for case in self.cases[style]])

    def chamfer(self, style: str) -> float:
        """The median Chamfer distance of the pictures that were traced."""
        return float(np.median([case.agreement.chamfer for case in self.cases[style] if case.agreement]))

    def table(self) -> Table:
        return rich_table("Tracing", _COLUMNS, self.rows())

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        for style, goal in GOALS.items():
            if style in self.cases:
                f1, chamfer = self.f1(style).value, self.chamfer(style)
                verdict = "met" if f1 >= goal else "missed"
                yield f"Primitive F1 of {style} pictures at least {goal:.0%}: {verdict} ({f1:.1%})."
                verdict = "met" if chamfer <= _MAX_CHAMFER else "missed"
                yield f"Chamfer distance at most 1 pixel of {PIXELS} in the median: {verdict} ({chamfer:.2f})."

    def markdown(self, command: str) -> str:
        text = "`docs/tracing.md` defines the scores. Brackets hold 95 % intervals over sketches."
        body = markdown_table(_COLUMNS, self.rows())
        return "\n\n".join(["# Tracing", f"`{command}`", text, body, "\n".join(self.sentences())]) + "\n"


def measure(
    data: Path,
    styles: Sequence[str] = tuple(STYLES),
    count: int = 300,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
    system: System | None = None,
) -> TraceBenchmark:
    """Draw and trace test sketches of a prepared corpus in each style.

    Args:
        data: The corpus.
        styles: Names of `STYLES`.
        count: How many sketches.
        seed: Of the choice of sketches and of the noise.
        on_stage: Called with the name of each stage.
        system: A model whose image encoder proposes candidates; by default geometry alone traces.
    """
    if unknown := [style for style in styles if style not in STYLES]:
        raise SketchError(f"there is no style {unknown[0]!r}; use {', '.join(STYLES)}")
    sketches = list(islice(held_out_sketches(data, (1, 16), seed), count))
    if len(sketches) < 2:
        raise SketchError(f"{data} has too few test sketches to measure")
    cases: dict[str, list[Case]] = {style: [] for style in styles}
    for style in styles:
        for number, sketch in enumerate(sketches):
            on_stage(f"{style}: {number + 1} of {len(sketches)}")
            cases[style].append(trace_case(sketch, style, 1000 * seed + number, system))
    return TraceBenchmark(cases)


def trace_case(sketch: Sketch, style: str, seed: int, system: System | None = None) -> Case:
    """Draw a sketch in a style, trace it and compare."""
    drawn = STYLES[style](sketch, seed)
    start = time.process_time()
    try:
        result = trace(system, drawn.picture)
    except SketchError:
        return Case(sketch, drawn, None, None, None, time.process_time() - start)
    seconds = time.process_time() - start
    found = transformed(result.sketch, _to_truth(result, drawn))
    return Case(sketch, drawn, result, compare(visible(sketch), found), compare(sketch, found), seconds)


def _to_truth(result: TraceResult, drawn: Drawn) -> Floats:
    """The similarity that places a result best on the original: its perspective and shear remain errors."""
    matrix = np.linalg.inv(drawn.placement) @ result.to_source @ result.to_picture
    at = places(result.sketch)
    mapped = np.column_stack((at, np.ones(len(at)))) @ matrix.T
    to = mapped[:, :2] / mapped[:, 2:]
    a, b = (values[:, 0] + 1j * values[:, 1] for values in (at, to))
    spread = float((np.abs(a - a.mean()) ** 2).sum())
    factor = complex(((a - a.mean()).conj() * (b - b.mean())).sum()) / spread if spread else 1.0
    shift = complex(b.mean()) - factor * complex(a.mean())
    return np.array([[factor.real, -factor.imag, shift.real], [factor.imag, factor.real, shift.imag], [0, 0, 1]])


def sheet(cases: Sequence[Case], columns: int = 4) -> Picture:
    """Pictures and results side by side, `columns` pairs a row."""
    cells = []
    for case in cases:
        picture = case.drawn.picture
        if case.result is None:
            after = np.full_like(picture, 230)
        else:
            to_source = case.result.to_source @ case.result.to_picture
            after = draw_over(picture, case.result.sketch, to_source / to_source[2, 2])
        cells.append(np.pad(np.hstack((picture, after)), ((4, 4), (4, 4), (0, 0)), constant_values=180))
    while len(cells) % columns:
        cells.append(np.full_like(cells[0], 255))
    return np.vstack([np.hstack(cells[k : k + columns]) for k in range(0, len(cells), columns)])


def _median(values: Sequence[float]) -> str:
    """A median with the 95 % interval of order statistics."""
    ordered = np.sort(values)
    n = len(ordered)
    if not n:
        return ""
    reach = 0.98 * n**0.5
    low, high = ordered[max(0, int(n / 2 - reach))], ordered[min(n - 1, int(n / 2 + reach))]
    return f"{np.median(ordered):.2f} ({low:.2f}–{high:.2f})"
