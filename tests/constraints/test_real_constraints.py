"""Inferred constraints against those that designers gave. The thresholds of inference were chosen by the file's first
300 sketches, so it is measured on later ones.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.constraint_recall import measure
from sketchdnn.formats import sketchgraphs
from sketchdnn.geometry import Sketch

KINDS = (
    "coincident",
    "horizontal",
    "vertical",
    "parallel",
    "perpendicular",
    "tangent",
    "equal",
    "concentric",
    "midpoint",
)


@pytest.fixture(scope="module")
def designed(real_data: Path) -> list[Sketch]:
    found = sketchgraphs.FORMAT.read(real_data / "sketchgraphs" / "sg_subset.npy")
    return [item for item in islice(found, 300, 800) if isinstance(item, Sketch) and len(item) >= 4]


@pytest.mark.parametrize(("jitter", "recall", "precision"), [(0.001, 0.95, 0.95), (0.005, 0.9, 0.85)])
def test_what_designers_meant_is_found(designed: list[Sketch], jitter: float, recall: float, precision: float) -> None:
    score = measure(designed, jitter, tolerance=jitter)  # told how far off things may be
    recalls = {kind: score.recall(kind) for kind in KINDS}
    assert min(recalls.values()) >= recall, recalls
    assert score.precision() >= precision
    assert max(score.residuals) < 1e-9
    assert np.mean(score.displacements) <= np.mean(score.jitters)
    assert score.failed <= 0.02 * len(designed)
