"""Whether a sketch is closed: it can be extruded, and what bounds the solid is a real share of it."""

from __future__ import annotations

from collections.abc import Iterator

from sketchdnn.geometry import Profile, Sketch, bounds, profile

# Ends this close, as a share of the size, count as joined: what a sampler leaves open before any repair.
CLOSE = 0.01
# The least size of the largest outline in a closed sketch, as a share of that of the whole sketch, construction too.
# Of real sketches that can be extruded, 97 % have it.
OUTLINE = 0.5


def outline_share(sketch: Sketch, found: Profile) -> float:
    """The size of the largest outline over that of the whole sketch; 0 without an outline."""
    sizes = [bounds([sketch.primitives[edge.primitive] for edge in loop.edges]).size for loop in found.outer]
    return max(sizes, default=0.0) / bounds(sketch).size if sizes else 0.0


def reasons_not_closed(sketch: Sketch, close: float = CLOSE) -> Iterator[tuple[str, float]]:
    """Why a sketch is not closed, a sentence each, with how many places are wrong. Ends are joined at `close`.

    >>> from sketchdnn.geometry import Circle
    >>> list(reasons_not_closed(Sketch((Circle((0, 0), 2), Circle((3, 0), 2)))))
    [('curves cross or touch in 2 places', 2.0)]
    """
    found = profile(sketch, close)
    chains, branches, meetings, pairs = map(len, (found.chains, found.branches, found.meetings, found.overlaps))
    if chains:
        yield f"{chains} {'chain is' if chains == 1 else 'chains are'} left open", float(chains)
    elif not found.loops:
        yield "nothing in it closes", float(max(len(sketch), 1))
    if branches:
        yield f"more than two ends meet in {_number(branches, 'place')}", float(branches)
    if meetings:
        yield f"curves cross or touch in {_number(meetings, 'place')}", float(meetings)
    if pairs:
        yield f"{_number(pairs, 'pair')} of curves overlap", float(pairs)
    if not found.is_complete:
        yield "so many curves come close to each other that not all could be looked at", float(len(sketch))
    share = outline_share(sketch, found)
    if found.loops and share < OUTLINE:
        yield f"its largest outline is {share:.2f} of its size, not at least {OUTLINE:g}", 1.0


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
