"""Pictures for a human look: sheets of sketches nobody chose, and galleries of best, typical and worst by a score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact, decode_compact

from .document import Gallery
from .gaps import end_gaps

SHEET_SIZE, SHEET_COLUMNS = 64, 8
GALLERY_SIZE = 16
SCORE = "the largest end gap of a sketch: how far its loneliest end of a line or arc is from the nearest other end"


def sketches_of(compact: Compact, index: Sequence[int] | NDArray[np.integer]) -> list[Sketch]:
    """Some sketches of a set, as they are drawn."""
    return [decoded.sketch for decoded in decode_compact(compact[np.asarray(index, np.int64)])]


def write_sheet(compact: Compact, path: Path) -> None:
    """64 sketches of a set in one picture, drawn by lot: a file may be sorted."""
    from sketchdnn.render import gallery_png

    shown = sketches_of(compact, np.random.default_rng(0).permutation(len(compact))[:SHEET_SIZE])
    with atomic_write(path) as temporary:
        gallery_png(shown, columns=SHEET_COLUMNS).save(temporary, format="png")


def largest_gaps(compact: Compact) -> NDArray[np.float64]:
    """Of each sketch; not a number where it has no ends, infinite where one end is alone."""
    gaps = end_gaps(compact).reshape(len(compact), -1)
    has_ends = ~np.isnan(gaps).all(axis=1)
    largest = np.full(len(compact), np.nan)
    largest[has_ends] = np.nanmax(gaps[has_ends], axis=1)
    return largest


def chosen(compact: Compact) -> dict[str, list[int]]:
    """Which sketches are the best, the typical and the worst by `SCORE`; none is in two of them.

    Sketches without ends, of circles and points alone, have no such score and are in none.
    """
    gaps = largest_gaps(compact)
    scored = np.flatnonzero(~np.isnan(gaps))
    order = scored[np.argsort(gaps[scored], kind="stable")]
    each = min(GALLERY_SIZE, len(order) // 3)
    middle = (len(order) - each) // 2
    return {
        "best": order[:each].tolist(),
        "typical": order[middle : middle + each].tolist(),
        "worst": order[len(order) - each :][::-1].tolist(),
    }


def galleries(compact: Compact, which: dict[str, list[int]]) -> list[Gallery]:
    """The chosen sketches with their scores."""
    titles = {"best": "Best", "typical": "Typical: around the median", "worst": "Worst"}
    found = []
    for name, index in which.items():
        gaps = largest_gaps(compact[np.asarray(index, np.int64)])
        captions = [f"gap {gap:.2g}" for gap in gaps.tolist()]
        found.append(Gallery(titles[name], sketches_of(compact, index), captions))
    return found
