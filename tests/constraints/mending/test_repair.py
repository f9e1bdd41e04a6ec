"""What a repair does, case by case."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import pytest
from sketchdnn.constraints.holding import missed_by

from sketchdnn.constraints import ActionKind, Repaired, infer, repair, repair_all, solve
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import (
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Kind,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
    Vec,
    profile,
)

CORNERS = [(0.0, 0.0), (40.0, 0.0), (40.0, 30.0), (0.0, 30.0)]


def outline(corners: Sequence[Vec] = CORNERS) -> list[Primitive]:
    return [Line(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]


def shaken(primitives: Sequence[Primitive], by: float, seed: int = 0) -> list[Primitive]:
    """Every end a little off, on its own."""
    chance = random.Random(seed)

    def near(at: Vec) -> Vec:
        return (at[0] + chance.uniform(-by, by), at[1] + chance.uniform(-by, by))

    return [Line(near(p.start), near(p.end), p.construction) if isinstance(p, Line) else p for p in primitives]


def kinds(done: Repaired) -> set[ActionKind]:
    return {action.kind for action in done.actions}


def assert_holds(done: Repaired) -> None:
    """All its constraints hold, none is too many, and nothing went further than it may."""
    solution = solve(done.sketch)
    assert solution.residual <= 1e-9
    assert not solution.conflicting
    assert not solution.redundant
    assert done.displacement <= 0.01


def test_a_shaky_rectangle_becomes_one() -> None:
    sketch = Sketch(tuple(shaken(outline(), 0.15)), units="mm")
    done = repair(sketch)
    assert kinds(done) >= {ActionKind.SNAP, ActionKind.SQUARE}
    assert profile(done.sketch, 1e-9).is_extrudable
    assert done.sketch.units == "mm"
    assert done.dof == 4
    assert done.sources == ((0,), (1,), (2,), (3,))
    assert 0 < done.displacement < 0.01
    assert done.warning is None
    assert_holds(done)


def test_what_is_fine_stays_exactly_as_it_is() -> None:
    sketch = Sketch((*outline(), Circle((10, 10), 4), Point((10, 10))))
    done = repair(sketch)
    assert done.sketch.primitives == sketch.primitives
    assert not done.actions
    assert done.displacement == 0.0
    assert_holds(done)


@pytest.mark.parametrize(
    "again",
    [
        Line((40, 0.05), (0, -0.05)),  # the other way round, and not quite there
        Line((10, 0), (30, 0.02)),
    ],
)
def test_what_is_there_already_goes(again: Line) -> None:
    done = repair(Sketch((*outline(), again)))
    assert done.sources == ((0, 4), (1,), (2,), (3,))
    assert profile(done.sketch, 1e-9).is_extrudable
    assert kinds(done) & {ActionKind.DROP, ActionKind.MERGE}


def test_lines_along_each_other_become_one() -> None:
    parts = outline()
    sketch = Sketch((Line((0, 0), (25, 0)), Line((15, 0.05), (40, 0)), *parts[1:]))
    done = repair(sketch)
    assert ActionKind.MERGE in kinds(done)
    assert len(done.sketch) == 4
    assert profile(done.sketch, 1e-9).is_extrudable


def test_an_edge_in_two_pieces_stays_so() -> None:
    done = repair(Sketch((Line((0, 0), (20, 0)), Line((20, 0), (40, 0)), *outline()[1:])))
    assert len(done.sketch) == 5


def test_arcs_of_one_circle_become_one() -> None:
    sketch = Sketch((Arc((0, 0), 10, 0.0, 2.0), Arc((0.02, 0), 10, 1.5, 1.6), Line((-20, -10), (20, -10))))
    done = repair(sketch, close=False)
    arcs = [p for p in done.sketch if isinstance(p, Arc)]
    assert len(arcs) == 1
    assert arcs[0].sweep == pytest.approx(3.1, abs=0.02)


def test_arcs_all_around_become_a_circle() -> None:
    done = repair(Sketch((Arc((0, 0), 10, 0.0, 4.0), Arc((0, 0), 10, 3.5, 3.5), Line((-20, -15), (20, -15)))))
    assert [type(p) for p in done.sketch] == [Circle, Line]


def test_slivers_go() -> None:
    done = repair(Sketch((*outline(), Line((20, 20), (20.1, 20)), Circle((10, 10), 0.05))))
    assert len(done.sketch) == 4
    assert [action.kind for action in done.actions].count(ActionKind.DROP) == 2
    assert profile(done.sketch, 1e-9).is_extrudable


@pytest.mark.parametrize(("end", "kind"), [(29.8, ActionKind.EXTEND), (30.2, ActionKind.TRIM)])
def test_ends_go_to_the_curve_they_missed(end: float, kind: ActionKind) -> None:
    done = repair(Sketch((*outline(), Line((20, 10), (20, end)))), close=False)
    assert kind in kinds(done)
    line = done.sketch.primitives[4]
    top = done.sketch.primitives[2]
    assert isinstance(line, Line)
    assert isinstance(top, Line)
    assert line.end[1] == pytest.approx(top.start[1], abs=1e-6)


def test_a_fillet_becomes_tangent() -> None:
    sketch = Sketch(
        (Line((0, 0), (30, 0)), Arc((30.1, 10), 10, -1.55, 1.52), Line((40, 10.1), (40, 30)), Line((40, 30), (0, 0)))
    )
    done = repair(sketch)
    assert ActionKind.TANGENT in kinds(done)
    assert {c.type for c in done.sketch.constraints} >= {ConstraintType.TANGENT}
    assert profile(done.sketch, 1e-9).is_extrudable
    assert_holds(done)


def test_an_open_outline_gets_its_line_and_a_stray_becomes_construction() -> None:
    done = repair(Sketch(tuple(shaken(outline()[:3], 0.1))))
    assert ActionKind.CLOSE in kinds(done)
    assert done.sources[3] == ()
    assert profile(done.sketch, 1e-9).is_extrudable
    stray = repair(Sketch((*outline(), Line((5, 5), (15, 12)))))
    assert ActionKind.ASIDE in kinds(stray)
    assert stray.sketch.primitives[4] == Line((5, 5), (15, 12), construction=True)
    assert not repair(Sketch(tuple(outline()[:3])), close=False).actions


def test_what_is_to_be_kept_is_kept_and_others_go_to_it() -> None:
    sketch = Sketch(tuple(shaken(outline(), 0.15)))
    for keep in ([0], [0, 2], range(4)):
        done = repair(sketch, keep=keep)
        for i in keep:
            assert done.sketch.primitives[i] == sketch.primitives[i]
        assert done.dof == solve(done.sketch).dof  # as of any other sketch: kept is not fixed
    first = repair(sketch, keep=[0]).sketch
    assert profile(first, 1e-9).is_extrudable


def test_kept_arc_with_joined_ends_keeps_repair() -> None:
    """Angles of five digits: the arc's ends meet the lines but for rounding, wherever the sketch is laid down."""
    corner = Arc((35.0, 5.0), 5.0, -1.5707963, 1.5707963)
    given = (Line((0, 0), corner.start), corner, Line(corner.end, (40, 30)))
    held = tuple(infer(Sketch(given), 1e-9))
    assert ConstraintType.COINCIDENT in {c.type for c in held}
    for scale, by in ((1.0, (0.0, 0.0)), (0.0137, (3.3, -1.7)), (712.3, (0.1, 9.0))):
        part = Sketch((*given, *shaken(outline()[2:], 0.15)), held).moved(scale, by)
        done = repair(part, keep=range(3))
        assert done.warning is None
        assert done.sketch.primitives[:3] == part.primitives[:3]
        assert profile(done.sketch, 1e-9).is_extrudable
        assert max(by or 0 for by in missed_by(done.sketch, done.sketch.constraints)) < 1e-9


