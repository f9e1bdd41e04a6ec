"""Pictures: sketches drawn by lot, and the best, typical and worst by the gap that they are chosen by."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from PIL import Image
from support.judging import drawn_parts

from sketchdnn.evaluation.curves import largest_gaps
from sketchdnn.evaluation.plots import GALLERY_SIZE, make_galleries, select_galleries, write_sheet
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.geometry import Circle, Line, Sketch, normalize
from sketchdnn.representation import encode


def square(gap: float) -> Sketch:
    """A square whose last corner is open by so much."""
    corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0 + gap)]
    return Sketch(tuple(Line(a, b) for a, b in itertools.pairwise(corners)))


def test_the_largest_gap_of_each_sketch() -> None:
    rows = encode([square(0.0), square(0.25), Sketch((Circle((0, 0), 1),)), Sketch((Line((-1, 0), (1, 0)),))])
    gaps = largest_gaps(rows)
    assert np.allclose(gaps[:2], [0, 0.25])
    assert np.isnan(gaps[2])
    assert np.isinf(gaps[3])


def test_best_is_better_than_typical_is_better_than_worst() -> None:
    sigmas = np.linspace(0, 0.2, 90)
    rows = encode([normalize(square(float(gap)))[0] for gap in np.random.default_rng(0).permutation(sigmas)])
    which = select_galleries(rows)
    best, typical, worst = (largest_gaps(rows[np.array(which[name])]) for name in ("best", "typical", "worst"))
    assert len(best) == len(typical) == len(worst) == GALLERY_SIZE == 16
    assert best.max() < typical.min()
    assert typical.max() < worst.min()
    middle = np.median(largest_gaps(rows))
    assert typical.min() <= middle <= typical.max()
    captions = make_galleries(rows, which)[0].captions
    assert captions[0] == "gap 0"


def test_few_sketches_are_in_one_gallery_each() -> None:
    rows = jitter_ends(encode([normalize(sketch)[0] for sketch in drawn_parts(7)]), 0.02, 0)
    found = [number for numbers in select_galleries(rows).values() for number in numbers]
    assert len(found) == len(set(found))


def test_a_sheet_shows_64_by_lot_always_the_same(tmp_path: Path) -> None:
    rows = encode([square(0.0)] * 100 + [Sketch((Circle((0, 0), 1),))] * 100)
    write_sheet(rows, tmp_path / "many.png")
    write_sheet(rows, tmp_path / "again.png")
    write_sheet(rows[:64], tmp_path / "first.png")
    assert (tmp_path / "many.png").read_bytes() == (tmp_path / "again.png").read_bytes()
    with Image.open(tmp_path / "many.png") as many, Image.open(tmp_path / "first.png") as first:
        assert many.size == first.size
        assert many.tobytes() != first.tobytes()  # a file sorted by kind shows both
    write_sheet(rows[:3], tmp_path / "few.png")
    with Image.open(tmp_path / "few.png") as few, Image.open(tmp_path / "many.png") as many:
        assert few.height < many.height / 4
