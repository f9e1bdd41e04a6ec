"""Completion of half-hidden sketches: does the added half close the profile, and is it the hidden half?"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from torch import Tensor

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.sampling import ConditioningMethod, SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, clustered_share, share_estimate
from sketchdnn.evaluation.samples import normalize_split
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, is_closed
from sketchdnn.generation.complete import (
    SCALES,
    CompletedPart,
    FramedPart,
    check_method,
    decode_completions,
    frame_part,
    sample_parts,
    score_completion,
)
from sketchdnn.generation.engine import Engine, device_of
from sketchdnn.geometry import Arc, Circle, Line, Placement, Point, Primitive, Sketch, profile
from sketchdnn.io import atomic_write
from sketchdnn.render import Style
from sketchdnn.render.gallery import BORDER_COLOR
from sketchdnn.render.raster import draw_text, picture
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.systems import System

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table
from .samples import cached_samples, pack, rows_hash, unpack, weights_hash

if TYPE_CHECKING:
    from PIL.Image import Image

METHODS: tuple[ConditioningMethod, ...] = ("conditional", "repaint")
FRAMES = ("known", "unknown")
GPU_BATCH, CPU_BATCH = 4_000, 16
# A primitive is recovered if every end, midpoint, center and radius is within this, where the larger side is 2.
RECOVERY_TOLERANCE = 0.05
COLUMNS = (
    "method",
    "frame",
    "closes, best of {best_of}",
    "closes, one sample",
    "recovered, best of {best_of}",
    "recovered, one sample",
    "given unchanged",
)
GIVEN_COLOR, ADDED_COLOR, HIDDEN_COLOR = "#1a1a1a", "#0072b2", "#c9ced4"
# The figure shows the first sketches of the benchmark.
FIGURE_SKETCHES = 8
CELL, GAP, HEADER = 190, 10, 30


@dataclass(frozen=True, slots=True)
class Case:
    """A real sketch, normalized, in two halves: the given part and the hidden primitives."""

    part: Sketch
    hidden: tuple[Primitive, ...]

    @property
    def original(self) -> Sketch:
        return Sketch(self.part.primitives + self.hidden)


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """The cases, and for each frame `best_of` framed parts per case. `cases_hash` identifies the cases."""

    cases: tuple[Case, ...]
    cases_hash: str
    best_of: int
    steps: int
    seed: int
    framed_parts: Mapping[str, Sequence[FramedPart]]

    def identity(self, system: System) -> dict[str, str]:
        """What stored samples depend on."""
        settings = {"cases": self.cases_hash, "best_of": self.best_of, "steps": self.steps, "seed": self.seed}
        return {"completion": json.dumps(settings | {"model": weights_hash(system), "sampler": system.default_sampler})}


@dataclass(frozen=True, slots=True)
class CompletionScore:
    """One method in known or unknown frames.

    Shares of sketches that close, of hidden primitives that are recovered, and of samples that keep every given
    primitive. `best` holds the best completion of each case.
    """

    method: str
    frame: str
    closes: Estimate
    closes_once: Estimate
    recovers: Estimate
    recovers_once: Estimate
    unchanged: Estimate
    best: tuple[Sketch, ...]

    def row(self) -> tuple[str, ...]:
        shares = (self.closes, self.closes_once, self.recovers, self.recovers_once)
        return (self.method, self.frame, *map(percent, shares), f"{self.unchanged.value:.0%}")


@dataclass(frozen=True, slots=True)
class CompletionBenchmark:
    """Both methods and both frames on the same cases, and how many of the original and of the given halves close."""

    cases: tuple[Case, ...]
    best_of: int
    sampler: str
    steps: int
    seconds: float | None  # of sampling; None if the samples were stored
    original_closes: Estimate
    part_closes: Estimate
    scores: tuple[CompletionScore, ...]
    figure: str = "completion.png"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.format(best_of=self.best_of) for column in COLUMNS)

    def rows(self) -> list[tuple[str, ...]]:
        """One row of cells per score, then the original sketches and the given halves."""
        controls = [("the real rest", self.original_closes), ("nothing added", self.part_closes)]
        return [
            *(score.row() for score in self.scores),
            *((name, "–", "–", percent(closes), "–", "–", "–") for name, closes in controls),
        ]

    def table(self) -> Table:
        return rich_table(f"Completing {len(self.cases):,} half-hidden sketches", self.columns, self.rows())

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(
            command=command,
            cases=len(self.cases),
            sampler=self.sampler,
            steps=self.steps,
            table=markdown_table(self.columns, self.rows()),
            figure=self.figure,
            tolerance=RECOVERY_TOLERANCE,
            within=2 * LOOSE_TOLERANCE,
            best_of=self.best_of,
            low=SCALES[0],
            high=SCALES[1],
            seconds="" if self.seconds is None else f" Sampling took {self.seconds:,.0f} s.",
        )


def plan_completion(
    data: Path, *, sketches: int = 500, best_of: int = 8, steps: int = 50, seed: int = 0
) -> CompletionTask:
    """Hide half of the primitives of test sketches, and choose frames for the other half."""
    corpus = Dataset.open(data)
    test = normalize_split(corpus.split("test").compact, is_normalized=corpus.half_extent == 1)
    cases, cases_hash = hide_halves(test, sketches, seed)
    framed_parts = {frame: _frame_parts(cases, frame, best_of, seed) for frame in FRAMES}
    return CompletionTask(tuple(cases), cases_hash, best_of, steps, seed, framed_parts)


def hide_halves(test: Compact, count: int, seed: int) -> tuple[list[Case], str]:
    """A random sample of a split with a random half of the primitives hidden, and the hash of the sample.

    The given part is the larger half and has an extent.
    """
    if len(test) < count:
        raise SketchError(f"{count:,} sketches are to be completed, and the test split has {len(test):,}")
    rng = np.random.default_rng(seed)
    sample = test[np.sort(rng.permutation(len(test))[:count])]
    cases = []
    for decoded in decode_compact(sample):
        primitives = decoded.sketch.primitives
        while True:
            order = rng.permutation(len(primitives))
            given = set(order[: len(primitives) - len(primitives) // 2].tolist())
            part = Sketch(tuple(primitive for i, primitive in enumerate(primitives) if i in given))
            if any(primitive.length > 0 for primitive in part):
                break
        cases.append(Case(part, tuple(primitive for i, primitive in enumerate(primitives) if i not in given)))
    return cases, rows_hash(sample)


def _frame_parts(cases: Sequence[Case], frame: str, best_of: int, seed: int) -> list[FramedPart]:
    """The parts of each case in the frame of the original sketch, or in the frames that `complete` would try."""
    framed: list[FramedPart] = []
    for number, case in enumerate(cases):
        parts = frame_part(case.part, SCALES, seed=seed, index=number, num_frames=best_of)
        if frame == "known":
            parts = [FramedPart(case.part, Placement((0.0, 0.0), 1.0), part.sample) for part in parts]
        framed += parts
    return framed


def sample_completions(
    system: System, task: CompletionTask, cache: Path | None = None, on_stage: OnStage = ignore_stage
) -> tuple[Mapping[str, Tensor], float | None]:
    """Packed samples of both methods in both frames, and the seconds of sampling; None if they were stored."""
    check_method(system, "conditional")
    max_batch = CPU_BATCH if device_of(system).type == "cpu" else GPU_BATCH
    seconds: list[float] = []

    def sample() -> Mapping[str, Tensor]:
        start = time.perf_counter()
        tensors: dict[str, Tensor] = {}
        for method, frame in product(METHODS, FRAMES):
            on_stage(f"sampling: {method}, frame {frame}")
            parts = task.framed_parts[frame]
            options = SamplingOptions(system.default_sampler, task.steps)
            engine = Engine(system, task.seed, options, max_batch=min(max_batch, len(parts)))
            batch = sample_parts(engine, parts, method)
            tensors |= {f"{method}.{frame}.{name}": tensor for name, tensor in pack(batch).items()}
        seconds.append(time.perf_counter() - start)
        return tensors

    samples = cached_samples(cache, task.identity(system), sample)
    return samples, seconds[0] if seconds else None


def score_completions(
    task: CompletionTask,
    samples: Mapping[str, Tensor],
    seconds: float | None,
    system: System,
    on_stage: OnStage = ignore_stage,
) -> CompletionBenchmark:
    """Compare the samples with the original sketches."""
    scores = []
    for method, frame in product(METHODS, FRAMES):
        on_stage(f"scoring: {method}, frame {frame}")
        batch = unpack(samples, f"{method}.{frame}")
        completions = list(decode_completions(task.framed_parts[frame], batch, system.rows.arc_scalar))
        groups = [completions[i : i + task.best_of] for i in range(0, len(completions), task.best_of)]
        scores.append(score_method(method, frame, task.cases, groups))
    return CompletionBenchmark(
        task.cases,
        task.best_of,
        system.default_sampler,
        task.steps,
        seconds,
        _share([closes(case.original) for case in task.cases]),
        _share([closes(case.part) for case in task.cases]),
        tuple(scores),
    )


def score_method(
    method: str, frame: str, cases: Sequence[Case], groups: Sequence[Sequence[CompletedPart]]
) -> CompletionScore:
    """Score the best completion of each case, and the first."""
    best = [max(group, key=score_completion) for group in groups]
    first = [group[0] for group in groups]
    num_hidden = np.array([len(case.hidden) for case in cases])

    def recovered_share(completions: Sequence[CompletedPart]) -> Estimate:
        counts = [
            count_recovered(case.hidden, completion.sketch.primitives[len(case.part) :])
            for case, completion in zip(cases, completions, strict=True)
        ]
        return clustered_share(np.array(counts), num_hidden)

    unchanged = [
        completion.sketch.primitives[: len(case.part)] == case.part.primitives
        for case, group in zip(cases, groups, strict=True)
        for completion in group
    ]
    return CompletionScore(
        method,
        frame,
        _share([closes(completion.sketch) for completion in best]),
        _share([closes(completion.sketch) for completion in first]),
        recovered_share(best),
        recovered_share(first),
        _share(unchanged),
        tuple(completion.sketch for completion in best),
    )


def closes(sketch: Sketch) -> bool:
    """Whether every curve that is not construction is part of a loop; ends within 0.02 count as joined."""
    return is_closed(profile(sketch, LOOSE_TOLERANCE))


def _share(hits: Sequence[bool]) -> Estimate:
    return share_estimate(sum(hits), len(hits))


def count_recovered(
    hidden: Sequence[Primitive], added: Sequence[Primitive], tolerance: float = RECOVERY_TOLERANCE
) -> int:
    """The largest number of hidden primitives that can be paired with an added primitive each.

    >>> count_recovered([Line((0, 0), (1, 0))], [Line((1, 0.04), (0, 0)), Line((0, 0), (1, 0))])
    1
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not hidden or not added:
        return 0
    matches = np.array([[primitive_distance(a, b) <= tolerance for b in added] for a in hidden], np.int8)
    return int((maximum_bipartite_matching(csr_array(matches), perm_type="column") >= 0).sum())


