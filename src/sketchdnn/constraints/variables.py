"""A sketch as parameters for the solver: coordinates of its points, and radii.

Everything is measured in units of the sketch's size, from the center of its bounding box. A point is an end of a line
or arc, a center, or a Point primitive. An arc has its center, its two ends and its radius as parameters. Those are two
more than its degrees of freedom, so two equations keep the ends on the circle (`equations.arc_equations`).

Constraints that only equate parameters (coincident points, level lines, equal radii) need no equation:
`VariableMerging` makes such parameters one variable.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import (
    TAU,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Vec,
    bounds,
)
from sketchdnn.geometry.constraints import shared_ref
from sketchdnn.geometry.proximity import DisjointSets

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
Pair = tuple[int, int]
Constraints = Sequence[Constraint]
Primitives = Sequence[Primitive]

# Points outside the sketch that constraints may refer to: the origin, and one unit from it along each axis.
OUTSIDE = {Part.ORIGIN: (0.0, 0.0), Part.X_AXIS: (1.0, 0.0), Part.Y_AXIS: (0.0, 1.0)}
_PARTS: dict[type[Primitive], tuple[Part, ...]] = {
    Line: (Part.START, Part.END),
    Point: (Part.POINT,),
    Circle: (Part.CENTER,),
    Arc: (Part.CENTER, Part.START, Part.END),
}
# Constants further apart than this share of the sketch's size are different.
_SAME_CONSTANT = 1e-9
_T = ConstraintType
# Types of constraints that may equate parameters of the first item and of each other one.
_MERGING_PAIRS = (_T.COINCIDENT, _T.CONCENTRIC, _T.EQUAL)


@lru_cache(maxsize=4)
def variables_of(primitives: tuple[Primitive, ...]) -> Variables:
    """The variables of some primitives; the last few are cached, since one sketch is examined several times."""
    return Variables(primitives)


class Variables:
    """The parameters `f` of some primitives.

    Point k has its coordinates at 2k and 2k + 1. The points `OUTSIDE` follow the sketch's own, then come the radii.
    """

    def __init__(self, primitives: Primitives) -> None:
        self.primitives = tuple(primitives)
        self.points: list[tuple[int, Part]] = []
        self.lines = [i for i, p in enumerate(self.primitives) if isinstance(p, Line)]
        self.arcs = [i for i, p in enumerate(self.primitives) if isinstance(p, Arc)]
        self.first: list[int] = []  # each primitive's first point
        self.parts = [_PARTS[type(p)] for p in self.primitives]
        at: list[Vec] = []
        radii: dict[int, float] = {}
        for i, p in enumerate(self.primitives):
            self.first.append(len(at))
            self.points += [(i, part) for part in self.parts[i]]
            match p:
                case Line():
                    at += (p.start, p.end)
                case Point():
                    at.append(p.at)
                case Circle():
                    at.append(p.center)
                    radii[i] = p.radius
                case Arc():
                    at += (p.center, p.start, p.end)
                    radii[i] = p.radius
        box = bounds(self.primitives)
        self.shift = box.center
        self.scale = max(box.width, box.height) or 1.0
        self.num_points = len(at)
        self.point_index: dict[tuple[int | None, Part], int] = {of: k for k, of in enumerate(self.points)}
        self.point_index |= {(None, part): self.num_points + k for k, part in enumerate(OUTSIDE)}
        marks = {(i, Part.WHOLE): self.first[i] for i, p in enumerate(self.primitives) if isinstance(p, Point)}
        self._point_of = self.point_index | marks  # a whole Point is its point; an axis is none
        del self._point_of[None, Part.X_AXIS], self._point_of[None, Part.Y_AXIS]
        base = 2 * (self.num_points + len(OUTSIDE))
        self.radii = slice(base, None)
        self.num_parameters = base + len(radii)
        self.radius = {i: base + k for k, i in enumerate(radii)}
        self.rounds = list(radii)
        own = (np.array(at).reshape(-1, 2) - self.shift) / self.scale
        outside = np.array(list(OUTSIDE.values())) - np.array(self.shift) / self.scale
        self.f = np.concatenate([own.ravel(), outside.ravel(), [r / self.scale for r in radii.values()]])
        self.f.flags.writeable = False
        # The parameters of each primitive, padded with an index that no parameter has.
        each = [self.parameters(i) for i in range(len(self.primitives))]
        self.rows = np.array([own + [self.num_parameters] * (7 - len(own)) for own in each])
        self.owners = {k: i for i, own in enumerate(each) for k in own}  # the primitive of each own parameter
        starts = [self.first[i] for i in self.lines] + [self.first[i] + 1 for i in self.arcs]
        self.starts = 2 * np.array(starts, dtype=int)  # of lines, then of arcs; the end is the next point

    def parameters(self, primitive: int) -> list[int]:
        """The indices of a primitive's parameters."""
        k = self.first[primitive]
        ends = 2 * (self.first[primitive + 1] if primitive + 1 < len(self.first) else self.num_points)
        radius = self.radius.get(primitive)
        return [*range(2 * k, ends), *(() if radius is None else (radius,))]

    def moves(self, f: Floats) -> Floats:
        """The distance of each point from its drawn position, then the growth of each radius."""
        change = f - self.f
        points = np.hypot(change[0 : 2 * self.num_points : 2], change[1 : 2 * self.num_points : 2])
        return np.concatenate([points, change[self.radii]])

    def shares(self, f: Floats) -> Floats:
        """The share that is left of each line and each arc's chord, along its drawn direction, then of each radius."""
        k, before = self.starts, self.f
        x, y = before[k + 2] - before[k], before[k + 3] - before[k + 1]
        along = ((f[k + 2] - f[k]) * x + (f[k + 3] - f[k + 1]) * y) / np.maximum(x * x + y * y, 1e-300)
        return np.concatenate([along, f[self.radii] / before[self.radii]])

    def ref(self, point: int) -> Ref:
        """The reference to one of the sketch's own points."""
        return shared_ref(*self.points[point])

    def point(self, ref: Ref) -> int | None:
        """The point that a reference names, if it names one."""
        return self._point_of.get((ref.primitive, ref.part))

    def center(self, ref: Ref) -> int | None:
        """The point that a reference names; the center of a circle or arc."""
        circle = self.circle(ref)
        return circle[0] if circle else self.point(ref)

    def ends(self, ref: Ref) -> Pair | None:
        """Two points on a line or axis."""
        if ref.part is Part.X_AXIS or ref.part is Part.Y_AXIS:
            return self.point_index[None, Part.ORIGIN], self.point_index[None, ref.part]
        if ref.primitive is None or ref.part is not Part.WHOLE or not isinstance(self.primitives[ref.primitive], Line):
            return None
        return self.first[ref.primitive], self.first[ref.primitive] + 1

    def circle(self, ref: Ref) -> Pair | None:
        """The center's point and the radius' parameter of a circle or arc."""
        if ref.primitive is None or ref.part is not Part.WHOLE or ref.primitive not in self.radius:
            return None
        return self.first[ref.primitive], self.radius[ref.primitive]

    def merged_parameters(self, constraint: Constraint) -> list[Pair] | None:
        """The pairs of parameters that a constraint equates; None for a constraint that needs an equation."""
        kind, refs = constraint.type, constraint.refs
        if kind is _T.COINCIDENT and len(refs) == 2:  # most constraints
            return self._merged_by(kind, *refs)
        if kind is _T.HORIZONTAL or kind is _T.VERTICAL:
            axis = 1 if kind is _T.HORIZONTAL else 0
            points = [point for ref in refs if (point := self.point(ref)) is not None]
            ends = [(points[0], point) for point in points[1:]]  # the first point with each other one
            if not ends or len(points) < len(refs):
                ends = [line for ref in refs if (line := self.ends(ref))]
                if len(ends) < len(refs):
                    return None
            return [(2 * a + axis, 2 * b + axis) for a, b in ends]
        if kind not in _MERGING_PAIRS or len(refs) < 2:
            return None
        merged: list[Pair] = []
        for other in refs[1:]:
            pairs = self._merged_by(kind, refs[0], other)
            if pairs is None:
                return None
            merged += pairs
        return merged

    def coinciding_parameters(self, first: Ref, second: Ref) -> list[Pair] | None:
        """The pairs of parameters that are equal where two references coincide; None if that needs an equation."""
        return self._merged_by(_T.COINCIDENT, first, second)

    def _merged_by(self, kind: ConstraintType, first: Ref, second: Ref) -> list[Pair] | None:
        if kind is not _T.EQUAL:
            find = self.center if kind is _T.CONCENTRIC else self.point
            a, b = find(first), find(second)
            if a is not None and b is not None:
                return [(2 * a, 2 * b), (2 * a + 1, 2 * b + 1)]
        one, two = self.circle(first), self.circle(second)
        if kind is _T.EQUAL:
            return [(one[1], two[1])] if one and two else None
        if one and two:
            return [(2 * one[0], 2 * two[0]), (2 * one[0] + 1, 2 * two[0] + 1), (one[1], two[1])]
        return None

    def rebuild(self, f: Floats, *, far: bool = False) -> tuple[Primitive, ...]:
        """The primitives with other parameters; those that did not change stay exactly as they are.

        Args:
            f: The parameters.
            far: Arcs may have become larger or smaller by more than half a turn; else they may not.

        Raises:
            GeometryError: If a primitive collapsed.
        """
        values = f.tolist()
        changed = {self.owners.get(k) for k in np.flatnonzero(f != self.f).tolist()}
        return tuple(self._rebuild(i, values, far) if i in changed else p for i, p in enumerate(self.primitives))

    def _rebuild(self, i: int, f: list[float], far: bool) -> Primitive:
        p, k = self.primitives[i], 2 * self.first[i]
        a, b = self.shift
        first = (f[k] * self.scale + a, f[k + 1] * self.scale + b)
        match p:
            case Line():
                return Line(first, (f[k + 2] * self.scale + a, f[k + 3] * self.scale + b), p.construction)
            case Point():
                return Point(first, p.construction)
            case Circle():
                return Circle(first, f[self.radius[i]] * self.scale, p.construction)
            case Arc():
                begin = math.atan2(f[k + 3] - f[k + 1], f[k + 2] - f[k])
                end = math.atan2(f[k + 5] - f[k + 1], f[k + 4] - f[k])
                sweep = (end - begin) % TAU if far else p.sweep + math.remainder(end - begin - p.sweep, TAU)
                if not 0 < sweep < TAU:
                    raise GeometryError("an arc turned inside out")
                return Arc(first, f[self.radius[i]] * self.scale, begin, sweep, p.construction)


