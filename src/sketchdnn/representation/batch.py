"""A batch of sketches as tensors, and its conversion from compact rows and back to sketches.

The scalar that bends an arc:

| `arc_scalar` | column holds | used by |
|---|---|---|
| `signed_radius` | the radius, + for the minor arc, − for the major one; unbounded | paper, authors |
| `sweep` | sweep/π − 1, in (−1, 1); 0 is a semicircle | ours, default |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.geometry import TAU, Kind, Sketch

from . import layout
from .compact import SAME_X, encode
from .decoding import SHORT_RADIUS, Decoded, Issue, decode_rows
from .layout import ArcScalar, NoneConstruction

# Arcs this close to a semicircle, in radians, are written as minor arcs: in single precision, rounding would decide the
# sign of the radius.
NEARLY_SEMICIRCLE = 1e-4
# A radius below half the chord by less than this fraction is a rounded semicircle, not a repair.
ROUNDING = 1e-6

CompactParams = Float[Tensor, "batch prim 5"]


@dataclass(frozen=True, slots=True)
class SketchBatch:
    """Composite rows, the paper's superposition: every row contains the parameters of every kind.

    Clean rows have one-hot `construction` and `kind`, and zeros in the parameters of other kinds. Noisy rows have
    points of the simplex and noisy parameters.

    >>> from sketchdnn.geometry import Circle, Line
    >>> batch = SketchBatch.from_sketches([Sketch((Line((-1, 0), (1, 0)), Circle((0, 0), 0.5)))])
    >>> len(batch), batch.kind.shape
    (1, torch.Size([1, 16, 5]))
    >>> batch.to_sketches()[0].primitives[1]
    Circle(center=(0.0, 0.0), radius=0.5, construction=False)
    """

    construction: Float[Tensor, "batch prim 2"]
    kind: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    @classmethod
    def from_sketches(
        cls,
        sketches: Sequence[Sketch],
        *,
        arc_scalar: ArcScalar = "sweep",
        none_construction: NoneConstruction = "one_hot",
    ) -> SketchBatch:
        """Encode sketches in the coordinates of a model: a box of about ±1, as `geometry.normalize` makes them.

        Raises:
            SketchError: A sketch has more than `layout.MAX_PRIMITIVES` primitives.
        """
        compact = encode(sketches)
        kind, construction, params = map(torch.from_numpy, (compact.kind, compact.construction, compact.params))
        return expand(kind, construction, params, arc_scalar=arc_scalar, none_construction=none_construction)

    def to_sketches(self, arc_scalar: ArcScalar = "sweep") -> list[Sketch]:
        """Decode to sketches; `decode` also tells what it repaired or rejected."""
        return [decoded.sketch for decoded in decode(self, arc_scalar)]

    def of_kind(self, kind: Kind) -> Float[Tensor, "batch prim param"]:
        """The parameter columns of a kind, for all rows."""
        return self.params[..., layout.PARAMS_OF_KIND[kind]]

    def to(self, *args: object, **kwargs: object) -> SketchBatch:
        return self._map(lambda part: part.to(*args, **kwargs))  # type: ignore[call-overload]

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, index: slice | Tensor) -> SketchBatch:
        return self._map(lambda part: part[index])

    def most_likely(self) -> SketchBatch:
        """Clean rows: the most likely flag and kind of each row, with the parameters of that kind only."""
        kind = self.kind.argmax(dim=-1)
        construction = one_hot(self.construction.argmax(dim=-1), layout.NUM_CONSTRUCTION).to(self.construction)
        return SketchBatch(construction, one_hot(kind, layout.NUM_KINDS).to(self.kind), self.params * relevant(kind))

    def permuted(self, order: Int[Tensor, "batch prim"]) -> SketchBatch:
        """The batch with its rows reordered."""
        return self._map(lambda part: part.gather(1, order[..., None].expand_as(part)))

    def flat(self) -> Float[Tensor, "batch prim 21"]:
        """The matrix X of the paper: construction, kind and parameters, concatenated."""
        return torch.cat([self.construction, self.kind, self.params], dim=-1)

    def _map(self, function: Callable[[Tensor], Tensor]) -> SketchBatch:
        return SketchBatch(function(self.construction), function(self.kind), function(self.params))


@dataclass(frozen=True, slots=True)
class Prediction:
    """A denoiser's estimate of the clean sketch: label logits (before softmax) and the parameters of every kind."""

    construction_logits: Float[Tensor, "batch prim 2"]
    kind_logits: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    @property
    def construction(self) -> Float[Tensor, "batch prim 2"]:
        return self.construction_logits.softmax(dim=-1)

    @property
    def kind(self) -> Float[Tensor, "batch prim 5"]:
        return self.kind_logits.softmax(dim=-1)


def from_flat(rows: Float[Tensor, "batch prim 21"]) -> SketchBatch:
    """The inverse of `SketchBatch.flat`."""
    return SketchBatch(*torch.split(rows, layout.PART_WIDTHS, dim=-1))


def relevant(kind: Int[Tensor, "*rows"]) -> Bool[Tensor, "*rows 14"]:
    """Mask of the parameter columns of each row's own kind; none for NONE."""
    return to_columns([kind == of.value for of in Kind])


