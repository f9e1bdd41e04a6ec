"""A split of a dataset held on the device as compact rows, handed out as augmented batches.

A sketch is as good turned by a quarter or mirrored, so each is seen in its eight symmetric copies. Varied in another
way (`variation.py`) it is something else, and those who ask for it know.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import expand, smaller_end_first
from sketchdnn.representation.compact import Compact
from sketchdnn.systems import RowForm

from .variation import Variation, vary

NUM_SYMMETRIES = 8
OUR_ROWS = RowForm()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Compact rows of many sketches, on one device."""

    kind: Int[Tensor, "sketch prim"]
    construction: Bool[Tensor, "sketch prim"]
    params: Float[Tensor, "sketch prim 5"]

    def __len__(self) -> int:
        return len(self.kind)

    def batch(
        self,
        index: Int[Tensor, " batch"],
        symmetry: Int[Tensor, " batch"],
        form: RowForm = OUR_ROWS,
        variation: Variation | None = None,
    ) -> SketchBatch:
        """Some sketches as composite rows, each turned or mirrored as its number in 0..7 says; 0 leaves it as it is."""
        kind, params = self.kind[index], self.params[index]
        if variation is not None:
            params = vary(kind, params, variation)
        params = turn(kind, params, symmetry)
        if form.canonical_lines:
            params = smaller_end_first(kind, params)
        return expand(
            kind,
            self.construction[index],
            params,
            arc_scalar=form.arc_scalar,
            none_construction=form.none_construction,
        )


def to_device(compact: Compact, device: torch.device | str) -> Corpus:
    """Copy a split onto a device, where it stays."""
    return Corpus(
        torch.tensor(compact.kind, device=device),
        torch.tensor(compact.construction, device=device),
        torch.tensor(compact.params, device=device),
    )


def turn(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"], symmetry: Int[Tensor, " batch"]
) -> Float[Tensor, "batch prim 5"]:
    """One of the eight symmetries of the square: mirrored in x if the number is 4 or more, then quarter turns."""
    mirror = (symmetry >= NUM_SYMMETRIES // 2)[:, None, None]
    quarters = (symmetry % (NUM_SYMMETRIES // 2))[:, None]
    start = _turn_places(params[..., layout.START], mirror, quarters)
    end = _turn_places(params[..., layout.END], mirror, quarters)
    # An arc runs counter-clockwise, so its mirror image runs from the image of its end.
    swap = mirror & (kind == Kind.ARC.value)[..., None]
    start, end = torch.where(swap, end, start), torch.where(swap, start, end)
    has_end = ((kind == Kind.LINE.value) | (kind == Kind.ARC.value))[..., None]
    end = torch.where(has_end, end, params[..., layout.END])  # a circle keeps its radius there
    return torch.cat([start, end, params[..., layout.BEND :]], dim=-1)


def _turn_places(places: Tensor, mirror: Tensor, quarters: Tensor) -> Tensor:
    x, y = places.unbind(dim=-1)
    x = torch.where(mirror[..., 0], -x, x)
    cos = (quarters == 0).to(places) - (quarters == 2).to(places)
    sin = (quarters == 1).to(places) - (quarters == 3).to(places)
    return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)
