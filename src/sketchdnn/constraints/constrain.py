"""All there is to do for a sketch: the constraints it has and those it means, and the sketch in which they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, Ref, Sketch

from .contrary import contrary
from .dimensions import dimensions
from .freedom import Freedom
from .infer import TOLERANCE, infer, is_large, skipped
from .irredundant import irredundant
from .large import plainly, solvable
from .mending import REPAIR_TOLERANCE, Action, Repaired, repair
from .origin import tied_to_origin
from .solve import solve

# How far things may move for the sake of constraints that a file has, as a share of the size.
_FAR = 0.1
# A move that is rounding.
_LEAST = 1e-9
_ONLY_PLAIN = "coincident, concentric, horizontal and vertical constraints were inferred in all of it"


@dataclass(frozen=True, slots=True)
class Constrained:
    """What came of it. With a warning and no constraints but its own, the sketch is the one that went in.

    `lost` are constraints that the sketch had and has no longer, because they contradict others or are about something
    that moved or is gone; they speak of the sketch that went in. `displacement` is the largest move as a share of the
    size. `skipped` says what was not looked for in a sketch that is very large. The first `own` constraints
    are those that it had. The rest is as in `Solution`.
    """

    sketch: Sketch
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    displacement: float = 0.0
    actions: tuple[Action, ...] = ()
    redundant: tuple[Constraint, ...] = ()
    lost: tuple[Constraint, ...] = ()
    unread: tuple[Constraint, ...] = ()
    warning: str | None = None
    skipped: str | None = None
    own: int = 0


def constrain(
    sketch: Sketch,
    tolerance: float | None = None,
    *,
    repairing: bool = True,
    close: bool = False,
    every: bool = False,
    dimensioned: bool = False,
    origin: bool = False,
) -> Constrained:
    """Keep what a sketch says, add what it means, and move it as little as possible so that all of that holds.

    With `repairing`, gaps are closed and what is there twice goes too; `close` is that of `repair`. Without, `every`
    also states what is found to follow from the rest. The tolerance is a share of the size; by default that of
    `repair`, or that of `infer`. Where nothing comes of it because the sketch's own constraints contradict each other,
    or what is drawn, those are lost. With `dimensioned`, dimensions are added until nothing is free. With `origin`,
    places within half the tolerance of the origin or an axis are put there.
    """
    try:
        if repairing:
            done = _repaired(sketch, tolerance or REPAIR_TOLERANCE, close)
        else:
            done = _inferred(sketch, tolerance or TOLERANCE, every)
        if origin and (not done.warning or done.sketch != sketch):
            most = tolerance or (REPAIR_TOLERANCE if repairing else TOLERANCE)
            done = _tied(done, most / 2, max(most - done.displacement, _LEAST) if repairing else most)
        if dimensioned and (not done.warning or done.sketch != sketch):
            added = dimensions(done.sketch)
            done = replace(done, sketch=replace(done.sketch, constraints=(*done.sketch.constraints, *added)))
        stands = solve(done.sketch)
    except (SketchError, np.linalg.LinAlgError) as error:
        return Constrained(sketch, freedom=(Freedom.FREE,) * len(sketch), warning=str(error))
    unread = (*stands.unread, *stands.skipped)
    return replace(done, dof=stands.dof, freedom=stands.freedom, redundant=stands.redundant, unread=unread)


def _repaired(sketch: Sketch, tolerance: float, close: bool) -> Constrained:
    done = repair(sketch, tolerance, close=close)
    found = Constrained(
        done.sketch,
        displacement=done.displacement,
        actions=done.actions,
        lost=_lost(sketch, done),
        warning=done.warning,
        own=done.own,
    )
    return _with_plain(found, tolerance) if is_large(done.sketch) else found


def _with_plain(done: Constrained, tolerance: float) -> Constrained:
    """A large sketch that was repaired as far as that goes, with the plain constraints that it lacks."""
    found = replace(done, skipped=_joined(done.warning, _ONLY_PLAIN), warning=None)
    more = plainly(done.sketch, tolerance / 2, max(tolerance - done.displacement, _LEAST))
    if more is None:
        return found if done.sketch.constraints else done
    sketch, solution = more
    return replace(
        found,
        sketch=replace(sketch, constraints=irredundant(sketch, done.own, solution.dof)),
        displacement=done.displacement + solution.displacement,
    )


def _tied(done: Constrained, tolerance: float, most: float) -> Constrained:
    """With what ties it to the origin, where nothing moves by more than `most` for that."""
    tied = tied_to_origin(done.sketch, done.own, min(tolerance, most), most)
    if tied is None:
        return done
    sketch, solution = tied
    return replace(done, sketch=sketch, displacement=done.displacement + solution.displacement)


def _joined(*sentences: str | None) -> str | None:
    return "; ".join(dict.fromkeys(sentence for sentence in sentences if sentence)) or None


def _lost(sketch: Sketch, done: Repaired) -> tuple[Constraint, ...]:
    """Which constraints are no longer there. Of merged primitives it cannot be told: their ends are others."""
    number = {i: k for k, sources in enumerate(done.sources) for i in sources}
    merged = {i for sources in done.sources if len(sources) > 1 for i in sources}
    there = {_key(c, c.refs) for c in done.sketch.constraints}
    lost = []
    for c in sketch.constraints:
        if any(ref.primitive in merged for ref in c.refs):
            continue
        if any(ref.primitive is not None and ref.primitive not in number for ref in c.refs):
            lost.append(c)
            continue
        refs = tuple(ref if ref.primitive is None else replace(ref, primitive=number[ref.primitive]) for ref in c.refs)
        if _key(c, refs) not in there:
            lost.append(c)
    return tuple(lost)


def _key(constraint: Constraint, refs: tuple[Ref, ...]) -> tuple[object, ...]:
    """What a constraint says; its value to within rounding."""
    value = None if constraint.value is None else f"{constraint.value:.9g}"
    return (constraint.type, refs, value, constraint.name)


def _inferred(sketch: Sketch, tolerance: float, every: bool) -> Constrained:
    done = _once(sketch, sketch.constraints, tolerance, every)
    if done.warning and sketch.constraints:
        excluded = contrary(sketch, _FAR, ())
        given = tuple(c for c in sketch.constraints if not any(c is d for d in excluded))
        again = _once(sketch, given, tolerance, every) if excluded else done
        if not again.warning:
            return replace(again, lost=(*excluded, *again.lost))
    return done


def _once(sketch: Sketch, given: Sequence[Constraint], tolerance: float, every: bool) -> Constrained:
    meant, left = solvable(sketch, given, infer(sketch, tolerance, given=given))
    solution = solve(sketch, (*given, *meant), most=_FAR)
    if solution.warning:
        return Constrained(sketch, warning=solution.warning)
    left_out = {id(c) for c in solution.conflicting}
    if not every:
        left_out |= {id(c) for c in solution.redundant} - {id(c) for c in given}
    own = [c for c in given if id(c) not in left_out]
    found = replace(solution.sketch, constraints=(*own, *(c for c in meant if id(c) not in left_out)))
    return Constrained(
        found if every else replace(found, constraints=irredundant(found, len(own), solution.dof)),
        displacement=solution.displacement,
        lost=tuple(c for c in given if id(c) in left_out),
        skipped=_joined(skipped(sketch), left),
        own=len(own),
    )
