"""Loose ends: of lines and arcs that are drawn, as far as rows show them."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest

from sketchdnn.evaluation.curves import end_gaps
from sketchdnn.generation.conditioning import encode_sketches
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch
from sketchdnn.representation import encode
from sketchdnn.representation.loose import WITHIN, has_loose_end
from sketchdnn.systems.system import RowForm

SQUARE = (Line((-1, -1), (1, -1)), Line((1, -1), (1, 1)), Line((1, 1), (-1, 1)), Line((-1, 1), (-1, -1)))
FORM = RowForm(canonical_lines=False)


def loose(*primitives: Primitive) -> bool:
    return bool(has_loose_end(encode_sketches([Sketch(primitives)], FORM)).item())


def test_ends_that_meet_no_other_end_are_loose() -> None:
    assert not loose(*SQUARE)
    assert not loose(Line((-1, 0), (1, 0)), Arc((0, 0), 1, 0, pi))  # an arc's ends count
    assert not loose(*SQUARE, Circle((0, 0), 0.5), Point((0.2, 0.2)))
    assert not loose(Circle((0, 0), 1))
    assert loose(*SQUARE[:3])
    assert loose(Line((-1, 0), (1, 0)))
    assert loose(Arc((0, 0), 1, 0, pi))
    assert loose(*SQUARE, Line((0, 0), (0.5, 0)))
    # Neither a point, nor a circle's middle, nor the line's own other end meets it.
    assert loose(Line((0, 0), (0.01, 0)), Point((0, 0)), Circle((0.01, 0), 1))
    assert not loose(*SQUARE, Line((0, -2), (0, 2), construction=True))
    assert not loose(*SQUARE[:3], replace(SQUARE[3], construction=True))


# As for scores of drawings: 1 % of the size, which is 2.
@pytest.mark.parametrize(("gap", "is_loose"), [(0.019, False), (0.021, True)])
def test_how_near_is_near(gap: float, is_loose: bool) -> None:
    assert loose(*SQUARE[:3], Line((-1 - gap, 1), (-1, -1))) == is_loose


def test_it_is_what_gaps_are_measured_by() -> None:
    rng = np.random.default_rng(0)

    def shaken(line: Line) -> Line:
        start, end = (tuple(np.array(each) + rng.normal(0, WITHIN / 3, 2)) for each in (line.start, line.end))
        return Line(start, end, construction=bool(rng.random() < 0.1))

    sketches = [Sketch(tuple(map(shaken, SQUARE))) for _ in range(200)]
    compact = encode(sketches)
    gaps = np.where(compact.construction[..., None], np.nan, end_gaps(compact))
    expected = (np.nan_to_num(gaps) > WITHIN).any(axis=(1, 2))
    assert 20 < expected.sum() < 180
    assert has_loose_end(encode_sketches(sketches, FORM)).tolist() == expected.tolist()
