"""Which steps a batch is trained on: a density over t in 1..T, and uniform numbers turned into steps of it.

Pure: the uniform numbers on [0, 1) come in, plain or spread evenly over the batch.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .check import check_step

# One number for each t in 1..T, not necessarily normalized: entry t − 1 belongs to t.
TimeWeights = Float[Tensor, " steps"]
# The least weight of a step, as a share of the average, where a density would starve it.
FLOOR = 0.1


def paper_times(num_steps: int) -> TimeWeights:
    """Every t in 1..T alike."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, not {num_steps}")
    return torch.ones(num_steps, dtype=torch.float64)


def authors_times(num_steps: int) -> TimeWeights:
    """The authors' code: 1..T−1 alike; t = T, where sampling starts, is never trained."""
    weights = paper_times(num_steps)
    weights[-1] = 0
    return weights


def logit_normal_times(num_steps: int, mean: float = 0.0, std: float = 1.0, floor: float = FLOOR) -> TimeWeights:
    """logit(t/T) is normal: more of the middle, or of one side by `mean`, but no step below `floor` of the average.

    Without a floor the first and the last steps would never come up.
    """
    if not std > 0:
        raise ValueError(f"std must be positive, not {std}")
    # The middle of each step's slice of (0, 1), so that both ends are inside.
    middle = (paper_times(num_steps).cumsum(dim=0) - 0.5) / num_steps
    density: Tensor = torch.exp(-(((middle.logit() - mean) / std) ** 2) / 2) / (middle * (1 - middle))
    return _floored(density, floor)


def measured_times(loss_per_step: TimeWeights, floor: float = FLOOR) -> TimeWeights:
    """In proportion to a measured loss, where there is most to learn, but no step below `floor` of the average."""
    if not bool((loss_per_step >= 0).all()) or not bool(loss_per_step.sum() > 0):
        raise ValueError("loss_per_step must hold losses, none negative and not all zero")
    return _floored(loss_per_step.to(torch.float64), floor)


def draw_times(uniform: Float[Tensor, " batch"], weights: TimeWeights) -> Int[Tensor, " batch"]:
    """Steps t in 1..T with these weights, by inverting their cumulative sum."""
    if not bool((uniform >= 0).all()) or not bool((uniform < 1).all()):
        raise ValueError("uniform must hold numbers of [0, 1)")
    if not bool((weights >= 0).all()) or not bool(weights.sum() > 0):
        raise ValueError("weights must hold a number for each step, none negative and not all zero")
    edges = weights.to(device=uniform.device, dtype=torch.float64).cumsum(dim=0)
    # right=True: a step of weight zero has an empty slice and is never drawn.
    below = torch.searchsorted(edges, uniform.to(torch.float64) * edges[-1], right=True)
    # A product rounded up to the whole lands behind the last slice; it belongs to the last step that has one.
    last = torch.searchsorted(edges, edges[-1])
    return torch.minimum(below, last) + 1


def stratified(uniform: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """One number in each of `batch` equal slices: the batch covers all noise levels, and its loss varies less."""
    slices = torch.arange(len(uniform), dtype=torch.float64, device=uniform.device)
    return (slices + uniform.to(torch.float64)) / len(uniform)


def low_discrepancy(uniform: Float[Tensor, ""], batch: int) -> Float[Tensor, " batch"]:
    """`batch` evenly spaced numbers from a single random start (Kingma et al. 2021)."""
    return (uniform.to(torch.float64) + torch.arange(batch, device=uniform.device) / batch) % 1


def importance(t: Int[Tensor, " batch"], weights: TimeWeights) -> Float[Tensor, " batch"]:
    """1/(T·p(t)): weighs a loss drawn with `weights` so that its mean is that of uniform steps."""
    check_step(t, len(weights), lowest=1)
    weights = weights.to(t.device)
    return weights.mean() / weights[t - 1]


def _floored(weights: TimeWeights, floor: float) -> TimeWeights:
    return weights.clamp(min=floor * float(weights.mean()))
