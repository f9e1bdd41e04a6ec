"""Polish curves against their strokes: least squares of distances, with ends that meet and lines that are level.

Lines are parametrized by their ends, circles by center and radius, arcs also by the angles of their ends. Each round
solves the linearized problem. Coordinates are pixels with y up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive

from .curves import Floats, angles_along
from .pieces import Piece
from .skeleton import Places

_ROUNDS, _AT_REST = 6, 1e-3
# Loose ends may be this many times farther apart than others that meet.
_FAR = 1.7
# Weight of conditions against a place of a stroke.
_HARD, _LEVEL, _ANCHOR = 30.0, 12.0, 0.35


@dataclass(slots=True)
class Curve:
    """A primitive while it is polished.

    Attributes:
        values: Its parameters.
        at: Places of its stroke.
        kind: line, circle, arc or point.
        construction: Whether it is dashed.
    """

    values: Floats
    at: Places
    kind: str
    construction: bool = False

    def end(self, number: int) -> Floats:
        """The position of an end."""
        if self.kind == "line":
            return self.values[2 * number : 2 * number + 2]
        x, y, r, *angles = self.values
        return np.array([x + r * math.cos(angles[number]), y + r * math.sin(angles[number])])

    def end_jacobian(self, number: int) -> Floats:
        """The derivative of an end, `2, parameter`."""
        out = np.zeros((2, len(self.values)))
        if self.kind == "line":
            out[:, 2 * number : 2 * number + 2] = np.eye(2)
            return out
        angle, r = self.values[3 + number], self.values[2]
        out[:, :2] = np.eye(2)
        out[:, 2] = math.cos(angle), math.sin(angle)
        out[:, 3 + number] = -r * math.sin(angle), r * math.cos(angle)
        return out

    @property
    def num_ends(self) -> int:
        return 2 if self.kind in ("line", "arc") else 0

    @property
    def length(self) -> float:
        if self.kind == "line":
            return float(math.dist(self.values[:2], self.values[2:]))
        if self.kind == "arc":
            return float(self.values[2] * abs(self.values[4] - self.values[3]))
        return float(TAU * self.values[2]) if self.kind == "circle" else 0.0

    def distance(self, at: Places) -> tuple[Floats, Floats]:
        """Signed distances of places, and their derivatives."""
        if self.kind == "line":
            a, b = self.values[:2], self.values[2:]
            d = b - a
            length = max(math.hypot(*d), 1e-9)
            normal = np.array([-d[1], d[0]]) / length
            t = ((at - a) @ d / length**2)[:, None]
            return (at - a) @ normal, np.hstack((-(1 - t) * normal, -t * normal))
        away = at - self.values[:2]
        reach = np.maximum(np.hypot(*away.T), 1e-9)
        out = np.zeros((len(at), len(self.values)))
        out[:, :2] = -away / reach[:, None]
        out[:, 2] = -1
        return reach - self.values[2], out

    def tangent(self, number: int) -> Floats:
        """The unit direction of growing arc length at an end."""
        if self.kind == "line":
            d = self.values[2:] - self.values[:2]
        else:
            angle, turn = self.values[3 + number], self.values[4] - self.values[3]
            d = math.copysign(1, turn) * np.array([-math.sin(angle), math.cos(angle)])
        return np.asarray(d / max(math.hypot(*d), 1e-9))

    def primitive(self) -> Primitive:
        """The primitive. Raises GeometryError if there is none."""
        v = [float(value) for value in self.values]
        if self.kind == "line":
            return Line((v[0], v[1]), (v[2], v[3]), self.construction)
        if self.kind == "circle":
            return Circle((v[0], v[1]), v[2], self.construction)
        if self.kind == "point":
            return Point((v[0], v[1]), self.construction)
        low, high = sorted(v[3:])
        return Arc((v[0], v[1]), v[2], low, min(high - low, TAU - 1e-6), self.construction)


def to_curve(piece: Piece) -> Curve:
    """The curve of a piece, with y up."""
    at = piece.at * (1, -1)
    fit = replace(piece.fit, center=piece.fit.center * (1, -1), direction=piece.fit.direction * (1, -1))
    if fit.is_line:
        along = (at - fit.center) @ fit.direction
        low, high = float(along.min()), float(along.max())
        ends = (low, high) if along[0] <= along[-1] else (high, low)
        values = np.concatenate([fit.center + end * fit.direction for end in ends])
        return Curve(values, at, "line", piece.is_dashed)
    if piece.is_closed:
        return Curve(np.array([*fit.center, fit.radius]), at, "circle", piece.is_dashed)
    angles = angles_along(fit, at)
    return Curve(np.array([*fit.center, fit.radius, angles[0], angles[-1]]), at, "arc", piece.is_dashed)


@dataclass(frozen=True, slots=True)
class Joint:
    """Ends of two curves that meet."""

    first: int
    first_end: int
    second: int
    second_end: int


@dataclass(frozen=True, slots=True)
class Touch:
    """An end of a curve that lies on another one."""

    curve: int
    end: int
    other: int


@dataclass(frozen=True, slots=True)
class Levels:
    """How far the ends of a line may differ in x or y where it is meant to be upright or level.

    Attributes:
        pixels: In pixels.
        share: As a share of the length of the line, if that is more.
    """

    pixels: float
    share: float


def find_joints(curves: Sequence[Curve], reach: float) -> tuple[list[Joint], list[Touch]]:
    """Ends that meet, the nearest first; then ends on the middle of a curve.

    An end meets at most at one place, and a curve that is short beside the reach does not collapse.
    """
    ends = [(k, e) for k, curve in enumerate(curves) for e in range(curve.num_ends)]
    if not ends:
        return [], []
    at = np.array([curves[k].end(e) for k, e in ends])
    own = np.array([min(reach, 0.45 * curves[k].length) for k, _ in ends])
    gap = np.linalg.norm(at[:, None] - at[None], axis=-1)
    i, j = np.nonzero(np.triu(gap < np.minimum(own[:, None], own[None]), 1))
    cluster = list(range(len(ends)))
    joints = []
    for n in np.argsort(gap[i, j], kind="stable"):
        a, b = int(i[n]), int(j[n])
        if cluster[a] == cluster[b]:
            continue
        members = [m for m in range(len(ends)) if cluster[m] in (cluster[a], cluster[b])]
        numbers = [ends[m][0] for m in members]
        if len(set(numbers)) < len(numbers) or gap[np.ix_(members, members)].max() > 1.4 * reach:
            continue
        joints.append(Joint(*ends[a], *ends[b]))
        old = cluster[b]
        cluster = [cluster[a] if each == old else each for each in cluster]
    joints += _far_joints(ends, gap, [m for m in range(len(ends)) if cluster.count(cluster[m]) == 1], own, reach)
    joined = {end for j in joints for end in ((j.first, j.first_end), (j.second, j.second_end))}
    touches = []
    for m, (k, e) in enumerate(ends):
        if (k, e) in joined:
            continue
        best, found = min(0.8 * reach, own[m]), None
        for other, curve in enumerate(curves):
            if other != k and curve.kind != "point":
                off = abs(float(curve.distance(at[m : m + 1])[0][0]))
                if off < best and _is_beside(curve, at[m], reach):
                    best, found = off, other
        if found is not None:
            touches.append(Touch(k, e, found))
    return joints, touches


def _far_joints(
    ends: Sequence[tuple[int, int]], gap: Floats, loose: Sequence[int], own: Floats, reach: float
) -> Iterator[Joint]:
    """Joints of loose ends that are each other's nearest: a drawing is rarely left open."""
    for m in loose:
        others = [n for n in loose if ends[n][0] != ends[m][0]]
        if not others:
            continue
        n = min(others, key=lambda other: gap[m, other])
        back = min((o for o in loose if ends[o][0] != ends[n][0]), key=lambda other: gap[n, other])
        if back == m < n and gap[m, n] < min(_FAR * reach, _FAR * own[m], _FAR * own[n]):
            yield Joint(*ends[m], *ends[n])


