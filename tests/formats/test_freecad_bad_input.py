"""Broken and hostile FreeCAD documents: one sentence, nothing unpacked, nothing half-written."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_document import document_xml, zipped

from sketchdnn.errors import FormatError
from sketchdnn.formats import collect
from sketchdnn.formats.freecad import FORMAT
from sketchdnn.formats.freecad.file import MAX_BYTES
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

SKETCH = Sketch(
    (Line((0, 0), (4, 0)), Arc((1, 2), 3, 0.5, 2), Circle((0, 1), 2, True), Point((3, 3))),
    (Constraint(ConstraintType.HORIZONTAL, (Ref(0),)), Constraint(ConstraintType.RADIUS, (Ref(2),), 2.0)),
    "mm",
)


def refused(path: Path, match: str) -> None:
    with pytest.raises(FormatError, match=match) as caught:
        list(FORMAT.read(path))
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    for content in (b"", b"PK\x03\x04", b"hello", b"\x89PNG" + bytes(999), b"PK\x05\x06" + bytes(9)):
        path.write_bytes(content)
        refused(path, "zip file")
    refused(tmp_path / "nowhere.FCStd", "cannot be read")
    refused(tmp_path, "cannot be read")
    FORMAT.write([SKETCH], path)
    whole = path.read_bytes()
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        refused(path, "zip file")
    refused(zipped(path, "<Document/>", "word/document.xml"), r"without Document\.xml")
    refused(zipped(path, "<Document/>", method=zipfile.ZIP_LZMA), "packed")


@pytest.mark.parametrize(("place", "value"), [(6, 99), (8, 0x20), (8, 0x40)])  # a later version, patches, a cipher
def test_unsupported_kinds_of_zip_are_refused(tmp_path: Path, place: int, value: int) -> None:
    """zipfile has NotImplementedError for these, which in a chain of causes would stand for a gap in our own code."""
    path = zipped(tmp_path / "a.FCStd", "<Document/>")
    content = bytearray(path.read_bytes())
    entry = content.find(b"PK\x01\x02")
    content[entry + place : entry + place + 2] = value.to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(FormatError, match="zip file") as refusal:
        collect(FORMAT.read(path))
    assert refusal.value.__cause__ is None


# A billion laughs, an external file, and a document type that is merely there.
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
BOMBS = (
    f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l9;</a>',
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><a/>',
)


def test_broken_and_hostile_xml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    bad_encoding = b"<?xml version='1.0' encoding='x'?><a/>"
    for xml in ("", "<Document>", "no xml", "<a></b>", b"\xff\xfe\x00<\x00", bad_encoding):
        refused(zipped(path, xml), "not proper XML")
    for bomb in BOMBS:
        refused(zipped(path, bomb), "entities")
    refused(zipped(path, b"<a>" + b" " * (4 * 2**20) + b"</a>"), "zip bomb")
    refused(zipped(path, b"<a>" + bytes(MAX_BYTES), method=zipfile.ZIP_STORED), "MiB")


@pytest.mark.parametrize("xml", ["<a/>", "<Document/>", "<Document><ObjectData><Object/></ObjectData></Document>"])
def test_document_without_objects_is_empty(tmp_path: Path, xml: str) -> None:
    reading = collect(FORMAT.read(zipped(tmp_path / "a.FCStd", xml)))
    assert not len(reading)
    assert reading.skipped == {"a document without a sketch": 1}


def test_false_size_in_the_header_is_refused(tmp_path: Path) -> None:
    """The header promises ten bytes; what is behind it is not read past the limit."""
    path = zipped(tmp_path / "a.FCStd", b"<a>" + b" " * (2 * MAX_BYTES))
    data = bytearray(path.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    refused(path, "zip|XML")


def test_encrypted_document_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.FCStd", "<Document/>")
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    refused(path, "encrypted")


def test_deeply_nested_xml_is_handled(tmp_path: Path) -> None:
    depth = 200_000
    path = zipped(tmp_path / "a.FCStd", b"<a>" * depth + b"</a>" * depth, method=zipfile.ZIP_STORED)
    assert not len(collect(FORMAT.read(path)))


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    for extra in ({"thing": object()}, {"number": float("nan")}):
        with pytest.raises(FormatError, match="cannot be written"):
            FORMAT.write([Sketch((Point((0, 0)),), extra=extra)], path)
    assert not list(tmp_path.iterdir())


def test_document_too_large_to_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sketchdnn.formats.freecad.file.MAX_BYTES", 2**17)
    FORMAT.write([SKETCH] * 10, tmp_path / "a.FCStd")
    assert len(collect(FORMAT.read(tmp_path / "a.FCStd"))) == 10
    with pytest.raises(FormatError, match="folder"):
        FORMAT.write(iter([SKETCH] * 1000), tmp_path / "b.FCStd")
    assert [path.name for path in tmp_path.iterdir()] == ["a.FCStd"]


def test_long_chain_is_written_without_rank_check(tmp_path: Path) -> None:
    n = 3000
    lines = tuple(Line((i, i % 2), (i + 1, (i + 1) % 2)) for i in range(n))
    chain = tuple(
        Constraint(ConstraintType.COINCIDENT, (Ref(i, Part.END), Ref(i + 1, Part.START))) for i in range(n - 1)
    )
    FORMAT.write([Sketch(lines, chain)], tmp_path / "a.FCStd")
    (back,) = collect(FORMAT.read(tmp_path / "a.FCStd"))
    assert back.constraints == chain


NUMBERS = st.sampled_from(
    ["nan", "inf", "-inf", "1e999", "1e308", "-0", "", "x", "99999999999999999999", "-2000", "-3", "3.5"]
)


@given(draw=st.data())
def test_impossible_attributes_skip_only_their_element(
    tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject
) -> None:
    from xml.etree import ElementTree as ET

    folder = tmp_path_factory.mktemp("freecad")
    FORMAT.write([SKETCH], folder / "a.FCStd")
    root = ET.fromstring(document_xml(folder / "a.FCStd"))
    tags = ("LineSegment", "ArcOfCircle", "Circle", "GeomPoint", "Constrain", "GeoExtension", "Geometry", "String")
    for element in root.iter():
        if element.tag in tags and draw.draw(st.booleans()):
            element.set(draw.draw(st.sampled_from(sorted(element.attrib))), draw.draw(NUMBERS))
    reading = collect(FORMAT.read(zipped(folder / "b.FCStd", ET.tostring(root))))
    assert len(reading) + sum(reading.skipped.values()) >= 1
