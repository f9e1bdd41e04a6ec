"""A plate as designed and with noise, and sketches with arbitrary constraints."""

import math
import random
from dataclasses import replace

from hypothesis import strategies as st

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Sketch, Vec
from support.strategies import constraints_on, sketches

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


def add_noise(sketch: Sketch, noise: float, seed: int = 0) -> Sketch:
    """Every point off by up to `noise`, independently of every other."""
    rng = random.Random(seed)

    def off(p: Vec) -> Vec:
        return (p[0] + rng.uniform(-noise, noise), p[1] + rng.uniform(-noise, noise))

    def shift(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return replace(p, start=off(start), end=off(end))
            case Circle(center, radius):
                return replace(p, center=off(center), radius=radius + rng.uniform(-noise, noise) / 2)
            case Arc(center, radius, start_angle, sweep):
                turn = noise / radius / 2
                return replace(
                    p,
                    center=off(center),
                    radius=radius + rng.uniform(-noise, noise) / 2,
                    start_angle=start_angle + rng.uniform(-turn, turn),
                    sweep=sweep + rng.uniform(-turn, turn),
                )
            case Point(at):
                return replace(p, at=off(at))

    return replace(sketch, primitives=tuple(shift(p) for p in sketch))


@st.composite
def arbitrarily_constrained(draw: st.DrawFn) -> Sketch:
    """Sketches with constraints that mostly make no sense: files may hold anything."""
    sketch = draw(sketches(min_size=1, max_size=8))
    return Sketch(sketch.primitives, tuple(draw(st.lists(constraints_on(sketch), max_size=12))))


def constraint(kind: ConstraintType, *refs: Ref | int, value: float | None = None) -> Constraint:
    """A constraint; a number refers to a whole primitive."""
    return Constraint(kind, tuple(ref if isinstance(ref, Ref) else Ref(ref) for ref in refs), value)


# The constraints of a rectangle of four lines.
CLOSED = [constraint(T.COINCIDENT, Ref(i, Part.END), Ref((i + 1) % 4, Part.START)) for i in range(4)]
LEVEL = [constraint((T.HORIZONTAL, T.VERTICAL)[i % 2], i) for i in range(4)]
