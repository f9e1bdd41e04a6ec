"""The scores of traced sketches: what agrees, what only looks the same, and what the benchmark counts."""

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.trace_scores import compare, transformed, visible
from benchmarks.tracing import STYLES, TraceBenchmark, measure, sheet, trace_case
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, profile

PLATE = Sketch(
    (
        Line((-1, -0.5), (1, -0.5)),
        Line((1, -0.5), (1, 0.5)),
        Line((1, 0.5), (-1, 0.5)),
        Line((-1, 0.5), (-1, -0.5)),
        Circle((0.3, 0.1), 0.2),
    )
)


def test_sketch_agrees_with_itself_in_any_order_and_direction() -> None:
    turned = Sketch(tuple(Line(p.end, p.start) if isinstance(p, Line) else p for p in reversed(PLATE.primitives)))
    result = compare(PLATE, turned)
    assert (result.hits, result.truth, result.found, result.flags) == (5, 5, 5, 5)
    assert result.tokens == result.all_tokens == 4 * 6 + 5
    assert (result.f1, result.chamfer) == (1, 0)
    assert result.mse < 1e-4


def test_five_levels_are_the_limit() -> None:
    for levels, hits in ((5, 5), (6.2, 4)):
        circle = Circle((0.3 + levels * 2 / 63, 0.1), 0.2)
        assert compare(PLATE, Sketch((*PLATE.primitives[:4], circle))).hits == hits


def test_wrong_kind_missing_and_surplus_primitives_count() -> None:
    arc = Arc((0.3, 0.1), 0.2, 0.0, 6.2)
    result = compare(PLATE, Sketch((*PLATE.primitives[:3], arc, Point((0.0, 0.0)), Point((0.5, 0.0)))))
    assert (result.hits, result.found) == (3, 6)
    assert result.f1 == pytest.approx(6 / 11)
    assert result.chamfer > 1
    assert result.mse > 0


def test_construction_flags_are_counted_apart() -> None:
    dashed = Sketch((Line((-1, -0.5), (1, -0.5), construction=True), *PLATE.primitives[1:]))
    result = compare(PLATE, dashed)
    assert (result.hits, result.flags) == (5, 4)


def test_lines_in_a_row_and_duplicates_look_like_one() -> None:
    halves = (Line((-1, -0.5), (0, -0.5)), Line((1, -0.5), (0, -0.5)), Line((-0.5, -0.5), (0.5, -0.5)))
    seen = visible(Sketch((*halves, *PLATE.primitives[1:])))
    assert len(seen) == 5
    assert compare(PLATE, seen).hits == 5
    assert len(visible(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (2, 0), construction=True))))) == 2
    assert len(visible(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))))) == 2


def test_arcs_of_one_circle_look_like_one() -> None:
    third = math.tau / 3
    parts = tuple(Arc((0, 0), 1, k * third + 0.4, third) for k in range(3))
    assert visible(Sketch(parts)).primitives == (Circle((0, 0), 1),)
    (arc,) = visible(Sketch(parts[:2])).primitives
    assert isinstance(arc, Arc)
    assert arc.sweep == pytest.approx(2 * third)


def test_similarity_moves_every_kind() -> None:
    sketch = Sketch((*PLATE.primitives, Arc((0, 0), 0.5, 0.3, 4.0), Point((0.2, 0.2))))
    turn = np.array([[0, -2, 1], [2, 0, 3], [0, 0, 1.0]])
    back = transformed(transformed(sketch, turn), np.linalg.inv(turn))
    assert compare(sketch, back).hits == len(sketch)
    assert compare(sketch, back).chamfer == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("style", STYLES)
def test_plate_in_every_style_is_traced(style: str) -> None:
    case = trace_case(PLATE, style, 1)
    assert case.result is not None
    assert case.agreement is not None
    assert case.agreement.f1 >= (1 if style == "precise" else 0.8)
    assert profile(case.result.sketch).is_extrudable
    assert case.agreement.chamfer < (0.5 if style == "precise" else 4)
    assert sheet([case], 2).shape[1] > 2 * case.drawn.picture.shape[1]


def test_refused_picture_counts_as_nothing_found() -> None:
    good = trace_case(PLATE, "precise", 0)
    missed = good._replace(result=None, agreement=None, stored=None)
    result = TraceBenchmark({"precise": [good, good, missed, missed]})
    assert result.f1("precise").value == pytest.approx(0.5)
    (row,) = result.rows()
    assert row[9] == "2"
    assert "missed" in next(iter(result.sentences()))


def test_unknown_style_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SketchError, match="there is no style 'oil'"):
        measure(tmp_path, ["oil"])
