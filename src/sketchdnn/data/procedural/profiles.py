"""Outlines that are extruded or turned: brackets, beams, shafts, teeth. Each function draws one part of its family."""

from __future__ import annotations

import math
from itertools import accumulate

from sketchdnn.geometry import Circle, Line, Primitive, Vec

from .dice import Dice, Part
from .shapes import center_lines, holes, outline


def l_bracket(dice: Dice) -> Part:
    """Two legs, the inner corner filleted, screw holes along the legs."""
    width, height = dice.mm(40, 110), dice.mm(40, 110)
    thick = dice.mm(0.15 * min(width, height), 0.35 * min(width, height))
    corners = [(0.0, 0.0), (width, 0.0), (width, thick), (thick, thick), (thick, height), (0.0, height)]
    bend = dice.mm(0.2 * thick, 0.8 * thick)
    tip = dice.pick(0.0, 0.0, 0.4 * thick)
    heel = dice.pick(0.0, bend)
    solid = outline(corners, [heel, 0.0, tip, bend, tip, 0.0])
    places = [((thick + bend + width) / 2, thick / 2), (thick / 2, (thick + bend + height) / 2)]
    if dice.chance(0.7):
        solid += holes(places, dice.mm(0.12 * thick, 0.3 * thick))
    aids: list[Primitive] = [
        Line((0.0, thick / 2), (width, thick / 2), construction=True),
        Line((thick / 2, 0.0), (thick / 2, height), construction=True),
    ]
    return Part(solid, aids, [(0.0, 0.0), corners[3], *places])


def t_bracket(dice: Dice) -> Part:
    """A stem under a bar, symmetric about its axis."""
    width, height = dice.mm(50, 120), dice.mm(40, 100)
    bar, stem = dice.mm(0.15 * height, 0.35 * height), dice.mm(0.15 * width, 0.35 * width)
    half = _mirrored_corners(
        [(stem / 2, 0.0), (stem / 2, height - bar), (width / 2, height - bar), (width / 2, height)]
    )
    short = min(bar, (width - stem) / 2)
    bend, tip = dice.pick(0.0, 0.3, 0.6) * short, dice.pick(0.0, 0.3) * short
    solid = outline(half, [0.0, bend, tip, 0.0, 0.0, tip, bend, 0.0])
    places = [(-0.36 * width, height - bar / 2), (0.36 * width, height - bar / 2), (0.0, 0.25 * height)]
    if dice.chance(0.6):
        solid += holes(places[: dice.count(2, 3)], dice.mm(0.12 * min(bar, stem), 0.3 * min(bar, stem)))
    return Part(solid, [_axis(height)], [(0.0, 0.0), *places])


def u_channel(dice: Dice) -> Part:
    """Two walls on a floor, the inside filleted."""
    width, height = dice.mm(40, 110), dice.mm(30, 90)
    wall = dice.mm(0.1 * width, 0.26 * width)
    floor = dice.mm(0.12 * height, 0.4 * height)
    half = _mirrored_corners(
        [(width / 2, 0.0), (width / 2, height), (width / 2 - wall, height), (width / 2 - wall, floor)]
    )
    bend = dice.pick(0.0, 0.4, 0.9) * min(width / 2 - wall, height - floor)
    outside = dice.pick(0.0, 0.0, 0.6) * floor
    solid = outline(half, [outside, 0.0, 0.0, bend, bend, 0.0, 0.0, outside])
    places = [(0.0, floor / 2), (-(width - wall) / 2, 0.75 * height), ((width - wall) / 2, 0.75 * height)]
    if dice.chance(0.5):
        solid += holes(places[1:], dice.mm(0.12 * wall, 0.3 * wall))
    return Part(solid, [_axis(height)], [(0.0, 0.0), *places])


