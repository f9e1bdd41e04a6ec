"""Constraints of traced sketches against those that designers gave.

Primitives of the original and of the result are matched first. A designer's constraint between primitives is recalled
if all of these are matched and the constraints of the result imply it. A constraint of the result is right if all of
its primitives are matched and it holds in the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.formats import scan
from sketchdnn.geometry import Constraint, ConstraintType, Part, Point, Ref, Sketch, bounds

from .constraint_recall import HOLDS, NOT_INFERRED, RIGHT, implied_constraints
from .constraints import TUNING_SKETCHES
from .trace_scores import Match, visible

_TURNED = {Part.START: Part.END, Part.END: Part.START}
# The smallest and the largest number of primitives of a source.
_NUMBERS = (3, 16)
# A constraint without order: its type, and what it refers to.
_Relation = tuple[str, frozenset[tuple[int | None, Part]]]


class ConstraintAgreement(NamedTuple):
    """How well the constraints of one result agree with those of its source.

    Attributes:
        recalled: Constraints of the source that the result implies.
        true: Constraints of the source.
        right: Constraints of the result that hold in the source.
        inferred: Constraints of the result.
        same: Relations that both have.
        relations: Relations of the source and of the result, together.
    """

    recalled: int
    true: int
    right: int
    inferred: int
    same: int
    relations: int

    @property
    def f1(self) -> float:
        """The harmonic mean of the share recalled and the share right."""
        recall, precision = self.recalled / max(1, self.true), self.right / max(1, self.inferred)
        return 2 * recall * precision / (recall + precision) if recall + precision else 0.0

    @property
    def same_f1(self) -> float:
        """The F1 of relations that are the same."""
        return 2 * self.same / max(1, self.relations)


def constrained_sources(data: Path, count: int | None, seed: int = 0) -> list[Sketch]:
    """Sketches of a SketchGraphs file by lot, with the constraints of their designers; the larger side from −1 to 1.

    They have 3 to 16 primitives, none of which a picture would hide, and a constraint that can be inferred.
    """
    items = islice((item for item in scan(data) if isinstance(item, Sketch)), TUNING_SKETCHES, None)
    found = [item for item in items if _NUMBERS[0] <= len(item) <= _NUMBERS[1] and item.constraints]
    sources: list[Sketch] = []
    for number in np.random.default_rng(seed).permutation(len(found)):
        if len(sources) == count:
            break
        sketch = _normalized(found[number])
        if sketch is not None and len(visible(sketch)) == len(sketch) and comparable(sketch):
            sources.append(sketch)
    if len(sources) < 2:
        raise SketchError(f"{data.name} has too few constrained sketches to measure on")
    return sources


def _normalized(sketch: Sketch) -> Sketch | None:
    box = bounds(sketch)
    if not box.size > 0:
        return None
    x, y = box.center
    try:
        return replace(sketch.moved(1.0, (-x, -y)).moved(2 / box.size), extra={}, units=None)
    except GeometryError:  # a primitive is too small beside the whole
        return None


def comparable(sketch: Sketch) -> list[Constraint]:
    """Constraints between primitives that hold in the sketch; no dimensions, which are not inferred."""
    kept = [
        c for c in sketch.constraints if c.type not in NOT_INFERRED and all(r.primitive is not None for r in c.refs)
    ]
    residuals = constraint_residuals(sketch, kept)
    return [c for c, residual in zip(kept, residuals, strict=True) if residual is not None and residual <= HOLDS]


def compare_constraints(truth: Sketch, found: Sketch, pairs: Sequence[Match]) -> ConstraintAgreement:
    """Compare the constraints of a result with those of its source.

    Args:
        truth: The source.
        found: The result, in its own coordinates.
        pairs: The primitives that match.
    """
    own = comparable(truth)
    to_found = {pair.truth: (pair.found, pair.is_turned) for pair in pairs}
    to_truth = {pair.found: (pair.truth, pair.is_turned) for pair in pairs}
    sought = [moved for c in own if (moved := _moved(c, to_found))]
    recalled = sum(implied_constraints(found, found.constraints, sought)) if sought else 0
    inferred = [c for c in found.constraints if c.type not in NOT_INFERRED]
    back = [moved for c in inferred if (moved := _moved(c, to_truth))]
    right = sum(residual is not None and residual <= RIGHT for residual in constraint_residuals(truth, back))
    relations, other = _relations(truth, own), len(_relations(found, inferred))
    same = len(relations & _relations(truth, back))
    return ConstraintAgreement(recalled, len(own), right, len(inferred), same, len(relations) + other)


def _moved(constraint: Constraint, numbers: Mapping[int, tuple[int, bool]]) -> Constraint | None:
    """The constraint on the primitives that match; None if one has no match."""
    if any(ref.primitive not in numbers for ref in constraint.refs):
        return None
    refs = []
    for ref in constraint.refs:
        number, is_turned = numbers[ref.primitive or 0]
        refs.append(Ref(number, _TURNED.get(ref.part, ref.part) if is_turned else ref.part))
    return replace(constraint, refs=tuple(refs))


def _relations(sketch: Sketch, constraints: Iterable[Constraint]) -> set[_Relation]:
    """The relations of constraints: points that are joined, through others too, are joined in pairs."""

    def part_of(ref: Ref) -> tuple[int | None, Part]:
        is_point = ref.primitive is not None and isinstance(sketch.primitives[ref.primitive], Point)
        return (ref.primitive, Part.POINT if is_point else ref.part)

    groups: list[set[tuple[int | None, Part]]] = []
    found: set[_Relation] = set()
    for constraint in constraints:
        refs = {part_of(ref) for ref in constraint.refs}
        kind = constraint.type
        if kind is ConstraintType.CONCENTRIC:
            refs, kind = {(number, Part.CENTER) for number, _ in refs}, ConstraintType.COINCIDENT
        if kind is not ConstraintType.COINCIDENT:
            found.add((str(kind), frozenset(refs)))
        elif any(part is Part.WHOLE for _, part in refs):
            found.add((str(ConstraintType.POINT_ON_CURVE), frozenset(refs)))
        else:
            touched = [group for group in groups if group & refs]
            groups = [group for group in groups if not group & refs] + [refs.union(*touched)]
    for group in groups:
        found |= {(str(ConstraintType.COINCIDENT), frozenset(pair)) for pair in combinations(sorted(group, key=str), 2)}
    return found
