"""A sketch whose constraints hold, as a mechanism: its independent equations, and its motions along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Primitive, Sketch
from sketchdnn.geometry.proximity import component_roots

from .equation_set import MAX_BLOCK, equation_set
from .equations import Equation, Form, System, adds_rank, between, build
from .pull import Pull, keeps_sizes, pull
from .solve import HOLDS, least_squares
from .variables import Constraints, Floats, Ints, VariableMap, Variables, variables_of

# A size (a length, a radius) below this share of the sketch's size does not become smaller.
SMALLEST = 1e-3
# An equation that follows from those before it to within this share of itself is redundant.
_REDUNDANT = 1e-6
_ROUNDING = 1e-9
# Residuals up to this stay, so that they are below `HOLDS` even if the sketch becomes smaller.
_EXACT = HOLDS / 50


class Moved(NamedTuple):
    """The primitives after a motion, by how much the goal is missed, and whether a size stopped at its limit."""

    primitives: tuple[Primitive, ...]
    missed: float
    is_stopped: bool


class Mechanism:
    """The equations of a sketch's constraints at the place where it is drawn.

    `holds` is whether all of them are satisfied there.
    """

    def __init__(self, sketch: Sketch, constraints: Constraints) -> None:
        self.variables = variables_of(sketch.primitives)
        equations = equation_set(constraints, self.variables)
        self.variable_map = equations.variable_map
        self.too_large = self.variable_map.num_free > MAX_BLOCK
        self.system = build([] if self.too_large else equations.equations, self.variable_map)
        residuals, rows = self.system.evaluate(np.zeros(self.variable_map.num_free))
        worst = max(float(np.abs(residuals).max(initial=0.0)), equations.gap)
        self.holds = worst <= HOLDS and not equations.conflicting
        self.independent: Ints = np.flatnonzero(adds_rank(rows, _REDUNDANT))

    @property
    def dof(self) -> int:
        """The degrees of freedom."""
        return self.variable_map.num_free - len(self.independent)

    def pull(self, goal: Pull) -> Moved | None:
        """Pull variables toward goals; None if no solution was found there."""
        inside = self._connected(goal)
        columns = np.flatnonzero(inside)
        system = self.system.take(self.independent)
        system = _restrict(system.take(_touching(system, inside)), columns)
        sizes = size_limits(self.variables, self.variable_map, SMALLEST)
        sizes = _restrict(sizes.take(_touching(sizes, inside)), columns)
        start = np.zeros(len(columns))
        result = pull(system, sizes, start, Pull(goal.rows[:, columns], goal.goals))
        z = np.zeros(len(inside))
        z[columns] = result.z
        if float(np.abs(self.system.evaluate(z)[0]).max(initial=0.0)) > _EXACT:
            # Equations that follow from the others only where the sketch was drawn, such as two that touch there.
            every = _restrict(self.system.take(_touching(self.system, inside)), columns)
            z[columns], left, _ = least_squares(every, result.z, tolerance=_EXACT)
            if float(np.abs(left).max()) > HOLDS / 2 or not keeps_sizes(sizes, result.z, z[columns]):
                return None
        try:
            primitives = self.variables.rebuild(self._parameters(z, inside), far=True)
        except GeometryError:
            return None
        missed = float(np.abs(goal.misses(z)).max())
        return Moved(primitives, missed, bool(result.stopped))

    def _parameters(self, z: Floats, inside: Floats) -> Floats:
        """The parameters after steps z; those that are not connected stay exactly as they are."""
        moves = np.append(inside, np.zeros(len(self.variable_map.start) - len(inside), dtype=bool))
        return np.where(moves[self.variable_map.index], self.variable_map.parameters(z), self.variables.f)

    def _connected(self, goal: Pull) -> Floats:
        """The variables that are connected with a goal by equations, as a mask."""
        groups = [np.flatnonzero(row).tolist() for row in (self.system.steps != 0).any(axis=0)]
        pulled = np.flatnonzero(goal.rows.any(axis=0)).tolist()
        roots = component_roots(self.variable_map.num_free, [*(group for group in groups if group), pulled])
        return np.asarray(roots == roots[pulled[0]])


def size_limits(variables: Variables, variable_map: VariableMap, smallest: float) -> System:
    """Lengths of lines, chords of arcs and radii, less their limits: `smallest`, or what they are if that is less."""
    lengths = [Equation(Form.LENGTHS, between(k, k + 1)) for k in (variables.starts // 2).tolist()]
    radii = [Equation(Form.LENGTHS, linear=((k, 1.0),)) for k in variables.radius.values()]
    system = build([*lengths, *radii], variable_map)
    # A radius is the length of a vector along x.
    for values in (system.base, system.steps):
        values[0, len(lengths) :] = values[4, len(lengths) :]
    system.steps[4] = 0.0
    system.base[4] = -np.minimum(smallest, (1 - _ROUNDING) * np.hypot(system.base[0], system.base[1]))
    return system


def _touching(system: System, inside: Floats) -> Ints:
    """The equations in which variables of a mask occur."""
    return np.flatnonzero((system.steps[:, :, inside] != 0).any(axis=(0, 2)))


def _restrict(system: System, columns: Ints) -> System:
    return System(system.base, system.steps[:, :, columns], system.kind)
