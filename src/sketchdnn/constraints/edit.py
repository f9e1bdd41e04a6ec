"""Solve a sketch after a dimension was edited or a constraint was added.

The equations that do not hold have residuals where the sketch is drawn. These are reduced to zero by steps. Each step
is solved from the one before, so the shape keeps its topology. A step that finds no solution, or that
turns or resizes a primitive too much at once, is halved. Where no step is possible, the constraint conflicts with
others.

The steps of an equation between directions are steps of the angle, so half a turn and more is possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Part, Ref, Sketch

from .equation_set import MAX_BLOCK, constraint_residuals, contacts, equation_set
from .equations import Contacts, Equation, Form, System, between, build, constraint_equations, residual, vector
from .mechanism import size_limits
from .pull import keeps_sizes
from .solve import HOLDS, least_squares, solve
from .variables import Floats, Variables, variables_of

_T = ConstraintType
# Sizes stay above this share of the sketch's size.
_SMALLEST = 1e-6
# The smallest step, as a share of the way.
_LEAST_STEP = 2.0**-12
# In one step, a primitive turns by at most this angle, and becomes at most so many times larger.
_MOST_TURN, _MOST_GROWTH = math.radians(12), 1.6
# A larger correction of an angle means that the drawing has the opposite direction.
_OPPOSITE = math.radians(150)
# Equations with a smaller share in a conflict are not named.
_INVOLVED = 1e-3
_MAX_NAMED = 3
# How much more a change of a size counts than a move, where something turns.
_SIZES_COUNT = 30.0
# A direction in which the equations change by a smaller share counts for nothing.
_REDUNDANT = 1e-6
# The largest move that is only rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class EditResult:
    """The sketch after an edit.

    Attributes:
        sketch: The sketch, in which the constraints hold; the input if they cannot.
        dof: The degrees of freedom.
        message: Why the constraints cannot hold.
    """

    sketch: Sketch
    dof: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """An equation whose residual is reduced to zero by steps; `by` is the residual, or with `turns`, an angle."""

    owner: int
    equation: Equation
    by: float
    turns: bool

    def at(self, share: float) -> Equation:
        """The equation at a share of the way: 0 holds where the sketch is drawn, 1 is the wanted one."""
        left = self.by * (1 - share)
        if not self.turns:
            return self.equation._replace(constant=self.equation.constant + left)
        cosine, sine = self.equation.turn
        angle = math.atan2(sine, cosine) - left
        return self.equation._replace(turn=(math.cos(angle), math.sin(angle)))


def solve_edited(sketch: Sketch, changed: int | None = None) -> EditResult:
    """Solve a sketch whose constraints do not hold, because a dimension was edited or a constraint was added.

    Args:
        sketch: The sketch, drawn as before the edit.
        changed: The index of the constraint that was edited or added; None if any may be.

    Returns:
        The nearest solution at the end of a path of steps, on which nothing collapses or flips over.

    Raises:
        GeometryError: If there is no such constraint.

    >>> from sketchdnn.geometry import Line
    >>> length = Constraint(ConstraintType.LENGTH, (Ref(0),), 80.0)
    >>> [line] = solve_edited(Sketch((Line((0, 0), (40, 0)),), (length,)), 0).sketch
    >>> round(line.start[0], 6), round(line.end[0], 6)
    (-20.0, 60.0)
    """
    if changed is not None and not 0 <= changed < len(sketch.constraints):
        raise GeometryError(f"there is no constraint {changed}")
    if not len(sketch):
        return EditResult(sketch, 0)
    residuals = constraint_residuals(sketch, sketch.constraints)
    open_ = {i for i, value in enumerate(residuals) if i == changed or (value is not None and value > HOLDS)}
    edit = _Edit(sketch, open_)
    if edit.message is None:
        edit.run()
    if edit.message is not None:
        return EditResult(sketch, solve(sketch).dof, edit.message)
    return _checked(sketch, edit)


def _checked(sketch: Sketch, edit: _Edit) -> EditResult:
    """The result, if all constraints hold in it."""
    before = solve(sketch, [c for i, c in enumerate(sketch.constraints) if i not in edit.open])
    try:
        solved = replace(sketch, primitives=edit.variables.rebuild(edit.parameters(), far=True))
    except GeometryError:
        return EditResult(sketch, before.dof, f"{edit.subject()} would make a primitive collapse")
    solution = solve(solved)
    left_out = {id(c) for c in solution.conflicting} - {id(c) for c in before.conflicting}
    if solution.warning or left_out or solution.displacement > _ROUNDING:
        return EditResult(sketch, before.dof, f"{edit.subject()} cannot hold together with the other constraints")
    return EditResult(solution.sketch, solution.dof)


class _Edit:
    """The equations of a sketch, those that hold and those that change, and the variables on the way."""

    def __init__(self, sketch: Sketch, open_: set[int]) -> None:
        self.sketch, self.open = sketch, open_
        self.message: str | None = None
        self.variables = variables_of(sketch.primitives)
        held = [i for i in range(len(sketch.constraints)) if i not in open_]
        equations = equation_set([sketch.constraints[i] for i in held], self.variables)
        self.variable_map = equations.variable_map
        self.owners = [held[i] if i >= 0 else -1 for i in equations.owners]
        f, touching = self.variables.f, contacts(sketch.constraints, self.variables)
        self.changes = [c for i in sorted(open_) for c in _changes(i, sketch, self.variables, f, touching)]
        self.z = np.zeros(self.variable_map.num_free)
        self.share = 0.0
        if self.variable_map.num_free > MAX_BLOCK:
            self.message = "the sketch is too large to solve"
            return
        self.held = build(equations.equations, self.variable_map)
        self.sizes = size_limits(self.variables, self.variable_map, _SMALLEST)

    def parameters(self) -> Floats:
        return self.variable_map.parameters(self.z)

    def run(self) -> None:
        """Go all the way, or as far as possible."""
        most = max([1.0, *(abs(change.by) / _MOST_TURN for change in self.changes if change.turns)])
        step = 1.0 / most
        while self.share < 1.0:
            to = min(self.share + step, 1.0)
            after = self._solved(to)
            if after is not None:
                self.z, self.share, step = after, to, min(2 * step, 1.0 / most)
            elif step * most > _LEAST_STEP:
                step /= 2
            else:
                self.message = self._conflict()
                return

    def _system(self, share: float) -> System:
        return self.held.concatenate(build([c.at(share) for c in self.changes], self.variable_map))

    def _solved(self, share: float) -> Floats | None:
        """The solution at a share of the way, if it is near.

        The step is made along the derivatives halfway there, so that what turns keeps its size.
        """
        system = self._system(share)
        missed = system.evaluate(self.z)[0]
        halfway = self.z - self._step(system, self.z, missed) / 2
        step = self._step(system, halfway, missed)
        z, left, _ = least_squares(system, self.z - step, tolerance=HOLDS / 100)
        if float(np.abs(left).max(initial=0.0)) > HOLDS / 10 or not keeps_sizes(self.sizes, self.z, z):
            return None
        return z if self._is_near(z) else None

    def _step(self, system: System, z: Floats, missed: Floats) -> Floats:
        """The shortest step that changes equations by given amounts. If something turns, sizes count more."""
        rows = system.evaluate(z)[1]
        if not any(change.turns for change in self.changes):
            return np.asarray(np.linalg.lstsq(rows, missed, rcond=_REDUNDANT)[0])
        sizes = self.sizes.evaluate(z)[1]
        half = np.linalg.cholesky(np.eye(len(z)) + _SIZES_COUNT * sizes.T @ sizes)
        scaled, *_ = np.linalg.lstsq(np.linalg.solve(half, rows.T).T, missed, rcond=_REDUNDANT)
        return np.asarray(np.linalg.solve(half.T, scaled))

    def _is_near(self, z: Floats) -> bool:
        """Whether no primitive turned or grew much since the last step."""
        if not len(self.sizes):
            return True
        first, last = (self.sizes.base[:2] + self.sizes.steps[:2] @ each for each in (self.z, z))
        before, after = (np.hypot(*each) for each in (first, last))
        growth = after / before
        turn = (first * last).sum(axis=0) / (before * after)
        return bool((turn >= math.cos(_MOST_TURN)).all() and (np.maximum(growth, 1 / growth) <= _MOST_GROWTH).all())

    def subject(self) -> str:
        """What was changed, in words."""
        return _listed([_phrase(self.sketch.constraints[i], self.sketch) for i in sorted(self.open)])

    def _conflict(self) -> str:
        """A sentence on why there is no further step: the constraints whose equations add up to those that change."""
        names = _listed([_phrase(self.sketch.constraints[i], self.sketch) for i in self._opponents()])
        reached = self._reached()
        if not names:
            return f"{self.subject()} would make a primitive collapse{reached}"
        return f"{self.subject()} conflicts with {names}{reached}"

    def _opponents(self) -> list[int]:
        rows = self.held.evaluate(self.z)[1]
        changing = build([c.at(1.0) for c in self.changes], self.variable_map).evaluate(self.z)
        open_rows = changing[1][np.abs(changing[0]) > HOLDS]
        if not len(rows) or not len(open_rows):
            return []
        shares, *_ = np.linalg.lstsq(rows.T, open_rows.T, rcond=1e-9)
        involved = np.abs(shares).max(axis=1) * np.sqrt((rows * rows).sum(axis=1)) > _INVOLVED
        order = np.argsort(-np.abs(shares).max(axis=1), kind="stable").tolist()
        owners = dict.fromkeys(self.owners[k] for k in order if involved[k])
        dimensions_first = sorted(owners, key=lambda i: self.sketch.constraints[i].value is None)
        return [i for i in dimensions_first if i >= 0]

    def _reached(self) -> str:
        """How far a single dimension can go."""
        values = [self.sketch.constraints[i].value for i in self.open]
        if len(values) != 1 or values[0] is None or not self.changes or self.share <= _LEAST_STEP:
            return ""
        change = self.changes[-1]
        if change.turns:
            return f": {math.degrees(values[0] + change.by * (1 - self.share)):.4g}° is as far as it goes"
        sign = 1.0 if change.equation.constant >= 0 else -1.0
        value = values[0] + sign * change.by * (1 - self.share) * self.variables.scale
        return f": {value:.4g} is as far as it goes"


def _changes(owner: int, sketch: Sketch, variables: Variables, f: Floats, touching: Contacts) -> list[_Change]:
    """The equations of a constraint, and by how much they miss where the sketch is drawn."""
    constraint = sketch.constraints[owner]
    if constraint.type is _T.ANGLE and (change := _angle_change(owner, constraint, variables)):
        return [change]
    if constraint.type is _T.DISTANCE:  # of circles: from their centers
        refs = tuple(_center(ref, sketch) for ref in constraint.refs)
        constraint = Constraint(constraint.type, refs, constraint.value)
    line = variables.ends(constraint.refs[0]) if len(constraint.refs) == 1 else None
    if line and constraint.type in (_T.HORIZONTAL, _T.VERTICAL):  # turned, so that it keeps its length
        axis = Part.X_AXIS if constraint.type is _T.HORIZONTAL else Part.Y_AXIS
        along = variables.point_index[None, Part.ORIGIN], variables.point_index[None, axis]
        equations: Sequence[Equation] = [Equation(Form.SINE, between(*along), between(*line))]
    else:
        equations = constraint_equations(constraint, variables, f, touching) or ()
    changes = []
    for equation in equations:
        turns = equation.form is Form.SINE
        by = math.remainder(_direction(equation, f), math.pi) if turns else residual(equation, f)
        changes.append(_Change(owner, equation, by, turns))
    return changes


def _center(ref: Ref, sketch: Sketch) -> Ref:
    if ref.primitive is None or ref.part is not Part.WHOLE:
        return ref
    is_round = isinstance(sketch.primitives[ref.primitive], Circle | Arc)
    return Ref(ref.primitive, Part.CENTER) if is_round else ref


def _direction(equation: Equation, f: Floats) -> float:
    """The angle from v to w."""
    (vx, vy), (wx, wy) = vector(equation.v, f), vector(equation.w, f)
    return math.atan2(wy, wx) - math.atan2(vy, vx) + math.atan2(equation.turn[1], equation.turn[0])


def _angle_change(owner: int, constraint: Constraint, variables: Variables) -> _Change | None:
    """The change of an angle between directions; of an arc's sweep without a limit."""
    value = constraint.value
    if value is None:
        return None
    primitive = constraint.refs[0].primitive
    if len(constraint.refs) == 1 and primitive is not None and isinstance(arc := variables.primitives[primitive], Arc):
        center = variables.first[primitive]
        v, w = between(center, center + 1), between(center, center + 2)
        turned = Equation(Form.SINE, v, w, turn=(math.cos(value), -math.sin(value)))
        return _Change(owner, turned, arc.sweep - value, turns=True)
    equations = constraint_equations(constraint, variables, variables.f, {})
    if not equations:
        return None
    (equation,) = equations
    cosine, sine = equation.turn
    readings = [equation._replace(turn=(cosine, side * sine)) for side in (1.0, -1.0)]
    changes = [(math.remainder(_direction(reading, variables.f), math.tau), reading) for reading in readings]
    by, reading = min(changes, key=lambda item: abs(item[0]))
    if abs(by) > _OPPOSITE:
        by -= math.copysign(math.pi, by)
    return _Change(owner, reading, by, turns=True)


def _phrase(constraint: Constraint, sketch: Sketch) -> str:
    """A constraint in words, with primitives by their number."""
    label = constraint.name or constraint.extra.get("label")
    parts = []
    for ref in constraint.refs:
        part = str(ref.part).replace("_", " ")
        if ref.primitive is not None:
            owner = f"{sketch.primitives[ref.primitive].kind.label} {ref.primitive}"
            part = owner if ref.part in (Part.WHOLE, Part.POINT) else f"{part} of {owner}"
        parts.append(part)
    value = "" if constraint.value is None else f" {constraint.value:.6g}"
    if constraint.type is _T.ANGLE and constraint.value is not None:
        value = f" {math.degrees(constraint.value):.6g}°"
    named = f" '{str(label)[:40]}'" if label else ""
    return f"{constraint.type.replace('_', ' ')}{value}{named} ({', '.join(parts)})"


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:_MAX_NAMED], *([f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""
