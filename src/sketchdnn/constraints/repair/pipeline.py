"""The repair pipeline: no duplicates, ends that meet, and constraints that hold exactly.

A pass drops duplicates, decides which ends belong together, infers further constraints and solves them. Passes repeat
until one changes nothing, so that repairing again changes nothing either. A pass that would move something too far, or
leave the profile worse, is discarded, and a more cautious one is tried.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from sketchdnn.constraints.equation_set import Freedom
from sketchdnn.constraints.infer import MAX_PARAMETERS
from sketchdnn.constraints.solve import Solution, solve
from sketchdnn.constraints.well_constrained import drop_redundant, find_conflicts
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Constraint, Primitive, Profile, Sketch, bounds, profile

from .budget import Budget, attempt_cost, is_tangle, num_parameters
from .closing import close_profile, may_close
from .dedupe import Deduplicated, deduplicate, extent
from .infer_solve import Limits, infer_and_solve
from .joins import find_joins, noise_estimate
from .quality import EXACT, ROUNDING, Action, ProfileQuality, constraint_actions, displacement, largest_move
from .symmetry import Frame, canonical_frame, is_symmetric

# The largest move, as a share of the sketch's size.
REPAIR_TOLERANCE = 0.01
# Passes until one changes nothing: two for most sketches, the second of which finds nothing to do.
_MAX_PASSES = 5
# In a large drawing, the tolerance is at most this share of the median primitive.
_LOCAL = 0.25
# Coordinates more times larger than the sketch leave too few digits to repair it.
_MAX_DISTANCE = 1e6
# More primitives do not get every attempt.
_MAX_TOGETHER = 100
# The smallest noise, as a share of the tolerance: files keep few digits.
_MIN_NOISE = 0.01
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
    start = _State(sketch, tuple((i,) for i in range(len(sketch))), num_own=len(sketch.constraints))
    refusal = _refusal(sketch)
    if refusal:
        return _result(start, sketch, refusal)
    if num_parameters(sketch.primitives) > MAX_PARAMETERS:
        tolerance = min(tolerance, _LOCAL * median(map(extent, sketch)) / bounds(sketch).size)
    try:
        return _Repair(tolerance, keep, close, Budget()).run(start)
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


@dataclass(frozen=True, slots=True)
class _Caution:
    """How bold an attempt is, in shares of the tolerance: what is too small to matter, and how large the noise may be.

    Without `subtle`, only obvious constraints are inferred: coincident points, level lines, smooth joints.
    """

    sliver: float
    join: bool
    noise: float
    subtle: bool = True


# From the boldest to one that moves nothing and only adds constraints that hold already.
_CAUTIONS = (
    _Caution(0.5, True, 0.5),
    _Caution(1.0, True, 0.5),
    _Caution(0.5, True, 0.3, subtle=False),
    _Caution(0.0, True, 0.3, subtle=False),
    _Caution(0.0, True, 0.0),
    _Caution(0.0, False, 0.0),
)


def _cautions(primitives: Sequence[Primitive]) -> tuple[_Caution, ...]:
    """The attempts to make, in order: all, or few for a drawing so large that each takes seconds."""
    return _CAUTIONS if len(primitives) <= _MAX_TOGETHER else (_CAUTIONS[0], *_CAUTIONS[-2:])


def _seeks_profile(primitives: Sequence[Primitive]) -> bool:
    """Whether to continue until the profile can be extruded."""
    return len(primitives) <= _MAX_TOGETHER and may_close(primitives)


@dataclass(frozen=True, slots=True)
class _State:
    """A sketch between two passes. Actions and sources refer to the input's primitives.

    `freedom` is empty, and `is_extrudable` False, while unknown.
    """

    sketch: Sketch
    sources: tuple[tuple[int, ...], ...]
    actions: tuple[Action, ...] = ()
    warnings: tuple[str, ...] = ()
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    changed: bool = True
    is_extrudable: bool = False
    num_own: int = 0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The outcome of an attempt in canonical form; `sources` and `actions` refer to rows of the canonical form.

    `profile` is that before an outline was closed, None where nothing moved; `is_extrudable` that of the end.
    `rejected` are those of the sketch's own constraints that conflict with others. If `earlier_holds`, the degrees of
    freedom and the freedom are those of the state before.
    """

    primitives: list[Primitive]
    sources: list[tuple[int, ...]]
    constraints: list[Constraint]
    actions: list[Action]
    rejected: list[Constraint]
    solved: Solution
    earlier_holds: bool
    changed: bool
    profile: Profile | None
    is_extrudable: bool
    num_own: int


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair with its options and its budget."""

    tolerance: float
    keep: frozenset[int]
    close: bool
    budget: Budget

    def run(self, start: _State) -> RepairedSketch:
        """Repair a sketch of some extent."""
        sketch, budget = start.sketch, self.budget
        end = self._best_end(start)
        if end is None and not budget.is_spent and sketch.constraints:
            conflicts = find_conflicts(sketch, self.tolerance, self.keep)
            if conflicts:
                fewer = tuple(c for c in sketch.constraints if not any(c is d for d in conflicts))
                end = self._best_end(replace(start, sketch=replace(sketch, constraints=fewer), num_own=len(fewer)))
            if end is not None:
                names = ", ".join(_describe(c, start.sources) for c in conflicts)
                warning = f"left out, as it conflicts with the drawing or with others: {names}"
                end = replace(end, warnings=(warning, *end.warnings))
        if end is None:
            return _result(start, sketch, _BROKEN_OFF if budget.is_spent else _NOTHING_FOUND)
        if self.keep:
            end = replace(end, freedom=())  # counted with fixed primitives, which no file states
        end = _without_redundant(end)
        warnings = (*end.warnings, _BROKEN_OFF) if budget.is_spent else end.warnings
        return _result(end, sketch, "; ".join(dict.fromkeys(warnings)) or None)

    def _best_end(self, start: _State) -> _State | None:
        """The end of the boldest passes that move nothing too far, and preferably can be extruded."""
        seeks_profile = _seeks_profile(start.sketch.primitives)
        best: _State | None = None
        for caution in _cautions(start.sketch.primitives):
            end = self._repeat_passes(start, caution)
            if end is None or _displacement(start.sketch, end) > self.tolerance:
                continue
            if end.is_extrudable or not seeks_profile:
                return end
            best = best or end
        return best

    def _repeat_passes(self, start: _State, first: _Caution) -> _State | None:
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

    def _pass(self, state: _State, cautions: Sequence[_Caution]) -> _State | None:
        """The first attempt that does no harm, preferably one that can be extruded; None if there is none."""
        primitives = state.sketch.primitives
        frame = canonical_frame(primitives, bounds(primitives))
        keep = {k for k, i in enumerate(frame.rows) if self.keep and not self.keep.isdisjoint(state.sources[i])}
        canonical = frame.to_canonical(primitives, keep)
        row_of = {i: k for k, i in enumerate(frame.rows)}
        given = [frame.constraint_to_canonical(c, row_of) for c in state.sketch.constraints]
        seeks_profile = _seeks_profile(canonical)
        before: ProfileQuality | None = None
        second_best: _State | None = None
        for caution in cautions:
            if not self.budget.spend(attempt_cost(canonical)):
                break
            try:
                attempt = self._attempt(canonical, given, state, caution, keep)
            except _ERRORS:
                continue
            if attempt is None or not is_symmetric(attempt.primitives, frame):
                continue
            if attempt.profile is not None:  # something moved
                before = before or ProfileQuality.of(profile(canonical, EXACT))
                dropped = set(range(len(canonical))) - {source[0] for source in attempt.sources if source}
                if ProfileQuality.of(attempt.profile).is_worse_than(before, dropped):
                    continue
            after = _next_state(attempt, frame, state, canonical, given)
            if attempt.profile is None:
                return second_best or after
            if attempt.is_extrudable or not seeks_profile:
                return after
            second_best = second_best or after
        return second_best

    def _attempt(
        self,
        canonical: list[Primitive],
        given: list[Constraint],
        state: _State,
        caution: _Caution,
        keep: Collection[int],
    ) -> _Attempt | None:
        """One attempt on a sketch of size one; None where something would move too far whatever is left out."""
        tolerance = self.tolerance
        if caution.sliver:
            distinct = deduplicate(canonical, given, caution.sliver * tolerance, keep, state.num_own)
        else:
            distinct = Deduplicated(canonical, [(k,) for k in range(len(canonical))], [], given, state.num_own)
        if len(distinct.primitives) < len(canonical) and not _has_size_one(distinct.primitives, tolerance):
            return None
        own, sources = distinct.constraints, distinct.sources
        held = {k for k, source in enumerate(sources) if not set(keep).isdisjoint(source)} if keep else set()
        before = Sketch(tuple(distinct.primitives), tuple(own))
        joins = find_joins(before.primitives, own, tolerance, held) if caution.join else []
        noise, estimate = caution.noise * tolerance, noise_estimate(before.primitives, tolerance)
        if estimate is not None:
            noise = min(noise, max(estimate, _MIN_NOISE * tolerance))
        limits = Limits(noise, caution.subtle, tolerance, held, self.budget)
        is_solved = bool(state.freedom) and len(before) == len(canonical)
        solved = infer_and_solve(before, joins, limits, is_solved=is_solved)
        if solved is None:
            return None
        primitives = list(solved.sketch.primitives)
        moves = [largest_move(p, q) for p, q in zip(before, primitives, strict=True)]
        conflicting = {id(c) for c in solved.conflicting}
        redundant = {id(c) for c in solved.redundant} - {id(c) for c in own}
        unsupported = {id(c) for c in solved.unsupported}
        satisfied = [c for c in solved.sketch.constraints if id(c) not in conflicting]
        constraints = [
            c for c in satisfied if id(c) not in redundant and not (id(c) in unsupported and _has_moved(c, moves))
        ]
        from_file = {id(c) for c in own[: distinct.num_own]}
        num_own = sum(id(c) in from_file for c in constraints)
        actions = list(distinct.actions)
        if max(moves) > ROUNDING:
            actions += [a.renumber(sources) for a in constraint_actions(before, primitives, moves, satisfied)]
        is_moved = len(primitives) != len(canonical) or max(moves) > ROUNDING
        shape, is_extrudable = None, state.is_extrudable
        if is_moved or not is_extrudable:
            shape = profile(primitives, EXACT)
            is_extrudable = shape.is_extrudable
            if self.close and shape.chains:
                closed = close_profile(primitives, constraints, shape, tolerance, held)
                actions += [action.renumber(sources) for action in closed.actions]
                primitives, constraints = closed.primitives, closed.constraints
                is_extrudable = closed.profile.is_extrudable
        changed = is_moved or len(constraints) != len(given) or len(primitives) != len(canonical)
        return _Attempt(
            primitives,
            sources + [()] * (len(primitives) - len(sources)),
            constraints,
            actions,
            [c for c in own if id(c) in conflicting],
            solved,
            solved.sketch is before,
            changed or any(p.construction != q.construction for p, q in zip(primitives, canonical, strict=True)),
            shape if is_moved else None,
            is_extrudable,
            num_own,
        )


def _has_size_one(primitives: Sequence[Primitive], tolerance: float) -> bool:
    return bool(primitives) and abs(bounds(primitives).size - 1) <= 4 * tolerance


def _has_moved(constraint: Constraint, moves: Sequence[float]) -> bool:
    """Whether a primitive of a constraint has moved: one that the solver does not support may hold no longer."""
    return any(ref.primitive is not None and moves[ref.primitive] > ROUNDING for ref in constraint.refs)


def _next_state(
    attempt: _Attempt, frame: Frame, state: _State, canonical: Sequence[Primitive], given: Sequence[Constraint]
) -> _State:
    """The outcome of an attempt in the sketch's own orientation and order; unchanged primitives stay exactly equal."""
    first = {k: source[0] for k, source in enumerate(attempt.sources) if source}
    values = {(c.type, c.value): was.value for c, was in zip(given, state.sketch.constraints, strict=True)}

    def rank(k: int) -> tuple[int, int]:
        return (min(frame.rows[r] for r in attempt.sources[k]), 0) if k in first else (len(frame.rows), k)

    def input_numbers(rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({source for row in rows for source in state.sources[frame.rows[row]]}))

    def restore(p: Primitive, row: int | None) -> Primitive:
        if row is not None and replace(p, construction=canonical[row].construction) == canonical[row]:
            was = state.sketch.primitives[frame.rows[row]]
            return was if p.construction == was.construction else replace(was, construction=p.construction)
        return frame.from_canonical(row, p)

    def restore_all(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
        return tuple(frame.constraint_from_canonical(c, number_of, first, values) for c in constraints)

    order = sorted(range(len(attempt.primitives)), key=rank)
    number_of = {k: n for n, k in enumerate(order)}
    solved = attempt.solved
    primitives = tuple(restore(attempt.primitives[k], first.get(k)) for k in order)
    sources = tuple(input_numbers(attempt.sources[k]) for k in order)
    warnings = [] if state.warnings or not solved.warning else [solved.warning]  # once, not for each pass
    if attempt.rejected:
        names = ", ".join(_describe(c, sources) for c in restore_all(attempt.rejected))
        warnings.append(f"left out, as it conflicts with others: {names}")
    dof, freedom = solved.dof, tuple(solved.freedom[k] for k in order if k < len(solved.freedom))
    if attempt.earlier_holds:
        dof, freedom = state.dof, state.freedom
    return _State(
        replace(state.sketch, primitives=primitives, constraints=restore_all(attempt.constraints)),
        sources,
        state.actions + tuple(replace(a, primitives=input_numbers(a.primitives)) for a in attempt.actions),
        state.warnings + tuple(warnings),
        dof,
        freedom if len(freedom) == len(order) else (),
        attempt.changed,
        attempt.is_extrudable,
        attempt.num_own,
    )


def _describe(constraint: Constraint, sources: Sequence[tuple[int, ...]]) -> str:
    """The type of a constraint and the input numbers of its primitives.

    >>> from sketchdnn.geometry import ConstraintType, Ref
    >>> _describe(Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(2))), [(0,), (1,), (2, 3)])
    'parallel (0, 2)'
    """
    numbers = [str(sources[ref.primitive][0]) for ref in constraint.refs if ref.primitive is not None]
    return f"{str(constraint.type).replace('_', ' ')} ({', '.join(numbers)})"


def _without_redundant(state: _State) -> _State:
    """Drop inferred constraints that follow from others: a later pass may imply those of an earlier one."""
    try:
        if not state.freedom:
            solution = solve(state.sketch)
            state = replace(state, dof=solution.dof, freedom=solution.freedom)
        constraints = drop_redundant(state.sketch, state.num_own, state.dof)
    except _ERRORS:
        return state
    if constraints is state.sketch.constraints:
        return state
    return replace(state, sketch=replace(state.sketch, constraints=constraints), freedom=())


def _displacement(sketch: Sketch, state: _State) -> float:
    """The largest move, as a share of the size."""
    if state.sketch.primitives == sketch.primitives:
        return 0.0
    moves = [
        displacement([sketch.primitives[i] for i in sources], p)
        for sources, p in zip(state.sources, state.sketch, strict=True)
        if sources
    ]
    return max(moves, default=0.0) / bounds(sketch).size


def _result(state: _State, sketch: Sketch, warning: str | None) -> RepairedSketch:
    dof, freedom = state.dof, state.freedom
    if not freedom:
        try:
            solution = solve(state.sketch)
            dof, freedom = solution.dof, solution.freedom
        except _ERRORS:
            pass
    moved = _displacement(sketch, state) if len(sketch) and bounds(sketch).size > 0 else 0.0
    return RepairedSketch(state.sketch, state.actions, state.sources, dof, freedom, moved, warning, state.num_own)
