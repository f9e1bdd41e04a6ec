"""Parts finished by the model, many at once: each in its frame, from noise of its own.

Given primitives go in as rows and come out as they were, to the bit: what is handed back are the user's own values, and
only what was added is brought from the frame to the user's coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.conditioning import Conditioning, ConditioningMethod
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Kind, Placement, Primitive, Sketch, bounds, overlaps
from sketchdnn.geometry.overlaps import Extent
from sketchdnn.representation import SketchBatch, from_flat, layout
from sketchdnn.representation.codec import decode
from sketchdnn.representation.decoding import Decoded
from sketchdnn.systems import RowForm, System

from .engine import batch_size, device_of, quick
from .frames import into_frame
from .rows import rows_of

# Resamples and jump of each method.
RESAMPLES, JUMP = 4, 5
_REPEATS: Mapping[ConditioningMethod, tuple[int, int]] = {"conditional": (1, 1), "repaint": (RESAMPLES, JUMP)}

# An added primitive this close to one that is there (a share of the size) only repeats it.
SAME = 0.01
# Why something that was added is left out.
COLLAPSED = "too small, or too far out, for the coordinates of the part"

OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Walk:
    """A part, the frame it lies in, the number of its noise, and the kinds of what is to be added, if these matter."""

    part: Sketch
    frame: Placement
    noise: int
    adding: tuple[Kind, ...] | None = None

    @property
    def given(self) -> Sketch:
        """What the model is shown of the part: in the frame, and without what is too small there."""
        return into_frame(self.part, self.frame)


@dataclass(frozen=True, slots=True)
class Finished:
    """A part with what was added after its own primitives.

    `misfit` says how far the box of the whole is from the frame it was drawn in, as a share of the frame. `repeated`
    counts what was left out because it lay on something that was there.
    """

    sketch: Sketch
    added: int
    misfit: float
    repeated: int = 0
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()


def check_method(system: System, method: str) -> None:
    """Refuse a method that there is not, or that the network was not trained for."""
    methods = get_args(ConditioningMethod)
    if method not in methods:
        raise SketchError(f"'{method}' is no method to complete a sketch; use {' or '.join(methods)}")
    if not system.conditioning_methods:
        raise SketchError(
            f"a '{system.name}' draws sketches whole, so it cannot complete one; use a model that denoises rows"
        )
    if method not in system.conditioning_methods:
        raise SketchError("this model was not trained with given primitives; complete with --method repaint")


def walk_all(
    system: System,
    walks: Sequence[Walk],
    *,
    seed: int,
    method: ConditioningMethod,
    options: SamplingOptions,
    chunk: int,
    on_progress: OnProgress = lambda done: None,
) -> SketchBatch:
    """The rows of every walk, on the CPU, in batches of at most `chunk` and of the sizes that the engine takes.

    `on_progress` hears the share that is done.
    """
    device = device_of(system)
    drawn: list[SketchBatch] = []
    batches = range(0, len(walks), chunk)

    def tell(share: float) -> None:
        on_progress((len(drawn) + share) / len(batches))

    for first in batches:
        some = walks[first : first + chunk]
        padded = [*some, *[some[-1]] * (batch_size(system, len(some), chunk) - len(some))]
        numbers = torch.tensor([walk.noise for walk in padded], device=device)
        with torch.inference_mode(), quick(system):
            conditioning = given_of(padded, system.rows, method, device)
            report = replace(
                options, conditioning=conditioning, on_step=lambda progress: tell(progress.number / progress.total)
            )
            batch = system.sample(seeded_noise(seed, numbers), report)
        drawn.append(batch[: len(some)].to("cpu"))
    return from_flat(torch.cat([batch.flat() for batch in drawn]))


def given_of(
    walks: Sequence[Walk], form: RowForm, method: ConditioningMethod, device: torch.device | str = "cpu"
) -> Conditioning:
    """The parts as rows in their frames; where it matters what is added, also the kind of every other row.

    The kinds, and not the empty rows alone: beside rows of a part these tell the network nothing of the others.
    """
    parts = [walk.given for walk in walks]
    batch = rows_of(parts, form, device)
    rows = batch.kind.argmax(dim=-1) != layout.NONE
    told = rows | torch.tensor([walk.adding is not None for walk in walks], device=device)[:, None]
    for number, (walk, part) in enumerate(zip(walks, parts, strict=True)):
        if walk.adding is not None:
            first, beyond = len(part), len(part) + len(walk.adding)
            kinds = torch.tensor(walk.adding, device=device)
            batch.kind[number, first:beyond] = one_hot(kinds, layout.NUM_KINDS).to(batch.kind)
    return Conditioning(batch, rows, told, rows[..., None].expand_as(batch.params), method, *_REPEATS[method])


def finished(walks: Sequence[Walk], batch: SketchBatch, arc_scalar: layout.ArcScalar) -> Iterator[Finished]:
    """What each walk came to, in the coordinates and units of its part."""
    rows = torch.arange(batch.kind.shape[1])
    parts = [walk.given.primitives for walk in walks]
    theirs = rows < torch.tensor([len(part) for part in parts])[:, None]
    nothing = torch.eye(layout.NUM_KINDS, dtype=batch.kind.dtype)[layout.NONE]
    added = SketchBatch(batch.construction, torch.where(theirs[..., None], nothing, batch.kind), batch.params)
    for walk, given, decoded in zip(walks, parts, decode(added, arc_scalar), strict=True):
        yield _finish(walk, given, decoded)


def packed(batch: SketchBatch) -> dict[str, Tensor]:
    """Rows as small tensors, to be kept: the labels that decoding would read, and every parameter."""
    kind, construction = (part.argmax(dim=-1).to(torch.uint8) for part in (batch.kind, batch.construction))
    return {"kind": kind.cpu(), "construction": construction.cpu(), "params": batch.params.float().cpu()}


def unpacked(tensors: Mapping[str, Tensor]) -> SketchBatch:
    """The rows of `packed`."""
    return SketchBatch(
        one_hot(tensors["construction"].long(), layout.NUM_CONSTRUCTION).float(),
        one_hot(tensors["kind"].long(), layout.NUM_KINDS).float(),
        tensors["params"],
    )


def _finish(walk: Walk, given: Sequence[Primitive], decoded: Decoded) -> Finished:
    fresh = _without_repeats(given, decoded.sketch.primitives)
    restored = [_restored(walk.frame, item) for item in fresh]
    added = tuple(item for item in restored if item is not None)
    box = bounds([*given, *(item for item, there in zip(fresh, restored, strict=True) if there is not None)])
    misfit = max(abs(box.size / 2 - 1), abs(box.center[0]), abs(box.center[1]))
    return Finished(
        replace(walk.part, primitives=walk.part.primitives + added),
        len(added),
        misfit,
        len(decoded.sketch) - len(fresh),
        (*(issue.reason for issue in decoded.rejects), *[COLLAPSED] * restored.count(None)),
        tuple(issue.reason for issue in decoded.repairs),
    )


def _restored(frame: Placement, item: Primitive) -> Primitive | None:
    """What was drawn in a frame, in the coordinates of the part; None if it is no primitive there."""
    try:
        return frame.restore(Sketch((item,))).primitives[0]
    except GeometryError:
        return None


def _without_repeats(given: Sequence[Primitive], added: Sequence[Primitive]) -> tuple[Primitive, ...]:
    """What was added, less what lies wholly on another; of two that are the same, the later goes."""
    everything = [*given, *added]
    gone: set[int] = set()
    for pair in overlaps(everything, SAME):
        if pair.extent is Extent.DUPLICATE:
            gone.add(pair.second)
        elif pair.extent is Extent.CONTAINED:
            gone.add(min(pair.first, pair.second, key=lambda number: everything[number].length))
    return tuple(item for number, item in enumerate(everything) if number >= len(given) and number not in gone)
