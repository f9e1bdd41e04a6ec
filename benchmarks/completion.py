"""Suggestions for held-out parts: can they be extruded, do they respect the part, are they what was hidden?"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table
from torch import Tensor

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, clustered_share, mean_estimate, share_estimate
from sketchdnn.generation import CompleteRequest
from sketchdnn.generation.complete import Completion, has_enough
from sketchdnn.generation.distinct import SAME_IDEA, difference
from sketchdnn.generation.engine import Engine, SampleId, device_of
from sketchdnn.generation.framing import (
    CompletedPart,
    FramedPart,
    condition_on_parts,
    decode_completions,
    sample_parts,
)
from sketchdnn.generation.suggestions import Candidate, Finisher
from sketchdnn.geometry import Placement, Primitive, Sketch, bounds, profile
from sketchdnn.systems import System

from .completion_cases import RECOVERY_TOLERANCE, TASKS, Case, count_recovered
from .freecad import count_solids, find_freecad
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table
from .samples import cached_samples, pack, unpack, weights_hash

GPU_BATCH, CPU_BATCH = 4_000, 16
# More candidates than any request has.
_CASE_STRIDE = 1_000
# Millimeters of half of the larger side, for FreeCAD.
_MM = 50.0
# Where suggestions come from: the model alone, the geometry of the part alone, and both as `sketchdnn complete` does.
SOURCES = MODEL, GEOMETRY, BOTH = "model", "geometry", "both"


class Round(NamedTuple):
    """Candidates of the model for a case: the framed parts and what became of them."""

    parts: Sequence[FramedPart]
    completed: Sequence[CompletedPart]


class _Job(NamedTuple):
    """A case, what makes its suggestions of a source, and the candidates of the model."""

    case: Case
    source: str
    finisher: Finisher
    rounds: Sequence[Round]


GOALS = {"first": 0.9, "any": 0.97, "crossings": 0.01, "distinct": 5.0, "pads": 0.9}
COLUMNS = (
    "task",
    "parts",
    "ideas of",
    "extrudable, first",
    "extrudable, any of {count}",
    "crossings with the part",
    "recovered, first",
    "recovered, best of {count}",
    "distinct",
    "part unchanged",
    "FreeCAD pads, first",
    "FreeCAD extrudes, first",
    "FreeCAD pads, original",
    "first is the model's",
    "original would be first",
)


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """The cases, and the request for the suggestions of each."""

    cases: tuple[Case, ...]
    count: int = 8
    steps: int = 50
    seed: int = 0

    def request(self, case: Case) -> CompleteRequest:
        """All but the model and the part are the defaults of `sketchdnn complete`."""
        return CompleteRequest(part=case.part, count=self.count, steps=self.steps, seed=self.seed)

    def completions(self, system: System) -> list[Completion]:
        """The completion of each case."""
        return [Completion(system, self.request(case)) for case in self.cases]

    def identity(self, system: System, parts: Sequence[FramedPart]) -> dict[str, str]:
        """What stored samples depend on, but for rounding, which differs between processors."""
        known = condition_on_parts(parts, system.rows, "conditional")
        digest = hashlib.sha256()
        for tensor in (known.batch.params.mul(1e4).round().int(), known.batch.kind.argmax(dim=-1), known.kind):
            digest.update(tensor.numpy().tobytes())
        framed = digest.hexdigest()
        settings = {"count": self.count, "steps": self.steps, "seed": self.seed, "parts": framed}
        return {"completion": json.dumps(settings | {"model": weights_hash(system), "sampler": system.default_sampler})}


class Suggestions(NamedTuple):
    """The suggestions for a case, best first.

    Attributes:
        case: The case.
        sketches: The suggestions.
        seconds: What repair and scoring took.
        source: The source of the candidates: the model, geometry, or both.
        origins: The origin of each suggestion: the model or geometry.
        enough: Whether there are so many that no further round of candidates follows.
        original_first: Whether the original would be the first suggestion, were it one of the candidates.
    """

    case: Case
    sketches: tuple[Sketch, ...]
    seconds: float
    source: str = MODEL
    origins: tuple[str, ...] = ()
    enough: bool = True
    original_first: bool = False

    @property
    def added(self) -> list[tuple[Primitive, ...]]:
        return [sketch.primitives[len(self.case.part) :] for sketch in self.sketches]


@dataclass(frozen=True, slots=True)
class TaskScore:
    """The suggestions of one source for all parts of one task.

    Attributes:
        task: The task.
        parts: Number of parts.
        source: The source of the candidates.
        first: Share of parts whose first suggestion can be extruded.
        any: Share of parts of which any suggestion can be extruded.
        crossings: Share of suggestions with an added curve that crosses, touches or overlaps a given one.
        recovered: Share of hidden primitives that the first suggestion recovers.
        recovered_best: Share of hidden primitives that the suggestion with most of them recovers.
        distinct: Mean number of suggestions; no two have the same idea.
        unchanged: Share of suggestions whose given primitives are equal to the bit.
        pads: Share of first suggestions that FreeCAD pads; None if FreeCAD was not run. A pad is one solid.
        extrudes: Share of first suggestions that FreeCAD extrudes to one solid or several.
        originals_pad: Share of the originals that FreeCAD pads.
        from_model: Share of first suggestions that are the model's idea.
        original_first: Share of parts whose first suggestion would be the original, were it one of the candidates.
    """

    task: str
    parts: int
    source: str
    first: Estimate
    any: Estimate
    crossings: Estimate
    recovered: Estimate
    recovered_best: Estimate
    distinct: Estimate
    unchanged: Estimate
    pads: Estimate | None
    extrudes: Estimate | None
    originals_pad: Estimate | None
    from_model: Estimate
    original_first: Estimate

    def row(self) -> tuple[str, ...]:
        low, high = self.distinct.low, self.distinct.high
        distinct = f"{self.distinct.value:.1f} ({low:.1f}–{high:.1f})"
        before = map(percent, (self.first, self.any, self.crossings, self.recovered, self.recovered_best))
        solids = ("–" if each is None else percent(each) for each in (self.pads, self.extrudes, self.originals_pad))
        head = (self.task, f"{self.parts:,}", self.source)
        return (
            *head,
            *before,
            distinct,
            f"{self.unchanged.value:.1%}",
            *solids,
            f"{self.from_model.value:.0%}",
            percent(self.original_first),
        )


@dataclass(frozen=True, slots=True)
class CompletionBenchmark:
    """The scores by task and source; those of all tasks together last, and of these that of both sources."""

    numbers: tuple[int, int]
    count: int
    sampler: str
    steps: int
    second_rounds: int
    scores: tuple[TaskScore, ...]
    suggestions: tuple[Suggestions, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.format(count=self.count) for column in COLUMNS)

    def rows(self) -> list[tuple[str, ...]]:
        return [score.row() for score in self.scores]

    def table(self) -> Table:
        total = self.scores[-1].parts
        title = f"{self.count} suggestions for {total:,} parts of sketches of {self.numbers[0]} to {self.numbers[1]}"
        return rich_table(title, self.columns, self.rows())

    def sentences(self) -> Iterator[str]:
        """The goals, and whether they are met."""
        score = self.scores[-1]
        yield _goal("the first suggestion can be extruded", score.first.value, GOALS["first"])
        yield _goal("any suggestion can be extruded", score.any.value, GOALS["any"])
        yield _goal("suggestions that cross the part", score.crossings.value, GOALS["crossings"], at_most=True)
        if score.pads is not None:
            yield _goal("FreeCAD pads the first suggestion", score.pads.value, GOALS["pads"])
        if score.extrudes is not None and score.originals_pad is not None:
            others = (
                f"it extrudes {score.extrudes.value:.1%}, and pads {score.originals_pad.value:.1%} of the originals"
            )
            yield f"a pad is one solid, so FreeCAD refuses several outlines: {others}"
        met = "met" if score.distinct.value >= GOALS["distinct"] else "missed"
        yield f"distinct suggestions: {score.distinct.value:.1f}, goal at least {GOALS['distinct']:g}: {met}"
        seconds = float(np.mean([each.seconds for each in self.suggestions if each.source == BOTH]))
        yield f"repair and scoring took {seconds:.2f} s of one core for each part"

    def markdown(self, command: str) -> str:
        return _PAGE.format(
            command=command,
            low=self.numbers[0],
            high=self.numbers[1],
            sampler=self.sampler,
            steps=self.steps,
            second_rounds=self.second_rounds,
            parts=self.scores[-1].parts,
            table=markdown_table(self.columns, self.rows()),
            goals="\n".join(f"- {sentence}." for sentence in self.sentences()),
            tolerance=RECOVERY_TOLERANCE,
            count=self.count,
        )


def plan_round(completions: Mapping[int, Completion], number: int) -> dict[int, list[FramedPart]]:
    """The framed parts of a round of candidates for some cases, by the number of the case."""
    # Candidates of all cases are sampled together, so each takes noise of its own.
    return {
        case: [
            replace(part, sample=SampleId(case * _CASE_STRIDE + number * completion.pool + index))
            for index, part in enumerate(completion.plan(number))
        ]
        for case, completion in completions.items()
    }


def sample_round(
    system: System,
    task: CompletionTask,
    plan: Mapping[int, Sequence[FramedPart]],
    cache: Path | None = None,
    on_stage: OnStage = ignore_stage,
) -> dict[int, Round]:
    """The candidates of a round, sampled or read from the cache."""
    parts = [part for each in plan.values() for part in each]
    max_batch = CPU_BATCH if device_of(system).type == "cpu" else GPU_BATCH

    def sample() -> Mapping[str, Tensor]:
        on_stage(f"sampling {len(parts):,} candidates")
        start = time.perf_counter()
        options = system.resolve(SamplingOptions(None, task.steps))
        engine = Engine(system, task.seed, options, max_batch=min(max_batch, len(parts)))
        packed = pack(sample_parts(engine, parts, "conditional"))
        on_stage(f"sampled {len(parts):,} candidates in {time.perf_counter() - start:,.0f} s")
        return {f"candidates.{name}": tensor for name, tensor in packed.items()}

    samples = cached_samples(cache, task.identity(system, parts), sample)
    decoded = iter(list(decode_completions(parts, unpack(samples, "candidates"), system.rows.arc_scalar)))
    return {case: Round(each, [next(decoded) for _ in each]) for case, each in plan.items()}


def sample_completions(
    system: System,
    task: CompletionTask,
    cache: Path | None = None,
    on_stage: OnStage = ignore_stage,
    number: int = 0,
) -> dict[int, Round]:
    """The candidates of a round, for every case."""
    plan = plan_round(dict(enumerate(task.completions(system))), number)
    return sample_round(system, task, plan, _round_cache(cache, number), on_stage)


def _round_cache(cache: Path | None, number: int) -> Path | None:
    """The file of a round: the cache, or a file beside it."""
    return cache if cache is None or number == 0 else cache.with_stem(f"{cache.stem}-round{number + 1}")


def score_completions(
    system: System,
    task: CompletionTask,
    numbers: tuple[int, int],
    *,
    cache: Path | None = None,
    workers: int = 1,
    on_stage: OnStage = ignore_stage,
) -> CompletionBenchmark:
    """Sample candidates or read them from the cache, choose suggestions and compare them with the original sketches.

    Cases with too few suggestions get a second round of candidates, as in `sketchdnn complete`. With a cache it is
    sampled for all cases and stored beside the first, so that sampling and scoring may be on different machines.
    """
    completions = dict(enumerate(task.completions(system)))
    rounds = {case: [each] for case, each in sample_completions(system, task, cache, on_stage).items()}

    def choose(cases: Iterable[int]) -> dict[tuple[int, str], Suggestions]:
        keys = [(case, source) for case in cases for source in SOURCES]
        on_stage(f"repairing and choosing for {len(keys) // len(SOURCES):,} parts")
        jobs = [_Job(task.cases[case], source, completions[case].finisher, rounds[case]) for case, source in keys]
        return dict(zip(keys, _map_choose(jobs, workers), strict=True))

    chosen = choose(completions)
    again = {case: each for case, each in completions.items() if not chosen[case, BOTH].enough}
    if again:
        if cache is None:
            second = sample_round(system, task, plan_round(again, 1), None, on_stage)
        else:
            second = sample_completions(system, task, cache, on_stage, 1)
        for case in again:
            rounds[case].append(second[case])
        chosen |= choose(again)
    suggestions = tuple(chosen.values())
    on_stage("scoring")
    try:
        program: str | None = find_freecad()
    except SketchError:
        program = None
    score = partial(score_suggestions, count=task.count, program=program)
    scores = []
    for name, tasks in (*((name, (name,)) for name in TASKS), ("all", TASKS)):
        for source in SOURCES:
            some = [each for each in suggestions if each.case.task in tasks and each.source == source]
            if len(some) > 1 or name == "all":  # one part has no interval
                scores.append(score(name, some))
    options = system.resolve(SamplingOptions(None, task.steps))
    return CompletionBenchmark(
        numbers,
        task.count,
        options.sampler_name,
        task.steps,
        len(again),
        tuple(scores),
        suggestions,
    )


def score_suggestions(
    name: str, suggestions: Sequence[Suggestions], *, count: int = 8, program: str | None = None
) -> TaskScore:
    """Compare suggestions of one source with the originals. `program` is that of FreeCAD, to pad them."""
    extrudable = [[profile(sketch).is_extrudable for sketch in each.sketches[:count]] for each in suggestions]
    everything = [(each.case, sketch) for each in suggestions for sketch in each.sketches]
    total = max(len(everything), 1)  # geometry alone may have no suggestion
    num_hidden = np.array([len(each.case.hidden) for each in suggestions])
    recovered = [[count_recovered(each.case.hidden, added) for added in each.added] for each in suggestions]
    first = [each.sketches[0] for each in suggestions if each.sketches]
    pads = extrudes = originals_pad = None
    if program is not None:
        solids = _count_solids(program, first)
        pads, extrudes = (share_estimate(solids[name], len(suggestions)) for name in ("pads", "extrudes"))
        originals = [replace(case.part, primitives=case.part.primitives + case.hidden) for case, *_ in suggestions]
        originals_pad = share_estimate(_count_solids(program, originals)["pads"], len(suggestions))
    return TaskScore(
        name,
        len(suggestions),
        suggestions[0].source,
        first=share_estimate(sum(bool(each) and each[0] for each in extrudable), len(suggestions)),
        any=share_estimate(sum(map(any, extrudable)), len(suggestions)),
        crossings=share_estimate(sum(meets_part(len(case.part), s) for case, s in everything), total),
        recovered=clustered_share(np.array([each[0] if each else 0 for each in recovered]), num_hidden),
        recovered_best=clustered_share(np.array([max(each, default=0) for each in recovered]), num_hidden),
        distinct=mean_estimate([float(len(each.sketches)) for each in suggestions]),
        unchanged=share_estimate(
            total - sum(s.primitives[: len(case.part)] != case.part.primitives for case, s in everything), total
        ),
        pads=pads,
        extrudes=extrudes,
        originals_pad=originals_pad,
        from_model=share_estimate(sum(each.origins[:1] == (MODEL,) for each in suggestions), len(suggestions)),
        original_first=share_estimate(sum(each.original_first for each in suggestions), len(suggestions)),
    )


def _count_solids(program: str, sketches: Sequence[Sketch]) -> dict[str, int]:
    """How many of the sketches FreeCAD pads to one solid, and extrudes to one or several."""
    if not sketches:
        return {"pads": 0, "extrudes": 0}
    in_mm = [replace(sketch.moved(_MM), units="mm", constraints=sketch.constraints) for sketch in sketches]
    solids = count_solids(program, "completed", "first", in_mm)
    return {"pads": solids.pads, "extrudes": solids.extrudes}


def meets_part(num_given: int, sketch: Sketch) -> bool:
    """Whether an added curve crosses, touches or overlaps a given one other than at joined ends."""
    return any((first < num_given) != (second < num_given) for first, second in profile(sketch).meetings)


def _map_choose(jobs: Sequence[_Job], workers: int) -> Iterator[Suggestions]:
    if workers == 1:
        yield from map(_choose, jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(_choose, jobs, chunksize=4)


def _choose(job: _Job) -> Suggestions:
    """The suggestions of a case. It may run in a process of its own."""
    finisher = replace(job.finisher, request=replace(job.finisher.request, geometry=job.source != MODEL))
    start = time.process_time()
    candidates = finisher.finish(*finisher.geometric_candidates())
    if job.source != GEOMETRY:
        for each in job.rounds:
            candidates += finisher.finish(each.parts, each.completed)
    chosen = finisher.choose(candidates)
    seconds = time.process_time() - start
    origins = tuple(str(each.origin) for each in chosen)
    enough = has_enough(finisher.request, chosen)
    original_first = _is_original_first(job.case, finisher, candidates)
    sketches = tuple(each.sketch for each in chosen)
    return Suggestions(job.case, sketches, seconds, job.source, origins, enough, original_first)


def original_candidates(case: Case, finisher: Finisher) -> list[Candidate]:
    """The original as one more candidate of the model; none if it cannot stay."""
    part = finisher.part
    whole = replace(part, primitives=part.primitives + case.hidden)
    framed = FramedPart(part, Placement(bounds(whole).center, bounds(whole).size / 2), SampleId(_CASE_STRIDE - 1))
    return finisher.finish([framed], [CompletedPart(whole, len(case.hidden), 0.0)])


def is_original(case: Case, sketch: Sketch) -> bool:
    """Whether a suggestion has the idea of the original."""
    return difference(sketch.primitives[len(case.part) :], case.hidden, bounds(case.part).size) <= SAME_IDEA


def _is_original_first(case: Case, finisher: Finisher, candidates: Sequence[Candidate]) -> bool:
    """Whether the first suggestion is the original, if it is one more candidate."""
    ideas = finisher.rank([*candidates, *original_candidates(case, finisher)])
    return bool(ideas) and is_original(case, ideas[0].sketch)


def _goal(what: str, value: float, goal: float, *, at_most: bool = False) -> str:
    met = value <= goal if at_most else value >= goal
    limit = "at most" if at_most else "at least"
    return f"{what}: {value:.1%}, goal {limit} {goal:.0%}: {'met' if met else 'missed'}"


_PAGE = """# Completion of real parts

    {command}