def _is_beside(curve: Curve, at: Floats, reach: float) -> bool:
    """Whether a place lies along a curve rather than beyond its ends."""
    if curve.kind == "circle":
        return True
    return float(np.linalg.norm(curve.at - at, axis=1).min()) < 1.5 * reach


def polish(curves: list[Curve], joints: list[Joint], touches: list[Touch], levels: Levels) -> list[Curve]:
    """Curves nearest to their strokes that meet at their joints.

    Args:
        curves: The curves.
        joints: Ends that meet.
        touches: Ends on other curves.
        levels: Which lines are upright or level.
    """
    curves = [replace(curve, values=curve.values.copy()) for curve in curves]
    anchors = [[curve.end(e) for e in range(curve.num_ends)] for curve in curves]
    axes = dict(_levels(curves, levels))
    for _ in range(_ROUNDS):
        system = _System(curves)
        for k, curve in enumerate(curves):
            _add_stroke(system, k, anchors[k])
            if k in axes:
                row, axis = np.zeros((1, 4)), axes[k]
                row[0, axis], row[0, 2 + axis] = -1, 1
                system.add([(k, row)], np.array([curve.values[2 + axis] - curve.values[axis]]), _LEVEL)
        for joint in joints:
            a, b = curves[joint.first], curves[joint.second]
            rows = [(joint.first, a.end_jacobian(joint.first_end)), (joint.second, -b.end_jacobian(joint.second_end))]
            system.add(rows, a.end(joint.first_end) - b.end(joint.second_end), _HARD)
        for touch in touches:
            at = curves[touch.curve].end(touch.end)
            residual, jacobian = curves[touch.other].distance(at[None])
            side = _normal(curves[touch.other], at)
            rows = [(touch.other, jacobian), (touch.curve, side[None] @ curves[touch.curve].end_jacobian(touch.end))]
            system.add(rows, residual, _HARD)
        if system.step() < _AT_REST:
            break
    return curves


