"""A label drawn from the prediction keeps its law in few steps; its mean favors the common kinds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.toys import process_of, random_noise

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion.gaussian_softmax import draw_label
from sketchdnn.diffusion.samplers import sample_ancestral
from sketchdnn.diffusion.sampling import SamplingOptions, step_sequence
from sketchdnn.diffusion.schedule import cosine

TARGET = RowTarget((0.55, 0.25, 0.12, 0.06, 0.02), construction=0.1, std=0.4)


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.integers(0, 10))
def test_drawn_labels_have_the_chances_of_the_prediction(weights: list[float], seed: int) -> None:
    chances = torch.tensor(weights, dtype=torch.float64)
    chances = chances / chances.sum()
    noise = torch.randn(20_000, len(weights), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    drawn = draw_label(chances.expand_as(noise), noise)
    assert torch.equal(drawn.sum(-1), torch.ones(20_000, dtype=torch.float64))
    deviation = (drawn.mean(0) - chances) / (chances * (1 - chances) / 20_000).sqrt()
    assert deviation.abs().max() < 5


def test_a_label_of_no_chance_is_never_drawn() -> None:
    noise = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    assert (draw_label(torch.tensor([0.0, 1.0, 0.0]).expand_as(noise), noise)[:, 1] == 1).all()


def test_noise_beyond_all_quantiles_leaves_the_likelier_label() -> None:
    for noise in (-40.0, 40.0):
        drawn = draw_label(torch.tensor([0.2, 0.5, 0.3]), torch.full((3,), noise))
        assert drawn.tolist() == [0, 1, 0]


def shares(how: str, steps: int) -> torch.Tensor:
    process = process_of(cosine(500), superposition="expected")
    noise = random_noise(0, 1500, dtype=torch.float64)
    drawn = sample_ancestral(
        TARGET.denoiser(process), process, noise, SamplingOptions(steps=step_sequence(500, steps)), labels=how
    )  # type: ignore[arg-type]
    kind = drawn.kind.argmax(-1).flatten()
    return torch.bincount(kind, minlength=5) / kind.numel()


@pytest.mark.parametrize("steps", [5, 12])
def test_in_few_steps_drawn_labels_keep_their_shares_and_mean_ones_do_not(steps: int) -> None:
    wanted = torch.tensor(TARGET.kind)
    drawn = (shares("drawn", steps) - wanted).abs().sum() / 2
    mean = (shares("mean", steps) - wanted).abs().sum() / 2
    assert drawn < 0.012
    assert mean > 2 * drawn


def test_what_the_network_is_sure_of_is_what_comes_out() -> None:
    x0 = TARGET.sample(3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    process = process_of(cosine(100))
    noise = random_noise(0, 3, dtype=torch.float64)
    drawn = sample_ancestral(oracle(x0), process, noise, SamplingOptions(steps=step_sequence(100, 10)), labels="drawn")
    assert torch.equal(drawn.kind.argmax(-1), x0.kind.argmax(-1))
    assert torch.equal(drawn.construction.argmax(-1), x0.construction.argmax(-1))
