"""The paper's figure 1: sketches of the model, every primitive in a color of its own, construction dashed."""

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
from sketchdnn.diffusion.process import LogitBatch
from sketchdnn.diffusion.samplers import single_pass
from sketchdnn.diffusion.sampling import Progress, SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.comparison import Source, random_sample
from sketchdnn.evaluation.samples import normalize_sketches
from sketchdnn.generation.engine import CPU_BATCH, fast_inference
from sketchdnn.generation.generate import STEPS
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
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.systems import System

TEASER_SIDE, TEASER_GAP = 92.0, 8.0


def write_teaser(folder: Path, sketches: Sequence[Sketch], *, columns: int = 8) -> list[Path]:
    """PNG and SVG of a grid of sketches, in the order they come."""
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
                    _draw_superposed(
                        axes, batch[number : number + 1], panel_of_square(x, y, SIDE, HALF), walk.arc_scalar
                    )
            middle = top - pitch + GAP / 2
            _arrow(axes, right - large - BETWEEN - GAP + 3, right - large - 3, middle)
            panel = panel_of_sketch(sketch, right - large / 2, middle, large)
            draw_border(axes, panel, color=GRAY)
            colors = tuple(PALETTE[row % len(PALETTE)] for row in walk.rows[number]) or PALETTE
            draw_sketch(axes, sketch, panel, replace(Style().sized(large), palette=colors))
        return save_figure(figure, folder, "pipeline")


def _draw_superposed(axes: Any, rows: SketchBatch, panel: Panel, arc_scalar: layout.ArcScalar) -> None:
    """Colors follow the row, so that a primitive can be followed from panel to panel."""
    border = draw_border(axes, panel)
    for stroke in superposed_strokes(superposed_primitives(rows, arc_scalar), panel.view, Style().sized(panel.side)):
        draw_stroke(axes, stroke, panel, clip=border)


def _write(axes: Any, x: float, y: float, words: str, **look: Any) -> None:
    axes.text(x, y, words, ha="center", va="center", **{"fontsize": 7.5, "color": "#555555", **look})


def _arrow(axes: Any, x0: float, x1: float, y: float) -> None:
    axes.annotate("", (x1, y), (x0, y), arrowprops={"arrowstyle": "-|>", "color": GRAY, "linewidth": 1.0, "shrinkA": 0})


SHEET_CELL, SHEET_COLUMNS, MIXED_COLUMNS = 240, 8, 16
# Empty lines between the question and the answer, so that no preview shows it.
_SPACE = 80
_CHANCE = SystemRandom()


def choose(source: Source, count: int, seed: int) -> Source:
    """So many of its sketches, by lot; those of no extent make no picture and take no part."""
    sketches = normalize_sketches(source.sketches)[0]
    if len(sketches) < count:
        raise SketchError(f"{source.name}: a sheet of {count} needs more than the {len(sketches)} sketches there are")
    return Source(source.name, random_sample(sketches, count, seed))


def write_guess(folder: Path, one: Source, other: Source, *, chance: Random = _CHANCE) -> list[Path]:
    """Two sheets, `a` and `b`, as PNG and SVG, and in `answer.txt` which is which."""
    sides = dict(zip("ab", chance.sample(_alike(one, other, chance), 2), strict=True))
    answer = folder / "answer.txt"
    _forget(answer)
    written: list[Path] = []
    for name, source in sides.items():
        written += _write_sheet(folder / name, source.sketches, SHEET_COLUMNS)
    _write_answer(answer, "Which sheet is which?", [f"{name}: {source.name}" for name, source in sides.items()])
    return [*written, answer]


def write_mixed_guess(folder: Path, one: Source, other: Source, *, chance: Random = _CHANCE) -> list[Path]:
    """One sheet of numbered cells, `mixed` as PNG and SVG, and in `mixed_answer.txt` which cells are whose."""
    cells = [(source.name, sketch) for source in _alike(one, other, chance) for sketch in source.sketches]
    chance.shuffle(cells)
    answer = folder / "mixed_answer.txt"
    _forget(answer)
    captions = [str(number) for number in range(1, len(cells) + 1)]
    written = _write_sheet(folder / "mixed", [sketch for _, sketch in cells], MIXED_COLUMNS, captions)
    lines = []
    for name in (one.name, other.name):
        numbers = [caption for caption, (whose, _) in zip(captions, cells, strict=True) if whose == name]
        lines.append(f"{name}: {' '.join(numbers)}")
    _write_answer(answer, "Which cells are whose? There are as many of one as of the other.", lines)
    return [*written, answer]


def _alike(one: Source, other: Source, chance: Random) -> list[Source]:
    """Nothing left but geometry: no names, no constraints, no more digits than the other has, no order."""
    alike = []
    for source in (one, other):
        plain = [decoded.sketch for decoded in decode_compact(normalize_sketches(source.sketches)[1])]
        mixed = [Sketch(tuple(chance.sample(sketch.primitives, len(sketch)))) for sketch in plain]
        alike.append(Source(source.name, mixed))
    counts = [len(source.sketches) for source in alike]
    if not counts[0] == counts[1] > 0:
        raise SketchError(
            f"a guess needs as many sketches of one as of the other: there are {counts[0]} ({one.name}) "
            f"and {counts[1]} ({other.name})"
        )
    return alike


def _write_sheet(
    path: Path, cells: Sequence[Sketch], columns: int, captions: Sequence[str] | None = None
) -> list[Path]:
    """PNG and SVG of one size, whoever drew the sketches, and with nothing in them but the picture."""
    from sketchdnn.render import Style, gallery_png, gallery_svg

    # A little bolder than elsewhere: a sheet is looked at whole, smaller than it is.
    look: dict[str, Any] = {"columns": columns, "captions": captions, "cell": SHEET_CELL, "style": Style().times(1.25)}
    paths = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with atomic_write(paths[0]) as temporary:
        gallery_png(cells, **look).save(temporary, format="png", optimize=True)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(gallery_svg(cells, **look), encoding="utf-8")
    return paths


def _forget(answer: Path) -> None:
    """An earlier answer goes first: should this run be stopped, there is none, rather than a wrong one."""
    with suppress(OSError):  # what cannot be removed cannot be replaced either, which is said then
        answer.unlink()


def _write_answer(path: Path, question: str, lines: Sequence[str]) -> None:
    with atomic_write(path) as temporary:
        text = [question, "Guess first: the answer is at the end of this file.", *[""] * _SPACE, *lines]
        temporary.write_text("\n".join(text) + "\n", encoding="utf-8")


def panel_of_square(x: float, y: float, side: float, half: float) -> Panel:
    """A panel that shows the plane from −half to half."""
    return Panel(x, y, side, Frame(side, side, (0.0, 0.0), side / (2 * half)))


def draw_border(axes: Any, panel: Panel, *, color: str = "#d5d8dc", width: float = 0.6) -> Any:
    """Draw a thin border and return its patch."""
    from matplotlib.patches import Rectangle

    border = Rectangle(panel.corner, panel.side, panel.side, facecolor="none", edgecolor=color, linewidth=width)
    axes.add_patch(border)
    return border
