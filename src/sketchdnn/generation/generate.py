"""Generation: from a seed to sketches of a real size. Sketch i of a seed does not depend on the others of the run.

A sketch that is empty or fails the conditions is sampled again with other noise. Which attempt is kept depends on the
sketch alone (with `unique`, also on the sketches before it), so several attempts may share a batch. Padding rows of a
GPU batch are free, so all of them are used for attempts. On a CPU as many attempts are sampled as have failed so far,
so at most about half of all rows are wasted.

A variation starts from the initial sketch with noise added to all rows, empty ones included: primitives may appear,
disappear and change their kind. The strength is the fraction of the denoising steps that are run. Steps are spaced
quadratically, so a strength s means the noise of step s²·T: at 0.3 a sketch is recognizable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from sketchdnn.constraints import RoundOptions, round_dimensions
from sketchdnn.constraints.rounding import Origin
from sketchdnn.design import score_design
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start
from sketchdnn.errors import GeometryError, SketchError, display_path
from sketchdnn.geometry import MM_PER_UNIT, Part, Placement, Sketch, bounds, normalize
from sketchdnn.geometry.quantities import parse_length
from sketchdnn.render import Style
from sketchdnn.representation import Decoded, layout
from sketchdnn.systems import System

from .conditioning import choose_conditioning, drop_tiny, encode_sketches
from .conditions import MAX_ATTEMPTS, ConditionChecker, Conditions, Shortfall, check_conditions, score_sketch
from .engine import INDEX_BITS, Engine, SampleId, compile_denoiser, device_of, pads_batches
from .execution import DEFAULT_EXECUTION, Execution
from .quality import check_quality, choose_sampling, number_of_steps
from .repair import OnProgress, RepairReport, ignore, repair_sketches
from .trajectory import TrajectoryFrame, TrajectoryRecorder

SIZE = 100.0
UNITS = "mm"
STRENGTH = 0.3
_NUM_SEEDS = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """What to generate: sketches `start_index` to `start_index + count − 1` of a seed.

    Attributes:
        count: Number of sketches.
        seed: Selects the sketches: the same seed gives the same sketches.
        start_index: Index of the first sketch.
        quality: `best`, or `fast` for few steps of the network (`quality`).
        steps: Number of denoising steps; None means those of the quality.
        sampler: Name of the sampler; None means that of the quality.
        size: Larger side of every sketch, in `units` or as words such as "4in"; None means 100.
        units: Unit of a size that is a number.
        conditions: Requirements on every sketch.
        init_sketch: Sketch to vary, in place of pure noise. Variations keep its position, size and units, and meet
            conditions by rejection.
        strength: How much to change `init_sketch`: near 0 it comes back, at 1 any sketch does; None means 0.3.
        repair: Repair each sketch before the conditions are checked. Scores of a model are measured without it.
        rounding: Round the dimensions of each repaired sketch. The origin is at the center by default, and where it was
            in variations.
        workers: Number of processes that repair large batches.
        trajectory_frames: Number of intermediate states to keep of each sketch.
        compile: Compile the denoiser on a GPU, which pays from about 100,000 sketches.
    """

    stem: ClassVar[str] = "sketch"
    style: ClassVar[Style | None] = None  # of pictures

    count: int = 1
    seed: int = 0
    start_index: int = 0
    quality: str = "best"
    steps: int | None = None
    sampler: str | None = None
    size: float | str | None = None
    units: str = UNITS
    conditions: Conditions = field(default_factory=Conditions)
    init_sketch: Sketch | None = None
    strength: float | None = None
    repair: bool = True
    rounding: RoundOptions | None = None
    workers: int = 1
    trajectory_frames: int = 0
    compile: bool = False

    def __post_init__(self) -> None:
        check_seed_and_count(self.seed, self.count)
        check_quality(self.quality, self.steps, self.sampler)
        if self.start_index < 0 or self.start_index + self.count > 1 << INDEX_BITS:
            raise SketchError(f"the sketches of a seed are numbered from 0 to 2^{INDEX_BITS} − 1")
        if self.init_sketch is not None and self.size is not None:
            raise SketchError("variations have the size of their init_sketch; leave size out")
        if self.init_sketch is None and self.strength is not None:
            raise SketchError("strength is how much to change a sketch: name it with init_sketch")
        if self.strength is not None and not 0 < self.strength <= 1:
            raise SketchError(f"the strength of a variation lies above 0 and goes up to 1, not {self.strength}")
        if self.rounding and not self.repair:
            raise SketchError("rounding needs the constraints of a repair: leave repair on")
        size, _ = self.resolve_size()
        if not 1e-6 <= size <= 1e9:
            raise SketchError(f"a sketch cannot be {size} large")

    @classmethod
    def parse(cls, **options: Any) -> GenerateRequest:
        """A request from its own options and those of `Conditions.parse`, side by side."""
        names = {each.name for each in fields(Conditions)} & options.keys()
        return cls(conditions=Conditions.parse(**{name: options.pop(name) for name in names}), **options)

    @property
    def indices(self) -> range:
        """The indices of the sketches."""
        return range(self.start_index, self.start_index + self.count)

    def sampling(self, system: System) -> SamplingOptions:
        """The sampler and its steps for a model."""
        return choose_sampling(system, self.quality, self.steps, self.sampler)

    def resolve_size(self) -> tuple[float, str]:
        """The larger side of every sketch, and its unit.

        >>> GenerateRequest(size="120mm").resolve_size(), GenerateRequest(size=4, units="in").resolve_size()
        ((120.0, 'mm'), (4, 'in'))
        """
        if self.units not in MM_PER_UNIT:
            raise SketchError(f"'{self.units}' is no unit; use one of {', '.join(MM_PER_UNIT)}")
        if isinstance(self.size, str):
            return parse_length(self.size, "size", self.units)
        return SIZE if self.size is None else self.size, self.units

    def to_json(self, system: System, source: Path | None = None) -> dict[str, Any]:
        """The entries of a manifest. `source` is the file of the initial sketch."""
        options = self.sampling(system)
        steps = options.steps if system.max_steps is not None else None
        content = {name: getattr(self, name) for name in ("seed", "start_index", "count", "repair", "quality")}
        content |= {"sampler": options.sampler_name, "steps": steps, "conditions": self.conditions.to_json()}
        content |= {"rounding": self.rounding.to_json()} if self.rounding else {}
        if self.init_sketch is not None:
            strength = STRENGTH if self.strength is None else self.strength
            return content | {"init_sketch": display_path(source or ""), "strength": strength}
        size, units = self.resolve_size()
        return content | {"size": size, "units": units}


@dataclass(frozen=True, slots=True)
class GeneratedSketch:
    """A generated sketch and how it came about.

    Attributes:
        index: Index of the sketch in its seed.
        sketch: The sketch.
        attempts: Number of samples that were looked at.
        rejected: Why rows of the model's output were left out.
        repaired: How rows of the model's output were made valid primitives.
        shortfall: Which conditions it fails, if no attempt met all.
        score: Score of the best of several.
        best_of_shortfall: Set if it is the best of fewer sketches than `best_of`.
        trajectory: Intermediate states, the last one before repair.
        repair: What repair changed.
        num_given: Of a completion: how many of the first primitives are those of the part.
        scale: Of a completion: size of its frame over that of the part.
        origin: Of a completion: `model`, or `geometry` if the idea follows from the part without the model.
    """

    index: int
    sketch: Sketch
    attempts: int = 1
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    shortfall: str | None = None
    score: float | None = None
    best_of_shortfall: str | None = None
    trajectory: tuple[TrajectoryFrame, ...] = ()
    repair: RepairReport | None = None
    num_given: int = 0
    scale: float | None = None
    origin: str | None = None


def stream(
    system: System,
    request: GenerateRequest,
    on_progress: OnProgress = ignore,
    execution: Execution = DEFAULT_EXECUTION,
) -> Iterator[GeneratedSketch]:
    """Generate sketches one after the other, as their batches finish. Memory does not grow with the count.

    Args:
        system: The model.
        request: What to generate.
        on_progress: Called with the number of sketches' worth of work that is done.
        execution: Where the work is done.

    Raises:
        SketchError: If the model cannot do it, before anything is sampled.
    """
    options = request.sampling(system)
    check_conditions(request.conditions, system)
    if request.compile:
        if device_of(system).type == "cpu":
            raise SketchError("compile is for a GPU: choose one with device, or leave it out")
        system = compile_denoiser(system)
    engine = Engine(system, request.seed, options, sample_part=execution.sample_part)
    size, units = request.resolve_size()
    postprocess = Postprocess(request.seed, size, units, repair=request.repair, workers=request.workers)
    postprocess = replace(postprocess, rounding=_rounding_of(request))
    if request.init_sketch is None:
        engine.conditioning_for = partial(choose_conditioning, request.conditions, request.seed, system=system)
    else:
        strength = STRENGTH if request.strength is None else request.strength
        start, placement = noised_start(system, request.init_sketch, strength)
        steps = min(start.t, max(1, round(number_of_steps(options) * strength)))
        engine.options = replace(options, steps=steps, start=start)
        units = request.init_sketch.units or UNITS
        postprocess = replace(postprocess, size=2.0, units=units, placement=placement)
    return _search_all(engine, request, partial(execution.call, postprocess), on_progress)


def _rounding_of(request: GenerateRequest) -> RoundOptions | None:
    """The options of rounding with the origin that the request implies."""
    if request.rounding is None or request.rounding.origin is not Origin.AUTO:
        return request.rounding
    return replace(request.rounding, origin=Origin.CENTER if request.init_sketch is None else Origin.KEEP)


def noised_start(system: System, sketch: Sketch, strength: float) -> tuple[Start, Placement]:
    """Where the sampler of a variation starts, on the system's device, and the original placement of the sketch."""
    if len(sketch) > layout.MAX_PRIMITIVES:
        raise SketchError(f"the sketch has {len(sketch)} primitives, and this model at most {layout.MAX_PRIMITIVES}")
    if system.max_steps is None:
        raise SketchError(f"a '{system.name}' does not denoise, so it cannot vary a sketch; use a model that denoises")
    normalized, placement = normalize(drop_tiny(sketch, bounds(sketch).size / 2))
    batch = encode_sketches([normalized], system.rows, device_of(system))
    return Start(max(1, round(strength**2 * system.max_steps)), batch), placement


