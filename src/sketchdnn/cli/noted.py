"""What is to be drawn of a sketch's constraints: which there are, what they leave free, and which are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch
from sketchdnn.render.notes import Notes, without_sign


@dataclass(frozen=True, slots=True)
class Told:
    """A sketch with its constraints, or with those that were inferred; why there are none, if there are not."""

    sketch: Sketch
    notes: Notes
    inferred: bool = False
    unread: int = 0
    warning: str | None = None


def constrained(sketch: Sketch) -> Told:
    """The constraints that a file has; of one that has none, those that it means. Nothing is moved."""
    from sketchdnn.constraints import infer, solve

    warning = None
    inferred = not sketch.constraints
    if inferred:
        try:
            sketch = replace(sketch, constraints=infer(sketch))
        except SketchError as error:
            warning = str(error)
    stands = solve(sketch)
    surplus = {id(c) for c in (*stands.redundant, *stands.conflicting)}
    faults = frozenset(i for i, c in enumerate(sketch.constraints) if id(c) in surplus)
    unread = len(stands.unread) + len(stands.skipped)
    return Told(sketch, Notes(tuple(stands.freedom), faults, stands.dof), inferred, unread, warning)


def remarks(told: Sequence[Told]) -> Iterator[str]:
    """What the picture does not show by itself, a line each."""
    if inferred := sum(one.inferred for one in told):
        whose = "the file has none" if len(told) == 1 else f"{inferred:,} sketches have none"
        yield f"the constraints shown are inferred: {whose}"
    if hidden := sum(without_sign(one.sketch) for one in told):
        yield f"not drawn: {hidden:,} constraint{'s' * (hidden != 1)} of kinds that have no sign"
    if unread := sum(one.unread for one in told):
        yield f"freedom does not count {unread:,} constraint{'s' * (unread != 1)} that the solver does not know"
    for warning in dict.fromkeys(one.warning for one in told if one.warning):
        yield f"warning: {warning}"