class _System:
    """The normal equations of one round."""

    def __init__(self, curves: list[Curve]) -> None:
        self.curves = curves
        self.start = np.cumsum([0, *(len(curve.values) for curve in curves)])
        self.normal = np.zeros((self.start[-1], self.start[-1]))
        self.right = np.zeros(self.start[-1])

    def add(self, rows: Sequence[tuple[int, Floats]], residual: Floats, weight: float) -> None:
        """Add residuals with their derivatives by the parameters of some curves."""
        for a, ja in rows:
            here = slice(self.start[a], self.start[a + 1])
            self.right[here] -= weight**2 * ja.T @ residual
            for b, jb in rows:
                self.normal[here, self.start[b] : self.start[b + 1]] += weight**2 * ja.T @ jb

    def step(self) -> float:
        """Move the curves to the solution; the largest change of a parameter."""
        damping = 1e-6 * max(float(np.diag(self.normal).max(initial=0.0)), 1.0)
        step = np.linalg.solve(self.normal + damping * np.eye(len(self.normal)), self.right)
        for curve, low, high in zip(self.curves, self.start, self.start[1:], strict=False):
            change = step[low:high]
            if curve.kind in ("circle", "arc"):
                change[2] = max(change[2], -0.5 * curve.values[2])
            if curve.kind == "arc":
                change[3:] = np.clip(change[3:], -0.5, 0.5)
            curve.values += change
        return float(np.abs(step).max(initial=0.0))


def _add_stroke(system: _System, k: int, anchors: Sequence[Floats]) -> None:
    """The distances of a curve from its stroke, and weakly those of its ends along it."""
    curve = system.curves[k]
    if curve.kind == "point":
        system.add([(k, np.eye(2))], curve.values - curve.at[0], 1.0)
        return
    residual, jacobian = curve.distance(curve.at)
    system.add([(k, jacobian)], residual, 1.0)
    for e, anchor in enumerate(anchors):
        along = curve.tangent(e)
        system.add([(k, along[None] @ curve.end_jacobian(e))], np.array([along @ (curve.end(e) - anchor)]), _ANCHOR)


def _normal(curve: Curve, at: Floats) -> Floats:
    """The unit direction of growing signed distance."""
    if curve.kind == "line":
        d = curve.tangent(0)
        return np.array([-d[1], d[0]])
    away = at - curve.values[:2]
    return np.asarray(away / max(math.hypot(*away), 1e-9))


def _levels(curves: Sequence[Curve], levels: Levels) -> Iterator[tuple[int, int]]:
    """Lines that are meant to be upright (0: equal x) or level (1: equal y)."""
    for k, curve in enumerate(curves):
        if curve.kind != "line":
            continue
        off = np.abs(curve.values[2:] - curve.values[:2])
        axis = int(off.argmin())
        if off[axis] < max(levels.pixels, levels.share * off[1 - axis]) and off[axis] < 0.2 * off[1 - axis]:
            yield k, axis
