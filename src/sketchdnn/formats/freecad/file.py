"""A FreeCAD document is a zip file; its `Document.xml` says what objects there are, and sketches are among them.

Nothing is unpacked to disk, and only that one member is looked at, up to `MAX_BYTES` of it. A sketch lies in a plane of
its own: where that plane is in space is not kept. FreeCAD measures in millimeters. What we write holds a second member,
`GuiDocument.xml`, without which FreeCAD's window stays empty.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, tostring

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats.format import Format, Losses, ReadItem, Skipped, format_losses
from sketchdnn.geometry import Box, Sketch, bounds
from sketchdnn.io import atomic_write

from . import view
from .objects import read_object, to_object
from .settled import settled

MAX_BYTES = 32 * 2**20
MAX_TAGS = 1_000_000  # of XML, each of which takes some 300 bytes of memory; a geometry has seven
# No honest document packs tighter (real ones: 17); a bomb does.
MAX_RATIO = 200
_MEMBER = "Document.xml"
_NOT_WHOLE = "is not a whole zip file, as a FreeCAD document is"
_SKETCH = "Sketcher::SketchObject"
# FreeCAD is lost after an empty list that is closed where it opens, so none is.
_DOCUMENT = b"""<?xml version='1.0' encoding='utf-8'?>
<Document SchemaVersion="4" ProgramVersion="0.20" FileVersion="1">
<Properties Count="0">
</Properties>
<Objects Count="%(count)d">
%(heads)s</Objects>
<ObjectData Count="%(count)d">
%(objects)s
</ObjectData>
</Document>
"""


def _recognizes(path: Path, head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and (path.suffix.lower() == ".fcstd" or _MEMBER.encode() in head[:128])


def read(path: Path) -> Iterator[ReadItem]:
    """Every sketch of a document, each followed by what was left out of it."""
    root = _parse(path)
    types = {of.get("name"): of.get("type", "") for of in root.iterfind("Objects/Object")}
    sketches = [of for of in root.iterfind("ObjectData/Object") if types.get(of.get("name"), "").startswith(_SKETCH)]
    if not sketches:
        yield Skipped("a document without a sketch")
    for sketch in sketches:
        yield from read_object(sketch)


def write(sketches: Iterable[Sketch], path: Path, *, dimensions: bool = False) -> Losses:
    """A document with a sketch object for each; constraints that FreeCAD would refuse are in it, switched off.

    With `dimensions`, each gets those that its constraints lack until nothing is free to move.
    """
    losses = Losses()
    names: list[str] = []
    boxes: list[Box] = []
    heads: list[bytes] = []
    objects: list[bytes] = []
    left = MAX_BYTES - 2**16
    for number, sketch in enumerate(sketches):
        name = f"Sketch{number:03d}" if number else "Sketch"
        heads.append(f'<Object type="{_SKETCH}" name="{name}" Touched="1"/>\n'.encode())
        try:
            in_mm = sketch.in_units("mm")
            object_, inactive = to_object(settled(in_mm) if dimensions else in_mm, name)
            losses.changed.update(inactive)
            losses.update(format_losses(sketch, "freecad", constraints=True, keys=sketch.extra, units="mm"))
            objects.append(tostring(object_, encoding="utf-8"))
            names.append(name)
            boxes.extend([bounds(in_mm)] if len(in_mm) else [])
        except SketchError as error:
            raise FormatError(path, f"cannot be written: {error}") from error
        left -= len(heads[-1]) + len(objects[-1])
        if left < 0:
            raise FormatError(path, f"would be larger than {MAX_BYTES >> 20} MiB; write to a folder, a file a sketch")
    xml = _DOCUMENT % {b"count": len(objects), b"heads": b"".join(heads), b"objects": b"\n".join(objects)}
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for member, content in ((_MEMBER, xml), (view.MEMBER, view.gui_document(names, boxes))):
            info = zipfile.ZipInfo(member)  # which has no time: the same sketch gives the same bytes
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return losses


FORMAT = Format(
    "freecad", (".FCStd",), holds_many=True, recognizes=_recognizes, read=read, write=write, options=("dimensions",)
)


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
        # How zipfile refuses a sort of zip file that it does not know; as a cause it would look like a gap in our code.
        raise FormatError(path, _NOT_WHOLE) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise FormatError(path, _NOT_WHOLE) from error
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror or error})") from error
    if len(data) > MAX_BYTES:
        raise FormatError(path, f"its {_MEMBER} is larger than {MAX_BYTES >> 20} MiB")
    if len(data) > MAX_RATIO * max(1, member.compress_size) + 2**16:
        raise FormatError(path, f"its {_MEMBER} unpacks to over {MAX_RATIO} times its size, as a zip bomb does")
    return data
