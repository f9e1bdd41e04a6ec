"""From what was drawn to what was meant: nothing twice, ends that meet, constraints that hold exactly.

A repair is a pass over the sketch that drops what is superfluous, decides which ends belong together, infers what else
is meant and solves for it. Passes repeat until one changes nothing, so that repairing again changes nothing either. A
pass that would move something too far, or leave the profile worse, is taken back, and a more cautious one is tried.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from sketchdnn.constraints.contrary import contrary
from sketchdnn.constraints.freedom import Freedom
from sketchdnn.constraints.infer import MOST_NUMBERS
from sketchdnn.constraints.irredundant import irredundant
from sketchdnn.constraints.solve import solve
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Sketch, bounds

from .actions import Action
from .attempt import Caution
from .effort import Effort, free_numbers, is_tangle
from .passes import State, advance, cautions_for, is_hopeful, words
from .tidy import extent
from .worth import displacement

# How far anything may move, as a share of the sketch's size.
REPAIR_TOLERANCE = 0.01
# Passes until one changes nothing: two for most sketches, the second of which finds nothing to do.
_MOST_PASSES = 5
# In a large drawing the tolerance is at most this share of the median primitive, which may be smaller than it.
_LOCAL = 0.25
# Coordinates this many times larger than the sketch leave too few digits to repair it.
_FARTHEST = 1e6
_NOTHING_FOUND = "no repair was found that leaves everything in its place"
_BROKEN_OFF = "it is so large, and so much in it meets, that its repair was broken off"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A sketch that was repaired, with the constraints that hold in it exactly.

    Primitive i came from the input's `sources[i]`, none for a line that was added. `displacement` is the largest move
    as a share of the size, `dof` what is still free, `freedom` that of each primitive. With a `warning` something was
    not done, or, if there are no actions, nothing was. The first `own` constraints are those that the input had.
    """

    sketch: Sketch
    actions: tuple[Action, ...] = ()
    sources: tuple[tuple[int, ...], ...] = ()
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    displacement: float = 0.0
    warning: str | None = None
    own: int = 0


def repair(
    sketch: Sketch, tolerance: float = REPAIR_TOLERANCE, *, keep: Collection[int] = (), close: bool = True
) -> Repaired:
    """Repair a sketch, moving nothing by more than `tolerance`, a share of its size.

    Primitives whose numbers are in `keep` come out as they are, and others go to them. Constraints that the sketch
    has already stay and take part, except those that contradict others, which the warning names. With `close`, an open
    outline gets the line it lacks, and strays beside closed outlines become construction; no place moves for that.

    >>> from sketchdnn.geometry import Line
    >>> corners = [(0, 0), (40, 0.1), (40.1, 30), (0, 30)]
    >>> gaps = [(40, 0), (40, 30.1), (0.1, 30), (0, 0.1)]
    >>> done = repair(Sketch(tuple(Line(a, b) for a, b in zip(corners, gaps))))
    >>> sorted({str(action.kind) for action in done.actions}), done.dof
    (['snap'], 4)
    """
    if not 0 < tolerance <= 0.03:
        raise GeometryError(f"a tolerance for repairs is a share of the size, up to 0.03, not {tolerance}")
    kept = frozenset(keep)
    if not all(0 <= i < len(sketch) for i in kept):
        raise GeometryError(f"there is no primitive {max(kept)} to keep")
    start = State(sketch, tuple((i,) for i in range(len(sketch))), own=len(sketch.constraints))
    refusal = _refusal(sketch)
    if refusal:
        return _finished(start, sketch, refusal)
    if is_tangle(sketch):
        return _finished(start, sketch, _BROKEN_OFF)
    try:
        return _repair(start, tolerance, kept, close=close)
    except GeometryError as error:
        return _finished(start, sketch, f"something in it is too small to be worked with ({error})")


