"""Sketches as the rows a system works on."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sketchdnn.geometry import Sketch
from sketchdnn.representation import SketchBatch, encode
from sketchdnn.representation.codec import expand
from sketchdnn.systems import RowForm


def rows_of(sketches: Sequence[Sketch], form: RowForm, device: torch.device | str = "cpu") -> SketchBatch:
    """Clean rows in the form that a system was trained on; the sketches lie in its frame."""
    compact = encode(sketches, canonical_lines=form.canonical_lines)
    kind, construction, params = (
        torch.from_numpy(part).to(device) for part in (compact.kind, compact.construction, compact.params)
    )
    return expand(kind, construction, params, arc_scalar=form.arc_scalar, none_construction=form.none_construction)
