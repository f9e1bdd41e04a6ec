"""Repair of generated sketches: conditions are checked after it, and the primitives of a part do not change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.generation import draw
from support.sketch_sets import pulled_square, square
from support.small_systems import small_system

from sketchdnn.constraints import solve
from sketchdnn.generation import CompleteRequest, complete
from sketchdnn.generation import repair as repair_module
from sketchdnn.generation.conditions import MAX_ATTEMPTS, Conditions
from sketchdnn.generation.repair import RepairReport, RepairResult, available_cores, repair_sketches
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Kind, Line, Part, Ref, Sketch, bounds
from sketchdnn.systems import System

MARK = Constraint(ConstraintType.OTHER, (Ref(0),), name="repaired")
PART = Sketch((Line((0, 0), (60, 0)), Line((60, 0), (60, 40)), Circle((30, 20), 8)), units="mm")
BESIDE = Circle((100, 20), 5)
CORNERS = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
REPORT = RepairReport(("line 1 was dropped",), ("drop",), 0.01, 7)


@pytest.fixture(scope="module")
def system() -> System:
    return small_system()


def replace_repair(monkeypatch: pytest.MonkeyPatch, change: Callable[[Sketch], Sketch]) -> list[Sketch]:
    """Replace repair by a change; returns the list of sketches that are repaired."""
    calls: list[Sketch] = []

    def repair_each(sketches: Sequence[Sketch], num_fixed: int = 0, **_: object) -> list[RepairResult]:
        assert num_fixed in (0, len(PART))
        results = []
        for sketch in sketches:
            calls.append(sketch)
            results.append(RepairResult(change(sketch), REPORT))
        return results

    for name in ("generate", "suggestions"):
        monkeypatch.setattr(sys.modules[f"sketchdnn.generation.{name}"], "repair_sketches", repair_each)
    return calls


def mark(sketch: Sketch) -> Sketch:
    return replace(sketch, constraints=(MARK,))


def without_last(sketch: Sketch) -> Sketch:
    return Sketch(sketch.primitives[:-1])


def test_each_sketch_is_repaired_once_and_then_scaled(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = replace_repair(monkeypatch, lambda sketch: mark(without_last(sketch)))
    raw, repaired = (list(draw(system, 18, steps=4, repair=repair)) for repair in (False, True))
    assert len(calls) == 18  # and not the attempts ahead
    for before, after in zip(raw, repaired, strict=True):
        assert (before.repair, after.repair, after.sketch.constraints) == (None, REPORT, (MARK,))
        assert (len(after.sketch), bounds(after.sketch).size) == (len(before.sketch) - 1, pytest.approx(100))
        assert (after.sketch.units, after.sketch.extra) == (before.sketch.units, before.sketch.extra)


def test_conditions_and_completions_are_judged_after_repair(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repair removes a primitive of every sketch that is too wide: then it has too few, and is drawn again."""
    conditions = Conditions(kinds=dict(zip(Kind, (6, 0, 0, 3), strict=True)), count_construction=True)

    def narrow(sketch: Sketch) -> Sketch:
        box = bounds(sketch)
        return without_last(sketch) if box.width > box.height else sketch

    plain = list(draw(system, 8, steps=4, conditions=conditions))
    replace_repair(monkeypatch, narrow)
    repaired = list(draw(system, 8, steps=4, conditions=conditions, repair=True))
    assert all(len(each.sketch) == 9 and each.shortfall is None for each in repaired)
    assert sum(each.attempts for each in repaired) > sum(each.attempts for each in plain)
    assert all(bounds(each.sketch).width <= bounds(each.sketch).height for each in repaired)
    assert list(draw(system, 2, steps=4, conditions=conditions, repair=True, start_index=5)) == repaired[5:7]
    # A condition that repair always breaks is reported.
    replace_repair(monkeypatch, without_last)
    conditions = Conditions(kinds=dict(zip(Kind, (9, 0, 0, 0), strict=True)))
    (each,) = draw(system, 1, steps=3, conditions=conditions, repair=True)
    assert each.attempts == MAX_ATTEMPTS
    assert "it has 8 primitives, not 9" in str(each.shortfall)
    replace_repair(monkeypatch, lambda sketch: Sketch((*sketch.primitives[: len(PART)], BESIDE), units=sketch.units))
    for each in complete(
        system, CompleteRequest(part=PART, count=2, steps=3, primitives=12, goal="extend", candidates=10)
    ):
        assert each.sketch.primitives == (*PART.primitives, BESIDE)
        assert f"it has {len(each.sketch)} primitives, not 12" in str(each.shortfall)
        assert each.repair is not None
        assert each.repair.actions == REPORT.actions


