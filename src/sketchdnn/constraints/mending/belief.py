"""What a drawn sketch is believed to mean, and the sketch in which that holds, with nothing moved too far.

A drawing too large to be looked at as a whole is looked at piece by piece: what constraints tie together is a piece.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.constraints.freedom import Freedom
from sketchdnn.constraints.holding import missed_by
from sketchdnn.constraints.infer import MOST_NUMBERS, infer
from sketchdnn.constraints.nearest import HOLDS
from sketchdnn.constraints.sharing import Classes
from sketchdnn.constraints.solve import solve
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, ConstraintType, Primitive, Sketch, bounds

from .effort import Effort, free_numbers, inferring, solving
from .worth import has_shrunk, moved

# What holds to within this share of the size holds already.
HOLDS_ALREADY = 1e-6
# However small a piece is, this is the largest share of it that may be off.
_SHAKIEST = 0.03
# Attempts to solve, each time without what moves something too far.
_TRIES = 6
# Relations that are read into a sketch rather than seen in it go first where something would move too far.
_SUBTLE = frozenset(
    {
        ConstraintType.EQUAL,
        ConstraintType.SYMMETRIC,
        ConstraintType.MIDPOINT,
        ConstraintType.PARALLEL,
        ConstraintType.PERPENDICULAR,
        ConstraintType.COLLINEAR,
    }
)
_OF_TWO_NUMBERS = frozenset(
    {
        ConstraintType.COINCIDENT,
        ConstraintType.CONCENTRIC,
        ConstraintType.COLLINEAR,
        ConstraintType.MIDPOINT,
        ConstraintType.SYMMETRIC,
    }
)
_PLAIN = frozenset(
    {ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.HORIZONTAL, ConstraintType.VERTICAL}
)


@dataclass(frozen=True, slots=True)
class Belief:
    """The primitives moved to where all `constraints` hold, and what of the ones asked for is not among those.

    `freedom` is empty where it is not known: where what was solved before still stands, or was changed since.
    """

    primitives: list[Primitive]
    constraints: list[Constraint]
    redundant: list[Constraint]
    conflicting: list[Constraint]
    unread: list[Constraint]
    dof: int
    freedom: list[Freedom]
    warnings: list[str]
    is_fresh: bool = True


def believe(
    drawn: Sketch,
    own: Sequence[Constraint],
    joined: Sequence[Constraint],
    *,
    believing: float | None,
    subtle: bool,
    tolerance: float,
    keep: Collection[int],
    is_solved: bool,
    effort: Effort,
) -> Belief | None:
    """Infer and solve. `believing` is how far off things may be; None where something would move too far."""
    if free_numbers(drawn.primitives) <= MOST_NUMBERS:
        return _believe(drawn, own, joined, believing, subtle, tolerance, keep, effort, is_solved=is_solved)
    pieces = _pieces(len(drawn), (*own, *joined))
    by_first = [_by_first(some) for some in (own, joined)]
    primitives = list(drawn.primitives)
    freedom = [Freedom.FREE] * len(primitives)
    parts: list[Belief] = []
    skipped = 0
    for piece in pieces:
        number = {i: k for k, i in enumerate(piece)}
        part = Sketch(tuple(primitives[i] for i in piece))
        about = [[c for i in piece for c in some.get(i, ())] for some in by_first]
        names = [[_renamed(c, number) for c in some] for some in about]
        held = {number[i] for i in keep if i in number}
        # Of a piece that is too large itself, only ends are joined.
        much = believing if free_numbers(part.primitives) <= MOST_NUMBERS else None
        found = _believe(part, names[0], names[1], much, subtle, tolerance, held, effort, is_solved=False)
        if found is None:
            skipped += len(piece)
            continue
        for i, p, free in zip(piece, found.primitives, found.freedom or [Freedom.FREE] * len(piece), strict=True):
            primitives[i], freedom[i] = p, free
        back = dict(enumerate(piece))
        same = {id(new): old for new, old in zip((*names[0], *names[1]), (*about[0], *about[1]), strict=True)}

        def old(
            some: Sequence[Constraint], same: dict[int, Constraint] = same, back: dict[int, int] = back
        ) -> list[Constraint]:
            return [same.get(id(c)) or _renamed(c, back) for c in some]

        parts.append(
            replace(
                found,
                constraints=old(found.constraints),
                redundant=old(found.redundant),
                conflicting=old(found.conflicting),
                unread=old(found.unread),
            )
        )
    if skipped == len(drawn):
        return None
    warning = (
        "it is so large that only its ends were joined"
        if len(pieces) == 1
        else f"it is so large that its {len(pieces):,} pieces were looked at one by one"
    )
    if skipped:
        warning += f", and {skipped:,} primitives were left as they were"
    return Belief(
        primitives,
        [c for part in parts for c in part.constraints],
        [c for part in parts for c in part.redundant],
        [c for part in parts for c in part.conflicting],
        [c for part in parts for c in part.unread],
        sum(part.dof for part in parts),
        freedom,
        [warning],
    )


# What is too large or not a number is found out by looking at the outcome.
@np.errstate(all="ignore")
def _believe(
    drawn: Sketch,
    own: Sequence[Constraint],
    joined: Sequence[Constraint],
    believing: float | None,
    subtle: bool,
    tolerance: float,
    keep: Collection[int],
    effort: Effort,
    *,
    is_solved: bool,
) -> Belief | None:
    warnings = []
    inferred: list[Constraint] = []
    size = bounds(drawn).size
    unsure, holds = _uncertainty(drawn, own)
    if size > 0 and believing is not None and effort.spend(inferring(drawn.primitives)):
        shaky = max(believing * unsure, HOLDS_ALREADY)
        try:
            inferred = list(infer(drawn, min(shaky / size, _SHAKIEST), given=[*own, *joined], fixed=keep))
        except GeometryError as error:
            warnings.append(str(error))
    if not subtle:
        inferred = _plain([*own, *joined], inferred)
    if is_solved and holds and not joined and not inferred:
        return Belief(list(drawn.primitives), list(own), [], [], [], 0, [], warnings, is_fresh=False)
    joined = list(joined)
    for _ in range(_TRIES):
        wanted = [*own, *joined, *inferred]
        if not effort.spend(solving(drawn.primitives, wanted)):
            return None
        solution = solve(drawn, wanted, most=math.inf, fixed=keep)
        if solution.warning:
            far = set(range(len(drawn)))
        else:
            both = enumerate(zip(drawn, solution.sketch, strict=True))
            far = {i for i, (p, q) in both if moved(p, q) > tolerance or has_shrunk(p, q)}
            if not far:
                surplus = (*solution.redundant, *solution.conflicting)
                return Belief(
                    list(solution.sketch.primitives),
                    wanted,
                    list(solution.redundant),
                    list(solution.conflicting),
                    list(solution.unread),
                    solution.dof,
                    [] if surplus else list(solution.freedom),
                    warnings,
                )
        fewer = _without(inferred, far)
        if len(fewer) < len(inferred):
            inferred = fewer
            continue
        fewer = _without(joined, far)
        if len(fewer) == len(joined):
            return None
        joined = fewer
    return None


def _pieces(count: int, constraints: Sequence[Constraint]) -> list[list[int]]:
    """Primitives that constraints tie together."""
    classes = Classes(count)
    for c in constraints:
        numbers = [ref.primitive for ref in c.refs if ref.primitive is not None]
        for i in numbers[1:]:
            classes.join(numbers[0], i)
    found: dict[int, list[int]] = {}
    for i in range(count):
        found.setdefault(classes.find(i), []).append(i)
    return list(found.values())


def _by_first(constraints: Sequence[Constraint]) -> dict[int, list[Constraint]]:
    """Constraints by the first primitive they are about."""
    found: dict[int, list[Constraint]] = {}
    for c in constraints:
        first = next((ref.primitive for ref in c.refs if ref.primitive is not None), None)
        if first is not None:
            found.setdefault(first, []).append(c)
    return found


def _renamed(constraint: Constraint, names: dict[int, int]) -> Constraint:
    refs = tuple(r if r.primitive is None else replace(r, primitive=names[r.primitive]) for r in constraint.refs)
    return replace(constraint, refs=refs)


def _uncertainty(drawn: Sketch, given: Sequence[Constraint]) -> tuple[float, bool]:
    """Which share of a sketch's numbers may be off, about, and whether all that is given holds exactly.

    What holds already was not drawn by a shaky hand, so the more does, the less is read into the rest.
    """
    missed = [(c, by) for c, by in zip(given, missed_by(drawn, given), strict=True) if by is not None]
    if not missed:
        return 1.0, True
    settled = sum(1 + (c.type in _OF_TWO_NUMBERS) for c, by in missed if by <= HOLDS_ALREADY)
    return max(0.0, 1 - settled / free_numbers(drawn.primitives)), max(by for _, by in missed) <= HOLDS


def _plain(given: Sequence[Constraint], inferred: Sequence[Constraint]) -> list[Constraint]:
    """Of what was inferred: which places are one, what is level, and what is smooth where curves join."""
    joined = {
        frozenset(ref.primitive for ref in c.refs) for c in (*given, *inferred) if c.type is ConstraintType.COINCIDENT
    }
    return [
        c
        for c in inferred
        if c.type in _PLAIN
        or (c.type is ConstraintType.TANGENT and frozenset(ref.primitive for ref in c.refs) in joined)
    ]


def _without(constraints: list[Constraint], far: set[int]) -> list[Constraint]:
    """Fewer constraints on what would go too far: first without the subtle ones, then without any."""

    def concerns(c: Constraint) -> bool:
        return any(ref.primitive in far for ref in c.refs)

    fewer = [c for c in constraints if c.type not in _SUBTLE or not concerns(c)]
    return fewer if len(fewer) < len(constraints) else [c for c in constraints if not concerns(c)]
