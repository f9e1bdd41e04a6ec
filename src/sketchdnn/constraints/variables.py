"""A sketch as a vector of free numbers, and the places and radii that follow from them, with their derivatives.

Everything is measured in the sketch's size. An arc's angles count as lengths along it, so that one step of any number
moves something by about as much as one step of any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Arc, Circle, GeometryError, Line, Part, Point, Primitive, Ref, bounds

Floats = NDArray[np.float64]

# Places outside the sketch that constraints may name: the origin, and a step from it along each axis.
_OUTSIDE = {Part.ORIGIN: (0.0, 0.0), Part.X_AXIS: (1.0, 0.0), Part.Y_AXIS: (0.0, 1.0)}


class Variables:
    """The numbers of some primitives. Place k is at columns 2k and 2k + 1 of the features; radii have a column each."""

    def __init__(self, primitives: Sequence[Primitive]) -> None:
        self.primitives = tuple(primitives)
        box = bounds(self.primitives)
        self.scale = box.size or 1.0
        self.shift = np.array(box.center)
        self.places: list[tuple[int, Part]] = []
        self.place: dict[tuple[int | None, Part], int] = {}
        self.radius: dict[int, int] = {}
        self.first: list[int] = []
        start: list[float] = []
        links: list[tuple[int, int]] = []  # features that are a number themselves: (feature, number)
        self._arc_ends: list[tuple[int, int, int, float]] = []  # place, radius' number, angle's number, length to angle
        radii: list[tuple[int, int]] = []
        for i, p in enumerate(self.primitives):
            n = len(start)
            self.first.append(n)
            match p:
                case Line():
                    start += [*self._in(p.start), *self._in(p.end)]
                    self._add(i, Part.START, n, links)
                    self._add(i, Part.END, n + 2, links)
                case Point():
                    start += self._in(p.at)
                    self._add(i, Part.POINT, n, links)
                case Circle() | Arc():
                    start += [*self._in(p.center), p.radius / self.scale]
                    self._add(i, Part.CENTER, n, links)
                    radii.append((i, n + 2))
                    if isinstance(p, Arc):
                        size = p.radius / self.scale
                        start += [p.start_angle * size, p.end_angle * size]
                        for part, angle in ((Part.START, n + 3), (Part.END, n + 4)):
                            self._arc_ends.append((len(self.places), n + 2, angle, 1 / size))
                            self._add(i, part, n, links)
        self.x = np.array(start)
        self.count = len(self.places)
        self.place |= {(None, part): self.count + k for k, part in enumerate(_OUTSIDE)}
        outside = (np.array(list(_OUTSIDE.values())) - self.shift / self.scale).ravel()
        base = 2 * (self.count + 3)
        self.num_features = base + len(radii)
        self._linear = np.zeros((self.num_features, len(start)))
        self._constant = np.zeros(self.num_features)
        self._constant[2 * self.count : base] = outside
        for k, (i, number) in enumerate(radii):
            self.radius[i] = base + k
            links.append((base + k, number))
        if links:
            rows, columns = np.array(links).T
            self._linear[rows, columns] = 1.0
        ends = np.array(self._arc_ends).reshape(-1, 4)
        self._end_x = 2 * ends[:, 0].astype(int)
        self._end_radius, self._end_angle, self._end_rate = ends[:, 1].astype(int), ends[:, 2].astype(int), ends[:, 3]

    def _in(self, at: tuple[float, float]) -> list[float]:
        return [(at[0] - float(self.shift[0])) / self.scale, (at[1] - float(self.shift[1])) / self.scale]

    def _add(self, primitive: int, part: Part, number: int, links: list[tuple[int, int]]) -> None:
        k = len(self.places)
        self.places.append((primitive, part))
        self.place[primitive, part] = k
        links += [(2 * k, number), (2 * k + 1, number + 1)]

    def features(self, x: Floats) -> Floats:
        """All places and radii."""
        f: Floats = self._linear @ x + self._constant
        radius, angle = x[self._end_radius], x[self._end_angle] * self._end_rate
        f[self._end_x] += radius * np.cos(angle)
        f[self._end_x + 1] += radius * np.sin(angle)
        return f

    def derivatives(self, x: Floats) -> Floats:
        """How each feature changes with each number."""
        rows = self._linear.copy()
        radius, angle = x[self._end_radius], x[self._end_angle] * self._end_rate
        cos, sin = np.cos(angle), np.sin(angle)
        rows[self._end_x, self._end_radius] = cos
        rows[self._end_x + 1, self._end_radius] = sin
        rows[self._end_x, self._end_angle] = -radius * sin * self._end_rate
        rows[self._end_x + 1, self._end_angle] = radius * cos * self._end_rate
        return rows

    def moves(self, x: Floats) -> Floats:
        """How far each place is from where it was, and by how much each radius has grown."""
        change = self.features(x) - self.features(self.x)
        places = np.hypot(*change[: 2 * self.count].reshape(-1, 2).T)
        return np.concatenate([places, change[2 * (self.count + 3) :]])

    def sizes(self, x: Floats) -> dict[int, float]:
        """The length of each line, the radius of each circle, the smaller of both of each arc."""
        sizes: dict[int, float] = {}
        for i, (p, n) in enumerate(zip(self.primitives, self.first, strict=True)):
            match p:
                case Line():
                    sizes[i] = float(np.hypot(x[n + 2] - x[n], x[n + 3] - x[n + 1]))
                case Circle():
                    sizes[i] = float(x[n + 2])
                case Arc():
                    sizes[i] = float(min(x[n + 2], x[n + 4] - x[n + 3]))
        return sizes

    def at(self, ref: Ref) -> int | None:
        """The place that a reference means, if it means one."""
        if ref.primitive is not None and ref.part is Part.WHOLE and isinstance(self.primitives[ref.primitive], Point):
            return self.place[ref.primitive, Part.POINT]
        if ref.part in (Part.X_AXIS, Part.Y_AXIS):
            return None
        return self.place.get((ref.primitive, ref.part))

    def ends(self, ref: Ref) -> tuple[int, int] | None:
        """Two places on a line or axis."""
        if ref.part in (Part.X_AXIS, Part.Y_AXIS):
            return self.place[None, Part.ORIGIN], self.place[None, ref.part]
        if ref.primitive is None or ref.part is not Part.WHOLE or not isinstance(self.primitives[ref.primitive], Line):
            return None
        return self.place[ref.primitive, Part.START], self.place[ref.primitive, Part.END]

    def round(self, ref: Ref) -> tuple[int, int] | None:
        """The center's place and the radius' feature of a circle or arc."""
        if ref.primitive is None or ref.part is not Part.WHOLE or ref.primitive not in self.radius:
            return None
        return self.place[ref.primitive, Part.CENTER], self.radius[ref.primitive]

    def rebuilt(self, x: Floats) -> tuple[Primitive, ...]:
        """The primitives for other numbers; those that did not change stay exactly as they are."""
        return tuple(self._rebuild(i, x) for i in range(len(self.primitives)))

    def _rebuild(self, i: int, x: Floats) -> Primitive:
        p, n = self.primitives[i], self.first[i]
        mine = slice(n, self.first[i + 1] if i + 1 < len(self.first) else len(x))
        if np.array_equal(x[mine], self.x[mine]):
            return p
        out = (x[n : n + 4] * self.scale).tolist()
        a, b = float(self.shift[0]), float(self.shift[1])
        match p:
            case Line():
                return replace(p, start=(out[0] + a, out[1] + b), end=(out[2] + a, out[3] + b))
            case Point():
                return replace(p, at=(out[0] + a, out[1] + b))
            case Circle():
                return replace(p, center=(out[0] + a, out[1] + b), radius=out[2])
            case Arc():
                rate = self.scale / p.radius
                begin, end = float(x[n + 3]) * rate, float(x[n + 4]) * rate
                if not 0 < end - begin < TAU:
                    raise GeometryError("an arc turned inside out")
                return replace(p, center=(out[0] + a, out[1] + b), radius=out[2], start_angle=begin, sweep=end - begin)
