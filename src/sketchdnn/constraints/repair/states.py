"""A sketch between two passes of its repair, in canonical form, and what attempts on it begin with.

What several attempts need is computed once: the canonical form, the primitives without duplicates, joins, noise and
symmetry, and the outcomes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

from sketchdnn.constraints.equation_set import Freedom
from sketchdnn.constraints.solve import FindFreedom
from sketchdnn.constraints.variables import Constraints
from sketchdnn.geometry import Constraint, Primitive, Profile, Sketch, bounds, profile

from .dedupe import Deduplicated
from .infer_solve import Inferences
from .intent import Intent, drawn_noise, find_intent
from .joins import find_joins, noise_estimate
from .quality import EXACT, Action
from .symmetry import canonical_frame

# More primitives do not get every attempt.
MAX_TOGETHER = 100
# The smallest noise, as a share of the tolerance: files keep few digits.
_MIN_NOISE = 0.01


@dataclass(frozen=True, slots=True)
class State:
    """A sketch between two passes, or after an attempt. Actions and sources refer to the input's primitives.

    `find_freedom` is None, and `is_extrudable` False, while unknown.
    """

    sketch: Sketch
    sources: tuple[tuple[int, ...], ...]
    actions: tuple[Action, ...] = ()
    warnings: tuple[str, ...] = ()
    dof: int = 0
    find_freedom: FindFreedom | None = field(default=None, compare=False)
    changed: bool = True
    is_extrudable: bool = False
    num_own: int = 0


class Outcome(NamedTuple):
    """The state after an attempt that does no harm, and whether something moved."""

    after: State
    has_moved: bool

    def equals(self, other: Outcome | None) -> bool:
        """Whether the outcomes agree, and their freedom is either known or not."""
        return self == other and (self.after.find_freedom is None) is (other.after.find_freedom is None)


class Attempt(NamedTuple):
    """The outcome of an attempt in canonical form: sources, actions and freedom refer to its rows.

    `rejected` are those of the sketch's own constraints that conflict with others. `profile` is that before an outline
    was closed, None where nothing moved.
    """

    state: State
    rejected: list[Constraint]
    profile: Profile | None


class Basis:
    """What attempts begin with: the canonical primitives that are left without slivers and duplicates.

    Each property is computed once, however many attempts use it.
    """

    def __init__(self, distinct: Deduplicated, canonical: Canonical, tolerance: float, drawn_off: float) -> None:
        self.distinct, self.tolerance, self.drawn_off = distinct, tolerance, drawn_off
        self.held = {k for k, source in enumerate(distinct.sources) if not canonical.keep.isdisjoint(source)}
        self.before = Sketch(tuple(distinct.primitives), tuple(distinct.constraints))
        self.inferred: Inferences = {}

    @cached_property
    def joins(self) -> list[Constraint]:
        return find_joins(self.before.primitives, self.before.constraints, self.tolerance, self.held)

    @cached_property
    def noise(self) -> float:
        """The largest noise to explain: that of the gaps between ends."""
        estimate = noise_estimate(self.before.primitives, self.tolerance)
        return math.inf if estimate is None else max(estimate, _MIN_NOISE * self.tolerance)

    @cached_property
    def intent(self) -> Intent | None:
        own = self.before.constraints
        return find_intent(self.before.primitives, [*own, *self.joins], self.drawn_off, self.held)


class Canonical:
    """A state in canonical form, on which attempts are made. `keep` are the rows that stay as they are.

    Attributes:
        bases: What attempts begin with, for each size of slivers; equal ones are one object.
        outcomes: The state after each attempt, whether something moved, and the cost.
    """

    def __init__(self, state: State, keep: frozenset[int]) -> None:
        self.state, drawn = state, state.sketch
        self.bases: dict[float, Basis | None] = {}
        self.outcomes: dict[tuple[object, ...], tuple[Outcome | None, float]] = {}
        self.frame = frame = canonical_frame(drawn.primitives, bounds(drawn))
        self.keep = {k for k, i in enumerate(frame.rows) if not keep.isdisjoint(state.sources[i])}
        self.primitives = tuple(frame.to_canonical(self.keep))
        row_of = {i: k for k, i in enumerate(frame.rows)}
        self.given = [frame.constraint_to_canonical(c, row_of) for c in drawn.constraints]

    def drawn_noise(self, tolerance: float) -> float:
        return drawn_noise(self.primitives, tolerance) if len(self.primitives) <= MAX_TOGETHER else 0.0

    @cached_property
    def profile(self) -> Profile:
        """That before the attempts."""
        return profile(self.primitives, EXACT)

    def restore(self, attempt: Attempt) -> State:
        """The outcome in the sketch's own orientation and order; unchanged primitives stay exactly equal."""
        state, after, frame, drawn = self.state, attempt.state, self.frame, self.state.sketch
        first = {k: source[0] for k, source in enumerate(after.sources) if source}
        # The original value of each canonical value: scaled back, it would differ in its last digit.
        both = zip(self.given, drawn.constraints, strict=True)
        values = {(c.type, c.value): was.value for c, was in both if c.value is not None}

        def rank(k: int) -> tuple[int, int]:
            return (min(frame.rows[r] for r in after.sources[k]), 0) if k in first else (len(frame.rows), k)

        def input_numbers(rows: Sequence[int]) -> tuple[int, ...]:
            return tuple(sorted({source for row in rows for source in state.sources[frame.rows[row]]}))

        def restore_primitive(p: Primitive, row: int | None) -> Primitive:
            if row is None:
                return frame.from_canonical(row, p)
            before, was = self.primitives[row], drawn.primitives[frame.rows[row]]
            if p is before or p == before:
                return was
            if p.construction == before.construction or replace(p, construction=before.construction) != before:
                return frame.from_canonical(row, p)
            return replace(was, construction=p.construction)

        def restore_all(constraints: Constraints) -> tuple[Constraint, ...]:
            turned = [frame.turn_constraint(c, number_of, first) for c in constraints]
            both = zip(turned, constraints, strict=True)
            return tuple(
                c if was.value is None else replace(c, value=values.get((was.type, was.value), was.value))
                for c, was in both
            )

        order = sorted(range(len(after.sketch)), key=rank)
        number_of = {k: n for n, k in enumerate(order)}
        sources = tuple(input_numbers(after.sources[k]) for k in order)
        warnings = () if state.warnings else after.warnings  # once, not for each pass
        if attempt.rejected:
            names = ", ".join(describe(c, sources) for c in restore_all(attempt.rejected))
            warnings = (*warnings, f"left out, as it conflicts with others: {names}")
        sketch = drawn  # where nothing changed, a repair ends with it
        if after.changed:
            primitives = tuple(restore_primitive(after.sketch.primitives[k], first.get(k)) for k in order)
            sketch = replace(drawn, primitives=primitives, constraints=restore_all(after.sketch.constraints))
        actions = (*state.actions, *(replace(a, primitives=input_numbers(a.primitives)) for a in after.actions))
        freedom = after.find_freedom and partial(reorder, after.find_freedom, order)
        warnings = (*state.warnings, *warnings)
        return replace(after, sketch=sketch, sources=sources, actions=actions, warnings=warnings, find_freedom=freedom)


def describe(constraint: Constraint, sources: Sequence[tuple[int, ...]]) -> str:
    """The type of a constraint and the input numbers of its primitives; a line that was added has none.

    >>> from sketchdnn.geometry import ConstraintType, Ref
    >>> describe(Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(2))), [(0,), (1,), (2, 3)])
    'parallel (0, 2)'
    >>> describe(Constraint(ConstraintType.PARALLEL, (Ref(0), Ref(1))), [(0,), ()])
    'parallel (0, added)'
    """
    own = [sources[ref.primitive] for ref in constraint.refs if ref.primitive is not None]
    numbers = ", ".join(str(source[0]) if source else "added" for source in own)
    return f"{str(constraint.type).replace('_', ' ')} ({numbers})"


def reorder(find_freedom: FindFreedom, order: Sequence[int]) -> tuple[Freedom, ...]:
    """The freedom of each primitive in another order."""
    freedom = find_freedom()
    return tuple(freedom[k] for k in order)
