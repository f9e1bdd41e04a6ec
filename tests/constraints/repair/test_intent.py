"""Design intent: near mirror symmetry becomes exact, pieces one curve, rows even; what is exact or given stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.noisy_sketches import T, add_noise
from support.outlines import polygon, rectangle
from support.real_sketches import spread

from sketchdnn.constraints import ActionKind, RepairedSketch, infer, repair
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.geometry import Arc, Circle, Line, Part, Point, Primitive, Sketch, bounds, normalize, profile

# A plate of size 100 about the origin with a step on either side.
CORNERS = ((-50, -30), (50, -30), (50, 10), (35, 10), (35, 30), (-35, 30), (-35, 10), (-50, 10))
NOISE = 0.08


def plate(*others: Primitive) -> Sketch:
    return Sketch((*polygon(*((float(x), float(y)) for x, y in CORNERS)), *others))


def noisy(sketch: Sketch, seed: int = 0) -> Sketch:
    return add_noise(sketch, NOISE, seed)


def holes(sketch: Sketch) -> list[Circle]:
    return [p for p in sketch if isinstance(p, Circle)]


def off_mirror(sketch: Sketch, at: float = 0.0) -> float:
    """How far the ends and centers are from being mirror images about an upright line."""
    places = [place for p in sketch for place in ((p.start, p.end) if isinstance(p, Line) else (p.center,))]
    return max(min(math.dist((2 * at - x, y), other) for other in places) for x, y in places)


def assert_holds(result: RepairedSketch) -> None:
    residuals = constraint_residuals(result.sketch, result.sketch.constraints)
    assert max(residual or 0.0 for residual in residuals) <= 1e-8
    assert result.displacement <= 0.01
    assert not repair(result.sketch).actions


NEARLY = plate(Circle((-30, -10), 6), Circle((30.9, -10.3), 6))


@pytest.mark.parametrize("seed", range(3))
def test_noisy_sketch_becomes_mirror_symmetric_about_its_axis(seed: int) -> None:
    result = repair(noisy(NEARLY, seed))
    assert off_mirror(result.sketch) <= 1e-6
    left, right = holes(result.sketch)
    assert left.radius == pytest.approx(right.radius, abs=1e-6)
    about = [c for c in result.sketch.constraints if c.type is T.SYMMETRIC and c.refers_to(Part.Y_AXIS)]
    assert about
    assert profile(result.sketch, 1e-9).is_extrudable
    assert_holds(result)


def test_axis_may_lie_anywhere() -> None:
    result = repair(noisy(NEARLY).moved(1.0, (70.0, -20.0)))
    line = result.sketch.primitives[0]
    assert isinstance(line, Line)
    assert off_mirror(result.sketch, (line.start[0] + line.end[0]) / 2) <= 1e-6
    assert not any(c.refers_to(Part.X_AXIS, Part.Y_AXIS, Part.ORIGIN) for c in result.sketch.constraints)
    assert_holds(result)


def test_exact_sketch_and_deliberate_differences_stay() -> None:
    result = repair(NEARLY)
    assert (result.sketch.primitives, result.actions) == (NEARLY.primitives, ())
    # A hole further off, and a hole on one side only.
    for other in (Circle((33.0, -10.0), 6), Circle((20.0, -15.0), 4)):
        result = repair(noisy(plate(Circle((-30, -10), 6), other)))
        left, right = holes(result.sketch)
        assert abs(left.center[0] + right.center[0]) > 2.5
        assert off_mirror(Sketch(result.sketch.primitives[:8])) <= 1e-6
    # A sketch without an axis.
    step = Sketch(tuple(polygon((0, 0), (60, 0), (60, 20), (25, 20), (25, 45), (0, 45))))
    assert repair(noisy(step)).sketch.primitives[2].length == pytest.approx(35.0, abs=0.4)


def test_given_primitives_stay_and_additions_become_their_images() -> None:
    drawn = Sketch((*NEARLY.primitives[:9], *noisy(Sketch((Circle((30.7, -10.3), 6.1),)))))
    ends = noisy(Sketch(tuple(rectangle(-5.0, -25.0, 10.0, 8.0))))
    whole = Sketch((*drawn, *ends))
    result = repair(whole, keep=range(9))
    assert result.sketch.primitives[:9] == whole.primitives[:9]
    assert holes(result.sketch)[1].center == pytest.approx((30.0, -10.0), abs=1e-6)
    assert off_mirror(result.sketch) <= 1e-6
    assert_holds(result)


def halves(y: float) -> list[Primitive]:
    """A rectangle of which two sides are two pieces each."""
    bottom = [Line((0, 0), (30, 0)), Line((30, y), (80, 0))]
    return [*bottom, Line((80, 0), (80, 50)), Line((80, 50), (20, 50)), Line((20, 50), (0, 50)), Line((0, 50), (0, 0))]


def num_merged(primitives: Sequence[Primitive], keep: Sequence[int] = ()) -> int:
    actions = repair(noisy(Sketch(tuple(primitives))), keep=keep).actions
    return [action.kind for action in actions].count(ActionKind.MERGE)


def test_pieces_of_a_line_or_arc_become_one() -> None:
    result = repair(noisy(Sketch(tuple(halves(0.0)))))
    assert result.sources == ((0, 1), (2,), (3, 4), (5,))
    assert profile(result.sketch, 1e-9).is_extrudable
    assert_holds(result)
    arcs = (Arc((80, 25), 25, -math.pi / 2, 2.0), Arc((80, 25), 25, 2.0 - math.pi / 2, math.pi - 2.0))
    rounded = [*halves(0.0)[:2], *arcs, *halves(0.0)[3:]]
    assert num_merged(rounded) == 3


def test_pieces_stay_where_something_is_at_the_joint_or_they_bend() -> None:
    assert not repair(Sketch(tuple(halves(0.0)))).actions  # drawn exactly
    assert num_merged([*halves(0.0), Point((30, 0))]) == 1
    assert num_merged([*halves(0.0), Circle((30, 0), 4)]) == 1
    assert num_merged([*halves(0.0), Line((30, 0), (30, 50), construction=True)]) == 1
    assert num_merged(halves(0.0), keep=[0]) == 1
    bent = halves(0.0)
    bent[:2] = [Line((0, 0), (40, 2.5)), Line((40, 2.5), (80, 0))]
    assert num_merged(bent) == 1


def test_circle_halfway_between_two_others_of_its_size_is_inferred_to_be_so() -> None:
    row = Sketch(tuple(Circle((x, y), 4.0) for x, y in ((0.0, 0.0), (30.03, 12.02), (60.0, 24.0))))
    about = [c.refs for c in infer(row) if c.type is T.SYMMETRIC]
    assert [(refs[0].primitive, refs[1].primitive, refs[2].primitive) for refs in about] == [(0, 2, 1)]
    assert not [c for c in infer(Sketch((*row.primitives[:2], Circle((60, 24), 6.0)))) if c.type is T.SYMMETRIC]


def test_symmetry_of_real_sketches_survives_noise_and_is_not_made_up(real_data: Path) -> None:
    found = spread(real_data, 100)
    sketches = [Sketch(tuple(p)) for source in ("freecad", "sketchgraphs") for p in found[source] if 6 <= len(p) <= 16]
    originals = [normalize(s, 50.0)[0] for s in sketches if bounds(s).size > 0 and profile(s).is_extrudable][:50]
    of_original = np.array([_is_mirrored(sketch, 0.2) for sketch in originals])
    repaired = [repair(noisy(sketch, seed)).sketch for seed, sketch in enumerate(originals)]
    of_repaired = np.array([_is_mirrored(sketch, 1e-3) for sketch in repaired])
    assert of_original.sum() >= 15
    assert of_repaired[of_original].mean() >= 0.9
    assert of_original[of_repaired].mean() >= 0.85


def _is_mirrored(sketch: Sketch, tolerance: float) -> bool:
    """Whether the points of a sketch are their own mirror images about a middle axis of its box."""
    placed, _ = normalize(sketch, 50.0)
    places = np.array([p.at(f) for p in placed if not isinstance(p, Point) for f in (0.0, 0.25, 0.5, 0.75, 1.0)])
    for signs in ((-1, 1), (1, -1)):
        offset = np.hypot(*np.moveaxis((places * signs)[:, None] - places, -1, 0)).min(axis=1)
        if offset.max() <= tolerance:
            return True
    return False
