"""Variants of additions: symmetric like the part, and in line with it."""

from itertools import pairwise

from sketchdnn.generation.variants import regular_variants
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.geometry.mirror import Mirror, missing_images

CORNERS = ((0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0))
SIDES = tuple(Line(a, b) for a, b in pairwise((*CORNERS, CORNERS[0])))


def test_additions_become_symmetric_like_the_part() -> None:
    off = Circle((42, 20.5), 5)
    centered = regular_variants(Sketch((*SIDES, off)), 4)
    assert (Circle((40, 20), 5),) in centered
    pair = (Circle((12, 20), 5), Circle((66, 20), 5))
    assert any(
        [p.center for p in added if isinstance(p, Circle)] == [(12, 20), (68, 20)]
        for added in regular_variants(Sketch((*SIDES, *pair)), 4)
    )
    assert regular_variants(Sketch((*SIDES, Circle((40, 20), 5))), 4) == []


def test_path_between_open_ends_becomes_symmetric() -> None:
    path = (Line((0, 40), (-10, 40)), Line((-10, 40), (-10, 0.5)), Line((-10, 0.5), (0, 0)))
    variant, *_ = regular_variants(Sketch((*SIDES[:3], *path)), 3)
    assert not missing_images(variant, Mirror(1, 20.0), 1e-9)
    assert len(variant) == 3


def test_holes_move_to_a_level_of_the_part() -> None:
    part = Sketch((*SIDES, Circle((12, 11), 4)))
    hole = Circle((55.0, 12.5), 4)
    assert (Circle((55.0, 11.0), 4),) in regular_variants(Sketch((*part, hole)), len(part))
    far = Circle((55.0, 29.0), 4)
    assert regular_variants(Sketch((*part, far)), len(part)) == []
