"""Places along compact rows are those of the primitives they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from support.drawn_sets import rows, sets, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.curves import check_sketches, lengths, points_along
from sketchdnn.geometry import Arc, Circle, Line, Point
from sketchdnn.representation import Compact, decode_compact


@given(sets)
def test_places_and_lengths_agree_with_the_primitives(compact: Compact) -> None:
    along = np.array([0.0, 0.25, 0.5, 1.0])
    where, long = points_along(compact, along), lengths(compact)
    for s, decoded in enumerate(decode_compact(compact)):
        for p, item in enumerate(decoded.sketch):
            assert long[s, p] == pytest.approx(item.length, rel=1e-6, abs=1e-9)
            for f, found in zip(along, where[s, p], strict=True):
                match item:
                    case Line(start, end):
                        wanted = (start[0] + f * (end[0] - start[0]), start[1] + f * (end[1] - start[1]))
                    case Arc():
                        wanted = item.at(f)
                    case Circle((x, y), radius):
                        wanted = (x + radius * math.cos(math.tau * f), y + radius * math.sin(math.tau * f))
                    case Point(at):
                        wanted = at
                assert math.dist(found, wanted) < 1e-6


def test_empty_sets_and_rows_that_are_no_primitives_are_refused() -> None:
    with pytest.raises(GeometryError, match="no sketches"):
        check_sketches(rows(square())[:0])
    broken = rows(square(), square())
    broken.params[1, 2, 0] = np.nan
    with pytest.raises(GeometryError, match="sketch 1 holds numbers"):
        check_sketches(broken)
