"""A repair comes to an end: what it may try is counted."""

from __future__ import annotations

import pytest
from sketchdnn.constraints.mending.effort import Effort, inferring, solving, trying

from sketchdnn.constraints import repair
from sketchdnn.geometry import Constraint, ConstraintType, Line, Primitive, Ref, Sketch

SHAKY: tuple[Primitive, ...] = (Line((0, 0), (40, 0.1)), Line((40.1, 0), (40, 30)), Line((40, 30.1), (0, 0.1)))


def test_what_is_spent_is_spent() -> None:
    effort = Effort()
    assert effort.spend(effort.left / 2)
    assert effort.spend(effort.left)
    assert effort.is_spent
    assert not effort.spend(0.0)


def test_sketches_cost_next_to_nothing_and_large_drawings_do_not() -> None:
    level = [Constraint(ConstraintType.HORIZONTAL, (Ref(0),))]
    parallel = [Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(1)))] * 900
    assert trying(SHAKY) + inferring(SHAKY) + solving(SHAKY, level) < 1e-4
    assert trying(SHAKY * 300) + solving(SHAKY * 300, parallel) > 1


def test_a_repair_without_effort_leaves_the_sketch_alone_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sketchdnn.constraints.mending.effort._MOST", 0.0)
    sketch = Sketch(SHAKY)
    done = repair(sketch)
    assert done.sketch == sketch
    assert done.warning is not None
    assert "broken off" in done.warning
