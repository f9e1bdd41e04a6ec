"""The constraints of a sketch for `view --constraints`: given or inferred, redundant ones, and degrees of freedom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch
from sketchdnn.render.annotations import ConstraintStatus, count_without_symbol


class AnnotatedSketch(NamedTuple):
    """A sketch with constraints and their status.

    Attributes:
        sketch: The sketch with its own constraints, or with inferred ones.
        status: Freedom and redundant constraints, as `render` takes them.
        inferred: Whether the constraints are inferred.
        ignored: The number of constraints that the solver does not support.
        warning: Why none were inferred.
    """

    sketch: Sketch
    status: ConstraintStatus
    inferred: bool = False
    ignored: int = 0
    warning: str | None = None


def annotate(sketch: Sketch) -> AnnotatedSketch:
    """Solve the constraints of a sketch, or infer them if it has none. Nothing is moved."""
    from sketchdnn.constraints import infer, solve

    warning = None
    inferred = not sketch.constraints
    if inferred:
        try:
            sketch = replace(sketch, constraints=infer(sketch))
        except SketchError as error:
            warning = str(error)
    solution = solve(sketch)
    redundant = {id(c) for c in (*solution.redundant, *solution.conflicting)}
    faults = frozenset(i for i, c in enumerate(sketch.constraints) if id(c) in redundant)
    status = ConstraintStatus(tuple(solution.freedom), faults, solution.dof)
    return AnnotatedSketch(sketch, status, inferred, len(solution.unsupported) + len(solution.skipped), warning)


def summary_lines(sketches: Sequence[AnnotatedSketch]) -> Iterator[str]:
    """A line for each fact that the picture does not show."""
    if inferred := sum(item.inferred for item in sketches):
        owner = "the file has none" if len(sketches) == 1 else f"{inferred:,} sketches have none"
        yield f"the constraints shown are inferred: {owner}"
    if hidden := sum(count_without_symbol(item.sketch) for item in sketches):
        yield f"not drawn: {hidden:,} constraint{'s' * (hidden != 1)} of kinds that have no symbol"
    if ignored := sum(item.ignored for item in sketches):
        yield f"freedom does not count {ignored:,} constraint{'s' * (ignored != 1)} that the solver does not support"
    for warning in dict.fromkeys(item.warning for item in sketches if item.warning):
        yield f"warning: {warning}"
