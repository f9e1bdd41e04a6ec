"""Broken and hostile FreeCAD documents: one sentence, nothing unpacked, nothing half-written."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def zipped(path: Path, xml: bytes | str, name: str = "Document.xml", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, xml)
    return path


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello", b"\x89PNG" + bytes(999), b"PK\x05\x06" + bytes(9)])
def test_files_that_are_no_zip_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.FCStd"
    path.write_bytes(content)
    refused(path, "zip file")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere.FCStd", "cannot be read")
    refused(tmp_path, "cannot be read")


def test_truncated_document_is_refused(tmp_path: Path) -> None:
    FORMAT.write([SKETCH], tmp_path / "a.FCStd")
    whole = (tmp_path / "a.FCStd").read_bytes()
    for tenth in range(10):
        (tmp_path / "b.FCStd").write_bytes(whole[: len(whole) * tenth // 10])
        refused(tmp_path / "b.FCStd", "zip file")


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


def test_other_zip_file_is_refused(tmp_path: Path) -> None:
    refused(zipped(tmp_path / "a.FCStd", "<Document/>", "word/document.xml"), r"without Document\.xml")


@pytest.mark.parametrize(
    "xml", ["", "<Document>", "no xml", "<a></b>", b"\xff\xfe\x00<\x00", b"<?xml version='1.0' encoding='x'?><a/>"]
)
def test_broken_xml_is_refused(tmp_path: Path, xml: str | bytes) -> None:
    refused(zipped(tmp_path / "a.FCStd", xml), "not proper XML")


@pytest.mark.parametrize("xml", ["<a/>", "<Document/>", "<Document><ObjectData><Object/></ObjectData></Document>"])
def test_document_without_objects_is_empty(tmp_path: Path, xml: str) -> None:
    reading = collect(FORMAT.read(zipped(tmp_path / "a.FCStd", xml)))
    assert not len(reading)
    assert reading.skipped == {"a document without a sketch": 1}


def test_entity_bomb_is_refused(tmp_path: Path) -> None:
    """A billion laughs, an external file, and a document type that is merely there."""
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    bombs = [
        f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]><a>&l9;</a>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><a/>',
    ]
    for bomb in bombs:
        refused(zipped(tmp_path / "a.FCStd", bomb), "entities")


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    refused(zipped(tmp_path / "a.FCStd", b"<a>" + b" " * (4 * 2**20) + b"</a>"), "zip bomb")
    refused(zipped(tmp_path / "a.FCStd", b"<a>" + bytes(MAX_BYTES), method=zipfile.ZIP_STORED), "MiB")


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


def test_other_compression_is_refused(tmp_path: Path) -> None:
    refused(zipped(tmp_path / "a.FCStd", "<Document/>", method=zipfile.ZIP_LZMA), "packed")


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
    """Thousands of connected lines are more than is worth checking for redundancy."""
    n = 3000
    lines = tuple(Line((i, i % 2), (i + 1, (i + 1) % 2)) for i in range(n))
    chain = tuple(
        Constraint(ConstraintType.COINCIDENT, (Ref(i, Part.END), Ref(i + 1, Part.START))) for i in range(n - 1)
    )
    FORMAT.write([Sketch(lines, chain)], tmp_path / "a.FCStd")
    (back,) = collect(FORMAT.read(tmp_path / "a.FCStd"))
    assert back.constraints == chain


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Documents as we write them, and some real ones where there are any: the XML, and the whole file."""
    folder = tmp_path_factory.mktemp("freecad")
    FORMAT.write([SKETCH, SKETCH], folder / "ours.FCStd")
    real = Path(os.environ.get("SKETCHDNN_DATA") or "nowhere", "freecad")
    return [path.read_bytes() for path in [folder / "ours.FCStd", *sorted(real.glob("*.FCStd"))[:6]]]


@given(draw=st.data())
def test_damage_is_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, documents: list[bytes], draw: st.DataObject
) -> None:
    """Of the file as it lies there, and of the XML inside."""
    whole = draw.draw(st.sampled_from(documents))
    path = tmp_path_factory.mktemp("freecad") / "a.FCStd"
    if draw.draw(st.booleans()):
        path.write_bytes(damaged(whole, b"\x00\xff\x50\x4b0", draw))
    else:
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            zipped(path, damaged(archive.read("Document.xml"), b'0123459-.eE"n', draw))
    with suppress(FormatError):
        list(FORMAT.read(path))


def damaged(data: bytes, alphabet: bytes, draw: st.DataObject) -> bytes:
    damage = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 20))):
        damage[draw.draw(st.integers(0, len(damage) - 1))] = draw.draw(st.sampled_from(alphabet))
    return bytes(damage)


NUMBERS = st.sampled_from(
    ["nan", "inf", "-inf", "1e999", "1e308", "-0", "", "x", "99999999999999999999", "-2000", "-3", "3.5"]
)


@given(draw=st.data())
def test_impossible_attributes_skip_only_their_element(
    tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject
) -> None:
    """Any attribute of any geometry or constraint replaced by nonsense: the document is still read."""
    from xml.etree import ElementTree as ET

    folder = tmp_path_factory.mktemp("freecad")
    FORMAT.write([SKETCH], folder / "a.FCStd")
    with zipfile.ZipFile(folder / "a.FCStd") as archive:
        root = ET.fromstring(archive.read("Document.xml"))
    tags = ("LineSegment", "ArcOfCircle", "Circle", "GeomPoint", "Constrain", "GeoExtension", "Geometry", "String")
    for element in root.iter():
        if element.tag in tags and draw.draw(st.booleans()):
            element.set(draw.draw(st.sampled_from(sorted(element.attrib))), draw.draw(NUMBERS))
    reading = collect(FORMAT.read(zipped(folder / "b.FCStd", ET.tostring(root))))
    assert len(reading) + sum(reading.skipped.values()) >= 1
