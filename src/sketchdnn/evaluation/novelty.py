"""Novelty of samples: copies of training sketches, duplicates, and the distance to the nearest training sketch.

Held-out real sketches are always measured beside the samples. Sketches are equal if they are on a grid, up to the
symmetries of the square (`representation.hashing`).

The nearest-neighbor distance compares blurred images. A sketch is drawn on 32 × 32 cells over [−1.1, 1.1]: a curve
leaves ink in proportion to its length, construction included, and a point as much as a curve of one cell. The image is
blurred by a Gaussian of one cell and scaled to norm 1. The distance is Euclidean, the smallest over the eight
symmetries of the square: 0 for the same drawing, √2 for drawings without a common place. It ignores kinds and flags,
and shifts of much less than a cell (0.07) hardly count. Below `RESOLUTION`, the limit of single precision, it is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import Compact
from sketchdnn.representation.hashing import NUM_SYMMETRIES, Keys, symmetric_keys

from .curves import check_sketches, lengths, points_along
from .estimates import Estimate, OnProgress, clustered_median, ignore, share_estimate, share_of

GRIDS = (24, 64, 256)
CELLS, HALF_EXTENT, BLUR = 32, 1.1, 1.0
POINTS = 64  # along each curve; the longest one has two per cell
RESOLUTION = 1e-3
_IMAGE_BATCH, _QUERY_BATCH, _REFERENCE_BATCH = 1024, 256, 1 << 15


def measure_novelty(
    samples: Compact, train: Compact, test: Compact, *, device: str = "cpu", on_progress: OnProgress = ignore
) -> dict[str, Any]:
    """Search the training split for every sample and for every test sketch.

    Returns:
        The sizes of the sets, the `repeats` on each of `GRIDS`, and the `neighbors`.
    """
    for compact in (samples, train, test):
        check_sketches(compact)
    same_size = min(len(samples), len(test))
    sizes = {"samples": len(samples), "train": len(train), "test": len(test), "same_size": same_size}
    repeats = [measure_repeats(samples, train, test, levels) for levels in GRIDS]
    neighbors = measure_neighbors(samples, train, test, device=device, on_progress=on_progress)
    return {**sizes, "repeats": repeats, "neighbors": neighbors}


def measure_repeats(samples: Compact, train: Compact, test: Compact, levels: int) -> dict[str, Any]:
    """Repeated sketches on a grid of `levels` levels: the shares of samples and of test sketches in the training split.

    `unique` is the share of distinct sketches among the samples. It falls with their number, so `unique_same_size` and
    `real_unique` compare samples and test split at the size of the smaller set.
    """
    ours, training, real = (symmetric_keys(compact, levels) for compact in (samples, train, test))
    same_size = min(len(ours), len(real))
    return {
        "levels": levels,
        "in_training": share_of(np.isin(ours, training)),
        "real_in_training": share_of(np.isin(real, training)),
        "unique": _unique(ours),
        "unique_same_size": _unique(ours[:same_size]),
        "real_unique": _unique(real[:same_size]),
    }


def measure_neighbors(
    samples: Compact, train: Compact, test: Compact, *, device: str = "cpu", on_progress: OnProgress = ignore
) -> dict[str, Any]:
    """The distance to the nearest training sketch, from each sample and from each real test sketch.

    `closer_than_1`, `_5` and `_25` are the shares of samples no farther away than the closest 1 %, 5 % and 25 % of the
    test split; `real_…` are those of the test split itself, larger than that if many of its distances are equal (about
    5 % of real sketches look like a training sketch). `kolmogorov_smirnov` is the largest difference of the two
    cumulative distributions, and `nearer` the largest by which samples are nearer than the test split.
    """
    from scipy.stats import ks_2samp

    references = blurred_images(train)
    part = len(samples) / (len(samples) + len(test))
    ours, real = (
        nearest_distances(
            blurred_images(compact),
            references,
            device=device,
            on_progress=lambda done, begin=begin, size=size: on_progress(begin + size * done),  # type: ignore[misc]
        )
        for compact, begin, size in ((samples, 0.0, part), (test, part, 1 - part))
    )
    limits = {percent: float(np.percentile(real, percent)) for percent in (1, 5, 25)}
    return {
        "samples": ours,
        "test": real,
        "median": clustered_median(ours, np.arange(len(ours))),
        "real_median": clustered_median(real, np.arange(len(real))),
        **{f"closer_than_{percent}": share_of(ours <= limit) for percent, limit in limits.items()},
        **{f"real_closer_than_{percent}": share_of(real <= limit) for percent, limit in limits.items()},
        "kolmogorov_smirnov": float(ks_2samp(ours, real, method="asymp").statistic),
        "nearer": float(ks_2samp(ours, real, alternative="greater", method="asymp").statistic),
    }


def blurred_images(compact: Compact) -> NDArray[np.float32]:
    """`sketch, cell, cell`: the blurred image of each sketch, of norm 1; rows run along x."""
    blocks = [_blurred_images(compact[i : i + _IMAGE_BATCH]) for i in range(0, len(compact), _IMAGE_BATCH)]
    return np.concatenate([np.empty((0, CELLS, CELLS), np.float32), *blocks])


def nearest_distances(
    queries: NDArray[np.float32],
    references: NDArray[np.float32],
    *,
    device: str = "cpu",
    on_progress: OnProgress = ignore,
) -> NDArray[np.float64]:
    """The distance from each image to the nearest reference, over all eight symmetric copies."""
    return find_nearest(queries, references, device=device, on_progress=on_progress).distance


class Nearest(NamedTuple):
    """For each image the nearest reference: its distance, its number, and which symmetric copy of the image it matches.

    Copy k is the image turned by k quarters, for k of 4 or more mirrored in x first, as in `representation.hashing`.
    """

    distance: NDArray[np.float64]
    reference: NDArray[np.int64]
    symmetry: NDArray[np.int64]


def find_nearest(
    queries: NDArray[np.float32],
    references: NDArray[np.float32],
    *,
    device: str = "cpu",
    on_progress: OnProgress = ignore,
) -> Nearest:
    """The nearest reference of each image, over all eight symmetric copies."""
    stored = torch.split(torch.from_numpy(references).to(device).flatten(1), _REFERENCE_BATCH)
    distances, indices, symmetries = [np.empty(0)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for begin in range(0, len(queries), _QUERY_BATCH):
        block = torch.from_numpy(queries[begin : begin + _QUERY_BATCH]).to(device)
        images = _symmetric_copies(block).flatten(2)
        best = torch.full((len(block),), -1.0, device=images.device)
        index, symmetry = (torch.zeros(len(block), dtype=torch.int64, device=images.device) for _ in range(2))
        for number, part in enumerate(stored):
            match, place = (images @ part.T).max(dim=2)  # copy, query
            match, copy = match.max(dim=0)
            better = match > best
            place = place.gather(0, copy[None])[0] + number * _REFERENCE_BATCH
            best = torch.where(better, match, best)
            index, symmetry = torch.where(better, place, index), torch.where(better, copy, symmetry)
        distance = (2 - 2 * best.double()).clamp(min=0).sqrt()
        distances.append(torch.where(distance < RESOLUTION, 0.0, distance).cpu().numpy())
        indices.append(index.cpu().numpy())
        symmetries.append(symmetry.cpu().numpy())
        on_progress(min(1.0, (begin + _QUERY_BATCH) / len(queries)))
    return Nearest(np.concatenate(distances), np.concatenate(indices), np.concatenate(symmetries))


def _unique(keys: Keys) -> Estimate:
    return share_estimate(len(np.unique(keys)), len(keys))


def _symmetric_copies(block: Float[Tensor, "query cell cell"]) -> Float[Tensor, "8 query cell cell"]:
    both = (block, block.flip(1))
    return torch.stack([torch.rot90(image, k, (1, 2)) for image in both for k in range(NUM_SYMMETRIES // 2)])


def _blurred_images(compact: Compact) -> NDArray[np.float32]:
    cell = 2 * HALF_EXTENT / CELLS
    ink = np.where(compact.kind == Kind.POINT, cell, lengths(compact)) / POINTS
    fractions = (np.arange(POINTS) + 0.5) / POINTS
    sketch, prim = np.nonzero(ink)
    # In cells, from the center of the first one.
    position = points_along(compact, fractions)[sketch, prim] / cell + (CELLS - 1) / 2
    position = np.clip(position, 0, CELLS - 1 - 1e-9)
    low = np.floor(position).astype(np.int64)
    offset = position - low
    canvas = np.zeros(len(compact) * CELLS * CELLS)
    for right in (0, 1):
        for up in (0, 1):
            weight = np.abs(1 - right - offset[..., 0]) * np.abs(1 - up - offset[..., 1])
            index = (sketch[:, None] * CELLS + low[..., 0] + right) * CELLS + low[..., 1] + up
            canvas += np.bincount(index.ravel(), (weight * ink[sketch, prim][:, None]).ravel(), len(canvas))
    distance = np.subtract.outer(np.arange(CELLS), np.arange(CELLS))
    blur = np.exp(-0.5 * (distance / BLUR) ** 2)
    image = blur @ canvas.reshape(-1, CELLS, CELLS) @ blur
    norm = np.linalg.norm(image, axis=(1, 2), keepdims=True)
    scaled = np.divide(image, norm, out=np.zeros_like(image), where=norm > 0)
    return np.asarray(scaled, np.float32)