Test sketches of {low} to {high} primitives that can be extruded, each without some of its primitives. The part is
completed with the defaults of `sketchdnn complete`: {count} suggestions, {steps} {sampler} steps, and a second round
of candidates for parts with too few suggestions ({second_rounds} of {parts}). The frame, the size and the number of
hidden primitives are unknown. In brackets, 95 % intervals.

{table}

{goals}

- **task**: `open outline` hides a stretch of the outer loop, of at most half of its curves; `inner features` hides
  every loop inside; `symmetric half` hides all that lies on one side of a mirror axis; `single feature` hides one of
  several inner loops.
- **ideas of**: whose candidates there were. `model` is the model alone; `geometry` are mirror images, closings and
  patterns that follow from the part without the model (`generation/geometric_ideas.py`); `both` is what
  `sketchdnn complete` does. The goals are those of `both`.
- **extrudable**: all curves of the repaired suggestion are in closed loops that neither cross nor touch.
- **crossings with the part**: suggestions in which an added curve crosses, touches or overlaps a given one.
- **recovered**: hidden primitives that an added primitive of the same kind and flag matches within {tolerance:g} in
  every end, midpoint, center and radius, where the larger side of the sketch is 2. There are many good ways to
  complete a part, so 100 % cannot be reached.
- **distinct**: suggestions, of {count}; no two are the same idea (nowhere farther apart than 8 % of the part's size).
- **part unchanged**: suggestions whose given primitives are equal to the bit.
- **FreeCAD pads**: a PartDesign Pad of the sketch is a valid solid. A pad is one solid, so one of several outlines is
  refused; **FreeCAD extrudes** counts those too: Part's extrusion of a face of all wires is valid.
- **first is the model's**: parts whose first suggestion is an idea of the model.
- **original would be first**: parts whose first suggestion would be the original, were it one of the candidates: how
  well the ranking agrees with the designers. Its weights were fitted on other test parts (`--seed 0`).
"""
