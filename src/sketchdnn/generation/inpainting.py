"""Completes parts with the model: each part lies in a frame and is conditioned on, and the other rows are sampled.

The model works in a frame: the box of the finished sketch, centered, its larger side from −1 to 1. The size of that box
over the size of the part, the `scale`, and the direction in which it extends are unknown, so several are tried.

The result holds the user's own values of the part, equal to the bit. Only added primitives are converted from frame
coordinates to the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.sampling import Conditioning, ConditioningMethod, Progress, SamplingOptions
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Box, Kind, Placement, Primitive, Sketch, bounds, overlaps
from sketchdnn.geometry.intersections import Extent
from sketchdnn.representation import SketchBatch, layout
from sketchdnn.representation.batch import decode
from sketchdnn.representation.decoding import Decoded
from sketchdnn.systems import RowForm, System

from .conditioning import drop_tiny, encode_sketches
from .engine import Engine, SampleId

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


@dataclass(frozen=True, slots=True)
class FramedPart:
    """A part to complete in a frame, with the noise to use, and the kinds of the primitives to add, if fixed."""

    part: Sketch
    frame: Placement
    sample: SampleId
    added_kinds: tuple[Kind, ...] | None = None

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
        num_duplicates: Sampled primitives that were left out because they lie on others.
        rejected: Why rows of the model's output were left out.
        repaired: How rows of the model's output were made valid primitives.
    """

    sketch: Sketch
    num_added: int
    misfit: float
    num_duplicates: int = 0
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
        limits = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        raise SketchError(
            f"the scale is the finished size over that of the part, {MIN_SCALE:g} to {MAX_SCALE:g}, not {limits}"
        )
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
    x, y = (
        middle - _side(choice) * (half - side / 2)
        for middle, side, choice in zip(box.center, (box.width, box.height), choices[1:], strict=True)
    )
    return scale, Placement((x, y), half)


def sample_completions(
    system: System,
    parts: Sequence[FramedPart],
    *,
    seed: int,
    method: ConditioningMethod,
    options: SamplingOptions,
    max_batch: int = 0,
    on_progress: Callable[[float], None] = lambda share: None,
) -> SketchBatch:
    """The sampled rows of every part, on the CPU. `on_progress` is called with the fraction that is done."""
    place = {part.sample: number for number, part in enumerate(parts)}
    by_noise = {part.sample.noise_id: part for part in parts}

    def conditioning_for(noise_ids: Int[Tensor, " batch"]) -> Conditioning:
        framed = [by_noise[number] for number in noise_ids.tolist()]
        return condition_on_parts(framed, system.rows, method, noise_ids.device)

    def on_step(samples: Sequence[SampleId], progress: Progress) -> None:
        on_progress((place[samples[0]] + len(samples) * progress.number / progress.total) / len(parts))

    engine = Engine(system, seed, options, conditioning_for, max_batch)
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
    for number, (part, sketch) in enumerate(zip(parts, known, strict=True)):
        if part.added_kinds is not None:
            first, beyond = len(sketch), len(sketch) + len(part.added_kinds)
            kinds = torch.tensor(part.added_kinds, device=device)
            batch.kind[number, first:beyond] = one_hot(kinds, layout.NUM_KINDS).to(batch.kind)
    params = rows[..., None].expand_as(batch.params)
    return Conditioning(batch, rows, kind_mask, params, method, *_REPEATS[method])


def decode_completions(
    parts: Sequence[FramedPart], batch: SketchBatch, arc_scalar: layout.ArcScalar
) -> Iterator[CompletedPart]:
    """The completed parts of the sampled rows."""
    known = [part.known.primitives for part in parts]
    is_known = torch.arange(batch.kind.shape[1]) < torch.tensor([len(each) for each in known])[:, None]
    empty = torch.eye(layout.NUM_KINDS, dtype=batch.kind.dtype)[layout.NONE]
    added = SketchBatch(batch.construction, torch.where(is_known[..., None], empty, batch.kind), batch.params)
    for part, primitives, decoded in zip(parts, known, decode(added, arc_scalar), strict=True):
        yield _complete(part, primitives, decoded)


def _complete(part: FramedPart, known: Sequence[Primitive], decoded: Decoded) -> CompletedPart:
    fresh = _without_duplicates(known, decoded.sketch.primitives)
    restored = [_restore(part.frame, item) for item in fresh]
    added = tuple(item for item in restored if item is not None)
    box = bounds([*known, *(item for item, result in zip(fresh, restored, strict=True) if result is not None)])
    return CompletedPart(
        replace(part.part, primitives=part.part.primitives + added),
        len(added),
        misfit=max(abs(box.size / 2 - 1), abs(box.center[0]), abs(box.center[1])),
        num_duplicates=len(decoded.sketch) - len(fresh),
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
    return -1 if choice < _AT_A_SIDE else 1 if choice >= 1 - _AT_A_SIDE else 0
