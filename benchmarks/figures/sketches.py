"""Figures of sketches: the teaser (the paper's figure 1), the pipeline (figure 3), and the Turing test.

The pipeline shows rows of X_t as superpositions: every kind of primitive at once, each as opaque as it is likely, solid
and dashed likewise. Below it is the network's prediction of the clean sketch. The next X is a weighted sum of the two,
new noise and, in some samplers, the previous prediction.

The Turing test shows real and generated sketches for people to tell apart. Both get the same treatment: single
precision, one frame, one style, and a random order of primitives, since colors follow the order and a corpus is sorted.
The machine's own randomness decides which sheet is real: neither the seed nor another run reveals it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import torch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.diffusion.samplers import single_pass
from sketchdnn.diffusion.sampling import Progress, SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.comparison import Source, random_sample
from sketchdnn.evaluation.samples import normalize_sketches
from sketchdnn.generation.engine import CPU_BATCH, fast_inference
from sketchdnn.generation.quality import STEPS
from sketchdnn.generation.trajectory import STRIP_FRACTIONS, nearest_indices, primitive_rows, superposed_primitives
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.render import PALETTE, Frame, Style
from sketchdnn.render.figures import (
    GRAY,
    INK,
    Panel,
    draw_sketch,
    draw_stroke,
    panel_of_sketch,
    save_figure,
    sheet,
)
from sketchdnn.render.style import superposed_strokes
from sketchdnn.representation import decode_compact, layout
from sketchdnn.representation.batch import SketchBatch, decode
from sketchdnn.systems import System

TEASER_SIDE, TEASER_GAP = 92.0, 8.0


def write_teaser(folder: Path, sketches: Sequence[Sketch], *, columns: int = 8) -> list[Path]:
    """Write PNG and SVG of a grid of sketches, in their order."""
    if not sketches:
        raise SketchError("a figure needs at least one sketch")
    columns = min(columns, len(sketches))
    rows = math.ceil(len(sketches) / columns)
    pitch = TEASER_SIDE + TEASER_GAP
    with sheet(columns * pitch, rows * pitch) as (figure, axes):
        for index, sketch in enumerate(sketches):
            row, column = divmod(index, columns)
            draw_sketch(
                axes, sketch, panel_of_sketch(sketch, (column + 0.5) * pitch, (rows - row - 0.5) * pitch, TEASER_SIDE)
            )
        return save_figure(figure, folder, "teaser")


# Half the side of a panel of noise. Sketches lie within ±1; noise beyond this is cut off.
HALF_EXTENT = 1.5
SIDE, GAP, BETWEEN, MARGIN, HEAD, EDGE = 64.0, 6.0, 20.0, 24.0, 16.0, 1.0


@dataclass(frozen=True, slots=True)
class DenoisingFrame:
    """X_t and the prediction from it, for all sketches."""

    t: int
    noisy: SketchBatch
    predicted: SketchBatch


@dataclass(frozen=True, slots=True)
class Denoising:
    """Some frames of a sampling trajectory, and its result."""

    frames: tuple[DenoisingFrame, ...]
    sketches: tuple[Sketch, ...]
    rows: tuple[tuple[int, ...], ...]  # the row of each primitive of each sketch
    arc_scalar: layout.ArcScalar


def record_denoising(
    system: System,
    *,
    count: int = 3,
    seed: int = 0,
    steps: int = STEPS,
    fractions: Sequence[float] = STRIP_FRACTIONS,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Denoising:
    """Sample sketches 0..count−1 of a seed in one pass of the default sampler; keep frames at fractions of T."""
    if not 1 <= count <= CPU_BATCH:
        raise SketchError(f"the figure shows 1 to {CPU_BATCH} sketches, not {count}")
    if system.max_steps is None:
        raise SketchError(f"the system '{system.name}' has no denoising steps to show")
    noise = seeded_noise(seed, torch.arange(CPU_BATCH, device=next(system.parameters()).device))
    state = parts(noise(0)).batch()
    frames: list[DenoisingFrame] = []

    def record(progress: Progress) -> None:
        nonlocal state
        output = progress.prediction
        predicted = SketchBatch(output.construction, output.kind, output.params)
        frames.append(DenoisingFrame(progress.t, state[:count], predicted[:count]))
        state = progress.batch
        on_progress(progress.number / progress.total)

    with torch.no_grad(), fast_inference(system):
        options = SamplingOptions(single_pass(system.default_sampler), steps, on_step=record)
        last = system.sample(noise, options)
    timesteps = [fraction * system.max_steps for fraction in fractions]
    kinds = last.kind[:count].argmax(dim=-1).tolist()
    decoded = decode(last[:count], system.rows.arc_scalar)
    return Denoising(
        tuple(frames[index] for index in nearest_indices([frame.t for frame in frames], timesteps)),
        tuple(result.sketch for result in decoded),
        tuple(map(primitive_rows, kinds, decoded)),
        system.rows.arc_scalar,
    )


def write_pipeline(folder: Path, denoising: Denoising) -> list[Path]:
    """Write PNG and SVG: for each sketch a strip of X_t, a strip of predictions, and the result."""
    pitch, columns, count = SIDE + GAP, len(denoising.frames), len(denoising.sketches)
    large = 2 * pitch - GAP
    width = MARGIN + columns * pitch + BETWEEN + large + EDGE
    height = HEAD + count * (2 * pitch + BETWEEN) - BETWEEN
    with sheet(width, height) as (figure, axes):
        for column, frame in enumerate(denoising.frames):
            _write_label(axes, MARGIN + (column + 0.5) * pitch - GAP / 2, height - HEAD / 2, f"t = {frame.t:,}")
        right = width - EDGE
        _write_label(axes, right - large / 2, height - HEAD / 2, "t = 0: the sketch")
        for number, sketch in enumerate(denoising.sketches):
            top = height - HEAD - number * (2 * pitch + BETWEEN)
            for label, y in (("$X_t$", top - SIDE / 2), (r"$\hat{X}_0$", top - pitch - SIDE / 2)):
                _write_label(axes, MARGIN / 2 - 3, y, label, fontsize=11, color=INK)
            for column, frame in enumerate(denoising.frames):
                x = MARGIN + column * pitch + SIDE / 2
                for batch, y in ((frame.noisy, top - SIDE / 2), (frame.predicted, top - pitch - SIDE / 2)):
                    _draw_superposed(
                        axes, batch[number : number + 1], panel_of_square(x, y, SIDE, HALF_EXTENT), denoising.arc_scalar
                    )
            middle = top - pitch + GAP / 2
            _draw_arrow(axes, right - large - BETWEEN - GAP + 3, right - large - 3, middle)
            panel = panel_of_sketch(sketch, right - large / 2, middle, large)
            draw_border(axes, panel, color=GRAY)
            colors = tuple(PALETTE[row % len(PALETTE)] for row in denoising.rows[number]) or PALETTE
            draw_sketch(axes, sketch, panel, replace(Style().sized(large), palette=colors))
        return save_figure(figure, folder, "pipeline")


def _draw_superposed(axes: Any, rows: SketchBatch, panel: Panel, arc_scalar: layout.ArcScalar) -> None:
    """Colors follow the row, so that a primitive can be followed from panel to panel."""
    border = draw_border(axes, panel)
    for stroke in superposed_strokes(superposed_primitives(rows, arc_scalar), panel.view, Style().sized(panel.side)):
        draw_stroke(axes, stroke, panel).set_clip_path(border)


def _write_label(axes: Any, x: float, y: float, text: str, **style: Any) -> None:
    axes.text(x, y, text, ha="center", va="center", **{"fontsize": 7.5, "color": "#555555", **style})


def _draw_arrow(axes: Any, x0: float, x1: float, y: float) -> None:
    axes.annotate("", (x1, y), (x0, y), arrowprops={"arrowstyle": "-|>", "color": GRAY, "linewidth": 1.0, "shrinkA": 0})


SHEET_CELL, SHEET_COLUMNS, MIXED_COLUMNS = 240, 8, 16
# Empty lines between the question and the answer, so that no preview shows it.
_ANSWER_OFFSET = 80
_SYSTEM_RNG = SystemRandom()


def sample_source(source: Source, count: int, seed: int) -> Source:
    """A random sample of the sketches of a source that have an extent."""
    sketches = normalize_sketches(source.sketches)[0]
    if len(sketches) < count:
        raise SketchError(f"{source.name}: a sheet of {count} needs more sketches than the {len(sketches)} there are")
    return Source(source.name, random_sample(sketches, count, seed))


def write_turing_test(folder: Path, real: Source, generated: Source, *, rng: Random = _SYSTEM_RNG) -> list[Path]:
    """Write two sheets, `a` and `b`, as PNG and SVG, and the answer in `answer.txt`."""
    sides = dict(zip("ab", rng.sample(_anonymize(real, generated, rng), 2), strict=True))
    answer = folder / "answer.txt"
    _remove_answer(answer)
    written: list[Path] = []
    for name, source in sides.items():
        written += _write_sheet(folder / name, source.sketches, SHEET_COLUMNS)
    _write_answer(answer, "Which sheet is which?", [f"{name}: {source.name}" for name, source in sides.items()])
    return [*written, answer]


def write_mixed_turing_test(folder: Path, real: Source, generated: Source, *, rng: Random = _SYSTEM_RNG) -> list[Path]:
    """Write one sheet of numbered cells, `mixed`, as PNG and SVG, and the answer in `mixed_answer.txt`."""
    cells = [(source.name, sketch) for source in _anonymize(real, generated, rng) for sketch in source.sketches]
    rng.shuffle(cells)
    answer = folder / "mixed_answer.txt"
    _remove_answer(answer)
    captions = [str(number) for number in range(1, len(cells) + 1)]
    written = _write_sheet(folder / "mixed", [sketch for _, sketch in cells], MIXED_COLUMNS, captions)
    lines = []
    for name in (real.name, generated.name):
        numbers = [caption for caption, (source, _) in zip(captions, cells, strict=True) if source == name]
        lines.append(f"{name}: {' '.join(numbers)}")
    _write_answer(answer, "Which cells are real? There are as many real as generated ones.", lines)
    return [*written, answer]


def _anonymize(real: Source, generated: Source, rng: Random) -> list[Source]:
    """Keep the geometry alone, in single precision and in a random order of primitives."""
    anonymous = []
    for source in (real, generated):
        plain = [decoded.sketch for decoded in decode_compact(normalize_sketches(source.sketches)[1])]
        shuffled = [Sketch(tuple(rng.sample(sketch.primitives, len(sketch)))) for sketch in plain]
        anonymous.append(Source(source.name, shuffled))
    counts = [len(source.sketches) for source in anonymous]
    if not counts[0] == counts[1] > 0:
        raise SketchError(
            f"the test needs as many real as generated sketches: there are {counts[0]} ({real.name}) "
            f"and {counts[1]} ({generated.name})"
        )
    return anonymous


def _write_sheet(
    path: Path, cells: Sequence[Sketch], columns: int, captions: Sequence[str] | None = None
) -> list[Path]:
    """Write PNG and SVG of one size and without metadata."""
    from sketchdnn.render import Style, gallery_png, gallery_svg

    # Bolder strokes than elsewhere, since a sheet is often shown reduced.
    options: dict[str, Any] = {
        "columns": columns,
        "captions": captions,
        "cell": SHEET_CELL,
        "style": Style().times(1.25),
    }
    paths = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with atomic_write(paths[0]) as temporary:
        gallery_png(cells, **options).save(temporary, format="png", optimize=True)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(gallery_svg(cells, **options), encoding="utf-8")
    return paths


def _remove_answer(answer: Path) -> None:
    """Remove an earlier answer, so that an interrupted run does not leave a wrong one."""
    with suppress(OSError):  # if it cannot be removed, writing the new one fails with a message
        answer.unlink()


def _write_answer(path: Path, question: str, lines: Sequence[str]) -> None:
    with atomic_write(path) as temporary:
        text = [question, "Guess first: the answer is at the end of this file.", *[""] * _ANSWER_OFFSET, *lines]
        temporary.write_text("\n".join(text) + "\n", encoding="utf-8")


def panel_of_square(x: float, y: float, side: float, half: float) -> Panel:
    """A panel that shows the plane from −half to half."""
    return Panel(x, y, side, Frame(side, side, (0.0, 0.0), side / (2 * half)))


def draw_border(axes: Any, panel: Panel, *, color: str = "#d5d8dc", width: float = 0.6) -> Any:
    """Draw a thin border and return its patch."""
    from matplotlib.patches import Rectangle

    corner = (panel.x - panel.side / 2, panel.y - panel.side / 2)
    border = Rectangle(corner, panel.side, panel.side, facecolor="none", edgecolor=color, linewidth=width)
    axes.add_patch(border)
    return border
