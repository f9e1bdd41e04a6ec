"""Completion: the part stays exactly as it is, and the model adds primitives that may have been left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from sketchdnn.constraints import infer
from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import ConditioningMethod, SamplingOptions
from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Sketch, bounds
from sketchdnn.geometry.quantities import parse_range
from sketchdnn.render import Style
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System

from .conditioning import choose_added_kinds, drop_tiny
from .conditions import Conditions, find_shortfall, format_range, score_sketch, trained_range
from .engine import SampleId, device_of, max_batch_size
from .generate import STEPS, GeneratedSketch, OnProgress, ProgressReporter, check_seed_and_count
from .inpainting import (
    MAX_SCALE,
    NUM_CHOICES,
    CompletedPart,
    FramedPart,
    check_method,
    check_scale,
    choose_frame,
    decode_completions,
    sample_completions,
)
from .repair import RepairReport, repair_sketches

# Frames tried for each completion, of which the best is kept.
NUM_FRAMES = 4
# Attempts at a completion that adds nothing, or not the number of primitives asked for.
_MAX_ATTEMPTS = 4
# Constraints of the part are inferred where they hold but for rounding, as a fraction of the size.
_EXACT = 1e-9
PART_COLOR, ADDED_COLOR = "#1a1a1a", "#0072b2"
# Noise indices that no sampler reaches.
_FRAME_NOISE, _COUNT_NOISE, _KIND_NOISE = (2**31 - each for each in (1, 2, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteRequest:
    """What to complete: completions 0 to count − 1 of a part, in the part's own coordinates and units.

    Attributes:
        part: The sketch to complete.
        count: Number of completions.
        seed: Selects the completions: the same seed gives the same completions, whatever the count.
        method: `conditional` for a network trained for it, `repaint` for any.
        scale: Finished size over that of the part, a range of it, or words such as "1..2"; None means 1 to 2.
        num_frames: Number of frames tried for each completion, of which the best is kept.
        steps: Number of denoising steps.
        sampler: Name of the sampler; None means the model's own.
        primitives: Number of primitives in all, a range of it, or words such as "8..16".
        repair: Repair what was added. The part does not change; without constraints of its own it gets those that hold
            exactly.
        workers: Number of processes that repair large batches.
    """

    stem: ClassVar[str] = "completion"

    part: Sketch
    count: int = 8
    seed: int = 0
    method: ConditioningMethod = "conditional"
    scale: float | tuple[float, float] | str | None = None
    num_frames: int = NUM_FRAMES
    steps: int = STEPS
    sampler: str | None = None
    primitives: int | tuple[int, int] | str | None = None
    repair: bool = True
    workers: int = 1

    def __post_init__(self) -> None:
        check_seed_and_count(self.seed, self.count)
        _check_part(self.part)
        if self.num_frames < 1:
            raise SketchError(f"each completion takes at least one frame, not {self.num_frames}")
        self.resolve_scales()
        _ = self.conditions  # refuses an invalid number

    @property
    def indices(self) -> range:
        """The indices of the completions."""
        return range(self.count)

    def resolve_scales(self) -> tuple[float, float]:
        """The range of scales to try."""
        return check_scale(parse_range(self.scale, "scale", "1..2") if isinstance(self.scale, str) else self.scale)

    @property
    def conditions(self) -> Conditions:
        """The condition on the number of primitives."""
        return Conditions.parse(primitives=self.primitives)

    @property
    def style(self) -> Style:
        """The style of pictures: the part and what was added have different colors."""
        return Style(palette=(PART_COLOR,) * len(self.part) + (ADDED_COLOR,) * MAX_PRIMITIVES)

    def to_json(self, system: System, source: Path | None = None) -> dict[str, Any]:
        """The entries of a manifest. `source` is the file of the part."""
        names = ("count", "seed", "steps", "method", "num_frames", "repair")
        return {
            "part": display_path(source.name if source else ""),
            "num_given": len(self.part),
            **{name: getattr(self, name) for name in names},
            "sampler": system.resolve(SamplingOptions(self.sampler)).sampler_name,
            "scale": list(self.resolve_scales()),
            "primitives": self.conditions.primitives,
        }


def complete(
    system: System, request: CompleteRequest, on_progress: OnProgress = lambda done: None
) -> Iterator[GeneratedSketch]:
    """Complete a part, as many times as requested. The first primitives of each result are the part's own.

    Args:
        system: The model.
        request: What to complete.
        on_progress: Called with the number of completions' worth of work that is done.

    Raises:
        SketchError: If the model cannot do it, before anything is sampled.
    """
    check_method(system, request.method)
    options = system.resolve(SamplingOptions(request.sampler, request.steps))
    limits = request.conditions.primitives
    if limits is not None:
        least, most = trained_range(system)
        least, most = max(least, len(request.part) + 1), min(most, MAX_PRIMITIVES)
        if not least <= limits[0] <= limits[1] <= most:
            raise SketchError(
                f"with {len(request.part)} given, this model can be asked for {least} to {most} primitives in all, "
                f"not {format_range(limits, '..')}"
            )
    if request.repair and not request.part.constraints:
        # Repair constrains only what it may move: without this, corners of the part would come apart.
        request = replace(request, part=replace(request.part, constraints=infer(request.part, _EXACT)))
    return _Completer(system, request, options, request.conditions).run(on_progress)


def frame_part(
    part: Sketch, scales: tuple[float, float], *, seed: int, index: int, num_frames: int, first: int = 0
) -> tuple[list[float], list[FramedPart]]:
    """The scales and the framed parts of one completion, each with noise of its own, numbered from `first`."""
    box = bounds(part)
    trials = range(first, first + num_frames)
    samples = [SampleId(index, trial) for trial in trials]
    noise_ids = torch.tensor([sample.noise_id for sample in samples])
    choices = uniform(seed, noise_ids, _FRAME_NOISE, (NUM_CHOICES,)).tolist()
    frames = [
        choose_frame(box, scales, trial % num_frames, num_frames, numbers)
        for trial, numbers in zip(trials, choices, strict=True)
    ]
    parts = [FramedPart(part, frame, sample) for (_, frame), sample in zip(frames, samples, strict=True)]
    return [scale for scale, _ in frames], parts


def score_completion(completed: CompletedPart) -> float:
    """Score of a completion, at most 1: that of the sketch less its misfit; −∞ if nothing was added."""
    return score_sketch(completed.sketch) - completed.misfit if completed.num_added else -math.inf


def _check_part(part: Sketch) -> None:
    if not len(part):
        raise SketchError("the part is empty: there is nothing to complete; `sketchdnn generate` makes new sketches")
    if len(part) > MAX_PRIMITIVES:
        raise SketchError(
            f"the part has {len(part)} primitives, and a finished sketch at most {MAX_PRIMITIVES}; take some away"
        )
    if len(part) == MAX_PRIMITIVES:
        raise SketchError(f"the part has {MAX_PRIMITIVES} primitives, as many as a sketch can have: nothing to add")
    box = bounds(part)
    if not box.size > 0:
        raise SketchError("the part has no extent, so the size of the sketch is unknown; add a line")
    if not len(drop_tiny(part, MAX_SCALE * box.size / 2)):
        raise SketchError("every primitive of the part is too small beside its size; add a longer line")


@dataclass(frozen=True, slots=True)
class _Completer:
    system: System
    request: CompleteRequest
    options: SamplingOptions
    conditions: Conditions  # on the number of primitives

    def run(self, on_progress: OnProgress) -> Iterator[GeneratedSketch]:
        """As many completions at a time as share a batch."""
        reporter = ProgressReporter(on_progress)
        count, num_frames = self.request.count, self.request.num_frames
        window = max(1, max_batch_size(device_of(self.system)) // num_frames)
        for first in range(0, count, window):
            indices = range(first, min(first + window, count))
            best: dict[int, GeneratedSketch] = {}
            for attempt in range(_MAX_ATTEMPTS):
                waiting = [index for index in indices if index not in best or best[index].shortfall]
                if not waiting:
                    break
                reporter.start_batch(indices.stop - len(waiting), len(waiting))
                for result in self._attempt(waiting, attempt, reporter.report):
                    best[result.index] = max(best.get(result.index, result), result, key=self._rank)
                best |= {index: replace(best[index], attempts=attempt + 1) for index in waiting if index in best}
            if len(best) < len(indices):
                raise SketchError(
                    f"the model added nothing to the part in {_MAX_ATTEMPTS * num_frames} tries; "
                    "use more steps or a larger scale"
                )
            reporter.start_batch(indices.stop, 0.0)
            reporter.report(1.0)
            yield from (best[index] for index in indices)

    def _attempt(self, indices: Sequence[int], attempt: int, on_progress: OnProgress) -> Iterator[GeneratedSketch]:
        """The best of the frames of each completion; none where no frame added anything."""
        request, num_given = self.request, len(self.request.part)
        plans = [self._plan(index, attempt) for index in indices]
        parts = [part for _, parts in plans for part in parts]
        batch = sample_completions(
            self.system, parts, seed=request.seed, method=request.method, options=self.options, on_progress=on_progress
        )
        completed = list(decode_completions(parts, batch, self.system.rows.arc_scalar))
        reports: list[RepairReport | None] = [None] * len(completed)
        if request.repair:
            results = repair_sketches([each.sketch for each in completed], num_given, workers=request.workers)
            reports = [report for _, report in results]
            completed = [
                replace(each, sketch=sketch, num_added=len(sketch) - num_given)
                for each, (sketch, _) in zip(completed, results, strict=True)
            ]
        scales = [scale for scales, _ in plans for scale in scales]
        candidates = [
            self._candidate(part.sample.index, each, scale, report)
            for part, each, scale, report in zip(parts, completed, scales, reports, strict=True)
        ]
        for first in range(0, len(candidates), request.num_frames):
            chosen = max(candidates[first : first + request.num_frames], key=self._rank)
            if len(chosen.sketch) > num_given:
                yield chosen

    def _plan(self, index: int, attempt: int) -> tuple[list[float], list[FramedPart]]:
        request, count = self.request, self.request.num_frames
        first = attempt * count
        scales, parts = frame_part(
            request.part, request.resolve_scales(), seed=request.seed, index=index, num_frames=count, first=first
        )
        if self.conditions.primitives is None:
            return scales, parts
        low, high = self.conditions.primitives
        chance = float(uniform(request.seed, torch.tensor([index]), _COUNT_NOISE, (1,)))
        primitives = low + int(chance * (high - low + 1))
        noise_ids = torch.tensor([part.sample.noise_id for part in parts])
        chances = uniform(request.seed, noise_ids, _KIND_NOISE, (1,))[:, 0].double().numpy()
        kinds = choose_added_kinds(request.part, primitives, chances, self.system.training_index)
        return scales, [replace(part, added_kinds=each) for part, each in zip(parts, kinds, strict=True)]

    def _candidate(
        self, index: int, completed: CompletedPart, scale: float, report: RepairReport | None
    ) -> GeneratedSketch:
        sketch, shortfall = completed.sketch, find_shortfall(self.conditions, completed.sketch)
        return GeneratedSketch(
            index,
            replace(sketch, extra={**sketch.extra, "id": f"seed {self.request.seed}, completion {index}"}),
            rejected=completed.rejected,
            repaired=completed.repaired,
            shortfall=shortfall.sentence if shortfall else None,
            score=score_completion(completed),
            repair=report,
            num_given=len(self.request.part),
            scale=scale,
            num_duplicates=completed.num_duplicates,
        )

    def _rank(self, candidate: GeneratedSketch) -> tuple[float, float]:
        """The number of primitives counts first, then the score."""
        shortfall = find_shortfall(self.conditions, candidate.sketch)
        return -shortfall.distance if shortfall else 0.0, candidate.score or 0.0