def check_seed_and_count(seed: int, count: int) -> None:
    """Refuse what is no seed or no count."""
    if count < 1:
        raise SketchError(f"count must be at least 1, not {count}")
    if not 0 <= seed < _NUM_SEEDS:
        raise SketchError(f"a seed is a whole number from 0 to 2^64 − 1, not {seed}")


@dataclass(slots=True)
class ProgressReporter:
    """Reports a number of finished sketches that never falls, though failed attempts are repeated."""

    on_progress: OnProgress
    highest: float = 0.0

    def report(self, finished: int, share: float, expected: float) -> None:
        """Report the fraction that is done of a batch, which is expected to finish so many more sketches."""
        self.highest = max(self.highest, finished + share * expected)
        self.on_progress(self.highest)


@dataclass(frozen=True, slots=True)
class Postprocess:
    """Repairs decoded samples and places them: at `size` about the origin, or where the initial sketch was."""

    seed: int
    size: float
    units: str
    placement: Placement | None = None
    repair: bool = False
    workers: int = 1
    rounding: RoundOptions | None = None

    def __call__(self, samples: Mapping[int, Decoded]) -> dict[int, GeneratedSketch]:
        """The candidates by index, without those that are empty or have no extent."""
        placed = {index: self._place(decoded.sketch, index) for index, decoded in samples.items()}
        reports: dict[int, RepairReport] = {}
        if self.repair:
            usable = [index for index, sketch in placed.items() if sketch is not None]
            # Repair comes before scaling, so that the result has exactly the size.
            results = repair_sketches([samples[index].sketch for index in usable], workers=self.workers)
            for index, (sketch, report) in zip(usable, results, strict=True):
                placed[index], reports[index] = self._round(self._place(sketch, index), report)
        return {
            index: GeneratedSketch(
                index,
                sketch,
                rejected=tuple(issue.reason for issue in samples[index].rejects),
                repaired=tuple(issue.reason for issue in samples[index].repairs),
                repair=reports.get(index),
            )
            for index, sketch in placed.items()
            if sketch is not None
        }

    def _round(self, sketch: Sketch | None, report: RepairReport) -> tuple[Sketch | None, RepairReport]:
        if sketch is None or self.rounding is None:
            return sketch, report
        result = round_dimensions(sketch, self.rounding)
        return result.sketch, replace(report, rounding=result.summary)

    def _place(self, sketch: Sketch, index: int) -> Sketch | None:
        try:
            placed = _centered(sketch, self.size / 2)
            if self.placement is not None:
                placed = self.placement.restore(_without_axes(sketch))
        except GeometryError:
            return None
        return replace(placed, units=self.units, extra={"id": f"seed {self.seed}, sketch {index}"})


