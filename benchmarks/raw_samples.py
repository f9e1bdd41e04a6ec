"""Sketches as a model drew them, and real ones beside them, for measurements of what happens to them next."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.formats import read
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.geometry import Sketch, bounds
from sketchdnn.representation import decode_compact
from sketchdnn.systems import from_pretrained


def drawn_sketches(count: int, *, model: str = "ours", seed: int = 0, samples: Path | None = None) -> list[Sketch]:
    """Draw so many, without repair, or take the first of a file or folder that holds them."""
    if samples is None:
        request = GenerateRequest(count=count, seed=seed, repair=False)
        found = [drawing.sketch for drawing in stream(from_pretrained(model), request)]
    else:
        found = list(read(samples).sketches)
    sketches = [sketch for sketch in found if sketch is not None and len(sketch) and bounds(sketch).size > 0][:count]
    if len(sketches) < count and samples is not None:
        raise SketchError(f"{count:,} sketches are to be measured, and {samples} holds {len(sketches):,}")
    return sketches


def real_sketches(data: Path, count: int, seed: int = 0) -> list[Sketch]:
    """So many of a corpus' test split, by lot."""
    test = Dataset.open(data).split("test").compact
    if len(test) < count:
        raise SketchError(f"{count:,} real sketches are to be measured, and the test split has {len(test):,}")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(test))[:count])
    return [decoded.sketch for decoded in decode_compact(test[chosen])]
