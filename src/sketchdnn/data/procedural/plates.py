"""Flat parts with holes: plates and links. Each function draws one part of its family, about 100 mm large."""

from __future__ import annotations

import math

from sketchdnn.geometry import TAU, Arc, Circle, Line, Primitive, Vec

from .dice import Dice, Part
from .shapes import (
    around,
    belt,
    center_lines,
    chamfered,
    holes,
    outline,
    polar,
    rectangle,
    slot,
)


def plate(dice: Dice) -> Part:
    """A rectangle, its corners sharp, rounded or cut, with a hole near each and perhaps something in the middle."""
    width = dice.mm(60, 160)
    height = dice.mm(30, min(width, 110))
    inset = dice.mm(0.14 * height, 0.26 * height)
    radius = dice.mm(0.25 * inset, 0.55 * inset)
    centers = rectangle(width - 2 * inset, height - 2 * inset)
    solid = [*_rim(dice, width, height, inset), *holes(centers, radius)]
    pitch: list[Primitive] = [
        Line(a, b, construction=True) for a, b in zip(centers, [*centers[1:], centers[0]], strict=True)
    ]
    clear = height / 2 - inset  # from the middle to the lines that join the holes
    if dice.chance(0.5):
        solid.append(Circle((0.0, 0.0), dice.mm(0.3 * clear, 0.9 * clear)))
    elif dice.chance(0.4):
        reach = dice.mm(0.1 * width, 0.25 * width)
        solid += slot((-reach, 0.0), (reach, 0.0), dice.mm(0.2 * clear, 0.6 * clear))
    aids = center_lines(width, height) if dice.chance(0.6) else pitch
    return Part(solid, aids, [(0.0, 0.0), *centers])


