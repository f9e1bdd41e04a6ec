"""A large drawing in pieces: what is near each other is looked at together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Ref

from .joining import Believed, Joined
from .variables import Floats, Variables

# How many primitives a piece has at most.
MOST_TOGETHER = 48


def by_pieces(joined: Joined, believe: Callable[[Joined], list[Believed]]) -> list[Believed]:
    """What was joined in the whole drawing, and what `believe` finds in each piece of it, knowing that."""
    variables, found = joined.variables, list(joined.believed)
    level = [constraint for constraint, _, _ in joined.believed if constraint.type in _LEVEL]
    middles = np.array([variables.f[variables.features(i)[:2]] for i in range(len(variables.primitives))])
    for members in _halved(np.arange(len(middles)), middles):
        name = {i: k for k, i in enumerate(members)}
        known = [*joined.given, *_meeting(joined, set(members)), *level]
        own = Variables([variables.primitives[i] for i in members])
        part = Joined(
            own,
            joined.tolerance * variables.scale / own.scale,
            [_renamed(c, name) for c in known if all(r.primitive is None or r.primitive in name for r in c.refs)],
            [name[i] for i in joined.fixed if i in name],
        )
        found += [(_renamed(c, members), removed, share) for c, removed, share in believe(part)]
    return found


_LEVEL = (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL)


def _halved(members: np.ndarray[tuple[int], np.dtype[np.intp]], at: Floats) -> Iterator[list[int]]:
    """Halves of halves, across where they are longest, until each is small."""
    if len(members) <= MOST_TOGETHER:
        yield members.tolist()
        return
    here = at[members]
    axis = int(np.argmax(np.ptp(here, axis=0)))
    order = members[np.argsort(here[:, axis], kind="stable")]
    yield from _halved(order[: len(order) // 2], at)
    yield from _halved(order[len(order) // 2 :], at)


def _meeting(joined: Joined, members: set[int]) -> Iterator[Constraint]:
    """The places of some primitives that are one, however that came about."""
    groups: defaultdict[int, list[Ref]] = defaultdict(list)
    for place, (primitive, part) in enumerate(joined.variables.places):
        if primitive in members:
            groups[joined.classes.find(place)].append(Ref(primitive, part))
    for refs in groups.values():
        if len(refs) > 1:
            yield Constraint(ConstraintType.COINCIDENT, tuple(refs))


def _renamed(constraint: Constraint, name: Sequence[int] | dict[int, int]) -> Constraint:
    refs = tuple(ref if ref.primitive is None else Ref(name[ref.primitive], ref.part) for ref in constraint.refs)
    return replace(constraint, refs=refs)
