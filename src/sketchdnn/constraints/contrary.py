"""Which of a sketch's own constraints no sketch near it satisfies together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, Sketch

from .solve import Solution, solve

# To doubt each constraint takes a solution of the sketch for each: constraints times primitives, at most.
_MOST_DOUBTED = 20_000


def contrary(sketch: Sketch, tolerance: float, keep: Collection[int]) -> list[Constraint]:
    """Those of a sketch's constraints that no sketch near it satisfies together with the ones before.

    Of very many, only those that the solver itself leaves out.
    """
    if len(sketch.constraints) * len(sketch) > _MOST_DOUBTED:
        solution = _solved(sketch, sketch.constraints, tolerance, keep)
        return list(solution.conflicting) if solution else []
    fine: list[Constraint] = []
    excluded: list[Constraint] = []
    for constraint in sketch.constraints:
        solution = _solved(sketch, [*fine, constraint], tolerance, keep)
        holds = solution is not None and solution.warning is None and not solution.conflicting
        (fine if holds else excluded).append(constraint)
    return excluded


def _solved(
    sketch: Sketch, constraints: Sequence[Constraint], tolerance: float, keep: Collection[int]
) -> Solution | None:
    try:
        return solve(sketch, constraints, most=tolerance, fixed=keep)
    except (SketchError, np.linalg.LinAlgError):
        return None
