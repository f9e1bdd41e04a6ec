"""Features of a sketch that do not depend on the order of its rows, and the energy distance of two sets of them."""

import torch
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch


def set_features(batch: SketchBatch) -> Tensor:
    """Numbers of each kind, and sorted: gaps of ends, lengths of lines, radii, places of ends."""
    batch = batch.most_likely()
    kind = batch.kind.argmax(dim=-1)
    line, arc = batch.of_kind(Kind.LINE), batch.of_kind(Kind.ARC)[..., : layout.BEND]
    with_ends = ((kind == Kind.LINE.value) | (kind == Kind.ARC.value)).repeat_interleave(2, dim=1)
    is_arc = (kind == Kind.ARC.value)[..., None]
    ends = torch.where(is_arc, arc, line).reshape(len(batch), -1, 2)
    row = torch.arange(kind.shape[1]).repeat_interleave(2)
    apart = (ends[:, :, None] - ends[:, None]).norm(dim=-1)
    others = with_ends[:, None] & (row[:, None] != row)
    gap = apart.masked_fill(~others, 9.0).amin(dim=-1).clamp(1e-3, 1.0).log() / 6
    length = (line[..., :2] - line[..., 2:]).norm(dim=-1)
    radius = batch.of_kind(Kind.CIRCLE)[..., -1]
    parts = [
        torch.cat([batch.kind.sum(dim=1), batch.construction[..., 1:].sum(dim=1)], dim=1) / 4,
        gap.masked_fill(~with_ends, -1.2).sort(dim=1).values,
        length.masked_fill(kind != Kind.LINE.value, 0).sort(dim=1).values,
        radius.masked_fill(kind != Kind.CIRCLE.value, 0).sort(dim=1).values,
        *(ends[..., axis].masked_fill(~with_ends, 0).sort(dim=1).values / 2 for axis in (0, 1)),
    ]
    return torch.cat(parts, dim=1)


def energy_distance(a: Tensor, b: Tensor) -> float:
    """2·E‖a − b‖ − E‖a − a'‖ − E‖b − b'‖, without bias: zero on average for equal distributions."""
    within = [torch.cdist(x, x).sum() / (len(x) * (len(x) - 1)) for x in (a, b)]
    return float(2 * torch.cdist(a, b).mean() - within[0] - within[1])
