"""Outlines that are extruded or turned: brackets, beams, shafts, teeth. Each function designs a part of its family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from sketchdnn.geometry import Circle, Line, Primitive, Vec

from .shapes import ORIGIN, DesignRng, PartDesign, center_lines, holes, outline, perhaps_holes


def l_bracket(rng: DesignRng) -> PartDesign:
    """Two legs, the inner corner filleted, screw holes along the legs."""
    width, height = rng.length(40, 110), rng.length(40, 110)
    thick = rng.share(min(width, height), 0.15, 0.35)
    corners = [ORIGIN, (width, 0.0), (width, thick), (thick, thick), (thick, height), (0.0, height)]
    bend = rng.share(thick, 0.2, 0.8)
    tip = rng.choice(0.0, 0.0, 0.4 * thick)
    heel = rng.choice(0.0, bend)
    solid = outline(corners, [heel, 0.0, tip, bend, tip, 0.0])
    points = [((thick + bend + width) / 2, thick / 2), (thick / 2, (thick + bend + height) / 2)]
    solid += perhaps_holes(rng, 0.7, points, 0.12 * thick, 0.3 * thick)
    axes = [Line((0.0, thick / 2), (width, thick / 2)), Line((thick / 2, 0.0), (thick / 2, height))]
    return PartDesign(solid, axes, [ORIGIN, corners[3], *points])


def t_bracket(rng: DesignRng) -> PartDesign:
    """A stem under a bar, symmetric about its axis."""
    width, height = rng.length(50, 120), rng.length(40, 100)
    bar, stem = rng.share(height, 0.15, 0.35), rng.share(width, 0.15, 0.35)
    short = min(bar, (width - stem) / 2)
    bend, tip = rng.choice(0.0, 0.3, 0.6) * short, rng.choice(0.0, 0.3) * short
    right = [(stem / 2, 0.0), (stem / 2, height - bar), (width / 2, height - bar), (width / 2, height)]
    solid = _symmetric_outline(right, [0.0, bend, tip, 0.0])
    points = [(-0.36 * width, height - bar / 2), (0.36 * width, height - bar / 2), (0.0, 0.25 * height)]
    if rng.chance(0.6):
        solid += holes(points[: rng.integer(2, 3)], rng.share(min(bar, stem), 0.12, 0.3))
    return PartDesign(solid, [_axis(height)], [ORIGIN, *points])


def u_channel(rng: DesignRng) -> PartDesign:
    """Two walls on a floor, the inside filleted."""
    width, height = rng.length(40, 110), rng.length(30, 90)
    wall = rng.share(width, 0.1, 0.26)
    floor = rng.share(height, 0.12, 0.4)
    bend = rng.choice(0.0, 0.4, 0.9) * min(width / 2 - wall, height - floor)
    outside = rng.choice(0.0, 0.0, 0.6) * floor
    right = [(width / 2, 0.0), (width / 2, height), (width / 2 - wall, height), (width / 2 - wall, floor)]
    solid = _symmetric_outline(right, [outside, 0.0, 0.0, bend])
    points = [(0.0, floor / 2), (-(width - wall) / 2, 0.75 * height), ((width - wall) / 2, 0.75 * height)]
    solid += perhaps_holes(rng, 0.5, points[1:], 0.12 * wall, 0.3 * wall)
    return PartDesign(solid, [_axis(height)], [ORIGIN, *points])


def i_beam(rng: DesignRng) -> PartDesign:
    """The section of a rolled beam."""
    width, height = rng.length(40, 100), rng.length(50, 120)
    web, rim = rng.share(width, 0.1, 0.3), rng.share(height, 0.1, 0.25)
    h = height / 2
    lower = [(width / 2, -h), (width / 2, rim - h), (web / 2, rim - h)]
    right = lower + [(x, -y) for x, y in reversed(lower)]
    bend = rng.choice(0.0, 0.35, 0.7) * min((width - web) / 2, h - rim)
    solid = _symmetric_outline(right, [0.0, 0.0, bend, bend, 0.0, 0.0])
    return PartDesign(solid, center_lines(width, height), [ORIGIN])


def z_bracket(rng: DesignRng) -> PartDesign:
    """Two opposite legs on a web; turned half around it is itself."""
    leg, height = rng.length(25, 60), rng.length(40, 90)
    thick = rng.share(height, 0.12, 0.28)
    h = height / 2
    right: list[Vec] = [(leg, -h), (leg, thick - h), (thick / 2, thick - h), (thick / 2, h)]
    inner, outer = rng.choice(ORIGIN, (0.3, 0.0), (0.4, 1.4))
    solid = outline(_rotated_corners(right), 2 * [0.0, 0.0, inner * thick, outer * thick])
    points = [((leg + thick / 2) / 2, thick / 2 - h), (-(leg + thick / 2) / 2, h - thick / 2)]
    solid += perhaps_holes(rng, 0.5, points, 0.12 * thick, 0.3 * thick)
    return PartDesign(solid, [Line(points[0], points[1])], [ORIGIN, *points])


def hat_section(rng: DesignRng) -> PartDesign:
    """Bent sheet: two brims and a crown, the sides upright or sloping."""
    crown, height = rng.length(30, 80), rng.length(20, 60)
    brim, thick = rng.length(15, 35), rng.length(3, 8)
    lean = rng.choice(0.0, 0.0, 0.4) * height
    foot = crown / 2 + lean
    slope = lean / height
    shift = thick * math.hypot(1, slope)  # the sheet is as thick where it slopes
    edge = foot + brim
    inner = [(foot - shift - slope * (height - thick), height - thick), (foot - shift, 0.0)]
    outer = [(edge, 0.0), (edge, thick), (foot - slope * thick, thick), (crown / 2, height)]
    return PartDesign(_symmetric_outline(inner + outer), [_axis(height)], [ORIGIN, (0.0, height)])


def cross(rng: DesignRng) -> PartDesign:
    """A plus with arms of one width, a hole in the middle and perhaps one in each arm."""
    long, wide = rng.length(30, 60), rng.length(30, 60)
    arm = rng.share(min(long, wide), 0.2, 0.55) / 2
    half = [(long, -arm), (long, arm), (arm, arm), (arm, wide), (-arm, wide), (-arm, arm)]
    points = [(0.75 * long, 0.0), (0.0, 0.75 * wide), (-0.75 * long, 0.0), (0.0, -0.75 * wide)]
    solid = outline(_rotated_corners(half))
    if rng.chance(0.5):
        solid += holes(points, rng.share(arm, 0.25, 0.6))
    elif rng.chance(0.7):
        solid.append(Circle(ORIGIN, rng.share(arm, 0.4, 1.0)))
    return PartDesign(solid, center_lines(2 * long, 2 * wide), [ORIGIN, *points])


def gusset(rng: DesignRng) -> PartDesign:
    """A stiffening triangle, its tips cut square, with holes to save weight."""
    width, height = rng.length(40, 110), rng.length(40, 110)
    tip = rng.share(min(width, height), 0.1, 0.25)
    notch = rng.choice(0.0, 0.5 * tip)
    heel: list[Vec] = [(0.0, notch), (notch, 0.0)] if notch else [ORIGIN]
    solid = outline([*heel, (width, 0.0), (width, tip), (tip, height), (0.0, height)])
    inner = (width * height) / (width + height + math.hypot(width, height))  # the radius of the circle inside
    solid.append(Circle((inner, inner), rng.share(inner, 0.3, 0.75)))
    points = [(width - 1.1 * tip, 0.5 * tip), (0.5 * tip, height - 1.1 * tip)]
    solid += perhaps_holes(rng, 0.5, points, 0.12 * tip, 0.3 * tip)
    return PartDesign(solid, [Line(ORIGIN, (inner, inner)), Circle((inner, inner), inner)], [ORIGIN, (inner, inner)])


def stepped_shaft(rng: DesignRng) -> PartDesign:
    """Half of a turned part, solid or with a bore; with a bore, the axis is construction."""
    lengths = [rng.length(8, 40) for _ in range(rng.integer(3, 6))]
    stops = list(accumulate(lengths, initial=0.0))
    bore = rng.choice(0.0, rng.length(2, 10))
    radii = [bore + rng.length(6, 30) for _ in lengths]
    for k in range(1, len(radii)):
        radii[k] += 2.0 * (radii[k] == radii[k - 1])
    corners: list[Vec] = [(stops[-1], bore)]
    for k in reversed(range(len(radii))):
        corners += [(stops[k + 1], radii[k]), (stops[k], radii[k])]
    corners.append((0.0, bore))
    axis: list[Primitive] = [Line((-0.08 * stops[-1], 0.0), (1.08 * stops[-1], 0.0))]
    return PartDesign(outline(corners), axis if bore else [], [ORIGIN, (stops[-1], 0.0)])


def symmetric_profile(rng: DesignRng) -> PartDesign:
    """A free outline of steps and slopes, mirrored about an axis."""
    y, right = 0.0, []
    x = rng.length(10, 50)
    for _ in range(rng.integer(2, 3)):
        right.append((x, y))
        y += rng.length(10, 40)
        right.append((x, y))
        step = rng.length(4, 20) * rng.choice(-1, 1)
        x += step if x + step > 4 else abs(step)
        y += rng.choice(0.0, 0.0, rng.length(4, 20))
    return PartDesign(_symmetric_outline(right), [_axis(y)], [ORIGIN, (0.0, y / 2)])


def comb(rng: DesignRng) -> PartDesign:
    """A heat sink: fins of even pitch on a base."""
    fins = rng.integer(2, 4)
    fin, gap = rng.length(3, 12), rng.length(4, 14)
    base, height = rng.length(4, 15), rng.length(15, 60)
    width = fins * fin + (fins - 1) * gap
    corners: list[Vec] = [(-width / 2, 0.0), (width / 2, 0.0)]
    for k in reversed(range(fins)):
        left = -width / 2 + k * (fin + gap)
        corners += [(left + fin, base + height), (left, base + height)]
        if k:
            corners += [(left, base), (left - gap, base)]
    return PartDesign(outline(corners), [_axis(base + height)], [ORIGIN])


def _symmetric_outline(right: list[Vec], fillets: Sequence[float] = ()) -> list[Primitive]:
    """An outline from the corners and fillets of its right half, from bottom to top."""
    return outline(right + [(-x, y) for x, y in reversed(right)], [*fillets, *reversed(fillets)] or 0.0)


def _rotated_corners(half: list[Vec]) -> list[Vec]:
    """The whole outline from its first half, turned half around the origin."""
    return half + [(-x, -y) for x, y in half]


def _axis(height: float) -> Line:
    """A vertical construction line through a profile that stands on the origin."""
    return Line((0.0, -0.08 * height), (0.0, 1.08 * height))
