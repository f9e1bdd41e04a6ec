"""The nearest sketch that satisfies constraints, and how much freedom they leave."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, Sketch

from . import planegcs
from .blocks import Block, blocks
from .demands import Demands, demanded
from .freedom import Freedom, freedoms, named
from .nearest import HOLDS, Nearest, nearest
from .rank import orthonormal
from .variables import Floats, Variables, variables_of

BACKENDS = ("own", "planegcs")


@dataclass(frozen=True, slots=True)
class Solution:
    """What solving came to. Displacements and residual are shares of the sketch's size.

    `redundant` constraints follow from the others, `conflicting` ones contradict others and were left out, `unread`
    ones are of a kind, or about things, that the solver does not know, `skipped` ones hang together in a piece too
    large to solve. With a `warning`, `sketch` is the one that went in, and `residual` is what it misses.
    """

    sketch: Sketch
    displacement: float
    mean_displacement: float
    residual: float
    dof: int
    redundant: tuple[Constraint, ...] = ()
    conflicting: tuple[Constraint, ...] = ()
    unread: tuple[Constraint, ...] = ()
    warning: str | None = None
    freedom: tuple[Freedom, ...] = ()
    skipped: tuple[Constraint, ...] = ()

    @property
    def parts(self) -> str:
        """Which primitives are not settled, or too much so, in a sentence."""
        return named(self.freedom, [p.kind.label for p in self.sketch])


def solve(
    sketch: Sketch,
    constraints: Sequence[Constraint] | None = None,
    *,
    most: float = 0.1,
    fixed: Collection[int] = (),
    backend: str = "own",
) -> Solution:
    """Move the primitives as little as possible, so that the constraints hold: the sketch's own, unless given.

    Of constraints that exclude each other those stay that make numbers one (coincident, concentric, level, of one
    radius), and of the others the earlier ones. Nothing moves by more than `most` of the size: where that is not
    possible, or no solution is found, the sketch comes back as it was, with a warning. Primitives whose numbers are in
    `fixed` do not move at all. With the back end "planegcs", FreeCAD's solver is asked for a solution first, and ours
    only goes from there to the nearest one.

    >>> from sketchdnn.geometry import ConstraintType, Line, Ref
    >>> solution = solve(Sketch((Line((0, 0), (10, 0.1)),)), [Constraint(ConstraintType.HORIZONTAL, (Ref(0),))])
    >>> [round(y, 9) for _, y in (solution.sketch.primitives[0].start, solution.sketch.primitives[0].end)]
    [0.05, 0.05]
    >>> solution.dof
    3
    """
    if backend not in BACKENDS:
        raise GeometryError(f"'{backend}' is no solver we have: it is {' or '.join(BACKENDS)}")
    wanted = tuple(sketch.constraints if constraints is None else constraints)
    if not len(sketch):
        return Solution(sketch, 0.0, 0.0, 0.0, 0, unread=wanted)
    variables = variables_of(sketch.primitives)
    demands = demanded(wanted, variables, fixed)
    pieces = blocks(demands)
    begin = planegcs.solved(variables, wanted, fixed) if backend == "planegcs" else None
    first = None if begin is None else demands.slots.steps(begin)
    solved = [nearest(block, None if first is None else first[block.columns]) for block in pieces]
    z = np.zeros(demands.slots.free)
    for block, found in zip(pieces, solved, strict=True):
        z[block.columns] = found.z
    f = demands.slots.features(z)
    rounding = _put_back(f, variables, fixed)
    redundant = demands.redundant.union(*(found.redundant for found in solved))
    conflicting = demands.conflicting.union(*(found.conflicting for found in solved))
    skipped = {owner for block in pieces if block.too_large for owner in block.owners if owner >= 0}
    residual = max([rounding, *(found.residual for found in solved)])
    moves = np.abs(variables.moves(f))
    over = {ref.primitive for i in (*redundant, *conflicting) for ref in wanted[i].refs}
    outcome = Solution(
        sketch,
        displacement=0.0,
        mean_displacement=0.0,
        residual=max([demands.apart, *(found.before for found in solved)]),
        dof=demands.slots.free - sum(len(found.rows) for found in solved),
        redundant=tuple(wanted[i] for i in sorted(redundant)),
        conflicting=tuple(wanted[i] for i in sorted(conflicting)),
        unread=tuple(wanted[i] for i in demands.unread),
        skipped=tuple(wanted[i] for i in sorted(skipped)),
        freedom=tuple(
            Freedom.OVER if i in over and i not in fixed else freedom
            for i, freedom in enumerate(_freedom(variables, demands, f, list(zip(pieces, solved, strict=True)), fixed))
        ),
    )
    if skipped:
        numbers = max(len(block.columns) for block in pieces if block.too_large)
        return replace(outcome, warning=f"{numbers} numbers that hang together are too many to solve")
    if not residual <= HOLDS:
        return replace(outcome, warning=f"no solution was found: {residual:.1e} of the size is left")
    if moves.max() > most:
        return replace(outcome, warning=f"the nearest solution moves something by {moves.max():.1%} of the size")
    try:
        primitives = variables.rebuilt(f)
    except GeometryError as error:
        return replace(outcome, warning=f"the nearest solution is no sketch: {error}")
    return replace(
        outcome,
        sketch=replace(sketch, primitives=primitives),
        displacement=float(moves.max()),
        mean_displacement=float(moves.mean()),
        residual=residual,
    )


def _put_back(f: Floats, variables: Variables, fixed: Collection[int]) -> float:
    """Give fixed primitives the numbers they had, bit by bit; says by how much these had changed.

    Two of them that meet but for rounding share a number while the others are solved for.
    """
    own = [k for i in fixed for k in variables.features(i)]
    changed = float(np.abs(f[own] - variables.f[own]).max(initial=0.0))
    f[own] = variables.f[own]
    return changed


def _freedom(
    variables: Variables, demands: Demands, f: Floats, solved: Sequence[tuple[Block, Nearest]], fixed: Collection[int]
) -> list[Freedom]:
    """The freedom of each primitive; one that no constraint names is free, even if it is alone."""
    slots = demands.slots
    untouched = np.bincount(slots.slot, minlength=len(slots.start)) == 1
    untouched[slots.free :] = False
    held = []
    for block, found in solved:
        if found.rows:
            rows = block.system.take(found.rows).evaluate(found.z)[1]
            held.append((block.columns, orthonormal(rows)[0]))
            told = [i for i, row in enumerate(found.rows) if block.owners[row] >= 0]
            untouched[block.columns] &= ~rows[told].any(axis=0)
    alone = np.append(untouched[slots.slot], True)[variables.rows].all(axis=1).tolist()
    return [
        Freedom.FREE if is_alone and i not in fixed else freedom
        for i, (freedom, is_alone) in enumerate(zip(freedoms(variables, f, slots, held), alone, strict=True))
    ]
