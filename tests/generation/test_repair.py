"""Repair of what is drawn: judged after it, the same whatever is drawn beside it, and nothing given is touched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.small_systems import small_system

from sketchdnn.constraints import solve
from sketchdnn.generation import complete, draw, draw_like, repairs
from sketchdnn.generation.conditions import MAX_ATTEMPTS, Conditions
from sketchdnn.generation.repair import RepairReport, RepairResult, available_cores, mend, repair_sketches
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Ref, Sketch, bounds
from sketchdnn.systems.sketchdnn import SketchDNN

MARK = Constraint(ConstraintType.OTHER, (Ref(0),), name="repaired")
PART = Sketch((Line((0, 0), (60, 0)), Line((60, 0), (60, 40)), Circle((30, 20), 8)), units="mm")


@pytest.fixture(scope="module")
def system() -> SketchDNN:
    return small_system()


def doing(change: Callable[[Sketch], Sketch], calls: list[Sketch] | None = None) -> Callable[..., RepairResult]:
    """A repair that is told what to do."""

    def stand_in(sketch: Sketch, given: int = 0) -> RepairResult:
        if calls is not None:
            calls.append(sketch)
        return RepairResult(change(sketch), RepairReport(("line 1 was dropped",), ("drop",), 0.01, 7))

    return stand_in


def use(monkeypatch: pytest.MonkeyPatch, mend_one: Callable[..., RepairResult]) -> None:
    def mend_each(sketches: Sequence[Sketch], given: int = 0, **_: object) -> list[RepairResult]:
        return [mend_one(sketch, given) for sketch in sketches]

    for scale in ("generate", "complete"):
        monkeypatch.setattr(sys.modules[f"sketchdnn.generation.{scale}"], "mend_all", mend_each)


def marked(sketch: Sketch) -> Sketch:
    return replace(sketch, constraints=(MARK,))


def without_last(sketch: Sketch) -> Sketch:
    return Sketch(sketch.primitives[:-1])


def test_all_that_is_drawn_is_repaired_once_and_then_has_its_size(
    system: SketchDNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Sketch] = []
    use(monkeypatch, doing(lambda sketch: marked(without_last(sketch)), calls))
    raw, repaired = (list(draw(system, 18, steps=4, repair=repair)) for repair in (False, True))
    assert len(calls) == 18  # and not the attempts ahead
    for before, after in zip(raw, repaired, strict=True):
        assert before.repair is None
        assert after.repair is not None
        assert (after.repair.actions, after.repair.dof) == (("line 1 was dropped",), 7)
        assert after.sketch.constraints == (MARK,)
        assert len(after.sketch) == len(before.sketch) - 1
        assert bounds(after.sketch).size == pytest.approx(100)
        assert (after.sketch.units, after.sketch.extra) == (before.sketch.units, before.sketch.extra)


def test_numbers_and_kinds_are_those_after_repair(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every sketch that is too wide one primitive goes: then it has too few, and is drawn again."""
    wanted = Conditions(kinds=dict(zip(_kinds(), (6, 0, 0, 3), strict=True)), count_construction=True)

    def narrow(sketch: Sketch) -> Sketch:
        box = bounds(sketch)
        return without_last(sketch) if box.width > box.height else sketch

    plain = list(draw(system, 8, steps=4, conditions=wanted))
    use(monkeypatch, doing(narrow))
    repaired = list(draw(system, 8, steps=4, conditions=wanted, repair=True))
    assert all(len(drawing.sketch) == 9 and drawing.shortfall is None for drawing in repaired)
    assert sum(drawing.attempts for drawing in repaired) > sum(drawing.attempts for drawing in plain)
    assert all(bounds(drawing.sketch).width <= bounds(drawing.sketch).height for drawing in repaired)
    assert list(draw(system, 2, steps=4, conditions=wanted, repair=True, start_index=5)) == repaired[5:7]


def test_what_repair_always_breaks_is_said(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, doing(without_last))
    (drawing,) = draw(
        system, 1, steps=3, conditions=Conditions(kinds=dict(zip(_kinds(), (9, 0, 0, 0), strict=True))), repair=True
    )
    assert drawing.attempts == MAX_ATTEMPTS
    assert drawing.shortfall is not None
    assert "it has 8 primitives, not 9" in drawing.shortfall


def test_what_repair_leaves_nothing_of_is_drawn_again(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Sketch] = []

    def nothing_at_first(sketch: Sketch) -> Sketch:
        left.append(sketch)
        return Sketch(()) if len(left) == 1 else sketch

    use(monkeypatch, doing(nothing_at_first))
    drawn = list(draw(system, 3, steps=3, repair=True))
    assert [drawing.attempts for drawing in drawn] == [2, 1, 1]


SQUARE = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize(("gap", "closes"), [(0.0, True), (0.005, False)])
def test_closed_means_exactly_closed_after_repair(
    system: SketchDNN, monkeypatch: pytest.MonkeyPatch, gap: float, closes: bool
) -> None:
    """A gap of 0.005 is forgiven in what is raw, but not in what was to be repaired."""
    ends = [*SQUARE[1:], (gap, 0.0)]
    square = Sketch(tuple(Line(a, b) for a, b in zip(SQUARE, ends, strict=True)))
    use(monkeypatch, doing(lambda sketch: square))
    (drawing,) = draw(system, 1, steps=2, conditions=Conditions(closed=True), repair=True)
    assert (drawing.shortfall is None) == closes


