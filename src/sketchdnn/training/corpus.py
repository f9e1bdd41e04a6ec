"""The training set on a device, its augmentation, and the order in which it is visited.

Order and random numbers are functions of the seed and the step. So a resumed run needs only its step number, and a run
on two devices sees the same samples as a run on one: each takes its share of every batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, expand, smaller_end_first
from sketchdnn.representation.compact import Compact
from sketchdnn.systems import RowForm

from .completion_tasks import Frame, apply_frame
from .config import RunError

NUM_SYMMETRIES = 8
# Uniform numbers per sample for `AffineAugmentation`.
NUM_AFFINE_DRAWS = 4
# Smallest scale and smallest stretch of the affine augmentation.
_MIN_SCALE, _MIN_STRETCH = 0.6, 0.5


class AffineAugmentation(NamedTuple):
    """The samples of a batch to transform, and three uniform numbers for each: rotation, scale, stretch."""

    selected: Bool[Tensor, " batch"]
    numbers: Float[Tensor, "batch 3"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Compact rows of many sketches on one device."""

    kind: Int[Tensor, "sketch prim"]
    construction: Bool[Tensor, "sketch prim"]
    params: Float[Tensor, "sketch prim 5"]

    def __len__(self) -> int:
        return len(self.kind)

    def batch(
        self,
        index: Int[Tensor, " batch"],
        symmetry: Int[Tensor, " batch"],
        form: RowForm,
        affine: AffineAugmentation | None = None,
        frame: Frame | None = None,
    ) -> SketchBatch:
        """Some sketches as composite rows: transformed by `affine`, put in a frame, then transformed by a symmetry.

        Symmetries are numbered 0..7; 0 is the identity.
        """
        kind, params = self.kind[index], self.params[index]
        if affine is not None:
            params = apply_affine(kind, params, affine)
        if frame is not None:
            params = apply_frame(kind, params, frame)
        params = apply_symmetry(kind, params, symmetry)
        if form.canonical_lines:
            params = smaller_end_first(kind, params)
        return expand(
            kind, self.construction[index], params, arc_scalar=form.arc_scalar, none_construction=form.none_construction
        )


def to_device(compact: Compact, device: torch.device | str) -> Corpus:
    """Copy a split to a device."""
    return Corpus(*(torch.tensor(a, device=device) for a in (compact.kind, compact.construction, compact.params)))


