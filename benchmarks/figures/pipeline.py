"""The paper's figure 3: noise becomes a sketch, step by step.

A row of X_t is a superposition: every kind of primitive at once, each as opaque as it is likely, its solid and dashed
selves likewise. Below it is what the network makes of it, its prediction of the clean sketch; the next X is a weighted
sum of the two, fresh noise and, by some samplers, the prediction before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import LogitBatch
from sketchdnn.diffusion.samplers import single_pass
from sketchdnn.diffusion.sampling import Progress, SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.generation.engine import CPU_BATCH, fast_inference
from sketchdnn.generation.generate import STEPS
from sketchdnn.generation.trajectory import STRIP_FRACTIONS, nearest_indices, primitive_rows, superposed_primitives
from sketchdnn.geometry import Sketch
from sketchdnn.render import PALETTE, Style
from sketchdnn.render.figures import (
    GRAY,
    INK,
    Panel,
    draw_frame,
    draw_sketch,
    draw_stroke,
    fitted,
    save_figure,
    sheet,
    window,
)
from sketchdnn.render.superposed import superposed_strokes
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.systems import System

# Sketches lie within ±1; noise strays further, and is cut off.
HALF = 1.5

SIDE, GAP, BETWEEN, MARGIN, HEAD, EDGE = 64.0, 6.0, 20.0, 24.0, 16.0, 1.0


@dataclass(frozen=True, slots=True)
class Glimpse:
    """X_t and the prediction made of it, for all sketches of the walk."""

    t: int
    noisy: SketchBatch
    predicted: SketchBatch


@dataclass(frozen=True, slots=True)
class Denoising:
    """A few moments of a walk from noise, and where it ended."""

    glimpses: tuple[Glimpse, ...]
    sketches: tuple[Sketch, ...]
    rows: tuple[tuple[int, ...], ...]  # which row each primitive of each sketch came from
    arc_scalar: layout.ArcScalar


def watch(
    system: System,
    *,
    count: int = 3,
    seed: int = 0,
    steps: int = STEPS,
    shares: Sequence[float] = STRIP_FRACTIONS,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Denoising:
    """Draw sketches 0..count−1 of a seed in one walk of the system's own sampler, and look on at some shares of T."""
    if not 1 <= count <= CPU_BATCH:
        raise SketchError(f"the figure shows 1 to {CPU_BATCH} sketches, not {count}")
    if system.max_steps is None:
        raise SketchError(f"a '{system.name}' takes no noise away: there is nothing to show on the way")
    noise = seeded_noise(seed, torch.arange(CPU_BATCH, device=next(system.parameters()).device))
    state = LogitBatch.from_noise(noise(0)).batch()
    seen: list[Glimpse] = []

    def look(progress: Progress) -> None:
        nonlocal state
        said = progress.prediction
        seen.append(Glimpse(progress.t, state[:count], SketchBatch(said.construction, said.kind, said.params)[:count]))
        state = progress.batch
        on_progress(progress.number / progress.total)

    with torch.no_grad(), fast_inference(system):
        options = SamplingOptions(single_pass(system.default_sampler), steps, on_step=look)
        last = system.sample(noise, options)
    wanted = [share * system.max_steps for share in shares]
    kinds = last.kind[:count].argmax(dim=-1).tolist()
    ends = decode(last[:count], system.rows.arc_scalar)
    return Denoising(
        tuple(seen[index] for index in nearest_indices([glimpse.t for glimpse in seen], wanted)),
        tuple(end.sketch for end in ends),
        tuple(map(primitive_rows, kinds, ends)),
        system.rows.arc_scalar,
    )


def write_pipeline(folder: Path, walk: Denoising) -> list[Path]:
    """PNG and SVG: two strips a sketch, what is there and what is predicted, and the sketch that comes out."""
    pitch, columns, count = SIDE + GAP, len(walk.glimpses), len(walk.sketches)
    large = 2 * pitch - GAP
    width = MARGIN + columns * pitch + BETWEEN + large + EDGE
    height = HEAD + count * (2 * pitch + BETWEEN) - BETWEEN
    with sheet(width, height) as (figure, axes):
        heads = [f"t = {glimpse.t:,}" for glimpse in walk.glimpses]
        for column, words in enumerate(heads):
            _write(axes, MARGIN + (column + 0.5) * pitch - GAP / 2, height - HEAD / 2, words)
        right = width - EDGE
        _write(axes, right - large / 2, height - HEAD / 2, "t = 0: the sketch")
        for number, sketch in enumerate(walk.sketches):
            top = height - HEAD - number * (2 * pitch + BETWEEN)
            for words, y in (("$X_t$", top - SIDE / 2), (r"$\hat{X}_0$", top - pitch - SIDE / 2)):
                _write(axes, MARGIN / 2 - 3, y, words, fontsize=11, color=INK)
            for column, glimpse in enumerate(walk.glimpses):
                x = MARGIN + column * pitch + SIDE / 2
                for batch, y in ((glimpse.noisy, top - SIDE / 2), (glimpse.predicted, top - pitch - SIDE / 2)):
                    _draw_superposed(axes, batch[number : number + 1], window(x, y, SIDE, HALF), walk.arc_scalar)
            middle = top - pitch + GAP / 2
            _arrow(axes, right - large - BETWEEN - GAP + 3, right - large - 3, middle)
            panel = fitted(sketch, right - large / 2, middle, large)
            draw_frame(axes, panel, color=GRAY)
            colors = tuple(PALETTE[row % len(PALETTE)] for row in walk.rows[number]) or PALETTE
            draw_sketch(axes, sketch, panel, replace(Style().sized(large), palette=colors))
        return save_figure(figure, folder, "pipeline")


def _draw_superposed(axes: Any, rows: SketchBatch, panel: Panel, arc_scalar: layout.ArcScalar) -> None:
    """Colors follow the row, so that a primitive can be followed from panel to panel."""
    border = draw_frame(axes, panel)
    for stroke in superposed_strokes(superposed_primitives(rows, arc_scalar), panel.view, Style().sized(panel.side)):
        draw_stroke(axes, stroke, panel, clip=border)


def _write(axes: Any, x: float, y: float, words: str, **look: Any) -> None:
    axes.text(x, y, words, ha="center", va="center", **{"fontsize": 7.5, "color": "#555555", **look})


def _arrow(axes: Any, x0: float, x1: float, y: float) -> None:
    axes.annotate("", (x1, y), (x0, y), arrowprops={"arrowstyle": "-|>", "color": GRAY, "linewidth": 1.0, "shrinkA": 0})
