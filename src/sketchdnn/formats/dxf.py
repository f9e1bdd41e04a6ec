"""DXF drawings, through ezdxf: model space is one sketch, and construction is a layer of its own with dashed lines.

A SPLINE and an ELLIPSE become lines and arcs. Entities that no primitive can hold (a TEXT, a tilted CIRCLE, …) and
hidden ones are counted by type. A DXF holds no constraints. A drawing is refused when it is larger than `MAX_BYTES`,
holds more than `MAX_TAGS` tags, or holds or expands to more than `MAX_ENTITIES` entities.
"""

from __future__ import annotations

import io
import logging
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sketchdnn.errors import FormatError, GeometryError
from sketchdnn.geometry import MM_PER_UNIT, Arc, Circle, Line, Point, Primitive, Sketch, bounds
from sketchdnn.io import atomic_write

from .checks import NO_UNITS, losses_in_format, read_bounded, single_sketch
from .dxf_entities import CONSTRUCTION_LAYER, NO_LOSS, TooManyEntitiesError, read_entities
from .flattening import Flattener
from .format import DEFAULT_READ_OPTIONS, Format, Losses, Note, ReadItem, ReadOptions, Skipped, separate_items
from .polylines import Polyline, to_polylines

if TYPE_CHECKING:
    from ezdxf.document import Drawing

MAX_BYTES = 64 * 2**20
MAX_ENTITIES = 100_000
MAX_TAGS = 2_000_000  # a tag is a group code and its value; a LINE has a dozen

# $INSUNITS codes: a unit of `MM_PER_UNIT`, and the size of the DXF unit in it.
_UNITS: Mapping[int, tuple[str, float]] = {
    1: ("in", 1), 2: ("ft", 1), 3: ("ft", 5280), 4: ("mm", 1), 5: ("cm", 1), 6: ("m", 1), 7: ("km", 1),
    8: ("mil", 1e-3), 9: ("mil", 1), 10: ("yd", 1), 11: ("um", 1e-4), 12: ("um", 1e-3), 13: ("um", 1), 14: ("dm", 1),
    15: ("m", 10), 16: ("m", 100), 17: ("km", 1e6), 18: ("km", 149_597_870.7), 19: ("km", 9.4607304725808e12),
    20: ("km", 3.0856775814914e13), 21: ("ft", 1200 / 3937 / 0.3048), 22: ("in", 1200 / 3937 / 0.3048),
    23: ("yd", 1200 / 3937 / 0.3048), 24: ("ft", 5280 * 1200 / 3937 / 0.3048),
}  # fmt: skip
_CODES = {unit: code for code, (unit, factor) in _UNITS.items() if factor == 1}

# Types that a sketch is incomplete without; a reason to skip an entity begins with its type.
_CURVES = ("LINE", "POINT", "CIRCLE", "ARC", "ELLIPSE", "LWPOLYLINE", "POLYLINE", "SPLINE", "HELIX", "MLINE", "INSERT")

_BINARY = b"AutoCAD Binary DXF\r\n\x1a\x00"
_FIRST_SECTION = re.compile(rb"(?:^|\n)[ \t]*0[ \t]*\r?\n[ \t]*SECTION")
_END = re.compile(rb"EOF[\s\x00\x1a]*\Z")  # DOS ended a file with 1A
_END_OF_SECTION = re.compile(rb"ENDSEC[\s\x00\x1a]*\Z")
_NO_END = Note("a drawing without its end mark (EOF), whole as far as can be told")


