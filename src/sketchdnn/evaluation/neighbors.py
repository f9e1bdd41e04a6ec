"""How close is the nearest training sketch? The distance is between blurred pictures.

A sketch is drawn on 32 × 32 cells over [−1.1, 1.1]: each curve leaves ink in proportion to its length, construction
too, and a point as much as a curve of one cell. The picture is blurred by a Gaussian of one cell and scaled to length
one. The distance of two sketches is the Euclidean distance of their pictures, the smallest over the eight symmetries of
the square: 0 for the same drawing, √2 for drawings that share no place. It sees neither kinds nor flags, and shifts of
much less than a cell (0.07) hardly count: what it finds near, a person would call alike. Below `RESOLUTION` single
precision tells nothing, and the distance is called 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import Compact
from sketchdnn.representation.symmetric import NUM_SYMMETRIES

from .clusters import clustered_median
from .curves import lengths, places
from .estimate import Estimate, share_estimate

CELLS, HALF_EXTENT, BLUR = 32, 1.1, 1.0
PLACES = 64  # along each curve; the longest one has two to a cell
RESOLUTION = 1e-3
SKETCHES_AT_ONCE, QUERIES_AT_ONCE, KNOWN_AT_ONCE = 1024, 256, 1 << 15


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The distance to the nearest training sketch, from each sample and from each real test sketch, in their order.

    `closer_than_1`, `_5` and `_25` are the shares of samples no further away than the closest 1 %, 5 % and 25 % of the
    test split; `real_…` are the test split's own, more than that where many of its distances are equal (about 5 % of
    real sketches are drawn like a training sketch, so 1 % and 5 % ask for exact copies and 25 % for rough ones).
    Samples far above it would be copies. `kolmogorov_smirnov` is the largest difference of the two cumulative
    distributions, either way, and `nearer` the largest by which samples are nearer than the test split.
    """

    samples: tuple[float, ...]
    test: tuple[float, ...]
    median: Estimate
    real_median: Estimate
    closer_than_1: Estimate
    closer_than_5: Estimate
    closer_than_25: Estimate
    real_closer_than_1: Estimate
    real_closer_than_5: Estimate
    real_closer_than_25: Estimate
    kolmogorov_smirnov: float
    nearer: float


def neighbors(
    samples: Compact,
    train: Compact,
    test: Compact,
    *,
    device: str = "cpu",
    on_progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Compare the way from samples to the training split with the way from the test split to it."""
    from scipy.stats import ks_2samp

    known = pictures(train)
    share = len(samples) / (len(samples) + len(test))

    def report(begin: float, size: float) -> Callable[[float], None] | None:
        return None if on_progress is None else lambda done: on_progress(begin + size * done)

    ours = nearest(pictures(samples), known, device=device, on_progress=report(0.0, share))
    real = nearest(pictures(test), known, device=device, on_progress=report(share, 1 - share))
    one, five, quarter = (float(np.percentile(real, percent)) for percent in (1, 5, 25))
    return Neighbors(
        samples=tuple(ours.tolist()),
        test=tuple(real.tolist()),
        median=clustered_median(ours, np.arange(len(ours))),
        real_median=clustered_median(real, np.arange(len(real))),
        closer_than_1=_share_up_to(ours, one),
        closer_than_5=_share_up_to(ours, five),
        closer_than_25=_share_up_to(ours, quarter),
        real_closer_than_1=_share_up_to(real, one),
        real_closer_than_5=_share_up_to(real, five),
        real_closer_than_25=_share_up_to(real, quarter),
        kolmogorov_smirnov=float(ks_2samp(ours, real, method="asymp").statistic),
        nearer=float(ks_2samp(ours, real, alternative="greater", method="asymp").statistic),
    )


def pictures(compact: Compact) -> NDArray[np.float32]:
    """`sketch, cell, cell`: the blurred picture of each sketch, of length one; rows run along x."""
    blocks = [
        _pictures(compact[begin : begin + SKETCHES_AT_ONCE]) for begin in range(0, len(compact), SKETCHES_AT_ONCE)
    ]
    return np.concatenate([np.empty((0, CELLS, CELLS), np.float32), *blocks])


def nearest(
    queries: NDArray[np.float32],
    known: NDArray[np.float32],
    *,
    device: str = "cpu",
    on_progress: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """The distance from each picture to the nearest known one, in any of its eight symmetric copies."""
    stored = torch.split(torch.from_numpy(known).to(device).flatten(1), KNOWN_AT_ONCE)
    found = []
    for begin in range(0, len(queries), QUERIES_AT_ONCE):
        block = torch.from_numpy(queries[begin : begin + QUERIES_AT_ONCE]).to(device)
        images = _images(block).flatten(2)
        best = torch.stack([(images @ part.T).amax(dim=(0, 2)) for part in stored]).amax(dim=0)
        distance = (2 - 2 * best.double()).clamp(min=0).sqrt()
        found.append(torch.where(distance < RESOLUTION, 0.0, distance).cpu().numpy())
        if on_progress is not None:
            on_progress(min(1.0, (begin + QUERIES_AT_ONCE) / len(queries)))
    return np.concatenate([np.empty(0), *found])


def _share_up_to(distances: NDArray[np.float64], most: float) -> Estimate:
    return share_estimate(int((distances <= most).sum()), len(distances))


def _images(block: Float[Tensor, "query cell cell"]) -> Float[Tensor, "8 query cell cell"]:
    both = (block, block.flip(1))
    return torch.stack([torch.rot90(image, k, (1, 2)) for image in both for k in range(NUM_SYMMETRIES // 2)])


def _pictures(compact: Compact) -> NDArray[np.float32]:
    cell = 2 * HALF_EXTENT / CELLS
    ink = np.where(compact.kind == Kind.POINT, cell, lengths(compact)) / PLACES
    middles = (np.arange(PLACES) + 0.5) / PLACES
    sketch, prim = np.nonzero(ink)
    # In cells, counted from the middle of the first one.
    at = places(compact, middles)[sketch, prim] / cell + (CELLS - 1) / 2
    at = np.clip(at, 0, CELLS - 1 - 1e-9)
    low = np.floor(at).astype(np.int64)
    part = at - low
    canvas = np.zeros(len(compact) * CELLS * CELLS)
    for right in (0, 1):
        for up in (0, 1):
            share = np.abs(1 - right - part[..., 0]) * np.abs(1 - up - part[..., 1])
            index = (sketch[:, None] * CELLS + low[..., 0] + right) * CELLS + low[..., 1] + up
            canvas += np.bincount(index.ravel(), (share * ink[sketch, prim][:, None]).ravel(), len(canvas))
    away = np.subtract.outer(np.arange(CELLS), np.arange(CELLS))
    blur = np.exp(-0.5 * (away / BLUR) ** 2)
    picture = blur @ canvas.reshape(-1, CELLS, CELLS) @ blur
    length = np.linalg.norm(picture, axis=(1, 2), keepdims=True)
    scaled = np.divide(picture, length, out=np.zeros_like(picture), where=length > 0)
    return np.asarray(scaled, np.float32)
