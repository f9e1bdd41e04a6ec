"""A batch of sketches as named tensors: what diffusion, networks and training pass around."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.geometry import Kind

from . import layout


@dataclass(frozen=True, slots=True)
class SketchBatch:
    """Composite rows, the paper's superposition: every row carries the parameters of every kind.

    Clean rows hold one-hot `construction` and `kind` and zeros in the parameters of other kinds; noisy rows hold points
    of the simplex and noise.
    """

    construction: Float[Tensor, "batch prim 2"]
    kind: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    def of_kind(self, kind: Kind) -> Float[Tensor, "batch prim param"]:
        """The parameters that would hold if every row were of this kind."""
        return self.params[..., layout.PARAMS_OF_KIND[kind]]

    def to(self, *args: object, **kwargs: object) -> SketchBatch:
        return SketchBatch(
            self.construction.to(*args, **kwargs),  # type: ignore[call-overload]
            self.kind.to(*args, **kwargs),  # type: ignore[call-overload]
            self.params.to(*args, **kwargs),  # type: ignore[call-overload]
        )

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, index: slice | Tensor) -> SketchBatch:
        return SketchBatch(self.construction[index], self.kind[index], self.params[index])

    def settled(self) -> SketchBatch:
        """Clean rows: each the likeliest of what it may be, with the parameters of that kind alone."""
        kind = self.kind.argmax(dim=-1)
        return SketchBatch(
            one_hot(self.construction.argmax(dim=-1), layout.NUM_CONSTRUCTION).to(self.construction),
            one_hot(kind, layout.NUM_KINDS).to(self.kind),
            self.params * relevant(kind),
        )

    def permuted(self, order: Int[Tensor, "batch prim"]) -> SketchBatch:
        """The rows of each sketch in another order."""

        def take(rows: Tensor) -> Tensor:
            return rows.gather(1, order[..., None].expand_as(rows))

        return SketchBatch(take(self.construction), take(self.kind), take(self.params))

    def flat(self) -> Float[Tensor, "batch prim 21"]:
        """The matrix X of the paper: construction, kind, parameters side by side."""
        return torch.cat([self.construction, self.kind, self.params], dim=-1)


def from_flat(rows: Float[Tensor, "batch prim 21"]) -> SketchBatch:
    """The inverse of `SketchBatch.flat`."""
    widths = [layout.NUM_CONSTRUCTION, layout.NUM_KINDS, layout.NUM_PARAMS]
    parts = torch.split(rows, widths, dim=-1)
    return SketchBatch(*parts)


def relevant(kind: Int[Tensor, "*rows"]) -> Bool[Tensor, "*rows 14"]:
    """Which parameter columns matter to rows of these kinds: those of the row's own kind, none for NONE."""
    # Side by side, not by an index: a device need not wait for one to arrive.
    widths = ((of.value, len(names)) for of, names in layout.PARAM_NAMES.items())
    return torch.cat([(kind == of)[..., None].expand(*kind.shape, width) for of, width in widths], dim=-1)
