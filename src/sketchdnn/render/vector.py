"""SVG pictures: lines, circles and arcs stay lines, circles and arcs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, Vec

from .annotations import ConstraintStatus, Layer, legend, sketch_layers
from .style import EMPTY_TEXT, Frame, Stroke, Style, describe

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# Smaller circles would be invisible, and flatter arcs are drawn as lines; in pixels.
_MIN_RADIUS = 0.05
_MIN_RISE = 0.02


def svg(
    sketch: Sketch,
    size: float = 400,
    *,
    style: Style | None = None,
    status: ConstraintStatus | None = None,
    has_legend: bool = True,
) -> str:
    """A square picture of a sketch, `size` pixels wide; with a status, its constraints and a legend.

    >>> '<circle' in svg(Sketch((Circle((0, 0), 2),)))
    True
    """
    style = style or Style()
    sized = style.sized(size)
    below, more = legend([sketch], [status], size, sized) if status and has_legend else ([], 0.0)
    parts = [
        svg_start(size, size + more, ' role="img"'),
        f"<title>{escape(describe(sketch))}</title>",
        f'<rect width="100%" height="100%" fill="{style.background}"/>',
        drawing(sketch, size, size, sized, status),
    ]
    if below:
        parts.append(f'<g transform="translate(0 {num(size)})">\n{draw_layers(below)}\n</g>')
    return "\n".join([*parts, "</svg>\n"])


def legend_svg(sketches: Sequence[Sketch], statuses: Sequence[ConstraintStatus], width: float, style: Style) -> str:
    """The legend of colors and symbols as a picture."""
    layers, height = legend(sketches, statuses, width, style)
    start = svg_start(width, height, ' role="img"')
    ground = f'<rect width="100%" height="100%" fill="{style.background}"/>'
    return f"{start}\n{ground}\n{draw_layers(layers)}\n</svg>\n"


def svg_start(width: float, height: float, attributes: str = "") -> str:
    """The opening tag of a picture of this size."""
    w, h = num(width), num(height)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}"{attributes}>'


def drawing(sketch: Sketch, width: float, height: float, style: Style, status: ConstraintStatus | None = None) -> str:
    """The strokes of a sketch as one group; with a status, a group for each symbol."""
    if not len(sketch):
        return text(EMPTY_TEXT, width / 2, height / 2, style)
    return draw_layers(sketch_layers(sketch, width, height, style, status))


def draw_strokes(items: Iterable[Stroke], view: Frame, style: Style) -> str:
    """Strokes as one group."""
    return _group([_element(stroke, view, style) for stroke in items])


def draw_layers(layers: Iterable[Layer]) -> str:
    """Layers as groups; the title of a layer is shown under the pointer."""
    groups = []
    for layer in layers:
        elements = [f"<title>{escape(layer.title)}</title>"] if layer.title else []
        elements += [_element(stroke, layer.view, layer.style) for stroke in layer.strokes]
        elements += [text(t.text, *t.at, layer.style, "start" if t.from_left else "middle") for t in layer.texts]
        if elements:
            groups.append(_group(elements))
    return "\n".join(groups)


def _group(elements: Iterable[str]) -> str:
    return '<g fill="none" stroke-linecap="round">\n' + "\n".join(elements) + "\n</g>"


def text(content: str, x: float, y: float, style: Style, anchor: str = "middle") -> str:
    """A text at a pixel. It must hold only characters that XML allows."""
    return (
        f'<text x="{num(x)}" y="{num(y)}" dy="0.35em" text-anchor="{anchor}" font-family="{FONT}" '
        f'font-size="{num(style.text_size)}" fill="{style.text_color}">{escape(content)}</text>'
    )


def num(value: float) -> str:
    """A number of pixels, to a thousandth, without trailing zeros.

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
            (x1, y1), (x2, y2) = view.to_pixel(start), view.to_pixel(end)
            return f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" {look}/>'
        case Circle(center, radius):
            x, y = view.to_pixel(center)
            return f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(max(radius * view.scale, _MIN_RADIUS))}" {look}/>'
        case Arc():
            return f'<path d="{_arc_path(stroke.primitive, view)}" {look}/>'
        case Point(at, construction):
            x, y = view.to_pixel(at)
            # A rim separates the dot from lines below; a construction point is hollow.
            fill, rim = (style.background, stroke.color) if construction else (stroke.color, style.background)
            return (
                f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(style.dot_radius)}" '
                f'fill="{fill}" stroke="{rim}" stroke-width="{num(stroke.width)}"/>'
            )


def _arc_path(arc: Arc, view: Frame) -> str:
    """The path of an arc; past a semicircle two halves, since SVG arcs with close ends are ill-conditioned."""
    radius = arc.radius * view.scale
    start = f"M{_pair(view.to_pixel(arc.start))}"
    if radius * (1 - math.cos(min(arc.sweep, math.pi) / 2)) < _MIN_RISE:
        return f"{start}L{_pair(view.to_pixel(arc.end))}"
    stops = [arc.end] if arc.sweep <= math.pi else [arc.mid, arc.end]
    # y is down, so counter-clockwise is sweep flag 0.
    return start + "".join(f"A{num(radius)} {num(radius)} 0 0 0 {_pair(view.to_pixel(stop))}" for stop in stops)


def _pair(p: Vec) -> str:
    return f"{num(p[0])} {num(p[1])}"
