"""Completion tasks: which rows of a training sketch are known, chosen by how its curves are connected.

A random half of the rows is not what a designer has. These tasks hide a stretch of an outline, all features within it,
one feature, or one side of a sketch. They are found on the device, for a whole batch, from the rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.systems.system import ConditionMask

# Uniform numbers per sample, before those of the rows: any condition, its type, task, seed row, links, share of rows,
# bare, extra condition, direction.
_NUM_CHOICES = 9
# Uniform numbers per sample for `sample_frame`.
NUM_FRAME_DRAWS = 4
# Ends this close, where the larger side of a sketch is 2, are joined.
_JOINED = 0.005
# A hidden stretch of an outline reaches at most this many links from its seed row to each side.
_MAX_LINKS = 5
# Types of conditions: completion, all kinds, number of primitives (the rest).
_COMPLETION, _KINDS = 0.6, 0.15
# Tasks of completion, by their cumulative probability. The rest is one side of the sketch.
_RANDOM_ROWS, _OPEN_OUTLINE, _FEATURES, _ONE_FEATURE = 0.25, 0.5, 0.7, 0.85
# Beside known rows nothing else is known, or the number of primitives, or all kinds (the rest).
_PART_ALONE, _PART_AND_NUMBER = 0.45, 0.8
# Probability that a part lies in a frame larger than its sketch, and the smallest size of the sketch in its frame.
_FRAMED, _MIN_SIZE = 0.5, 0.4


class Rows(NamedTuple):
    """Compact rows of a batch of sketches."""

    kind: Int[Tensor, "batch prim"]
    construction: Bool[Tensor, "batch prim"]
    params: Float[Tensor, "batch prim 5"]

    @property
    def present(self) -> Bool[Tensor, "batch prim"]:
        return self.kind != layout.NONE


class Frame(NamedTuple):
    """The size and the position of each sketch in its frame; 1 and (0, 0) if it fills the frame."""

    scale: Float[Tensor, " batch"]
    shift: Float[Tensor, "batch 2"]


def num_task_draws(num_rows: int) -> int:
    """Uniform numbers per sample for `sample_task`."""
    return _NUM_CHOICES + num_rows


def sample_task(
    uniform: Float[Tensor, "batch number"], rows: Rows, probability: float, conditional_below: int
) -> ConditionMask:
    """A random mask for training.

    Args:
        uniform: `num_task_draws` numbers of [0, 1) per sketch.
        rows: The sketches.
        probability: That anything is known of a sketch.
        conditional_below: In smaller sketches something is always known: at least the number of primitives.
    """
    chance, kind_of, task, seed_at, links, share, bare, extra, direction = uniform[:, :_NUM_CHOICES, None].unbind(dim=1)
    by_row = uniform[:, _NUM_CHOICES:]
    present, seed = rows.present, _row_at(rows.present, seed_at)
    joined = connections(rows)
    chains = _reachable(joined)
    chain = _rows_of(chains, seed)
    outline = _largest_chain(rows, chains)
    stretch = _within_links(joined, seed, (links * (_MAX_LINKS + 1)).long())
    some_rows = by_row < share

    known = torch.where(
        task < _RANDOM_ROWS,
        some_rows,
        torch.where(
            task < _OPEN_OUTLINE,
            ~stretch & (chain | (bare < 0.5)),
            torch.where(
                task < _FEATURES,
                outline,
                torch.where(task < _ONE_FEATURE, ~chain & (by_row < share.sqrt()), _on_one_side(rows, direction)),
            ),
        ),
    )
    known = known & present
    known = known & ((present & ~known).any(dim=1, keepdim=True) | ~seed)  # something is left to complete

    small = present.sum(dim=1, keepdim=True) < conditional_below
    some = chance < probability
    completes = (some | small) & (kind_of < _COMPLETION) & known.any(dim=1, keepdim=True)
    known = known & completes
    with_kinds = some & (kind_of >= _COMPLETION) & (kind_of < _COMPLETION + _KINDS)
    kinds = with_kinds | (completes & (extra >= _PART_AND_NUMBER))
    counted = some & (kind_of >= _COMPLETION + _KINDS) | (completes & (extra >= _PART_ALONE)) | (small & ~completes)
    known = known | (counted & ~kinds & ~present)
    return ConditionMask(construction=known, kind=known | kinds, params=known)


def connections(rows: Rows) -> Bool[Tensor, "batch prim prim"]:
    """Which rows are joined: lines and arcs with a common end, both construction or neither; each row to itself."""
    ends = torch.stack([rows.params[..., layout.START], rows.params[..., layout.END]], dim=2)
    apart = (ends[:, :, None, :, None] - ends[:, None, :, None, :]).abs().amax(dim=-1).amin(dim=(-1, -2))
    with_ends = (rows.kind == Kind.LINE.value) | (rows.kind == Kind.ARC.value)
    alike = rows.construction[:, :, None] == rows.construction[:, None]
    joined: Tensor = (apart < _JOINED) & with_ends[:, :, None] & with_ends[:, None] & alike
    return joined | torch.eye(rows.kind.shape[1], dtype=torch.bool, device=rows.kind.device)


def sample_frame(uniform: Float[Tensor, "batch 4"], mask: ConditionMask, rows: Rows) -> Frame:
    """A larger frame for some of the sketches with a known part: where the finished sketch will lie is unknown."""
    has_part = (mask.params & rows.present).any(dim=1)
    framed = has_part & (uniform[:, 0] < _FRAMED)
    scale = torch.where(framed, _MIN_SIZE ** uniform[:, 1], 1.0)
    return Frame(scale, (1 - scale)[:, None] * (2 * uniform[:, 2:] - 1))


def apply_frame(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"], frame: Frame
) -> Float[Tensor, "batch prim 5"]:
    """The parameters of each sketch in its frame."""
    scale, shift = frame.scale[:, None, None], frame.shift[:, None]
    has_end = ((kind == Kind.LINE.value) | (kind == Kind.ARC.value))[..., None]
    start = torch.where((kind != layout.NONE)[..., None], scale * params[..., layout.START] + shift, 0.0)
    end = scale * params[..., layout.END]  # or the radius of a circle
    return torch.cat([start, torch.where(has_end, end + shift, end), params[..., layout.BEND :]], dim=-1)


def _row_at(present: Bool[Tensor, "batch prim"], quantile: Float[Tensor, "batch 1"]) -> Bool[Tensor, "batch prim"]:
    """The row at a quantile of those that are present, as a mask."""
    number = (quantile * present.sum(dim=1, keepdim=True)).long() + 1
    return present & (present.cumsum(dim=1) == number)


def _reachable(joined: Bool[Tensor, "batch prim prim"]) -> Bool[Tensor, "batch prim prim"]:
    """Which rows are in one chain: the transitive closure, by squaring."""
    for _ in range(max(1, (joined.shape[1] - 1).bit_length())):
        paths = joined.float()
        joined = paths @ paths > 0
    return joined


def _rows_of(related: Bool[Tensor, "batch prim prim"], rows: Bool[Tensor, "batch prim"]) -> Bool[Tensor, "batch prim"]:
    """The rows that are related to any of the given rows."""
    return (related & rows[:, None]).any(dim=2)


def _within_links(
    joined: Bool[Tensor, "batch prim prim"], seed: Bool[Tensor, "batch prim"], links: Int[Tensor, "batch 1"]
) -> Bool[Tensor, "batch prim"]:
    """The rows that are at most that many links from the seed row."""
    near = seed
    for number in range(_MAX_LINKS):
        near = torch.where(links > number, _rows_of(joined, near), near)
    return near


def _largest_chain(rows: Rows, chains: Bool[Tensor, "batch prim prim"]) -> Bool[Tensor, "batch prim"]:
    """The rows of the chain with the largest box. Construction geometry is no outline unless there is nothing else."""
    low, high = _boxes(rows)
    far = torch.finfo(low.dtype).max
    low = torch.where(chains[..., None], low[:, None], far).amin(dim=2)
    high = torch.where(chains[..., None], high[:, None], -far).amax(dim=2)
    size = torch.where(rows.construction, -1.0, (high - low).amax(dim=-1)).masked_fill(~rows.present, -2.0)
    return size >= size.amax(dim=1, keepdim=True) - _JOINED


def _on_one_side(rows: Rows, direction: Float[Tensor, "batch 1"]) -> Bool[Tensor, "batch prim"]:
    """The rows whose middle is left of, right of, below or above the center of the sketch, or on that line."""
    low, high = _boxes(rows)
    x, y = ((low + high) / 2).unbind(dim=-1)
    side = (direction * 4).long()
    middle = torch.where(side < 2, x, y) * torch.where(side % 2 == 0, 1.0, -1.0)
    return middle <= _JOINED


def _boxes(rows: Rows) -> tuple[Float[Tensor, "batch prim 2"], Float[Tensor, "batch prim 2"]]:
    """The lower left and upper right corners of the ends of each row, and of whole circles."""
    start, end = rows.params[..., layout.START], rows.params[..., layout.END]
    radius = torch.where(rows.kind == Kind.CIRCLE.value, rows.params[..., layout.RADIUS], 0.0)[..., None]
    has_end = ((rows.kind == Kind.LINE.value) | (rows.kind == Kind.ARC.value))[..., None]
    end = torch.where(has_end, end, start)
    return torch.minimum(start, end) - radius, torch.maximum(start, end) + radius
