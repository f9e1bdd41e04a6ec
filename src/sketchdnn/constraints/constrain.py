"""Constrain a sketch: keep its constraints, infer those it lacks, and move it so that all of them hold.

A sketch too large to be examined as a whole still gets coincident, concentric, horizontal and vertical constraints:
they merge variables and need no equation. Others are kept where few equations are connected.

In FreeCAD and Onshape the origin is where a designer starts, so a point drawn there is meant to be there. Generated
sketches are centered afterwards and have no such origin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import MM_PER_UNIT, Constraint, ConstraintType, Part, Ref, Sketch, bounds

from .equation_set import MAX_BLOCK, Freedom, components, equation_set
from .infer import TOLERANCE, infer, infer_level, is_large, renumber, skipped_message
from .repair import REPAIR_TOLERANCE, Action, RepairedSketch, repair
from .rounding import RoundOptions, RoundResult, round_dimensions
from .solve import Solution, solve
from .variables import Constraints, variables_of
from .well_constrained import drop_redundant, find_conflicts, missing_dimensions

# The largest tolerance, as a share of the size.
MAX_TOLERANCE = 0.03
# How far things may move for the constraints of a file, as a share of the size.
_MAX_MOVE = 0.1
# A move that is rounding.
_ROUNDING = 1e-9
# A constraint with a smaller residual, as a share of the size, holds as it is drawn.
_AS_DRAWN = 1e-6
# Distances that agree in so many digits, as a share of the size, are the same.
_DIGITS = 9
_ONLY_LEVEL = "coincident, concentric, horizontal and vertical constraints were inferred in all of it"


@dataclass(frozen=True, slots=True)
class ConstrainOptions:
    """How to constrain a sketch.

    Attributes:
        tolerance: How far off things may be drawn, as a share of the size; by default that of `repair`, or of `infer`.
        tolerance_mm: The tolerance as a length in millimeters instead.
        repair: Close gaps and drop duplicates too.
        close: With `repair`: add the line that an open outline lacks.
        keep_redundant: Without `repair`: keep inferred constraints that follow from the others.
        dimensions: Add dimensions until nothing is free to move.
        origin: Put points within half the tolerance of the origin or an axis there.
        rounding: Round the free dimensions.
    """

    tolerance: float | None = None
    tolerance_mm: float | None = None
    repair: bool = True
    close: bool = False
    keep_redundant: bool = False
    dimensions: bool = False
    origin: bool = False
    rounding: RoundOptions | None = None

    def tolerance_of(self, sketch: Sketch) -> float:
        """The tolerance for a sketch, as a share of its size."""
        if self.tolerance_mm is None or not len(sketch):
            return self.tolerance or (REPAIR_TOLERANCE if self.repair else TOLERANCE)
        size = bounds(sketch).size * MM_PER_UNIT[sketch.units or "mm"]
        share = self.tolerance_mm / size if size > 0 else 0.0
        if not 0 < share <= MAX_TOLERANCE:
            raise GeometryError(
                f"a tolerance of {self.tolerance_mm:g} mm is {share:.2g} times the size of the sketch, {size:.4g} mm; "
                f"at most {MAX_TOLERANCE:.0%} makes sense"
            )
        return share


@dataclass(frozen=True, slots=True)
class ConstrainResult:
    """The constrained sketch. With a warning and no new constraints, it is the input.

    Attributes:
        sketch: The sketch with its constraints; the first `num_own` are those that it had.
        dof: The degrees of freedom.
        freedom: The freedom of each primitive.
        displacement: The largest move, as a share of the size.
        actions: The actions of the repair.
        redundant: Constraints that follow from others.
        lost: Constraints of the input that conflict with others, or whose primitives moved or are gone.
        unsupported: Constraints that the solver has no equation for.
        warning: Why something was not done.
        skipped: What was not looked for in a very large sketch.
        rounding: What was rounded; its moves are counted there.
        sources: The input primitives that each primitive came from; none for a line that was added.
    """

    sketch: Sketch
    dof: int = 0
    freedom: tuple[Freedom, ...] = ()
    displacement: float = 0.0
    actions: tuple[Action, ...] = ()
    redundant: tuple[Constraint, ...] = ()
    lost: tuple[Constraint, ...] = ()
    unsupported: tuple[Constraint, ...] = ()
    warning: str | None = None
    skipped: str | None = None
    num_own: int = 0
    rounding: RoundResult | None = None
    sources: tuple[tuple[int, ...], ...] = ()

    @property
    def fully_constrained(self) -> bool:
        """Whether nothing is free to move, as far as is known: each constraint has an equation."""
        return len(self.sketch) > 0 and self.dof == 0 and not self.unsupported


def constrain(sketch: Sketch, options: ConstrainOptions | None = None) -> ConstrainResult:
    """Constrain a sketch, moving it as little as possible.

    Constraints of the sketch that conflict with each other, or with the drawing, are dropped where nothing else works.
    """
    options = options or ConstrainOptions()
    try:
        tolerance = options.tolerance_of(sketch)
        result = (_repair if options.repair else _infer)(sketch, tolerance, options)
        if not result.warning or result.sketch != sketch:
            if options.origin:
                max_move = max(tolerance - result.displacement, _ROUNDING) if options.repair else tolerance
                result = _snap_to_origin(result, min(tolerance / 2, max_move), max_move)
            if options.rounding:
                rounding = round_dimensions(result.sketch, options.rounding)
                result = replace(result, sketch=rounding.sketch, rounding=rounding)
            if options.dimensions:
                constraints = (*result.sketch.constraints, *missing_dimensions(result.sketch))
                result = replace(result, sketch=replace(result.sketch, constraints=constraints))
        return with_freedom(result)
    except (SketchError, np.linalg.LinAlgError) as error:
        return ConstrainResult(sketch, freedom=(Freedom.FREE,) * len(sketch), warning=str(error))


def with_freedom(result: ConstrainResult) -> ConstrainResult:
    """The result with its degrees of freedom, redundant and unsupported constraints, from its sketch."""
    final = solve(result.sketch)
    unsupported = (*final.unsupported, *final.skipped)
    return replace(result, dof=final.dof, freedom=final.freedom, redundant=final.redundant, unsupported=unsupported)


def _repair(sketch: Sketch, tolerance: float, options: ConstrainOptions) -> ConstrainResult:
    repaired = repair(sketch, tolerance, close=options.close)
    shared = {name: getattr(repaired, name) for name in ("displacement", "actions", "warning", "num_own", "sources")}
    result = ConstrainResult(repaired.sketch, lost=_lost(sketch, repaired), **shared)
    return _add_level(result, tolerance) if is_large(repaired.sketch) else result


def _add_level(result: ConstrainResult, tolerance: float) -> ConstrainResult:
    """Add the coincident, concentric, horizontal and vertical constraints that a large repaired sketch lacks.

    Where the tolerance leads to no solution, only those that hold as drawn are added.
    """
    sketch, own = result.sketch, result.sketch.constraints
    skipped = replace(result, skipped=_join_sentences(result.warning, _ONLY_LEVEL), warning=None)
    max_move = max(tolerance - result.displacement, _ROUNDING)
    for within in (tolerance / 2, _AS_DRAWN):
        inferred = infer_level(sketch, within, own)
        if not inferred:
            continue
        solution = solve(sketch, (*own, *inferred), max_move=max_move)
        if solution.warning is None:
            surplus = {id(c) for c in (*solution.conflicting, *solution.redundant)}
            constraints = (*own, *(c for c in inferred if id(c) not in surplus))
            return _with_solution(skipped, solution, constraints)
    return skipped if own else result


def _with_solution(result: ConstrainResult, solution: Solution, constraints: tuple[Constraint, ...]) -> ConstrainResult:
    """The result after a further solution; inferred constraints that follow from the others are dropped."""
    solved = replace(solution.sketch, constraints=constraints)
    solved = replace(solved, constraints=drop_redundant(solved, result.num_own, solution.dof).constraints)
    return replace(result, sketch=solved, displacement=result.displacement + solution.displacement)


def _join_sentences(*sentences: str | None) -> str | None:
    return "; ".join(dict.fromkeys(sentence for sentence in sentences if sentence)) or None


def _lost(sketch: Sketch, repaired: RepairedSketch) -> tuple[Constraint, ...]:
    """The constraints that a repair lost. Those of merged primitives are left out: their ends are others."""
    number = {i: k for k, sources in enumerate(repaired.sources) for i in sources}
    merged = {i for sources in repaired.sources if len(sources) > 1 for i in sources}
    present = {_key(c, c.refs) for c in repaired.sketch.constraints}

    def is_lost(c: Constraint) -> bool:
        own = {ref.primitive for ref in c.refs if ref.primitive is not None}
        is_gone = not own <= number.keys() or _key(c, renumber(c, number).refs) not in present
        return is_gone and merged.isdisjoint(own)

    return tuple(c for c in sketch.constraints if is_lost(c))


def _key(constraint: Constraint, refs: tuple[Ref, ...]) -> tuple[object, ...]:
    """What identifies a constraint; its value to within rounding."""
    value = None if constraint.value is None else f"{constraint.value:.9g}"
    return (constraint.type, refs, value, constraint.name)


def _infer(sketch: Sketch, tolerance: float, options: ConstrainOptions) -> ConstrainResult:
    result = _infer_and_solve(sketch, sketch.constraints, tolerance, options.keep_redundant)
    if result.warning and sketch.constraints:
        conflicts = find_conflicts(sketch, _MAX_MOVE)
        given = tuple(c for c in sketch.constraints if not any(c is d for d in conflicts))
        again = _infer_and_solve(sketch, given, tolerance, options.keep_redundant) if conflicts else result
        if not again.warning:
            return replace(again, lost=(*conflicts, *again.lost))
    return result


def _infer_and_solve(sketch: Sketch, given: Constraints, tolerance: float, keep_redundant: bool) -> ConstrainResult:
    inferred, left_out = _solvable(sketch, given, infer(sketch, tolerance, given=given))
    solution = solve(sketch, (*given, *inferred), max_move=_MAX_MOVE)
    if solution.warning:
        return ConstrainResult(sketch, warning=solution.warning)
    dropped = {id(c) for c in solution.conflicting}
    if not keep_redundant:
        dropped |= {id(c) for c in solution.redundant} - {id(c) for c in given}
    own = [c for c in given if id(c) not in dropped]
    constraints = (*own, *(c for c in inferred if id(c) not in dropped))
    lost, skipped = tuple(c for c in given if id(c) in dropped), _join_sentences(skipped_message(sketch), left_out)
    solved = replace(solution.sketch, constraints=constraints)
    result = ConstrainResult(solved, lost=lost, skipped=skipped, num_own=len(own))
    if keep_redundant:
        return replace(result, displacement=solution.displacement)
    return _with_solution(result, solution, constraints)


def _solvable(sketch: Sketch, given: Constraints, inferred: Constraints) -> tuple[tuple[Constraint, ...], str | None]:
    """The inferred constraints that can be solved quickly, and a sentence on the others."""
    if not is_large(sketch):
        return tuple(inferred), None
    both = (*given, *inferred)
    equations = equation_set(both, variables_of(sketch.primitives))
    large = [members for members, columns in components(equations) if len(columns) > MAX_BLOCK]
    dropped = {equations.owners[i] for members in large for i in members}
    solvable = tuple(c for i, c in enumerate(inferred, len(given)) if i not in dropped)
    counts = Counter(str(both[i].type).replace("_", " ") for i in dropped if i >= len(given))
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    return solvable, f"left out, as too many are connected to solve: {listed}" if counts else None


def _snap_to_origin(result: ConstrainResult, tolerance: float, max_move: float) -> ConstrainResult:
    """Constrain points near the origin and the axes to lie there, where nothing moves by more than `max_move`."""
    given = result.sketch.constraints
    added = list(_near_origin(result.sketch, tolerance)) if len(result.sketch) else []
    while added:
        solution = solve(result.sketch, (*given, *added), max_move=max_move)
        conflicting = {id(c) for c in solution.conflicting}
        if solution.warning is None and not conflicting:
            return _with_solution(result, solution, (*given, *added))
        consistent = [c for c in added if id(c) not in conflicting]
        added = consistent if len(consistent) < len(added) else added[:-1]  # the farthest is last
    return result


def _near_origin(sketch: Sketch, tolerance: float) -> Iterator[Constraint]:
    """The point nearest to the origin, then one of those that share a coordinate near an axis, the nearest first."""
    variables = variables_of(sketch.primitives)
    variable_map = equation_set(sketch.constraints, variables).variable_map
    end = 2 * variables.num_points
    off = np.abs(variables.f[:end].reshape(-1, 2) - variables.f[end : end + 2])
    index = variable_map.index[:end].reshape(-1, 2)
    free = index < variable_map.num_free
    apart = off.max(axis=1).round(_DIGITS)
    nearest = int(apart.argmin())
    done: set[int] = set()
    if apart[nearest] <= tolerance and free[nearest].all():
        done.update(index[nearest].tolist())
        yield Constraint(ConstraintType.COINCIDENT, (variables.ref(nearest), Ref(None, Part.ORIGIN)))
    near = np.argwhere((off <= tolerance) & free)
    order = np.argsort(off[near[:, 0], near[:, 1]].round(_DIGITS), kind="stable")
    for point, axis in near[order].tolist():
        variable = int(index[point, axis])
        if variable not in done:
            done.add(variable)
            on = Ref(None, Part.X_AXIS if axis else Part.Y_AXIS)
            yield Constraint(ConstraintType.POINT_ON_CURVE, (variables.ref(point), on))
