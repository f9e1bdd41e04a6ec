"""The elements of an SVG document that are drawn, one by one, each with the map from its coordinates to the page's.

A compressed document is unpacked, up to `MAX_BYTES`. Entities that stand for plain text are replaced, as Illustrator's
for namespaces; external and nested ones, and those that expand to more than `MAX_EXPANDED`, are refused.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError

from .svg_transform import Affine, parse_transform

GZIP_MAGIC = b"\x1f\x8b"
# As large as a DXF drawing may be, unpacked, and as many as it may have entities.
MAX_BYTES = 64 * 2**20
MAX_ELEMENTS = 100_000
MAX_ENTITIES = 100
MAX_EXPANDED = 2**20  # characters that all entities of a document put into it

Element = tuple[str, Mapping[str, str], Affine | None]

_NAMESPACES = ("", "{http://www.w3.org/2000/svg")
_GROUPS = frozenset({"g", "a", "switch"})
# Not drawn by themselves: nothing is lost by passing them over.
_NOT_DRAWN = frozenset(
    {
        "defs",
        "title",
        "desc",
        "metadata",
        "style",
        "script",
        "symbol",
        "clipPath",
        "mask",
        "pattern",
        "marker",
        "filter",
    }
    | {"linearGradient", "radialGradient", "view", "animate", "animateTransform", "animateMotion", "set"}
)


def elements(path: Path) -> Iterator[Element]:
    """Tag, attributes and map of the root and then of all that is drawn; no map where a transform cannot be read.

    Neither the size nor the depth of a document matters, up to `MAX_BYTES` and `MAX_ELEMENTS`.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError

    try:
        yield from _elements(path)
    except DefusedXmlException as error:
        reason = "defines XML entities that are more than short plain text; save it as plain SVG"
        raise FormatError(path, reason) from error
    except ParseError as error:
        raise FormatError(path, f"is not well-formed XML: {error}") from error


class _TextEntities:
    """Decides whether the entities that a document declares may be replaced by their text."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = self._expanded = 0

    def __call__(self, name: str, is_parameter_entity: bool, value: str | None, *others: str | None) -> None:
        from defusedxml import EntitiesForbidden

        self._count += 1
        is_text = value is not None and not is_parameter_entity and not any(mark in value for mark in "<&%")
        # References are counted as bytes, which are others in UTF-16, and for a name beyond ASCII.
        is_countable = name.isascii() and b"\0" not in self._data
        self._expanded += len(value or "") * self._data.count(f"&{name};".encode())
        if not is_text or not is_countable or self._count > MAX_ENTITIES or self._expanded > MAX_EXPANDED:
            raise EntitiesForbidden(name, value, *others)


def _elements(path: Path) -> Iterator[Element]:
    from defusedxml.ElementTree import DefusedXMLParser, iterparse

    above: list[tuple[Any, Affine | None]] = []  # elements that are open; no map: nothing inside is drawn
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
        elif above[-1][1] is not None and namespace in _NAMESPACES and _is_drawn(tag, element):
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
    """Read at once, whatever is asked for: in pieces, the parser would go over a long tag again with each of them."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read()


def _data(path: Path) -> bytes:
    """The document, unpacked where it is compressed."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise FormatError(path, "is compressed, but damaged or cut off") from error
    if len(data) > MAX_BYTES:
        raise FormatError(path, f"is larger than {MAX_BYTES >> 20} MiB; that is no sketch")
    if data.count(b"<") > 2 * MAX_ELEMENTS:  # each begins and ends
        raise FormatError(path, f"holds more than {MAX_ELEMENTS:,} elements; that is no sketch")
    return data


def _is_drawn(tag: str, element: Any) -> bool:
    """Hidden layers and other frames of an animation are no part of the drawing that a person sees."""
    rules = (rule.partition(":") for rule in element.get("style", "").split(";"))
    style = {name.strip(): value.strip() for name, _, value in rules}
    display, visibility = (style.get(name, element.get(name, "")) for name in ("display", "visibility"))
    return tag not in _NOT_DRAWN and display != "none" and visibility not in ("hidden", "collapse")
