"""What the model sees of a large part."""

from itertools import pairwise

from sketchdnn.generation.context import choose_context
from sketchdnn.geometry import Circle, Line, Sketch

CORNERS = [(0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0), (0.0, 0.0)]
PLATE = [Line(a, b) for a, b in pairwise(CORNERS)]
# A row of square holes, the first one near the left edge.
SQUARES = [
    Line((x + a, 18 + b), (x + c, 18 + d))
    for x in range(4, 76, 8)
    for (a, b), (c, d) in pairwise([(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)])
]


def test_loops_are_seen_whole_or_not_at_all() -> None:
    part = Sketch((*PLATE, *SQUARES))
    for place, limit in (((5.0, 20.0), 9), ((5.0, 20.0), 12), ((76.0, 20.0), 6)):
        seen = choose_context(part, [place], limit).primitives
        assert 0 < len(seen) <= limit
        assert all({4 * (i // 4) + k for k in range(4)} <= set(seen) for i in seen)


def test_outline_is_always_seen_or_replaced_by_its_box() -> None:
    middle = [(40.0, 20.0)]
    plate = Sketch((*PLATE, *SQUARES))
    context = choose_context(plate, middle, 9, outline=True)
    assert (set(range(4)) <= set(context.primitives), len(context.primitives), context.stand_in) == (True, 8, ())
    steps = [
        (0.0, 0.0),
        *((x + dx, y) for x in range(0, 80, 10) for dx, y in ((0, -2), (10, -2), (10, 0))),
        *CORNERS[2:],
    ]
    stepped = Sketch((*(Line(a, b) for a, b in pairwise(steps)), *SQUARES, Circle((40, 32), 2)))
    context = choose_context(stepped, middle, 9, outline=True)
    assert len(context.primitives) + len(context.stand_in) <= 9
    assert {p.start for p in context.stand_in if isinstance(p, Line)} == {(0, -2), (80, -2), (80, 40), (0, 40)}
    assert min(context.primitives) >= len(steps) - 1


def test_one_loop_of_very_many_is_seen_in_part() -> None:
    spiral = Sketch(tuple(Line((float(k), k % 2), (k + 1.0, (k + 1) % 2)) for k in range(20)))
    back = Sketch((*spiral.primitives, Line((20.0, 0.0), (20.0, 30.0)), Line((20.0, 30.0), (0.0, 0.0))))
    assert choose_context(back, [(0.0, 0.0)], 6).primitives[:3] == (0, 1, 2)
