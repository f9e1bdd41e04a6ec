"""Samplers by name, for systems that denoise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from sketchdnn.diffusion import samplers
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, JointProcess
from sketchdnn.diffusion.walk import OnStep
from sketchdnn.geometry import SketchError
from sketchdnn.representation.batch import SketchBatch


class Sampler(Protocol):
    """What every function of `diffusion.samplers` is, its own extra options aside."""

    def __call__(
        self,
        denoise: Denoiser,
        process: JointProcess,
        noise: NoiseSource,
        *,
        steps: Sequence[int] | None = None,
        given: Given | None = None,
        on_step: OnStep | None = None,
    ) -> SketchBatch: ...


SAMPLERS: Mapping[str, Sampler] = {
    "ancestral": samplers.ancestral,
    "ddim": samplers.ddim,
    "dpm++": samplers.dpm_solver_pp,
    "authors": samplers.authors,
}


def draw_sketches(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    sampler: str,
    steps: int | Sequence[int] | None,
    given: Given | None,
    on_step: OnStep | None,
) -> SketchBatch:
    """Walk with the sampler of that name. A number of steps is spaced quadratically: more of them near 0.

    Where the process means the expected logit of a label, `ancestral` draws the label instead: few steps then do.
    """
    check_sampler(sampler)
    if isinstance(steps, int):
        check_step_count(steps, process.num_steps)
        steps = samplers.step_sequence(process.num_steps, steps, "quadratic")
    chosen = SAMPLERS[sampler]
    if sampler == "ancestral" and process.reverse_logits == "expected":
        chosen = partial(samplers.ancestral, labels="drawn")
    return chosen(denoise, process, noise, steps=steps, given=given, on_step=on_step)


def check_sampler(sampler: str) -> None:
    """Refuses a name that is none."""
    if sampler not in SAMPLERS:
        raise SketchError(f"'{sampler}' is no sampler; use one of {', '.join(SAMPLERS)}")


def check_step_count(steps: int, num_steps: int) -> None:
    """Refuses more steps than the process has, or none."""
    if not 1 <= steps <= num_steps:
        raise SketchError(f"this model draws in 1 to {num_steps} steps, not {steps}")
