"""Sampling options, the registry of samplers, and starts other than pure noise."""

from importlib.metadata import EntryPoint
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.denoisers import SAMPLERS, identity, run, same, sketches
from support.random_batches import clean_batch
from support.toys import random_noise

from sketchdnn.diffusion import Progress, SamplingOptions, Start, sampling
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import sample_ancestral, sample_ddim, sample_restart, single_pass
from sketchdnn.diffusion.sampling import condition_on_rows, find_sampler, register_sampler, step_sequence
from sketchdnn.errors import SketchError

PROCESS = our_process(100)


@given(st.integers(1, 3000), st.data(), st.sampled_from([1, 2]))
def test_step_sequences_fall_from_the_top_to_zero(num_steps: int, data: st.DataObject, power: int) -> None:
    count = data.draw(st.integers(1, num_steps))
    steps = step_sequence(num_steps, count, power)
    assert (len(steps), steps[0], steps[-1]) == (count + 1, num_steps, 0)
    assert all(a > b for a, b in pairwise(steps))


def test_timesteps_are_a_number_a_sequence_or_all() -> None:
    assert SamplingOptions(steps=4).timesteps(2000) == (2000, 1125, 500, 125, 0)
    assert SamplingOptions(steps=(10, 3, 0)).timesteps(10) == (10, 3, 0)
    assert list(SamplingOptions().timesteps(3)) == [3, 2, 1, 0]
    assert SamplingOptions(steps=2, start=Start(40, clean_batch(1))).timesteps(100)[0] == 40
    for steps in ((10,), (11, 5, 0), (10, 5, 5, 0), (10, 5, 7, 0), (10, 5, -1), (9, 0), (10, 1), ()):
        with pytest.raises(ValueError, match="steps"):
            SamplingOptions(steps=steps).timesteps(10)
    for count in (0, 11):
        with pytest.raises(ValueError, match="count"):
            SamplingOptions(steps=count).timesteps(10)


@pytest.mark.parametrize(("resamples", "jump"), [(1, 1), (2, 1), (3, 2), (2, 7), (4, 100)])
def test_transitions_with_jumps_are_connected(resamples: int, jump: int) -> None:
    known = condition_on_rows(sketches(1), torch.ones(1, 16, dtype=torch.bool), resamples=resamples, jump=jump)
    steps = step_sequence(100, 20)
    pairs = SamplingOptions(steps=steps, conditioning=known).transitions(100)
    assert (pairs[0][0], pairs[-1]) == (100, (steps[-2], 0))
    assert all(a[1] == b[0] for a, b in pairwise(pairs))
    assert all(pairs.count(pair) == resamples for pair in list(pairwise(steps))[:-1])
    assert sum(s > t for t, s in pairs) == (resamples - 1) * -(-19 // jump)


def test_samplers_are_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SAMPLERS", dict(sampling.SAMPLERS))
    assert find_sampler("ddim") is SamplingOptions("ddim").sampler_function() is sample_ddim
    assert SamplingOptions(sample_ddim).sampler_function() is sample_ddim
    assert SamplingOptions(sample_ddim).sampler_name == "sample_ddim"
    with pytest.raises(ValueError, match="sampler"):
        SamplingOptions().sampler_function()
    assert (single_pass("restart"), single_pass("ddim")) == ("predictor_corrector", "ddim")
    for _ in range(2):
        register_sampler("mine")(sample_ddim)
    assert find_sampler("mine") is sample_ddim
    with pytest.raises(ValueError, match="'mine' already"):
        register_sampler("mine")(sample_ancestral)
    with pytest.raises(SketchError, match="'magic' is no sampler; use one of ancestral, ddim"):
        find_sampler("magic")
    point = EntryPoint("theirs", "sketchdnn.diffusion.samplers:sample_ancestral", sampling.SAMPLER_ENTRY_POINTS)
    monkeypatch.setattr(sampling, "entry_points", lambda group: [point] if group == point.group else [])
    assert find_sampler("theirs") is sample_ancestral


@pytest.mark.parametrize("sampler", [*SAMPLERS, sample_restart])
def test_start_at_the_last_step_is_pure_noise(sampler) -> None:
    noise, starts = seeded_noise(3, torch.arange(4)), (None, Start(100, clean_batch(4, seed=5)))
    assert same(*(run(sampler, identity, PROCESS, noise, start=start) for start in starts))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_start_with_little_noise_returns_the_sketch(sampler) -> None:
    x0 = clean_batch(4, seed=5)
    near, far = (run(sampler, identity, PROCESS, random_noise(0, 4), start=Start(t, x0)) for t in (1, 60))
    assert torch.equal(near.kind.argmax(-1), x0.kind.argmax(-1))
    assert torch.equal(near.construction.argmax(-1), x0.construction.argmax(-1))
    assert (near.params - x0.params).abs().mean() < 0.05
    assert (far.params - x0.params).abs().mean() > 0.1


def test_starts_visit_the_steps_below_them_or_are_refused() -> None:
    seen, x0 = list[Progress](), clean_batch(5, seed=2)
    noise = seeded_noise(7, torch.arange(5))
    together = run(sample_ancestral, identity, PROCESS, noise, start=Start(40, x0), on_step=seen.append)
    assert [progress.t for progress in seen] == list(range(40, 0, -1))
    for i in range(5):
        noise, start = seeded_noise(7, torch.tensor([i])), Start(40, x0[i : i + 1])
        alone = run(sample_ancestral, identity, PROCESS, noise, start=start)
        assert same(alone, together[i : i + 1])
    # Known parts override the start.
    rows, known = torch.arange(16).expand(5, 16) < 4, clean_batch(5, seed=1)
    options = {"conditioning": condition_on_rows(known, rows), "start": Start(50, x0)}
    batch = run(sample_ancestral, identity, PROCESS, random_noise(0, 5), **options)
    assert torch.equal(batch.flat()[:, :4], known.flat()[:, :4])
    for start, steps, match in (
        (Start(0, clean_batch(2)), None, r"start\.t"),
        (Start(101, clean_batch(2)), None, r"start\.t"),
        (Start(5, clean_batch(3)), None, r"start\.batch"),
        (Start(50, clean_batch(2)), step_sequence(100, 5), "from 50 to 0"),
    ):
        with pytest.raises(ValueError, match=match):
            run(sample_ancestral, identity, PROCESS, random_noise(0, 2), start=start, steps=steps)
