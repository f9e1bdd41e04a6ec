"""SVG drawings: one element a primitive, at real size, with construction dashed.

A sketch is written in its own unit, with y down as in SVG, and with `width` and `height` in millimeters, so that it
prints and cuts at its true size. The reader supports all shapes and paths of other drawings; ellipses and Bézier curves
become lines and arcs, and everything else is counted.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.geometry import MM_PER_UNIT, Arc, Box, Circle, Line, Point, Primitive, Sketch, bounds
from sketchdnn.io import atomic_write

from .checks import NO_UNITS, losses_in_format, read_bounded, short_reason, single_sketch
from .flattening import Flattener
from .format import DEFAULT_READ_OPTIONS, Format, Losses, Note, ReadItem, ReadOptions, Skipped
from .svg_shapes import MM_PER_PIXEL, SHAPES, NamedCurve, merge_circles, physical_length, read_shape
from .svg_transforms import Affine, parse_transform

GZIP_MAGIC = b"\x1f\x8b"
# The limits of DXF drawings, after decompression.
MAX_BYTES = 64 * 2**20
MAX_ELEMENTS = 100_000
MAX_ENTITIES = 100
MAX_EXPANDED = 2**20  # characters that all entities of a document expand to

# Tag, attributes and transform of an element; None for a transform that cannot be parsed.
Element = tuple[str, Mapping[str, str], Affine | None]

_NAMESPACES = ("", "{http://www.w3.org/2000/svg")
_GROUPS = frozenset({"g", "a", "switch"})
# Elements that draw nothing by themselves.
_NOT_DRAWN = frozenset((
    "defs", "title", "desc", "metadata", "style", "script", "symbol", "clipPath", "mask", "pattern", "marker", "filter",
    "linearGradient", "radialGradient", "view", "animate", "animateTransform", "animateMotion", "set",
))  # fmt: skip

_FLIP = Affine(d=-1.0)  # y points down in SVG

_CONTAINERS = ("use", "svg")  # their content is not read
_MARGIN = 0.05
_STROKE = 1 / 250
_DARK, _PALE = "#1b1f24", "#7a869a"
# Beyond this sweep the ends almost meet, and renderers draw a single SVG arc badly or not at all.
_LONGEST_ARC = math.tau - 0.1


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """Write one sketch as one drawing."""
    sketch = single_sketch(sketches, path)
    with atomic_write(path) as temporary:
        text = to_svg(sketch).encode()
        temporary.write_bytes(gzip.compress(text, mtime=0) if path.suffix.lower() == ".svgz" else text)
    return losses_in_format(sketch, "svg")


def to_svg(sketch: Sketch) -> str:
    """A sketch as the text of an SVG drawing."""
    box = bounds(sketch) if len(sketch) else Box((0.0, 0.0), (0.0, 0.0))
    size = box.size or 1.0
    margin, stroke = _MARGIN * size, _STROKE * size
    width, height = box.width + 2 * margin, box.height + 2 * margin
    real_size = ""
    if sketch.units is not None:
        mm = MM_PER_UNIT[sketch.units]
        real_size = f'width="{_text(width * mm)}mm" height="{_text(height * mm)}mm" '
    view = " ".join(map(_text, (box.low[0] - margin, -box.high[1] - margin, width, height)))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {real_size}viewBox="{view}">'
    group = f'<g fill="none" stroke="{_DARK}" stroke-width="{_text(stroke)}" stroke-linecap="round">'
    return "\n".join([svg, group, *(_element(p, stroke) for p in sketch), "</g>", "</svg>\n"])


def read(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[ReadItem]:
    """A drawing as one sketch, in the unit of its real size, and what was skipped or changed."""
    elements = _read_elements(path)
    _, root, _ = next(elements)
    scale, units = _units(root)
    mm_per_unit = scale * MM_PER_UNIT[units] if units else options.assumed_mm_per_unit
    flattener = Flattener(options.curve_tolerance_mm, mm_per_unit)
    primitives: list[Primitive] = []
    dropped = pieces = 0
    for element in elements:
        tag, _, to_page = element
        # A sketch is complete without text and pictures. A group is an element here only if its transform is invalid.
        is_shape = tag in SHAPES or tag in _CONTAINERS or to_page is None
        try:
            for item in _convert(element, flattener):
                if isinstance(item, Primitive):
                    primitives.extend(Sketch((item,)).moved(scale))
                else:
                    dropped += is_shape and isinstance(item, Skipped)
                    yield item
                pieces += not isinstance(item, Note)
                if pieces > MAX_ELEMENTS:  # one path may have many
                    raise FormatError(path, f"draws more than {MAX_ELEMENTS:,} lines and arcs; that is not a sketch")
        except FormatError:
            raise
        except (ArithmeticError, ValueError) as error:
            dropped += is_shape
            impossible = "an element with impossible numbers"
            yield Skipped(short_reason(error) if isinstance(error, SketchError) else impossible)
    if primitives:
        yield Sketch(tuple(primitives), units=units, extra={"dropped_entities": dropped} if dropped else {})
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
    """An arc as path data. Counter-clockwise with y up is sweep flag 0 with y down."""
    stops = [arc.mid, arc.end] if arc.sweep > _LONGEST_ARC else [arc.end]
    large = int(arc.sweep / len(stops) > math.pi)
    radius = _text(arc.radius)
    places = [f"{_text(x)} {_text(-y)}" for x, y in (arc.start, *stops)]
    return f"M {places[0]}" + "".join(f" A {radius} {radius} 0 {large} 0 {place}" for place in places[1:])


def _text(number: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(number) + 0.0).removesuffix(".0")  # + 0.0 makes -0.0 a plain zero


def _convert(element: Element, flattener: Flattener) -> Iterator[Primitive | Skipped | Note]:
    """The primitives of one element."""
    tag, attributes, to_page = element
    if to_page is None:
        yield Skipped("a transform we cannot read")
    elif tag not in SHAPES:
        yield Skipped(f"an SVG element <{tag[:40]}>")
    else:
        classes = attributes.get("class", "").split()
        items = _place(read_shape(tag, attributes), _FLIP @ to_page, flattener)
        for item in merge_circles(items) if tag == "path" and "arc" not in classes else items:
            if isinstance(item, Primitive) and "construction" in classes:
                item = replace(item, construction=True)
            yield item


def _place(
    pieces: Iterable[Primitive | NamedCurve | Skipped], to_sketch: Affine, flattener: Flattener
) -> Iterator[Primitive | Skipped | Note]:
    """The pieces of an element in the coordinates of the sketch, curves as lines and arcs."""
    for piece in pieces:
        if isinstance(piece, Skipped):
            yield piece
            continue
        name = piece.name if isinstance(piece, NamedCurve) else "a circle or arc that a transform makes an ellipse"
        try:
            placed = to_sketch.curve(piece.curve) if isinstance(piece, NamedCurve) else to_sketch.primitive(piece)
            if isinstance(placed, Primitive):
                yield placed
            else:
                yield from flattener.flatten(placed, name) or (Skipped(name),)
        except SketchError as error:
            yield Skipped(short_reason(error))


def _units(root: Mapping[str, str]) -> tuple[float, str | None]:
    """The scale of the coordinates, and their unit after scaling."""
    width, height = physical_length(root.get("width")), physical_length(root.get("height"))
    mm = MM_PER_PIXEL if width and height else 0.0
    if width and height and "viewBox" in root:
        with suppress(ValueError, ZeroDivisionError):
            _, _, view_width, view_height = map(float, root["viewBox"].replace(",", " ").split())
            mm = min(width / view_width, height / view_height)  # a view is fitted without distortion
    if not 0 < mm < math.inf:
        return 1.0, None
    same = (unit for unit, size in MM_PER_UNIT.items() if math.isclose(mm, size, rel_tol=1e-6))
    unit = next(same, None)
    return (1.0, unit) if unit else (mm, "mm")


def _recognizes(path: Path, head: bytes) -> bool:
    if head.startswith(GZIP_MAGIC):
        return path.suffix.lower() in (".svg", ".svgz")
    return b"<svg" in head or (path.suffix.lower() == ".svg" and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"))


def _read_elements(path: Path) -> Iterator[Element]:
    """The root, then each visible element, of a document of any depth up to `MAX_BYTES` and `MAX_ELEMENTS`.

    A compressed document is decompressed. Entities that stand for plain text are replaced, such as Illustrator's for
    namespaces; external and nested ones, and those that expand to more than `MAX_EXPANDED`, are refused.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError

    try:
        yield from _parse_elements(path)
    except DefusedXmlException as error:
        reason = "defines XML entities that are more than short plain text; save it as plain SVG"
        raise FormatError(path, reason) from error
    except ParseError as error:
        raise FormatError(path, f"is not well-formed XML: {error}") from error


