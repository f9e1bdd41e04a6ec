"""A pass of a repair: lay the sketch down, try the boldest repair that does no harm, and put it back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.constraints.freedom import Freedom
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, Primitive, Sketch, bounds, profile

from .actions import Action
from .attempt import Attempt, Caution, attempt
from .canonical import Frame, frame_of, is_symmetric
from .effort import Effort, trying
from .worth import EXACT, Worth, bounds_something, worth

# From the boldest to one that moves nothing and only says what holds already.
_CAUTIOUS = (
    Caution(0.5, True, 0.5),
    Caution(1.0, True, 0.5),
    Caution(0.5, True, 0.3, subtle=False),
    Caution(0.0, True, 0.3, subtle=False),
    Caution(0.0, True, 0.0),
    Caution(0.0, False, 0.0),
)
# More primitives than this are not worth every attempt.
_MANY = 100


def cautions_for(primitives: Sequence[Primitive]) -> tuple[Caution, ...]:
    """The attempts to make, in order: all, or few at a drawing so large that each takes seconds."""
    return _CAUTIOUS if len(primitives) <= _MANY else (_CAUTIOUS[0], *_CAUTIOUS[-2:])


def is_hopeful(primitives: Sequence[Primitive]) -> bool:
    """Whether to go on until something can be extruded."""
    return len(primitives) <= _MANY and bounds_something(primitives)


@dataclass(frozen=True, slots=True)
class State:
    """A sketch between two passes. Actions and sources speak of the primitives that came in first.

    `freedom` is empty, and `is_extrudable` False, as long as it is not known. The first `own` constraints are those
    of the file.
    """

    sketch: Sketch
    sources: tuple[tuple[int, ...], ...]
    actions: tuple[Action, ...] = ()
    warnings: tuple[str, ...] = ()
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    changed: bool = True
    is_extrudable: bool = False
    own: int = 0


def advance(
    state: State, cautions: Sequence[Caution], tolerance: float, keep: Collection[int], effort: Effort, *, close: bool
) -> State | None:
    """The first attempt that does no harm, and better one that can be extruded; None where each of them would."""
    primitives = state.sketch.primitives
    frame = frame_of(primitives, bounds(primitives))
    kept = {k for k, i in enumerate(frame.rows) if keep and not set(state.sources[i]).isdisjoint(keep)}
    laid = frame.lay(primitives, kept)
    row_of = {i: k for k, i in enumerate(frame.rows)}
    given = [frame.laid(c, row_of) for c in state.sketch.constraints]
    hopeful = is_hopeful(laid)
    before: Worth | None = None
    second_best: State | None = None
    for caution in cautions:
        if not effort.spend(trying(laid)):
            break
        try:
            found = attempt(
                laid,
                given,
                state.own,
                caution,
                tolerance,
                kept,
                effort,
                close=close,
                is_solved=bool(state.freedom),
                is_extrudable=state.is_extrudable,
            )
        except (SketchError, np.linalg.LinAlgError):
            continue
        if found is None or not is_symmetric(found.primitives, frame):
            continue
        if found.profile is None:  # nothing moved
            return second_best or _lifted(found, frame, state, laid, given)
        before = before or worth(profile(laid, EXACT))
        gone = set(range(len(laid))) - {source[0] for source in found.sources if source}
        if worth(found.profile).is_worse_than(before, gone):
            continue
        if found.is_extrudable or not hopeful:
            return _lifted(found, frame, state, laid, given)
        second_best = second_best or _lifted(found, frame, state, laid, given)
    return second_best


def _lifted(
    found: Attempt, frame: Frame, state: State, laid: Sequence[Primitive], given: Sequence[Constraint]
) -> State:
    """Back to where the sketch was, in the order it was in; what did not change is exactly what it was."""
    first = {k: source[0] for k, source in enumerate(found.sources) if source}
    values = {(c.type, c.value): was.value for c, was in zip(given, state.sketch.constraints, strict=True)}

    def rank(k: int) -> tuple[int, int]:
        return (min(frame.rows[r] for r in found.sources[k]), 0) if k in first else (len(frame.rows), k)

    def of(rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({source for row in rows for source in state.sources[frame.rows[row]]}))

    order = sorted(range(len(found.primitives)), key=rank)
    number_of = {k: n for n, k in enumerate(order)}
    belief = found.belief
    after = replace(
        state.sketch,
        primitives=tuple(_put_back(found.primitives[k], first.get(k), frame, state, laid) for k in order),
        constraints=tuple(frame.lifted(c, number_of, first, values) for c in found.constraints),
    )
    sources = tuple(of(found.sources[k]) for k in order)
    warnings = [] if state.warnings else belief.warnings.copy()  # what is said of the first pass is true of the next
    if found.refused:
        refused = [frame.lifted(c, number_of, first, values) for c in found.refused]
        warnings.append(f"left out, as it contradicts others: {', '.join(words(c, sources) for c in refused)}")
    dof, freedom = belief.dof, tuple(belief.freedom[k] for k in order if k < len(belief.freedom))
    if not belief.is_fresh:
        dof, freedom = state.dof, state.freedom
    return State(
        after,
        sources,
        state.actions + tuple(replace(action, primitives=of(action.primitives)) for action in found.actions),
        state.warnings + tuple(warnings),
        dof,
        freedom if len(freedom) == len(order) else (),
        found.changed,
        found.is_extrudable,
        found.own,
    )


def _put_back(p: Primitive, row: int | None, frame: Frame, state: State, laid: Sequence[Primitive]) -> Primitive:
    if row is not None:
        was = state.sketch.primitives[frame.rows[row]]
        if replace(p, construction=laid[row].construction) == laid[row]:
            return was if p.construction == was.construction else replace(was, construction=p.construction)
    return frame.lift(row, p)


def words(constraint: Constraint, sources: Sequence[tuple[int, ...]]) -> str:
    """A constraint as a person would name it.

    >>> from sketchdnn.geometry import ConstraintType, Ref
    >>> words(Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(2))), [(0,), (1,), (2, 3)])
    'parallel (0, 2)'
    """
    numbers = [str(sources[ref.primitive][0]) for ref in constraint.refs if ref.primitive is not None]
    return f"{str(constraint.type).replace('_', ' ')} ({', '.join(numbers)})"