def _repair(start: State, tolerance: float, kept: frozenset[int], *, close: bool) -> Repaired:
    """`repair` of a sketch of some extent."""
    sketch = start.sketch
    if free_numbers(sketch.primitives) > MOST_NUMBERS:
        tolerance = min(tolerance, _LOCAL * median(map(extent, sketch)) / bounds(sketch).size)
    effort = Effort()
    done = _repaired(start, tolerance, kept, effort, close=close)
    if done is None and not effort.is_spent and sketch.constraints:
        excluded = contrary(sketch, tolerance, kept)
        if excluded:
            fewer = tuple(c for c in sketch.constraints if not any(c is d for d in excluded))
            without = replace(start, sketch=replace(sketch, constraints=fewer), own=len(fewer))
            done = _repaired(without, tolerance, kept, effort, close=close)
            if done is not None:
                named = ", ".join(words(c, start.sources) for c in excluded)
                done = replace(
                    done, warnings=(f"left out, as it contradicts what is drawn or said: {named}", *done.warnings)
                )
    if done is None:
        return _finished(start, sketch, _BROKEN_OFF if effort.is_spent else _NOTHING_FOUND)
    if kept:
        done = replace(done, freedom=())  # counted with them fixed, which no file will say
    done = _without_redundant(done)
    warnings = (*done.warnings, _BROKEN_OFF) if effort.is_spent else done.warnings
    return _finished(done, sketch, "; ".join(dict.fromkeys(warnings)) or None)


def _repaired(start: State, tolerance: float, keep: Collection[int], effort: Effort, *, close: bool) -> State | None:
    """Where the boldest passes lead to that move nothing too far, and better to something that can be extruded."""
    hopeful = is_hopeful(start.sketch.primitives)
    best: State | None = None
    for caution in cautions_for(start.sketch.primitives):
        end = _settled(start, caution, tolerance, keep, effort, close=close)
        if end is None or _displacement(start.sketch, end) > tolerance:
            continue
        if end.is_extrudable or not hopeful:
            return end
        best = best or end
    return best


def _refusal(sketch: Sketch) -> str | None:
    if not len(sketch):
        return "there is nothing in it"
    box = bounds(sketch)
    if box.size <= 0:
        return "it has no extent"
    if max(map(abs, (*box.low, *box.high))) > _FARTHEST * box.size:
        return "it is so far from the origin that too few digits are left for it"
    return None


def _settled(
    start: State, first: Caution, tolerance: float, keep: Collection[int], effort: Effort, *, close: bool
) -> State | None:
    """Where passes lead to, the first of which is of a certain caution; None where they do not come to rest."""
    before, after = start, advance(start, (first,), tolerance, keep, effort, close=close)
    for _ in range(_MOST_PASSES):
        if after is None or not after.changed:
            break
        cautions = cautions_for(after.sketch.primitives)
        before, after = after, advance(after, cautions, tolerance, keep, effort, close=close)
    else:
        return None
    if after is None:
        return None if before is start else before
    return replace(after, sketch=before.sketch)  # but for rounding it is the same: exactly what was found to be at rest


def _without_redundant(state: State) -> State:
    """Without inferred constraints that follow from others. Passes find them one by one: a later one may say more."""
    try:
        if not state.freedom:
            solution = solve(state.sketch)
            state = replace(state, dof=solution.dof, freedom=solution.freedom)
        constraints = irredundant(state.sketch, state.own, state.dof)
    except (SketchError, np.linalg.LinAlgError):
        return state
    if constraints is state.sketch.constraints:
        return state
    return replace(state, sketch=replace(state.sketch, constraints=constraints), freedom=())


def _displacement(sketch: Sketch, state: State) -> float:
    """The largest move, as a share of the size."""
    if state.sketch.primitives == sketch.primitives:
        return 0.0
    return (
        max(
            (
                displacement([sketch.primitives[i] for i in sources], p)
                for sources, p in zip(state.sources, state.sketch, strict=True)
                if sources
            ),
            default=0.0,
        )
        / bounds(sketch).size
    )


def _finished(state: State, sketch: Sketch, warning: str | None) -> Repaired:
    dof, freedom = state.dof, state.freedom
    if not freedom:
        try:
            solution = solve(state.sketch, fixed=())
            dof, freedom = solution.dof, solution.freedom
        except (SketchError, np.linalg.LinAlgError):
            pass
    moved = _displacement(sketch, state) if len(sketch) and bounds(sketch).size > 0 else 0.0
    return Repaired(state.sketch, state.actions, state.sources, dof, freedom, moved, warning, state.own)