class _TextEntities:
    """Checks each entity declaration of a document."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = self._expanded = 0

    def __call__(self, name: str, is_parameter_entity: bool, value: str | None, *others: str | None) -> None:
        from defusedxml import EntitiesForbidden

        self._count += 1
        is_text = value is not None and not is_parameter_entity and not any(mark in value for mark in "<&%")
        # References are counted as bytes, which works for ASCII names in an ASCII-compatible encoding.
        is_countable = name.isascii() and b"\0" not in self._data
        self._expanded += len(value or "") * self._data.count(f"&{name};".encode())
        if not is_text or not is_countable or self._count > MAX_ENTITIES or self._expanded > MAX_EXPANDED:
            raise EntitiesForbidden(name, value, *others)


def _parse_elements(path: Path) -> Iterator[Element]:
    from defusedxml.ElementTree import DefusedXMLParser, iterparse

    above: list[tuple[Any, Affine | None]] = []  # open elements; nothing inside is drawn without a transform
    parser = DefusedXMLParser(forbid_dtd=False)  # a document type is harmless, and many programs write one
    data = _data(path)
    parser.parser.EntityDeclHandler = _TextEntities(data)
    for event, element in iterparse(_Whole(data), events=("start", "end"), parser=parser):
        if event == "end":
            above.pop()
            element.clear()
            if above:
                above[-1][0].remove(element)
            continue
        namespace, _, tag = element.tag.rpartition("}")
        inside: Affine | None = None
        if not above:
            if tag != "svg" or namespace not in _NAMESPACES:
                raise FormatError(path, "is XML, but not an SVG drawing")
            inside = Affine()
            yield tag, dict(element.attrib), inside
        elif above[-1][1] is not None and namespace in _NAMESPACES and _is_visible(tag, element):
            try:
                inside = above[-1][1] @ parse_transform(element.get("transform", ""))
            except SketchError:
                yield tag, {}, None
            else:
                if tag not in _GROUPS:
                    yield tag, dict(element.attrib), inside
                    inside = None
        above.append((element, inside))


class _Whole(io.BytesIO):
    """Returns all data at once: with pieces, the parser would scan a long tag again for each of them."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read()


def _data(path: Path) -> bytes:
    """The document, decompressed if need be."""
    data = read_bounded(path, MAX_BYTES)
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise FormatError(path, "is compressed, but damaged or cut off") from error
    if len(data) > MAX_BYTES:
        raise FormatError(path, f"is larger than {MAX_BYTES >> 20} MiB; that is not a sketch")
    if data.count(b"<") > 2 * MAX_ELEMENTS:  # each begins and ends
        raise FormatError(path, f"holds more than {MAX_ELEMENTS:,} elements; that is not a sketch")
    return data


def _is_visible(tag: str, element: Any) -> bool:
    """Whether an element is visible; hidden layers and other frames of an animation are not."""
    rules = (rule.partition(":") for rule in element.get("style", "").split(";"))
    style = {name.strip(): value.strip() for name, _, value in rules}
    display, visibility = (style.get(name, element.get(name, "")) for name in ("display", "visibility"))
    return tag not in _NOT_DRAWN and display != "none" and visibility not in ("hidden", "collapse")


FORMAT = Format("svg", (".svg", ".svgz"), False, _recognizes, read, write, read_takes_options=True, is_text=True)
