"""Checks of arguments: each raises a ValueError that names the argument.

Inner steps assume valid tensors, so that they compile without reading a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral

from jaxtyping import Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch

# How far a probability vector may be from summing to one: float32 rounding over the widest simplex we use.
SIMPLEX_TOLERANCE = 1e-4


def check_step(t: int | Int[Tensor, "*batch"], num_steps: int, name: str = "t", lowest: int = 0) -> None:
    """A step, or one a sample, lies in lowest..T."""
    if isinstance(t, Tensor):
        if t.is_floating_point() or t.is_complex() or t.numel() == 0:
            raise ValueError(f"{name} must hold whole numbers, at least one, not {t.dtype} of shape {tuple(t.shape)}")
        least, most = int(t.min()), int(t.max())
    elif not isinstance(t, Integral):
        raise ValueError(f"{name} must be a whole number, not {t}")
    else:
        least = most = int(t)
    if least < lowest or most > num_steps:
        wrong = least if least < lowest else most
        raise ValueError(f"{name} must lie in {lowest}..{num_steps}, not {wrong}")


def check_pair(s: int | Int[Tensor, "*batch"], t: int | Int[Tensor, "*batch"], num_steps: int) -> None:
    """0 ≤ s < t ≤ T."""
    check_step(s, num_steps, "s")
    check_step(t, num_steps, "t")
    wrong = s >= t
    if bool(wrong.any()) if isinstance(wrong, Tensor) else wrong:
        raise ValueError(f"s must be smaller than t, not s = {s} and t = {t}")


def check_steps(steps: Sequence[int], num_steps: int) -> None:
    """The steps a sampler visits: falling, in 0..T, at least two."""
    if len(steps) < 2:
        raise ValueError(f"steps must name at least two levels to go between, not {list(steps)}")
    for t in steps:
        check_step(t, num_steps, "steps")
    for t, s in pairwise(steps):
        if s >= t:
            raise ValueError(f"steps must fall, but {t} is followed by {s}")


def check_smoothing(label_smoothing: float) -> None:
    """0 < k < 1."""
    if not 0 < label_smoothing < 1:
        raise ValueError(f"label_smoothing must lie strictly between 0 and 1, not {label_smoothing}")


def check_simplex(probabilities: Tensor, name: str) -> None:
    """Points of the simplex along the last axis."""
    if not probabilities.is_floating_point():
        raise ValueError(f"{name} must hold floating-point probabilities, not {probabilities.dtype}")
    # Written so that a NaN, which compares false, is refused too.
    if not bool((probabilities >= 0).all()):
        raise ValueError(f"{name} must hold probabilities, but one is negative or not a number")
    if not bool(((probabilities.sum(dim=-1) - 1).abs() <= SIMPLEX_TOLERANCE).all()):
        raise ValueError(f"{name} must sum to one along its last axis")


def check_shape(batch: SketchBatch, name: str = "batch", like: SketchBatch | None = None) -> None:
    """Batch by rows by the widths of the layout, and the same as `like` (noise, say, beside the batch it goes to)."""
    rows = like.kind.shape[:2] if like is not None else batch.kind.shape[:2]
    for part, width in (
        ("construction", layout.NUM_CONSTRUCTION),
        ("kind", layout.NUM_KINDS),
        ("params", layout.NUM_PARAMS),
    ):
        shape = tuple(getattr(batch, part).shape)
        if shape != (*rows, width) or len(rows) != 2:
            raise ValueError(f"{name}.{part} must have the shape {(*rows, width)}, not {shape}")
