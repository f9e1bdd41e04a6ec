"""Known parts of a sketch that a sampler keeps: whole rows, or single labels and parameters.

The sampler replaces the network's prediction of a known part by its value. The part then follows the forward process
backwards to that value, and the rest is generated to fit.
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

from .checks import check_shape, check_simplex
from .process import LogitBatch

# `conditional`: the network sees known parts clean and must have been trained so. `repaint`: it sees them as noisy as
# the rest, which works with any network (RePaint, Lugmayr et al. 2022).
ConditioningMethod = Literal["conditional", "repaint"]


@dataclass(frozen=True, slots=True)
class Conditioning:
    """Values in `batch`, and masks of the labels and single parameters that are known.

    With `resamples` > 1 every stretch of `jump` steps is repeated that many times, with noise added in between, so that
    early decisions adapt to the known parts (RePaint).
    """

    batch: SketchBatch
    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim 14"]
    method: ConditioningMethod = "repaint"
    resamples: int = 1
    jump: int = 1

    def __post_init__(self) -> None:
        check_shape(self.batch, "conditioning.batch")
        rows = tuple(self.batch.kind.shape[:2])
        shapes = {"construction": rows, "kind": rows, "params": (*rows, layout.NUM_PARAMS)}
        for name, shape in shapes.items():
            mask: Tensor = getattr(self, name)
            if mask.dtype != torch.bool or tuple(mask.shape) != shape:
                raise ValueError(
                    f"conditioning.{name} must be a mask of shape {shape}, not {mask.dtype} of {tuple(mask.shape)}"
                )
        check_simplex(self.batch.construction[self.construction], "conditioning.batch.construction")
        check_simplex(self.batch.kind[self.kind], "conditioning.batch.kind")
        if not bool(self.batch.params[self.params].isfinite().all()):
            raise ValueError("conditioning.batch.params must be finite where the mask is set")
        if self.method not in get_args(ConditioningMethod):
            raise ValueError(f"conditioning.method must be one of {get_args(ConditioningMethod)}, not {self.method!r}")
        if self.resamples < 1 or self.jump < 1:
            raise ValueError(
                f"conditioning.resamples and jump must be at least 1, not {self.resamples} and {self.jump}"
            )

    @property
    def masks(self) -> tuple[Tensor, Tensor, Tensor]:
        """The masks, in shapes that broadcast against the parts of a batch."""
        return self.construction[..., None], self.kind[..., None], self.params

    def to(self, like: Tensor) -> Conditioning:
        """Move to the device and precision of the sampled state."""
        construction, kind, params = (mask.to(like.device) for mask in (self.construction, self.kind, self.params))
        return replace(self, batch=self.batch.to(like), construction=construction, kind=kind, params=params)

    def fill_logits(self, clean: LogitBatch, label_smoothing: float) -> LogitBatch:
        """The inputs of the reverse mean, with the known values in place."""
        return clean.replace_where(self.masks, LogitBatch.from_sketch(self.batch, label_smoothing))

    def fill_rows(self, batch: SketchBatch) -> SketchBatch:
        """The batch with the known values in place, to the bit."""
        construction, kind, params = self.masks
        return SketchBatch(
            torch.where(construction, self.batch.construction, batch.construction),
            torch.where(kind, self.batch.kind, batch.kind),
            torch.where(params, self.batch.params, batch.params),
        )

    def fill_prediction(self, prediction: Prediction) -> Prediction:
        """The prediction with the known values in place; a known label has logits 0 and −inf."""
        construction, kind, params = self.masks
        return Prediction(
            torch.where(construction, self.batch.construction.log(), prediction.construction_logits),
            torch.where(kind, self.batch.kind.log(), prediction.kind_logits),
            torch.where(params, self.batch.params, prediction.params),
        )

    def visible(self, batch: SketchBatch) -> SketchBatch:
        """The batch as the network sees it: known parts clean if the method is `conditional`."""
        return self.fill_rows(batch) if self.method == "conditional" else batch


def condition_on_rows(
    batch: SketchBatch,
    rows: Bool[Tensor, "batch prim"],
    *,
    method: ConditioningMethod = "repaint",
    resamples: int = 1,
    jump: int = 1,
) -> Conditioning:
    """Conditioning on whole rows, as for the completion of a sketch."""
    return Conditioning(batch, rows, rows, rows[..., None].expand_as(batch.params), method, resamples, jump)
