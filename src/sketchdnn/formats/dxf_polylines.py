"""A sketch as polylines: one for each loop and chain of its profile, and what must stay an entity of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Line, Primitive, Sketch, arc_from_sweep, bounds, profile
from sketchdnn.geometry.profiles import Edge
from sketchdnn.geometry.proximity import TOLERANCE

from .wires import Corner, Wire, corners

# An arc that turns by less is read back as a line.
_LEAST_SWEEP = 1e-5
# A gap below this part of the size is none.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Polyline:
    """Corners, whether the way leads from the last back to the first, and how many corners join ends that lie apart."""

    wire: Wire
    closed: bool
    joined: int = 0


def polylines(sketch: Sketch) -> Iterator[Polyline | Primitive]:
    """Each loop and each chain of several curves, outlines counter-clockwise and holes clockwise, then all the rest.

    The rest are circles, points, construction, single curves, duplicates, loops that share a curve with another, and
    what no polyline can say: an arc that turns so far that its ends are nearly one.
    """
    found = profile(sketch)
    uses = Counter(edge.primitive for loop in found.loops for edge in loop.edges)
    joined = [(loop.edges, None) for loop in found.loops if all(uses[edge.primitive] == 1 for edge in loop.edges)]
    taken: set[int] = set()
    for edges, end in [*joined, *((chain.edges, Corner(chain.end)) for chain in found.chains)]:
        if len(edges) == 1:
            continue
        wire = corners(edges, sketch.primitives) + (() if end is None else (end,))
        if _says(wire, edges, sketch, closed=end is None):
            taken.update(edge.primitive for edge in edges)
            yield Polyline(wire, end is None, _joined(wire, edges, sketch))
    yield from (primitive for i, primitive in enumerate(sketch) if i not in taken)


def _says(wire: Wire, edges: Sequence[Edge], sketch: Sketch, *, closed: bool) -> bool:
    """Whether the polyline is what its curves were, as closely as profiles join ends."""
    within = 2 * TOLERANCE * bounds(sketch).size
    for edge, (start, end) in zip(edges, pairwise(wire + wire[:1] if closed else wire), strict=True):
        if start.at == end.at or not _same(sketch.primitives[edge.primitive], start, end, within):
            return False
    return True


def _joined(wire: Wire, edges: Sequence[Edge], sketch: Sketch) -> int:
    """How many curves end elsewhere than the next one begins, by more than rounding."""
    least = _ROUNDING * bounds(sketch).size
    gaps = 0
    for edge, corner in zip(edges, wire[1:] + wire[:1], strict=False):
        primitive = sketch.primitives[edge.primitive]
        if isinstance(primitive, Line | Arc):
            gaps += math.dist(primitive.end if edge.forward else primitive.start, corner.at) > least
    return gaps


def _same(primitive: Primitive, start: Corner, end: Corner, within: float) -> bool:
    if isinstance(primitive, Line):
        return True
    if not isinstance(primitive, Arc) or abs(start.sweep) < _LEAST_SWEEP:
        return False
    try:
        arc = arc_from_sweep(start.at, end.at, start.sweep)
    except GeometryError:
        return False
    moved = (arc.center[0] - primitive.center[0], arc.center[1] - primitive.center[1], arc.radius - primitive.radius)
    return max(map(abs, moved)) <= within