def test_the_best_of_several_is_chosen_after_repair(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    square = Sketch(tuple(Line(a, b) for a, b in zip(SQUARE, SQUARE[1:] + SQUARE[:1], strict=True)))
    calls: list[Sketch] = []
    use(monkeypatch, doing(lambda sketch: square if len(calls) == 3 else without_last(square), calls))
    (drawing,) = draw(system, 1, steps=2, conditions=Conditions(best_of=4), repair=True)
    assert (len(calls), drawing.attempts) == (4, 4)
    assert (len(drawing.sketch), drawing.score, drawing.fewer) == (4, 1.0, None)


def test_the_best_of_too_few_says_so(system: SketchDNN) -> None:
    """What is met about every other time cannot be met thirty times in fifty-three attempts."""
    is_restrictive = Conditions(aspect=(1.0, 1.2), best_of=30)
    for drawing in draw(system, 2, steps=3, conditions=is_restrictive):
        assert drawing.shortfall is None
        assert drawing.attempts == MAX_ATTEMPTS + 29
        assert drawing.fewer is not None
        assert "not of 30: no more of 53 attempts" in drawing.fewer


def test_frames_end_in_what_was_drawn(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, doing(without_last))
    (drawing,) = draw(system, 1, steps=4, trajectory_frames=4, repair=True)
    assert len(drawing.trajectory[-1].likely()) == len(drawing.sketch) + 1


def test_variations_are_repaired_where_they_are(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, doing(marked))
    raw, repaired = (
        list(draw_like(system, PART, 2, strength=0.2, steps=20, repair=repair)) for repair in (False, True)
    )
    for before, after in zip(raw, repaired, strict=True):
        assert after.sketch == replace(before.sketch, constraints=(MARK,))


def test_completions_are_judged_after_repair(system: SketchDNN, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def stand_in(sketch: Sketch, given: int = 0) -> RepairResult:
        seen.append(given)
        return RepairResult(Sketch(sketch.primitives[:8], units=sketch.units), RepairReport(dof=5))

    use(monkeypatch, stand_in)
    done = list(complete(system, PART, 2, steps=3, primitives=12, repair=True))
    assert set(seen) == {len(PART)}
    for one in done:
        assert one.sketch.primitives[:3] == PART.primitives
        assert (len(one.sketch), one.attempts) == (8, 4)
        assert one.shortfall == "12 primitives were asked for, and it has 8"
        assert one.repair == RepairReport(dof=5)


@pytest.mark.parametrize("said", [(), (Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),)])
def test_a_completion_says_what_holds_in_the_part_and_all_that_is_free(
    system: SketchDNN, said: tuple[Constraint, ...]
) -> None:
    """For the repair the part is fixed; in a file it is not, and would come apart at its corner."""
    (done,) = complete(system, replace(PART, constraints=said), 1, num_frames=1, steps=3, repair=True)
    assert done.sketch.primitives[: len(PART)] == PART.primitives
    of_part = {c for c in done.sketch.constraints if all(ref.primitive in range(len(PART)) for ref in c.refs)}
    if said:
        assert of_part == set(said)
    else:
        assert {ConstraintType.COINCIDENT, ConstraintType.HORIZONTAL} <= {c.type for c in of_part}
    assert done.repair is not None
    assert done.repair.dof == solve(done.sketch).dof


def test_what_would_touch_what_is_given_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = PART.moved(1.0, (0.1, 0.0))
    done = SimpleNamespace(sketch=moved, actions=(), displacement=0.001, dof=3, warning=None)
    monkeypatch.setattr(repairs, "repair_all", lambda sketches, **_: [done] * len(sketches))
    assert mend(PART, given=0).sketch == moved
    kept = mend(PART, given=2)
    assert kept.sketch == PART
    assert "would have moved" in str(kept.report.warning)


def test_an_account_is_a_line() -> None:
    assert RepairReport(dof=1).summary == "nothing to repair; 1 degree of freedom"
    assert RepairReport(warning="too many").summary == "not repaired: too many"
    assert RepairReport(("a",), ("snap",), warning="two contradict").summary == "repaired in part: two contradict"


def gapped(number: int) -> Sketch:
    """A plate whose corners nearly meet."""
    off = 0.001 * (1 + number % 7)
    ends = [(x + off, y - off / 2) for x, y in (*SQUARE[1:], SQUARE[0])]
    return Sketch(tuple(Line(a, b) for a, b in zip(SQUARE, ends, strict=True)))


def test_ends_that_nearly_meet_meet() -> None:
    for number in range(3):
        done = mend(gapped(number))
        lines = [line for line in done.sketch if isinstance(line, Line)]
        assert len(lines) == 4
        for one, other in zip(lines, lines[1:] + lines[:1], strict=True):
            assert one.end == pytest.approx(other.start, abs=1e-9)
        assert done.sketch.constraints
        assert done.report.actions
        assert len(done.report.actions) == len(done.report.kinds)
        assert 0 < done.report.displacement < 0.02


def test_a_repaired_sketch_stays_repaired_at_its_size(system: SketchDNN) -> None:
    """Repair comes before scaling, and nothing of it is lost on the way."""
    for drawing in draw(system, 4, steps=6, repair=True):
        again = mend(drawing.sketch)
        assert again.report.displacement < 1e-6
        assert len(again.sketch) == len(drawing.sketch)


def test_processes_repair_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs, "_WORTH_PROCESSES", 4)
    heard: list[float] = []
    sketches = [gapped(number) for number in range(7)]
    assert repair_sketches(sketches, workers=2, on_progress=heard.append) == repair_sketches(sketches)
    assert heard[-1] == 1
    assert repair_sketches([]) == []


def test_cores_are_shared() -> None:
    assert available_cores() >= 1
    assert available_cores(10_000) == 1


def _kinds() -> list[object]:
    from sketchdnn.geometry import Kind

    return list(Kind)
