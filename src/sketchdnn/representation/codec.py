"""Compact rows to composite rows on any device, and composite rows back to sketches.

The scalar that bends an arc is chosen here:

| name | column holds | |
|---|---|---|
| `signed_radius` | the radius, + for the minor arc, − for the major one | paper, authors; unbounded |
| `sweep` | sweep/π − 1, in (−1, 1) | ours; 0 is a semicircle |
"""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.geometry import TAU, Kind

from . import layout
from .batch import SketchBatch
from .compact import SAME_X
from .decoding import SHORT_RADIUS, Decoded, Issue, decode_rows

# Single precision cannot tell a signed radius this close (in radians) to the semicircle from it, so such arcs are all
# written as minor ones: the sign must not be decided by rounding.
NEARLY_SEMICIRCLE = 1e-4
# A radius short of half the chord by less than this share is a semicircle that was rounded, not a repair.
ROUNDING = 1e-6


def expand(
    kind: Int[Tensor, "batch prim"],
    construction: Bool[Tensor, "batch prim"],
    params: Float[Tensor, "batch prim 5"],
    *,
    arc_scalar: layout.ArcScalar = "signed_radius",
    none_construction: layout.NoneConstruction = "one_hot",
) -> SketchBatch:
    """Composite rows: the parameters of the row's kind in that kind's columns, zeros in all others.

    `none_construction` says what an empty row's construction bits hold: "one_hot" as the paper, "zero" as its authors.
    """
    _check(arc_scalar, layout.ArcScalar)
    _check(none_construction, layout.NoneConstruction)
    kind = kind.long()
    bits = one_hot(construction.long(), layout.NUM_CONSTRUCTION).to(params.dtype)
    if none_construction == "zero":
        bits = bits * (kind != layout.NONE)[..., None]
    columns = []
    for k in Kind:
        own = params[..., : len(layout.PARAM_NAMES[k])]
        of_kind = kind == k.value  # torch.compile cannot compare a tensor with an enum
        if k is Kind.ARC:
            own = _bent(own, of_kind, arc_scalar)
        columns.append(torch.where(of_kind[..., None], own, 0.0))
    return SketchBatch(bits, one_hot(kind, layout.NUM_KINDS).to(params.dtype), torch.cat(columns, dim=-1))


def smaller_end_first(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"]
) -> Float[Tensor, "batch prim 5"]:
    """Lines from their lexicographically smaller end: which end a draughtsman began with carries no meaning."""
    start, end = params[..., layout.START], params[..., layout.END]
    dx, dy = (end - start).unbind(dim=-1)
    backwards = torch.where(dx.abs() <= SAME_X, dy < 0, dx < 0) & (kind == Kind.LINE.value)
    swap = backwards[..., None]
    return torch.cat([torch.where(swap, end, start), torch.where(swap, start, end), params[..., layout.BEND :]], dim=-1)


def decode(batch: SketchBatch, arc_scalar: layout.ArcScalar = "signed_radius") -> list[Decoded]:
    """The most likely kind and flag of each row, its parameters as a primitive, and what was repaired or rejected.

    A NaN, in the parameters or in the class probabilities, rejects its row and is reported; it never becomes a number.
    """
    _check(arc_scalar, layout.ArcScalar)
    kind = batch.kind.argmax(dim=-1).cpu().numpy()
    construction = batch.construction.argmax(dim=-1).cpu().numpy() == 1
    params = _own_params(batch, kind)
    # A row whose class is no number is rejected through its parameters, whatever argmax made of it.
    unknown = ~torch.isfinite(batch.kind.sum(dim=-1) + batch.construction.sum(dim=-1)).cpu().numpy()
    kind[unknown], params[unknown] = Kind.POINT, np.nan

    arcs = kind == Kind.ARC
    params[arcs, layout.BEND], short = _sweep(params[arcs], arc_scalar)
    repairs: list[list[Issue]] = [[] for _ in range(len(kind))]
    for sketch, row in np.argwhere(arcs)[short].tolist():
        repairs[sketch].append(Issue(row, SHORT_RADIUS))
    return decode_rows(kind, construction, params, repairs)


def _check(choice: str, choices: object) -> None:
    if choice not in get_args(choices):
        raise ValueError(f"'{choice}' is not one of {', '.join(get_args(choices))}")


def _bent(arc: Tensor, is_arc: Tensor, arc_scalar: layout.ArcScalar) -> Tensor:
    """Arc parameters with the sweep replaced by the scalar that a model sees."""
    # Rows that are no arcs get a harmless sweep, so that nothing is divided by zero.
    sweep = torch.where(is_arc, arc[..., layout.BEND], math.pi)
    if arc_scalar == "sweep":
        scalar = sweep / math.pi - 1
    else:
        chord = torch.linalg.vector_norm(arc[..., layout.END] - arc[..., layout.START], dim=-1)
        radius = chord / (2 * torch.sin(sweep / 2))
        scalar = torch.where(sweep <= math.pi + NEARLY_SEMICIRCLE, radius, -radius)
    return torch.cat([arc[..., : layout.BEND], scalar[..., None]], dim=-1)


def _own_params(batch: SketchBatch, kind: NDArray[np.int64]) -> NDArray[np.float64]:
    composite = batch.params.detach().cpu().double().numpy()
    params = np.zeros((*kind.shape, layout.MAX_KIND_PARAMS))
    for k in Kind:
        of_kind = kind == k
        own = composite[of_kind][:, layout.PARAMS_OF_KIND[k]]
        params[of_kind, : own.shape[1]] = own
    return params


def _sweep(arcs: NDArray[np.float64], arc_scalar: layout.ArcScalar) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The sweep of each arc row, and which had to be made semicircles."""
    bend = arcs[:, layout.BEND]
    if arc_scalar == "sweep":
        return (bend + 1) * math.pi, np.zeros(len(arcs), bool)
    half = np.hypot(*(arcs[:, layout.END] - arcs[:, layout.START]).T) / 2
    radius = np.abs(bend)
    short = radius < half * (1 - ROUNDING)
    with np.errstate(all="ignore"):
        minor = 2 * np.arcsin(np.minimum(1.0, half / radius))
    sweep = np.where(short, math.pi, np.where(bend < 0, TAU - minor, minor))
    return np.where(np.isfinite(bend), sweep, np.nan), short & np.isfinite(half)
