"""The ways files and models write an arc, and the exact road from each to `Arc` and back.

| form | used by |
|---|---|
| center, radius, two angles | our JSON, DXF ARC, FreeCAD, SketchGraphs |
| ends and signed radius | the paper and its authors: counter-clockwise, + is the minor arc, − the major one |
| ends and sweep | our representation, HPSketch |
| three points | construction by hand |
| ends and bulge = tan(sweep / 4) | DXF polylines; negative runs clockwise |
"""

from __future__ import annotations

import math
import sys

from sketchdnn.errors import GeometryError

from .primitives import TAU, Arc, Vec


def arc_from_angles(
    center: Vec, radius: float, start_angle: float, end_angle: float, *, construction: bool = False
) -> Arc:
    """The counter-clockwise arc between two angles, whichever turn each is written in.

    >>> arc_from_angles((0, 0), 1, math.pi / 2, 0).sweep == 3 * math.pi / 2
    True
    """
    if not (math.isfinite(start_angle) and math.isfinite(end_angle)):
        raise GeometryError("an arc has an angle that is not a number")
    return Arc(center, radius, start_angle, (end_angle - start_angle) % TAU, construction)


def arc_from_sweep(start: Vec, end: Vec, sweep: float, *, construction: bool = False) -> Arc:
    """The arc from `start` to `end` that turns through `sweep`; a negative sweep runs clockwise."""
    if sweep < 0:
        start, end, sweep = end, start, -sweep
    chord = math.dist(start, end)
    half_sine = math.sin(sweep / 2) if 0 < sweep < TAU else 0.0
    if not 0 < chord < math.inf or half_sine <= 0:
        raise GeometryError(f"no arc turns through {sweep} between ends {chord} apart")
    # From the middle of the chord the center lies to its left, by a distance that turns negative past the semicircle.
    # Written as chord/2 · cot(sweep/2) so that nothing is divided by a vanishing cosine.
    height = chord / 2 * math.cos(sweep / 2) / half_sine
    return _arc_on_chord(start, end, chord / (2 * half_sine), height, sweep, construction)


def arc_from_signed_radius(start: Vec, end: Vec, radius: float, *, construction: bool = False) -> Arc:
    """The paper's form: counter-clockwise from `start` to `end`; + the minor arc, − the major arc of that radius.

    Close to a semicircle this form says little: a sweep within 1e-7 of π comes back only to that accuracy, while a
    semicircle itself is kept, whichever way its radius was rounded.
    """
    chord = math.dist(start, end)
    depth = abs(radius) - chord / 2
    rounding = 4 * sys.float_info.epsilon * max(map(abs, (*start, *end, radius)))
    if not 0 < chord < math.inf or not -rounding <= depth < math.inf:
        raise GeometryError(f"no arc of radius {abs(radius)} joins ends {chord} apart")
    height = math.sqrt(depth * (abs(radius) + chord / 2)) if depth > rounding else 0.0
    height = math.copysign(height, radius)
    return _arc_on_chord(start, end, abs(radius), height, 2 * math.atan2(chord / 2, height), construction)


def arc_from_bulge(start: Vec, end: Vec, bulge: float, *, construction: bool = False) -> Arc:
    """The DXF polyline form: bulge = tan(sweep / 4), negative for a clockwise arc."""
    return arc_from_sweep(start, end, 4 * math.atan(bulge), construction=construction)


def arc_from_points(start: Vec, through: Vec, end: Vec, *, construction: bool = False) -> Arc:
    """The arc with these ends (in either order) that passes through a third point."""
    ax, ay = start[0] - through[0], start[1] - through[1]
    bx, by = end[0] - through[0], end[1] - through[1]
    cross = ax * by - ay * bx
    a, b, c = math.hypot(ax, ay), math.hypot(bx, by), math.dist(start, end)
    if not all(map(math.isfinite, (a, b, c, cross))):
        raise GeometryError("an arc has a coordinate that is not a number, or too large")
    if cross == 0:
        raise GeometryError(f"no arc passes through {start}, {through} and {end}: they are on one line")
    # The inscribed angle at `through` is half of the arc that does *not* contain it.
    inscribed = math.atan2(abs(cross), ax * bx + ay * by)
    if cross > 0:  # seen from `through` the ends turn left: start → through → end runs clockwise
        start, end = end, start
    return arc_from_sweep(start, end, TAU - 2 * inscribed, construction=construction)


def signed_radius(arc: Arc) -> float:
    """The paper's scalar κ: the radius, negative when the arc is longer than a semicircle."""
    return arc.radius if arc.sweep <= math.pi else -arc.radius


def bulge(arc: Arc) -> float:
    """tan(sweep / 4), the DXF polyline scalar; always positive since our arcs run counter-clockwise."""
    return math.tan(arc.sweep / 4)


def _arc_on_chord(start: Vec, end: Vec, radius: float, height: float, sweep: float, construction: bool) -> Arc:
    """The arc whose center lies `height` to the left of the middle of its chord."""
    chord = math.dist(start, end)
    ux, uy = (end[0] - start[0]) / chord, (end[1] - start[1]) / chord
    center = ((start[0] + end[0]) / 2 - height * uy, (start[1] + end[1]) / 2 + height * ux)
    start_angle = math.atan2(start[1] - center[1], start[0] - center[0])
    return Arc(center, radius, start_angle, sweep, construction)
