"""What a repair does, case by case; the closing of profiles; and its budget."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from itertools import chain, pairwise

import pytest
from support.noisy_sketches import T, add_noise
from support.noisy_sketches import constraint as c
from support.outlines import rectangle

from sketchdnn.constraints import ActionKind, RepairedSketch, infer, repair, repair_all, solve
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.repair import infer_solve, pipeline
from sketchdnn.constraints.repair.infer_solve import Budget, attempt_cost, infer_cost, solve_cost
from sketchdnn.constraints.repair.joins import ClosedProfile, close_profile
from sketchdnn.constraints.repair.quality import EXACT
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, Kind, Line, Part, Point, Primitive, Ref, Sketch, Vec, profile


def outline() -> list[Primitive]:
    return rectangle(0.0, 0.0, 40.0, 30.0)


def noisy(primitives: Sequence[Primitive], noise: float, seed: int = 0) -> list[Primitive]:
    return list(add_noise(Sketch(tuple(primitives)), noise, seed))


ROUGH = Sketch(tuple(noisy(outline(), 0.15)), units="mm")


def kinds(result: RepairedSketch) -> set[ActionKind]:
    return {action.kind for action in result.actions}


def assert_holds(result: RepairedSketch) -> None:
    """All its constraints hold, none is too many, and nothing went further than it may."""
    solution = solve(result.sketch)
    assert (solution.conflicting, solution.redundant) == ((), ())
    assert solution.residual <= 1e-9
    assert result.displacement <= 0.01


def test_noisy_rectangle_becomes_exact() -> None:
    result = repair(ROUGH)
    assert kinds(result) >= {ActionKind.SNAP, ActionKind.SQUARE}
    assert profile(result.sketch, 1e-9).is_extrudable
    assert (result.sketch.units, result.dof, result.warning) == ("mm", 4, None)
    assert result.sources == ((0,), (1,), (2,), (3,))
    assert 0 < result.displacement < 0.01
    assert_holds(result)
    # An exact sketch is unchanged.
    sketch = Sketch((*outline(), Circle((10, 10), 4), Point((10, 10))))
    result = repair(sketch)
    assert (result.sketch.primitives, result.actions, result.displacement) == (sketch.primitives, (), 0.0)
    assert_holds(result)


def test_slivers_duplicates_and_overlaps_are_dropped_or_merged() -> None:
    small = repair(Sketch((*outline(), Line((20, 20), (20.1, 20)), Circle((10, 10), 0.05))))
    assert (len(small.sketch), [action.kind for action in small.actions].count(ActionKind.DROP)) == (4, 2)
    assert profile(small.sketch, 1e-9).is_extrudable
    for again in (Line((40, 0.05), (0, -0.05)), Line((10, 0), (30, 0.02))):  # reversed, and a part of it
        result = repair(Sketch((*outline(), again)))
        assert result.sources == ((0, 4), (1,), (2,), (3,))
        assert profile(result.sketch, 1e-9).is_extrudable
        assert kinds(result) & {ActionKind.DROP, ActionKind.MERGE}
    sides = outline()[1:]
    merged = repair(Sketch((Line((0, 0), (25, 0)), Line((15, 0.05), (40, 0)), *sides)))
    assert (ActionKind.MERGE in kinds(merged), len(merged.sketch)) == (True, 4)
    assert profile(merged.sketch, 1e-9).is_extrudable
    adjacent = repair(Sketch((Line((0, 0), (20, 0)), Line((20, 0), (40, 0)), *sides)))
    assert len(adjacent.sketch) == 5
    arcs = (Arc((0, 0), 10, 0.0, 2.0), Arc((0.02, 0), 10, 1.5, 1.6))
    arc, _ = repair(Sketch((*arcs, Line((-20, -10), (20, -10)))), close=False).sketch
    assert arc.sweep == pytest.approx(3.1, abs=0.02)
    around = (Arc((0, 0), 10, 0.0, 4.0), Arc((0, 0), 10, 3.5, 3.5))
    circle, _ = repair(Sketch((*around, Line((-20, -15), (20, -15))))).sketch
    assert isinstance(circle, Circle)


@pytest.mark.parametrize(("end", "kind"), [(29.8, ActionKind.EXTEND), (30.2, ActionKind.TRIM)])
def test_ends_are_extended_or_trimmed_to_curves(end: float, kind: ActionKind) -> None:
    result = repair(Sketch((*outline(), Line((20, 10), (20, end)))), close=False)
    assert kind in kinds(result)
    assert result.sketch.primitives[4].end[1] == pytest.approx(result.sketch.primitives[2].start[1], abs=1e-6)


def test_fillet_becomes_tangent() -> None:
    arc = Arc((30.1, 10), 10, -1.55, 1.52)
    result = repair(Sketch((Line((0, 0), (30, 0)), arc, Line((40, 10.1), (40, 30)), Line((40, 30), (0, 0)))))
    assert ActionKind.TANGENT in kinds(result)
    assert T.TANGENT in {each.type for each in result.sketch.constraints}
    assert profile(result.sketch, 1e-9).is_extrudable
    assert_holds(result)


def test_open_outline_is_closed_and_open_curve_becomes_construction() -> None:
    result = repair(Sketch(tuple(noisy(outline()[:3], 0.1))))
    assert (ActionKind.CLOSE in kinds(result), result.sources[3]) == (True, ())
    assert profile(result.sketch, 1e-9).is_extrudable
    stray = repair(Sketch((*outline(), Line((5, 5), (15, 12)))))
    assert ActionKind.CONSTRUCTION in kinds(stray)
    assert stray.sketch.primitives[4] == Line((5, 5), (15, 12), construction=True)
    assert not repair(Sketch(tuple(outline()[:3])), close=False).actions
    center = Ref(0, Part.CENTER)  # a closing line may add as many constraints as were lost
    lost = (c(T.COINCIDENT, center, center), Constraint(T.OTHER, (center, center), name="Pierce"))
    assert [p.kind for p in repair(Sketch((Arc((0, 0), 1, 0, 4),), lost)).sketch] == [Kind.ARC, Kind.LINE]


def test_kept_primitives_stay_and_others_move_to_them() -> None:
    for keep in ([0], [0, 2], range(4)):
        result = repair(ROUGH, keep=keep)
        for i in keep:
            assert result.sketch.primitives[i] == ROUGH.primitives[i]
        assert result.dof == solve(result.sketch).dof  # as of any other sketch: kept is not fixed
        assert profile(result.sketch, 1e-9).is_extrudable == (len(keep) < 4)
    line = Line((0, 0), (40, 0.01))
    copied = repair(Sketch((Line((0, 0.05), (40, 0)), *outline()[1:], line)), keep=[4])  # its copy is dropped
    assert (line in copied.sketch, len(copied.sketch)) == (True, 4)


def test_kept_arc_may_miss_its_neighbors_by_rounding() -> None:
    # Angles of five digits: the arc's ends meet the lines but for rounding, wherever the sketch is laid down.
    corner = Arc((35.0, 5.0), 5.0, -1.5707963, 1.5707963)
    given = (Line((0, 0), corner.start), corner, Line(corner.end, (40, 30)))
    held = tuple(infer(Sketch(given), 1e-9))
    assert T.COINCIDENT in {each.type for each in held}
    for scale, by in ((1.0, (0.0, 0.0)), (0.0137, (3.3, -1.7)), (712.3, (0.1, 9.0))):
        part = Sketch((*given, *noisy(outline()[2:], 0.15)), held).moved(scale, by)
        result = repair(part, keep=range(3))
        assert (result.warning, result.sketch.primitives[:3]) == (None, part.primitives[:3])
        assert profile(result.sketch, 1e-9).is_extrudable
        assert max(by or 0 for by in constraint_residuals(result.sketch, result.sketch.constraints)) < 1e-9


def test_lines_of_one_bit_are_handled() -> None:
    """Ends that are one bit apart, or apart only near zero, as in real SketchGraphs sketches."""
    bits = [31.5, math.nextafter(31.5, 32), math.nextafter(math.nextafter(31.5, 32), 32)]
    narrow = rectangle(10.0, 0.0, 30.0, 30.0)
    scaled = Sketch((Line((bits[0], 9), (bits[1], 9)), Line((bits[1], 12), (bits[2], 12)), *narrow))
    ends = Line((1e-17, 15), (5e-17, 15)), Line((40.0, 15), (math.nextafter(40, 41), 15))
    shifted = Sketch((*ends, *outline()))  # symmetric, so that it is compared with its mirror image
    for sketch in (scaled, shifted):
        free, kept = repair(sketch), repair(sketch, keep=range(2))
        assert (free.warning, kept.warning) == (None, None)
        assert (free.sketch.primitives, kept.sketch.primitives) == (sketch.primitives[2:], sketch.primitives)
        assert sorted(a.primitives for a in free.actions if a.kind is ActionKind.DROP) == [(0,), (1,)]


def test_given_constraints_take_part() -> None:
    given = Constraint(T.EQUAL, (Ref(0), Ref(1)), extra={"label": "mine"})
    result = repair(Sketch(tuple(noisy(rectangle(0.0, 0.0, 40.0, 39.7), 0.02)), (given,)))
    assert next(each for each in result.sketch.constraints if each == given).extra == {"label": "mine"}
    first, second = result.sketch.primitives[:2]
    assert first.length == pytest.approx(second.length, abs=1e-6)
    # Given values are restored exactly.
    given = (c(T.RADIUS, 4, value=6.0), c(T.LENGTH, 0, value=40.1), c(T.ANGLE, 0, 1, value=math.pi / 2))
    for scale in (1.0, 0.3, 7.7):
        sketch = Sketch((*noisy(outline(), 0.1), Circle((20, 15), 5.95)), given).moved(scale)
        assert set(sketch.constraints) <= set(repair(sketch).sketch.constraints)
    # Conflicting constraints are named.
    given = (c(T.HORIZONTAL, 0), c(T.EQUAL, 0, 2), c(T.PARALLEL, 0, 1))
    result = repair(Sketch(tuple(outline()), given))
    assert "parallel (0, 1)" in str(result.warning)
    assert set(given[:2]) <= set(result.sketch.constraints) - {given[2]}
    # Constraints of dropped primitives are dropped.
    result = repair(Sketch((*outline(), Line((20, 20), (20.1, 20))), (c(T.HORIZONTAL, 4), c(T.VERTICAL, 1))))
    assert len(result.sketch) == 4
    assert all(ref.primitive in (None, 0, 1, 2, 3) for each in result.sketch.constraints for ref in each.refs)


def test_degenerate_sketches_are_handled_and_bad_arguments_refused() -> None:
    point, circle, tiny = Point((3, 4)), Circle((0, 0), 5), Line((0, 0), (1e-12, 0))
    far = Line((1e9, 1e9), (1e9 + 1, 1e9))
    for primitives in ((), (point,), (point, point), (circle, circle), (tiny, Line((0, 0), (1, 0))), (far,)):
        result = repair(Sketch(primitives))
        assert len(result.sketch) == len(result.sources) <= len(primitives)
    with pytest.raises(GeometryError, match="share of the size"):
        repair(ROUGH, 0.5)
    with pytest.raises(GeometryError, match="no primitive 9"):
        repair(ROUGH, keep=[9])


def test_every_action_is_a_sentence() -> None:
    others = Line((5, 5), (15, 12)), Line((20, 20), (20.1, 20)), Circle((9, 20), 2)
    for action in repair(Sketch((*noisy(outline()[:3], 0.1), *others))).actions:
        assert re.fullmatch(r"[A-Z].*\.", str(action))


def test_repair_all_keeps_the_order() -> None:
    sketches = [Sketch(tuple(noisy(outline(), 0.15, seed))) for seed in range(40)]
    one, two = ([r.sketch for r in repair_all(iter(sketches), workers=workers)] for workers in (1, 2))
    assert (one, len(one)) == (two, 40)


def squares(count: int) -> Sketch:
    """Many small squares, each a little open."""
    side = math.ceil(math.sqrt(count))
    items = [noisy(rectangle(10.0 * (k % side), 10.0 * (k // side), 6, 6), 0.02, k) for k in range(count)]
    return Sketch(tuple(chain.from_iterable(items)))


def test_large_drawing_is_repaired_in_pieces() -> None:
    result = repair(squares(50))
    assert result.warning == "the sketch is so large that its 50 connected components were repaired separately"
    assert profile(result.sketch, 1e-6).is_extrudable
    assert result.dof == 150
    assert repair(result.sketch).sketch.primitives == result.sketch.primitives


@pytest.mark.slow
def test_thousand_primitives_are_repaired() -> None:
    assert profile(repair(squares(250)).sketch, 1e-6).is_extrudable
    rng = random.Random(0)
    points = [(rng.random(), rng.random()) for _ in range(2000)]
    assert repair(Sketch(tuple(Line(a, b) for a, b in zip(points[::2], points[1::2], strict=True)))).warning


def closed(primitives: list[Primitive], tolerance: float = 1e-3) -> ClosedProfile:
    return close_profile(primitives, (), profile(primitives, EXACT), tolerance, ())


def path(*corners: Vec) -> list[Primitive]:
    return [Line(a, b) for a, b in pairwise(corners)]


UNIT_SQUARE = path((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))


def test_closing_line_is_longer_than_the_tolerance_and_at_most_half_of_its_chain() -> None:
    for scale, depth, closes in ((1, 1, True), (8, 1, True), (1, 0.99, False), (8, 0.99, False)):
        result = closed(path((0, depth * scale), (0, 0), (2 * scale, 0), (2 * scale, depth * scale)))
        assert (result.profile.is_extrudable, len(result.primitives)) == (closes, 4 if closes else 3)
    for gap, closes in ((0.25, False), (0.26, True), (0.1, False)):
        sides = path((0, gap), (0, 1), (1, 1), (1, 0), (0, 0))
        assert closed(sides, tolerance=0.25).profile.is_extrudable == closes


def test_ends_are_joined_once_and_by_the_shortest_lines() -> None:
    left, right = path((1, 0), (0, 0), (0, 1), (1, 1)), path((1.5, 0), (3, 0), (3, 1), (1.5, 1))
    result = closed([*left, *right])
    assert result.profile.is_extrudable
    added = {frozenset((p.start, p.end)) for p in result.primitives[6:]}
    assert added == {frozenset({(1, y), (1.5, y)}) for y in (0, 1)}
    # The end of another curve is near one of the open ends, but farther than the other open end is.
    outline, other = path((0, 1), (0, 0), (1, 0), (1, 1)), path((-1.1, 1.2), (-1.1, 3.6))
    for primitives in ([*other, *outline], [*outline, *other]):
        result = closed(primitives)
        assert (result.profile.is_extrudable, len(result.primitives)) == (True, 5)
        assert [action.kind for action in result.actions].count(ActionKind.CONSTRUCTION) == 1


def test_open_curves_up_to_half_of_the_profile_become_construction() -> None:
    for length, changes in ((4.0, True), (4.01, False), (40.0, False)):
        result = closed([*UNIT_SQUARE, Line((5, 0), (5 + length, 0))])
        assert result.profile.is_extrudable == changes
        assert [p.construction for p in result.primitives] == [False] * 4 + [changes]
    large = path((0, 0), (100, 0), (100, 100), (0, 100), (0, 0))  # the share counts, not the units
    assert closed([*large, Line((200, 0), (300, 0))]).profile.is_extrudable


def test_failing_solver_or_spent_budget_leaves_the_sketch_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise GeometryError("no solution")

    with monkeypatch.context() as patch:
        patch.setattr(infer_solve, "solve", fail)
        result = repair(ROUGH)
    assert (result.sketch, bool(result.warning)) == (ROUGH, True)
    budget = Budget()
    assert [budget.spend(budget.left / 2), budget.spend(budget.left), budget.spend(0.0)] == [True, True, False]
    monkeypatch.setattr(infer_solve, "_TOTAL", 0.0)
    result = repair(ROUGH)
    assert (result.sketch, "broken off" in str(result.warning)) == (ROUGH, True)
    # Only large drawings are expensive.
    lines = tuple(outline())
    level, parallel = [c(T.HORIZONTAL, 0)], [c(T.PARALLEL, 0, 1)] * 900
    assert attempt_cost(lines) + infer_cost(lines) + solve_cost(lines, level) < 1e-4
    assert attempt_cost(lines * 300) + solve_cost(lines * 300, parallel) > 1


def test_no_attempt_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    # An open outline that crosses itself can never be extruded, so every caution is tried.
    seen = []
    solve_attempt = pipeline.infer_and_solve

    def record(sketch: Sketch, joins: Sequence[Constraint], limits: infer_solve.Limits, **options: object) -> object:
        seen.append((sketch, tuple(joins), limits.noise, limits.subtle, *options.values()))
        return solve_attempt(sketch, joins, limits, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "infer_and_solve", record)
    corners = [(0.0, 0.0), (40.0, 0.1), (40.1, 30.0), (20.0, -9.0), (0.0, 30.0)]
    crossing = Sketch(tuple(noisy([Line(a, b) for a, b in pairwise(corners)], 0.1)))
    assert not profile(repair(crossing).sketch).is_extrudable
    assert len(seen) >= 4
    assert all(one != other for k, one in enumerate(seen) for other in seen[:k])
