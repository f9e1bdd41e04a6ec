"""What is known of a sketch before it is drawn: whole rows, or parts of rows, that a sampler must keep.

A sampler that is told the truth about some parts replaces the network's prediction of them by it. Those parts then walk
from noise to their values exactly as the forward process would have them, and the rest is drawn to fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Bool
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from . import latent
from .check import check_shape, check_simplex
from .latent import Latent

# `noised`: the network sees given parts as noisy as the rest; any network will do. `clean`: it sees them as they are,
# for a network that was trained to.
Way = Literal["noised", "clean"]


@dataclass(frozen=True, slots=True)
class Given:
    """Values in `batch`, and where they hold: the masks say which labels and which single parameters are known.

    With `resamples` > 1 every stretch of `jump` steps is walked that many times, noised again
    in between (RePaint, Lugmayr et al. 2022): what is drawn early gets to hear of what is given.
    """

    batch: SketchBatch
    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim 14"]
    way: Way = "noised"
    resamples: int = 1
    jump: int = 1

    def __post_init__(self) -> None:
        check_shape(self.batch, "given.batch")
        rows = tuple(self.batch.kind.shape[:2])
        shapes = {"construction": rows, "kind": rows, "params": (*rows, layout.NUM_PARAMS)}
        for name, shape in shapes.items():
            mask: Tensor = getattr(self, name)
            if mask.dtype != torch.bool or tuple(mask.shape) != shape:
                raise ValueError(
                    f"given.{name} must be a mask of shape {shape}, not {mask.dtype} of shape {tuple(mask.shape)}"
                )
        check_simplex(self.batch.construction[self.construction], "given.batch.construction")
        check_simplex(self.batch.kind[self.kind], "given.batch.kind")
        if not bool(self.batch.params[self.params].isfinite().all()):
            raise ValueError("given.batch.params must be finite where it is given")
        if self.way not in get_args(Way):
            raise ValueError(f"given.way must be one of {get_args(Way)}, not {self.way!r}")
        if self.resamples < 1 or self.jump < 1:
            raise ValueError(f"given.resamples and given.jump must be at least 1, not {self.resamples} and {self.jump}")

    @property
    def masks(self) -> tuple[Tensor, Tensor, Tensor]:
        """The masks, in shapes that broadcast against the parts of a batch."""
        return self.construction[..., None], self.kind[..., None], self.params

    def tell(self, clean: Latent, label_smoothing: float) -> Latent:
        """What goes into the reverse mean, with the truth where it is given, whatever form the rest has."""
        return latent.where(self.masks, latent.of_sketch(self.batch, label_smoothing), clean)

    def to(self, like: Tensor) -> Given:
        """On the device and in the precision of the walk."""
        construction, kind, params = (mask.to(like.device) for mask in (self.construction, self.kind, self.params))
        return replace(self, batch=self.batch.to(like), construction=construction, kind=kind, params=params)

    def keep(self, batch: SketchBatch) -> SketchBatch:
        """The batch with its given parts as they were given, to the bit."""
        construction, kind, params = self.masks
        return SketchBatch(
            torch.where(construction, self.batch.construction, batch.construction),
            torch.where(kind, self.batch.kind, batch.kind),
            torch.where(params, self.batch.params, batch.params),
        )

    def correct(self, prediction: Prediction) -> Prediction:
        """The prediction with the truth where it is given; a certain label has logits 0 and −inf."""
        construction, kind, params = self.masks
        return Prediction(
            torch.where(construction, self.batch.construction.log(), prediction.construction_logits),
            torch.where(kind, self.batch.kind.log(), prediction.kind_logits),
            torch.where(params, self.batch.params, prediction.params),
        )


def given_rows(
    batch: SketchBatch, rows: Bool[Tensor, "batch prim"], *, way: Way = "noised", resamples: int = 1, jump: int = 1
) -> Given:
    """Whole rows are known, as when a sketch is to be completed."""
    return Given(batch, rows, rows, rows[..., None].expand_as(batch.params), way, resamples, jump)