def i_beam(dice: Dice) -> Part:
    """The section of a rolled beam."""
    width, height = dice.mm(40, 100), dice.mm(50, 120)
    web, rim = dice.mm(0.1 * width, 0.3 * width), dice.mm(0.1 * height, 0.25 * height)
    h = height / 2
    right = [
        (width / 2, -h),
        (width / 2, rim - h),
        (web / 2, rim - h),
        (web / 2, h - rim),
        (width / 2, h - rim),
        (width / 2, h),
    ]
    bend = dice.pick(0.0, 0.35, 0.7) * min((width - web) / 2, h - rim)
    fillets = [0.0, 0.0, bend, bend, 0.0, 0.0]
    solid = outline(_mirrored_corners(right), fillets + fillets)
    return Part(solid, center_lines(width, height), [(0.0, 0.0)])


def z_bracket(dice: Dice) -> Part:
    """Two opposite legs on a web; turned half around it is itself."""
    leg, height = dice.mm(25, 60), dice.mm(40, 90)
    thick = dice.mm(0.12 * height, 0.28 * height)
    h = height / 2
    right: list[Vec] = [(leg, -h), (leg, thick - h), (thick / 2, thick - h), (thick / 2, h)]
    corners = right + [(-x, -y) for x, y in right]
    inner, outer = dice.pick((0.0, 0.0), (0.3, 0.0), (0.4, 1.4))
    bends = [0.0, 0.0, inner * thick, outer * thick]
    solid = outline(corners, bends + bends)
    places = [((leg + thick / 2) / 2, thick / 2 - h), (-(leg + thick / 2) / 2, h - thick / 2)]
    if dice.chance(0.5):
        solid += holes(places, dice.mm(0.12 * thick, 0.3 * thick))
    aids: list[Primitive] = [Line(places[0], places[1], construction=True)]
    return Part(solid, aids, [(0.0, 0.0), *places])


def hat_section(dice: Dice) -> Part:
    """Bent sheet: two brims and a crown, the sides upright or sloping."""
    crown, height = dice.mm(30, 80), dice.mm(20, 60)
    brim, thick = dice.mm(15, 35), dice.mm(3, 8)
    lean = dice.pick(0.0, 0.0, 0.4) * height
    foot = crown / 2 + lean
    slope = lean / height
    shift = thick * math.hypot(1, slope)  # the sheet is as thick where it slopes
    right = [
        (foot - shift, 0.0),
        (foot + brim, 0.0),
        (foot + brim, thick),
        (foot - slope * thick, thick),
        (crown / 2, height),
    ]
    inside = (foot - shift - slope * (height - thick), height - thick)
    corners = _mirrored_corners([inside, *right])
    return Part(outline(corners), [_axis(height)], [(0.0, 0.0), (0.0, height)])


def cross(dice: Dice) -> Part:
    """A plus with arms of one width, a hole in the middle and perhaps one in each arm."""
    long, wide = dice.mm(30, 60), dice.mm(30, 60)
    arm = dice.mm(0.2 * min(long, wide), 0.55 * min(long, wide)) / 2
    quarter = [(long, -arm), (long, arm), (arm, arm)]
    right = [*quarter, (arm, wide)]
    corners = [
        *right,
        (-arm, wide),
        (-arm, arm),
        (-long, arm),
        (-long, -arm),
        (-arm, -arm),
        (-arm, -wide),
        (arm, -wide),
        (arm, -arm),
    ]
    places = [(0.75 * long, 0.0), (0.0, 0.75 * wide), (-0.75 * long, 0.0), (0.0, -0.75 * wide)]
    solid = outline(corners)
    if dice.chance(0.5):
        solid += holes(places, dice.mm(0.25 * arm, 0.6 * arm))
    elif dice.chance(0.7):
        solid.append(Circle((0.0, 0.0), dice.mm(0.4 * arm, 1.0 * arm)))
    return Part(solid, center_lines(2 * long, 2 * wide), [(0.0, 0.0), *places])


