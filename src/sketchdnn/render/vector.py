"""Sketches as SVG: lines, circles and arcs stay lines, circles and arcs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, Vec

from .display import EMPTY_TEXT, Frame, Stroke, Style, describe, frame, strokes
from .legend import legend
from .notes import Layer, Notes, noted

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# Below this a circle would not be drawn at all, and an arc is a line to every eye; in pixels.
_LEAST_RADIUS = 0.05
_LEAST_RISE = 0.02


def svg(
    sketch: Sketch, size: float = 400, *, style: Style | None = None, notes: Notes | None = None, explained: bool = True
) -> str:
    """A square picture of a sketch, `size` pixels wide; with notes, its constraints and below them what they mean.

    >>> '<circle' in svg(Sketch((Circle((0, 0), 2),)))
    True
    """
    style = style or Style()
    sized = style.sized(size)
    below, more = legend([sketch], [notes], size, sized) if notes and explained else ([], 0.0)
    box = f'width="{num(size)}" height="{num(size + more)}" viewBox="0 0 {num(size)} {num(size + more)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">',
        f"<title>{escape(describe(sketch))}</title>",
        f'<rect width="100%" height="100%" fill="{style.background}"/>',
        drawing(sketch, size, size, sized, notes),
    ]
    if below:
        parts.append(f'<g transform="translate(0 {num(size)})">\n{layered(below)}\n</g>')
    return "\n".join([*parts, "</svg>\n"])


def legend_svg(sketches: Sequence[Sketch], notes: Sequence[Notes], width: float, style: Style) -> str:
    """What colors and signs mean, as a picture of its own."""
    layers, height = legend(sketches, notes, width, style)
    box = f'width="{num(width)}" height="{num(height)}" viewBox="0 0 {num(width)} {num(height)}"'
    ground = f'<rect width="100%" height="100%" fill="{style.background}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">\n{ground}\n{layered(layers)}\n</svg>\n'


def drawing(sketch: Sketch, width: float, height: float, style: Style, notes: Notes | None = None) -> str:
    """The strokes alone, as one group for a picture or for a card of a gallery; with notes, a group for each sign."""
    if not len(sketch):
        return text(EMPTY_TEXT, width / 2, height / 2, style)
    if notes is not None:
        return layered(noted(sketch, width, height, style, notes))
    style = style.thinned(len(sketch))
    view = frame(sketch, width, height, style)
    return painted(strokes(sketch, view, style), view, style)


def painted(items: Iterable[Stroke], view: Frame, style: Style) -> str:
    """Strokes in a view, as one group."""
    return _group([_element(stroke, view, style) for stroke in items])


def layered(layers: Iterable[Layer]) -> str:
    """Layers one above the other, a group each; its title shows where the pointer rests."""
    groups = []
    for layer in layers:
        elements = [f"<title>{escape(layer.title)}</title>"] if layer.title else []
        elements += [_element(stroke, layer.view, layer.style) for stroke in layer.strokes]
        elements += [text(w.text, *w.at, layer.style, "start" if w.from_left else "middle") for w in layer.words]
        if elements:
            groups.append(_group(elements))
    return "\n".join(groups)


def _group(elements: Iterable[str]) -> str:
    return '<g fill="none" stroke-linecap="round">\n' + "\n".join(elements) + "\n</g>"


def text(words: str, x: float, y: float, style: Style, anchor: str = "middle") -> str:
    """Words centered on x, with their middle at y. They must hold only characters that XML allows."""
    return (
        f'<text x="{num(x)}" y="{num(y)}" dy="0.35em" text-anchor="{anchor}" font-family="{FONT}" '
        f'font-size="{num(style.text_size)}" fill="{style.text_color}">{escape(words)}</text>'
    )


def num(value: float) -> str:
    """A number in pixels, to a thousandth, as short as it goes.

    >>> num(12.0), num(0.12345), num(-0.0001)
    ('12', '0.123', '0')
    """
    digits = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def _element(stroke: Stroke, view: Frame, style: Style) -> str:
    look = f'stroke="{stroke.color}" stroke-width="{num(stroke.width)}"'
    if stroke.dash:
        on, off = stroke.dash
        look += f' stroke-dasharray="{num(on)} {num(off)}" stroke-linecap="butt"'
    match stroke.primitive:
        case Line(start, end):
            (x1, y1), (x2, y2) = view.place(start), view.place(end)
            return f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" {look}/>'
        case Circle(center, radius):
            x, y = view.place(center)
            return f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(max(radius * view.scale, _LEAST_RADIUS))}" {look}/>'
        case Arc():
            return f'<path d="{_arc_path(stroke.primitive, view)}" {look}/>'
        case Point(at, construction):
            x, y = view.place(at)
            # A white rim lifts the dot off the lines below it; a construction point is hollow.
            fill, rim = (style.background, stroke.color) if construction else (stroke.color, style.background)
            return (
                f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(style.dot_radius)}" '
                f'fill="{fill}" stroke="{rim}" stroke-width="{num(stroke.width)}"/>'
            )


def _arc_path(arc: Arc, view: Frame) -> str:
    """Past a semicircle in two halves, since an SVG arc is told by its ends, and those of a long arc nearly meet."""
    radius = arc.radius * view.scale
    start = f"M{_pair(view.place(arc.start))}"
    if radius * (1 - math.cos(min(arc.sweep, math.pi) / 2)) < _LEAST_RISE:
        return f"{start}L{_pair(view.place(arc.end))}"
    stops = [arc.end] if arc.sweep <= math.pi else [arc.mid, arc.end]
    # y runs down, so our counter-clockwise is the side that SVG calls 0.
    return start + "".join(f"A{num(radius)} {num(radius)} 0 0 0 {_pair(view.place(stop))}" for stop in stops)


def _pair(p: Vec) -> str:
    return f"{num(p[0])} {num(p[1])}"
