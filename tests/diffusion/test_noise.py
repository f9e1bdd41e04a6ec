"""Noise of a sample: the same bits in any batch, and normal as far as tests can tell."""

import pytest
import torch
from scipy import stats

from sketchdnn.diffusion.noise import Seeds, normal, philox, seeded_noise, uniform


def words(counter: int, key: int) -> list[str]:
    four = tuple(torch.tensor(counter) for _ in range(4))
    return [f"{int(word):08x}" for word in philox(four, (key, key))]


def test_philox_known_answers() -> None:
    """The vectors that the authors of Philox publish for 4x32-10: all zeros, all ones."""
    assert words(0, 0) == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert words(0xFFFFFFFF, 0xFFFFFFFF) == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    digits_of_pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    answer = philox(tuple(map(torch.tensor, digits_of_pi)), (0xA4093822, 0x299F31D0))
    assert [f"{int(word):08x}" for word in answer] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


def test_sample_has_the_same_bits_in_any_batch_and_others_in_other_draws() -> None:
    whole = seeded_noise(7, torch.arange(100))(3).flat()
    for samples in ([41], [0, 41], [99, 41, 5], list(range(30, 50))):
        part = seeded_noise(7, torch.tensor(samples))(3).flat()
        assert torch.equal(part, whole[samples])
    narrow = seeded_noise(7, torch.tensor([41], dtype=torch.int32))(3).flat()
    assert torch.equal(narrow, whole[41:42])
    draws = {
        normal(seed, torch.tensor([sample]), draw, (4,)).numpy().tobytes()
        for seed in (0, 1, 2**32, 2**63)
        for sample in (0, 1, 2**32, 2**40)
        for draw in (0, 1, 2000)
    }
    assert len(draws) == 4 * 4 * 3


def test_each_sample_can_have_a_seed_of_its_own() -> None:
    seeds, samples = [0, 7, 2**64 - 1, 7], torch.tensor([5, 5, 2**40, 6])
    mixed = seeded_noise(seeds, samples)(3).flat()
    for row, (seed, sample) in enumerate(zip(seeds, samples, strict=True)):
        assert torch.equal(mixed[row : row + 1], seeded_noise(seed, sample[None])(3).flat())
    assert torch.equal(normal([9, 9], samples[:2], 1, (3,)), normal(9, samples[:2], 1, (3,)))


@pytest.mark.parametrize("samples", [1, 5000])
def test_noise_is_standard_normal(samples: int) -> None:
    size = 200_000 // samples
    numbers = normal(11, torch.arange(samples), 2, (size,)).flatten().double()
    assert stats.kstest(numbers.numpy(), "norm").pvalue > 1e-3
    assert numbers.mean().item() == pytest.approx(0, abs=4 / len(numbers) ** 0.5)
    assert numbers.var().item() == pytest.approx(1, abs=4 * (2 / len(numbers)) ** 0.5)
    assert (numbers**4).mean().item() == pytest.approx(3, abs=4 * (96 / len(numbers)) ** 0.5)
    assert numbers.abs().max() > 4
    assert len(numbers.unique()) > 0.9 * len(numbers)


def test_uniform_numbers_are_uniform_and_bad_input_is_refused_by_name() -> None:
    numbers = uniform(3, torch.arange(100), 0, (1000,))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers.flatten().double().numpy(), "uniform").pvalue > 1e-3
    bad: tuple[tuple[str, Seeds, torch.Tensor], ...] = (
        ("seed", -1, torch.arange(2)),
        ("seed", 2**64, torch.arange(2)),
        ("seed", [0, -1], torch.arange(2)),
        ("one for each of 2 samples, not 3", [0, 1, 2], torch.arange(2)),
        ("samples", 0, torch.zeros(2)),
        ("samples", 0, torch.tensor(3)),
    )
    for name, seed, samples in bad:
        with pytest.raises(ValueError, match=name):
            seeded_noise(seed, samples)
