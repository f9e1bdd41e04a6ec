"""Pieces of curves: strokes are split at corners, then pieces of one curve are merged across junctions and gaps.

A row of dashes becomes one piece with gaps, and an arc that closes becomes a circle. The merges that lower the cost
most come first (see `curves`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .curves import Costs, Fit, Floats, angles_along, fit_circle, fit_line, sharpest, split, turns
from .skeleton import Places, Stroke, StrokeGraph

# More pieces are too many to compare.
MAX_PIECES = 600
# Places along a piece, at steps of this share of the size.
_STEP = 0.006
# A dash is at most this long, and a gap between dashes at most this wide, as shares of the size.
_MAX_DASH, _MAX_DASH_GAP = 0.1, 0.055
# A circle may lack this share of its turn.
_MAX_OPEN = 0.12
# From this noise on, as a share of the size, a round stroke is a circle: its root mean squared deviation is at most
# this share of the radius, it turns nowhere by so many radians more than a circle does over a part of the turn, and at
# half of its places at least by this share of what a circle does over a fine part.
_BY_HAND, _MAX_OVAL, _MAX_KINK = 0.0025, 0.06, 0.3
_RING_PARTS, _RING_PLACES, _FINE_PARTS, _MIN_BEND = 14, 28, 60, 0.4


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a stroke, or several, and the curve that fits it.

    Attributes:
        at: Places in order, at equal steps except across gaps.
        fit: The curve.
        length: The length of its strokes without gaps.
        ends: The nodes at its start and its end.
        gaps: The gaps in it, each in pixels.
        is_closed: Whether it is a full circle.
    """

    at: Places
    fit: Fit
    length: float
    ends: tuple[int, int]
    gaps: tuple[float, ...] = ()
    is_closed: bool = False

    def cost(self, costs: Costs) -> float:
        """Its price and its deviation."""
        price = costs.line if self.fit.is_line else costs.arc
        return price + float(costs.deviation(self.length, self.fit.mean_square))

    @property
    def is_dashed(self) -> bool:
        """Whether it is a row of dashes rather than a stroke that is interrupted."""
        if not self.gaps:
            return False
        share = sum(self.gaps) / (self.length + sum(self.gaps))
        return share > 0.12 if len(self.gaps) > 1 else share > 0.2

    @property
    def sweep(self) -> float:
        """The turn of an arc, in radians."""
        return 0.0 if self.fit.is_line else abs(float(np.ptp(angles_along(self.fit, self.at))))

    def reversed(self) -> Piece:
        return replace(self, at=self.at[::-1], ends=self.ends[::-1])


def find_pieces(graph: StrokeGraph, width: float, costs: Costs) -> list[Piece]:
    """The merged pieces of all strokes.

    Args:
        graph: The strokes.
        width: The width of a stroke in pixels.
        costs: Prices and noise.
    """
    nodes = _NodeNumbers(graph)
    strokes = [_without_bends(stroke, graph, 1.2 * width) for stroke in graph.strokes]
    pieces = [piece for stroke in strokes for piece in _split_stroke(stroke, nodes, costs)]
    if len(pieces) > MAX_PIECES:
        return pieces
    pieces = _Merging(pieces, nodes.degree, width, costs).run()
    pieces = [piece for piece in pieces if piece.length > max(1.3 * width, 0.8 * costs.noise, 0.008 * costs.size)]
    return _without_doubles(pieces, max(1.4 * width, 0.7 * costs.noise))


def _without_bends(stroke: Stroke, graph: StrokeGraph, reach: float) -> Stroke:
    """A stroke that runs straight into its junctions: the skeleton bends where strokes cross at an angle."""
    at = stroke.at
    if stroke.is_loop or stroke.length < 6 * reach:
        return stroke
    for node in (stroke.start, stroke.end):
        if graph.degree.get(node, 1) > 2:
            along = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))))
            near, far = np.searchsorted(along, (reach, 2.5 * reach))
            if far >= len(at):
                return stroke
            ahead = at[near] - at[far]
            end = at[near] + ahead / max(float(np.hypot(*ahead)), 1e-9) * along[near]
            at = np.concatenate((end[None], at[near:]))
        at = at[::-1]
    return replace(stroke, at=at)


class _NodeNumbers:
    """New nodes at corners, and the number of strokes at each node."""

    def __init__(self, graph: StrokeGraph) -> None:
        self.degree = dict(graph.degree)
        self._next = max([*self.degree, *(s.start for s in graph.strokes)], default=0) + 1

    def add(self) -> int:
        self._next += 1
        self.degree[self._next] = 2
        return self._next


