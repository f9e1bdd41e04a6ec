"""Constraints that the authors of files gave, found again: on other primitives, and on the origin and the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sketchdnn.constraints.constrain import ConstrainOptions, constrain
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.geometry import ConstraintType, Sketch
from sketchdnn.geometry.constraints import LENGTHS

from .truth import TRUE, follows

# What is not inferred: dimensions, and what only the file's program knows.
_NOT_INFERRED = LENGTHS | {ConstraintType.ANGLE, ConstraintType.FIX, ConstraintType.OTHER}


@dataclass(frozen=True, slots=True)
class Authored:
    """How many constraints hold in the files, and how many of them follow from what was inferred."""

    repairing: bool
    origin: bool
    inside: int
    found_inside: int
    outside: int
    found_outside: int


def measure_authored(sketches: Sequence[Sketch]) -> list[Authored]:
    """Forget the constraints of sketches and infer them again, in four ways.

    A sketch in which a repair drops or merges something does not count: its references have changed.
    """
    return [_measure(sketches, repairing, origin) for repairing in (True, False) for origin in (False, True)]


def _measure(sketches: Sequence[Sketch], repairing: bool, origin: bool) -> Authored:
    true, found = [0, 0], [0, 0]
    for sketch in sketches:
        wanted = [c for c in sketch.constraints if c.type not in _NOT_INFERRED]
        done = constrain(replace(sketch, constraints=()), ConstrainOptions(repair=repairing, origin=origin)).sketch
        if len(done) != len(sketch):
            continue
        implied = follows(done, done.constraints, wanted)
        for c, missed, is_implied in zip(wanted, constraint_residuals(sketch, wanted), implied, strict=True):
            if missed is not None and missed <= TRUE:
                is_outside = any(ref.primitive is None for ref in c.refs)
                true[is_outside] += 1
                found[is_outside] += is_implied
    return Authored(repairing, origin, true[0], found[0], true[1], found[1])
