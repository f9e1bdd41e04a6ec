"""Round parts: flanges, discs, hubs, rings and what has teeth. Each function draws one part of its family."""

from __future__ import annotations

import math

from sketchdnn.geometry import TAU, Arc, Circle, Line, Primitive, arc_from_sweep

from .dice import Dice, Part
from .shapes import around, center_lines, curved_slot, holes, outline, polar


def flange(dice: Dice) -> Part:
    """A disc with a bore and screws on a pitch circle."""
    outer = dice.mm(25, 80)
    pitch = dice.mm(0.62 * outer, 0.84 * outer)
    count = dice.count(3, 8)
    room = min(outer - pitch, pitch * math.sin(math.pi / count))
    radius = dice.mm(0.25 * room, 0.65 * room)
    bore = dice.mm(0.25 * pitch, 0.9 * (pitch - radius))
    centers = around(count, pitch, dice.pick(0.0, TAU / 4, math.pi / count))
    solid: list[Primitive] = [Circle((0.0, 0.0), outer), Circle((0.0, 0.0), bore), *holes(centers, radius)]
    if dice.chance(0.3) and 0.9 * (pitch - radius) > 1.25 * bore:
        solid.append(Circle((0.0, 0.0), dice.mm(1.12 * bore, 0.95 * (pitch - radius))))
    aids: list[Primitive] = [Circle((0.0, 0.0), pitch, construction=True), *center_lines(2 * outer, 2 * outer)]
    return Part(solid, aids, [(0.0, 0.0), *centers])


def slotted_disc(dice: Dice) -> Part:
    """A disc with curved slots around its bore, as an adjustable mount has."""
    outer = dice.mm(30, 80)
    pitch = dice.mm(0.6 * outer, 0.76 * outer)
    radius = dice.mm(0.06 * outer, 0.12 * outer)
    count = dice.pick(2, 2, 3)
    sweep = TAU / count * dice.mm(0.3, 0.65, step=0.05)
    phase = dice.pick(0.0, TAU / 4) - sweep / 2
    solid: list[Primitive] = [Circle((0.0, 0.0), outer), Circle((0.0, 0.0), dice.mm(0.2 * outer, 0.42 * outer))]
    for k in range(count):
        solid += curved_slot(pitch, radius, phase + TAU * k / count, sweep)
    if count == 2 and dice.chance(0.6):
        solid += holes(around(2, pitch, phase + sweep / 2 + math.pi / 2), radius)
    aids: list[Primitive] = [Circle((0.0, 0.0), pitch, construction=True), *center_lines(2 * outer, 2 * outer)]
    return Part(solid, aids, [(0.0, 0.0), polar(pitch, phase), polar(pitch, phase + sweep)])


def washer(dice: Dice) -> Part:
    """Circles around one center."""
    outer = dice.mm(10, 60)
    solid: list[Primitive] = [Circle((0.0, 0.0), outer), Circle((0.0, 0.0), dice.mm(0.3 * outer, 0.8 * outer))]
    aids: list[Primitive] = center_lines(2 * outer, 2 * outer)
    aids += [Line((0.0, 0.0), polar(outer, TAU / 8), construction=True)]
    return Part(solid, aids, [(0.0, 0.0), *around(4, outer)])


def polygon(dice: Dice) -> Part:
    """A regular polygon in its construction circle, bored."""
    sides, radius = dice.count(3, 8), dice.mm(15, 60)
    inner = radius * math.cos(math.pi / sides)
    corners = around(sides, radius, dice.pick(0.0, TAU / 4, math.pi / sides))
    solid = outline(corners, dice.pick(0.0, 0.2) * inner if sides <= 6 else 0.0)
    bore = dice.mm(0.25 * inner, 0.8 * inner)
    solid.append(Circle((0.0, 0.0), bore))
    aids: list[Primitive] = [
        Circle((0.0, 0.0), radius, construction=True),
        Circle((0.0, 0.0), inner, construction=True),
    ]
    return Part(solid, [*aids, *center_lines(2 * radius, 2 * radius)], [(0.0, 0.0), *corners])


