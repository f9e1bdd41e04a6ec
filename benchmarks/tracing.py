"""Tracing of pictures: real test sketches are drawn in several ways, traced, and compared with the originals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, mean_estimate, share_estimate
from sketchdnn.generation.trace import trace
from sketchdnn.geometry import Sketch, profile
from sketchdnn.io import exit_with_parent
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.tracing import TraceResult
from sketchdnn.tracing.overlay import draw_over

from .completion_cases import held_out_sketches
from .results import markdown_table, percent, rich_table
from .trace_constraints import ConstraintAgreement, compare_constraints, constrained_sources
from .trace_scores import PIXELS, Agreement, Floats, compare, match, places, transformed, visible
from .trace_styles import DESCRIPTIONS, STYLES, Drawn, Picture, choose_styles

# Called with the number of pictures that are done and their total.
OnProgress = Callable[[int, int], None]
GOALS = {"precise": 0.90, "hand": 0.87}
_MAX_CHAMFER = 1.0
_COLUMNS = (
    "pictures", "n", "primitive F1", "F1, as stored", "tokens", "flags", "Chamfer", "MSE", "closed", "refused", "CPU s"
)  # fmt: skip
_IN_TERMINAL = ("pictures", "n", "primitive F1", "Chamfer", "closed", "refused", "CPU s")
_CONSTRAINT_COLUMNS = (
    "pictures", "n", "primitive F1", "constraint F1", "recalled", "right", "F1 of the same relations", "fully recalled"
)  # fmt: skip
# The width of curves on a sheet, in pixels before it is reduced.
_SHEET_WIDTH = 4
# Pictures that a process takes at a time.
_CHUNK = 4


class Case(NamedTuple):
    """A sketch and what came of it; without a result it was refused."""

    truth: Sketch
    drawn: Drawn
    result: TraceResult | None
    agreement: Agreement | None
    stored: Agreement | None
    constraints: ConstraintAgreement | None
    seconds: float

    @property
    def score(self) -> Score:
        """What the tables need of the case."""
        still = self.result is not None and profile(self.result.sketch).is_extrudable
        was = profile(visible(self.truth)).is_extrudable
        return Score(self.agreement, self.stored, self.constraints, was, still, self.seconds)


class Score(NamedTuple):
    """The scores of one picture; None where it was refused, or has no constraints to compare.

    Attributes:
        agreement: With the visible sketch.
        stored: With the sketch as it is stored.
        constraints: Of the constraints.
        was_closed: Whether the original can be extruded.
        is_closed: Whether the result can be extruded.
        seconds: Processor time of `trace`.
    """

    agreement: Agreement | None
    stored: Agreement | None
    constraints: ConstraintAgreement | None
    was_closed: bool
    is_closed: bool
    seconds: float


class _Job(NamedTuple):
    sketch: Sketch
    style: str
    seed: int
    model: Path | None = None


@dataclass(frozen=True, slots=True)
class TraceBenchmark:
    """The scores of each style.

    Attributes:
        scores: Of test sketches of a corpus.
        constrained: Of sketches with the constraints of their designers.
        left_out: Which styles were not drawn, and why.
    """

    scores: Mapping[str, Sequence[Score]]
    constrained: Mapping[str, Sequence[Score]] = field(default_factory=dict)
    left_out: str = ""

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One row per style."""
        for style, scores in self.scores.items():
            traced = [score.agreement for score in scores if score.agreement is not None]
            closed = [score for score in scores if score.was_closed]
            still = sum(score.is_closed for score in closed)
            hits = sum(a.hits for a in traced)
            yield (
                DESCRIPTIONS[style],
                str(len(scores)),
                _share(self._f1s(style)),
                _share([s.stored.f1 if s.stored else 0.0 for s in scores]),
                _share([a.tokens / a.all_tokens if (a := s.agreement) else 0.0 for s in scores]),
                percent(share_estimate(sum(a.flags for a in traced), hits)) if hits else "",
                _median([a.chamfer for a in traced]),
                _mean([a.mse for a in traced]),
                f"{percent(share_estimate(still, len(closed)))} of {len(closed)}" if closed else "",
                str(len(scores) - len(traced)),
                f"{np.median([s.seconds for s in scores]):.2f} (at most {max(s.seconds for s in scores):.1f})",
            )

    def constraint_rows(self) -> Iterator[tuple[str, ...]]:
        """One row per style, of the sketches with constraints."""
        for style, scores in self.constrained.items():
            found = [score.constraints for score in scores if score.constraints is not None]
            complete = sum(c.recalled == c.true for c in found)
            yield (
                DESCRIPTIONS[style],
                str(len(scores)),
                _share([s.stored.f1 if s.stored else 0.0 for s in scores]),
                _share([s.constraints.f1 if s.constraints else 0.0 for s in scores]),
                _share([c.recalled / c.true if (c := s.constraints) else 0.0 for s in scores]),
                _share([c.right / max(1, c.inferred) if (c := s.constraints) else 0.0 for s in scores]),
                _share([s.constraints.same_f1 if s.constraints else 0.0 for s in scores]),
                percent(share_estimate(complete, len(scores))),
            )

    def f1(self, style: str) -> Estimate:
        """The mean F1 of visible primitives; 0 for a refused picture."""
        return mean_estimate(self._f1s(style))

    def _f1s(self, style: str) -> list[float]:
        return [score.agreement.f1 if score.agreement else 0.0 for score in self.scores[style]]

    def chamfer(self, style: str) -> float:
        """The median Chamfer distance of the pictures that were traced; NaN without any."""
        values = [score.agreement.chamfer for score in self.scores[style] if score.agreement]
        return float(np.median(values)) if values else float("nan")

    def table(self) -> Table:
        """The main scores, for a terminal."""
        chosen = [_COLUMNS.index(name) for name in _IN_TERMINAL]
        return rich_table("Tracing", _IN_TERMINAL, ([row[k] for k in chosen] for row in self.rows()))

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met; constraints; and what was left out."""
        for style, goal in GOALS.items():
            if style in self.scores:
                f1, chamfer = self.f1(style).value, self.chamfer(style)
                verdict = "met" if f1 >= goal else "missed"
                yield f"Primitive F1 of {style} pictures at least {goal:.0%}: {verdict} ({f1:.1%})."
                verdict = "met" if chamfer <= _MAX_CHAMFER else "missed"
                yield f"Chamfer distance at most 1 pixel of {PIXELS} in the median: {verdict} ({chamfer:.2f})."
        for name, _, _, f1_cell, *_ in self.constraint_rows():
            yield f"Constraint F1, {name}: {f1_cell}."
        if self.left_out:
            yield self.left_out

    def markdown(self, command: str) -> str:
        """The page."""
        parts = ["# Tracing", f"`{command}`", _TEXT, markdown_table(_COLUMNS, self.rows())]
        if self.constrained:
            parts += [_CONSTRAINT_TEXT, markdown_table(_CONSTRAINT_COLUMNS, self.constraint_rows())]
        return "\n\n".join([*parts, "\n".join(self.sentences())]) + "\n"


_TEXT = "`docs/tracing.md` defines the scores. Brackets hold 95 % intervals over sketches."
_CONSTRAINT_TEXT = """## Constraints