def gusset(dice: Dice) -> Part:
    """A stiffening triangle, its tips cut square, with holes to save weight."""
    width, height = dice.mm(40, 110), dice.mm(40, 110)
    tip = dice.mm(0.1 * min(width, height), 0.25 * min(width, height))
    notch = dice.pick(0.0, 0.5 * tip)
    heel: list[Vec] = [(0.0, notch), (notch, 0.0)] if notch else [(0.0, 0.0)]
    solid = outline([*heel, (width, 0.0), (width, tip), (tip, height), (0.0, height)])
    inner = (width * height) / (width + height + math.hypot(width, height))  # the radius of the circle inside
    solid.append(Circle((inner, inner), dice.mm(0.3 * inner, 0.75 * inner)))
    places = [(width - 1.1 * tip, 0.5 * tip), (0.5 * tip, height - 1.1 * tip)]
    if dice.chance(0.5):
        solid += holes(places, dice.mm(0.12 * tip, 0.3 * tip))
    aids: list[Primitive] = [
        Line((0.0, 0.0), (inner, inner), construction=True),
        Circle((inner, inner), inner, construction=True),
    ]
    return Part(solid, aids, [(0.0, 0.0), (inner, inner)])


def stepped_shaft(dice: Dice) -> Part:
    """Half of a turned part, solid or with a bore; then its axis is drawn as construction."""
    lengths = [dice.mm(8, 40) for _ in range(dice.count(3, 6))]
    stops = list(accumulate(lengths, initial=0.0))
    bore = dice.pick(0.0, dice.mm(2, 10))
    radii = [bore + dice.mm(6, 30) for _ in lengths]
    for k in range(1, len(radii)):
        if radii[k] == radii[k - 1]:
            radii[k] += 2.0
    corners: list[Vec] = [(stops[-1], bore)]
    for k in reversed(range(len(radii))):
        corners += [(stops[k + 1], radii[k]), (stops[k], radii[k])]
    corners.append((0.0, bore))
    axis: list[Primitive] = [Line((-0.08 * stops[-1], 0.0), (1.08 * stops[-1], 0.0), construction=True)]
    return Part(outline(corners), axis if bore else [], [(0.0, 0.0), (stops[-1], 0.0)])


def symmetric_profile(dice: Dice) -> Part:
    """A free outline of steps and slopes, mirrored about an axis."""
    y, right = 0.0, []
    x = dice.mm(10, 50)
    for _ in range(dice.count(2, 3)):
        right.append((x, y))
        y += dice.mm(10, 40)
        right.append((x, y))
        step = dice.mm(4, 20) * dice.pick(-1, 1)
        x = x + step if x + step > 4 else x + abs(step)
        y += dice.pick(0.0, 0.0, dice.mm(4, 20))
    return Part(outline(_mirrored_corners(right)), [_axis(y)], [(0.0, 0.0), (0.0, y / 2)])


def comb(dice: Dice) -> Part:
    """A heat sink: fins of even pitch on a base."""
    fins = dice.count(2, 4)
    fin, gap = dice.mm(3, 12), dice.mm(4, 14)
    base, height = dice.mm(4, 15), dice.mm(15, 60)
    width = fins * fin + (fins - 1) * gap
    corners: list[Vec] = [(-width / 2, 0.0), (width / 2, 0.0)]
    for k in reversed(range(fins)):
        left = -width / 2 + k * (fin + gap)
        corners += [(left + fin, base + height), (left, base + height)]
        if k:
            corners += [(left, base), (left - gap, base)]
    return Part(outline(corners), [_axis(base + height)], [(0.0, 0.0)])


def _mirrored_corners(right: list[Vec]) -> list[Vec]:
    """The whole outline from its right half, which is named from bottom to top."""
    return right + [(-x, y) for x, y in reversed(right)]


def _axis(height: float) -> Line:
    """A vertical construction line through a profile that stands on the origin."""
    return Line((0.0, -0.08 * height), (0.0, 1.08 * height), construction=True)
