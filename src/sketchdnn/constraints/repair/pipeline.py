"""The repair pipeline: no duplicates, ends that meet, and constraints that hold exactly.

A pass drops duplicates, decides which ends belong together, infers further constraints and solves them. Passes repeat
until one changes nothing, so that repairing again changes nothing either. A pass that would move something too far, or
leave the profile worse, is discarded, and a more cautious one is tried.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import is_
from statistics import median
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints.equation_set import Freedom
from sketchdnn.constraints.infer import MAX_PARAMETERS
from sketchdnn.constraints.solve import solve
from sketchdnn.constraints.variables import Constraints, Primitives
from sketchdnn.constraints.well_constrained import drop_redundant, find_conflicts
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Constraint, Sketch, bounds, profile

from .dedupe import Deduplicated, deduplicate, extent
from .infer_solve import Budget, Limits, attempt_cost, infer_and_solve, is_tangle, num_parameters
from .intent import Intent
from .joins import close_profile, may_close
from .quality import EXACT, ROUNDING, Action, ProfileQuality, constraint_actions, displacement, largest_move
from .states import MAX_TOGETHER, Attempt, Basis, Canonical, Outcome, State, describe, reorder
from .symmetry import is_symmetric

# The largest move, as a share of the sketch's size.
REPAIR_TOLERANCE = 0.01
# Passes until one changes nothing: two for most sketches, the second of which finds nothing to do.
_MAX_PASSES = 5
# In a large drawing, the tolerance is at most this share of the median primitive.
_LOCAL = 0.25
# Coordinates more times larger than the sketch leave too few digits to repair it.
_MAX_DISTANCE = 1e6
_NOTHING_FOUND = "no repair was found that leaves everything in its place"
_BROKEN_OFF = "it is so large, and so much in it meets, that its repair was broken off"
_ERRORS = (SketchError, np.linalg.LinAlgError)


@dataclass(frozen=True, slots=True)
class RepairedSketch:
    """A repaired sketch with the constraints that hold in it exactly.

    Attributes:
        sketch: The sketch; its first `num_own` constraints are those of the input.
        actions: The changes.
        sources: The input primitives that each primitive came from; none for a line that was added.
        dof: The degrees of freedom.
        freedom: The freedom of each primitive.
        displacement: The largest move, as a share of the size.
        warning: What was not done; without actions, nothing was.
    """

    sketch: Sketch
    actions: tuple[Action, ...] = ()
    sources: tuple[tuple[int, ...], ...] = ()
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    displacement: float = 0.0
    warning: str | None = None
    num_own: int = 0


def repair(
    sketch: Sketch, tolerance: float = REPAIR_TOLERANCE, *, keep: Collection[int] = (), close: bool = True
) -> RepairedSketch:
    """Repair a sketch.

    Args:
        sketch: The sketch. Its constraints stay and take part, except those that conflict with others.
        tolerance: The largest move, as a share of the size.
        keep: Indices of primitives that stay as they are; others move to them.
        close: Add the line that an open outline lacks, and make open curves beside closed outlines construction.

    Returns:
        The result.

    Raises:
        GeometryError: If the tolerance is out of range, or there is no such primitive to keep.

    >>> from sketchdnn.geometry import Line
    >>> corners = [(0, 0), (40, 0.1), (40.1, 30), (0, 30)]
    >>> gaps = [(40, 0), (40, 30.1), (0.1, 30), (0, 0.1)]
    >>> result = repair(Sketch(tuple(Line(a, b) for a, b in zip(corners, gaps))))
    >>> sorted({str(action.kind) for action in result.actions}), result.dof
    (['snap'], 4)
    """
    if not 0 < tolerance <= 0.03:
        raise GeometryError(f"the tolerance of a repair is a share of the size up to 0.03, not {tolerance}")
    keep = frozenset(keep)
    if not all(0 <= i < len(sketch) for i in keep):
        raise GeometryError(f"there is no primitive {max(keep)} to keep")
    start = State(sketch, tuple((i,) for i in range(len(sketch))), num_own=len(sketch.constraints))
    refusal = _refusal(sketch)
    if refusal:
        return _result(start, sketch, refusal)
    if num_parameters(sketch.primitives) > MAX_PARAMETERS:
        tolerance = min(tolerance, _LOCAL * median(map(extent, sketch)) / bounds(sketch).size)
    try:
        return _Repair(tolerance, keep, close, Budget(), {}).run(start)
    except GeometryError as error:
        return _result(start, sketch, f"something in it is too small to be worked with ({error})")


def _refusal(sketch: Sketch) -> str | None:
    if not len(sketch):
        return "there is nothing in it"
    box = bounds(sketch)
    if box.size <= 0:
        return "it has no extent"
    if max(map(abs, (*box.low, *box.high))) > _MAX_DISTANCE * box.size:
        return "it is so far from the origin that too few digits are left for it"
    return _BROKEN_OFF if is_tangle(sketch) else None


class _Caution(NamedTuple):
    """How bold an attempt is, in shares of the tolerance: what is too small to matter, and how large the noise may be.

    Without `subtle`, only obvious constraints are inferred: coincident points, level lines, smooth joints. With
    `intent`, what is nearly mirror symmetric becomes so.
    """

    sliver: float
    join: bool
    noise: float
    subtle: bool = True
    intent: bool = False


# From the boldest to one that moves nothing and only adds constraints that hold already.
_CAUTIONS = (
    _Caution(0.5, True, 0.5, intent=True),
    _Caution(0.5, True, 0.5),
    _Caution(1.0, True, 0.5),
    _Caution(0.5, True, 0.3, subtle=False),
    _Caution(0.0, True, 0.3, subtle=False),
    _Caution(0.0, True, 0.0),
    _Caution(0.0, False, 0.0),
)


def _cautions(primitives: Primitives) -> tuple[_Caution, ...]:
    """The attempts to make, in order: all, or few for a drawing so large that each takes seconds."""
    return _CAUTIONS if len(primitives) <= MAX_TOGETHER else (_CAUTIONS[1], *_CAUTIONS[-2:])


def _seeks_profile(primitives: Primitives) -> bool:
    """Whether to continue until the profile can be extruded."""
    return len(primitives) <= MAX_TOGETHER and may_close(primitives)


class _Repair(NamedTuple):
    """A repair with its options, its budget, and the states from which attempts were made, by their `id()`."""

    tolerance: float
    keep: frozenset[int]
    close: bool
    budget: Budget
    states: dict[int, Canonical]

    def run(self, start: State) -> RepairedSketch:
        """Repair a sketch of some extent."""
        sketch, budget = start.sketch, self.budget
        end = self._best_end(start)
        if end is None and not budget.is_spent and (conflicts := find_conflicts(sketch, self.tolerance, self.keep)):
            fewer = tuple(c for c in sketch.constraints if not any(c is d for d in conflicts))
            end = self._best_end(replace(start, sketch=replace(sketch, constraints=fewer), num_own=len(fewer)))
            if end is not None:
                names = ", ".join(describe(c, start.sources) for c in conflicts)
                warning = f"left out, as it conflicts with the drawing or with others: {names}"
                end = replace(end, warnings=(warning, *end.warnings))
        if end is None:
            return _result(start, sketch, _BROKEN_OFF if budget.is_spent else _NOTHING_FOUND)
        if self.keep:
            end = replace(end, find_freedom=None)  # counted with fixed primitives, which no file states
        end = _without_redundant(end)
        warnings = (*end.warnings, _BROKEN_OFF) if budget.is_spent else end.warnings
        return _result(end, sketch, "; ".join(dict.fromkeys(warnings)) or None)

    def _best_end(self, start: State) -> State | None:
        """The end of the boldest passes that move nothing too far, and preferably can be extruded."""
        seeks_profile = _seeks_profile(start.sketch.primitives)
        best: State | None = None
        for caution in _cautions(start.sketch.primitives):
            end = self._repeat_passes(start, caution)
            if end is None or _displacement(start.sketch, end) > self.tolerance:
                continue
            if end.is_extrudable or not seeks_profile:
                return end
            best = best or end
        return best

    def _repeat_passes(self, start: State, first: _Caution) -> State | None:
        """The end of passes, the first with a given caution; None where they do not come to rest."""
        before, after = start, self._pass(start, (first,))
        for _ in range(_MAX_PASSES):
            if after is None or not after.changed:
                break
            before, after = after, self._pass(after, _cautions(after.sketch.primitives))
        else:
            return None
        if after is None:
            return None if before is start else before
        return replace(after, sketch=before.sketch)  # the same except for rounding, and known to be at rest

    def _pass(self, state: State, cautions: Sequence[_Caution]) -> State | None:
        """The first attempt that does no harm, preferably one that can be extruded; None if there is none."""
        canonical = self.states.get(id(state)) or Canonical(state, self.keep)
        self.states[id(state)] = canonical
        seeks_profile = _seeks_profile(canonical.primitives)
        second_best: State | None = None
        for caution in cautions:
            if not self.budget.spend(attempt_cost(canonical.primitives)):
                break
            try:
                outcome = self._outcome(canonical, caution)
            except _ERRORS:
                continue
            if outcome is None:
                continue
            if not outcome.has_moved:
                return second_best or outcome.after
            if outcome.after.is_extrudable or not seeks_profile:
                return outcome.after
            second_best = second_best or outcome.after
        return second_best

    def _outcome(self, canonical: Canonical, caution: _Caution) -> Outcome | None:
        """The outcome of an attempt; one that differs from an earlier one in nothing is not repeated."""
        basis = self._basis(canonical, caution.sliver)
        if basis is None:
            return None
        joins = basis.joins if caution.join else []
        intent = basis.intent if caution.intent else None
        noise = min(caution.noise * self.tolerance, basis.noise)
        key = (id(basis), bool(joins), noise, caution.subtle, intent is None)
        outcome, cost = canonical.outcomes.get(key, (None, math.inf))
        if cost < self.budget.left:
            self.budget.left -= cost
            return outcome
        left = self.budget.left
        limits = Limits(noise, caution.subtle, self.tolerance, basis.held, self.budget, basis.inferred)
        try:
            outcome = self._judge(canonical, self._attempt(canonical, basis, joins, limits, intent))
        except _ERRORS:
            outcome = None
        if outcome is not None and outcome.after.changed:  # equal states are one object, with the same further passes
            known = [other for other, _ in canonical.outcomes.values() if other is not None]
            outcome = next((other for other in known if other.equals(outcome)), outcome)
        canonical.outcomes[key] = outcome, left - self.budget.left
        return outcome

    def _basis(self, canonical: Canonical, sliver: float) -> Basis | None:
        """What attempts begin with; None where too little would be left."""
        if sliver in canonical.bases:
            return canonical.bases[sliver]
        drawn, state, tolerance = canonical.primitives, canonical.state, self.tolerance
        distinct = Deduplicated([*drawn], [(k,) for k in range(len(drawn))], [], canonical.given, state.num_own)
        if sliver:
            noise = canonical.drawn_noise(tolerance)
            distinct = deduplicate(drawn, canonical.given, sliver * tolerance, canonical.keep, state.num_own, noise)
        num_left = len(distinct.sources)
        if num_left < len(drawn) and (not num_left or abs(bounds(distinct.primitives).size - 1) > 4 * tolerance):
            return canonical.bases.setdefault(sliver, None)
        same = next((b for b in canonical.bases.values() if b is not None and b.distinct == distinct), None)
        basis = same or Basis(distinct, canonical, tolerance, canonical.drawn_noise(tolerance))
        return canonical.bases.setdefault(sliver, basis)

    def _judge(self, canonical: Canonical, attempt: Attempt | None) -> Outcome | None:
        """The outcome of an attempt; None where it does harm."""
        if attempt is None or not is_symmetric(attempt.state.sketch.primitives, canonical.frame):
            return None
        if attempt.profile is not None:  # something moved
            dropped = set(range(len(canonical.primitives))) - {s[0] for s in attempt.state.sources if s}
            if ProfileQuality.of(attempt.profile).is_worse_than(ProfileQuality.of(canonical.profile), dropped):
                return None
        return Outcome(canonical.restore(attempt), attempt.profile is not None)

    def _attempt(
        self, canonical: Canonical, basis: Basis, joins: Constraints, limits: Limits, intent: Intent | None
    ) -> Attempt | None:
        """One attempt on a sketch of size one; None where something would move too far whatever is left out."""
        tolerance, state, drawn = self.tolerance, canonical.state, canonical.primitives
        distinct, before, held = basis.distinct, basis.before, basis.held
        own, sources = before.constraints, distinct.sources
        num_left = len(sources)
        is_solved = state.find_freedom is not None and num_left == len(drawn)
        solved = infer_and_solve(before, joins, limits, is_solved=is_solved, intent=intent)
        if solved is None:
            return None
        dof, freedom = solved.dof, solved.find_freedom
        if solved.sketch is before:  # the earlier solution holds
            dof, freedom = state.dof, state.find_freedom and partial(reorder, state.find_freedom, canonical.frame.rows)
        primitives = list(solved.sketch.primitives)
        moves = [largest_move(p, q) for p, q in zip(before, primitives, strict=True)]
        some = (solved.conflicting, solved.redundant, solved.unsupported)
        conflicting, redundant, unsupported = ({id(c) for c in constraints} for constraints in some)
        satisfied = [c for c in solved.sketch.constraints if id(c) not in conflicting]
        own_ids = {id(c) for c in own}

        def is_kept(c: Constraint) -> bool:
            """Whether it is needed; one that the solver does not support may hold no longer where something moved."""
            has_moved = any(ref.primitive is not None and moves[ref.primitive] > ROUNDING for ref in c.refs)
            return (id(c) in own_ids or id(c) not in redundant) and not (id(c) in unsupported and has_moved)

        constraints = [c for c in satisfied if is_kept(c)]
        from_file = {id(c) for c in own[: distinct.num_own]}
        num_own = sum(id(c) in from_file for c in constraints)
        is_moved = len(primitives) != len(drawn) or max(moves) > ROUNDING
        actions = list(distinct.actions)
        if max(moves) > ROUNDING:
            actions += [a.renumber(sources) for a in constraint_actions(before, primitives, moves, satisfied)]
        shape, is_extrudable = None, state.is_extrudable
        if is_moved or not is_extrudable:
            is_same = len(primitives) == len(drawn) and all(map(is_, primitives, drawn))
            shape = canonical.profile if is_same else profile(primitives, EXACT)
            is_extrudable = shape.is_extrudable
            if self.close and shape.chains:
                closed = close_profile(primitives, constraints, shape, tolerance, held)
                actions += [action.renumber(sources) for action in closed.actions]
                primitives, constraints = closed.primitives, closed.constraints
                is_extrudable = closed.profile.is_extrudable
        freedom = freedom if len(primitives) == num_left else None  # a line was added
        construction = [p.construction for p in primitives] != [p.construction for p in drawn]
        changed = is_moved or construction or len(constraints) != len(canonical.given)
        sketch, warnings = Sketch(tuple(primitives), tuple(constraints)), (solved.warning,) if solved.warning else ()
        all_sources = (*sources, *[()] * (len(primitives) - num_left))
        after = State(sketch, all_sources, tuple(actions), warnings, dof, freedom, changed, is_extrudable, num_own)
        return Attempt(after, [c for c in own if id(c) in conflicting], shape if is_moved else None)


def _without_redundant(state: State) -> State:
    """Drop inferred constraints that follow from others: a later pass may imply those of an earlier one."""
    try:
        state = _with_freedom(state)
        constraints, solution = drop_redundant(state.sketch, state.num_own, state.dof)
    except _ERRORS:
        return state
    if solution is None:
        return state
    sketch = replace(state.sketch, constraints=constraints)
    return replace(state, sketch=sketch, dof=solution.dof, find_freedom=solution.find_freedom)


def _with_freedom(state: State) -> State:
    """The state with its degrees of freedom and the freedom of each primitive."""
    if state.find_freedom is not None:
        return state
    solution = solve(state.sketch)
    return replace(state, dof=solution.dof, find_freedom=solution.find_freedom)


def _displacement(sketch: Sketch, state: State) -> float:
    """The largest move, as a share of the size."""
    if state.sketch.primitives == sketch.primitives:
        return 0.0
    both = [(sources, p) for sources, p in zip(state.sources, state.sketch, strict=True) if sources]
    moves = [displacement([sketch.primitives[i] for i in sources], p) for sources, p in both]
    return max(moves, default=0.0) / bounds(sketch).size


def _result(state: State, sketch: Sketch, warning: str | None) -> RepairedSketch:
    freedom: tuple[Freedom, ...] = ()
    with suppress(*_ERRORS):
        state = _with_freedom(state)
        freedom = state.find_freedom() if state.find_freedom else ()
    moved = _displacement(sketch, state) if len(sketch) and bounds(sketch).size > 0 else 0.0
    return RepairedSketch(state.sketch, state.actions, state.sources, state.dof, freedom, moved, warning, state.num_own)
