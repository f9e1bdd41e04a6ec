"""Half of a real sketch given back to the model: does what it adds close the profile, and is it what was taken away?"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from torch import Tensor

from benchmarks.samples import packed, unpacked
from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.conditioning import ConditioningMethod
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, clustered_share, share_estimate
from sketchdnn.evaluation.samples import normalize_split
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, is_closed
from sketchdnn.generation.complete import frame_part, score_completion
from sketchdnn.generation.engine import device_of
from sketchdnn.generation.inpainting import (
    SCALES,
    CompletedPart,
    FramedPart,
    check_method,
    decode_completions,
    sample_completions,
)
from sketchdnn.geometry import Arc, Circle, Line, Placement, Point, Primitive, Sketch, profile
from sketchdnn.io import atomic_write
from sketchdnn.render import Style
from sketchdnn.render.gallery import BORDER_COLOR
from sketchdnn.render.raster import draw_text, picture
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.systems import System

from .samples import fingerprint, kept_draws, weights_fingerprint

if TYPE_CHECKING:
    from PIL.Image import Image

METHODS: tuple[ConditioningMethod, ...] = ("conditional", "repaint")
FRAMES = ("known", "unknown")
# Walks in one batch: all a large device needs to be busy, and none waits for a smaller one.
CHUNK = 4_000
CPU_CHUNK = 16
OnStage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """What is to be completed, and how: the cases of a corpus, and the walks for each frame, case by case."""

    cases: tuple[Case, ...]
    mark: str
    best_of: int
    steps: int
    seed: int
    walks: Mapping[str, Sequence[FramedPart]]

    def facts(self, system: System) -> dict[str, str]:
        """By which draws that were kept are known."""
        facts = {"cases": self.mark, "best_of": self.best_of, "steps": self.steps, "seed": self.seed}
        return {
            "completion": json.dumps(facts | {"model": weights_fingerprint(system), "sampler": system.default_sampler})
        }


def plan_completion(
    data: Path, *, sketches: int = 500, best_of: int = 8, steps: int = 50, seed: int = 0
) -> CompletionTask:
    """Hide half of the primitives of test sketches, and choose frames for what is left."""
    corpus = Dataset.open(data)
    test = normalize_split(corpus.split("test").compact, is_normalized=corpus.half_extent == 1)
    cases, mark = half_hidden(test, sketches, seed)
    walks = {frame: _walks(cases, frame, best_of, seed) for frame in FRAMES}
    return CompletionTask(tuple(cases), mark, best_of, steps, seed, walks)


def draw_completions(
    system: System, task: CompletionTask, kept: Path | None = None, on_stage: OnStage = lambda stage: None
) -> tuple[Mapping[str, Tensor], float | None]:
    """Walk all walks both ways, or take what was kept of them; and the seconds that it took, if it did."""
    check_method(system, "conditional")
    size = CPU_CHUNK if device_of(system).type == "cpu" else CHUNK
    seconds: list[float] = []

    def draw() -> Mapping[str, Tensor]:
        start = time.perf_counter()
        tensors: dict[str, Tensor] = {}
        for method, frame in product(METHODS, FRAMES):
            on_stage(f"drawing: {method}, frame {frame}")
            walks = task.walks[frame]
            options = SamplingOptions(system.default_sampler, task.steps)
            batch = sample_completions(
                system, walks, seed=task.seed, method=method, options=options, max_batch=min(size, len(walks))
            )
            tensors |= {f"{method}.{frame}.{name}": tensor for name, tensor in packed(batch).items()}
        seconds.append(time.perf_counter() - start)
        return tensors

    drawn = kept_draws(kept, task.facts(system), draw)
    return drawn, seconds[0] if seconds else None


def judge_completions(
    task: CompletionTask,
    drawn: Mapping[str, Tensor],
    seconds: float | None,
    system: System,
    on_stage: OnStage = lambda stage: None,
) -> CompletionBench:
    """What came of each of this system's draws, held against the real sketches."""
    scores = []
    for method, frame in product(METHODS, FRAMES):
        on_stage(f"judging: {method}, frame {frame}")
        batch = unpacked({name: drawn[f"{method}.{frame}.{name}"] for name in ("kind", "construction", "params")})
        outcomes = list(decode_completions(task.walks[frame], batch, system.rows.arc_scalar))
        groups = [outcomes[i : i + task.best_of] for i in range(0, len(outcomes), task.best_of)]
        scores.append(judged(method, frame, task.cases, groups))
    return CompletionBench(
        task.cases,
        task.best_of,
        system.default_sampler,
        task.steps,
        seconds,
        _share([closes(case.truth) for case in task.cases]),
        _share([closes(case.part) for case in task.cases]),
        tuple(scores),
    )