@dataclass(frozen=True, slots=True)
class VariableMap:
    """Which variable each parameter is. The first `num_free` variables can change, the others are constants.

    Steps z count from `start`, which is nearest to the drawing. The step of a variable that n parameters share is
    scaled by √n (`root`), so that its length is that of the steps of all its parameters together.
    """

    index: Ints  # of each parameter
    num_free: int
    start: Floats
    root: Floats

    @property
    def initial(self) -> Floats:
        """The parameters at `start`."""
        return np.asarray(self.start[self.index])

    def parameters(self, z: Floats) -> Floats:
        """The parameters after steps z."""
        values = self.start.copy()
        values[: self.num_free] += z / self.root
        return np.asarray(values[self.index])

    def restrict(self, columns: Ints) -> VariableMap:
        """The same for equations in which only some of the free variables occur."""
        kept = np.concatenate([columns, np.arange(self.num_free, len(self.start))])
        local = np.full(len(self.start), len(columns))
        local[kept] = np.arange(len(kept))
        return VariableMap(local[self.index], len(columns), self.start[kept], self.root[columns])


class VariableMerging:
    """Parameters merged into variables. Constants are those outside the sketch and those of fixed primitives."""

    def __init__(self, variables: Variables, fixed: Collection[int] = ()) -> None:
        self.variables = variables
        self.sets = DisjointSets(variables.num_parameters)
        outside = range(2 * variables.num_points, 2 * (variables.num_points + len(OUTSIDE)))
        self.constant = {*outside, *(k for i in fixed for k in variables.parameters(i))}

    def merge(self, pairs: Collection[Pair]) -> bool | None:
        """Merge each pair of parameters.

        Returns:
            Whether any pair was separate before; None, without a change, if a pair consists of different constants.
        """
        find, parent, constant, f = self.sets.find, self.sets.parent, self.constant, self.variables.f
        for a, b in pairs:
            p, q = find(a), find(b)
            if p in constant and q in constant and abs(float(f[p] - f[q])) > _SAME_CONSTANT:
                return None
        new = False
        for a, b in pairs:
            p, q = find(a), find(b)
            if p != q:
                new = new or p not in constant or q not in constant
                first = p in constant or (q not in constant and p < q)  # a constant is the root of its set
                parent[q if first else p] = p if first else q
        return new

    def variable_map(self) -> VariableMap:
        """The variables that are left, each at the mean of its parameters."""
        f = self.variables.f
        roots = self.sets.roots()
        held = np.zeros(len(f), dtype=bool)
        held[list(self.constant)] = True
        is_root = roots == np.arange(len(f))
        free, constant = np.flatnonzero(is_root & ~held), np.flatnonzero(is_root & held)
        order = np.concatenate([free, constant])
        number = np.empty(len(f), dtype=int)
        number[order] = np.arange(len(order))
        index = number[roots]
        count = np.bincount(index, minlength=len(order))
        # The mean of differences to one of them: equal parameters keep their exact value.
        start = f[order] + np.bincount(index, weights=f - f[roots], minlength=len(order)) / count
        start[len(free) :] = f[constant]
        return VariableMap(index, len(free), start, np.sqrt(count[: len(free)]))
