"""Random sketches for property tests, and comparisons of sketches."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from sketchdnn.errors import FormatError
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Point, Primitive, Ref, Sketch, bounds
from sketchdnn.geometry.constraints import OUTSIDE, PARTS_OF_KIND

coordinate = st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 6))
position = st.tuples(coordinate, coordinate)
radius = st.floats(0.01, 50).map(lambda r: round(r, 6))
flag = st.booleans()

lines = st.tuples(position, position, flag).filter(lambda t: math.dist(t[0], t[1]) > 1e-3).map(lambda t: Line(*t))
circles = st.builds(Circle, position, radius, flag)
arcs = st.builds(Arc, position, radius, st.floats(-math.pi, math.pi), st.floats(0.01, TAU - 0.01), flag)
points = st.builds(Point, position, flag)
primitives = st.one_of(lines, circles, arcs, points)


def sketches(min_size: int = 1, max_size: int = 12, units: str | None = None) -> st.SearchStrategy[Sketch]:
    """Sketches with some extent, so that tolerances can be relative to it."""
    some = st.lists(primitives, min_size=min_size, max_size=max_size).map(lambda p: Sketch(tuple(p), units=units))
    return some.filter(lambda sketch: bounds(sketch).size > 1e-2)


def constraints_on(sketch: Sketch) -> st.SearchStrategy[Constraint]:
    """Constraints of every type on any of its parts, satisfied or not, with values and texts of any kind."""
    places = [Ref(i, part) for i, p in enumerate(sketch) for part in sorted(PARTS_OF_KIND[p.kind])]
    ref = st.sampled_from([*places, *(Ref(None, part) for part in sorted(OUTSIDE))])
    refs = st.lists(ref, min_size=1, max_size=5).map(tuple)
    value = st.none() | st.floats(-1e3, 1e3)
    values = st.booleans() | st.text(max_size=300) | st.floats(-1, 1) | st.integers(-(2**63), 2**63 - 1)
    extra = st.dictionaries(st.sampled_from(["halfSpace0", "driven", "note", "n"]), values, max_size=2)
    types = st.sampled_from([t for t in ConstraintType if t is not ConstraintType.OTHER])
    named = st.builds(Constraint, types, refs, value, st.none() | st.just("d1"), extra)
    names = st.sampled_from(["Pierce", "Unknown", "Snell's law", "Fix", "Distance"])
    other = st.builds(Constraint, st.just(ConstraintType.OTHER), refs, value, names, extra)
    return named | other


def numbers(p: Primitive) -> list[float]:
    """Numbers that agree for equal primitives: an arc by center, ends and middle, so that full turns do not count."""
    match p:
        case Line(start, end):
            return [*start, *end]
        case Circle(center, r):
            return [*center, r]
        case Arc(center, r):
            return [*center, r, *p.start, *p.mid, *p.end]
        case Point(at):
            return [*at]


def assert_same(a: Sketch, b: Sketch, tolerance: float = 1e-6, *, construction: bool = True) -> None:
    """The same primitives in the same order, to `tolerance` of the size."""
    assert [p.kind for p in a] == [p.kind for p in b]
    if construction:
        assert [p.construction for p in a] == [p.construction for p in b]
    if not len(a):
        return
    allowed = tolerance * bounds(a).size
    for p, q in zip(a, b, strict=True):
        worst = max(abs(x - y) for x, y in zip(numbers(p), numbers(q), strict=True))
        assert worst <= allowed, f"{p} became {q}: {worst} > {allowed}"


def assert_same_constraints(a: Sketch, b: Sketch, tolerance: float, *, ordered: bool = True) -> None:
    """The same constraints, in the same order or in any; values agree to `tolerance` of their size."""
    left, right = ([(replace(c, value=c.value and 1.0), c.value or 0.0) for c in s.constraints] for s in (a, b))
    if not ordered:
        for pairs in (left, right):
            pairs.sort(key=lambda pair: (repr(pair[0]), pair[1]))
    assert [bare for bare, _ in left] == [bare for bare, _ in right]
    for (bare, value), (_, other) in zip(left, right, strict=True):
        assert math.isclose(value, other, rel_tol=tolerance), f"{value} became {other} in {bare}"


def assert_refused(read: Callable[[Path], object], path: Path, match: str) -> None:
    """A reader refuses a file in one sentence that names it."""
    with pytest.raises(FormatError) as caught:
        list(read(path))  # type: ignore[call-overload]
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert re.search(match, f"{path.name}: {caught.value.reason}"), caught.value  # not the name of a folder
