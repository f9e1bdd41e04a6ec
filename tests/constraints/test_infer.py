"""The constraints that a drawn sketch was meant to have."""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outlines import turned
from support.strategies import assert_same

from benchmarks.constraint_recall import jitter_sketch, measure_recall
from sketchdnn.constraints import candidates, infer, solve
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.infer import skipped_message
from sketchdnn.errors import GeometryError
from sketchdnn.formats import sketchgraphs
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch

QUARTER = math.pi / 2
# A plate with rounded corners on one side, two holes and a center line.
PLATE = Sketch(
    (
        Line((0, 0), (80, 0)),
        Arc((80, 10), 10, -QUARTER, QUARTER),
        Line((90, 10), (90, 40)),
        Arc((80, 40), 10, 0, QUARTER),
        Line((80, 50), (0, 50)),
        Line((0, 50), (0, 0)),
        Circle((20, 25), 6),
        Circle((20, 25), 11),
        Circle((60, 25), 6),
        Line((0, 25), (90, 25), construction=True),
    )
)


def types_of(sketch: Sketch) -> Counter[str]:
    return Counter(str(constraint.type) for constraint in infer(sketch))


def test_constraints_of_a_noisy_plate() -> None:
    noisy, _ = jitter_sketch(PLATE, 0.002, np.random.default_rng(3))
    constraints = infer(noisy, 0.002)
    types = Counter(str(c.type) for c in constraints)
    assert (types["coincident"], types["concentric"], types["tangent"]) == (6, 1, 4)
    assert types["horizontal"] >= 3
    assert all(residual is not None and residual < 1e-9 for residual in constraint_residuals(PLATE, constraints))
    solution = solve(noisy, constraints)
    assert (solution.warning, solution.conflicting, solution.redundant, solution.dof <= 10) == (None, (), (), True)


@pytest.mark.parametrize("noise", [0.0, 0.0005, 0.004])
def test_candidates_that_are_left_out_would_not_be_accepted(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    rng = np.random.default_rng(5)
    for turn in (0.0, 0.4):
        for tolerance in (0.0005, 0.002, 0.01):
            noisy, _ = jitter_sketch(Sketch(tuple(turned(p, turn) for p in PLATE)), noise, rng)
            with monkeypatch.context() as patch:
                patch.setattr(candidates, "_SLACK", 3.0)  # so that many more are examined
                expected = infer(noisy, tolerance)
            assert infer(noisy, tolerance) == expected


def test_each_type_is_inferred() -> None:
    mirror = Line((0, -6), (0, 6), construction=True)
    cases: dict[str, list[tuple[Primitive, ...]]] = {
        "parallel": [(Line((0, 0), (10, 3)), Line((0, 5), (10, 8.02)))],
        "perpendicular": [(Line((0, 0), (10, 3)), Line((2, 9), (5.01, -1)))],
        "collinear": [(Line((0, 0), (4, 1)), Line((8, 2.01), (12, 3)), Line((0, 9), (1, 2)))],
        "equal": [(Circle((0, 0), 2), Circle((9, 4), 2.01))],
        "concentric": [(Circle((0, 0), 2), Circle((0.01, 0), 5))],
        "tangent": [(Circle((0, 0), 2), Line((-6, 2.01), (7, 2))), (Circle((0, 0), 2), Circle((3, 4.01), 3))],
        "midpoint": [(Line((0, 0), (10, 3)), Point((5.01, 1.5)))],
        "point_on_curve": [(Line((0, 0), (10, 3)), Point((2.0, 0.61)))],
        "symmetric": [(mirror, Line((-3, 1), (-4, 5)), Line((3.01, 1), (4, 5.01)))],
    }
    for kind, sketches in cases.items():
        for primitives in sketches:
            assert types_of(Sketch(primitives))[kind] >= 1, kind
    # Chains instead of all pairs.
    lines = tuple(Line((0, 3.0 * i), (10 + 1.7 * i, 3.0 * i + 4 + 0.68 * i)) for i in range(5))
    assert types_of(Sketch(lines))["parallel"] == 4
    circles = tuple(Circle((7.0 * i, 1.3 * i * i), 2) for i in range(5))
    assert types_of(Sketch(circles))["equal"] == 4
    star = tuple(Line((0, 0), (10 * math.cos(a), 10 * math.sin(a))) for a in (0.2, 1.1, 2.3, 3.9, 5.2))
    assert types_of(Sketch(star))["coincident"] == 4


def test_nothing_collapses_or_is_inferred_beyond_the_tolerance() -> None:
    sketch = Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10.02, 0.02)), Line((10.02, 0.02), (10, 8))))
    solution = solve(sketch, infer(sketch))
    assert solution.warning is None
    assert all(p.length > 0.005 for p in solution.sketch)
    assert infer(Sketch((Line((0, 0), (10, 1.5)), Line((3, 7), (9, 2.2))))) == ()
    assert infer(Sketch(())) == ()
    with pytest.raises(GeometryError, match="share of the size"):
        infer(PLATE, 0.5)


