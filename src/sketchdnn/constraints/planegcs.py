"""FreeCAD's solver as a back end, where its Python package `planegcs` is installed.

It is told the constraints in its own words, not our equations, so that each solver checks the other. An arc is a circle
with two places on it: that has the same freedom, and the angles follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, ConstraintType, Ref

from .contacts import contacts
from .variables import Floats, Variables


def solved(variables: Variables, constraints: Sequence[Constraint], fixed: Collection[int] = ()) -> Floats | None:
    """Features that satisfy the constraints, of those that it knows, near where they are; None where it finds none."""
    gcs = _planegcs()
    model = _Model(gcs.SketchSolver(), variables, fixed)
    shared = contacts(constraints, variables)
    for constraint in constraints:
        model.add(constraint, shared)
    if model.solver.solve() not in (gcs.SolveStatus.Success, gcs.SolveStatus.Converged):
        return None
    f = model.features()
    return f if (variables.shares(f) > 0).all() else None  # it may turn a circle inside out


def _planegcs() -> Any:
    try:
        return import_module("planegcs")
    except ImportError as error:
        raise GeometryError(
            "the solver planegcs is not installed; use `pip install 'sketchdnn[cad]'` with Python 3.12 or later; "
            "before, `pip install planegcs` builds it where there are a C++ compiler, Eigen and Boost"
        ) from error


class _Model:
    """A sketch in planegcs: a point for each place, a circle for each radius."""

    def __init__(self, solver: Any, variables: Variables, fixed: Collection[int]) -> None:
        self.solver, self.variables = solver, variables
        f = variables.f
        self.points = [solver.add_point(*f[2 * k : 2 * k + 2].tolist()) for k in range(variables.count + 3)]
        self.lines: dict[tuple[int, int], int] = {}
        self.circles: dict[int, int] = {}
        self.radii: dict[int, int] = {}
        for i, feature in variables.radius.items():
            places = [k for k, (owner, _) in enumerate(variables.places) if owner == i]
            self.circles[feature] = solver.add_circle(self.points[places[0]], float(f[feature]))
            self.radii[feature] = solver.add_param(float(f[feature]), i in fixed)
            solver.circle_radius(self.circles[feature], self.radii[feature])
            for place in places[1:]:
                solver.point_on_circle(self.points[place], self.circles[feature])
        held = [k for k, (i, _) in enumerate(variables.places) if i in fixed]
        for k in (*held, *range(variables.count, variables.count + 3)):
            x, y = f[2 * k : 2 * k + 2].tolist()
            solver.coordinate_x(self.points[k], solver.add_param(x, True))
            solver.coordinate_y(self.points[k], solver.add_param(y, True))

    def line(self, ends: tuple[int, int]) -> int:
        """A line between two places, whether the sketch has one there or not."""
        if ends not in self.lines:
            self.lines[ends] = self.solver.add_line(self.points[ends[0]], self.points[ends[1]])
        return self.lines[ends]

    def add(self, constraint: Constraint, shared: Mapping[frozenset[int], int]) -> None:
        """Say one constraint; what has no words here is left to our own solver."""
        refs, t = constraint.refs, ConstraintType
        places = [self.variables.at(ref) for ref in refs]
        lines = [self.variables.ends(ref) for ref in refs]
        match constraint.type:
            case t.COINCIDENT | t.POINT_ON_CURVE | t.COLLINEAR | t.CONCENTRIC if len(refs) == 2:
                self._together(refs, concentric=constraint.type is t.CONCENTRIC)
            case t.HORIZONTAL | t.VERTICAL:
                self._level((lines[0] or ()) if len(refs) == 1 else places, upright=constraint.type is t.VERTICAL)
            case t.PARALLEL | t.PERPENDICULAR if len(refs) == 2 and lines[0] and lines[1]:
                turn = self.solver.parallel if constraint.type is t.PARALLEL else self.solver.perpendicular
                turn(self.line(lines[0]), self.line(lines[1]))
            case t.TANGENT if len(refs) == 2:
                self._tangent(refs, shared)
            case t.EQUAL if len(refs) == 2:
                self._equal(refs)
            case t.MIDPOINT:
                self._midpoint(refs)
            case t.SYMMETRIC if len(refs) == 3 and lines[2]:
                a, b = places[:2]
                if a is not None and b is not None:
                    self.solver.symmetric_points_line(self.points[a], self.points[b], self.line(lines[2]))

    def _together(self, refs: Sequence[Ref], *, concentric: bool) -> None:
        rounds = [self.variables.round(ref) for ref in refs]
        lines = [self.variables.ends(ref) for ref in refs]
        a, b = (self.variables.at(ref) for ref in refs)
        if concentric:
            a, b = rounds[0][0] if rounds[0] else a, rounds[1][0] if rounds[1] else b
        if a is not None and b is not None:
            self.solver.coincident(self.points[a], self.points[b])
        elif a is not None:
            self._on(a, lines[1], rounds[1])
        elif b is not None:
            self._on(b, lines[0], rounds[0])
        elif lines[0] and lines[1]:
            for place in lines[1]:
                self._on(place, lines[0], None)
        elif rounds[0] and rounds[1]:
            self.solver.coincident(self.points[rounds[0][0]], self.points[rounds[1][0]])
            self.solver.equal_radius_cc(self.circles[rounds[0][1]], self.circles[rounds[1][1]])

    def _on(self, place: int, line: tuple[int, int] | None, circle: tuple[int, int] | None) -> None:
        if line:
            self.solver.point_on_line(self.points[place], self.line(line))
        elif circle:
            self.solver.point_on_circle(self.points[place], self.circles[circle[1]])

    def _level(self, places: Sequence[int | None], *, upright: bool) -> None:
        points = [self.points[place] for place in places if place is not None]
        if len(points) == 2:
            (self.solver.vertical_points if upright else self.solver.horizontal_points)(*points)

    def _tangent(self, refs: Sequence[Ref], shared: Mapping[frozenset[int], int]) -> None:
        """At the place that both share, if they do: there the distance between them says nothing."""
        rounds = [found for ref in refs if (found := self.variables.round(ref))]
        lines = [found for ref in refs if (found := self.variables.ends(ref))]
        at = shared.get(frozenset(ref.primitive for ref in refs if ref.primitive is not None))
        if len(rounds) == 1 and lines:
            if at is None:
                self.solver.tangent_line_circle(self.line(lines[0]), self.circles[rounds[0][1]])
            else:
                self.solver.perpendicular(self.line(lines[0]), self.line((rounds[0][0], at)))
        elif len(rounds) == 2:
            if at is None:
                self.solver.tangent_circle_circle(*(self.circles[radius] for _, radius in rounds))
            else:
                self.solver.parallel(*(self.line((center, at)) for center, _ in rounds))

    def _equal(self, refs: Sequence[Ref]) -> None:
        a, b = (self.variables.round(ref) for ref in refs)
        line, other = (self.variables.ends(ref) for ref in refs)
        if a and b:
            self.solver.equal_radius_cc(self.circles[a[1]], self.circles[b[1]])
        elif line and other:
            self.solver.equal_length(self.line(line), self.line(other))

    def _midpoint(self, refs: Sequence[Ref]) -> None:
        places = [place for ref in refs if (place := self.variables.at(ref)) is not None]
        ends = next((found for ref in refs if (found := self.variables.ends(ref))), None) or tuple(places[1:3])
        if places and len(ends) == 2:
            middle, (a, b) = self.points[places[0]], (self.points[end] for end in ends)
            self.solver.symmetric_points_point(a, b, middle)

    def features(self) -> Floats:
        """What it found, as our features."""
        f = self.variables.f.copy()
        f[: 2 * len(self.points)] = np.array([self.solver.get_point(point) for point in self.points]).ravel()
        for feature, radius in self.radii.items():
            f[feature] = self.solver.get_param(radius)
        return f
