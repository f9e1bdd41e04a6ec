"""Trace a picture of a drawing: primitives with constraints.

The picture is read and straightened, ink becomes strokes, strokes become curves under several assumptions, and the best
candidate is repaired and constrained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sketchdnn.constraints import REPAIR_TOLERANCE, ConstrainOptions, ConstrainResult, constrain
from sketchdnn.errors import SketchError
from sketchdnn.geometry import MM_PER_UNIT, Sketch, bounds

from .candidates import Candidate, Strokes, candidates, find_skew, find_strokes
from .ink import Ink, find_ink
from .proposals import Propose, proposed
from .raster import rasterize
from .reading import Picture, read_picture
from .skeleton import MAX_SKELETON

# From this noise on a drawing is made by hand, and the repair may move things so far; both are shares of the size.
_BY_HAND, _HAND_TOLERANCE = 0.004, 0.03
# More primitives take long to repair with the tolerance of drawings by hand.
_FEW = 32
_MAX_PRIMITIVES = 400
_NO_DRAWING = "no line drawing was found in the picture: it shows too much, or nothing but specks"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How to trace.

    Attributes:
        size: The larger side of the drawing, in `units`; by default 100.
        units: The unit of the sketch.
        page: The page of a PDF, from 1.
        constrain: Repair the sketch and infer its constraints.
        close: In a drawing by hand, add the line that an open outline lacks, and make open curves beside closed
            outlines construction.
    """

    size: float = 100.0
    units: str = "mm"
    page: int = 1
    constrain: bool = True
    close: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.size < 1e9:
            raise SketchError(f"the size of a drawing is a length above zero, not {self.size:g}")
        if self.units not in MM_PER_UNIT:
            raise SketchError(f"{self.units!r:.20} is not a known unit; use one of {', '.join(MM_PER_UNIT)}")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """A traced sketch.

    Attributes:
        sketch: The sketch with constraints.
        raw: The curves as they were fitted, before repair, in the same coordinates.
        picture: The straightened picture.
        to_picture: Maps sketch coordinates to pixels of `picture`, 3 by 3.
        to_source: Maps pixels of `picture` to those of the picture as it was read, 3 by 3.
        noise: The assumed noise of the drawing, as a share of its size.
        distance: Root mean squared distance of ink to curves, as a share of the size.
        dof: Degrees of freedom.
        candidates: The number of candidates that were compared.
        warning: What was not done.
        is_proposal: Whether the best candidate is one that a network proposed.
    """

    sketch: Sketch
    raw: Sketch
    picture: Picture
    to_picture: NDArray[np.float64]
    to_source: NDArray[np.float64]
    noise: float
    distance: float
    dof: int
    candidates: int
    warning: str | None = None
    is_proposal: bool = False


def trace(
    source: str | Path | bytes | Picture, options: TraceOptions | None = None, propose: Propose | None = None
) -> TraceResult:
    """Trace a photo, scan or screenshot of a drawing.

    Args:
        source: A file, the content of a file, or an array of RGB pixels.
        options: Size, units and the like.
        propose: Proposes further candidates for a raster of the ink, as the model of `generation.trace` does.

    Raises:
        SketchError: If it is no picture, or shows no drawing.
    """
    options = options or TraceOptions()
    picture = source if isinstance(source, np.ndarray) else read_picture(source, options.page)
    ink = find_ink(picture)
    if skew := _skew(ink):
        ink = find_ink(picture, -skew)
    found = find_candidates(ink)
    best = max(found, key=lambda each: each.score)
    if best.is_tangle:
        raise SketchError(_NO_DRAWING)
    if propose is not None and len(best.sketch) <= _FEW:
        found += _proposals(ink, propose)
        best = max(found, key=lambda each: each.score)
    constrained = _constrained(best, options)
    box = bounds(best.sketch)
    scale = options.size / max(box.size, 1e-9)
    x, y = box.center
    by = (-scale * x, -scale * y)
    # The sketch is in pixels with y up: y of a pixel is −y.
    to_picture = np.array([[1 / scale, 0, x], [0, -1 / scale, -y], [0, 0, 1]])
    final = replace(constrained.sketch.moved(scale, by), units=options.units)
    raw = replace(best.sketch.moved(scale, by), units=options.units)
    return TraceResult(
        final, raw, ink.picture, to_picture, ink.to_source, best.noise, best.backward, constrained.dof, len(found),
        constrained.warning, best.is_proposal,
    )  # fmt: skip


def _skew(ink: Ink) -> float:
    """The skew of a drawing in radians, counter-clockwise as seen."""
    strokes = _strokes(ink, ink.thresholds[0])
    return find_skew(strokes) if strokes else 0.0


def _strokes(ink: Ink, threshold: float) -> Strokes | None:
    """The strokes at a threshold; None if there are none, or more than a drawing has."""
    strokes = find_strokes(ink.mask(threshold))
    if strokes is None or np.count_nonzero(strokes.skeleton) > MAX_SKELETON:
        return None
    return strokes if len(strokes.graph.strokes) <= _MAX_PRIMITIVES else None


def find_candidates(ink: Ink) -> list[Candidate]:
    """All candidates of a picture.

    Raises:
        SketchError: If there is none.
    """
    found: list[Candidate] = []
    for threshold in ink.thresholds:
        strokes = _strokes(ink, threshold)
        if strokes is None:
            continue
        found += [each for each in candidates(strokes) if len(each.sketch) <= _MAX_PRIMITIVES]
    if not found:
        raise SketchError(_NO_DRAWING)
    return found


def _proposals(ink: Ink, propose: Propose) -> list[Candidate]:
    """Candidates from another source than the strokes, fitted to the strokes at the likeliest threshold."""
    strokes = _strokes(ink, ink.thresholds[0])
    if strokes is None:
        return []
    raster = rasterize(ink.mask(ink.thresholds[0]))
    return list(proposed(propose(raster), raster, strokes))


def _constrained(candidate: Candidate, options: TraceOptions) -> ConstrainResult:
    if not options.constrain:
        return ConstrainResult(candidate.sketch)
    by_hand = candidate.noise > _BY_HAND
    tolerance = _HAND_TOLERANCE if by_hand and len(candidate.sketch) <= _FEW else REPAIR_TOLERANCE
    return constrain(candidate.sketch, ConstrainOptions(tolerance=tolerance, close=options.close and by_hand))