def test_constraints_are_ranked() -> None:
    """Coincident points first, then what removes more variables, then what has the smaller residual."""
    middle = (Line((0, 0), (10, 3)), Point((5.01, 1.5)))
    circles = (Circle((20, 0), 2), Circle((29, 4), 2), Circle((29, 4.03), 0.7))
    for primitives in ((*middle, *circles), (*circles, *middle)):
        assert [str(c.type) for c in infer(Sketch(primitives))] == ["concentric", "midpoint", "equal"]
    rough, fine = Line((0, 0), (10, 0.04)), Line((3, 7), (13, 7.01))
    for lines, first in (((rough, fine), 1), ((fine, rough), 0)):
        level = [c for c in infer(Sketch(lines)) if c.type == "horizontal"]
        assert [c.refs[0].primitive for c in level] == [first, 1 - first]


def test_short_line_is_parallel_up_to_a_sine() -> None:
    for sine, is_parallel in ((0.0, True), (0.075, True), (0.085, False), (0.2, False)):
        angle = math.atan2(37, 100) + math.asin(sine)
        sketch = Sketch((Line((0, 0), (100, 37)), Line((50, 0), (50 + 12 * math.cos(angle), 12 * math.sin(angle)))))
        assert any(c.type == "parallel" for c in infer(sketch)) == is_parallel


@given(seed=st.integers(0, 2**32))
def test_orientation_size_and_order_do_not_matter(seed: int) -> None:
    noisy, _ = jitter_sketch(PLATE, 0.003, np.random.default_rng(seed))
    solved = solve(noisy, infer(noisy)).sketch
    for how in ({"angle": QUARTER}, {"mirrored": True}, {"scale": 1e6}, {"scale": 1e-6}, {}):
        there, again = (Sketch(tuple(turned(p, **how) for p in s)) for s in (solved, noisy))  # type: ignore[arg-type]
        if not how:
            there, again = (Sketch(s.primitives[::-1]) for s in (solved, noisy))
        assert_same(there, solve(again, infer(again)).sketch, 1e-6)


def plates(count: int) -> Sketch:
    """Rectangles with a hole in the middle, each a little off, in rows."""
    primitives: list[Primitive] = []
    for n in range(count):
        x, y, off = float(n % 14) * 3, float(n // 14) * 3, 0.001 * (n % 3)
        a, b, c, d = (x, y), (x + 2, y + off), (x + 2 - off, y + 1.3), (x, y + 1.3)
        primitives += [Line(a, b), Line(b, c), Line(c, d), Line(d, (x + off, y)), Circle((x + 1, y + 0.65), 0.2)]
    return Sketch(tuple(primitives))


def test_thousand_primitives_are_inferred_in_pieces() -> None:
    drawing = plates(200)
    constraints = infer(drawing, 0.0002)
    solution = solve(drawing, constraints)
    types = Counter(str(c.type) for c in constraints)
    assert (types["coincident"], types["equal"] > 150) == (800, True)
    assert types["horizontal"] + types["vertical"] >= 800
    assert (solution.warning, solution.conflicting, solution.skipped) == (None, (), ())
    assert (solution.residual < 1e-9, len(solution.freedom)) == (True, 1000)
    assert "1000 primitives" in str(skipped_message(drawing))
    assert (skipped_message(plates(3)), skipped_message(Sketch(()))) == (None, None)
    # Given constraints and fixed primitives reach the pieces.
    drawing = plates(60)
    meeting = [c for c in infer(drawing, 0.0002) if str(c.type) == "coincident"]
    again = infer(drawing, 0.0002, given=meeting, fixed=[0, 5])
    assert not [c for c in again if str(c.type) == "coincident"]
    solution = solve(drawing, [*meeting, *again], fixed=[0, 5])
    assert all(solution.sketch.primitives[i] is drawing.primitives[i] for i in (0, 5))
    assert len(solve(drawing, infer(drawing, 0.02)).sketch) == len(drawing)  # a tolerance as large as the plates


@pytest.mark.parametrize(("jitter", "recall", "precision"), [(0.001, 0.95, 0.95), (0.005, 0.9, 0.85)])
def test_designers_constraints_are_recalled(real_data: Path, jitter: float, recall: float, precision: float) -> None:
    """The thresholds of inference were chosen by the file's first 300 sketches, so it is measured on later ones."""
    items = sketchgraphs.FORMAT.read(real_data / "sketchgraphs" / "sg_subset.npy")
    designed = [item for item in islice(items, 300, 800) if isinstance(item, Sketch) and len(item) >= 4]
    score = measure_recall(designed, jitter, tolerance=jitter)
    types = ["horizontal", "vertical", "parallel", "perpendicular", "coincident", "tangent", "equal", "concentric"]
    assert min(score.recall(kind) for kind in (*types, "midpoint")) >= recall
    assert score.precision() >= precision
    assert max(score.residuals) < 1e-9
    assert np.mean(score.displacements) <= np.mean(score.jitters)
    assert score.failed <= 0.02 * len(designed)
