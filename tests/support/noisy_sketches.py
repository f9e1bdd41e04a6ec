"""A plate as designed and with noise, and sketches with arbitrary constraints."""

import math
import random
from dataclasses import replace

from hypothesis import strategies as st

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Sketch, Vec
from support.strategies import constraints_on, sketches

T = ConstraintType

QUARTER = math.pi / 2
RIGHT = (Line((0, 0), (60, 0)), Line((60, 0), (60, 30)), Arc((50, 30), 10, 0, QUARTER))
LEFT = (Line((50, 40), (10, 40)), Arc((10, 30), 10, QUARTER, QUARTER), Line((0, 30), (0, 0)))
HOLES = (Circle((50, 30), 4), Circle((10, 30), 4), Circle((30, 18), 8))
AXIS = Line((30, -4), (30, 44), construction=True)
PLATE = Sketch((*RIGHT, *LEFT, *HOLES, AXIS), units="mm", extra={"id": "plate"})


def constraint(kind: ConstraintType, *refs: Ref | int, value: float | None = None) -> Constraint:
    """A constraint; a number refers to a whole primitive."""
    return Constraint(kind, tuple(ref if isinstance(ref, Ref) else Ref(ref) for ref in refs), value)


MEANT = (
    constraint(T.COINCIDENT, Ref(0, Part.END), Ref(1, Part.START)), constraint(T.HORIZONTAL, 0),
    constraint(T.VERTICAL, 1), constraint(T.PERPENDICULAR, 0, 1), constraint(T.TANGENT, 1, 2),
    constraint(T.EQUAL, 6, 7), constraint(T.CONCENTRIC, 2, 6), constraint(T.POINT_ON_CURVE, Ref(8, Part.CENTER), 9),
    constraint(T.SYMMETRIC, Ref(6, Part.CENTER), Ref(7, Part.CENTER), 9), constraint(T.PARALLEL, 1, 5),
    constraint(T.COLLINEAR, 0, 3), constraint(T.RADIUS, 8, value=8.0), constraint(T.FIX, Ref(0, Part.START)),
)  # fmt: skip


def add_noise(sketch: Sketch, noise: float, seed: int = 0) -> Sketch:
    """Every point off by up to `noise`, independently of every other."""
    rng = random.Random(seed)

    def off(p: Vec) -> Vec:
        return (p[0] + rng.uniform(-noise, noise), p[1] + rng.uniform(-noise, noise))

    def off_length() -> float:
        return rng.uniform(-noise, noise) / 2

    def shift(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return replace(p, start=off(start), end=off(end))
            case Circle(center, radius):
                return replace(p, center=off(center), radius=radius + off_length())
            case Arc(center, radius, start_angle, sweep):
                turn, round_ = noise / radius / 2, replace(p, center=off(center), radius=radius + off_length())
                first, swept = (angle + rng.uniform(-turn, turn) for angle in (start_angle, sweep))
                return replace(round_, start_angle=first, sweep=swept)
            case Point(at):
                return replace(p, at=off(at))

    return replace(sketch, primitives=tuple(shift(p) for p in sketch))


@st.composite
def arbitrarily_constrained(draw: st.DrawFn) -> Sketch:
    """Sketches with constraints that mostly make no sense: files may hold anything."""
    sketch = draw(sketches(min_size=1, max_size=8))
    return Sketch(sketch.primitives, tuple(draw(st.lists(constraints_on(sketch), max_size=12))))


# The constraints of a rectangle of four lines.
CLOSED = [constraint(T.COINCIDENT, Ref(i, Part.END), Ref((i + 1) % 4, Part.START)) for i in range(4)]
LEVEL = [constraint((T.HORIZONTAL, T.VERTICAL)[i % 2], i) for i in range(4)]
