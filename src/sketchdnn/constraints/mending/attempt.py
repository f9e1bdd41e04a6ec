"""One attempt to repair a sketch that is laid down: tidy up, join ends, infer what else is meant, solve, close."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sketchdnn.geometry import Constraint, Primitive, Profile, Sketch, bounds, profile

from .actions import Action, in_sources, told
from .belief import Belief, believe
from .canonical import SAME
from .closing import closed
from .effort import Effort
from .joins import joins, shakiness
from .tidy import Tidied, tidy
from .worth import EXACT, moved

# The steadiest hand is off by this share of the tolerance: files keep few digits.
_STEADIEST = 0.01


@dataclass(frozen=True, slots=True)
class Caution:
    """How much an attempt dares, in shares of the tolerance: what it takes for nothing, and what it believes was meant.

    Without `subtle`, only what can be seen at once is believed: places that are one, level lines, smooth joints.
    """

    nothing: float
    join: bool
    belief: float
    subtle: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of it, still laid down. `sources` and `actions` speak of rows of what was laid down.

    `profile` is that before an outline was closed, None where nothing moved; `is_extrudable` is said of the end.
    `refused` are those of the sketch's own constraints that contradict others. The first `own` constraints are those of
    the file.
    """

    primitives: list[Primitive]
    sources: list[tuple[int, ...]]
    constraints: list[Constraint]
    actions: list[Action]
    refused: list[Constraint]
    belief: Belief
    changed: bool
    profile: Profile | None
    is_extrudable: bool
    own: int


def attempt(
    laid: list[Primitive],
    given: list[Constraint],
    own_count: int,
    caution: Caution,
    tolerance: float,
    keep: Collection[int],
    effort: Effort,
    *,
    close: bool,
    is_solved: bool,
    is_extrudable: bool,
) -> Attempt | None:
    """Try it on a sketch of size one; None where something would move too far whatever is left out.

    The first `own_count` of what is given are the file's. `is_solved` and `is_extrudable` tell what the pass before has
    found out already.
    """
    if caution.nothing:
        tidied = tidy(laid, given, caution.nothing * tolerance, keep, own_count)
    else:
        tidied = Tidied(laid, [(k,) for k in range(len(laid))], [], given, [], own_count)
    if len(tidied.primitives) < len(laid) and not _is_as_large(tidied.primitives, tolerance):
        return None
    own, sources = tidied.constraints, tidied.sources
    held = {k for k, source in enumerate(sources) if not set(keep).isdisjoint(source)} if keep else set()
    drawn = Sketch(tuple(tidied.primitives))
    joined = joins(drawn.primitives, own, tolerance, held) if caution.join else []
    shaky = shakiness(drawn.primitives, tolerance)
    believing = caution.belief * tolerance
    found = believe(
        drawn,
        own,
        joined,
        believing=believing if shaky is None else min(believing, max(shaky, _STEADIEST * tolerance)),
        subtle=caution.subtle,
        tolerance=tolerance,
        keep=held,
        is_solved=is_solved and len(drawn) == len(laid),
        effort=effort,
    )
    if found is None:
        return None
    primitives = found.primitives
    contrary = {id(c) for c in found.conflicting}
    spare = {id(c) for c in found.redundant} - {id(c) for c in own}
    unread = {id(c) for c in found.unread}
    moves = [moved(p, q) for p, q in zip(drawn, primitives, strict=True)]
    solid = [c for c in found.constraints if id(c) not in contrary]
    constraints = [c for c in solid if id(c) not in spare and not (id(c) in unread and _has_moved(c, moves))]
    first = {id(c) for c in own[: tidied.own]}
    own_left = sum(id(c) in first for c in constraints)
    actions = list(tidied.actions)
    if max(moves) > SAME:
        actions += [in_sources(action, sources) for action in told(drawn, primitives, moves, solid)]
    is_moved = len(primitives) != len(laid) or max(moves) > SAME
    shape: Profile | None = None
    if is_moved or not is_extrudable:
        shape = profile(primitives, EXACT)
        is_extrudable = shape.is_extrudable
        if close and shape.chains:
            closing = closed(primitives, constraints, shape, tolerance, held)
            actions += [in_sources(action, sources) for action in closing.actions]
            primitives, constraints = closing.primitives, closing.constraints
            is_extrudable = closing.profile.is_extrudable
    changed = is_moved or len(constraints) != len(given) or len(primitives) != len(laid)
    return Attempt(
        primitives,
        sources + [()] * (len(primitives) - len(sources)),
        constraints,
        actions,
        [c for c in own if id(c) in contrary],
        found,
        changed or any(p.construction != q.construction for p, q in zip(primitives, laid, strict=True)),
        shape if is_moved else None,
        is_extrudable,
        own_left,
    )


def _is_as_large(primitives: Sequence[Primitive], tolerance: float) -> bool:
    """Whether what is left of a sketch of size one still is of that size."""
    return bool(primitives) and abs(bounds(primitives).size - 1) <= 4 * tolerance


def _has_moved(constraint: Constraint, moves: Sequence[float]) -> bool:
    """Whether something that a constraint is about has moved: one that the solver does not know may hold no longer."""
    return any(ref.primitive is not None and moves[ref.primitive] > SAME for ref in constraint.refs)