def _centered(sketch: Sketch, half_extent: float) -> Sketch:
    """The sketch at a size, its box centered on the origin; an axis that constraints refer to stays where it is."""
    placed, placement = normalize(sketch, half_extent)
    is_kept = [any(c.refers_to(axis, Part.ORIGIN) for c in sketch.constraints) for axis in (Part.Y_AXIS, Part.X_AXIS)]
    if any(is_kept):
        by = [c / placement.scale if kept else 0.0 for c, kept in zip(placement.center, is_kept, strict=True)]
        placed = placed.moved(1.0, (by[0], by[1]))
    return placed


def _without_axes(sketch: Sketch) -> Sketch:
    """The sketch without constraints that hold in one place only."""
    outside = (Part.X_AXIS, Part.Y_AXIS, Part.ORIGIN)
    return replace(sketch, constraints=tuple(c for c in sketch.constraints if not c.refers_to(*outside)))


@dataclass(slots=True)
class _Search:
    """The attempts at one sketch: their number, those that are not empty, and why each of these fails."""

    attempts: int = 0
    candidates: dict[int, GeneratedSketch] = field(default_factory=dict)
    shortfalls: dict[int, Shortfall | None] = field(default_factory=dict)

    def choose(self, checker: ConditionChecker) -> GeneratedSketch | None:
        """The attempt to keep; None if more are needed."""
        conditions = checker.conditions
        passing: list[GeneratedSketch] = []
        for number, candidate in self.candidates.items():
            # A failed attempt stays so. One that passed may by now repeat a sketch that was accepted.
            if number not in self.shortfalls or (conditions.unique and self.shortfalls[number] is None):
                self.shortfalls[number] = checker.find_shortfall(candidate.sketch)
            if self.shortfalls[number] is None:
                passing.append(candidate)
                if len(passing) == conditions.best_of:
                    return self._choose_of(passing, number + 1, conditions)
        if self.attempts < _max_attempts(conditions):
            return None
        return self._choose_of(passing, self.attempts, conditions)

    def useful_attempts(self, best_of: int) -> int:
        """How many attempts to sample at once: those needed at least, or as many as there were so far.

        Zero while the search waits for the sketches before it, as `unique` demands.
        """
        passing = sum(each is None for each in self.shortfalls.values())
        unchecked = len(self.candidates) - len(self.shortfalls)
        needed = best_of - passing - unchecked
        return max(needed, self.attempts) if needed > 0 else 0

    def _choose_of(self, passing: Sequence[GeneratedSketch], checked: int, conditions: Conditions) -> GeneratedSketch:
        """The passing attempt of the highest score, else the one closest to the conditions.

        If sketches must be closed, the highest design score decides between equal scores.
        """
        best_of = conditions.best_of
        if passing:
            if best_of > 1:
                passing = [replace(attempt, score=score_sketch(attempt.sketch)) for attempt in passing]

            def rank(attempt: GeneratedSketch) -> tuple[float, float]:
                design = score_design(attempt.sketch).value if conditions.closed and best_of > 1 else 0.0
                return (attempt.score or 0.0, design)

            chosen = max(passing, key=rank)  # the first of the best
            if len(passing) < best_of:
                few = f"the best of {len(passing)}, not of {best_of}: no more of {checked} attempts met the conditions"
                chosen = replace(chosen, best_of_shortfall=f"it is {few}")
            return replace(chosen, attempts=checked)
        failing = {number: shortfall for number, shortfall in self.shortfalls.items() if shortfall is not None}
        if not failing:
            raise SketchError(f"the model drew nothing in {checked} attempts; use more steps or another model")
        closest = min(failing, key=lambda number: failing[number].distance)  # the first of the closest
        return replace(self.candidates[closest], attempts=checked, shortfall=failing[closest].sentence)


