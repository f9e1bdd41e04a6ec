"""The score of designs: each defect is found once, lowers the score, and given parts are not blamed."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.design import DefectKind, score_design
from sketchdnn.design.score import find_defects, load_weights
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, arc_from_sweep


def polygon(*corners: tuple[float, float]) -> list[Primitive]:
    return [Line(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]


PLATE = polygon((0, 0), (8, 0), (8, 6), (0, 6))
HOLES: list[Primitive] = [Circle((2, 3), 0.5), Circle((6, 3), 0.5)]
FOUR: list[Primitive] = [Circle((x, y), 0.5) for x in (1.5, 6.5) for y in (1.5, 4.5)]
ROW: list[Primitive] = [Circle((2, 3), 0.5), Circle((4, 3), 0.5), Circle((6, 3), 0.5)]
# A sketch without defects, and one with the defect, whose primitives are the last ones.
CASES: dict[DefectKind, tuple[Sequence[Primitive], Sequence[Primitive]]] = {
    DefectKind.OPEN: (PLATE, [*PLATE, Line((2, 2), (6, 2))]),
    DefectKind.GAP: (PLATE, [*PLATE[:3], Line((0, 6), (0, 0.04))]),
    DefectKind.CROSSING: (PLATE, [*PLATE, Circle((8, 3), 1)]),
    DefectKind.TOUCH: (PLATE, [*PLATE, Circle((4, 1), 1)]),
    DefectKind.OVERLAP: (PLATE, [*PLATE, Line((2, 0), (6, 0))]),
    DefectKind.SPLIT: (PLATE, [*PLATE[1:], Line((0, 0), (4, 0)), Line((4, 0), (8, 0))]),
    DefectKind.SPECK: (PLATE, [*PLATE, Circle((4, 3), 0.05)]),
    DefectKind.THIN: (PLATE, [*PLATE, Circle((4, 1.1), 1)]),
    DefectKind.OUTSIDE: (PLATE, [*PLATE, Circle((10, 3), 1)]),
    DefectKind.NESTED: (PLATE, [*PLATE, Circle((4, 3), 2), Circle((4, 3), 1)]),
    DefectKind.STRAY: (PLATE, [*PLATE, Line((1, 1), (3, 2), construction=True)]),
    DefectKind.UNALIGNED: ([*PLATE, *HOLES], [*PLATE, HOLES[0], Circle((5.1, 1.7), 0.8)]),
    DefectKind.NEAR_CENTER: ([*PLATE, Circle((4, 3), 1)], [*PLATE, Circle((4.1, 3.1), 1)]),
    DefectKind.NEAR_RADIUS: ([*PLATE, *HOLES], [*PLATE, HOLES[0], Circle((6, 3), 0.55)]),
    DefectKind.NEAR_LEVEL: ([*PLATE, *HOLES], [*PLATE, HOLES[0], Circle((6, 3.2), 0.5)]),
    DefectKind.NEAR_ANGLE: (PLATE, polygon((0, 0), (8, 0.2), (8, 6), (0, 6))),
    DefectKind.NEAR_ROW: ([*PLATE, *ROW], [*PLATE, *ROW[::2], Circle((4.2, 3), 0.5)]),
    DefectKind.NEAR_MIRROR: ([*PLATE, *FOUR], [*PLATE, *FOUR[:3], Circle((6.3, 4.3), 0.5)]),
    DefectKind.ASYMMETRIC: ([*PLATE, *FOUR], [*PLATE, *FOUR[:3]]),
    DefectKind.FREE: (PLATE, polygon((0, 0), (8, 0), (7.3, 4.7), (0, 6))),
    DefectKind.BRANCH: (PLATE, [*PLATE, Line((0, 0), (4, 3)), Line((4, 3), (8, 6))]),
}


@pytest.mark.parametrize("kind", DefectKind)
def test_each_defect_is_found_and_lowers_the_score(kind: DefectKind) -> None:
    good, bad = (Sketch(tuple(each)) for each in CASES[kind])
    assert kind not in {each.kind for each in find_defects(good)}
    found = [each for each in find_defects(bad) if each.kind is kind]
    assert found
    for each in found:
        assert 0 < each.amount <= 1
        assert each.primitives == tuple(sorted(set(each.primitives)))
        assert any(str(number) in each.sentence for number in each.primitives)
    score = score_design(bad)
    assert score.value < score_design(good).value
    if load_weights().weights.get(kind):
        assert kind in {each.kind for each in score.defects}


def test_defects_of_the_given_part_are_not_counted() -> None:
    stray = Line((1, 1), (3, 2), construction=True)
    crossing = Circle((8, 3), 1)
    part = Sketch((*PLATE, stray, crossing))
    whole = Sketch((*part, Circle((4, 3), 0.5)))
    alone = score_design(whole, num_given=len(part))
    assert {DefectKind.STRAY, DefectKind.CROSSING} <= {each.kind for each in score_design(whole).defects}
    assert not {DefectKind.STRAY, DefectKind.CROSSING} & {each.kind for each in alone.defects}
    assert alone.value > score_design(whole).value


def test_sketches_without_extent_score_zero() -> None:
    assert score_design(Sketch(())).value == 0
    assert score_design(Sketch((Point((1, 1)),))).value == 0


@given(
    sketches(),
    st.integers(0, 3),
    st.booleans(),
    st.floats(-4, 4),
    st.tuples(st.floats(-100, 100), st.floats(-100, 100)),
)
def test_position_size_and_quarter_turns_do_not_matter(
    sketch: Sketch, turns: int, mirrored: bool, log_scale: float, offset: tuple[float, float]
) -> None:
    assert 0 <= score_design(sketch).value <= 1
    base = Sketch((*PLATE, *HOLES, Circle((4, 4.4), 0.5), Arc((4, 1.5), 0.5, 0.3, 2.1)))
    scale, angle = math.exp(log_scale), turns * math.pi / 2
    cos, sin = round(math.cos(angle)), round(math.sin(angle))
    flip = -1 if mirrored else 1

    def move(at: tuple[float, float]) -> tuple[float, float]:
        x, y = flip * at[0], at[1]
        return scale * (cos * x - sin * y) + offset[0], scale * (sin * x + cos * y) + offset[1]

    def turn(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return Line(move(start), move(end))
            case Circle(center, radius):
                return Circle(move(center), scale * radius)
        return arc_from_sweep(move(p.start), move(p.end), flip * p.sweep)

    moved = [turn(p) for p in base]
    before, after = score_design(base), score_design(Sketch(tuple(moved)))
    assert sorted(each.kind for each in after.defects) == sorted(each.kind for each in before.defects)
    assert np.isclose(after.value, before.value, atol=1e-3)