def judged(
    method: str, frame: str, cases: Sequence[Case], groups: Sequence[Sequence[CompletedPart]]
) -> CompletionScore:
    """The best of each group by score, and the first, held against what was hidden."""
    best = [max(group, key=score_completion) for group in groups]
    first = [group[0] for group in groups]
    of = np.array([len(case.hidden) for case in cases])

    def back(chosen: Sequence[CompletedPart]) -> Estimate:
        pairs = zip(cases, chosen, strict=True)
        found = [recovered(case.hidden, one.sketch.primitives[len(case.part) :]) for case, one in pairs]
        return clustered_share(np.array(found), of)

    unchanged = [
        one.sketch.primitives[: len(case.part)] == case.part.primitives
        for case, group in zip(cases, groups, strict=True)
        for one in group
    ]
    return CompletionScore(
        method,
        frame,
        _share([closes(one.sketch) for one in best]),
        _share([closes(one.sketch) for one in first]),
        back(best),
        back(first),
        _share(unchanged),
        tuple(one.sketch for one in best),
    )


def closes(sketch: Sketch) -> bool:
    """Whether every curve that is not construction is part of a loop, ends 0.02 apart counting as joined."""
    return is_closed(profile(sketch, LOOSE_TOLERANCE))


def _walks(cases: Sequence[Case], frame: str, best_of: int, seed: int) -> list[FramedPart]:
    """The walks of each case in turn: in the frame of the real sketch, or in frames that `complete` would try."""
    walks = []
    for number, case in enumerate(cases):
        tried = frame_part(case.part, SCALES, seed=seed, index=number, num_frames=best_of)[1]
        if frame == "known":
            tried = [FramedPart(case.part, Placement((0.0, 0.0), 1.0), walk.sample) for walk in tried]
        walks += tried
    return walks


def _share(hits: Sequence[bool]) -> Estimate:
    return share_estimate(sum(hits), len(hits))


COLUMNS = (
    "method",
    "frame",
    "closes, best of {best_of}",
    "closes, one draw",
    "recovered, best of {best_of}",
    "recovered, one draw",
    "given unchanged",
)


@dataclass(frozen=True, slots=True)
class CompletionScore:
    """One method, with the frame known or not: shares of sketches that close, of hidden primitives that came back, and
    of walks that left every given primitive as it was. `chosen` are the best completions, case by case."""

    method: str
    frame: str
    closes: Estimate
    closes_once: Estimate
    recovers: Estimate
    recovers_once: Estimate
    unchanged: Estimate
    chosen: tuple[Sketch, ...]

    def row(self) -> tuple[str, ...]:
        shares = (self.closes, self.closes_once, self.recovers, self.recovers_once)
        return (self.method, self.frame, *map(percent, shares), f"{self.unchanged.value:.0%}")


@dataclass(frozen=True, slots=True)
class CompletionBench:
    """All four, on the same cases, beside what the real sketches and their halves alone do."""

    cases: tuple[Case, ...]
    best_of: int
    sampler: str
    steps: int
    seconds: float | None  # of drawing; none if it was done before
    truth_closes: Estimate
    part_closes: Estimate
    scores: tuple[CompletionScore, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.format(best_of=self.best_of) for column in COLUMNS)

    def rows(self) -> list[tuple[str, ...]]:
        """The table: the four, then the real sketches whole and halved."""
        beside = [("the real rest", self.truth_closes), ("nothing added", self.part_closes)]
        return [
            *(score.row() for score in self.scores),
            *((name, "–", "–", percent(closes), "–", "–", "–") for name, closes in beside),
        ]

    def table(self) -> Table:
        table = Table(*self.columns, title=f"Completing {len(self.cases):,} half-hidden sketches")
        for row in self.rows():
            table.add_row(*(cell.partition(" (")[0] for cell in row))  # intervals are for the page
        return table

    def markdown(self, command: str, figure: str) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, ("---",) * len(self.columns), *self.rows())]
        seconds = "" if self.seconds is None else f" All walks took {self.seconds:,.0f} s."
        return _COMPLETION_PAGE.format(
            command=command,
            cases=len(self.cases),
            sampler=self.sampler,
            steps=self.steps,
            rows="\n".join(lines),
            figure=figure,
            near=NEAR,
            within=2 * LOOSE_TOLERANCE,
            best_of=self.best_of,
            low=SCALES[0],
            high=SCALES[1],
            seconds=seconds,
        )


def percent(estimate: Estimate) -> str:
    """A share with its 95 % interval."""
    return f"{estimate.value:.1%} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


_COMPLETION_PAGE = """# Completion: half of a sketch, finished

    {command}

{cases:,} sketches of the test split, each without half of its primitives (by lot, the larger half stays), {steps}
{sampler} steps.{seconds} In brackets, 95 % intervals, by sketch.

{rows}

- **method**: `conditional` shows the network the given rows as they are, which it was trained for; `repaint` noises
  them like the rest and walks each stretch four times, which works with any network (Lugmayr et al. 2022).
- **frame**: `known` lays the part where it lies in the real sketch's own box. `unknown` tries what `sketchdnn complete`
  tries: every other walk is in a frame of {low:g} times the part's size about its middle, the others in frames of up to
  {high:g} times, around it or to a side.
- **best of {best_of}**: the one that `sketchdnn complete` would keep, by its score and by how well it fills its frame;
  nothing of the real sketch is used to choose, and nothing is repaired. **one draw** is the first of them.
- **closes**: every curve that is not construction is part of a loop, ends within {within:g} (larger side 2) counting as
  joined. **recovered**: hidden primitives that an added one of the same kind and flag matches within {near:g} in every
  end, middle, center and radius, each added one counting once. There are many good ways to finish half a sketch, so
  100 % is not to be had.
- **given unchanged**: walks after which every given primitive is equal to what was given, to the bit.

![Given in black, added in blue, what was hidden in light gray]({figure})
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A real sketch, normalized, in two halves: what the model is given, and what it is not."""

    part: Sketch
    hidden: tuple[Primitive, ...]

    @property
    def truth(self) -> Sketch:
        return Sketch(self.part.primitives + self.hidden)


