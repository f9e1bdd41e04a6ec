"""Sketches of any size: plain constraints are found, in time that grows about linearly."""

from __future__ import annotations

import math
import time
from collections import Counter

import pytest
from sketchdnn.constraints.mending.effort import is_tangle

from benchmarks.constraint_speed import chain, grid
from sketchdnn.constraints import solve
from sketchdnn.constraints.constrain import Constrained, constrain
from sketchdnn.geometry import Line, Sketch


def _kinds(done: Constrained) -> Counter[str]:
    return Counter(str(c.type) for c in done.sketch.constraints)


def _polygon(count: int) -> Sketch:
    """Its sides are much shorter than the tolerance, a share of the size."""
    turn = 2 * math.pi / count
    at = [(100 * math.cos(k * turn), 100 * math.sin(k * turn)) for k in range(count)]
    return Sketch(tuple(Line(a, b) for a, b in zip(at, [*at[1:], at[0]], strict=True)))


@pytest.mark.parametrize("repairing", [True, False])
def test_large_sketches_get_plain_constraints(repairing: bool) -> None:
    for sketch, meeting, level in ((grid(1200), 1200, 1200), (chain(1200), 1199, 1200), (_polygon(1200), 1200, 4)):
        done = constrain(sketch, repairing=repairing)
        kinds = _kinds(done)
        assert done.warning is None
        assert done.skipped
        assert kinds["coincident"] == meeting
        assert kinds["horizontal"] + kinds["vertical"] >= level
        again = solve(done.sketch)
        assert (again.warning, again.redundant, again.conflicting) == (None, (), ())
        assert again.residual < 1e-9
        assert done.dof == again.dof


def test_short_lines_of_a_large_sketch_are_not_dropped() -> None:
    """A line of 6 mm is less than half the tolerance in a chain this long, and as large as its neighbors."""
    drawn = chain(4000)
    assert len(constrain(drawn).sketch) == len(drawn)


def test_tangle_is_not_repaired_but_constrained() -> None:
    lines = [Line((0, float(k)), (300, float(k))) for k in range(160)]
    lines += [Line((float(k), -10), (float(k), 310)) for k in range(160)]
    tangle = Sketch(tuple(lines))
    assert is_tangle(tangle)
    done = constrain(tangle)
    assert _kinds(done) == {"horizontal": 160, "vertical": 160}
    assert done.sketch.primitives == tangle.primitives


def test_time_grows_about_linearly() -> None:
    """Four times as many lines take no more than ten times as long; sixteen times would be a square."""
    for make in (grid, chain):
        seconds = []
        for count in (500, 2000):
            begin = time.process_time()
            constrain(make(count), repairing=False)
            seconds.append(time.process_time() - begin)
        assert seconds[1] < 10 * seconds[0]