def row_plate(dice: Dice) -> Part:
    """A bar with a row of equal holes, or two rows."""
    count, rows = dice.pick((2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (2, 2), (3, 2), (4, 2))
    spacing = dice.mm(14, 30)
    width = count * spacing + dice.mm(0, spacing)
    height = rows * dice.mm(12, 45)
    radius = dice.mm(0.12 * min(spacing, height / rows), 0.36 * min(spacing, height / rows))
    columns = [(k - (count - 1) / 2) * spacing for k in range(count)]
    levels = [0.0] if rows == 1 else [-height / 4, height / 4]
    centers = [(x, y) for y in levels for x in columns]
    rim = _rim(dice, width, height, 0.2 * min(width, height))
    aids: list[Primitive] = [Line((-0.55 * width, y), (0.55 * width, y), construction=True) for y in levels]
    return Part([*rim, *holes(centers, radius)], aids, [(0.0, 0.0), *centers])


def slotted_plate(dice: Dice) -> Part:
    """A plate with one or two slots, and screw holes where there is room."""
    width = dice.mm(70, 150)
    height = dice.mm(36, 0.8 * width)
    two = dice.chance(0.5)
    radius = dice.mm(0.05 * height, 0.11 * height)
    reach = dice.mm(0.15 * width, 0.28 * width)
    level = dice.mm(0.18 * height, 0.28 * height) if two else 0.0
    solid = outline(rectangle(width, height), dice.pick(0.0, 0.0, 0.1 * height) if two else 0.0)
    for y in [-level, level] if two else [0.0]:
        solid += slot((-reach, y), (reach, y), radius)
    screws: list[Vec] = []
    if len(solid) <= 12:
        side = (width / 2 + reach + radius) / 2
        screws = [(-side, 0.0), (side, 0.0)]
        solid += holes(screws, dice.mm(0.2 * (width / 2 - side), 0.6 * (width / 2 - side)))
    return Part(solid, center_lines(width, height), [(-reach, level), (reach, level), *screws])


def keyhole_plate(dice: Dice) -> Part:
    """A plate to hang on a screw head: the head passes the round part, the shank slides up the slot."""
    head = dice.mm(6, 16)
    half = dice.mm(0.35 * head, 0.6 * head)
    top = head + dice.mm(0.8 * head, 2.5 * head)
    shoulder = math.asin(half / head)
    left, right = polar(head, TAU / 4 + shoulder), polar(head, TAU / 4 - shoulder)
    solid: list[Primitive] = [
        Arc((0.0, 0.0), head, TAU / 4 + shoulder, TAU - 2 * shoulder),
        Line(right, (right[0], top)),
        Arc((0.0, top), half, 0.0, math.pi),
        Line((left[0], top), left),
    ]
    low, high = -head - dice.mm(6, 20), top + half + dice.mm(6, 20)
    width = 2 * head + dice.mm(30, 70)
    middle = (0.0, (low + high) / 2)
    fillet = dice.pick(0.0, 0.15) * min(width, high - low)
    solid += outline(rectangle(width, high - low, middle), fillet)
    side = (width / 2 + head) / 2
    screws = [(-side, middle[1]), (side, middle[1])]
    if dice.chance(0.6):
        solid += holes(screws, dice.mm(0.15 * (width / 2 - head), 0.35 * (width / 2 - head)))
    aids: list[Primitive] = [Line((0.0, low), (0.0, high), construction=True)]
    return Part(solid, aids, [(0.0, 0.0), (0.0, top), *screws])


def window_plate(dice: Dice) -> Part:
    """A frame or gasket: a rounded rectangle inside another, of even width."""
    width = dice.mm(60, 150)
    height = dice.mm(40, width)
    wall = dice.mm(0.08 * height, 0.24 * height)
    outer, inner = dice.pick((0.0, 0.0), (wall, 0.0), (1.5 * wall, 0.5 * wall), (0.0, 0.5 * wall))
    solid = outline(rectangle(width, height), outer) + outline(rectangle(width - 2 * wall, height - 2 * wall), inner)
    centers = rectangle(width - wall, height - wall)
    if len(solid) <= 12 and outer <= wall:
        solid += holes(centers, dice.mm(0.1 * wall, 0.22 * wall, step=0.25))
    return Part(solid, center_lines(width, height), [(0.0, 0.0), *centers])


def square_flange(dice: Dice) -> Part:
    """A square or hexagonal plate around a bore, screws on a pitch circle."""
    sides = dice.pick(4, 4, 6)
    reach = dice.mm(30, 70)  # from the middle to a side
    pitch = dice.mm(0.7 * reach, 0.84 * reach)
    count = dice.pick(3, 4, 6)
    radius = dice.mm(0.2 * (reach - pitch), 0.6 * (reach - pitch))
    corners = around(sides, reach / math.cos(math.pi / sides), math.pi / sides)
    centers = around(count, pitch, dice.pick(0.0, TAU / 4))
    fillet = 0.2 * reach if sides == 4 and count < 6 and dice.chance(0.6) else 0.0
    bore = dice.mm(0.3 * pitch, 0.85 * (pitch - radius))
    solid = [*outline(corners, fillet), Circle((0.0, 0.0), bore), *holes(centers, radius)]
    aids: list[Primitive] = [Circle((0.0, 0.0), pitch, construction=True), *center_lines(2 * reach, 2 * reach)]
    return Part(solid, aids, [(0.0, 0.0), *centers])


def ear_flange(dice: Dice) -> Part:
    """A round body with two ears, as a bearing flange has: the belt around three discs in a row."""
    body = dice.mm(16, 40)
    ear = dice.mm(0.25 * body, 0.6 * body)
    reach = dice.mm(1.15 * (body + ear), 1.6 * (body + ear))
    left, middle, right = (-reach, 0.0), (0.0, 0.0), (reach, 0.0)
    solid = belt([(left, ear), (middle, body), (right, ear), (middle, body)])
    bore = dice.mm(0.3 * body, 0.75 * body)
    solid += [Circle(middle, bore), *holes([left, right], dice.mm(0.3 * ear, 0.7 * ear))]
    if dice.chance(0.3):
        solid.append(Circle(middle, dice.mm(1.05 * bore, 0.95 * body)))
    return Part(solid, center_lines(2 * (reach + ear), 2 * body), [middle, left, right])


def link(dice: Dice) -> Part:
    """Two eyes, equal or not, and the tangents between them."""
    large = dice.mm(10, 28)
    small = large if dice.chance(0.35) else dice.mm(0.4 * large, 0.9 * large)
    span = dice.mm(1.3 * (large + small), 3 * (large + small))
    a, b = (-span / 2, 0.0), (span / 2, 0.0)
    solid = belt([(a, large), (b, small)])
    solid += [Circle(a, dice.mm(0.3 * large, 0.75 * large)), Circle(b, dice.mm(0.3 * small, 0.75 * small))]
    gap = span - large - small
    if dice.chance(0.5):
        start, end = -span / 2 + large + 0.25 * gap, span / 2 - small - 0.25 * gap
        solid += slot((start, 0.0), (end, 0.0), dice.mm(0.2 * small, 0.5 * small))
    aids: list[Primitive] = [Line(a, b, construction=True)]
    aids += [Line((x, -1.2 * large), (x, 1.2 * large), construction=True) for x in (a[0], b[0])]
    return Part(solid, aids, [a, b])


def rocker(dice: Dice) -> Part:
    """Three eyes in a triangle inside one belt."""
    a, b = (-dice.mm(30, 60), 0.0), (dice.mm(30, 60), 0.0)
    c = (dice.mm(0, 30) * dice.pick(-1, 0, 1), dice.mm(35, 75))
    bosses = [(place, dice.mm(8, 16)) for place in (a, b, c)]
    if dice.chance(0.5):
        bosses = [(place, bosses[0][1]) for place, _ in bosses]
    solid = belt(bosses)
    solid += [Circle(place, dice.mm(0.35 * radius, 0.7 * radius)) for place, radius in bosses]
    middle = ((a[0] + b[0] + c[0]) / 3, c[1] / 3)
    if dice.chance(0.5):
        solid.append(Circle(middle, dice.mm(4, 9)))
    aids: list[Primitive] = [Line(p, q, construction=True) for p, q in ((a, b), (b, c), (c, a))]
    return Part(solid, aids, [a, b, c, middle])


def _rim(dice: Dice, width: float, height: float, corner: float) -> list[Primitive]:
    """The rectangle around a plate: sharp, rounded or cut corners of at most `corner`."""
    corners = rectangle(width, height)
    size = dice.mm(0.4 * corner, corner)
    match dice.pick("sharp", "round", "round", "cut"):
        case "sharp":
            return outline(corners)
        case "round":
            return outline(corners, size)
        case _:
            return outline(chamfered(corners, size))
