"""Large drawings are looked at in pieces, in bounded time."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.infer import skipped
from sketchdnn.geometry import Circle, Line, Sketch


def _plates(count: int) -> Sketch:
    """Rectangles with a hole in the middle, each a little off, in rows."""
    primitives: list[Line | Circle] = []
    for n in range(count):
        x, y = float(n % 14) * 3, float(n // 14) * 3
        off = 0.001 * (n % 3)
        a, b, c, d = (x, y), (x + 2, y + off), (x + 2 - off, y + 1.3), (x, y + 1.3)
        primitives += [Line(a, b), Line(b, c), Line(c, d), Line(d, (x + off, y)), Circle((x + 1, y + 0.65), 0.2)]
    return Sketch(tuple(primitives))


def test_a_thousand_primitives() -> None:
    drawing = _plates(200)
    begin = time.process_time()
    constraints = infer(drawing, 0.0002)
    solution = solve(drawing, constraints)
    assert time.process_time() - begin < 20
    kinds = Counter(str(c.type) for c in constraints)
    assert kinds["coincident"] == 800
    assert kinds["horizontal"] + kinds["vertical"] >= 800
    assert kinds["equal"] > 150
    assert (solution.warning, solution.conflicting, solution.skipped) == (None, (), ())
    assert solution.residual < 1e-9
    assert len(solution.freedom) == 1000


def test_it_says_what_it_skipped() -> None:
    assert skipped(_plates(3)) is None
    assert skipped(Sketch(())) is None
    said = skipped(_plates(200))
    assert said is not None
    assert "1000 primitives" in said


def test_what_is_given_and_fixed_reaches_the_pieces() -> None:
    drawing = _plates(60)
    known = infer(drawing, 0.0002)
    meeting = [c for c in known if str(c.type) == "coincident"]
    again = infer(drawing, 0.0002, given=meeting, fixed=[0, 5])
    assert not [c for c in again if str(c.type) == "coincident"]
    solution = solve(drawing, [*meeting, *again], fixed=[0, 5])
    assert solution.sketch.primitives[0] is drawing.primitives[0]
    assert solution.sketch.primitives[5] is drawing.primitives[5]


@pytest.mark.parametrize("tolerance", [0.0002, 0.02])
def test_too_much_tolerance_is_no_trouble(tolerance: float) -> None:
    drawing = _plates(40)
    solution = solve(drawing, infer(drawing, tolerance))
    assert len(solution.sketch) == len(drawing)
