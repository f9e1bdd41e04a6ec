"""Flat parts with holes: plates, links, flanges, discs, hubs, rings and toothed parts.

Each function designs one part of its family, about 100 mm large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sketchdnn.geometry import TAU, Arc, Circle, Line, Primitive, Vec, arc_from_sweep

from .shapes import ORIGIN, DesignRng, PartDesign, center_lines, chamfered, holes, outline, perhaps_holes, polar

# Center and radius.
Disc = tuple[Vec, float]


def plate(rng: DesignRng) -> PartDesign:
    """A rectangle, its corners sharp, rounded or cut, with a hole near each and perhaps something in the middle."""
    width = rng.length(60, 160)
    height = rng.length(30, min(width, 110))
    inset = rng.share(height, 0.14, 0.26)
    radius = rng.share(inset, 0.25, 0.55)
    centers = rectangle(width - 2 * inset, height - 2 * inset)
    solid = [*_rim(rng, width, height, inset), *holes(centers, radius)]
    pitch: list[Primitive] = [Line(a, b) for a, b in zip(centers, [*centers[1:], centers[0]], strict=True)]
    clear = height / 2 - inset  # from the middle to the lines that join the holes
    if rng.chance(0.5):
        solid.append(Circle(ORIGIN, rng.share(clear, 0.3, 0.9)))
    elif rng.chance(0.4):
        reach = rng.share(width, 0.1, 0.25)
        solid += slot((-reach, 0.0), (reach, 0.0), rng.share(clear, 0.2, 0.6))
    construction = center_lines(width, height) if rng.chance(0.6) else pitch
    return PartDesign(solid, construction, [ORIGIN, *centers])


def row_plate(rng: DesignRng) -> PartDesign:
    """A bar with a row of equal holes, or two rows."""
    count, rows = rng.choice((2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (2, 2), (3, 2), (4, 2))
    spacing = rng.length(14, 30)
    width = count * spacing + rng.length(0, spacing)
    height = rows * rng.length(12, 45)
    radius = rng.share(min(spacing, height / rows), 0.12, 0.36)
    levels = [0.0] if rows == 1 else [-height / 4, height / 4]
    centers = [((k - (count - 1) / 2) * spacing, y) for y in levels for k in range(count)]
    solid = [*_rim(rng, width, height, 0.2 * min(width, height)), *holes(centers, radius)]
    axes = [Line((-0.55 * width, y), (0.55 * width, y)) for y in levels]
    return PartDesign(solid, axes, [ORIGIN, *centers])


def slotted_plate(rng: DesignRng) -> PartDesign:
    """A plate with one or two slots, and screw holes where there is room."""
    width = rng.length(70, 150)
    height = rng.length(36, 0.8 * width)
    two = rng.chance(0.5)
    radius, reach = rng.share(height, 0.05, 0.11), rng.share(width, 0.15, 0.28)
    level = rng.share(height, 0.18, 0.28) if two else 0.0
    solid = outline(rectangle(width, height), rng.choice(0.0, 0.0, 0.1 * height) if two else 0.0)
    for y in [-level, level] if two else [0.0]:
        solid += slot((-reach, y), (reach, y), radius)
    screws: list[Vec] = []
    if len(solid) <= 12:
        side = (width / 2 + reach + radius) / 2
        screws = [(-side, 0.0), (side, 0.0)]
        solid += holes(screws, rng.share(width / 2 - side, 0.2, 0.6))
    return PartDesign(solid, center_lines(width, height), [(-reach, level), (reach, level), *screws])


def keyhole_plate(rng: DesignRng) -> PartDesign:
    """A plate to hang on a screw head: the head passes the round part, the shank slides up the slot."""
    head = rng.length(6, 16)
    half, top = rng.share(head, 0.35, 0.6), head + rng.share(head, 0.8, 2.5)
    solid = _keyway(head, half, top, is_round=True)
    low, high = -head - rng.length(6, 20), top + half + rng.length(6, 20)
    width = 2 * head + rng.length(30, 70)
    middle = (0.0, (low + high) / 2)
    fillet = rng.choice(0.0, 0.15) * min(width, high - low)
    solid += outline(rectangle(width, high - low, middle), fillet)
    side = (width / 2 + head) / 2
    screws = [(-side, middle[1]), (side, middle[1])]
    solid += perhaps_holes(rng, 0.6, screws, 0.15 * (width / 2 - head), 0.35 * (width / 2 - head))
    return PartDesign(solid, [Line((0.0, low), (0.0, high))], [ORIGIN, (0.0, top), *screws])


def window_plate(rng: DesignRng) -> PartDesign:
    """A frame or gasket: a rounded rectangle inside another, of even width."""
    width = rng.length(60, 150)
    height = rng.length(40, width)
    wall = rng.share(height, 0.08, 0.24)
    outer, inner = rng.choice(ORIGIN, (wall, 0.0), (1.5 * wall, 0.5 * wall), (0.0, 0.5 * wall))
    solid = outline(rectangle(width, height), outer) + outline(rectangle(width - 2 * wall, height - 2 * wall), inner)
    centers = rectangle(width - wall, height - wall)
    if len(solid) <= 12 and outer <= wall:
        solid += holes(centers, rng.share(wall, 0.1, 0.22, step=0.25))
    return PartDesign(solid, center_lines(width, height), [ORIGIN, *centers])


def square_flange(rng: DesignRng) -> PartDesign:
    """A square or hexagonal plate around a bore, screws on a pitch circle."""
    sides = rng.choice(4, 4, 6)
    reach = rng.length(30, 70)  # from the middle to a side
    pitch = rng.share(reach, 0.7, 0.84)
    count = rng.choice(3, 4, 6)
    radius = rng.share(reach - pitch, 0.2, 0.6)
    corners = around(sides, reach / math.cos(math.pi / sides), math.pi / sides)
    centers = around(count, pitch, rng.choice(0.0, TAU / 4))
    fillet = 0.2 * reach if sides == 4 and count < 6 and rng.chance(0.6) else 0.0
    bore = rng.length(0.3 * pitch, 0.85 * (pitch - radius))
    solid = [*outline(corners, fillet), Circle(ORIGIN, bore), *holes(centers, radius)]
    return PartDesign(solid, [Circle(ORIGIN, pitch), *center_lines(2 * reach, 2 * reach)], [ORIGIN, *centers])


def ear_flange(rng: DesignRng) -> PartDesign:
    """A round body with two ears, as a bearing flange has: the belt around three discs in a row."""
    body = rng.length(16, 40)
    ear = rng.share(body, 0.25, 0.6)
    reach = rng.share(body + ear, 1.15, 1.6)
    left, middle, right = (-reach, 0.0), ORIGIN, (reach, 0.0)
    solid = belt([(left, ear), (middle, body), (right, ear), (middle, body)])
    bore = rng.share(body, 0.3, 0.75)
    solid += [Circle(middle, bore), *holes([left, right], rng.share(ear, 0.3, 0.7))]
    solid += perhaps_holes(rng, 0.3, [middle], 1.05 * bore, 0.95 * body)
    return PartDesign(solid, center_lines(2 * (reach + ear), 2 * body), [middle, left, right])


def link(rng: DesignRng) -> PartDesign:
    """Two eyes, equal or not, and the tangents between them."""
    large = rng.length(10, 28)
    small = large if rng.chance(0.35) else rng.share(large, 0.4, 0.9)
    span = rng.share(large + small, 1.3, 3)
    a, b = (-span / 2, 0.0), (span / 2, 0.0)
    solid = belt([(a, large), (b, small)])
    solid += [Circle(a, rng.share(large, 0.3, 0.75)), Circle(b, rng.share(small, 0.3, 0.75))]
    gap = span - large - small
    if rng.chance(0.5):
        start, end = -span / 2 + large + 0.25 * gap, span / 2 - small - 0.25 * gap
        solid += slot((start, 0.0), (end, 0.0), rng.share(small, 0.2, 0.5))
    verticals = [Line((x, -1.2 * large), (x, 1.2 * large)) for x in (a[0], b[0])]
    return PartDesign(solid, [Line(a, b), *verticals], [a, b])


def rocker(rng: DesignRng) -> PartDesign:
    """Three eyes in a triangle inside one belt."""
    a, b = (-rng.length(30, 60), 0.0), (rng.length(30, 60), 0.0)
    c = (rng.length(0, 30) * rng.choice(-1, 0, 1), rng.length(35, 75))
    bosses = [(point, rng.length(8, 16)) for point in (a, b, c)]
    if rng.chance(0.5):
        bosses = [(point, bosses[0][1]) for point, _ in bosses]
    solid = belt(bosses)
    solid += [Circle(point, rng.share(radius, 0.35, 0.7)) for point, radius in bosses]
    middle = ((a[0] + b[0] + c[0]) / 3, c[1] / 3)
    solid += perhaps_holes(rng, 0.5, [middle], 4, 9)
    return PartDesign(solid, [Line(p, q) for p, q in ((a, b), (b, c), (c, a))], [a, b, c, middle])


def _rim(rng: DesignRng, width: float, height: float, corner: float) -> list[Primitive]:
    """The rectangle around a plate: sharp, rounded or cut corners of at most `corner`."""
    corners = rectangle(width, height)
    size = rng.length(0.4 * corner, corner)
    style = rng.choice("sharp", "round", "round", "cut")
    return outline(chamfered(corners, size)) if style == "cut" else outline(corners, size if style == "round" else 0.0)


def _keyway(radius: float, half: float, top: float, *, is_round: bool) -> list[Primitive]:
    """A circle that opens into a slot of width 2·half upwards, which ends at `top`, round or square."""
    shoulder = math.asin(half / radius)
    left, right = polar(radius, TAU / 4 + shoulder), polar(radius, TAU / 4 - shoulder)
    return [
        Arc(ORIGIN, radius, TAU / 4 + shoulder, TAU - 2 * shoulder),
        Line(right, (right[0], top)),
        Arc((0.0, top), half, 0.0, math.pi) if is_round else Line((right[0], top), (left[0], top)),
        Line((left[0], top), left),
    ]


def flange(rng: DesignRng) -> PartDesign:
    """A disc with a bore and screws on a pitch circle."""
    outer = rng.length(25, 80)
    pitch = rng.share(outer, 0.62, 0.84)
    count = rng.integer(3, 8)
    clearance = min(outer - pitch, pitch * math.sin(math.pi / count))
    radius = rng.share(clearance, 0.25, 0.65)
    bore = rng.length(0.25 * pitch, 0.9 * (pitch - radius))
    centers = around(count, pitch, rng.choice(0.0, TAU / 4, math.pi / count))
    solid: list[Primitive] = [Circle(ORIGIN, outer), Circle(ORIGIN, bore), *holes(centers, radius)]
    if rng.chance(0.3) and 0.9 * (pitch - radius) > 1.25 * bore:
        solid.append(Circle(ORIGIN, rng.length(1.12 * bore, 0.95 * (pitch - radius))))
    return PartDesign(solid, [Circle(ORIGIN, pitch), *center_lines(2 * outer, 2 * outer)], [ORIGIN, *centers])


def slotted_disc(rng: DesignRng) -> PartDesign:
    """A disc with curved slots around its bore, as an adjustable mount has."""
    outer = rng.length(30, 80)
    pitch, radius = rng.share(outer, 0.6, 0.76), rng.share(outer, 0.06, 0.12)
    count = rng.choice(2, 2, 3)
    sweep = TAU / count * rng.length(0.3, 0.65, step=0.05)
    phase = rng.choice(0.0, TAU / 4) - sweep / 2
    solid: list[Primitive] = [Circle(ORIGIN, outer), Circle(ORIGIN, rng.share(outer, 0.2, 0.42))]
    for k in range(count):
        solid += curved_slot(pitch, radius, phase + TAU * k / count, sweep)
    if count == 2 and rng.chance(0.6):
        solid += holes(around(2, pitch, phase + sweep / 2 + math.pi / 2), radius)
    ends = [polar(pitch, phase), polar(pitch, phase + sweep)]
    return PartDesign(solid, [Circle(ORIGIN, pitch), *center_lines(2 * outer, 2 * outer)], [ORIGIN, *ends])


def washer(rng: DesignRng) -> PartDesign:
    """Circles around one center."""
    outer = rng.length(10, 60)
    solid: list[Primitive] = [Circle(ORIGIN, outer), Circle(ORIGIN, rng.share(outer, 0.3, 0.8))]
    construction = [*center_lines(2 * outer, 2 * outer), Line(ORIGIN, polar(outer, TAU / 8))]
    return PartDesign(solid, construction, [ORIGIN, *around(4, outer)])


def polygon(rng: DesignRng) -> PartDesign:
    """A regular polygon in its construction circle, bored."""
    sides, radius = rng.integer(3, 8), rng.length(15, 60)
    inner = radius * math.cos(math.pi / sides)
    corners = around(sides, radius, rng.choice(0.0, TAU / 4, math.pi / sides))
    solid = outline(corners, rng.choice(0.0, 0.2) * inner if sides <= 6 else 0.0)
    solid.append(Circle(ORIGIN, rng.share(inner, 0.25, 0.8)))
    circles = [Circle(ORIGIN, radius), Circle(ORIGIN, inner)]
    return PartDesign(solid, [*circles, *center_lines(2 * radius, 2 * radius)], [ORIGIN, *corners])


def cog(rng: DesignRng) -> PartDesign:
    """Teeth with straight flanks between an outer and a root circle."""
    teeth, outer = rng.choice(3, 4), rng.length(25, 70)
    root = rng.share(outer, 0.62, 0.85)
    pitch = TAU / teeth
    tip, foot = pitch * rng.length(0.2, 0.38, step=0.01), pitch * rng.length(0.42, 0.62, step=0.01)
    solid: list[Primitive] = []
    for middle in (TAU / 4 + k * pitch for k in range(teeth)):
        solid += [
            Line(polar(root, middle - foot / 2), polar(outer, middle - tip / 2)),
            Arc(ORIGIN, outer, middle - tip / 2, tip),
            Line(polar(outer, middle + tip / 2), polar(root, middle + foot / 2)),
            Arc(ORIGIN, root, middle + foot / 2, pitch - foot),
        ]
    if teeth == 3:
        solid.append(Circle(ORIGIN, rng.share(root, 0.2, 0.75)))
    return PartDesign(solid, [Circle(ORIGIN, (outer + root) / 2)], [ORIGIN])


def ratchet(rng: DesignRng) -> PartDesign:
    """Saw teeth, or a star when they lean to neither side, around a bore."""
    teeth, outer = rng.integer(4, 7), rng.length(25, 70)
    root = rng.share(outer, 0.55, 0.85)
    lean = rng.choice(0.5, 0.5, 0.12, 0.25) * TAU / teeth
    angles = [k * TAU / teeth for k in range(teeth)]
    solid = outline([point for angle in angles for point in (polar(outer, angle), polar(root, angle + lean))])
    solid.append(Circle(ORIGIN, rng.length(0.15 * root, 0.6 * root * math.cos(math.pi / teeth))))
    return PartDesign(solid, [Circle(ORIGIN, r) for r in (outer, root)], [ORIGIN])


def knob(rng: DesignRng) -> PartDesign:
    """A hand wheel: the rim runs in scallops, arcs out and arcs in."""
    lobes, rim = rng.integer(3, 7), rng.length(20, 60)
    pitch = TAU / lobes
    land = pitch * rng.length(0.4, 0.65, step=0.01)  # what is left of the rim between two scallops
    depth = rng.length(1.2, 3.1, step=0.1)
    solid: list[Primitive] = []
    for start in (k * pitch for k in range(lobes)):
        scallop = arc_from_sweep(polar(rim, start + pitch), polar(rim, start + land), depth)
        solid += [Arc(ORIGIN, rim, start, land), scallop]
    bore = rng.share(rim, 0.1, 0.25)
    solid.append(Circle(ORIGIN, bore))
    return PartDesign(solid, [Circle(ORIGIN, (rim + bore) / 2), *center_lines(2 * rim, 2 * rim)], [ORIGIN])


def keyed_hub(rng: DesignRng) -> PartDesign:
    """A hub whose bore has a keyway, with screws around it."""
    outer = rng.length(25, 60)
    bore = rng.share(outer, 0.25, 0.5)
    half, top = rng.share(bore, 0.15, 0.4), bore + rng.share(bore, 0.15, 0.4)
    solid = [Circle(ORIGIN, outer), *_keyway(bore, half, top, is_round=False)]
    return _screwed(rng, solid, outer, top)


def d_hub(rng: DesignRng) -> PartDesign:
    """A hub for a shaft with one flat or two."""
    outer = rng.length(25, 60)
    bore = rng.share(outer, 0.25, 0.55)
    half = math.acos(rng.length(0.5, 0.85, step=0.01))  # half of the angle that a flat takes from the bore
    flats = rng.choice(1, 2)
    solid: list[Primitive] = [Circle(ORIGIN, outer)]
    for middle in (TAU / 4 + k * TAU / flats for k in range(flats)):
        solid.append(Line(polar(bore, middle - half), polar(bore, middle + half)))
        solid.append(Arc(ORIGIN, bore, middle + half, TAU / flats - 2 * half))
    return _screwed(rng, solid, outer, bore)


def tab_washer(rng: DesignRng) -> PartDesign:
    """A ring with one, two or three square tabs on its rim."""
    rim = rng.length(15, 45)
    tabs, reach = rng.integer(1, 3), rim + rng.share(rim, 0.2, 0.7)
    half = rng.share(rim, 0.15, 0.4)
    shoulder = math.asin(half / rim)
    solid: list[Primitive] = []
    for middle in (TAU / 4 + k * TAU / tabs for k in range(tabs)):
        tip = [polar(half, middle - TAU / 4, polar(reach, middle)), polar(half, middle + TAU / 4, polar(reach, middle))]
        solid += [
            Line(polar(rim, middle - shoulder), tip[0]),
            Line(tip[0], tip[1]),
            Line(tip[1], polar(rim, middle + shoulder)),
            Arc(ORIGIN, rim, middle + shoulder, TAU / tabs - 2 * shoulder),
        ]
    solid.append(Circle(ORIGIN, rng.share(rim, 0.3, 0.8)))
    return PartDesign(solid, [*center_lines(2 * reach, 2 * reach), Circle(ORIGIN, 1.1 * reach)], [ORIGIN])


def retaining_ring(rng: DesignRng) -> PartDesign:
    """An open ring with round ends and a hole in each for the pliers."""
    pitch = rng.length(20, 60)
    radius = rng.share(pitch, 0.1, 0.25)
    gap = 2 * math.asin(radius / pitch) + rng.length(0.2, 1.6, step=0.05)
    start, sweep = TAU / 4 + gap / 2, TAU - gap
    ends = [polar(pitch, start), polar(pitch, start + sweep)]
    solid = curved_slot(pitch, radius, start, sweep) + holes(ends, rng.share(radius, 0.3, 0.6))
    lines = [*(Line(ORIGIN, end) for end in ends), Line((0.0, -1.15 * pitch), (0.0, 1.15 * pitch))]
    return PartDesign(solid, [Circle(ORIGIN, pitch), *lines], [ORIGIN, *ends])


def _screwed(rng: DesignRng, solid: list[Primitive], outer: float, inner: float) -> PartDesign:
    """Screws on a pitch circle halfway between what is inside and the rim."""
    pitch = (outer + inner) / 2
    centers = around(rng.choice(2, 3, 4, 6), pitch, rng.choice(0.0, TAU / 4))
    solid += holes(centers, rng.share(outer - inner, 0.12, 0.3))
    return PartDesign(solid, [Circle(ORIGIN, pitch), *center_lines(2 * outer, 2 * outer)], [ORIGIN, *centers])


def belt(discs: Sequence[Disc]) -> list[Primitive]:
    """A belt around discs, listed counter-clockwise: arcs and the tangents between them.

    A disc that touches the belt on both sides is listed twice.
    """
    pairs = list(zip(discs, [*discs[1:], discs[0]], strict=True))
    normals = [_tangent_normal(*pair) for pair in pairs]
    parts: list[Primitive] = []
    for k, ((center, radius), (other, other_radius)) in enumerate(pairs):
        parts.append(Arc(center, radius, normals[k - 1], (normals[k] - normals[k - 1]) % TAU))
        parts.append(Line(polar(radius, normals[k], center), polar(other_radius, normals[k], other)))
    return parts


def slot(a: Vec, b: Vec, radius: float) -> list[Primitive]:
    """Two semicircles and two lines."""
    return belt([(a, radius), (b, radius)])


def curved_slot(pitch_radius: float, radius: float, angle: float, sweep: float) -> list[Primitive]:
    """A slot bent around the origin: two concentric arcs, closed by semicircles."""
    end = angle + sweep
    return [
        Arc(ORIGIN, pitch_radius + radius, angle, sweep),
        Arc(polar(pitch_radius, end), radius, end, math.pi),
        Arc(ORIGIN, pitch_radius - radius, angle, sweep),
        Arc(polar(pitch_radius, angle), radius, angle + math.pi, math.pi),
    ]


def rectangle(width: float, height: float, center: Vec = ORIGIN) -> list[Vec]:
    """The corners, from the lower left."""
    x, y = center
    w, h = width / 2, height / 2
    return [(x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h)]


def around(count: int, radius: float, phase: float = 0.0) -> list[Vec]:
    """Points evenly spaced on a circle around the origin."""
    return [polar(radius, phase + TAU * k / count) for k in range(count)]


def _tangent_normal(a: Disc, b: Disc) -> float:
    """The normal angle of the outer tangent from disc a to disc b, on its right."""
    (x1, y1), (x2, y2) = a[0], b[0]
    along = math.atan2(y2 - y1, x2 - x1)
    return along - math.acos((a[1] - b[1]) / math.dist(a[0], b[0]))
