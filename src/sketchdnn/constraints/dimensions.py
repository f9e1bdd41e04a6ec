"""The dimensions that a sketch can have, in the order in which a person would choose them.

Overall sizes come first, then radii, angles, lengths, distances between circles in a row, and positions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from sketchdnn.geometry import (
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
    bounds,
)
from sketchdnn.geometry.constraints import ref_point

from .equation_set import unmerged_equations
from .equations import Span, arc_equations, build
from .round_values import Steps, round_angles
from .variables import Constraints, Primitives, VariableMerging, variables_of

_T = ConstraintType
# Values below this share of the size are zero.
_ZERO = 1e-7
# One pass for each value: the share of a dimension that must be independent of those before it.
_MIN_NEW = (0.1, 1e-3)
_DEPENDENT = 1e-6
_ORIGIN, _X_AXIS, _Y_AXIS = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))
_POINTS = {Line: (Part.START, Part.END), Circle: (Part.CENTER,), Arc: (Part.CENTER, Part.START, Part.END)}


class DimensionKind(StrEnum):
    """What a dimension measures, which decides on its round values."""

    SIZE = "size"
    POSITION = "position"
    ANGLE = "angle"


class Dimension(NamedTuple):
    """A dimension: its name, its constraint with the measured value, and its round values, the preferred first.

    `zero` is the constraint that replaces it at zero.
    """

    name: str
    kind: DimensionKind
    constraint: Constraint
    targets: tuple[float, ...] = ()
    zero: Constraint | None = None

    @property
    def value(self) -> float:
        return self.constraint.value or 0.0

    def at(self, target: float) -> Constraint:
        """The constraint with another value; a distance along an axis is above zero, from the lower point.

        A line at a right angle to an axis is horizontal or vertical.
        """
        if self.name == "angle" and target % (math.pi / 2) == 0:
            level = _T.HORIZONTAL if target % math.pi == 0 else _T.VERTICAL
            return Constraint(level, self.constraint.refs)
        if target == 0 and self.zero is not None:
            return self.zero
        if target < 0 and self.kind is DimensionKind.POSITION:
            return replace(self.constraint, refs=self.constraint.refs[::-1], value=-target)
        return replace(self.constraint, value=target)

    def with_targets(self, value: float, steps: Steps) -> Dimension:
        """The dimension with the round values near a value."""
        if self.kind is DimensionKind.ANGLE:
            return self._replace(targets=tuple(round_angles(value)))
        find = steps.sizes if self.kind is DimensionKind.SIZE else steps.positions
        return self._replace(targets=tuple(dict.fromkeys(find(value))))


class Datum(NamedTuple):
    """The points from which horizontal and vertical positions are measured."""

    x: Ref = _ORIGIN
    y: Ref = _ORIGIN


def find_datum(sketch: Sketch, num_fixed: int) -> Datum:
    """The origin; where primitives are fixed, the leftmost and the lowest of their points."""
    points = [(ref_point(ref, sketch.primitives) or (0.0, 0.0), ref) for ref in _point_refs(sketch.primitives)]
    own = [(at, ref) for at, ref in points if ref.primitive is not None and ref.primitive < num_fixed]
    if not own:
        return Datum()
    x, y = (min(own, key=lambda item: item[0][axis])[1] for axis in (0, 1))
    return Datum(x, y)


def _point_refs(primitives: Primitives) -> list[Ref]:
    return [Ref(i, part) for i, p in enumerate(primitives) for part in _parts(p)]


def _parts(p: Primitive) -> tuple[Part, ...]:
    return (Part.POINT,) if isinstance(p, Point) else _POINTS[type(p)]


def dimension_candidates(sketch: Sketch, datum: Datum) -> Iterator[Dimension]:
    """All dimensions of a sketch, in order of importance."""
    primitives = sketch.primitives
    box = bounds(sketch)
    zero = _ZERO * box.size
    yield from _overall(sketch, zero)
    rounds = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Circle | Arc)]
    for i, p in sorted(rounds, key=lambda item: (-item[1].radius, item[0])):
        kind, factor = (_T.DIAMETER, 2.0) if isinstance(p, Circle) else (_T.RADIUS, 1.0)
        yield Dimension(str(kind), DimensionKind.SIZE, Constraint(kind, (Ref(i),), factor * p.radius))
    lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
    lines.sort(key=lambda item: (-item[1].length, item[0]))
    oblique = {i for i, line in lines if min(_extent(line)) > zero}
    angled = {i: math.atan2(p.end[1] - p.start[1], p.end[0] - p.start[0]) for i, p in lines if i in oblique}
    angled = {i: angle for i, angle in angled.items() if round_angles(angle)}
    for i, angle in angled.items():
        yield Dimension("angle", DimensionKind.ANGLE, Constraint(_T.ANGLE, (Ref(i),), angle))
    for i, line in lines:
        if i not in oblique or i in angled:
            yield Dimension("length", DimensionKind.SIZE, Constraint(_T.LENGTH, (Ref(i),), line.length))
    yield from _pitches(sketch, zero)
    for i, line in lines:
        if i in oblique and i not in angled:
            yield from _extents(i, line)
    for i, p in rounds:
        if isinstance(p, Arc) and round_angles(p.sweep):
            yield Dimension("sweep", DimensionKind.ANGLE, Constraint(_T.ANGLE, (Ref(i),), p.sweep))
    centers = [ref for ref in _point_refs(primitives) if ref.part is Part.CENTER]
    for ref in (*centers, *_ends_by_distance(sketch, datum)):
        yield from _position(ref, datum, primitives)


def _ends_by_distance(sketch: Sketch, datum: Datum) -> list[Ref]:
    """The points other than centers, the nearest to the datum first: a near corner ties the sketch to it."""
    x, y = ((ref_point(ref, sketch.primitives) or (0.0, 0.0))[axis] for axis, ref in enumerate(datum))
    places = ((ref_point(ref, sketch.primitives) or (0.0, 0.0), ref) for ref in _point_refs(sketch.primitives))
    ends = [(abs(at[0] - x) + abs(at[1] - y), ref) for at, ref in places if ref.part is not Part.CENTER]
    return [ref for _, ref in sorted(ends, key=lambda end: end[0])]


def _extent(line: Line) -> Vec:
    return abs(line.end[0] - line.start[0]), abs(line.end[1] - line.start[1])


def _overall(sketch: Sketch, zero: float) -> Iterator[Dimension]:
    """The width and the height, where points are at the far sides."""
    shown = [i for i, p in enumerate(sketch) if not p.construction] or list(range(len(sketch)))
    box = bounds([sketch.primitives[i] for i in shown])
    refs = [ref for ref in _point_refs(sketch.primitives) if ref.primitive in shown]
    places = [(ref_point(ref, sketch.primitives) or (0.0, 0.0), ref) for ref in refs]
    for axis, name, kind in ((0, "width", _T.HORIZONTAL_DISTANCE), (1, "height", _T.VERTICAL_DISTANCE)):
        low = [ref for at, ref in places if abs(at[axis] - box.low[axis]) <= zero]
        high = [ref for at, ref in places if abs(at[axis] - box.high[axis]) <= zero]
        if low and high and box.high[axis] - box.low[axis] > zero:
            size = box.high[axis] - box.low[axis]
            yield Dimension(name, DimensionKind.SIZE, Constraint(kind, (low[0], high[0]), size))


def _pitches(sketch: Sketch, zero: float) -> Iterator[Dimension]:
    """The distances between neighboring circles in a row or column."""
    centers = [(p.center, Ref(i, Part.CENTER)) for i, p in enumerate(sketch) if isinstance(p, Circle)]
    for along, kind in ((0, _T.HORIZONTAL_DISTANCE), (1, _T.VERTICAL_DISTANCE)):
        ordered = sorted(centers, key=lambda item: (round(item[0][1 - along] / zero), item[0][along]))
        for (a, first), (b, second) in pairwise(ordered):
            if abs(a[1 - along] - b[1 - along]) <= zero and b[along] - a[along] > zero:
                yield Dimension("pitch", DimensionKind.SIZE, Constraint(kind, (first, second), b[along] - a[along]))


def _extents(i: int, line: Line) -> Iterator[Dimension]:
    """The horizontal and the vertical extent of an oblique line."""
    start, end = Ref(i, Part.START), Ref(i, Part.END)
    for axis, name, kind in ((0, "run", _T.HORIZONTAL_DISTANCE), (1, "rise", _T.VERTICAL_DISTANCE)):
        by = line.end[axis] - line.start[axis]
        yield Dimension(name, DimensionKind.SIZE, Constraint(kind, (start, end) if by > 0 else (end, start), abs(by)))


def _position(ref: Ref, datum: Datum, primitives: Primitives) -> Iterator[Dimension]:
    """The distances of a point from the datum along both axes."""
    at = ref_point(ref, primitives) or (0.0, 0.0)
    for axis, name, kind, base, line, level in (
        (0, "x", _T.HORIZONTAL_DISTANCE, datum.x, _Y_AXIS, _T.VERTICAL),
        (1, "y", _T.VERTICAL_DISTANCE, datum.y, _X_AXIS, _T.HORIZONTAL),
    ):
        if ref != base:
            by = at[axis] - (ref_point(base, primitives) or (0.0, 0.0))[axis]
            is_origin = base == _ORIGIN
            zero = Constraint(_T.POINT_ON_CURVE, (ref, line)) if is_origin else Constraint(level, (base, ref))
            yield Dimension(name, DimensionKind.POSITION, Constraint(kind, (base, ref), by), zero=zero)


def ordinate_dimensions(sketch: Sketch) -> Iterator[Dimension]:
    """Dimensions from one base: radii, the distances of all points from the leftmost and the lowest one along the axes,
    and the distances of these from the origin.
    """
    primitives = sketch.primitives
    for i, p in enumerate(primitives):
        if isinstance(p, Circle | Arc):
            kind, factor = (_T.DIAMETER, 2.0) if isinstance(p, Circle) else (_T.RADIUS, 1.0)
            yield Dimension(str(kind), DimensionKind.SIZE, Constraint(kind, (Ref(i),), factor * p.radius))
    refs = _point_refs(primitives)
    places = [ref_point(ref, primitives) or (0.0, 0.0) for ref in refs]
    x, y = (refs[min(range(len(refs)), key=lambda k: (places[k][axis], places[k][1 - axis]))] for axis in (0, 1))
    datum = Datum(x, y)
    for ref in refs:
        yield from _position(ref, datum, primitives)
    for ref in dict.fromkeys((x, y)):
        yield from _position(ref, Datum(), primitives)


def independent_dimensions(
    dimensions: Sequence[Dimension], given: Constraints, primitives: Primitives, fixed: Collection[int]
) -> list[Dimension]:
    """The dimensions that do not follow from constraints, nor from dimensions before them."""
    variables = variables_of(tuple(primitives))
    variable_map = VariableMerging(variables, fixed).variable_map()
    zeros = np.zeros(variable_map.num_free)
    span = Span(variable_map.num_free)
    known = [*arc_equations(variables), *chain.from_iterable(unmerged_equations(given, variables))]
    for row in build(known, variable_map).evaluate(zeros)[1]:
        span.add(row, _DEPENDENT)
    equations = unmerged_equations([d.constraint for d in dimensions], variables)
    owners = [k for k, own in enumerate(equations) for _ in own]
    rows = build([*chain.from_iterable(equations)], variable_map).evaluate(zeros)[1]
    chosen: set[int] = set()
    for share in _MIN_NEW:
        for k, row in zip(owners, rows, strict=True):
            if k not in chosen and span.add(row, share):
                chosen.add(k)
    return [dimensions[k] for k in sorted(chosen)]