def test_lines_too_short_to_be_scaled_or_shifted_do_not_stop_a_repair() -> None:
    """Ends that are one bit apart, or apart only near zero, as in real SketchGraphs sketches."""
    bits = [31.5, math.nextafter(31.5, 32), math.nextafter(math.nextafter(31.5, 32), 32)]
    narrow = outline([(10.0, 0.0), (40.0, 0.0), (40.0, 30.0), (10.0, 30.0)])
    scaled = Sketch((Line((bits[0], 9), (bits[1], 9)), Line((bits[1], 12), (bits[2], 12)), *narrow))
    ends = Line((1e-17, 15), (5e-17, 15)), Line((40.0, 15), (math.nextafter(40, 41), 15))
    shifted = Sketch((*ends, *outline()))  # symmetric, so that it is compared with its mirror image
    for sketch in (scaled, shifted):
        free, kept = repair(sketch), repair(sketch, keep=range(2))
        assert (free.warning, kept.warning) == (None, None)
        assert free.sketch.primitives == sketch.primitives[2:]
        dropped = [action.primitives for action in free.actions if action.kind is ActionKind.DROP]
        assert sorted(dropped) == [(0,), (1,)]
        assert kept.sketch.primitives == sketch.primitives


def test_a_copy_of_what_is_kept_goes() -> None:
    kept = Line((0, 0), (40, 0.01))
    done = repair(Sketch((Line((0, 0.05), (40, 0)), *outline()[1:], kept)), keep=[4])
    assert kept in done.sketch.primitives
    assert len(done.sketch) == 4


def test_given_constraints_stay_and_take_part() -> None:
    given = Constraint(ConstraintType.EQUAL, (Ref(0), Ref(1)), extra={"label": "mine"})
    square = [(0.0, 0.0), (40.0, 0.0), (40.0, 39.7), (0.0, 39.7)]
    done = repair(Sketch(tuple(shaken(outline(square), 0.02)), (given,)))
    assert given in done.sketch.constraints
    assert next(c for c in done.sketch.constraints if c == given).extra == {"label": "mine"}
    first, second = done.sketch.primitives[:2]
    assert first.length == pytest.approx(second.length, abs=1e-6)


