"""What is given in training: how it is drawn, shown to the network clean, and left out of the loss."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from .system import GivenFlags

# A certain label as logits: far enough that its cross entropy vanishes, near enough that no arithmetic overflows.
_CERTAIN = 30.0


def draw_given(uniform: Float[Tensor, "batch number"], kind: Int[Tensor, "batch prim"], share: float) -> GivenFlags:
    """What is given in training: nothing, but for a `share` of sketches some rows, all kinds, or which rows are empty.

    Takes the first 3 + rows of the uniform numbers of each sketch.
    """
    chance, task, part = uniform[:, 0:1], uniform[:, 1:2], uniform[:, 2:3]
    some = chance < share
    rows = some & (task < 0.4) & (uniform[:, 3 : 3 + kind.shape[1]] < part)
    kinds = some & (task >= 0.4) & (task < 0.7)
    empty = some & (task >= 0.7) & (kind == layout.NONE)
    return GivenFlags(construction=rows | empty, kind=rows | kinds | empty, params=rows | empty)


def shown(given: GivenFlags, clean: SketchBatch, noisy: SketchBatch) -> SketchBatch:
    """Noisy rows, clean where they are given."""
    return SketchBatch(
        torch.where(given.construction[..., None], clean.construction, noisy.construction),
        torch.where(given.kind[..., None], clean.kind, noisy.kind),
        torch.where(given.params[..., None], clean.params, noisy.params),
    )


def told(given: GivenFlags, x0: SketchBatch, said: Prediction) -> Prediction:
    """A prediction with the truth where it is given."""
    return Prediction(
        torch.where(given.construction[..., None], _CERTAIN * x0.construction, said.construction_logits),
        torch.where(given.kind[..., None], _CERTAIN * x0.kind, said.kind_logits),
        torch.where(given.params[..., None], x0.params, said.params),
    )
