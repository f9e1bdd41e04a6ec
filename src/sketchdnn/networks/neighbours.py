"""Where other ends lie near each end, and what is level with it: told to the network, so that it need not find out.

A profile closes where ends meet, and at a little noise the best guess of a vertex is the middle of the ends that belong
to it. Attention over rows can learn to find them, but slowly: it has to tell places apart by products of features. Here
each end is told how far it is to the others, in units of the noise and averaged softly at several scales: to ends of
other rows; along x and along y alone, to any place (lines along an axis, holes in a row) and to any place's mirror
image (a sketch is centered, so the axes are those of its symmetry, if it has any); and how a circle's radius differs
from others'. Nothing is told where nothing is near. Rows in another order are told the same, each its own.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch

# How far is near, in units of the noise. Two noisy ends of one vertex are 1.4 apart along each axis.
SCALES = (0.7, 1.5, 3.0, 6.0)
# What is told at less than this chance that there is anything near fades.
_LEAST = 0.01
# At each scale: a vector and how much there is, of ends; a difference and how much, along x and along y of places and
# of their images, and of radii.
_OF_END, _OF_RADIUS = 3 + 2 * (2 + 2), 2
NUM_FEATURES = len(SCALES) * (2 * _OF_END + _OF_RADIUS)


def neighbours(rows: SketchBatch) -> Float[Tensor, "batch prim feature"]:
    """What every row is told; its parameters are in units of the noise."""
    count = rows.kind.shape[1]
    there, ends, circles = rows.kind[..., : layout.NONE].sum(dim=-1), _has_ends(rows), rows.kind[..., Kind.CIRCLE]
    places = _places(rows).flatten(1, 2)  # first and last of a row, row after row
    apart = places[:, None] - places[:, :, None]  # from one to another
    to_image = -places[:, None] - places[:, :, None]  # from one to the image of another, or its own
    other, another = _masks(count, places)
    seen = _twice(there)[:, None]
    told = [_nearby(apart, _twice(ends)[:, None] * other)]
    for axis in (slice(0, 1), slice(1, 2)):
        told += [_nearby(apart[..., axis], seen * another), _nearby(to_image[..., axis], seen.expand_as(apart[..., 0]))]
    of_places = torch.cat(told, dim=-1)
    radius = rows.params[..., layout.PARAMS_OF_KIND[Kind.CIRCLE]][..., layout.RADIUS, None]
    of_radii = _nearby(radius[:, None] - radius[:, :, None], circles[:, None] * another[:count, :count])
    return torch.cat([of_places.reshape(len(of_places), count, -1), of_radii], dim=-1)


def _nearby(
    apart: Float[Tensor, "batch one other axis"], weight: Float[Tensor, "batch one other"]
) -> Float[Tensor, "batch one feature"]:
    """At each scale the mean way to what is near, in units of the scale, and how much is near: 0 to 1."""
    scale = apart.new_tensor(SCALES)[:, None]
    near = weight[:, :, None] * torch.exp(apart.square().sum(dim=-1)[:, :, None] / (-2 * scale**2))
    share = near / (near.sum(dim=-1, keepdim=True) + _LEAST)
    way = (share[..., None] * apart[:, :, None]).sum(dim=-2) / scale
    return torch.cat([way, share.sum(dim=-1, keepdim=True)], dim=-1).flatten(2)


def _places(rows: SketchBatch) -> Float[Tensor, "batch prim two axis"]:
    """Where a row begins and ends, by what it may be; a circle and a point do both in one place."""
    chances = rows.kind[..., : layout.NONE]
    chances = chances / chances.sum(dim=-1, keepdim=True).clamp(min=1e-6)
    params = [rows.params[..., layout.PARAMS_OF_KIND[kind]] for kind in Kind]
    first = torch.stack([of_kind[..., layout.START] for of_kind in params], dim=-1)
    last_of = {Kind.LINE: layout.END, Kind.ARC: layout.END}
    last = torch.stack(
        [of_kind[..., last_of.get(kind, layout.START)] for kind, of_kind in zip(Kind, params, strict=True)], dim=-1
    )
    return (torch.stack([first, last], dim=-3) * chances[..., None, None, :]).sum(dim=-1)


def _has_ends(rows: SketchBatch) -> Float[Tensor, "batch prim"]:
    return rows.kind[..., Kind.LINE] + rows.kind[..., Kind.ARC]


def _twice(of_rows: Float[Tensor, "batch prim"]) -> Float[Tensor, "batch place"]:
    return of_rows.repeat_interleave(2, dim=1)


def _masks(count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Of places, two a row: whether another is of another row; whether it is another at all."""
    place = torch.arange(2 * count, device=like.device)
    other = place[:, None] // 2 != place // 2
    return other.to(like), (place[:, None] != place).to(like)
