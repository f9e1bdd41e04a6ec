"""Curves in pixels that are fitted to strokes: a line, an arc or a circle; and the split of a stroke into them.

The cost of a curve is a description length: a price for its kind, plus its squared deviation from the stroke in units
of the noise, in proportion to the length of the stroke. A stroke is split where the sum is least (dynamic programming).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .skeleton import Places

Floats = NDArray[np.float64]

# A corner turns at least so far, in radians, over so far a reach both ways, as a share of the size.
_CORNER_REACH, _MIN_TURN, _MAX_CORNERS = 0.012, 0.35, 60


@dataclass(frozen=True, slots=True)
class Costs:
    """Prices of curves, and the noise.

    Attributes:
        size: The larger side of the drawing in pixels.
        noise: The deviation of a stroke from its curve in pixels.
        line: The price of a line.
        arc: The price of an arc or a circle.
        length: How many times a curve as long as the drawing counts its deviation.
        min_sagitta: The smallest height of an arc over its chord, as a share of the chord.
        min_radius: The smallest radius of an arc in pixels.
    """

    size: float
    noise: float
    line: float = 1.0
    arc: float = 1.5
    length: float = 12.0
    min_sagitta: float = 0.06
    min_radius: float = 0.0

    def deviation(self, length: float | Floats, mean_square: float | Floats) -> float | Floats:
        """The cost of a deviation."""
        return self.length * (length / self.size) * mean_square / self.noise**2


@dataclass(frozen=True, slots=True)
class Fit:
    """A curve that fits places.

    Attributes:
        center: The center of an arc or a circle, a place on a line.
        direction: The unit direction of a line; zero for others.
        radius: The radius; 0 for a line.
        mean_square: The mean squared distance of the places.
    """

    center: Floats
    direction: Floats
    radius: float
    mean_square: float

    @property
    def is_line(self) -> bool:
        return self.radius == 0

    def distance(self, at: Places) -> Floats:
        """Signed distances of places."""
        if self.is_line:
            d = at - self.center
            return np.asarray(d[:, 1] * self.direction[0] - d[:, 0] * self.direction[1])
        return np.asarray(np.hypot(*(at - self.center).T) - self.radius)


def fit_line(at: Places) -> Fit:
    """The line of least squared distances."""
    center = at.mean(axis=0)
    d = at - center
    values, vectors = np.linalg.eigh(d.T @ d)
    return Fit(center, vectors[:, 1], 0.0, max(0.0, float(values[0])) / len(at))


def fit_circle(at: Places, rounds: int = 4) -> Fit | None:
    """The circle of least squared distances: an algebraic fit, then Gauss-Newton steps."""
    if len(at) < 3:
        return None
    middle = at.mean(axis=0)
    d = at - middle
    scale = max(float(np.abs(d).max()), 1e-9)
    d = d / scale
    rows = np.column_stack((2 * d, np.ones(len(d))))
    solution, _, rank, _ = np.linalg.lstsq(rows, (d * d).sum(1), rcond=1e-9)
    if rank < 3:
        return None
    c, r = solution[:2], math.sqrt(max(solution[2] + solution[:2] @ solution[:2], 1e-12))
    for _ in range(rounds):
        away = d - c
        reach = np.maximum(np.hypot(*away.T), 1e-12)
        jacobian = np.column_stack((-away / reach[:, None], -np.ones(len(d))))
        step, _, rank, _ = np.linalg.lstsq(jacobian, -(reach - r), rcond=1e-9)
        if rank < 3 or np.abs(step).max() > 10 * r:
            break
        c, r = c + step[:2], r + step[2]
        if not 0 < r < 1e4:
            return None
    residual = np.hypot(*(d - c).T) - r
    return Fit(middle + scale * c, np.zeros(2), float(scale * r), float(scale**2 * (residual**2).mean()))


def angles_along(fit: Fit, at: Places) -> Floats:
    """The angles of places around the center of a circle, unwrapped along the path."""
    d = at - fit.center
    return np.asarray(np.unwrap(np.arctan2(d[:, 1], d[:, 0])))


def split(at: Places, costs: Costs) -> list[tuple[int, int, bool]]:
    """Where to split a path: for each curve, its first and last row, and whether it is an arc."""
    total = len(at)
    if total < 3:
        return [(0, total - 1, False)]
    along = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))))
    count = int(np.clip(along[-1] / (0.008 * costs.size), 2, 90)) + 1
    regular = np.searchsorted(along, np.linspace(0, along[-1], count)).clip(0, total - 1)
    regular[-1] = total - 1
    # Nodes of a long path are far apart, and a corner between two of them would be cut by a small piece.
    nodes = np.unique(np.concatenate((regular, _corners(at, max(3, round(_CORNER_REACH * costs.size))))))
    line, arc = _cost_matrices(at, along, nodes, costs)
    cost, is_arc = np.minimum(line, arc), arc < line
    best = np.full(len(nodes), np.inf)
    best[0], before = 0.0, np.zeros(len(nodes), np.int64)
    for j in range(1, len(nodes)):
        options = best[:j] + cost[:j, j]
        before[j] = int(options.argmin())
        best[j] = options[before[j]]
    found = []
    j = len(nodes) - 1
    while j:
        i = int(before[j])
        found.append((int(nodes[i]), int(nodes[j]), bool(is_arc[i, j])))
        j = i
    return found[::-1]


def _corners(at: Places, reach: int) -> NDArray[np.int64]:
    """The rows of a path where it turns most, as seen over `reach` rows both ways."""
    if len(at) < 2 * reach + 2:
        return np.zeros(0, np.int64)
    turn = turns(at, reach)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(turn, reach), 2 * reach + 1).max(axis=1)
    rows = np.flatnonzero((turn == around) & (turn > _MIN_TURN))
    return rows[np.argsort(-turn[rows])[:_MAX_CORNERS]] + reach


def turns(at: Places, reach: int) -> Floats:
    """How far a path turns, in radians, at each row but the first and the last `reach`, seen over so many rows."""
    middle = at[reach:-reach]
    before, after = middle - at[: -2 * reach], at[2 * reach :] - middle
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    return np.asarray(np.abs(np.arctan2(cross, (before * after).sum(1))))


def _cost_matrices(at: Places, along: Floats, nodes: NDArray[np.int64], costs: Costs) -> tuple[Floats, Floats]:
    """The cost of a line and of an arc from node i to node j, from sums of powers of the coordinates."""
    origin, scale = at.mean(axis=0), costs.size
    x, y = ((at - origin) / scale).T
    z = x * x + y * y
    powers = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, x * z, y * z, z * z])
    sums = np.concatenate((np.zeros((9, 1)), np.cumsum(powers, axis=1)), axis=1)
    i, j = np.triu_indices(len(nodes), 1)
    n, sx, sy, sxx, sxy, syy, sxz, syz, szz = sums[:, nodes[j] + 1] - sums[:, nodes[i]]
    length = along[nodes[j]] - along[nodes[i]]
    cxx, cxy, cyy = sxx - sx * sx / n, sxy - sx * sy / n, syy - sy * sy / n
    least = (cxx + cyy) / 2 - np.sqrt(((cxx - cyy) / 2) ** 2 + cxy**2)
    line_mean = scale**2 * np.maximum(least, 0) / n
    sz = sxx + syy
    # The algebraic circle minimizes the sum of (z − 2ax − 2by − c)².
    fxz, fyz, fzz = sxz - sx * sz / n, syz - sy * sz / n, szz - sz * sz / n
    det = cxx * cyy - cxy**2
    safe = np.where(det > 1e-14, det, 1.0)
    a2, b2 = (fxz * cyy - fyz * cxy) / safe, (fyz * cxx - fxz * cxy) / safe
    rest = np.maximum(fzz - a2 * fxz - b2 * fyz, 0) / n
    a, b = a2 / 2, b2 / 2
    r2 = np.maximum((sz - 2 * a * sx - 2 * b * sy) / n + a * a + b * b, 1e-9)
    arc_mean = scale**2 * rest / (4 * r2)
    radius = np.sqrt(r2)
    chord = np.hypot(*(at[nodes[j]] - at[nodes[i]]).T) / scale
    turn = (length / scale) / radius
    sagitta = radius * (1 - np.cos(np.minimum(turn, 2 * math.pi) / 2))
    is_valid = (det > 1e-14) & (sagitta > costs.min_sagitta * chord) & (turn < 2.02 * math.pi) & (radius < 3)
    is_valid &= radius * scale > costs.min_radius
    is_valid &= (sagitta * scale > 1.5 * costs.noise) & (nodes[j] - nodes[i] >= 4)
    shape = (len(nodes), len(nodes))
    line, arc = np.full(shape, np.inf), np.full(shape, np.inf)
    line[i, j] = costs.line + costs.deviation(length, line_mean)
    arc[i, j] = np.where(is_valid, costs.arc + costs.deviation(length, arc_mean), np.inf)
    return line, arc


def sharpest(at: Places, reach: int) -> int:
    """The row of a closed path where it turns most within `reach` rows."""
    closed = at[:-1]
    before, after = np.roll(closed, reach, axis=0) - closed, np.roll(closed, -reach, axis=0) - closed
    cross = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    dot = (before * after).sum(1)
    return int(np.arctan2(cross, -dot).argmax())
