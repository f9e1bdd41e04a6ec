"""Inferred constraints against those that designers gave, on real sketches shaken by a known amount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.equations import System
from sketchdnn.constraints.solve import demands
from sketchdnn.constraints.variables import Variables
from sketchdnn.geometry import Constraint, GeometryError, Sketch


@dataclass
class Score:
    """Counts by kind, and per sketch what solving left and moved; lengths are shares of the size."""

    true: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    residuals: list[float] = field(default_factory=list)
    displacements: list[float] = field(default_factory=list)
    jitters: list[float] = field(default_factory=list)
    failed: int = 0

    def recall(self, kind: str) -> float:
        return self.recalled[kind] / max(self.true[kind], 1)

    def precision(self) -> float:
        return sum(self.right.values()) / max(sum(self.inferred.values()), 1)


def measure(sketches: Sequence[Sketch], jitter: float, tolerance: float, seed: int = 0) -> Score:
    """Shake each sketch, infer and solve, and compare with the sketch as it was.

    A true constraint counts as implied if it holds to 1e-6 in the solved sketch: by accident, no shaken one does.
    """
    score = Score()
    rng = np.random.default_rng(seed)
    for clean in sketches:
        try:
            shaken, moved = shake(clean, jitter, rng)
        except GeometryError:  # an arc turned inside out
            continue
        constraints = infer(shaken, tolerance)
        solution = solve(shaken, constraints)
        if solution.warning is None:
            score.residuals.append(solution.residual)
            score.displacements.append(solution.mean_displacement)
            score.jitters.append(moved)
        else:
            score.failed += 1
        before, after = missed_by(clean, clean.constraints), missed_by(solution.sketch, clean.constraints)
        for constraint, was, now in zip(clean.constraints, before, after, strict=True):
            if was is not None and now is not None and was <= 1e-6:
                score.true[kind_of(constraint)] += 1
                score.recalled[kind_of(constraint)] += now <= 1e-6
        for constraint, miss in zip(constraints, missed_by(clean, constraints), strict=True):
            score.inferred[str(constraint.type)] += 1
            score.right[str(constraint.type)] += miss is not None and miss <= 1e-4
    return score


def shake(sketch: Sketch, jitter: float, rng: np.random.Generator) -> tuple[Sketch, float]:
    """Every number (coordinates of ends and centres, radii, lengths along an arc) moves by up to ±jitter of the size;
    also how far places and radii moved in the mean.
    """
    variables = Variables(sketch.primitives)
    x = variables.x + rng.uniform(-jitter, jitter, len(variables.x))
    moved = float(np.abs(variables.moves(x)).mean())
    return replace(sketch, primitives=variables.rebuilt(x), constraints=()), moved


def missed_by(sketch: Sketch, constraints: Sequence[Constraint]) -> list[float | None]:
    """By how much each constraint is missed, None where that cannot be said."""
    variables = Variables(sketch.primitives)
    f = variables.features(variables.x)
    return [
        float(np.abs(System(demand, variables.num_features).evaluate(f)[0]).max()) if demand else None
        for demand in demands(constraints, variables)
    ]


def kind_of(constraint: Constraint) -> str:
    """SketchGraphs says coincident for a place on a curve too."""
    if str(constraint.type) == "coincident" and any(str(ref.part) == "whole" for ref in constraint.refs):
        return "on or along"
    return str(constraint.type)
