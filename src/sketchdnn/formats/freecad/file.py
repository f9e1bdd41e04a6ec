"""FreeCAD documents: zip files whose `Document.xml` lists objects, sketches among them.

Nothing is unpacked to disk, and only that one member is read, up to `MAX_BYTES` of it. The plane of a sketch in space
is not read. FreeCAD measures in millimeters. Written documents have a second member, `GuiDocument.xml`: FreeCAD hides
each object without a view provider there, and rejects the file without a camera.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from sketchdnn.errors import FormatError, GeometryError, SketchError
from sketchdnn.formats.checks import fill_template, losses_in_format
from sketchdnn.formats.format import Format, Losses, ReadItem, Skipped
from sketchdnn.geometry import Box, Primitive, Sketch, bounds
from sketchdnn.io import atomic_write

from .constraints import MissingGeometryError, to_constraint
from .elements import Relation, primitive_element, printable, read_primitive, read_relation
from .notes import PROPERTY, read_notes, write_notes

MAX_BYTES = 32 * 2**20
MAX_TAGS = 1_000_000  # of XML; each takes some 300 bytes of memory, and a geometry has seven
# Real documents are packed up to 17 times; a zip bomb is packed tighter.
MAX_RATIO = 200
_MEMBER = "Document.xml"
_NOT_WHOLE = "is not a whole zip file, as a FreeCAD document is"
_SKETCH = "Sketcher::SketchObject"
_GUI_MEMBER = "GuiDocument.xml"
_TEMPLATES = Path(__file__).parent / "templates"
_MARGIN = 1.2
_DOC = "What FreeCAD has no place for; says which constraints are redundant or could not be said"
_DYNAMIC = str(1 << 21)  # the status of a property that is not FreeCAD's own


def _recognizes(path: Path, head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and (path.suffix.lower() == ".fcstd" or _MEMBER.encode() in head[:128])


def read(path: Path) -> Iterator[ReadItem]:
    """Read every sketch of a document, each followed by what was left out of it."""
    root = _parse(path)
    types = {of.get("name"): of.get("type", "") for of in root.iterfind("Objects/Object")}
    sketches = [of for of in root.iterfind("ObjectData/Object") if types.get(of.get("name"), "").startswith(_SKETCH)]
    if not sketches:
        yield Skipped("a document without a sketch")
    for sketch in sketches:
        yield from _read_sketch(sketch)


def write(sketches: Iterable[Sketch], path: Path, *, dimensions: bool = False) -> Losses:
    """Write a document with an object for each sketch; constraints that FreeCAD would refuse are switched off.

    With `dimensions`, each sketch gets the dimensions that it lacks until nothing is free to move.
    """
    losses = Losses()
    names: list[str] = []
    boxes: list[Box] = []
    objects: list[bytes] = []
    left = MAX_BYTES - 2**16
    for number, sketch in enumerate(sketches):
        name = f"Sketch{number:03d}" if number else "Sketch"
        try:
            in_mm = sketch.in_units("mm")
            element, inactive = _sketch_element(in_mm, name, dimensions=dimensions)
        except SketchError as error:
            raise FormatError(path, f"cannot be written: {error}") from error
        losses.changed.update(inactive)
        losses.update(losses_in_format(sketch, "freecad", constraints=True, keys=sketch.extra, units="mm"))
        objects.append(tostring(element, encoding="utf-8"))
        names.append(name)
        boxes.extend([bounds(in_mm)] if len(in_mm) else [])
        left -= len(objects[-1]) + len(name) + 64  # the line of the object in the list of all
        if left < 0:
            raise FormatError(path, f"would be larger than {MAX_BYTES >> 20} MiB; write to a folder, a file a sketch")
    # FreeCAD cannot read on after an empty element that is closed where it opens, so the template has none.
    xml = fill_template(_TEMPLATES / "Document.xml.jinja", names=names, objects=b"\n".join(objects).decode())
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for member, content in ((_MEMBER, xml), (_GUI_MEMBER, _gui_document(names, boxes))):
            info = zipfile.ZipInfo(member)  # without a time: the same sketch gives the same bytes
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return losses


FORMAT = Format("freecad", (".FCStd",), True, _recognizes, read, write, write_options=("dimensions",))


def _parse(path: Path) -> Element:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    xml = _document_xml(path)
    if xml.count(b"<") > MAX_TAGS:
        raise FormatError(path, f"its {_MEMBER} holds more than {MAX_TAGS:,} XML tags")
    try:
        return fromstring(xml, forbid_dtd=True)
    except DefusedXmlException as error:
        raise FormatError(path, f"its {_MEMBER} defines entities of its own, which is not safe to read") from error
    except (ParseError, ValueError, LookupError) as error:
        raise FormatError(path, f"its {_MEMBER} is not proper XML") from error


def _document_xml(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(_MEMBER)
            if member.flag_bits & 1:
                raise FormatError(path, "is encrypted")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FormatError(path, f"its {_MEMBER} is packed as FreeCAD never does")
            with archive.open(member) as file:
                data = file.read(MAX_BYTES + 1)
    except FormatError:
        raise
    except KeyError as error:
        raise FormatError(path, f"is a zip file without {_MEMBER}, so no FreeCAD document") from error
    except NotImplementedError:
        # Raised by zipfile for kinds of zip files that it does not support.
        raise FormatError(path, _NOT_WHOLE) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise FormatError(path, _NOT_WHOLE) from error
    if len(data) > MAX_BYTES:
        raise FormatError(path, f"its {_MEMBER} is larger than {MAX_BYTES >> 20} MiB")
    if len(data) > MAX_RATIO * max(1, member.compress_size) + 2**16:
        raise FormatError(path, f"its {_MEMBER} unpacks to over {MAX_RATIO} times its size, as a zip bomb does")
    return data


def _read_sketch(of: Element) -> Iterator[ReadItem]:
    """The sketch of one object, and what was left out of it."""
    skipped: Counter[str] = Counter()
    primitives: list[Primitive] = []
    numbering: list[int | None] = []  # the number of the primitive that each geometry became, if it did
    for element in of.iterfind(_path("Geometry", "GeometryList/Geometry")):
        primitive = read_primitive(element)
        if isinstance(primitive, str):
            skipped[primitive] += 1
            numbering.append(None)
        else:
            numbering.append(len(primitives))
            primitives.append(primitive)
    relations: list[Relation] = []
    for element in of.iterfind(_path("Constraints", "ConstraintList/Constrain")):
        try:
            relations.append(read_relation(element))
        except ValueError:
            skipped["a constraint of a kind or with numbers that we do not know"] += 1
    texts = [text.get("value", "") for text in of.iterfind(_path(PROPERTY, "StringList/String"))]
    notes = read_notes(texts, primitives, relations)
    constraints = list(notes.constraints)
    for relation in notes.relations:
        try:
            constraint = to_constraint(relation, numbering, primitives)
            Sketch(tuple(primitives), (constraint,))  # refuses a part that its primitive does not have
            constraints.append(constraint)
        except MissingGeometryError:
            skipped["a constraint on geometry that was left out"] += 1
        except GeometryError:
            skipped["a constraint on a part that its geometry does not have"] += 1
    if primitives:
        label = of.find(_path("Label", "String"))
        name = (label.get("value") if label is not None else None) or of.get("name", "")
        dropped = {"dropped_entities": lost} if (lost := numbering.count(None)) else {}
        yield Sketch(tuple(primitives), tuple(constraints), "mm", {**notes.extra, "name": name, **dropped})
    else:
        yield Skipped("a sketch without a line, circle, arc or point", is_sketch=True)
    yield from (Skipped(reason, count=count) for reason, count in skipped.items())


def _sketch_element(sketch: Sketch, name: str, *, dimensions: bool) -> tuple[Element, Counter[str]]:
    """The object of a sketch in millimeters, and counts of why constraints are not active in it."""
    selected, reasons = [], Counter[str]()
    if sketch.constraints or dimensions:
        from .selection import REPORTED, fully_dimensioned, select_relations

        sketch = fully_dimensioned(sketch) if dimensions else sketch
        selected = select_relations(sketch)
        reasons.update(REPORTED[s.note] for s in selected if s.note)
    of = Element("Object", name=name)
    properties = SubElement(of, "Properties", Count="4")
    label = SubElement(properties, "Property", name="Label", type="App::PropertyString")
    SubElement(label, "String", value=printable(str(sketch.extra.get("name") or sketch.extra.get("id") or name)))
    shapes = [primitive_element(primitive) for primitive in sketch]
    _add_list(properties, "Geometry", "Part::PropertyGeometryList", "GeometryList", shapes)
    relations = [r.to_element() for s in selected for r in s.relations]
    _add_list(properties, "Constraints", "Sketcher::PropertyConstraintList", "ConstraintList", relations)
    notes = [Element("String", value=note) for note in write_notes(sketch, selected)]
    ours = _add_list(properties, PROPERTY, "App::PropertyStringList", "StringList", notes)
    ours.attrib |= {"group": PROPERTY, "doc": _DOC, "attr": "0", "ro": "0", "hide": "0", "status": _DYNAMIC}
    return of, reasons


def _path(title: str, path: str) -> str:
    return f"Properties/Property[@name='{title}']/{path}"


def _add_list(properties: Element, title: str, type_: str, tag: str, items: Sequence[Element]) -> Element:
    of = SubElement(properties, "Property", name=title, type=type_)
    of_items = SubElement(of, tag, count=str(len(items)))
    of_items.text = "\n"  # an empty list must not be closed where it opens
    of_items.extend(items)
    return of


def _gui_document(names: Sequence[str], boxes: Sequence[Box]) -> str:
    """The `GuiDocument.xml` that shows the objects with these names, seen from above, fitted to the window."""
    left, bottom = (min((box.low[axis] for box in boxes), default=-1.0) for axis in (0, 1))
    right, top = (max((box.high[axis] for box in boxes), default=1.0) for axis in (0, 1))
    box = Box((left, bottom), (right, top))
    size = box.size or 1.0
    x, y = box.center
    camera = {"x": x, "y": y, "z": size, "near": size / 2, "far": size * 3 / 2, "height": size * _MARGIN}
    return fill_template(_TEMPLATES / "GuiDocument.xml.jinja", names=names, **camera)
