"""Noise that belongs to a sample, not to a batch: number j of draw d of sample i of seed s is always the same bits.

A counter-based generator (Philox4x32-10, Salmon et al. 2011) hashes (seed, sample, draw, position) to random bits, so
any sample can be drawn alone, in any batch, on any device. Gaussians come from a table of normal quantiles: gathers,
one sum and one product, which every device rounds alike, where log and cos differ in the last bit between vector and
scalar code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import from_flat

from .process import Noise

# Noise of draw number d for every sample of a batch. Draw 0 starts a trajectory; each step takes the next.
NoiseSource = Callable[[int], Noise]
# One seed for all samples of a batch, or one for each.
Seeds = int | Sequence[int]

_WORD = 0xFFFFFFFF
_QUANTILE_BITS = 16


def seeded_noise(
    seed: Seeds,
    samples: Int[Tensor, " batch"],
    num_rows: int = layout.MAX_PRIMITIVES,
    dtype: torch.dtype = torch.float32,
) -> NoiseSource:
    """Noise for these sample numbers of a seed, or of a seed each, on the device that `samples` is on."""
    seeds = [seed] if isinstance(seed, int) else seed
    for each in seeds:
        if not 0 <= each < 2**64:
            raise ValueError(f"seed must fit in 64 bits without a sign, not {each}")
    if not isinstance(seed, int) and len(seed) != len(samples):
        raise ValueError(f"there must be one seed, or one for each of {len(samples)} samples, not {len(seed)}")
    if samples.ndim != 1 or samples.is_floating_point():
        raise ValueError(f"samples must be a vector of whole numbers, not {samples.dtype} of shape {samples.shape}")

    def draw(number: int) -> Noise:
        return from_flat(normal(seed, samples, number, (num_rows, layout.ROW_WIDTH)).to(dtype))

    return draw


def normal(
    seed: Seeds, samples: Int[Tensor, " batch"], draw: int, shape: tuple[int, ...]
) -> Float[Tensor, "batch ..."]:
    """Standard normal numbers of the given shape for each sample, float32.

    Each is (Q[u] + Q[v])/√2 with Q the 2^16 quantiles of the normal distribution and u, v independent 16-bit numbers:
    the sum smooths the steps of the table and reaches 6 standard deviations.
    """
    bits = _bits(seed, samples, draw, torch.Size(shape).numel())
    table = _quantiles(samples.device)
    pair = table[bits >> _QUANTILE_BITS] + table[bits & (2**_QUANTILE_BITS - 1)]
    return torch.mul(pair, 0.5**0.5).reshape(-1, *shape)


def uniform(
    seed: Seeds, samples: Int[Tensor, " batch"], draw: int, shape: tuple[int, ...]
) -> Float[Tensor, "batch ..."]:
    """Numbers from [0, 1), multiples of 2^-24, of the given shape for each sample, float32."""
    bits = _bits(seed, samples, draw, torch.Size(shape).numel())
    return torch.mul((bits >> 8).float(), 2.0**-24).reshape(-1, *shape)


def _bits(seed: Seeds, samples: Int[Tensor, " batch"], draw: int, count: int) -> Int[Tensor, "batch count"]:
    """32 random bits, `count` times for each sample."""
    samples = samples.to(torch.int64)
    blocks = torch.arange((count + 3) // 4, device=samples.device)[None, :]
    counter = (blocks, samples[:, None] & _WORD, samples[:, None] >> 32 & _WORD, torch.full_like(blocks, draw))
    return torch.stack(philox(counter, _key(seed, samples.device)), dim=-1).flatten(1)[:, :count]


Words = tuple[Tensor, Tensor, Tensor, Tensor]
Key = tuple[int, int] | tuple[Tensor, Tensor]


def _key(seed: Seeds, device: torch.device) -> Key:
    """The two words of a seed, or a column of each word."""
    if isinstance(seed, int):
        return seed & _WORD, seed >> 32 & _WORD
    words = torch.tensor([(each & _WORD, each >> 32 & _WORD) for each in seed], device=device)
    return words[:, :1], words[:, 1:]


def philox(counter: Words, key: Key) -> Words:
    """Philox4x32-10: four 32-bit words (held in int64) from a four-word counter and a two-word key."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        # Signed 64-bit products wrap modulo 2^64, so both halves of the unsigned product are right after masking.
        low0, low1 = a * 0xD2511F53, c * 0xCD9E8D57
        a, b = (low1 >> 32 & _WORD) ^ b ^ k0, low1 & _WORD
        c, d = (low0 >> 32 & _WORD) ^ d ^ k1, low0 & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return a, b, c, d


@cache
def _quantiles(device: torch.device) -> Float[Tensor, " levels"]:
    """The middle quantiles of 2^16 equal slices of the standard normal, scaled to unit variance; made on the CPU."""
    levels = (torch.arange(2**_QUANTILE_BITS, dtype=torch.float64, device="cpu") + 0.5) / 2**_QUANTILE_BITS
    quantiles: Tensor = torch.special.ndtri(levels)
    return (quantiles / quantiles.square().mean().sqrt()).float().to(device)