def _search_all(
    engine: Engine,
    request: GenerateRequest,
    postprocess: Callable[..., dict[int, GeneratedSketch]],
    on_progress: OnProgress,
) -> Iterator[GeneratedSketch]:
    """Search for as many sketches at a time as a batch holds."""
    conditions = request.conditions
    designed = request.repair and request.init_sketch is None
    checker = ConditionChecker(conditions, engine.system.training_index, exact=request.repair, designed=designed)
    recorder = TrajectoryRecorder(request.trajectory_frames, engine.system.rows.arc_scalar)
    reporter = ProgressReporter(on_progress)
    # A batch of attempts under conditions is likely to finish half of the sketches.
    yield_per_batch = (0.5 if conditions.is_restrictive else 1.0) / conditions.best_of

    def on_step(samples: Sequence[SampleId], progress: Progress) -> None:
        finished, expected = begin + len(results), len(searches) * yield_per_batch
        reporter.report(finished, progress.number / progress.total, expected)
        recorder.record(samples, progress)

    for begin in range(0, request.count, window := engine.max_batch):
        indices = request.indices[begin : begin + window]
        results: dict[int, GeneratedSketch] = {}
        searches = {index: _Search() for index in indices}
        while searches:
            samples = _next_samples(searches, window, conditions, free_rows=pads_batches(engine.system))
            decoded = zip(samples, engine.draw(samples, on_step), strict=True)
            # Later attempts are postprocessed only where the earlier ones fail.
            for attempt, pairs in groupby(decoded, key=lambda pair: pair[0].attempt):
                open_samples = {sample.index: each for sample, each in pairs if sample.index in searches}
                for index, candidate in postprocess(open_samples).items():
                    frames = recorder.pop(SampleId(index, attempt))
                    searches[index].candidates[attempt] = replace(candidate, trajectory=frames)
                for index in open_samples:
                    searches[index].attempts += 1
                results |= _take_finished(searches, checker)
            recorder.frames.clear()
        on_progress(float(begin + len(indices)))
        yield from (results[index] for index in indices)


def _take_finished(searches: dict[int, _Search], checker: ConditionChecker) -> dict[int, GeneratedSketch]:
    """Remove and return the finished searches. With `unique` each waits for those before it."""
    results: dict[int, GeneratedSketch] = {}
    for index, search in list(searches.items()):
        result = search.choose(checker)
        if result is not None:
            checker.accept(result.sketch)
            results[index] = result
            del searches[index]
        elif checker.conditions.unique:
            break
    return results


def _next_samples(
    searches: Mapping[int, _Search], rows: int, conditions: Conditions, *, free_rows: bool
) -> list[SampleId]:
    """The next attempts at each sketch, as many as fit into the rows; only useful ones unless rows are free."""
    useful = [rows if free_rows else search.useful_attempts(conditions.best_of) for search in searches.values()]
    rows_each = max(1, rows // sum(map(bool, useful)))
    return [
        SampleId(index, search.attempts + step)
        for step in range(min(rows_each, max(useful)))
        for (index, search), limit in zip(searches.items(), useful, strict=True)
        if step < limit and search.attempts + step < _max_attempts(conditions)
    ]


def _max_attempts(conditions: Conditions) -> int:
    return MAX_ATTEMPTS + conditions.best_of - 1
