"""Samplers by name, for systems that denoise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from sketchdnn.diffusion import corrected, samplers
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, JointProcess
from sketchdnn.diffusion.walk import OnStep, Start
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import SketchBatch

from .system import System


class Sampler(Protocol):
    """What every function is that draws in one walk, its own extra options aside."""

    def __call__(
        self,
        denoise: Denoiser,
        process: JointProcess,
        noise: NoiseSource,
        *,
        steps: Sequence[int] | None = None,
        given: Given | None = None,
        on_step: OnStep | None = None,
        start: Start | None = None,
    ) -> SketchBatch: ...


SAMPLERS: Mapping[str, Sampler] = {
    "ancestral": samplers.ancestral,
    "ddim": samplers.ddim,
    "dpm++": samplers.dpm_solver_pp,
    "authors": samplers.authors,
    "corrected": corrected.corrected,
}
# Not one walk but two: see `systems.closing`.
CLOSING = "closing"
SAMPLER_NAMES = (*SAMPLERS, CLOSING)


def draw_sketches(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    sampler: str,
    steps: int | Sequence[int] | None,
    given: Given | None,
    on_step: OnStep | None,
    start: Start | None = None,
) -> SketchBatch:
    """Walk with the sampler of that name, through the steps of `steps_of`.

    Where the process means the expected logit of a label, `ancestral` draws the label instead: few steps then do.
    """
    steps = steps_of(steps, process.num_steps if start is None else start.t)
    chosen = SAMPLERS[sampler]
    if sampler == "ancestral" and process.reverse_logits == "expected":
        chosen = partial(samplers.ancestral, labels="drawn")
    return chosen(denoise, process, noise, steps=steps, given=given, on_step=on_step, start=start)


def steps_of(steps: int | Sequence[int] | None, first: int) -> Sequence[int] | None:
    """Which steps to go through from `first` to 0: a number of them is spaced quadratically, more near 0."""
    if not isinstance(steps, int):
        return steps
    check_step_count(steps, first)
    return samplers.step_sequence(first, steps, "quadratic")


def sampler_of(system: System, asked: str | None) -> str:
    """The sampler asked for, or else the system's own; refuses a way in which it cannot draw."""
    if asked is None:
        return system.default_sampler
    check_sampler(asked, system)
    return asked


def walk_of(sampler: str) -> str:
    """What a single walk of a sampler is drawn with, for who looks on at one: those of `closing` are `corrected`."""
    return "corrected" if sampler == CLOSING else sampler


def check_sampler(asked: str | None, system: System | type[System] | None = None) -> None:
    """Refuses a name that is none, or with which a system cannot draw. Without a name it is the system's own way."""
    if asked is None:
        return
    if asked not in SAMPLER_NAMES:
        raise SketchError(f"'{asked}' is no sampler; use one of {', '.join(SAMPLER_NAMES)}")
    if system is not None and asked not in system.samplers:
        raise SketchError(f"a '{system.name}' cannot draw with {asked}; use {' or '.join(system.samplers)}")


def check_step_count(steps: int, most: int | None) -> None:
    """Refuses no steps, or more than the process has. `most` is a system's `max_steps`: without one any number goes."""
    if most is not None and not 1 <= steps <= most:
        raise SketchError(f"this model draws in 1 to {most} steps, not {steps}")
