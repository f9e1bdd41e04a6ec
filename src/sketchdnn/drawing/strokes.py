"""Curves as sampled strokes: positions, normals and lengths of all primitives of a batch at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation.layout import BEND, END, NONE, RADIUS, START

_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Strokes:
    """Sampled curves of a batch.

    Attributes:
        at: Positions, `batch, prim, sample, 2`.
        normal: Unit normals, `batch, prim, sample, 2`.
        length: The length of each curve, `batch, prim`.
        kind: The kind, `batch, prim`.
        construction: Whether it is construction, `batch, prim`.
    """

    at: Tensor
    normal: Tensor
    length: Tensor
    kind: Tensor
    construction: Tensor

    @property
    def present(self) -> Tensor:
        """Which rows hold a primitive, `batch, prim`."""
        return self.kind != NONE


def sample_strokes(kind: Tensor, construction: Tensor, params: Tensor, samples: int, gap: Tensor) -> Strokes:
    """Sample each curve at equal steps, from its start to its end.

    Args:
        kind: Kinds of compact rows, `batch, prim`.
        construction: Construction flags, `batch, prim`.
        params: Parameters of compact rows, `batch, prim, param`.
        samples: Samples of a curve.
        gap: Start angle and gap of circles in radians, `batch, prim, 2`.
    """
    steps = torch.linspace(0, 1, samples, device=params.device, dtype=params.dtype)
    start, end, sweep = params[..., START], params[..., END], params[..., BEND]
    chord = end - start
    chord_length = chord.norm(dim=-1).clamp_min(_EPSILON)
    # The center of an arc lies to the left of the middle of its chord.
    half = (sweep / 2).clamp(_EPSILON, math.pi - _EPSILON)
    left = torch.stack((-chord[..., 1], chord[..., 0]), dim=-1)
    arc_center = (start + end) / 2 + left * (0.5 * half.cos() / half.sin())[..., None]
    arc_radius = chord_length / (2 * half.sin())
    arc_angle = torch.atan2(start[..., 1] - arc_center[..., 1], start[..., 0] - arc_center[..., 0])
    is_circle, is_arc, is_line = kind == Kind.CIRCLE, kind == Kind.ARC, kind == Kind.LINE
    center = torch.where(is_circle[..., None], start, arc_center)
    radius = torch.where(is_circle, params[..., RADIUS], arc_radius)
    first = torch.where(is_circle, gap[..., 0], arc_angle)
    turn = torch.where(is_circle, 2 * math.pi - gap[..., 1], 2 * half)
    angle = first[..., None] + turn[..., None] * steps
    outward = torch.stack((angle.cos(), angle.sin()), dim=-1)
    round_at = center[..., None, :] + radius[..., None, None] * outward
    line_at = start[..., None, :] + chord[..., None, :] * steps[:, None]
    line_normal = (left / chord_length[..., None])[..., None, :].expand_as(line_at)
    is_round = (is_circle | is_arc)[..., None, None]
    at = torch.where(is_round, round_at, line_at)
    normal = torch.where(is_round, outward, line_normal)
    at = torch.where((is_round | is_line[..., None, None]), at, start[..., None, :].expand_as(at))
    length = torch.where(is_round[..., 0, 0], radius * turn, torch.where(is_line, chord_length, 0.0))
    return Strokes(at, normal, length, kind, construction)


def diagonal(strokes: Strokes) -> Tensor:
    """The diagonal of the box of each sketch, `batch`."""
    present = strokes.present[..., None, None]
    low = torch.where(present, strokes.at, math.inf).flatten(1, 2).amin(1)
    high = torch.where(present, strokes.at, -math.inf).flatten(1, 2).amax(1)
    size = (high - low).norm(dim=-1)
    return torch.where(size.isfinite(), size, 1.0).clamp_min(_EPSILON)


def dashes(strokes: Strokes, dash: float, gap: float) -> Tensor:
    """Which samples of construction curves belong to a dash, `batch, prim, sample`; all of other curves.

    Dashes are stretched so that an open curve ends with a dash.
    """
    samples = strokes.at.shape[2]
    steps = torch.linspace(0, 1, samples, device=strokes.at.device, dtype=strokes.at.dtype)
    is_closed = (strokes.kind == Kind.CIRCLE).to(strokes.at.dtype)
    period = dash + gap
    count = ((strokes.length + gap * (1 - is_closed)) / period).round().clamp_min(2.0)
    stretched = strokes.length / (count * period - gap * (1 - is_closed)).clamp_min(_EPSILON)
    phase = torch.remainder(steps * (strokes.length / (stretched * period).clamp_min(_EPSILON))[..., None], 1.0)
    is_on = phase <= dash / period + 1e-4
    solid = ~strokes.construction | (strokes.kind == Kind.POINT)
    return is_on | solid[..., None]