def _split_stroke(stroke: Stroke, nodes: _NodeNumbers, costs: Costs) -> Iterator[Piece]:
    at = stroke.at
    if ring := _ring_by_hand(stroke, nodes.degree, costs):
        yield ring
        return
    if stroke.is_loop:
        circle = fit_circle(_resampled(at, costs))
        if circle is not None and circle.radius < 2 * costs.size:
            whole = Piece(_resampled(at, costs), circle, stroke.length, (stroke.start, stroke.end), is_closed=True)
            if whole.cost(costs) < 2.6 * costs.line + costs.arc:
                yield whole
                return
        corner = sharpest(at, max(2, round(0.02 * costs.size)))
        at = np.concatenate((at[corner:-1], at[: corner + 1]))
    found = split(at, costs)
    first = stroke.start if not stroke.is_loop else nodes.add()
    last = stroke.end if not stroke.is_loop else first
    ends = [first, *(nodes.add() for _ in found[1:]), last]
    for (low, high, is_arc), between in zip(found, pairwise(ends), strict=True):
        part = at[low : high + 1]
        places = _resampled(part, costs)
        fit = (fit_circle(places) if is_arc else None) or fit_line(places)
        yield Piece(places, fit, _path_length(part), between)


def _ring_by_hand(stroke: Stroke, degree: dict[int, int], costs: Costs) -> Piece | None:
    """The circle that a stroke by hand shows: round, without corners, closed or nearly so; None if it shows none."""
    ends = (stroke.start, stroke.end)
    is_free = ends[0] == ends[1] or all(degree.get(end, 1) == 1 for end in ends)
    if costs.noise < _BY_HAND * costs.size or not is_free:
        return None
    places = _resampled(stroke.at, costs)
    if len(places) < _RING_PLACES or math.dist(places[0], places[-1]) > _MAX_OPEN * stroke.length:
        return None
    circle = fit_circle(places)
    if circle is None or circle.mean_square > (_MAX_OVAL * circle.radius) ** 2:
        return None
    turned = angles_along(circle, places)
    is_full = abs(abs(turned[-1] - turned[0]) - math.tau) < _MAX_OPEN * math.tau
    sharpest_turn = turns(places, len(places) // _RING_PARTS).max()
    if not is_full or sharpest_turn > math.tau / _RING_PARTS + _MAX_KINK:
        return None
    # A polygon is straight at most places.
    near = max(1, len(places) // _FINE_PARTS)
    if np.median(turns(places, near)) < _MIN_BEND * math.tau * near / len(places):
        return None
    return Piece(places, circle, stroke.length, ends, is_closed=True)


def _path_length(at: Places) -> float:
    return float(np.hypot(*np.diff(at, axis=0).T).sum())


def _resampled(at: Places, costs: Costs) -> Places:
    """Places at equal steps along a path."""
    along = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))))
    count = max(3, math.ceil(along[-1] / (_STEP * costs.size)) + 1)
    steps = np.linspace(0, along[-1], count)
    return np.column_stack([np.interp(steps, along, at[:, k]) for k in (0, 1)])


