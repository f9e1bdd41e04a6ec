"""What a repair did, action by action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sketchdnn.constraints.holding import missed_by
from sketchdnn.geometry import Constraint, ConstraintType, Part, Primitive, Sketch
from sketchdnn.geometry.constraints import LENGTHS

from .canonical import SAME

# What primitives are made, where the word for the constraint does not say it.
_MADE = {
    ConstraintType.POINT_ON_CURVE: "meet",
    ConstraintType.MIDPOINT: "meet halfway",
    **dict.fromkeys((*LENGTHS, ConstraintType.ANGLE), "as large as was said"),
}


class ActionKind(StrEnum):
    """The ways to repair. The last three move nothing: they add a line, or change what counts as the profile."""

    DROP = "drop"  # something too small, or there already
    MERGE = "merge"  # lines or arcs on top of each other became one
    SNAP = "snap"  # ends that nearly met
    EXTEND = "extend"  # an end went out to a curve
    TRIM = "trim"  # an end that stuck out went back to a curve
    TANGENT = "tangent"  # curves that met almost smoothly
    SQUARE = "square"  # lines that were almost level or upright
    CONSTRAIN = "constrain"  # anything else that almost held
    CLOSE = "close"  # a line was added where an outline was open
    ASIDE = "aside"  # a stray curve became construction


@dataclass(frozen=True, slots=True)
class Action:
    """What was done to which primitives, numbered as they came in; `moved` is the largest move, a share of the size.

    >>> str(Action(ActionKind.SNAP, (2, 5), 0.0042))
    'Joined ends of primitives 2 and 5, which moved by 0.42 % of the size.'
    """

    kind: ActionKind
    primitives: tuple[int, ...]
    moved: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        names = _names(self.primitives)
        share = f"{100 * self.moved:.2g} % of the size"
        match self.kind:
            case ActionKind.DROP:
                return f"Dropped {names}: {self.detail or 'it was there already'}."
            case ActionKind.MERGE:
                return f"Merged {names} into one."
            case ActionKind.SNAP:
                return f"Joined ends of {names}, which moved by {share}."
            case ActionKind.EXTEND:
                return f"Extended an end among {names} by {share}, onto the curve it stopped short of."
            case ActionKind.TRIM:
                return f"Trimmed an end among {names} by {share}, back to the curve it stuck out of."
            case ActionKind.TANGENT:
                return f"Made {names} tangent, moving them by {share}."
            case ActionKind.SQUARE:
                return f"Squared up {names}, moving it by {share}."
            case ActionKind.CONSTRAIN:
                return f"Made {names} {self.detail or 'agree'}, moving by {share}."
            case ActionKind.CLOSE:
                return f"Added a line between open ends of {names}."
            case ActionKind.ASIDE:
                return f"Made {names} construction: it closes to no outline."


def told(
    before: Sketch, after: Sequence[Primitive], moves: Sequence[float], constraints: Sequence[Constraint]
) -> Iterator[Action]:
    """What constraints changed: those that did not hold before."""
    for constraint, missed in zip(constraints, missed_by(before, constraints), strict=True):
        if missed is not None and missed > SAME:
            yield _action(constraint, before.primitives, after, moves)


def in_sources(action: Action, sources: Sequence[tuple[int, ...]]) -> Action:
    """An action in the numbers of what its primitives came from."""
    return replace(action, primitives=tuple(sorted({source for k in action.primitives for source in sources[k]})))


def _action(c: Constraint, before: Sequence[Primitive], after: Sequence[Primitive], moves: Sequence[float]) -> Action:
    numbers = tuple(dict.fromkeys(ref.primitive for ref in c.refs if ref.primitive is not None))
    by = max((moves[i] for i in numbers), default=0.0)
    ends = [ref.primitive for ref in c.refs if ref.part in (Part.START, Part.END)]
    if c.type is ConstraintType.COINCIDENT and len(ends) == 2:
        return Action(ActionKind.SNAP, numbers, by)
    if c.type is ConstraintType.POINT_ON_CURVE and ends and ends[0] is not None:
        grows = after[ends[0]].length >= before[ends[0]].length
        return Action(ActionKind.EXTEND if grows else ActionKind.TRIM, numbers, by)
    if c.type is ConstraintType.TANGENT:
        return Action(ActionKind.TANGENT, numbers, by)
    if c.type in (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL) and len(numbers) == 1:
        return Action(ActionKind.SQUARE, numbers, by)
    return Action(ActionKind.CONSTRAIN, numbers, by, _MADE.get(c.type, str(c.type)))


def _names(numbers: Sequence[int]) -> str:
    names = [str(n) for n in numbers]
    if not names:
        return "what was added"
    if len(names) == 1:
        return f"primitive {names[0]}"
    return f"primitives {', '.join(names[:-1])} and {names[-1]}"
