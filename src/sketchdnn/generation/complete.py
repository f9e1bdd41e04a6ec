"""Completion: the part stays exactly as it is, and the model adds primitives that may have been left out.

The model works in a frame: the box of the finished sketch, centered, its larger side from −1 to 1. The size of that box
over the size of the part, the `scale`, and the direction in which it extends are unknown, so several are tried. The
part lies in each frame and is conditioned on, and the other rows are sampled.

The result holds the user's own values of the part, equal to the bit. Only added primitives are converted from frame
coordinates to the user's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, get_args

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.constraints import infer
from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import Conditioning, ConditioningMethod, Progress, SamplingOptions
from sketchdnn.errors import GeometryError, SketchError, display_path
from sketchdnn.geometry import Box, Kind, Placement, Primitive, Sketch, bounds, overlaps
from sketchdnn.geometry.intersections import Extent
from sketchdnn.geometry.quantities import parse_range
from sketchdnn.render import Style
from sketchdnn.representation import SketchBatch, decode, layout
from sketchdnn.systems import RowForm, System

from .conditioning import choose_added_kinds, drop_tiny, encode_sketches
from .conditions import Conditions, find_shortfall, format_range, score_sketch, trained_range
from .engine import Engine, SampleId
from .generate import STEPS, GeneratedSketch, ProgressReporter, check_seed_and_count
from .repair import OnProgress, RepairReport, ignore, repair_sketches

# Frames tried for each completion, of which the best is kept.
NUM_FRAMES = 4
# Attempts at a completion that adds nothing, or not the number of primitives asked for.
_MAX_ATTEMPTS = 4
# Constraints of the part are inferred where they hold but for rounding, as a fraction of the size.
_EXACT = 1e-9
PART_COLOR, ADDED_COLOR = "#1a1a1a", "#0072b2"
# Resamples and jump of each method.
RESAMPLES, JUMP = 4, 5
_REPEATS: Mapping[ConditioningMethod, tuple[int, int]] = {"conditional": (1, 1), "repaint": (RESAMPLES, JUMP)}

MIN_SCALE, MAX_SCALE = 1.0, 4.0
# Scales tried by default. With half of their primitives removed, 99 % of real sketches lie within.
SCALES = (1.0, 2.0)
# Uniform random numbers that a frame takes: for the scale, and for the position along each axis.
NUM_CHOICES = 3
# Probability that a part lies at the low side of its frame, and at the high side; else it is in the middle.
_AT_A_SIDE = 0.25

# An added primitive this close to another, as a fraction of the size, is a duplicate.
DUPLICATE_TOLERANCE = 0.01
# Why an added primitive is left out.
COLLAPSED = "too small, or too far out, for the coordinates of the part"
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
        return Style(palette=(PART_COLOR,) * len(self.part) + (ADDED_COLOR,) * layout.MAX_PRIMITIVES)

    def to_json(self, system: System, source: Path | None = None) -> dict[str, Any]:
        """The entries of a manifest. `source` is the file of the part."""
        content = {"part": display_path(source.name if source else ""), "num_given": len(self.part)}
        names = ("count", "seed", "steps", "method", "num_frames", "repair")
        sampler, scale = system.resolve(SamplingOptions(self.sampler)).sampler_name, list(self.resolve_scales())
        content |= {name: getattr(self, name) for name in names}
        return content | {"sampler": sampler, "scale": scale, "primitives": self.conditions.primitives}


def complete(system: System, request: CompleteRequest, on_progress: OnProgress = ignore) -> Iterator[GeneratedSketch]:
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
        least, most = max(least, len(request.part) + 1), min(most, layout.MAX_PRIMITIVES)
        if not least <= limits[0] <= limits[1] <= most:
            allowed = f"with {len(request.part)} given, this model can be asked for {least} to {most} primitives in all"
            raise SketchError(f"{allowed}, not {format_range(limits, '..')}")
    if request.repair and not request.part.constraints:
        # Repair constrains only what it may move: without this, corners of the part would come apart.
        request = replace(request, part=replace(request.part, constraints=infer(request.part, _EXACT)))
    return _Completer(Engine(system, request.seed, options), request).run(on_progress)


def frame_part(
    part: Sketch, scales: tuple[float, float], *, seed: int, index: int, num_frames: int, first: int = 0
) -> list[FramedPart]:
    """The framed parts of one completion, each with noise of its own, numbered from `first`."""
    box = bounds(part)
    samples = [SampleId(index, trial) for trial in range(first, first + num_frames)]
    noise_ids = torch.tensor([sample.noise_id for sample in samples])
    choices = uniform(seed, noise_ids, _FRAME_NOISE, (NUM_CHOICES,)).tolist()
    parts = []
    for sample, numbers in zip(samples, choices, strict=True):
        scale, frame = choose_frame(box, scales, sample.attempt % num_frames, num_frames, numbers)
        parts.append(FramedPart(part, frame, sample, scale=scale))
    return parts


def score_completion(completed: CompletedPart) -> float:
    """Score of a completion, at most 1: that of the sketch less its misfit; −∞ if nothing was added."""
    return score_sketch(completed.sketch) - completed.misfit if completed.num_added else -math.inf


def _check_part(part: Sketch) -> None:
    if not len(part):
        raise SketchError("the part is empty: there is nothing to complete; `sketchdnn generate` makes new sketches")
    if len(part) > layout.MAX_PRIMITIVES:
        most = f"a finished sketch at most {layout.MAX_PRIMITIVES}"
        raise SketchError(f"the part has {len(part)} primitives, and {most}; take some away")
    if len(part) == layout.MAX_PRIMITIVES:
        raise SketchError(
            f"the part has {layout.MAX_PRIMITIVES} primitives, as many as a sketch can have: nothing to add"
        )
    box = bounds(part)
    if not box.size > 0:
        raise SketchError("the part has no extent, so the size of the sketch is unknown; add a line")
    if not len(drop_tiny(part, MAX_SCALE * box.size / 2)):
        raise SketchError("every primitive of the part is too small beside its size; add a longer line")


@dataclass(frozen=True, slots=True)
class _Completer:
    engine: Engine
    request: CompleteRequest

    def run(self, on_progress: OnProgress) -> Iterator[GeneratedSketch]:
        """As many completions at a time as share a batch."""
        reporter = ProgressReporter(on_progress)
        count, num_frames = self.request.count, self.request.num_frames
        window = max(1, self.engine.max_batch // num_frames)
        for first in range(0, count, window):
            indices = range(first, min(first + window, count))
            best: dict[int, GeneratedSketch] = {}
            for attempt in range(_MAX_ATTEMPTS):
                waiting = [index for index in indices if index not in best or best[index].shortfall]
                if not waiting:
                    break
                report = partial(reporter.report, indices.stop - len(waiting), expected=len(waiting))
                for result in self._attempt(waiting, attempt, report):
                    best[result.index] = max(best.get(result.index, result), result, key=self._rank)
                best |= {index: replace(best[index], attempts=attempt + 1) for index in waiting if index in best}
            if len(best) < len(indices):
                tries = f"{_MAX_ATTEMPTS * num_frames} tries"
                raise SketchError(f"the model added nothing in {tries}; use more steps or a larger scale")
            on_progress(float(indices.stop))
            yield from (best[index] for index in indices)

    def _attempt(self, indices: Sequence[int], attempt: int, on_progress: OnProgress) -> Iterator[GeneratedSketch]:
        """The best of the frames of each completion; none where no frame added anything."""
        request, num_given = self.request, len(self.request.part)
        parts = [part for index in indices for part in self._plan(index, attempt)]
        batch = sample_parts(self.engine, parts, request.method, on_progress)
        completed = list(decode_completions(parts, batch, self.engine.system.rows.arc_scalar))
        results: Sequence[tuple[Sketch, RepairReport | None]] = [(each.sketch, None) for each in completed]
        if request.repair:
            results = repair_sketches([each.sketch for each in completed], num_given, workers=request.workers)
        candidates = [
            self._candidate(part, replace(each, sketch=sketch, num_added=len(sketch) - num_given), report)
            for part, each, (sketch, report) in zip(parts, completed, results, strict=True)
        ]
        for first in range(0, len(candidates), request.num_frames):
            chosen = max(candidates[first : first + request.num_frames], key=self._rank)
            if len(chosen.sketch) > num_given:
                yield chosen

    def _plan(self, index: int, attempt: int) -> list[FramedPart]:
        request, count = self.request, self.request.num_frames
        options = {"seed": request.seed, "index": index, "num_frames": count, "first": attempt * count}
        parts = frame_part(request.part, request.resolve_scales(), **options)
        if request.conditions.primitives is None:
            return parts
        low, high = request.conditions.primitives
        chance = float(uniform(request.seed, torch.tensor([index]), _COUNT_NOISE, (1,)))
        primitives = low + int(chance * (high - low + 1))
        noise_ids = torch.tensor([part.sample.noise_id for part in parts])
        chances = uniform(request.seed, noise_ids, _KIND_NOISE, (1,))[:, 0].double().numpy()
        kinds = choose_added_kinds(request.part, primitives, chances, self.engine.system.training_index)
        return [replace(part, added_kinds=each) for part, each in zip(parts, kinds, strict=True)]

    def _candidate(self, part: FramedPart, completed: CompletedPart, report: RepairReport | None) -> GeneratedSketch:
        index, sketch = part.sample.index, completed.sketch
        shortfall = find_shortfall(self.request.conditions, sketch)
        return GeneratedSketch(
            index,
            replace(sketch, extra={**sketch.extra, "id": f"seed {self.request.seed}, completion {index}"}),
            rejected=completed.rejected,
            repaired=completed.repaired,
            shortfall=shortfall.sentence if shortfall else None,
            score=score_completion(completed),
            repair=report,
            num_given=len(self.request.part),
            scale=part.scale,
        )

    def _rank(self, candidate: GeneratedSketch) -> tuple[float, float]:
        """The number of primitives counts first, then the score."""
        shortfall = find_shortfall(self.request.conditions, candidate.sketch)
        return -shortfall.distance if shortfall else 0.0, candidate.score or 0.0


# Parts in frames.


@dataclass(frozen=True, slots=True)
class FramedPart:
    """A part to complete in a frame, with the noise to use, and the kinds of the primitives to add, if fixed.

    `scale` is the size of the frame over that of the part.
    """

    part: Sketch
    frame: Placement
    sample: SampleId
    added_kinds: tuple[Kind, ...] | None = None
    scale: float = 1.0

    @property
    def known(self) -> Sketch:
        """The part in frame coordinates, without what is too small there: in single precision it would collapse."""
        (x, y), scale = self.frame.center, self.frame.scale
        return drop_tiny(self.part, scale).moved(1 / scale, (-x / scale, -y / scale))


@dataclass(frozen=True, slots=True)
class CompletedPart:
    """A part followed by the primitives that were added.

    Attributes:
        sketch: The sketch, in the coordinates and units of the part.
        num_added: Number of added primitives.
        misfit: Distance of the sketch's box from the frame, as a fraction of the frame.
        rejected: Why rows of the model's output were left out.
        repaired: How rows of the model's output were made valid primitives.
    """

    sketch: Sketch
    num_added: int
    misfit: float
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()


def check_method(system: System, method: str) -> None:
    """Refuse an unknown method, or one that the system does not support."""
    methods = get_args(ConditioningMethod)
    if method not in methods:
        raise SketchError(f"'{method}' is no method of completion; use {' or '.join(methods)}")
    if not system.conditioning_methods:
        raise SketchError(f"a '{system.name}' cannot complete a sketch; use a model that denoises rows")
    if method not in system.conditioning_methods:
        raise SketchError("this model was not trained to complete parts; use the method repaint")


def check_scale(scale: float | tuple[float, float] | None) -> tuple[float, float]:
    """The range of scales to try, from a range, one scale, or None for the default."""
    low, high = SCALES if scale is None else scale if isinstance(scale, tuple) else (scale, scale)
    if not MIN_SCALE <= low <= high <= MAX_SCALE:
        allowed, limits = f"{MIN_SCALE:g} to {MAX_SCALE:g}", format_range((low, high), "..")
        raise SketchError(f"the scale is the finished size over that of the part, {allowed}, not {limits}")
    return low, high


def choose_frame(
    box: Box, scales: tuple[float, float], trial: int, trials: int, choices: Sequence[float]
) -> tuple[float, Placement]:
    """The scale and the frame of one trial: every other frame is the smallest, about the part's center.

    That is where half of a real sketch mostly lies. The others spread over the scales, and extend to one side of the
    part or around it. `choices` are uniform random numbers.

    >>> choose_frame(Box((0, 0), (4, 2)), (1.5, 2.0), 0, 4, (0.5, 0.5, 0.5))
    (1.5, Placement(center=(2.0, 1.0), scale=3.0, units=None))
    """
    low, high = scales
    if trial % 2 == 0:
        return low, Placement(box.center, low * box.size / 2)
    scale = low * (high / low) ** ((trial // 2 + choices[0]) / (trials // 2))
    half = scale * box.size / 2
    axes = zip(box.center, (box.width, box.height), choices[1:], strict=True)
    x, y = (middle - _side(choice) * (half - side / 2) for middle, side, choice in axes)
    return scale, Placement((x, y), half)


def sample_parts(
    engine: Engine, parts: Sequence[FramedPart], method: ConditioningMethod, on_progress: OnProgress = ignore
) -> SketchBatch:
    """The sampled rows of every part, on the CPU. `on_progress` is called with the fraction that is done."""
    place = {part.sample: number for number, part in enumerate(parts)}
    by_noise = {part.sample.noise_id: part for part in parts}

    def conditioning_for(noise_ids: Int[Tensor, " batch"]) -> Conditioning:
        framed = [by_noise[number] for number in noise_ids.tolist()]
        return condition_on_parts(framed, engine.system.rows, method, noise_ids.device)

    def on_step(samples: Sequence[SampleId], progress: Progress) -> None:
        on_progress((place[samples[0]] + len(samples) * progress.number / progress.total) / len(parts))

    engine = replace(engine, conditioning_for=conditioning_for)
    return engine.sample([part.sample for part in parts], on_step).to("cpu")


def condition_on_parts(
    parts: Sequence[FramedPart], form: RowForm, method: ConditioningMethod, device: torch.device | str = "cpu"
) -> Conditioning:
    """The rows of the parts as conditioning; where the added kinds are fixed, also the kind of every other row.

    All kinds, and not the empty rows alone: next to known rows, empty ones do not constrain the others.
    """
    known = [part.known for part in parts]
    batch = encode_sketches(known, form, device)
    rows = batch.kind.argmax(dim=-1) != layout.NONE
    kind_mask = rows | torch.tensor([part.added_kinds is not None for part in parts], device=device)[:, None]
    for kind, part, sketch in zip(batch.kind, parts, known, strict=True):
        if part.added_kinds is not None:
            kinds = torch.tensor(part.added_kinds, device=device)
            kind[len(sketch) : len(sketch) + len(kinds)] = one_hot(kinds, layout.NUM_KINDS).to(kind)
    params = rows[..., None].expand_as(batch.params)
    return Conditioning(batch, rows, kind_mask, params, method, *_REPEATS[method])


def decode_completions(
    parts: Sequence[FramedPart], batch: SketchBatch, arc_scalar: layout.ArcScalar
) -> Iterator[CompletedPart]:
    """The completed parts of the sampled rows."""
    known = [part.known.primitives for part in parts]
    is_known = torch.arange(batch.kind.shape[1]) < torch.tensor([len(each) for each in known])[:, None]
    empty = torch.eye(layout.NUM_KINDS, dtype=batch.kind.dtype)[layout.NONE]
    sampled = SketchBatch(batch.construction, torch.where(is_known[..., None], empty, batch.kind), batch.params)
    for part, primitives, decoded in zip(parts, known, decode(sampled, arc_scalar), strict=True):
        fresh = _without_duplicates(primitives, decoded.sketch.primitives)
        restored = [_restore(part.frame, item) for item in fresh]
        added = tuple(item for item in restored if item is not None)
        box = bounds([*primitives, *(item for item, result in zip(fresh, restored, strict=True) if result is not None)])
        yield CompletedPart(
            replace(part.part, primitives=part.part.primitives + added),
            len(added),
            misfit=max(abs(box.size / 2 - 1), abs(box.center[0]), abs(box.center[1])),
            rejected=(*(issue.reason for issue in decoded.rejects), *[COLLAPSED] * restored.count(None)),
            repaired=tuple(issue.reason for issue in decoded.repairs),
        )


def _restore(frame: Placement, item: Primitive) -> Primitive | None:
    """A primitive of a frame in the coordinates of the part; None if it collapses there."""
    try:
        return frame.restore(Sketch((item,))).primitives[0]
    except GeometryError:
        return None


def _without_duplicates(known: Sequence[Primitive], added: Sequence[Primitive]) -> tuple[Primitive, ...]:
    """The added primitives that do not lie wholly on another; of two equal ones, the first stays."""
    primitives = [*known, *added]
    duplicates: set[int] = set()
    for pair in overlaps(primitives, DUPLICATE_TOLERANCE):
        if pair.extent is Extent.DUPLICATE:
            duplicates.add(pair.second)
        elif pair.extent is Extent.CONTAINED:
            duplicates.add(min(pair.first, pair.second, key=lambda number: primitives[number].length))
    return tuple(item for number, item in enumerate(primitives) if number >= len(known) and number not in duplicates)


def _side(choice: float) -> int:
    """Where along an axis the part lies: at the low side, in the middle, at the high side."""
    return (choice >= 1 - _AT_A_SIDE) - (choice < _AT_A_SIDE)
