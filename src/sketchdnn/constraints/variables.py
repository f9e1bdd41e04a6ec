"""A sketch as numbers: the coordinates of its places and its radii, which constraints relate.

Everything is measured in the sketch's size, from the middle of its box. An arc is its center, its ends and its radius:
two numbers more than it has freedom, so each end lying on the circle is an equation of its own (`equations.bodies`). So
what moves is always a place or a radius, places that are one are numbers that are one, and "nearest" means what it
says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Part, Point, Primitive, Ref, Vec

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Places outside the sketch that constraints may name: the origin, and a step from it along each axis.
OUTSIDE = {Part.ORIGIN: (0.0, 0.0), Part.X_AXIS: (1.0, 0.0), Part.Y_AXIS: (0.0, 1.0)}


@lru_cache(maxsize=4)
def variables_of(primitives: tuple[Primitive, ...]) -> Variables:
    """The numbers of some primitives; those asked for last are kept, as one sketch is looked at several times."""
    return Variables(primitives)


class Variables:
    """The features of some primitives: place k is at 2k and 2k + 1, then come places outside, then radii."""

    def __init__(self, primitives: Sequence[Primitive]) -> None:
        self.primitives = tuple(primitives)
        self.places: list[tuple[int, Part]] = []
        self.lines: list[int] = []
        self.arcs: list[int] = []
        self.first: list[int] = []  # each primitive's first place
        at: list[tuple[float, float]] = []
        radii: dict[int, float] = {}
        for i, p in enumerate(self.primitives):
            self.first.append(len(at))
            match p:
                case Line():
                    self.lines.append(i)
                    at += (p.start, p.end)
                    self.places += ((i, Part.START), (i, Part.END))
                case Point():
                    at.append(p.at)
                    self.places.append((i, Part.POINT))
                case Circle():
                    at.append(p.center)
                    self.places.append((i, Part.CENTER))
                    radii[i] = p.radius
                case Arc():
                    self.arcs.append(i)
                    at += (p.center, p.start, p.end)
                    self.places += ((i, Part.CENTER), (i, Part.START), (i, Part.END))
                    radii[i] = p.radius
        low, high = _box(self.primitives)
        self.shift = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        self.scale = max(high[0] - low[0], high[1] - low[1]) or 1.0
        self.count = len(at)
        self.place: dict[tuple[int | None, Part], int] = {of: k for k, of in enumerate(self.places)}
        self.place |= {(None, part): self.count + k for k, part in enumerate(OUTSIDE)}
        base = 2 * (self.count + len(OUTSIDE))
        self.num_features = base + len(radii)
        self.radius = {i: base + k for k, i in enumerate(radii)}
        self.f = np.empty(self.num_features)
        self.f[: 2 * self.count] = ((np.array(at).reshape(-1, 2) - self.shift) / self.scale).ravel()
        self.f[2 * self.count : base] = (np.array(list(OUTSIDE.values())) - np.array(self.shift) / self.scale).ravel()
        self.f[base:] = [r / self.scale for r in radii.values()]
        self.rounds = list(radii)
        self.f.flags.writeable = False
        # Which features are each primitive's own, filled up with one that is none.
        self.rows = np.full((len(self.primitives), 7), self.num_features)
        for i in range(len(self.primitives)):
            own = self.features(i)
            self.rows[i, : len(own)] = own
        self.tips = 2 * np.array(
            [self.first[i] for i in self.lines] + [self.first[i] + 1 for i in self.arcs], dtype=int
        )

    def features(self, primitive: int) -> list[int]:
        """Which features are a primitive's own."""
        k = self.first[primitive]
        ends = 2 * (self.first[primitive + 1] if primitive + 1 < len(self.first) else self.count)
        radius = self.radius.get(primitive)
        return [*range(2 * k, ends), *(() if radius is None else (radius,))]

    def moves(self, f: Floats) -> Floats:
        """How far each place is from where it was drawn, and by how much each radius has grown."""
        change = f - self.f
        places = np.hypot(change[0 : 2 * self.count : 2], change[1 : 2 * self.count : 2])
        return np.concatenate([places, change[2 * (self.count + len(OUTSIDE)) :]])

    def shares(self, f: Floats) -> Floats:
        """What is left of each line, then of each arc's chord, along where it was drawn, then of each radius."""
        k, was = self.tips, self.f
        x, y = was[k + 2] - was[k], was[k + 3] - was[k + 1]
        along = ((f[k + 2] - f[k]) * x + (f[k + 3] - f[k + 1]) * y) / np.maximum(x * x + y * y, 1e-300)
        radii = slice(2 * (self.count + len(OUTSIDE)), None)
        return np.concatenate([along, f[radii] / was[radii]])

    def at(self, ref: Ref) -> int | None:
        """The place that a reference means, if it means one."""
        if ref.primitive is not None and ref.part is Part.WHOLE:
            return self.place.get((ref.primitive, Part.POINT))
        if ref.part is Part.X_AXIS or ref.part is Part.Y_AXIS:
            return None
        return self.place.get((ref.primitive, ref.part))

    def middle(self, ref: Ref) -> int | None:
        """The place that a reference means, of a circle or arc its center."""
        place = self.at(ref)
        if place is None and ref.part is Part.WHOLE:
            return self.place.get((ref.primitive, Part.CENTER))
        return place

    def ends(self, ref: Ref) -> tuple[int, int] | None:
        """Two places on a line or axis."""
        if ref.part is Part.X_AXIS or ref.part is Part.Y_AXIS:
            return self.place[None, Part.ORIGIN], self.place[None, ref.part]
        if ref.primitive is None or ref.part is not Part.WHOLE or not isinstance(self.primitives[ref.primitive], Line):
            return None
        return self.first[ref.primitive], self.first[ref.primitive] + 1

    def round(self, ref: Ref) -> tuple[int, int] | None:
        """The center's place and the radius' feature of a circle or arc."""
        if ref.primitive is None or ref.part is not Part.WHOLE or ref.primitive not in self.radius:
            return None
        return self.first[ref.primitive], self.radius[ref.primitive]

    def rebuilt(self, f: Floats) -> tuple[Primitive, ...]:
        """The primitives for other features; those that did not change stay exactly as they are."""
        changed = np.append(f != self.f, False)[self.rows].any(axis=1).tolist()
        out = f.tolist()
        return tuple(self._rebuild(i, out) if changed[i] else p for i, p in enumerate(self.primitives))

    def _rebuild(self, i: int, f: list[float]) -> Primitive:
        p, k = self.primitives[i], 2 * self.first[i]
        a, b = self.shift
        first = (f[k] * self.scale + a, f[k + 1] * self.scale + b)
        match p:
            case Line():
                return replace(p, start=first, end=(f[k + 2] * self.scale + a, f[k + 3] * self.scale + b))
            case Point():
                return replace(p, at=first)
            case Circle():
                return replace(p, center=first, radius=f[self.radius[i]] * self.scale)
            case Arc():
                begin = math.atan2(f[k + 3] - f[k + 1], f[k + 2] - f[k])
                end = math.atan2(f[k + 5] - f[k + 1], f[k + 4] - f[k])
                grown = math.remainder(end - begin - p.sweep, TAU)
                if not 0 < p.sweep + grown < TAU:
                    raise GeometryError("an arc turned inside out")
                radius = f[self.radius[i]] * self.scale
                return replace(p, center=first, radius=radius, start_angle=begin, sweep=p.sweep + grown)


def _box(primitives: Sequence[Primitive]) -> tuple[Vec, Vec]:
    """As `geometry.bounds`, which is made for many primitives and slow for a few."""
    xs: list[float] = []
    ys: list[float] = []
    for p in primitives:
        match p:
            case Line():
                xs += (p.start[0], p.end[0])
                ys += (p.start[1], p.end[1])
            case Point():
                xs.append(p.at[0])
                ys.append(p.at[1])
            case Circle():
                xs += (p.center[0] - p.radius, p.center[0] + p.radius)
                ys += (p.center[1] - p.radius, p.center[1] + p.radius)
            case Arc():
                xs += (p.start[0], p.end[0])
                ys += (p.start[1], p.end[1])
                for quarter, (x, y) in enumerate(((1, 0), (0, 1), (-1, 0), (0, -1))):
                    if (quarter * TAU / 4 - p.start_angle) % TAU <= p.sweep:
                        xs.append(p.center[0] + x * p.radius)
                        ys.append(p.center[1] + y * p.radius)
    return (min(xs), min(ys)), (max(xs), max(ys))