def to_columns(of_kinds: Sequence[Shaped[Tensor, "*rows"]]) -> Shaped[Tensor, "*rows 14"]:
    """A number of each kind, repeated for the parameter columns of that kind."""
    # Concatenated, not indexed: an index would have to be copied to the device.
    pairs = zip(of_kinds, layout.PARAM_NAMES.values(), strict=True)
    return torch.cat([number[..., None].expand(*number.shape, len(names)) for number, names in pairs], dim=-1)


def expand(
    kind: Int[Tensor, "batch prim"],
    construction: Bool[Tensor, "batch prim"],
    params: CompactParams,
    *,
    arc_scalar: ArcScalar = "sweep",
    none_construction: NoneConstruction = "one_hot",
) -> SketchBatch:
    """Composite rows: the parameters of the row's kind in the columns of that kind, zeros in all others.

    Args:
        kind: The kind of each row, `layout.NONE` for an empty one.
        construction: The construction flags.
        params: Compact parameters.
        arc_scalar: See the table above.
        none_construction: The flag of an empty row: "one_hot" as in the paper, "zero" as in the authors' code.
    """
    _check_choice(arc_scalar, ArcScalar)
    _check_choice(none_construction, NoneConstruction)
    kind = kind.long()
    bits = one_hot(construction.long(), layout.NUM_CONSTRUCTION).to(params.dtype)
    if none_construction == "zero":
        bits = bits * (kind != layout.NONE)[..., None]
    columns = []
    for k in Kind:
        own = params[..., : len(layout.PARAM_NAMES[k])]
        of_kind = kind == k.value  # torch.compile cannot compare a tensor with an enum
        if k is Kind.ARC:
            own = _to_scalar(own, of_kind, arc_scalar)
        columns.append(torch.where(of_kind[..., None], own, 0.0))
    return SketchBatch(bits, one_hot(kind, layout.NUM_KINDS).to(params.dtype), torch.cat(columns, dim=-1))


def smaller_end_first(kind: Int[Tensor, "batch prim"], params: CompactParams) -> CompactParams:
    """Lines from their lexicographically smaller end, since the direction of a line carries no meaning."""
    start, end = params[..., layout.START], params[..., layout.END]
    dx, dy = (end - start).unbind(dim=-1)
    backwards = torch.where(dx.abs() <= SAME_X, dy < 0, dx < 0) & (kind == Kind.LINE.value)
    swap = backwards[..., None]
    return torch.cat([torch.where(swap, end, start), torch.where(swap, start, end), params[..., layout.BEND :]], dim=-1)


def decode(batch: SketchBatch, arc_scalar: ArcScalar = "sweep") -> list[Decoded]:
    """The sketches of a batch, with the most likely kind and flag of each row, and what was repaired or rejected.

    A row with a NaN in its parameters or class probabilities is rejected and reported.
    """
    _check_choice(arc_scalar, ArcScalar)
    kind = batch.kind.argmax(dim=-1).cpu().numpy()
    construction = batch.construction.argmax(dim=-1).cpu().numpy() == 1
    params = _compact_params(batch, kind)
    # A row without a finite class is rejected through its parameters.
    unknown = ~torch.isfinite(batch.kind.sum(dim=-1) + batch.construction.sum(dim=-1)).cpu().numpy()
    kind[unknown], params[unknown] = Kind.POINT, np.nan

    arcs = kind == Kind.ARC
    params[arcs, layout.BEND], short = _to_sweep(params[arcs], arc_scalar)
    repairs: list[list[Issue]] = [[] for _ in range(len(kind))]
    for sketch, row in np.argwhere(arcs)[short].tolist():
        repairs[sketch].append(Issue(row, SHORT_RADIUS))
    return decode_rows(kind, construction, params, repairs)


def _check_choice(choice: str, choices: object) -> None:
    if choice not in get_args(choices):
        raise ValueError(f"'{choice}' is not one of {', '.join(get_args(choices))}")


def _to_scalar(arc: Tensor, is_arc: Tensor, arc_scalar: ArcScalar) -> Tensor:
    """Arc parameters with the sweep replaced by the arc scalar."""
    # Rows of other kinds get a sweep that avoids a division by zero.
    sweep = torch.where(is_arc, arc[..., layout.BEND], math.pi)
    if arc_scalar == "sweep":
        scalar = sweep / math.pi - 1
    else:
        chord = torch.linalg.vector_norm(arc[..., layout.END] - arc[..., layout.START], dim=-1)
        radius = chord / (2 * torch.sin(sweep / 2))
        scalar = torch.where(sweep <= math.pi + NEARLY_SEMICIRCLE, radius, -radius)
    return torch.cat([arc[..., : layout.BEND], scalar[..., None]], dim=-1)


def _compact_params(batch: SketchBatch, kind: NDArray[np.int64]) -> NDArray[np.float64]:
    composite = batch.params.detach().cpu().double().numpy()
    params = np.zeros((*kind.shape, layout.MAX_KIND_PARAMS))
    for k in Kind:
        of_kind = kind == k
        own = composite[of_kind][:, layout.PARAMS_OF_KIND[k]]
        params[of_kind, : own.shape[1]] = own
    return params


def _to_sweep(arcs: NDArray[np.float64], arc_scalar: ArcScalar) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The sweep of each arc row, and a mask of those that became semicircles."""
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
