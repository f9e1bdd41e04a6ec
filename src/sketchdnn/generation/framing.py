"""Parts in the frames that the model works in: where they lie, how they condition it, and what it adds to them.

A frame is the box of the finished sketch, centered, its larger side from −1 to 1. The size of that box over the size of
the part, the scale, and the direction in which it extends are unknown, so several are tried.

The model has 16 rows. Of a larger part its input is a `context`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import Conditioning, ConditioningMethod, Progress
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Box, Kind, Placement, Primitive, Sketch, bounds, overlaps
from sketchdnn.geometry.intersections import Extent
from sketchdnn.representation import SketchBatch, decode, layout
from sketchdnn.systems import RowForm, System

from .conditioning import drop_tiny, encode_sketches
from .conditions import format_range
from .context import Context
from .engine import Engine, SampleId
from .repair import OnProgress, ignore

# Resamples and jump of each method.
RESAMPLES, JUMP = 4, 5
_REPEATS: Mapping[ConditioningMethod, tuple[int, int]] = {"conditional": (1, 1), "repaint": (RESAMPLES, JUMP)}

MIN_SCALE, MAX_SCALE = 1.0, 4.0
# Uniform random numbers that a frame takes: for the scale, and for the position along each axis.
NUM_CHOICES = 3
# Probability that a part lies at the low side of its frame, and at the high side; else it is in the middle.
_AT_A_SIDE = 0.25
# An added primitive this close to another, as a fraction of the size, is a duplicate.
DUPLICATE_TOLERANCE = 0.01
# The reason for leaving out an added primitive.
COLLAPSED = "too small, or too far out, for the coordinates of the part"
# The source of an idea: the model, or the geometry of the part alone (`geometric_ideas`).
Origin = Literal["model", "geometry"]
# A noise index that no sampler reaches.
_FRAME_NOISE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FramedPart:
    """A part to complete in a frame, with the noise to use.

    Attributes:
        part: The part.
        frame: The frame.
        sample: Selects the noise.
        added_kinds: The kinds of the primitives to add, if fixed.
        scale: The size of the frame over that of the context.
        context: The primitives of the part that are input of the model; None means all.
        stand_in: Lines that are input instead of an outline.
    """

    part: Sketch
    frame: Placement
    sample: SampleId
    added_kinds: tuple[Kind, ...] | None = None
    scale: float = 1.0
    context: tuple[int, ...] | None = None
    stand_in: tuple[Primitive, ...] = ()

    @property
    def known(self) -> Sketch:
        """The input of the model, in frame coordinates.

        Primitives that are too small there are left out: in single precision they would collapse.
        """
        if self.context is None:
            return self._framed(self.part)
        context = self.part.select(self.context)
        return self._framed(replace(context, primitives=context.primitives + self.stand_in))

    @property
    def framed(self) -> Sketch:
        """The whole part in frame coordinates, without primitives that are too small there."""
        return self._framed(self.part)

    def _framed(self, sketch: Sketch) -> Sketch:
        (x, y), scale = self.frame.center, self.frame.scale
        return drop_tiny(sketch, scale).moved(1 / scale, (-x / scale, -y / scale))


@dataclass(frozen=True, slots=True)
class CompletedPart:
    """A part followed by the primitives that were added.

    Attributes:
        sketch: The sketch, in the coordinates and units of the part.
        num_added: Number of added primitives.
        misfit: Distance of the sketch's box from the frame, as a fraction of the frame.
        rejected: Why rows of the model's output were left out.
        repaired: How rows of the model's output were made valid primitives.
        origin: Where the additions come from.
    """

    sketch: Sketch
    num_added: int
    misfit: float
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    origin: Origin = "model"


def check_method(system: System, method: str) -> None:
    """Refuse an unknown method, or one that the system does not support."""
    methods = get_args(ConditioningMethod)
    if method not in methods:
        raise SketchError(f"'{method}' is no method of completion; use {' or '.join(methods)}")
    if not system.conditioning_methods:
        raise SketchError(f"a '{system.name}' cannot complete a sketch; use a model that denoises rows")
    if method not in system.conditioning_methods:
        raise SketchError("this model was not trained to complete parts; use the method repaint")


def check_scale(low: float, high: float) -> tuple[float, float]:
    """The range of scales, if it is one."""
    if not MIN_SCALE <= low <= high <= MAX_SCALE:
        allowed, limits = f"{MIN_SCALE:g} to {MAX_SCALE:g}", format_range((low, high), "..")
        raise SketchError(f"the scale is the finished size over that of the part, {allowed}, not {limits}")
    return low, high


def frame_part(
    part: Sketch,
    scales: tuple[float, float],
    samples: Sequence[SampleId],
    seed: int,
    contexts: Sequence[Context] | None = None,
) -> list[FramedPart]:
    """The part in one frame for each sample, about all of it or about the context of the sample."""
    noise_ids = torch.tensor([sample.noise_id for sample in samples])
    choices = uniform(seed, noise_ids, _FRAME_NOISE, (NUM_CHOICES,)).tolist()
    parts = []
    for trial, (sample, numbers) in enumerate(zip(samples, choices, strict=True)):
        context, stand_in = (None, ()) if contexts is None else contexts[trial]
        box = bounds(part if context is None else [*part.select(context), *stand_in])
        scale, frame = choose_frame(box, scales, trial, len(samples), numbers)
        parts.append(FramedPart(part, frame, sample, scale=scale, context=context, stand_in=stand_in))
    return parts


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
            kinds = torch.tensor(part.added_kinds, dtype=torch.int64, device=device)
            kind[len(sketch) : len(sketch) + len(kinds)] = one_hot(kinds, layout.NUM_KINDS).to(kind)
    params = rows[..., None].expand_as(batch.params)
    return Conditioning(batch, rows, kind_mask, params, method, *_REPEATS[method])


def decode_completions(
    parts: Sequence[FramedPart], batch: SketchBatch, arc_scalar: layout.ArcScalar
) -> Iterator[CompletedPart]:
    """The completed parts of the sampled rows."""
    num_known = [len(part.known) for part in parts]
    is_known = torch.arange(batch.kind.shape[1]) < torch.tensor(num_known)[:, None]
    empty = torch.eye(layout.NUM_KINDS, dtype=batch.kind.dtype)[layout.NONE]
    sampled = SketchBatch(batch.construction, torch.where(is_known[..., None], empty, batch.kind), batch.params)
    for part, decoded in zip(parts, decode(sampled, arc_scalar), strict=True):
        fresh = _without_duplicates(part.framed.primitives, decoded.sketch.primitives)
        restored = [_restore(part.frame, item) for item in fresh]
        added = tuple(item for item in restored if item is not None)
        kept = (item for item, result in zip(fresh, restored, strict=True) if result is not None)
        box = bounds([*part.known, *kept])
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
