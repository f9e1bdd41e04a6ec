"""A sampler that looks at what it drew: where an end is left loose, it goes back half-way and draws from there again.

What fails to close is settled at little noise, where it is decided which ends belong together, and whether it goes
well is a matter of chance: drawn again from more noise, it may close (docs/results/quality.md). The second walk takes
its steps from the first, so that both together are no longer than one; what came out well at first stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Bool
from torch import Tensor

from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Process
from sketchdnn.diffusion.step_draws import step_as_noisy_as
from sketchdnn.diffusion.walk import OnStep, Progress, Start
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.loose import has_loose_end

from .sampling import check_step_count

# Of all steps, those of the first walk.
_FIRST = 0.72
# The deviation of the noise from which the second begins: 0.6 beside 0.8 of a sketch, σ = 0.75 where its larger side is
# 2. Much of what it is of is known, which ends meet is not.
_NOISE = 0.6
# Fewer steps than this are too long to mend anything.
_FEWEST = 4
# Draws of noise that no first walk reaches.
_LATER = 1 << 20


class Walk(Protocol):
    """Draws a batch by a denoiser that remembers nothing of any walk before."""

    def __call__(
        self, noise: NoiseSource, *, steps: int, start: Start | None, on_step: OnStep | None
    ) -> SketchBatch: ...


def closing(
    walk: Walk,
    process: Process,
    noise: NoiseSource,
    *,
    steps: int | Sequence[int] | None,
    start: Start | None,
    on_step: OnStep | None,
) -> SketchBatch:
    """Sketches in so many steps, of which the last are for those in which an end was left loose."""
    if not (steps is None or isinstance(steps, int)):
        raise SketchError("'closing' shares steps out between two walks: say how many, not which, or use 'corrected'")
    most = process.num_steps if start is None else start.t
    steps = most if steps is None else steps
    check_step_count(steps, most)
    halfway = min(most, step_as_noisy_as(process, _NOISE))
    first = round(_FIRST * steps)
    second = min(steps - first, halfway)
    if second < _FEWEST:
        return walk(noise, steps=steps, start=start, on_step=on_step)
    report = _Report(second / first, on_step)
    drawn = walk(noise, steps=first, start=start, on_step=report.of_first)
    # All go back, so that what becomes of a sketch does not depend on which others share its batch.
    report.redrawn = has_loose_end(drawn)
    # A variation that began at less noise begins there anew, lest it stray from what it is one of.
    begin = start if start is not None and start.t <= halfway else Start(halfway, drawn.settled())
    again = walk(lambda draw: noise(_LATER + draw), steps=second, start=begin, on_step=report.of_second)
    return _where(report.redrawn, again, drawn)


class _Report:
    """Tells of both walks as of one; in the second, what is not drawn again stands still."""

    def __init__(self, more: float, on_step: OnStep | None) -> None:
        self.more, self.on_step = more, on_step  # how long the second is, about, beside the first
        self.redrawn: Bool[Tensor, " batch"]
        self.last: Progress

    def of_first(self, progress: Progress) -> None:
        self.last = replace(progress, total=progress.total + round(self.more * progress.total))
        self._tell(self.last)

    def of_second(self, progress: Progress) -> None:
        batch = _where(self.redrawn, progress.batch, self.last.batch)
        number, total = (self.last.number + of_second for of_second in (progress.number, progress.total))
        self._tell(replace(progress, number=number, total=total, batch=batch, walking=self.redrawn))

    def _tell(self, progress: Progress) -> None:
        if self.on_step is not None:
            self.on_step(progress)


def _where(chosen: Bool[Tensor, " batch"], one: SketchBatch, other: SketchBatch) -> SketchBatch:
    at = chosen[:, None, None]
    return SketchBatch(
        torch.where(at, one.construction, other.construction),
        torch.where(at, one.kind, other.kind),
        torch.where(at, one.params, other.params),
    )
