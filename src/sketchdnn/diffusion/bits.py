"""Nats of many sketches as bits to compare: means with standard errors, divisors named, sets against sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, relevant

from .bins import Bins


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over samples and its standard error, which holds both the choice of samples and the noise in each."""

    mean: float
    standard_error: float
    count: int


@dataclass(frozen=True, slots=True)
class BitsReport:
    """Bits per sketch, and per primitive by two divisors that must not be mixed.

    The paper divides SketchDNN's bits by all 16 rows, empty ones included, and Vitruvion's by its 10.35 primitives.
    """

    per_sketch: Estimate
    per_row: float  # per_sketch / rows, empty or not
    per_primitive: float  # per_sketch / mean number of primitives
    rows: int
    mean_primitives: float


def report_bits(
    nats: Float[Tensor, " batch"], num_primitives: Int[Tensor, " batch"], rows: int = layout.MAX_PRIMITIVES
) -> BitsReport:
    """Summarize what `Elbo.nats` says of a set of sketches."""
    if nats.shape != num_primitives.shape:
        raise ValueError(
            f"num_primitives must hold one number a sketch, {len(nats)}, not {tuple(num_primitives.shape)}"
        )
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    per_sketch = estimate(nats / math.log(2))
    mean_primitives = float(num_primitives.double().mean())
    if mean_primitives <= 0:
        raise ValueError("num_primitives must be above zero on average")
    return BitsReport(per_sketch, per_sketch.mean / rows, per_sketch.mean / mean_primitives, rows, mean_primitives)


def estimate(values: Float[Tensor, " batch"]) -> Estimate:
    """The mean of independent values."""
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must be a vector of at least two numbers, not of shape {tuple(values.shape)}")
    values = values.double()
    return Estimate(float(values.mean()), float(values.std()) / math.sqrt(len(values)), len(values))


def num_primitives(x0: SketchBatch) -> Int[Tensor, " batch"]:
    """How many rows of each sketch are not empty."""
    return (x0.kind.argmax(dim=-1) != layout.NONE).sum(dim=-1)


def log_factorial(n: Int[Tensor, " *shape"] | int) -> Float[Tensor, " *shape"]:
    """log n!: what a model of sequences pays for telling an order, if every order is as likely."""
    return torch.lgamma(torch.as_tensor(n, dtype=torch.float64) + 1)


def log_arrangements(x0: SketchBatch, bins: Bins) -> Float[Tensor, " batch"]:
    """log of the number of different matrices that hold the same sketch, rows equal on the grid being interchangeable.

    With n distinct primitives in R rows it is log R!/(R − n)!. A model that does not care about the order of rows gives
    each of them the same probability, so −log p(set) = −log p(matrix) − this.
    """
    kind = x0.kind.argmax(dim=-1)
    cells = torch.where(relevant(kind), bins.index(x0.params), 0)
    flag = torch.where(kind == layout.NONE, 0, x0.construction.argmax(dim=-1))
    rows = torch.cat([kind[..., None], flag[..., None], cells], dim=-1)
    same = (rows[:, :, None, :] == rows[:, None, :, :]).all(dim=-1)
    # Row i is the m-th of its twins so far; the product of all m is the product of m! over groups of twins.
    place_among_twins = same.tril().sum(dim=-1).double()
    return log_factorial(rows.shape[1]).to(place_among_twins) - place_among_twins.log().sum(dim=-1)