def apply_symmetry(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"], symmetry: Int[Tensor, " batch"]
) -> Float[Tensor, "batch prim 5"]:
    """Apply a symmetry of the square: a mirror image in x for numbers from 4, then quarter turns."""
    mirror = (symmetry >= NUM_SYMMETRIES // 2)[:, None, None]
    quarters = (symmetry % (NUM_SYMMETRIES // 2))[:, None]

    def transform(points: Tensor) -> Tensor:
        x, y = points.unbind(dim=-1)
        x = torch.where(mirror[..., 0], -x, x)
        cos = (quarters == 0).to(points) - (quarters == 2).to(points)
        sin = (quarters == 1).to(points) - (quarters == 3).to(points)
        return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)

    start, end = transform(params[..., layout.START]), transform(params[..., layout.END])
    # Arcs run counter-clockwise, so the mirror image starts at the image of the end.
    swap = mirror & (kind == Kind.ARC.value)[..., None]
    start, end = torch.where(swap, end, start), torch.where(swap, start, end)
    has_end = ((kind == Kind.LINE.value) | (kind == Kind.ARC.value))[..., None]
    end = torch.where(has_end, end, params[..., layout.END])  # the radius of a circle
    return torch.cat([start, end, params[..., layout.BEND :]], dim=-1)


def sample_affine(uniform: Float[Tensor, "batch 4"], fraction: float) -> AffineAugmentation:
    """Select a fraction of the samples at random."""
    return AffineAugmentation(uniform[:, 0] < fraction, uniform[:, 1:])


def apply_affine(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"], affine: AffineAugmentation
) -> Float[Tensor, "batch prim 5"]:
    """Scale the selected sketches down, rotate half of them, and stretch those without circles and arcs."""
    turn, size, width = affine.numbers[:, :, None].unbind(dim=1)
    angle = (turn - 0.5).clamp(min=0) * math.pi  # at most a quarter turn: quarter turns are symmetries
    cos, sin = angle.cos(), angle.sin()
    # A rotated square is wider by cos + sin; the content stays within the frame.
    scale = (_MIN_SCALE + (1 - _MIN_SCALE) * size) / (cos + sin)
    is_round = (kind == Kind.CIRCLE.value) | (kind == Kind.ARC.value)
    stretch = torch.where(is_round.any(dim=1, keepdim=True), 1.0, _MIN_STRETCH + (1 - _MIN_STRETCH) * width)

    def transform(points: Tensor) -> Tensor:
        # Written out: a matrix product would be rounded to half precision under autocast.
        x, y = scale * stretch * points[..., 0], scale * points[..., 1]
        return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)

    start, end = transform(params[..., layout.START]), transform(params[..., layout.END])
    is_circle = (kind == Kind.CIRCLE.value)[..., None]
    end = torch.where(is_circle, scale[..., None] * params[..., layout.END], end)  # the radius of a circle
    transformed = torch.cat([start, end, params[..., layout.BEND :]], dim=-1)
    return torch.where(affine.selected[:, None, None], transformed, params)


def oversample(corpus: Corpus, rare: float, large: float, large_from: int) -> Int[Tensor, " entry"]:
    """Indices of one epoch, some sketches more often than others. A fraction is distributed evenly over its sketches.

    Args:
        corpus: The sketches.
        rare: How often sketches with points or construction are seen, relative to others.
        large: How often sketches of at least `large_from` primitives are seen, relative to smaller ones.
        large_from: See above.
    """
    is_rare = ((corpus.kind == Kind.POINT.value) | corpus.construction).any(dim=1).cpu()
    is_large = (corpus.kind != layout.NONE).sum(dim=1).cpu() >= large_from
    repeats = torch.empty(len(corpus), dtype=torch.int64)
    for some, factor in (
        (is_rare & is_large, rare * large),
        (is_rare & ~is_large, rare),
        (~is_rare & is_large, large),
        (~is_rare & ~is_large, 1.0),
    ):
        rank = torch.arange(int(some.sum()), dtype=torch.float64)
        repeats[some] = ((rank + 1) * factor).floor().long() - (rank * factor).floor().long()
    return torch.repeat_interleave(torch.arange(len(corpus)), repeats).to(corpus.params.device)


class DataOrder:
    """An endless sequence of shuffled epochs over `size` entries, cut into batches; one rank takes its share."""

    def __init__(
        self, size: int, batch_size: int, seed: int, device: torch.device | str, rank: int = 0, world: int = 1
    ) -> None:
        if size < 1 or batch_size < 1:
            raise RunError(f"a batch of {batch_size} cannot be drawn from {size} sketches")
        if batch_size % world:
            raise RunError(f"a batch of {batch_size} cannot be shared by {world} processes; use a multiple of {world}")
        self.size, self.batch_size, self.seed, self.device = size, batch_size, seed, device
        self.share = batch_size // world
        self._offset = rank * self.share
        self._epochs: dict[int, Tensor] = {}

    def positions(self) -> Int[Tensor, " share"]:
        """The positions of this rank's samples in every batch."""
        return torch.arange(self._offset, self._offset + self.share, device=self.device)

    def numbers(self, step: int) -> Int[Tensor, " share"]:
        """The global sample numbers of a step, which select its noise. They never repeat."""
        start = step * self.batch_size + self._offset
        return torch.arange(start, start + self.share, device=self.device)

    def indices(self, step: int) -> Int[Tensor, " share"]:
        """The entries of a step."""
        start = step * self.batch_size + self._offset
        stop = start + self.share
        first, last = start // self.size, (stop - 1) // self.size
        entries = torch.cat([self._epoch(number) for number in range(first, last + 1)])
        self._epochs = {n: order for n, order in self._epochs.items() if n >= last}
        return entries[start - first * self.size : stop - first * self.size]

    def _epoch(self, number: int) -> Tensor:
        if number not in self._epochs:
            # Shuffled on the CPU, so that every device has the same order.
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + number) % 2**63)
            order = torch.randperm(self.size, generator=generator)
            if torch.device(self.device).type == "cuda":
                order = order.pin_memory()  # the copy does not block
            self._epochs[number] = order.to(self.device, non_blocking=True)
        return self._epochs[number]