def half_hidden(test: Compact, count: int, seed: int) -> tuple[list[Case], str]:
    """Some sketches of a split by lot, each without the half of its primitives, by lot too; and a mark of them all.

    What is given is the larger half, and has an extent.
    """
    if len(test) < count:
        raise SketchError(f"{count:,} sketches are to be completed, and the test split has {len(test):,}")
    dice = np.random.default_rng(seed)
    chosen = test[np.sort(dice.permutation(len(test))[:count])]
    cases = []
    for decoded in decode_compact(chosen):
        items = decoded.sketch.primitives
        while True:
            order = dice.permutation(len(items))
            shown = set(order[: len(items) - len(items) // 2].tolist())
            part = Sketch(tuple(item for i, item in enumerate(items) if i in shown))
            if any(item.length > 0 for item in part):
                break
        cases.append(Case(part, tuple(item for i, item in enumerate(items) if i not in shown)))
    return cases, fingerprint(chosen)


# With a larger side of 2, every end, middle, center and radius must be as near as this.
NEAR = 0.05


def recovered(hidden: Sequence[Primitive], added: Sequence[Primitive], near: float = NEAR) -> int:
    """How many of the hidden ones can be paired with an added one each.

    >>> recovered([Line((0, 0), (1, 0))], [Line((1, 0.04), (0, 0)), Line((0, 0), (1, 0))])
    1
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not hidden or not added:
        return 0
    alike = np.array([[apart(a, b) <= near for b in added] for a in hidden], np.int8)
    return int((maximum_bipartite_matching(csr_array(alike), perm_type="column") >= 0).sum())


def apart(a: Primitive, b: Primitive) -> float:
    """How far the furthest of what defines one is from its counterpart; infinite for another kind or flag."""
    if a.construction != b.construction:
        return math.inf
    match a, b:
        case Line(), Line():
            return min(_furthest((a.start, b.start), (a.end, b.end)), _furthest((a.start, b.end), (a.end, b.start)))
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            return _furthest((a.start, b.start), (a.mid, b.mid), (a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case _:
            return math.inf


def _furthest(*pairs: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return max(math.dist(p, q) for p, q in pairs)


GIVEN, ADDED, HIDDEN = "#1a1a1a", "#0072b2", "#c9ced4"
# Sketches shown: the first of the measurement, not the finest.
SHOWN = 8
CELL, GAP, HEADER = 190, 10, 30


def completion_figure(bench: CompletionBench) -> Image:
    """A row a setting and a column a sketch; the first row shows the halves."""
    from PIL import Image, ImageDraw

    cases = bench.cases[:SHOWN]
    titles = ["given, and what was hidden"]
    lines: list[list[tuple[Primitive, ...]]] = [[() for _ in cases]]
    for score in bench.scores:
        titles.append(f"{score.method}, frame {score.frame}, best of {bench.best_of}")
        pairs = zip(cases, score.chosen, strict=False)
        lines.append([sketch.primitives[len(case.part) :] for case, sketch in pairs])
    width = len(cases) * (CELL + GAP) + GAP
    height = len(lines) * (CELL + HEADER) + GAP
    page = Image.new("RGB", (width, height), "#ffffff")
    pen = ImageDraw.Draw(page)
    style = Style().sized(CELL).times(1.2)
    for row, (title, added) in enumerate(zip(titles, lines, strict=True)):
        top = row * (CELL + HEADER) + HEADER
        # Words are centered on their place, so what is to begin at the margin is put half its length further.
        draw_text(page, title, GAP + pen.textlength(title, font_size=style.text_size) / 2, top - HEADER / 2, style)
        for column, (case, some) in enumerate(zip(cases, added, strict=True)):
            left = GAP + column * (CELL + GAP)
            page.paste(_cell(case, some, style), (left, top))
            pen.rectangle((left, top, left + CELL - 1, top + CELL - 1), outline=BORDER_COLOR)
    return page


def write_figure(bench: CompletionBench, path: Path) -> None:
    """The figure as a PNG, whole or not at all."""
    with atomic_write(path) as temporary:
        completion_figure(bench).save(temporary, format="png", optimize=True)


def _cell(case: Case, added: Sequence[Primitive], style: Style) -> Image:
    parts = (case.hidden, case.part.primitives, tuple(added))
    palette = tuple(color for part, color in zip(parts, (HIDDEN, GIVEN, ADDED), strict=True) for _ in part)
    return picture(Sketch(tuple(item for part in parts for item in part)), CELL, CELL, replace(style, palette=palette))
