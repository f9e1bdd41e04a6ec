"""Sketches too large to be looked at as a whole: what is inferred of them in time that grows about linearly.

Coincident, concentric, horizontal and vertical constraints make numbers one and need no equation, so they are found and
solved at any size. Other constraints are kept where the equations that hang together are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sketchdnn.geometry import Constraint, Sketch

from .blocks import apart
from .demands import demanded
from .infer import MOST_NUMBERS, is_large, plain
from .solve import Solution, solve
from .variables import variables_of

# What holds to within this share of the size holds as it is drawn.
_AS_DRAWN = 1e-6


def solvable(
    sketch: Sketch, given: Sequence[Constraint], meant: Sequence[Constraint]
) -> tuple[tuple[Constraint, ...], str | None]:
    """Those of the inferred constraints that can be solved quickly, and a sentence on the others."""
    if not is_large(sketch):
        return tuple(meant), None
    wanted = (*given, *meant)
    demands = demanded(wanted, variables_of(sketch.primitives))
    left_out = {
        demands.owners[i] for members, columns in apart(demands) if len(columns) > MOST_NUMBERS for i in members
    }
    kept = tuple(c for i, c in enumerate(meant, len(given)) if i not in left_out)
    counts = Counter(str(wanted[i].type).replace("_", " ") for i in left_out if i >= len(given))
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    return kept, f"left out, as too many hang together to solve: {listed}" if counts else None


def plainly(sketch: Sketch, tolerance: float, most: float) -> tuple[Sketch, Solution] | None:
    """A large sketch with the coincident, concentric, horizontal and vertical constraints that it lacks, solved.

    Nothing moves by more than `most`. What is already so as drawn is found where the tolerance leads to no solution.
    None where nothing is found.
    """
    for within in (tolerance, _AS_DRAWN):
        meant = plain(sketch, within, sketch.constraints)
        if not meant:
            continue
        solution = solve(sketch, (*sketch.constraints, *meant), most=most)
        if solution.warning is None:
            surplus = {id(c) for c in (*solution.conflicting, *solution.redundant)}
            kept = (*sketch.constraints, *(c for c in meant if id(c) not in surplus))
            return replace(solution.sketch, constraints=kept), solution
    return None
