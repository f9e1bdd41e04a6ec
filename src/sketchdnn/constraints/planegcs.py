"""FreeCAD's solver as a backend, where its Python package `planegcs` is installed.

It gets the constraints in its own terms, not our equations, so that each solver checks the other. An arc is a circle
with two points on it, which has the same degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, ConstraintType, Ref

from .equation_set import contacts
from .variables import Floats, Pair, Variables, level_ends


def solve(variables: Variables, constraints: Sequence[Constraint], fixed: Collection[int] = ()) -> Floats | None:
    """Parameters near the drawn ones that satisfy the constraints it supports; None where it finds none."""
    gcs = _planegcs()
    model = _Model(gcs.SketchSolver(), variables, fixed)
    touching = contacts(constraints, variables)
    for constraint in constraints:
        model.add(constraint, touching)
    if model.solver.solve() not in (gcs.SolveStatus.Success, gcs.SolveStatus.Converged):
        return None
    f = model.parameters()
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
    """A sketch in planegcs: a point for each of ours, a circle for each radius."""

    def __init__(self, solver: Any, variables: Variables, fixed: Collection[int]) -> None:
        self.solver, self.variables = solver, variables
        f, num_points = variables.f, variables.num_points
        self.points = [solver.add_point(*f[2 * k : 2 * k + 2].tolist()) for k in range(num_points + 3)]
        self.lines: dict[Pair, int] = {}
        self.circles: dict[int, int] = {}
        self.radii: dict[int, int] = {}
        for i, parameter in variables.radius.items():
            points = [k for k, (owner, _) in enumerate(variables.points) if owner == i]
            self.circles[parameter] = solver.add_circle(self.points[points[0]], float(f[parameter]))
            self.radii[parameter] = solver.add_param(float(f[parameter]), i in fixed)
            solver.circle_radius(self.circles[parameter], self.radii[parameter])
            for point in points[1:]:
                solver.point_on_circle(self.points[point], self.circles[parameter])
        held = [k for k, (i, _) in enumerate(variables.points) if i in fixed]
        for k in (*held, *range(num_points, num_points + 3)):
            x, y = f[2 * k : 2 * k + 2].tolist()
            solver.coordinate_x(self.points[k], solver.add_param(x, True))
            solver.coordinate_y(self.points[k], solver.add_param(y, True))

    def line(self, ends: Pair) -> int:
        """A line between two points, whether the sketch has one there or not."""
        if ends not in self.lines:
            self.lines[ends] = self.solver.add_line(self.points[ends[0]], self.points[ends[1]])
        return self.lines[ends]

    def add(self, constraint: Constraint, touching: Mapping[frozenset[int], int]) -> None:
        """Add one constraint; what planegcs does not have is left to our own solver."""
        refs, t, solver = constraint.refs, ConstraintType, self.solver
        points = [self.variables.point(ref) for ref in refs]
        lines = [self.variables.ends(ref) for ref in refs]
        match constraint.type:
            case t.COINCIDENT | t.POINT_ON_CURVE | t.COLLINEAR | t.CONCENTRIC if len(refs) == 2:
                self._coincident(refs, concentric=constraint.type is t.CONCENTRIC)
            case t.HORIZONTAL | t.VERTICAL:
                level = solver.vertical_points if constraint.type is t.VERTICAL else solver.horizontal_points
                for a, b in level_ends(refs, self.variables) or ():
                    level(self.points[a], self.points[b])
            case t.PARALLEL | t.PERPENDICULAR if len(refs) == 2 and lines[0] and lines[1]:
                relate = solver.parallel if constraint.type is t.PARALLEL else solver.perpendicular
                relate(self.line(lines[0]), self.line(lines[1]))
            case t.TANGENT if len(refs) == 2:
                self._tangent(refs, touching)
            case t.EQUAL if len(refs) == 2:
                one, two = (self.variables.circle(ref) for ref in refs)
                if one and two:
                    solver.equal_radius_cc(self.circles[one[1]], self.circles[two[1]])
                elif lines[0] and lines[1]:
                    solver.equal_length(self.line(lines[0]), self.line(lines[1]))
            case t.MIDPOINT:
                known = [point for point in points if point is not None]
                ends = next((line for line in lines if line), None) or tuple(known[1:3])
                if known and len(ends) == 2:
                    solver.symmetric_points_point(*(self.points[k] for k in (*ends, known[0])))
            case t.SYMMETRIC if len(refs) == 3 and lines[2] and points[0] is not None and points[1] is not None:
                solver.symmetric_points_line(self.points[points[0]], self.points[points[1]], self.line(lines[2]))

    def _coincident(self, refs: Sequence[Ref], *, concentric: bool) -> None:
        circles = [self.variables.circle(ref) for ref in refs]
        lines = [self.variables.ends(ref) for ref in refs]
        a, b = (self.variables.point(ref) for ref in refs)
        if concentric:
            a, b = circles[0][0] if circles[0] else a, circles[1][0] if circles[1] else b
        if a is not None and b is not None:
            self.solver.coincident(self.points[a], self.points[b])
        elif a is not None:
            self._on(a, lines[1], circles[1])
        elif b is not None:
            self._on(b, lines[0], circles[0])
        elif lines[0] and lines[1]:
            for point in lines[1]:
                self._on(point, lines[0], None)
        elif circles[0] and circles[1]:
            self.solver.coincident(self.points[circles[0][0]], self.points[circles[1][0]])
            self.solver.equal_radius_cc(self.circles[circles[0][1]], self.circles[circles[1][1]])

    def _on(self, point: int, line: Pair | None, circle: Pair | None) -> None:
        if line:
            self.solver.point_on_line(self.points[point], self.line(line))
        elif circle:
            self.solver.point_on_circle(self.points[point], self.circles[circle[1]])

    def _tangent(self, refs: Sequence[Ref], touching: Mapping[frozenset[int], int]) -> None:
        """At the point that both share, if they do: there the distance between them is no constraint."""
        circles = [circle for ref in refs if (circle := self.variables.circle(ref))]
        lines = [line for ref in refs if (line := self.variables.ends(ref))]
        at = touching.get(frozenset(ref.primitive for ref in refs if ref.primitive is not None))
        if len(circles) == 1 and lines:
            if at is None:
                self.solver.tangent_line_circle(self.line(lines[0]), self.circles[circles[0][1]])
            else:
                self.solver.perpendicular(self.line(lines[0]), self.line((circles[0][0], at)))
        elif len(circles) == 2:
            if at is None:
                self.solver.tangent_circle_circle(*(self.circles[radius] for _, radius in circles))
            else:
                self.solver.parallel(*(self.line((center, at)) for center, _ in circles))

    def parameters(self) -> Floats:
        """The solution as our parameters."""
        f = self.variables.f.copy()
        f[: 2 * len(self.points)] = np.array([self.solver.get_point(point) for point in self.points]).ravel()
        for parameter, radius in self.radii.items():
            f[parameter] = self.solver.get_param(radius)
        return f
