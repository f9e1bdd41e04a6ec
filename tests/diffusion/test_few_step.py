"""The sampler of students: exact with an oracle, one-hot, independent of the batch, conditioned."""

import pytest
import torch
from support.denoisers import run, same, sketches, wobbly
from support.toys import random_noise

from sketchdnn.diffusion import condition_on_rows, sample_few_step
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.representation.batch import Prediction, SketchBatch


def two_time(batch_t: SketchBatch, t: torch.Tensor, s: torch.Tensor) -> Prediction:
    """A denoiser that depends on the next step too."""
    assert bool((s < t).all())
    prediction = wobbly(batch_t, t)
    return Prediction(prediction.construction_logits, prediction.kind_logits, prediction.params + s[:, None, None] / 30)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_oracle_returns_its_sketch(eta: float) -> None:
    x0 = sketches(5)

    def denoise(batch_t: SketchBatch, t: torch.Tensor, s: torch.Tensor) -> Prediction:
        return Prediction(x0.construction.log(), x0.kind.log(), x0.params)

    for count in (1, 4):
        result = run(sample_few_step, denoise, our_process(100), random_noise(1, 5), steps=count, eta=eta)
        torch.testing.assert_close(result.flat(), x0.flat())


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_labels_are_one_hot_and_samples_are_independent_of_their_batch(eta: float) -> None:
    process, source = our_process(30), seeded_noise(7, torch.arange(4))
    together = run(sample_few_step, two_time, process, source, steps=4, eta=eta)
    assert set(together.kind.unique().tolist()) == set(together.construction.unique().tolist()) == {0.0, 1.0}
    for i in range(4):
        alone = run(sample_few_step, two_time, process, seeded_noise(7, torch.tensor([i])), steps=4, eta=eta)
        assert same(alone, together[i : i + 1])


@pytest.mark.parametrize("method", ["conditional", "repaint"])
def test_known_rows_stay_to_the_bit(method) -> None:
    x0, known = sketches(3), torch.zeros(3, 16, dtype=torch.bool)
    known[:, 3:7] = True
    conditioning = condition_on_rows(x0, known, method=method)
    result = run(sample_few_step, two_time, our_process(40), random_noise(0, 3), steps=4, conditioning=conditioning)
    assert torch.equal(result.flat()[known], x0.flat()[known])
