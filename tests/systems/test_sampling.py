"""Which sampler a name means."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.random_batches import random_prediction
from torch import Tensor

from sketchdnn.diffusion import samplers
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems.sampling import SAMPLERS, check_step_count, draw_sketches

EXPECTED = our_process(50, 0.99)
SAID = random_prediction(4)


def denoise(noisy: SketchBatch, t: Tensor) -> Prediction:
    """Always equally uncertain."""
    return SAID


@pytest.mark.parametrize("sampler", ["ancestral", "ddim"])
@pytest.mark.parametrize("form", ["expected", "log"])
def test_only_ancestral_steps_of_expected_logits_draw_labels(sampler: str, form: str) -> None:
    process, noise = replace(EXPECTED, reverse_logits=form), seeded_noise(0, torch.arange(4))
    steps = samplers.step_sequence(50, 4, "quadratic")
    found = draw_sketches(denoise, process, noise, sampler=sampler, steps=4, given=None, on_step=None).flat()
    plain = SAMPLERS[sampler](denoise, process, noise, steps=steps, given=None, on_step=None, start=None).flat()
    with_labels = samplers.ancestral(denoise, process, noise, labels="drawn", steps=steps).flat()
    assert not torch.equal(plain, with_labels)
    assert torch.equal(found, with_labels if (sampler, form) == ("ancestral", "expected") else plain)


def test_one_step_to_all_steps_may_be_asked_for() -> None:
    for steps, most in ((1, 50), (50, 50), (1, 1), (500, None), (0, None)):
        check_step_count(steps, most)
    for steps in (0, -1, 51):
        with pytest.raises(SketchError, match=f"1 to 50 steps, not {steps}"):
            check_step_count(steps, 50)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_draw_of_noise_is_used_twice(sampler: str) -> None:
    """The state at the first step is draw 0; later draws go to the steps."""
    asked: list[int] = []
    source = seeded_noise(0, torch.arange(4))

    def noise(number: int) -> SketchBatch:
        asked.append(number)
        return source(number)

    draw_sketches(denoise, EXPECTED, noise, sampler=sampler, steps=4, given=None, on_step=None)
    assert asked[0] == 0
    assert len(asked) == len(set(asked))