def test_empty_and_open_results_of_repair_are_drawn_again(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = replace_repair(monkeypatch, lambda sketch: Sketch(()) if len(calls) == 1 else sketch)
    assert [each.attempts for each in draw(system, 3, steps=3, repair=True)] == [2, 1, 1]
    # Without repair a gap of 0.005 of the size would be allowed.
    for gap in (0.0, 0.01):
        replace_repair(monkeypatch, lambda _, gap=gap: Sketch(tuple(pulled_square(gap))))  # type: ignore[misc]
        (each,) = draw(system, 1, steps=2, conditions=Conditions(closed=True), repair=True)
        assert (each.shortfall is None) == (gap == 0)
    calls = replace_repair(monkeypatch, lambda _: Sketch(tuple(square()[: 4 if len(calls) == 3 else 3])))
    (each,) = draw(system, 1, steps=2, conditions=Conditions(best_of=4), repair=True)
    assert (len(calls), each.attempts) == (4, 4)
    assert (len(each.sketch), each.score, each.best_of_shortfall) == (4, 1.0, None)


def test_trajectories_and_variations_are_repaired_in_place(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_repair(monkeypatch, without_last)
    (each,) = draw(system, 1, steps=4, trajectory_frames=4, repair=True)
    assert len(each.trajectory[-1].likely()) == len(each.sketch) + 1
    replace_repair(monkeypatch, mark)
    options = {"init_sketch": PART, "strength": 0.2, "steps": 20}
    raw, repaired = (list(draw(system, 2, repair=repair, **options)) for repair in (False, True))
    for before, after in zip(raw, repaired, strict=True):
        assert after.sketch == replace(before.sketch, constraints=(MARK,))


@pytest.mark.parametrize("own", [(), (Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),)])
def test_completion_has_the_constraints_of_its_part(system: System, own: tuple[Constraint, ...]) -> None:
    """Without constraints of its own the part gets those that hold: in a CAD program it would come apart otherwise."""
    part = replace(PART, constraints=own)
    (each,) = complete(system, CompleteRequest(part=part, count=1, steps=3))
    assert each.sketch.primitives[: len(PART)] == PART.primitives
    of_part = {c for c in each.sketch.constraints if all(ref.primitive in range(len(PART)) for ref in c.refs)}
    if own:
        assert of_part == set(own)
    else:
        assert {ConstraintType.COINCIDENT, ConstraintType.HORIZONTAL} <= {c.type for c in of_part}
    assert each.repair is not None
    assert each.repair.dof == solve(each.sketch).dof


def test_repair_that_would_move_a_fixed_primitive_is_dropped_and_summarized(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = PART.moved(1.0, (0.1, 0.0))
    result = SimpleNamespace(sketch=moved, actions=(), displacement=0.001, dof=3, warning=None)
    monkeypatch.setattr(repair_module, "repair_all", lambda sketches, **_: [result] * len(sketches))
    assert repair_sketches([PART])[0].sketch == moved
    ((sketch, report),) = repair_sketches([PART], num_fixed=2)
    assert sketch == PART
    assert "would have moved" in str(report.warning)
    assert RepairReport(dof=1).summary == "nothing to repair; 1 degree of freedom"
    assert RepairReport(warning="too many").summary == "not repaired: too many"
    assert RepairReport(("a",), ("snap",), warning="two contradict").summary == "repaired in part: two contradict"


def gapped(number: int) -> Sketch:
    """A plate whose corners nearly meet."""
    off = 0.001 * (1 + number % 7)
    ends = [(x + off, y - off / 2) for x, y in (*CORNERS[1:], CORNERS[0])]
    return Sketch(tuple(Line(a, b) for a, b in zip(CORNERS, ends, strict=True)))


def test_repair_is_idempotent_and_the_same_in_processes(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [each.sketch for each in draw(system, 4, steps=6, repair=True)]
    for sketch, (again, report) in zip(drawn, repair_sketches(drawn), strict=True):
        assert report.displacement < 1e-6
        assert len(again) == len(sketch)
    monkeypatch.setattr(repair_module, "_MIN_FOR_POOL", 4)
    shares: list[float] = []
    sketches = [gapped(number) for number in range(7)]
    assert repair_sketches(sketches, workers=2, on_progress=shares.append) == repair_sketches(sketches)
    assert (shares[-1], repair_sketches([])) == (1, [])
    assert available_cores(10_000) == 1 <= available_cores()


def test_constraints_about_axes_hold_after_placing(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their axis stays where it is, though the box is not centered on it; a variation has its own place."""
    pair = (Circle((-1.0, 0.3), 0.2), Circle((1.0, 0.3), 0.2), Line((0.0, 0.0), (1.6, 0.5)))
    center, axis = (Ref(k, Part.CENTER) for k in (0, 1)), Ref(None, Part.Y_AXIS)
    mirrored = Constraint(ConstraintType.SYMMETRIC, (*center, axis))
    replace_repair(monkeypatch, lambda _: Sketch(pair, (mirrored,)))
    placed = next(draw(system, 1, steps=4, repair=True)).sketch
    assert placed.constraints == (mirrored,)
    left, right, _ = placed
    assert isinstance(left, Circle)
    assert isinstance(right, Circle)
    assert left.center[0] == pytest.approx(-right.center[0])
    box = bounds(placed)
    assert (box.size, box.center[1]) == (pytest.approx(100), pytest.approx(0))
    assert box.center[0] > 1
    varied = next(draw(system, 1, steps=4, repair=True, init_sketch=PART)).sketch
    assert varied.constraints == ()