def primitive_distance(a: Primitive, b: Primitive) -> float:
    """The largest distance between corresponding defining points and radii; infinite for another kind or flag."""
    if a.construction != b.construction:
        return math.inf
    match a, b:
        case Line(), Line():
            return min(
                _largest_distance((a.start, b.start), (a.end, b.end)),
                _largest_distance((a.start, b.end), (a.end, b.start)),
            )
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            return _largest_distance((a.start, b.start), (a.mid, b.mid), (a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case _:
            return math.inf


def _largest_distance(*pairs: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return max(math.dist(p, q) for p, q in pairs)


def completion_figure(benchmark: CompletionBenchmark) -> Image:
    """A row per method and frame, a column per sketch; the first row shows the halves."""
    from PIL import Image, ImageDraw

    cases = benchmark.cases[:FIGURE_SKETCHES]
    titles = ["given, and what was hidden"]
    rows: list[list[tuple[Primitive, ...]]] = [[() for _ in cases]]
    for score in benchmark.scores:
        titles.append(f"{score.method}, frame {score.frame}, best of {benchmark.best_of}")
        pairs = zip(cases, score.best, strict=False)
        rows.append([sketch.primitives[len(case.part) :] for case, sketch in pairs])
    width = len(cases) * (CELL + GAP) + GAP
    height = len(rows) * (CELL + HEADER) + GAP
    page = Image.new("RGB", (width, height), "#ffffff")
    pen = ImageDraw.Draw(page)
    style = Style().sized(CELL).times(1.2)
    for row, (title, added) in enumerate(zip(titles, rows, strict=True)):
        top = row * (CELL + HEADER) + HEADER
        # Text is centered on its position; titles start at the margin.
        draw_text(page, title, GAP + pen.textlength(title, font_size=style.text_size) / 2, top - HEADER / 2, style)
        for column, (case, primitives) in enumerate(zip(cases, added, strict=True)):
            left = GAP + column * (CELL + GAP)
            page.paste(_draw_case(case, primitives, style), (left, top))
            pen.rectangle((left, top, left + CELL - 1, top + CELL - 1), outline=BORDER_COLOR)
    return page


def write_figure(benchmark: CompletionBenchmark, path: Path) -> None:
    """Write the figure as a PNG, atomically."""
    with atomic_write(path) as temporary:
        completion_figure(benchmark).save(temporary, format="png", optimize=True)


def _draw_case(case: Case, added: Sequence[Primitive], style: Style) -> Image:
    groups = {HIDDEN_COLOR: case.hidden, GIVEN_COLOR: case.part.primitives, ADDED_COLOR: tuple(added)}
    palette = tuple(color for color, primitives in groups.items() for _ in primitives)
    sketch = Sketch(tuple(primitive for primitives in groups.values() for primitive in primitives))
    return picture(sketch, CELL, CELL, replace(style, palette=palette))


_PAGE = """# Completion of half-hidden sketches

    {command}

{cases:,} sketches of the test split, each without a random half of its primitives (the larger half is given), {steps}
{sampler} steps.{seconds} In brackets, 95 % intervals, by sketch.

{table}

- **method**: `conditional` gives the network the known rows without noise, as in training; `repaint` noises them like
  the others and resamples each stretch four times, which works with any network (Lugmayr et al. 2022).
- **frame**: `known` places the part as in the original sketch. `unknown` uses the frames of `sketchdnn complete`: every
  other sample has a frame of {low:g} times the part's size around its center, the others have frames of up to {high:g}
  times, around it or to a side.
- **best of {best_of}**: the completion that `sketchdnn complete` would choose, by its score and by how well it fills
  its frame, without repair and without the original sketch. **one sample** is the first of them.
- **closes**: every curve that is not construction is part of a loop; ends within {within:g} (larger side 2) count as
  joined. **recovered**: hidden primitives that an added primitive of the same kind and flag matches within
  {tolerance:g} in every end, midpoint, center and radius; each added primitive counts once. There are many good ways to
  complete half a sketch, so 100 % cannot be reached.
- **given unchanged**: samples whose given primitives are equal to the bit.

![Given in black, added in blue, hidden in light gray]({figure})
"""
