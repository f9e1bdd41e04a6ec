"""Quality by name: the sampler and the number of steps, for people who do not choose them by hand."""

from __future__ import annotations

from typing import Literal, get_args

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.systems import System
from sketchdnn.systems.sketchdnn import SketchDNNSystem

# `best` takes the model's own sampler; `fast` its student, or the best sampler of few steps (docs/results/latency.md).
Quality = Literal["best", "fast"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)
STEPS = 50
STUDENT_STEPS = 4
# Of a model without a student.
FAST_SAMPLER, FAST_STEPS = "predictor_corrector", 16


def check_quality(quality: str, steps: int | None, sampler: str | None) -> None:
    """Refuse an unknown quality, and `fast` beside steps or a sampler."""
    if quality not in QUALITIES:
        raise SketchError(f"quality is {' or '.join(QUALITIES)}, not '{quality}'")
    if quality == "fast" and (steps is not None or sampler is not None):
        raise SketchError("quality fast chooses the sampler and its steps: leave it out, or steps and sampler")


def choose_sampling(
    system: System, quality: str = "best", steps: int | None = None, sampler: str | None = None
) -> SamplingOptions:
    """The sampler and its steps, resolved for a model. With `best`, steps and sampler have their own values if given.

    Raises:
        SketchError: If the model does not support them.
    """
    most = system.max_steps
    if quality == "fast" and most is not None:
        if isinstance(system, SketchDNNSystem) and system.student is not None:
            steps = STUDENT_STEPS
        else:
            sampler, steps = FAST_SAMPLER if FAST_SAMPLER in system.samplers else None, min(FAST_STEPS, most)
    return system.resolve(SamplingOptions(sampler, STEPS if steps is None else steps))


def number_of_steps(options: SamplingOptions) -> int:
    """The number of steps of options that `choose_sampling` returned."""
    assert isinstance(options.steps, int)  # noqa: S101
    return options.steps