Sketches with the constraints that their designers gave. Primitives of original and result are matched first.

- **Recalled**: a designer's relation between primitives (no dimension, none on the origin or on external geometry)
  counts if all of its primitives are matched and the constraints of the result imply it.
- **Right**: a constraint of the result counts if all of its primitives are matched and it holds in the original to
  1e-4 of the size.
- **Constraint F1**: the harmonic mean of both shares for each picture; the mean over pictures. A refused picture
  counts as 0.
- **F1 of the same relations**: type and parts are the same. Points that are joined, through others too, are joined in
  pairs. Different sets of constraints may say the same, so that this is lower.
- **Fully recalled**: pictures of which every relation is recalled."""


def measure(
    data: Path,
    styles: Sequence[str] | None = None,
    count: int | None = 300,
    seed: int = 0,
    *,
    constrained: Path | None = None,
    model: Path | None = None,
    workers: int = 1,
    on_progress: OnProgress = lambda done, total: None,
) -> TraceBenchmark:
    """Draw and trace test sketches of a prepared corpus in each style.

    The result does not depend on the number of processes.

    Args:
        data: The corpus.
        styles: Names of `STYLES`; by default all that can be drawn here.
        count: How many sketches; None for the whole test split.
        seed: Of the choice of sketches and of the noise.
        constrained: A SketchGraphs file, whose sketches have constraints that are compared. As many are drawn, too.
        model: A model whose image encoder proposes candidates; by default geometry alone traces.
        workers: The number of processes.
        on_progress: Called after each picture.
    """
    chosen, left_out = choose_styles(styles)
    sketches = list(islice(held_out_sketches(data, (1, 16), seed), count))
    if len(sketches) < 2:
        raise SketchError(f"{data} has too few test sketches to measure")
    sources = constrained_sources(constrained, count, seed) if constrained else []
    jobs = [
        _Job(sketch, style, 1000 * seed + number, model)
        for group in (sketches, sources)
        for style in chosen
        for number, sketch in enumerate(group)
    ]
    scores = []
    for score in _map(jobs, workers):
        scores.append(score)
        on_progress(len(scores), len(jobs))
    rest = iter(scores)
    of_corpus = {style: list(islice(rest, len(sketches))) for style in chosen}
    of_sources = {style: list(islice(rest, len(sources))) for style in chosen} if sources else {}
    return TraceBenchmark(of_corpus, of_sources, left_out)


def _map(jobs: Sequence[_Job], workers: int) -> Iterator[Score]:
    if workers == 1:
        yield from map(_score, jobs)
        return
    with single_threaded(), ProcessPoolExecutor(workers, get_context("spawn"), exit_with_parent) as pool:
        try:
            yield from pool.map(_score, jobs, chunksize=_CHUNK)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _score(job: _Job) -> Score:
    """The scores of a picture. It may run in a process of its own."""
    return trace_case(job.sketch, job.style, job.seed, _system(job.model)).score


@lru_cache(maxsize=1)
def _system(model: Path | None) -> System | None:
    """The model with an image encoder; each process loads it once."""
    if model is None:
        return None
    system = from_pretrained(model)
    if not (isinstance(system, SketchDNNSystem) and system.has_image):
        raise SketchError(f"{model}: this model has no image encoder; leave out --model")
    return system


def trace_case(sketch: Sketch, style: str, seed: int, system: System | None = None) -> Case:
    """Draw a sketch in a style, trace it and compare."""
    drawn = STYLES[style](sketch, seed)
    start = time.process_time()
    try:
        result = trace(system, drawn.picture)
    except SketchError:
        return Case(sketch, drawn, None, None, None, None, time.process_time() - start)
    seconds = time.process_time() - start
    found = transformed(result.sketch, _to_truth(result, drawn))
    constraints = None
    # A primitive that vanished when it was moved would shift the numbers of the others.
    if sketch.constraints and len(found) == len(result.sketch):
        constraints = compare_constraints(sketch, result.sketch, match(sketch, found))
    agreement, stored = compare(visible(sketch), found), compare(sketch, found)
    return Case(sketch, drawn, result, agreement, stored, constraints, seconds)


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


def cases_by_lot(
    data: Path,
    styles: Sequence[str] | None = None,
    count: int = 24,
    seed: int = 0,
    on_progress: OnProgress = lambda done, total: None,
) -> list[Case]:
    """Test sketches by lot, each drawn in one style and traced: the first of `styles` for the first of them, and so on.

    Args:
        data: The corpus.
        styles: Names of `STYLES`; by default all that can be drawn here.
        count: How many pictures; each style has as many, the same sketches.
        seed: Of the choice of sketches and of the noise.
        on_progress: Called after each picture.
    """
    chosen, _ = choose_styles(styles)
    each = -(-count // len(chosen))
    sketches = list(islice(held_out_sketches(data, (1, 16), seed), each))
    jobs = [_Job(sketch, style, 1000 * seed + k) for style in chosen for k, sketch in enumerate(sketches)][:count]
    cases = []
    for job in jobs:
        cases.append(trace_case(job.sketch, job.style, job.seed))
        on_progress(len(cases), len(jobs))
    return cases


def sheet(cases: Sequence[Case], columns: int = 4) -> Picture:
    """Pictures and results side by side, `columns` pairs a row, with numbers and primitive F1."""
    cells = [_pair(number, case) for number, case in enumerate(cases, 1)]
    while len(cells) % columns:
        cells.append(np.full_like(cells[0], 255))
    return np.vstack([np.hstack(cells[k : k + columns]) for k in range(0, len(cells), columns)])


def _pair(number: int, case: Case) -> Picture:
    from PIL import Image, ImageDraw, ImageFont

    picture = case.drawn.picture
    if case.result is None:
        after = np.full_like(picture, 230)
    else:
        to_source = case.result.to_source @ case.result.to_picture
        after = draw_over(picture, case.result.sketch, to_source / to_source[2, 2], _SHEET_WIDTH)
    image = Image.fromarray(np.pad(np.hstack((picture, after)), ((34, 4), (4, 4), (0, 0)), constant_values=225))
    words = f"{number}: F1 {case.agreement.f1:.0%}" if case.agreement else f"{number}: refused"
    ImageDraw.Draw(image).text((10, 5), words, fill=(40, 40, 40), font=ImageFont.load_default(22))
    return np.asarray(image)


def _share(values: Sequence[float]) -> str:
    """A mean of values from 0 to 1 with its 95 % interval, which ends there too."""
    mean = mean_estimate(values)
    return percent(Estimate(mean.value, max(0.0, mean.low), min(1.0, mean.high)))


def _mean(values: Sequence[float]) -> str:
    """A mean with its 95 % interval, where there is one."""
    if len(values) < 2:
        return "".join(f"{value:.4f}" for value in values)
    estimate = mean_estimate(values)
    return f"{estimate.value:.4f} ({max(0.0, estimate.low):.4f}–{estimate.high:.4f})"


def _median(values: Sequence[float]) -> str:
    """A median with the 95 % interval of order statistics."""
    ordered = np.sort(values)
    n = len(ordered)
    if not n:
        return ""
    reach = 0.98 * n**0.5
    low, high = ordered[max(0, int(n / 2 - reach))], ordered[min(n - 1, int(n / 2 + reach))]
    return f"{np.median(ordered):.2f} ({low:.2f}–{high:.2f})"