def _recognizes(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".dxf" or head.startswith(_BINARY) or bool(_FIRST_SECTION.search(head))


def read(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[ReadItem]:
    """The model space of a drawing as one sketch, then the counts of what was skipped or changed."""
    _import_ezdxf()
    file_notes = _check(path)
    try:
        sketch, skipped, notes = _read_document(path, options)
    except TooManyEntitiesError as error:
        raise FormatError(path, f"expands to more than {MAX_ENTITIES:,} entities; that is not a sketch") from error
    except GeometryError as error:
        raise FormatError(path, f"cannot be measured in its own units: {error}") from error
    except Exception as error:  # a broken file can make ezdxf raise anything
        raise FormatError(path, f"is a DXF drawing too broken to read ({type(error).__name__})") from error
    yield sketch if len(sketch) else Skipped("a drawing without a line, circle, arc or point", is_sketch=True)
    yield from (Skipped(reason, count=count) for reason, count in skipped.items() if count)
    if len(sketch) and sketch.units is None and options.assume_units is None:
        yield NO_UNITS
    yield from file_notes
    yield from (Note(text, count) for text, count in notes.items())


def write(sketches: Iterable[Sketch], path: Path, *, polylines: bool = False) -> Losses:
    """Write one sketch as DXF R2010. The same sketch gives the same bytes.

    Args:
        sketches: One sketch.
        path: The file.
        polylines: Write a polyline for each loop and chain, not an entity for each primitive.
    """
    sketch = single_sketch(sketches, path)
    items = list(to_polylines(sketch) if polylines else sketch)
    _import_ezdxf()
    from ezdxf import options  # type: ignore[attr-defined]

    # Fix the time and the random names that ezdxf otherwise writes into every file.
    with _replaced(options, "write_fixed_meta_data_for_testing", True), atomic_write(path) as temporary:
        _document(sketch, items).saveas(temporary)
    losses = losses_in_format(sketch, "dxf")
    if gaps := sum(item.closed_gaps for item in items if isinstance(item, Polyline)):
        losses.changed["a gap between ends, closed where a polyline has one corner"] = gaps
    return losses


FORMAT = Format("dxf", (".dxf",), False, _recognizes, read, write, ("polylines",), True, is_text=True)


def _import_ezdxf() -> None:
    """Import ezdxf without the `ezdxf.ini` of the working folder, which it reads at import and nobody checked."""
    if "ezdxf" not in sys.modules:
        with _replaced(ConfigParser, "read", lambda self, *args, **options: []):
            import ezdxf  # noqa: F401


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """An attribute has another value for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _document(sketch: Sketch, items: Iterable[Polyline | Primitive]) -> Drawing:
    from ezdxf.filemanagement import new

    document = new("R2010", units=_CODES[sketch.units] if sketch.units else 0)
    document.linetypes.add("DASHED", pattern=[0.75, 0.5, -0.25], description="Dashed __ __ __")
    document.layers.add(CONSTRUCTION_LAYER, linetype="DASHED")
    space = document.modelspace()
    for item in items:
        if isinstance(item, Polyline):
            # A bulge is tan(sweep / 4), negative for clockwise.
            points = [(*vertex.at, math.tan(vertex.sweep / 4)) for vertex in item.vertices]
            space.add_lwpolyline(points, format="xyb", close=item.closed)
        else:
            _add(space, item)
    if len(sketch):
        box = bounds(sketch)
        size = box.size or 1.0
        document.header["$LTSCALE"] = size / 40  # a dash in proportion to the drawing, whatever its units
        document.set_modelspace_vport(height=1.2 * size, center=box.center)
    # ezdxf would declare these on saving, but in an order that differs between processes.
    for name in sorted(document.entitydb.dxf_types_in_use()):
        document.classes.add_class(name)
    return document


def _add(space: Any, primitive: Primitive) -> None:
    layer = {"layer": CONSTRUCTION_LAYER if primitive.construction else "0"}
    match primitive:
        case Line(start, end):
            space.add_line(start, end, layer)
        case Circle(center, radius):
            space.add_circle(center, radius, layer)
        case Arc(center, radius):
            angles = math.degrees(primitive.start_angle), math.degrees(primitive.end_angle)
            space.add_arc(center, radius, *angles, dxfattribs=layer)
        case Point(at):
            space.add_point(at, layer)


def _check(path: Path) -> list[Note]:
    """Refuse data that is not DXF, is truncated, or would take too long to parse."""
    data = read_bounded(path, MAX_BYTES)
    if not data:
        raise FormatError(path, "is empty")
    is_binary = data.startswith(_BINARY)
    if not is_binary and not _FIRST_SECTION.search(data, 0, 2**16):
        raise FormatError(path, "is not a DXF drawing")
    has_end = _END.search(data, len(data) - 2**10) is not None
    # Some programs write no EOF. A drawing that was cut off ends in a section that is open, or before its entities.
    if not has_end and not (_END_OF_SECTION.search(data, len(data) - 2**10) and b"ENTITIES" in data):
        raise FormatError(path, "is cut off: a DXF ends in EOF")
    for codes in _group_codes(data, is_binary=is_binary):
        num_entities = sum(count for code, count in codes.items() if _begins_entity(code))
        for count, limit, name in ((codes.total(), MAX_TAGS, "tags"), (num_entities, MAX_ENTITIES, "entities")):
            if count > limit:
                raise FormatError(path, f"holds more than {limit:,} {name}; that is not a sketch")
    return [] if has_end else [_NO_END]


def _group_codes(data: bytes, *, is_binary: bool) -> Iterator[Counter[int | str | bytes]]:
    """The count of each group code, up to `MAX_TAGS` + 1 in all, as each of ezdxf's readers would pair the lines.

    To the plain reader a single carriage return ends a line, to the recovering one it does not.
    """
    from ezdxf.lldxf.tagger import binary_tags_loader

    most = MAX_TAGS + 1
    if is_binary:
        yield Counter(islice((tag.code for tag in binary_tags_loader(data)), most))
        return
    yield Counter(islice(io.TextIOWrapper(io.BytesIO(data), "latin-1"), 0, 2 * most, 2))
    if data.count(b"\r") > data.count(b"\r\n"):
        yield Counter(islice(io.BytesIO(data), 0, 2 * most, 2))


def _begins_entity(code: int | str | bytes) -> bool:
    """Whether a group code is 0 in any spelling. Text that is no number may be one in another encoding."""
    try:
        return int(code) == 0
    except ValueError:
        return True


def _read_document(path: Path, options: ReadOptions) -> tuple[Sketch, Counter[str], Counter[str]]:
    """The sketch, and the counts of what was skipped and of what was changed."""
    document, skipped = _load(path)
    units, factor = _UNITS.get(document.header.get("$INSUNITS", 0), (None, 1))
    mm_per_unit = factor * MM_PER_UNIT[units] if units else options.assumed_mm_per_unit
    entities = read_entities(document, MAX_ENTITIES, Flattener(options.curve_tolerance_mm, mm_per_unit))
    primitives, skipped_entities, notes = separate_items(entities)
    skipped.update(skipped_entities)
    # A sketch is incomplete without a visible curve that has a length.
    lost = (r for r in skipped_entities if r.split()[0] in _CURVES and not r.endswith(NO_LOSS))
    dropped = sum(skipped_entities[reason] for reason in lost)
    sheets = [layout for layout in document.layouts if layout.is_any_paperspace]
    skipped["an entity in paper space"] = sum(e.dxftype() != "VIEWPORT" for sheet in sheets for e in sheet)
    sketch = Sketch(primitives, extra={"dropped_entities": dropped} if dropped else {})
    return replace(sketch if factor == 1 else sketch.moved(factor), units=units), skipped, notes


def _load(path: Path) -> tuple[Drawing, Counter[str]]:
    """The document, and the number of flaws that were repaired.

    The plain reader goes first: the recovering one drops entities over minor errors such as a duplicate handle.
    """
    from ezdxf import recover
    from ezdxf.filemanagement import readfile

    if not (log := logging.getLogger("ezdxf")).handlers:
        log.addHandler(logging.NullHandler())  # its messages are not for stderr
    try:
        return readfile(path), Counter()
    except Exception:  # noqa: BLE001 - the other reader may recover from any error
        document, auditor = recover.readfile(path)
    flaws = len(auditor.errors) + len(auditor.fixes)
    return document, Counter({"a flaw of the file, repaired; what it spoilt may be missing": flaws})
