"""A large drawing in pieces: what is near each other is looked at together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Ref

from .joining import Believed, Joined, extents
from .sharing import Classes
from .variables import Floats, Ints, Variables

# How many primitives a piece has at most.
MOST_TOGETHER = 48
# The tolerance of a piece is at most this share of the median size of what is drawn there.
_LOCAL = 0.1


def by_pieces(joined: Joined, believe: Callable[[Joined], list[Believed]]) -> list[Believed]:
    """What was joined in the whole drawing, and what `believe` finds in each piece of it, knowing that."""
    variables, found = joined.variables, list(joined.believed)
    level = [constraint for constraint, _, _ in joined.believed if constraint.type in _LEVEL]
    middles = np.array([variables.f[variables.features(i)[:2]] for i in range(len(variables.primitives))])
    connected = Classes(len(middles))
    by_place: dict[int, int] = {}
    for place, (primitive, _) in enumerate(variables.places):
        connected.join(primitive, by_place.setdefault(joined.classes.find(place), primitive))
    sizes = extents(variables) * variables.scale
    for members in _halved(np.arange(len(middles)), middles, connected.leaders()):
        name = {i: k for k, i in enumerate(members)}
        known = [*joined.given, *_meeting(joined, set(members)), *level]
        own = Variables([variables.primitives[i] for i in members])
        part = Joined(
            own,
            min(joined.tolerance * variables.scale, _LOCAL * float(np.median(sizes[members]))) / own.scale,
            [_renamed(c, name) for c in known if all(r.primitive is None or r.primitive in name for r in c.refs)],
            [name[i] for i in joined.fixed if i in name],
            local=True,
        )
        found += [(_renamed(c, members), removed, share) for c, removed, share in believe(part)]
    return found


_LEVEL = (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL)


def _halved(members: Ints, at: Floats, leader: Ints) -> Iterator[list[int]]:
    """Halves of halves, across where they are longest, until each is small.

    What is connected, by the primitive that leads it, stays together as long as it is small itself.
    """
    if len(members) <= MOST_TOGETHER:
        yield members.tolist()
        return
    whole = int(np.bincount(leader[members]).max()) <= MOST_TOGETHER
    where = at[leader[members] if whole else members]
    axis = int(np.argmax(np.ptp(where, axis=0)))
    order = np.lexsort((leader[members], where[:, axis]))
    members, of = members[order], leader[members][order]
    half = len(members) // 2
    if whole:
        half = int(np.flatnonzero(of == of[half])[0]) or int(np.flatnonzero(of == of[0])[-1]) + 1
    yield from _halved(members[:half], at, leader)
    yield from _halved(members[half:], at, leader)


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