def cog(dice: Dice) -> Part:
    """Teeth with straight flanks between an outer and a root circle."""
    teeth, outer = dice.pick(3, 4), dice.mm(25, 70)
    root = dice.mm(0.62 * outer, 0.85 * outer)
    pitch = TAU / teeth
    tip, foot = (pitch * dice.mm(low, high, step=0.01) for low, high in ((0.2, 0.38), (0.42, 0.62)))
    solid: list[Primitive] = []
    for middle in (TAU / 4 + k * pitch for k in range(teeth)):
        solid += [
            Line(polar(root, middle - foot / 2), polar(outer, middle - tip / 2)),
            Arc((0.0, 0.0), outer, middle - tip / 2, tip),
            Line(polar(outer, middle + tip / 2), polar(root, middle + foot / 2)),
            Arc((0.0, 0.0), root, middle + foot / 2, pitch - foot),
        ]
    if teeth == 3:
        solid.append(Circle((0.0, 0.0), dice.mm(0.2 * root, 0.75 * root)))
    aids: list[Primitive] = [Circle((0.0, 0.0), (outer + root) / 2, construction=True)]
    return Part(solid, aids, [(0.0, 0.0)])


def ratchet(dice: Dice) -> Part:
    """Saw teeth, or a star when they lean to neither side, around a bore."""
    teeth, outer = dice.count(4, 7), dice.mm(25, 70)
    root = dice.mm(0.55 * outer, 0.85 * outer)
    lean = dice.pick(0.5, 0.5, 0.12, 0.25) * TAU / teeth
    corners = [
        place for k in range(teeth) for place in (polar(outer, k * TAU / teeth), polar(root, k * TAU / teeth + lean))
    ]
    solid = outline(corners)
    solid.append(Circle((0.0, 0.0), dice.mm(0.15 * root, 0.6 * root * math.cos(math.pi / teeth))))
    aids: list[Primitive] = [Circle((0.0, 0.0), r, construction=True) for r in (outer, root)]
    return Part(solid, aids, [(0.0, 0.0)])


def knob(dice: Dice) -> Part:
    """A hand wheel: the rim runs in scallops, arcs out and arcs in."""
    lobes, rim = dice.count(3, 7), dice.mm(20, 60)
    pitch = TAU / lobes
    land = pitch * dice.mm(0.4, 0.65, step=0.01)  # what is left of the rim between two scallops
    depth = dice.mm(1.2, 3.1, step=0.1)
    solid: list[Primitive] = []
    for start in (k * pitch for k in range(lobes)):
        solid.append(Arc((0.0, 0.0), rim, start, land))
        solid.append(arc_from_sweep(polar(rim, start + pitch), polar(rim, start + land), depth))
    bore = dice.mm(0.1 * rim, 0.25 * rim)
    solid.append(Circle((0.0, 0.0), bore))
    aids: list[Primitive] = [Circle((0.0, 0.0), (rim + bore) / 2, construction=True), *center_lines(2 * rim, 2 * rim)]
    return Part(solid, aids, [(0.0, 0.0)])


def keyed_hub(dice: Dice) -> Part:
    """A hub whose bore has a keyway, with screws around it."""
    outer = dice.mm(25, 60)
    bore = dice.mm(0.25 * outer, 0.5 * outer)
    half = dice.mm(0.15 * bore, 0.4 * bore)
    top = bore + dice.mm(0.15 * bore, 0.4 * bore)
    shoulder = math.asin(half / bore)
    left, right = polar(bore, TAU / 4 + shoulder), polar(bore, TAU / 4 - shoulder)
    solid: list[Primitive] = [
        Circle((0.0, 0.0), outer),
        Arc((0.0, 0.0), bore, TAU / 4 + shoulder, TAU - 2 * shoulder),
        Line(right, (right[0], top)),
        Line((right[0], top), (left[0], top)),
        Line((left[0], top), left),
    ]
    return _screwed(dice, solid, outer, top)