class _Merging:
    """Greedy merging of pieces."""

    def __init__(self, pieces: list[Piece], degree: dict[int, int], width: float, costs: Costs) -> None:
        self.pieces: dict[int, Piece] = dict(enumerate(pieces))
        self.degree, self.width, self.costs = degree, width, costs
        self.reach = max(0.016 * costs.size, 1.2 * width)
        self.next = len(pieces)

    def run(self) -> list[Piece]:
        candidates = {}
        for a in self.pieces:
            candidates.update(self._candidates(a, [b for b in self.pieces if b > a]))
        while candidates:
            pair = max(candidates, key=lambda key: candidates[key][0])
            merged = candidates[pair][1]
            candidates = {key: value for key, value in candidates.items() if not {*key} & {*pair}}
            for number in pair:
                del self.pieces[number]
            self.pieces[self.next] = merged
            candidates.update(self._candidates(self.next, [b for b in self.pieces if b != self.next]))
            self.next += 1
        return [self._close(piece) for piece in self.pieces.values()]

    def _candidates(self, a: int, others: list[int]) -> dict[tuple[int, int], tuple[float, Piece]]:
        first = self.pieces[a]
        if first.is_closed or not others:
            return {}
        ends = np.array([[self.pieces[b].at[0], self.pieces[b].at[-1]] for b in others])
        limit = _MAX_DASH_GAP * self.costs.size
        own = np.array([first.at[0], first.at[-1]])
        near = (np.linalg.norm(ends[:, :, None] - own[None, None], axis=-1) <= limit).any(axis=(1, 2))
        found = {}
        for k in np.flatnonzero(near).tolist():
            b = others[k]
            merged = self._best_merge(first, self.pieces[b])
            if merged is not None:
                found[min(a, b), max(a, b)] = merged
        return found

    def _best_merge(self, a: Piece, b: Piece) -> tuple[float, Piece] | None:
        if b.is_closed:
            return None
        best = None
        for one in (a, a.reversed()):
            for two in (b, b.reversed()):
                gap = float(math.dist(one.at[-1], two.at[0]))
                if self._may_join(one, two, gap):
                    merged = self._merge(one, two, gap)
                    gain = a.cost(self.costs) + b.cost(self.costs) - merged.cost(self.costs) if merged else 0.0
                    gain -= 0.4 * gap / (_MAX_DASH_GAP * self.costs.size)
                    if merged and gain > 0 and (best is None or gain > best[0]):
                        best = (gain, merged)
        return best

    def _may_join(self, a: Piece, b: Piece, gap: float) -> bool:
        """Whether the end of one and the start of the other may be of one curve."""
        if a.ends[1] == b.ends[0]:
            return True
        free = (self.degree.get(a.ends[1], 1) == 1) + (self.degree.get(b.ends[0], 1) == 1)
        if free and gap <= self.reach:
            return True
        longest = _MAX_DASH * self.costs.size
        is_dash = [p.length <= longest or p.is_dashed for p in (a, b)]
        if not all(is_dash) or not free:
            return False
        dash = max(p.length / (len(p.gaps) + 1) for p in (a, b))
        return gap <= min(_MAX_DASH_GAP * self.costs.size, 1.6 * dash)

    def _merge(self, a: Piece, b: Piece, gap: float) -> Piece | None:
        """The union as a line or an arc, whichever costs less; None where the second turns back along the first."""
        at = np.concatenate((a.at, b.at))
        length = a.length + b.length
        gaps = (*a.gaps, *b.gaps, *([gap] if gap > 0.7 * self.width and a.ends[1] != b.ends[0] else []))
        line, slack = fit_line(at), max(2.0 * self.costs.noise, 1.5 * self.width)
        found: list[Piece] = []
        if _goes_on(at @ line.direction, len(a.at), slack):
            found.append(Piece(at, line, length, (a.ends[0], b.ends[1]), gaps))
        if line.mean_square > (0.4 * self.costs.noise) ** 2 and len(at) >= 6:
            circle = fit_circle(at)
            if circle is not None and circle.radius < 2 * self.costs.size:
                turned = angles_along(circle, at)
                sagitta = circle.radius * (1 - math.cos(min(math.pi, float(np.ptp(turned)) / 2)))
                is_bent = sagitta > max(self.costs.min_sagitta * math.dist(at[0], at[-1]), 1.5 * self.costs.noise)
                if is_bent and _goes_on(turned * circle.radius, len(a.at), slack) and np.ptp(turned) < 2.1 * math.pi:
                    found.append(Piece(at, circle, length, (a.ends[0], b.ends[1]), gaps))
        return min(found, key=lambda piece: piece.cost(self.costs), default=None)

    def _close(self, piece: Piece) -> Piece:
        """A full circle in place of an arc that nearly closes."""
        if piece.fit.is_line or piece.is_closed:
            return piece
        missing = math.tau - piece.sweep
        gap = missing * piece.fit.radius
        reach = max(self.reach, 1.3 * max(piece.gaps, default=0.0))
        is_free = min(self.degree.get(end, 1) for end in piece.ends) == 1 or piece.ends[0] == piece.ends[1]
        if missing < 0.02 or (gap < max(reach, 2.5 * self.costs.noise) and missing < _MAX_OPEN * math.tau and is_free):
            return replace(piece, is_closed=True)
        return piece


def _goes_on(along: Floats, first: int, slack: float) -> bool:
    """Whether the rows after the first ones lie beyond them along a curve."""
    one, two = along[:first], along[first:]
    if one.mean() < two.mean():
        return bool(two.min() > one.max() - slack and two.max() > one.max())
    return bool(two.max() < one.min() + slack and two.min() < one.min())


def _without_doubles(pieces: list[Piece], reach: float) -> list[Piece]:
    """Without pieces that follow a longer one of their kind all along: strokes drawn twice."""
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda each: -each.length):
        if not any(_covers(longer, piece, reach) for longer in kept):
            kept.append(piece)
    return kept


def _covers(longer: Piece, piece: Piece, reach: float) -> bool:
    if longer.fit.is_line != piece.fit.is_line:
        return False
    gaps = np.linalg.norm(piece.at[:, None] - longer.at[None], axis=-1).min(axis=1)
    return bool((gaps < reach).mean() > 0.95)