def test_given_values_come_back_to_the_last_digit() -> None:
    given = (
        Constraint(ConstraintType.RADIUS, (Ref(4),), 6.0),
        Constraint(ConstraintType.LENGTH, (Ref(0),), 40.1),
        Constraint(ConstraintType.ANGLE, (Ref(0), Ref(1)), math.pi / 2),
    )
    for scale in (1.0, 0.3, 7.7):
        sketch = Sketch((*shaken(outline(), 0.1), Circle((20, 15), 5.95)), given).moved(scale)
        assert set(sketch.constraints) <= set(repair(sketch).sketch.constraints)


def test_contradictory_constraints_are_named() -> None:
    given = (
        Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),
        Constraint(ConstraintType.EQUAL, (Ref(0), Ref(2))),
        Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(1))),
    )
    done = repair(Sketch(tuple(outline()), given))
    assert "parallel (0, 1)" in str(done.warning)
    assert {given[0], given[1]} <= set(done.sketch.constraints)
    assert given[2] not in done.sketch.constraints


def test_constraints_of_what_is_gone_go_with_it() -> None:
    sketch = Sketch(
        (*outline(), Line((20, 20), (20.1, 20))),
        (Constraint(ConstraintType.HORIZONTAL, (Ref(4),)), Constraint(ConstraintType.VERTICAL, (Ref(1),))),
    )
    done = repair(sketch)
    assert len(done.sketch) == 4
    assert all(ref.primitive in (None, 0, 1, 2, 3) for c in done.sketch.constraints for ref in c.refs)


@pytest.mark.parametrize(
    "primitives",
    [
        (),
        (Point((3, 4)),),
        (Point((3, 4)), Point((3, 4))),
        (Circle((0, 0), 5), Circle((0, 0), 5)),
        (Line((0, 0), (1e-12, 0)), Line((0, 0), (1, 0))),
        (Line((1e9, 1e9), (1e9 + 1, 1e9)),),
    ],
)
def test_odd_sketches_come_back(primitives: tuple[Primitive, ...]) -> None:
    done = repair(Sketch(primitives))
    assert len(done.sketch) == len(done.sources) <= len(primitives)


def test_bad_requests_are_refused() -> None:
    sketch = Sketch(tuple(outline()))
    with pytest.raises(GeometryError, match="share of the size"):
        repair(sketch, 0.5)
    with pytest.raises(GeometryError, match="no primitive 9"):
        repair(sketch, keep=[9])


def test_a_solver_that_fails_leaves_the_sketch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise GeometryError("no solution")

    monkeypatch.setattr("sketchdnn.constraints.mending.belief.solve", fail)
    sketch = Sketch(tuple(shaken(outline(), 0.15)))
    done = repair(sketch)
    assert done.sketch == sketch
    assert done.warning


def test_every_action_is_a_sentence() -> None:
    sketch = Sketch(
        (*shaken(outline()[:3], 0.1), Line((5, 5), (15, 12)), Line((20, 20), (20.1, 20)), Circle((9, 20), 2))
    )
    for action in repair(sketch).actions:
        assert str(action)[0].isupper()
        assert str(action).endswith(".")


def test_many_are_repaired_in_order_in_any_number_of_processes() -> None:
    sketches = [Sketch(tuple(shaken(outline(), 0.15, seed))) for seed in range(40)]
    one, two = list(repair_all(sketches, workers=1)), list(repair_all(iter(sketches), workers=2))
    assert [done.sketch for done in one] == [done.sketch for done in two]
    assert len(one) == 40


def squares(count: int) -> Sketch:
    """Many small squares, each a little open."""
    side = math.ceil(math.sqrt(count))
    found: list[Primitive] = []
    for k in range(count):
        x, y = 10.0 * (k % side), 10.0 * (k // side)
        found += shaken(outline([(x, y), (x + 6, y), (x + 6, y + 6), (x, y + 6)]), 0.02, k)
    return Sketch(tuple(found))


def test_a_large_drawing_is_looked_at_piece_by_piece() -> None:
    done = repair(squares(50))
    assert done.warning == "it is so large that its 50 pieces were looked at one by one"
    assert profile(done.sketch, 1e-6).is_extrudable
    assert done.dof == 150
    assert repair(done.sketch).sketch.primitives == done.sketch.primitives


@pytest.mark.slow
def test_a_thousand_primitives_take_bounded_time() -> None:
    begin = time.process_time()
    done = repair(squares(250))
    assert profile(done.sketch, 1e-6).is_extrudable
    chance = random.Random(0)
    ends = [((chance.random(), chance.random()), (chance.random(), chance.random())) for _ in range(1000)]
    tangle = repair(Sketch(tuple(Line(a, b) for a, b in ends)))
    assert tangle.warning
    assert time.process_time() - begin < 60


def test_closing_line_may_bring_as_many_constraints_as_were_lost() -> None:
    center = Ref(0, Part.CENTER)
    lost = (
        Constraint(ConstraintType.COINCIDENT, (center, center)),
        Constraint(ConstraintType.OTHER, (center, center), name="Pierce"),
    )
    done = repair(Sketch((Arc((0, 0), 1, 0, 4),), constraints=lost))
    assert [p.kind for p in done.sketch] == [Kind.ARC, Kind.LINE]