def d_hub(dice: Dice) -> Part:
    """A hub for a shaft with one flat or two."""
    outer = dice.mm(25, 60)
    bore = dice.mm(0.25 * outer, 0.55 * outer)
    half = math.acos(dice.mm(0.5, 0.85, step=0.01))  # half of the angle that a flat takes from the bore
    flats = dice.pick(1, 2)
    solid: list[Primitive] = [Circle((0.0, 0.0), outer)]
    for middle in (TAU / 4 + k * TAU / flats for k in range(flats)):
        solid.append(Line(polar(bore, middle - half), polar(bore, middle + half)))
        solid.append(Arc((0.0, 0.0), bore, middle + half, TAU / flats - 2 * half))
    return _screwed(dice, solid, outer, bore)


def tab_washer(dice: Dice) -> Part:
    """A ring with one, two or three square tabs on its rim."""
    rim = dice.mm(15, 45)
    tabs, reach = dice.count(1, 3), rim + dice.mm(0.2 * rim, 0.7 * rim)
    half = dice.mm(0.15 * rim, 0.4 * rim)
    shoulder = math.asin(half / rim)
    solid: list[Primitive] = []
    for middle in (TAU / 4 + k * TAU / tabs for k in range(tabs)):
        tip = [polar(half, middle - TAU / 4, polar(reach, middle)), polar(half, middle + TAU / 4, polar(reach, middle))]
        solid += [
            Line(polar(rim, middle - shoulder), tip[0]),
            Line(tip[0], tip[1]),
            Line(tip[1], polar(rim, middle + shoulder)),
            Arc((0.0, 0.0), rim, middle + shoulder, TAU / tabs - 2 * shoulder),
        ]
    solid.append(Circle((0.0, 0.0), dice.mm(0.3 * rim, 0.8 * rim)))
    aids: list[Primitive] = [*center_lines(2 * reach, 2 * reach), Circle((0.0, 0.0), 1.1 * reach, construction=True)]
    return Part(solid, aids, [(0.0, 0.0)])


def retaining_ring(dice: Dice) -> Part:
    """An open ring with round ends and a hole in each for the pliers."""
    pitch = dice.mm(20, 60)
    radius = dice.mm(0.1 * pitch, 0.25 * pitch)
    gap = 2 * math.asin(radius / pitch) + dice.mm(0.2, 1.6, step=0.05)
    start, sweep = TAU / 4 + gap / 2, TAU - gap
    ends = [polar(pitch, start), polar(pitch, start + sweep)]
    solid = curved_slot(pitch, radius, start, sweep) + holes(ends, dice.mm(0.3 * radius, 0.6 * radius))
    aids: list[Primitive] = [
        Circle((0.0, 0.0), pitch, construction=True),
        *(Line((0.0, 0.0), end, construction=True) for end in ends),
        Line((0.0, -1.15 * pitch), (0.0, 1.15 * pitch), construction=True),
    ]
    return Part(solid, aids, [(0.0, 0.0), *ends])


def _screwed(dice: Dice, solid: list[Primitive], outer: float, inner: float) -> Part:
    """Screws on a pitch circle halfway between what is inside and the rim."""
    pitch = (outer + inner) / 2
    centers = around(dice.pick(2, 3, 4, 6), pitch, dice.pick(0.0, TAU / 4))
    solid += holes(centers, dice.mm(0.12 * (outer - inner), 0.3 * (outer - inner)))
    aids: list[Primitive] = [Circle((0.0, 0.0), pitch, construction=True), *center_lines(2 * outer, 2 * outer)]
    return Part(solid, aids, [(0.0, 0.0), *centers])
