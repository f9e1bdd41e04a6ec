"""How well a traced sketch agrees with the one that was drawn: primitives, tokens, distances and pixels.

Coordinates are quantized to 64 levels over the box from −1 to 1 that every original fills. Several sketches look the
same in a picture: two lines in a row, or one line twice. `visible` gives the sketch that a picture can show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from sketchdnn.drawing import PRECISE, draw
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Point, Primitive, Sketch, Vec
from sketchdnn.representation import encode

Floats = NDArray[np.float64]

LEVELS = 64
# A matched primitive has every parameter within so many levels.
MAX_LEVELS = 5
PIXELS = 128
# Curves that are nearer than this, where the larger side is 2, look the same.
_SAME = 0.004
_STEP = 2.0 / PIXELS


class Agreement(NamedTuple):
    """The scores of one traced sketch.

    Attributes:
        hits: Primitives that match one of the original.
        truth: Primitives of the original.
        found: Primitives of the result.
        flags: Matched primitives with the same construction flag.
        tokens: Tokens of the original that the result has exactly.
        all_tokens: Tokens of the original.
        chamfer: Mean distance of curves both ways, in pixels of 128.
        mse: Mean squared difference of the pictures, 128 by 128.
    """

    hits: int
    truth: int
    found: int
    flags: int
    tokens: int
    all_tokens: int
    chamfer: float
    mse: float

    @property
    def f1(self) -> float:
        return 2 * self.hits / max(1, self.truth + self.found)


def parameters(p: Primitive) -> list[Floats]:
    """The parameters of a primitive, in each order that means the same.

    A line has two ends, a circle center and radius, an arc start, middle and end, a point its position.
    """
    match p:
        case Line(start, end):
            return [np.array([*start, *end]), np.array([*end, *start])]
        case Circle(center, radius):
            return [np.array([*center, radius])]
        case Arc():
            return [np.array([*p.start, *p.mid, *p.end]), np.array([*p.end, *p.mid, *p.start])]
        case Point(at):
            return [np.array(at, float)]


def levels(values: Floats) -> Floats:
    """Values from −1 to 1 on 64 levels, which go on beyond."""
    return np.asarray(np.round((values + 1) / 2 * (LEVELS - 1)))


class Match(NamedTuple):
    """A primitive of the original and one of the result; whether start and end are swapped."""

    truth: int
    found: int
    is_turned: bool


def match(truth: Sketch, found: Sketch) -> list[Match]:
    """Which primitives of a result are those of the original: same kind, every parameter within 5 levels."""
    own, other = _leveled(truth), _leveled(found)
    distance = np.full((len(own), len(other)), np.inf)
    turned = np.zeros(distance.shape, bool)
    for i, (kind, values) in enumerate(own):
        for j, (other_kind, others) in enumerate(other):
            if kind is other_kind:
                off = [float(np.abs(values[0] - v).max()) for v in others]
                distance[i, j], turned[i, j] = min(off), int(np.argmin(off)) == 1
    fits = distance <= MAX_LEVELS
    if not fits.any():
        return []
    pairs = zip(*linear_sum_assignment(np.where(fits, distance, 1e6)), strict=True)
    return [Match(int(i), int(j), bool(turned[i, j])) for i, j in pairs if fits[i, j]]


def compare(truth: Sketch, found: Sketch) -> Agreement:
    """The scores of a result. Both sketches are in the coordinates of the original, the larger side from −1 to 1."""
    own, other = _leveled(truth), _leveled(found)
    tokens = np.zeros((len(own), len(other)))
    for i, (kind, values) in enumerate(own):
        for j, (other_kind, others) in enumerate(other):
            tokens[i, j] = truth.primitives[i].construction == found.primitives[j].construction
            if kind is other_kind:
                tokens[i, j] += 1 + max(int((values[0] == v).sum()) for v in others)
    pairs = match(truth, found)
    flags = sum(truth.primitives[p.truth].construction == found.primitives[p.found].construction for p in pairs)
    i, j = linear_sum_assignment(-tokens)
    all_tokens = sum(2 + len(values[0]) for _, values in own)
    exact = int(tokens[i, j].sum())
    chamfer = _chamfer(truth, found)
    return Agreement(len(pairs), len(own), len(other), flags, exact, all_tokens, chamfer, _mse(truth, found))


def _leveled(sketch: Sketch) -> list[tuple[Kind, list[Floats]]]:
    return [(p.kind, [levels(values) for values in parameters(p)]) for p in sketch]


def places(sketch: Sketch) -> Floats:
    """Places along all curves at steps of at most a pixel."""
    found = []
    for p in sketch:
        if isinstance(p, Point):
            found.append(np.array([p.at]))
        else:
            steps = np.linspace(0, 1, max(2, math.ceil(p.length / _STEP) + 1))
            found.append(np.array([p.at(float(f)) for f in steps]))
    return np.concatenate(found) if found else np.zeros((1, 2))


def _chamfer(truth: Sketch, found: Sketch) -> float:
    a, b = places(truth), places(found)
    there, back = cKDTree(b).query(a)[0].mean(), cKDTree(a).query(b)[0].mean()
    return float(there + back) / 2 * PIXELS / 2


def _mse(truth: Sketch, found: Sketch) -> float:
    pictures = [_picture(s) for s in (truth, found)]
    return float(((pictures[0] - pictures[1]) ** 2).mean())


def _picture(sketch: Sketch) -> torch.Tensor:
    try:
        rows = encode([sketch], max_primitives=max(1, len(sketch)))
    except GeometryError:
        return torch.ones(PIXELS, PIXELS)
    tensors = (torch.from_numpy(rows.kind.astype(np.int64)), torch.from_numpy(rows.construction))
    pictures = draw(*tensors, torch.from_numpy(rows.params), PRECISE, torch.Generator().manual_seed(0))
    return pictures.gray[0]


def visible(sketch: Sketch) -> Sketch:
    """The sketch that a picture shows: lines in a row and arcs of one circle are one, and nothing is drawn twice."""
    primitives = list(sketch.primitives)
    merged = True
    while merged:
        merged = False
        for i in range(len(primitives)):
            for j in range(i + 1, len(primitives)):
                union = _union(primitives[i], primitives[j])
                if union is not None:
                    primitives[i] = union
                    del primitives[j]
                    merged = True
                    break
            if merged:
                break
    return Sketch(tuple(primitives))


def _union(p: Primitive, q: Primitive) -> Primitive | None:
    """What two primitives look like if they look like one."""
    if isinstance(p, Point) and isinstance(q, Point):
        return p if math.dist(p.at, q.at) < _SAME else None
    if p.construction != q.construction:
        return None
    if isinstance(p, Line) and isinstance(q, Line):
        return _line_union(p, q)
    if isinstance(p, Circle | Arc) and isinstance(q, Circle | Arc):
        if math.dist(p.center, q.center) > _SAME or abs(p.radius - q.radius) > _SAME:
            return None
        if isinstance(p, Circle) or isinstance(q, Circle):
            return p if isinstance(p, Circle) else q
        return _arc_union(p, q)
    return None


def _line_union(p: Line, q: Line) -> Line | None:
    if q.length > p.length:
        p, q = q, p
    d = (np.array(p.end) - p.start) / p.length
    ends = np.array([q.start, q.end]) - p.start
    if np.abs(ends @ np.array([-d[1], d[0]])).max() > _SAME:
        return None
    along = np.sort(ends @ d)
    if along[0] > p.length + _SAME or along[1] < -_SAME:
        return None
    low, high = min(0.0, float(along[0])), max(p.length, float(along[1]))

    def at(s: float) -> Vec:
        return (p.start[0] + s * float(d[0]), p.start[1] + s * float(d[1]))

    return Line(at(low), at(high), p.construction)


def _arc_union(p: Arc, q: Arc) -> Arc | Circle | None:
    slack = _SAME / p.radius
    for a, b in ((p, q), (q, p)):
        after = (b.start_angle - a.start_angle) % TAU
        if after > TAU - slack:
            after -= TAU
        if after <= a.sweep + slack:
            sweep = max(a.sweep, after + b.sweep)
            if sweep >= TAU - slack:
                return Circle(a.center, a.radius, a.construction)
            return Arc(a.center, a.radius, a.start_angle + min(after, 0.0), sweep - min(after, 0.0), a.construction)
    return None


def transformed(sketch: Sketch, matrix: Floats) -> Sketch:
    """A sketch mapped by a matrix that is close to a similarity; circles stay circles."""

    def point(p: Sequence[float]) -> Vec:
        x, y, w = matrix @ np.array([p[0], p[1], 1.0])
        return (float(x / w), float(y / w))

    found: list[Primitive] = []
    for p in sketch:
        try:
            match p:
                case Line(start, end):
                    found.append(Line(point(start), point(end), p.construction))
                case Point(at):
                    found.append(Point(point(at), p.construction))
                case Circle(center, radius):
                    x, y = center
                    rim = [point((x + radius * a, y + radius * b)) for a, b in ((1, 0), (0, 1), (-1, 0), (0, -1))]
                    size = (math.dist(rim[0], rim[2]) + math.dist(rim[1], rim[3])) / 4
                    found.append(Circle(point(center), size, p.construction))
                case Arc():
                    found.append(_arc_through(point(p.start), point(p.mid), point(p.end), p.construction))
        except (GeometryError, np.linalg.LinAlgError):
            continue
    return Sketch(tuple(found))


def _arc_through(a: Vec, b: Vec, c: Vec, construction: bool) -> Arc:
    rows = 2 * np.array([np.subtract(b, a), np.subtract(c, a)])
    sides = np.array([np.dot(b, b) - np.dot(a, a), np.dot(c, c) - np.dot(a, a)])
    x, y = np.linalg.solve(rows, sides).tolist()
    (ux, uy), (vx, vy) = np.subtract(b, a), np.subtract(c, a)
    if ux * vy - uy * vx < 0:
        a, c = c, a
    low, high = (math.atan2(p[1] - y, p[0] - x) for p in (a, c))
    return Arc((x, y), math.dist((x, y), a), low, (high - low) % TAU, construction)
