"""A part drawn by an unsteady hand: what was meant, and the same with every place a little off; and odd constraints."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from hypothesis import strategies as st

from sketchdnn.geometry import (
    EXTERNAL,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
    Vec,
)
from sketchdnn.geometry.constraints import PARTS_OF_KIND
from support.strategies import sketches

T = ConstraintType

PLATE = Sketch(
    (
        Line((0, 0), (60, 0)),
        Line((60, 0), (60, 30)),
        Arc((50, 30), 10, 0, math.pi / 2),
        Line((50, 40), (10, 40)),
        Arc((10, 30), 10, math.pi / 2, math.pi / 2),
        Line((0, 30), (0, 0)),
        Circle((50, 30), 4),
        Circle((10, 30), 4),
        Circle((30, 18), 8),
        Line((30, -4), (30, 44), construction=True),
    ),
    units="mm",
    extra={"id": "plate"},
)

MEANT = (
    Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
    Constraint(T.HORIZONTAL, (Ref(0),)),
    Constraint(T.VERTICAL, (Ref(1),)),
    Constraint(T.PERPENDICULAR, (Ref(0), Ref(1))),
    Constraint(T.TANGENT, (Ref(1), Ref(2))),
    Constraint(T.EQUAL, (Ref(6), Ref(7))),
    Constraint(T.CONCENTRIC, (Ref(2), Ref(6))),
    Constraint(T.POINT_ON_CURVE, (Ref(8, Part.CENTER), Ref(9))),
    Constraint(T.SYMMETRIC, (Ref(6, Part.CENTER), Ref(7, Part.CENTER), Ref(9))),
    Constraint(T.PARALLEL, (Ref(1), Ref(5))),
    Constraint(T.COLLINEAR, (Ref(0), Ref(3))),
    Constraint(T.RADIUS, (Ref(8),), 8.0),
    Constraint(T.FIX, (Ref(0, Part.START),)),
)


def shaken(sketch: Sketch, by: float, seed: int = 0) -> Sketch:
    """Every place off by up to so much, independently of every other."""
    hand = random.Random(seed)

    def off(p: Vec) -> Vec:
        return (p[0] + hand.uniform(-by, by), p[1] + hand.uniform(-by, by))

    def shake(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return replace(p, start=off(start), end=off(end))
            case Circle(center, radius):
                return replace(p, center=off(center), radius=radius + hand.uniform(-by, by) / 2)
            case Arc(center, radius, start_angle, sweep):
                turn = by / radius / 2
                return replace(
                    p,
                    center=off(center),
                    radius=radius + hand.uniform(-by, by) / 2,
                    start_angle=start_angle + hand.uniform(-turn, turn),
                    sweep=sweep + hand.uniform(-turn, turn),
                )
            case Point(at):
                return replace(p, at=off(at))

    return replace(sketch, primitives=tuple(shake(p) for p in sketch))


@st.composite
def related(draw: st.DrawFn) -> Sketch:
    """Sketches with constraints that mostly make no sense: files may hold anything."""
    sketch = draw(sketches(min_size=1, max_size=8))
    outside = st.sampled_from([EXTERNAL, Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS)])
    inside = st.sampled_from(
        [Ref(i, part) for i, p in enumerate(sketch) for part in sorted(PARTS_OF_KIND[p.kind], key=str)]
    )
    kinds = st.sampled_from([t for t in T if t is not T.OTHER])
    refs = st.lists(st.one_of(inside, inside, outside), min_size=1, max_size=3).map(tuple)
    constraint = st.builds(Constraint, kinds, refs, st.none() | st.floats(-1e6, 1e6))
    return Sketch(sketch.primitives, tuple(draw(st.lists(constraint, max_size=12))))
