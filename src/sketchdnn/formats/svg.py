"""SVG drawings: one element a primitive, at real size, construction dashed; and back.

We write a sketch in its own unit with y turned down as SVG has it, and `width` and `height` in millimeters, so that it
prints and cuts at its true size. We read that, and drawings of others as far as they are shapes and paths; ellipses and
Bézier curves become lines and arcs, and everything else is counted.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats.format import NO_UNITS, Losses, Note, ReadItem, Skipped, short_reason
from sketchdnn.geometry import (
    MM_PER_UNIT,
    Arc,
    Bezier,
    Box,
    Circle,
    EllipticArc,
    Line,
    Point,
    Primitive,
    Sketch,
    bounds,
)
from sketchdnn.io import atomic_write

from .flattening import Flattener
from .format import DEFAULT_READ_OPTIONS, Format, ReadOptions, format_losses, single_sketch
from .svg_elements import GZIP_MAGIC, MAX_ELEMENTS, Element, elements
from .svg_path import Curved, with_circles
from .svg_shapes import SHAPES, shape_pieces
from .svg_transform import MM_PER_PIXEL, Affine, physical_length

_FLIP = Affine(d=-1.0)  # y points down in SVG

_HOLDS_SHAPES = ("use", "svg")  # what we do not look into
_MARGIN = 0.05
_STROKE = 1 / 250
_DARK, _PALE = "#1b1f24", "#7a869a"
# Beyond this sweep the ends almost meet, and one SVG arc between them is drawn badly or not at all.
_LONGEST_ARC = math.tau - 0.1


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """One drawing of one sketch."""
    sketch = single_sketch(sketches, path)
    with atomic_write(path) as temporary:
        text = to_svg(sketch).encode()
        temporary.write_bytes(gzip.compress(text, mtime=0) if path.suffix.lower() == ".svgz" else text)
    return format_losses(sketch, "svg")


def to_svg(sketch: Sketch) -> str:
    """The drawing as text."""
    box = bounds(sketch) if len(sketch) else Box((0.0, 0.0), (0.0, 0.0))
    size = box.size or 1.0
    margin, stroke = _MARGIN * size, _STROKE * size
    width, height = box.width + 2 * margin, box.height + 2 * margin
    real_size = ""
    if sketch.units is not None:
        mm = MM_PER_UNIT[sketch.units]
        real_size = f'width="{_text(width * mm)}mm" height="{_text(height * mm)}mm" '
    view = " ".join(map(_text, (box.low[0] - margin, -box.high[1] - margin, width, height)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {real_size}viewBox="{view}">',
            f'<g fill="none" stroke="{_DARK}" stroke-width="{_text(stroke)}" stroke-linecap="round">',
            *(_element(p, stroke) for p in sketch),
            "</g>",
            "</svg>\n",
        ]
    )


def read(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[ReadItem]:
    """The drawing as one sketch, in the unit its real size implies, and what was left out or changed."""
    drawn = elements(path)
    _, root, _ = next(drawn)
    scale, units = _units(root)
    mm_per_unit = scale * MM_PER_UNIT[units] if units else options.mm_per_assumed
    flattener = Flattener(options.flatten, mm_per_unit)
    primitives: list[Primitive] = []
    dropped = pieces = 0
    for element in drawn:
        tag, _, to_page = element
        # Text and pictures are no part of a sketch; a group comes up here only if nothing in it can be placed.
        is_shape = tag in SHAPES or tag in _HOLDS_SHAPES or to_page is None
        try:
            for found in _found(element, flattener):
                if isinstance(found, Skipped):
                    dropped += is_shape * found.count
                    yield found
                elif isinstance(found, Note):
                    yield found
                else:
                    primitives.extend(Sketch((found,)).moved(scale))
                pieces += not isinstance(found, Note)
                if pieces > MAX_ELEMENTS:  # one path may have many
                    raise FormatError(path, f"draws more than {MAX_ELEMENTS:,} lines and arcs; that is no sketch")
        except FormatError:
            raise
        except SketchError as error:
            dropped += is_shape
            yield Skipped(short_reason(error))
        except (ArithmeticError, ValueError):
            dropped += is_shape
            yield Skipped("an element with impossible numbers")
    if primitives:
        extra = {"dropped_entities": dropped} if dropped else {}
        yield Sketch(tuple(primitives), units=units, extra=extra)
        if units is None and options.assume_units is None:
            yield NO_UNITS
    else:
        yield Skipped("a drawing without any line, circle, arc or point", is_sketch=True)


def _element(p: Primitive, stroke: float) -> str:
    css = f'class="{p.kind.label}"'
    if p.construction:
        dashes = f"{_text(4 * stroke)} {_text(3 * stroke)}"
        css = f'class="{p.kind.label} construction" stroke="{_PALE}" stroke-dasharray="{dashes}"'
    match p:
        case Line((x1, y1), (x2, y2)):
            return f'<line {css} x1="{_text(x1)}" y1="{_text(-y1)}" x2="{_text(x2)}" y2="{_text(-y2)}"/>'
        case Circle((x, y), radius):
            return f'<circle {css} cx="{_text(x)}" cy="{_text(-y)}" r="{_text(radius)}"/>'
        case Arc():
            return f'<path {css} d="{_path(p)}"/>'
        case Point((x, y)):
            fill = _PALE if p.construction else _DARK
            return f'<circle {css} cx="{_text(x)}" cy="{_text(-y)}" r="{_text(2 * stroke)}" fill="{fill}"/>'


def _path(arc: Arc) -> str:
    """Counter-clockwise with y up is sweep flag 0 with y down."""
    stops = [arc.mid, arc.end] if arc.sweep > _LONGEST_ARC else [arc.end]
    large = int(arc.sweep / len(stops) > math.pi)
    radius = _text(arc.radius)
    places = [f"{_text(x)} {_text(-y)}" for x, y in (arc.start, *stops)]
    return f"M {places[0]}" + "".join(f" A {radius} {radius} 0 {large} 0 {place}" for place in places[1:])


def _text(number: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(number) + 0.0).removesuffix(".0")  # + 0.0 makes -0.0 a plain zero


def _found(element: Element, flattener: Flattener) -> Iterator[Primitive | Skipped | Note]:
    tag, attributes, to_page = element
    if to_page is None:
        yield Skipped("a transform we cannot read")
    elif tag not in SHAPES:
        yield Skipped(f"an SVG element <{tag[:40]}>")
    else:
        to_sketch = _FLIP @ to_page
        words = attributes.get("class", "").split()
        drawn = _drawn(shape_pieces(tag, attributes), to_sketch, flattener)
        for found in with_circles(drawn) if tag == "path" and "arc" not in words else drawn:
            if isinstance(found, Skipped | Note) or "construction" not in words:
                yield found
            else:
                yield replace(found, construction=True)


def _drawn(
    pieces: Iterable[Primitive | Curved | Skipped], to_sketch: Affine, flattener: Flattener
) -> Iterator[Primitive | Skipped | Note]:
    """Pieces of an element in the sketch's coordinates, curves as lines and arcs; one that cannot be is counted."""
    for piece in pieces:
        if isinstance(piece, Skipped):
            yield piece
            continue
        what = piece.what if isinstance(piece, Curved) else "a circle or arc that a transform makes an ellipse"
        try:
            placed = to_sketch.curve(piece.curve) if isinstance(piece, Curved) else to_sketch.primitive(piece)
            if not isinstance(placed, Bezier | EllipticArc):
                yield placed
            elif flattener.is_on:
                yield from flattener.pieces(placed)
                yield flattener.note(what)
            else:
                yield Skipped(what)
        except SketchError as error:
            yield Skipped(short_reason(error))


def _units(root: Mapping[str, str]) -> tuple[float, str | None]:
    """What to multiply coordinates by, and the unit they are in then."""
    width, height = physical_length(root.get("width")), physical_length(root.get("height"))
    if not width or not height:
        return 1.0, None
    mm = MM_PER_PIXEL
    if "viewBox" in root:
        try:
            _, _, view_width, view_height = map(float, root["viewBox"].replace(",", " ").split())
            mm = min(width / view_width, height / view_height)  # a view is fitted into its frame without distortion
        except (ValueError, ZeroDivisionError):
            pass
    if not 0 < mm < math.inf:
        return 1.0, None
    for unit, size in MM_PER_UNIT.items():
        if math.isclose(mm, size, rel_tol=1e-6):
            return 1.0, unit
    return mm, "mm"


def _recognizes(path: Path, head: bytes) -> bool:
    if head.startswith(GZIP_MAGIC):
        return path.suffix.lower() in (".svg", ".svgz")
    return b"<svg" in head or (path.suffix.lower() == ".svg" and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"))


FORMAT = Format("svg", (".svg", ".svgz"), False, _recognizes, read, write, is_drawing=True, is_text=True)
