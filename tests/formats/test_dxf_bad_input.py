"""Broken, hostile and huge DXF files: one sentence, or a count, and never a traceback."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import ezdxf
import pytest

from sketchdnn.errors import FormatError
from sketchdnn.formats import collect
from sketchdnn.formats.dxf import FORMAT, MAX_ENTITIES
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch

HEAD, TAIL = "0\nSECTION\n2\nENTITIES\n", "0\nENDSEC\n0\nEOF\n"
SKETCH = Sketch((Line((0, 0), (4, 0)), Arc((1, 2), 3, 0.5, 2), Circle((0, 1), 2, True), Point((3, 3))), units="mm")


def refused(path: Path, match: str) -> None:
    with pytest.raises(FormatError, match=match) as caught:
        list(FORMAT.read(path))
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


def file(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def entity(type_: str, **tags: object) -> str:
    """`x10=1` stands for group code 10, value 1."""
    return f"0\n{type_}\n8\n0\n" + "".join(f"{name[1:]}\n{value}\n" for name, value in tags.items())


LINE = entity("LINE", x10=0, x20=0, x11=1, x21=1)


@pytest.mark.parametrize(("content", "match"), [
    (b"", "empty"), (b"\x89PNG\r\n\x1a\n" + bytes(1000), "not a DXF"),
    (b"hello, this is a letter\n" * 50, "not a DXF"), ((HEAD + entity("LINE", x10=0, x20=0)).encode(), "cut off"),
    (b"AutoCAD Binary DXF\r\n\x1a\x00" + bytes(range(256)) * 4, "cut off"),
    (b"AutoCAD Binary DXF\r\n\x1a\x00" + bytes(range(256)) * 4 + b"EOF\x00", "too broken"),
])  # fmt: skip
def test_no_drawing_is_refused(tmp_path: Path, content: bytes, match: str) -> None:
    refused(file(tmp_path / "a.dxf", content), match)


def test_drawing_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    FORMAT.write([SKETCH], tmp_path / "a.dxf")
    whole = (tmp_path / "a.dxf").read_bytes()
    for tenth in range(1, 10):
        refused(file(tmp_path / "b.dxf", whole[: len(whole) * tenth // 10]), "cut off|not a DXF")


def test_missing_eof_is_accepted_if_sections_are_closed(tmp_path: Path) -> None:
    FORMAT.write([SKETCH], tmp_path / "a.dxf")
    whole = (tmp_path / "a.dxf").read_bytes()
    for content, count in (((HEAD + LINE + "0\nENDSEC\n").encode(), 1), (whole[: whole.rindex(b"  0\nEOF")], 4)):
        reading = collect(FORMAT.read(file(tmp_path / "b.dxf", content)))
        assert [len(sketch) for sketch in reading] == [count]
        assert any("EOF" in note for note in reading.notes)
    before_entities = whole[: whole.index(b"ENTITIES")].rindex(b"ENDSEC") + len(b"ENDSEC\n")
    refused(file(tmp_path / "b.dxf", whole[:before_entities]), "cut off")
    # A section that is not closed: the plain reader gives up, the repairing one does not.
    repaired = collect(FORMAT.read(file(tmp_path / "b.dxf", HEAD + LINE + "0\nEOF\n")))
    assert [len(sketch) for sketch in repaired] == [1]


@pytest.mark.parametrize("number", ["nan", "inf", "-1e400", "1e300", "abc"])
def test_impossible_numbers_are_counted(tmp_path: Path, number: str) -> None:
    drawing = (
        HEAD
        + entity("LINE", x10=number, x20=0, x11=1, x21=1)
        + entity("CIRCLE", x10=0, x20=0, x40=number)
        + entity("ARC", x10=0, x20=number, x40=1, x50=0, x51=90)
        + entity("LWPOLYLINE", x100="AcDbEntity")
        + f"100\nAcDbPolyline\n90\n3\n70\n0\n10\n{number}\n20\n0\n42\n1\n10\n5\n20\n0\n10\n6\n20\n0\n"
        + LINE
        + TAIL
    )
    try:
        reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    except FormatError:
        assert number == "abc"  # no number at all spoils the file; the others are numbers of a sort
        return
    assert [len(sketch) for sketch in reading] == [2]  # the last line, and the sound half of the polyline
    assert sum(reading.skipped.values()) == 4


@pytest.mark.parametrize("text", [
    entity("LINE", x10=0, x20=0), entity("CIRCLE", x10=0, x20=0, x40=0), entity("CIRCLE", x10=0, x20=0, x40=-3),
    entity("ARC", x10=0, x20=0, x40=1, x50="nan", x51=1),
    entity("CIRCLE", x10=0, x20=0, x40=1, x210=0, x220=0, x230=0),
    entity("ELLIPSE", x10=0, x20=0, x11=0, x21=0, x40=1),
    entity("LWPOLYLINE", x100="AcDbEntity") + "100\nAcDbPolyline\n90\n0\n70\n1\n",
    entity("INSERT", x2="nothing", x10=0, x20=0),
])  # fmt: skip
def test_degenerate_entities_do_not_spoil_rest(tmp_path: Path, text: str) -> None:
    drawing = HEAD + text + LINE + TAIL
    reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    assert len(reading.sketches[0]) in (1, 2)


def test_million_entities_are_refused_at_once(tmp_path: Path) -> None:
    lines = "".join(entity("LINE", x10=i, x20=0, x11=i, x21=1) for i in range(1000))
    path = file(tmp_path / "a.dxf", HEAD + lines * 1000 + TAIL)
    began, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "entities")
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 200 * 1024  # KiB


def test_large_file_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path / "a.dxf", HEAD)
    os.truncate(path, 10**9)
    refused(path, "MiB")


@pytest.mark.parametrize("depth", [2, 12])
def test_block_bomb_is_refused(tmp_path: Path, depth: int) -> None:
    """Arrays of blocks of arrays of blocks: by their size or by their depth, 10^12 lines or none at all."""
    document = ezdxf.new()
    block = document.blocks.new("B0")
    if depth == 2:
        block.add_line((0, 0), (1, 1))
    grid = {"row_count": 1000, "column_count": 1000} if depth == 2 else {"row_count": 10, "column_count": 1}
    for level in range(1, depth + 1):
        attributes = grid | {"row_spacing": 1, "column_spacing": 1}
        document.blocks.new(f"B{level}").add_blockref(f"B{level - 1}", (0, 0), dxfattribs=attributes)
    document.modelspace().add_blockref(f"B{depth}", (0, 0))
    document.saveas(tmp_path / "a.dxf")
    began = time.process_time()
    refused(tmp_path / "a.dxf", f"expands to more than {MAX_ENTITIES:,}")
    assert time.process_time() - began < 10


def test_copied_polylines_count_each_segment(tmp_path: Path) -> None:
    document = ezdxf.new()
    document.blocks.new("B").add_lwpolyline([(i, i % 2) for i in range(2000)])
    grid = {"row_count": 100, "column_count": 1, "row_spacing": 1}
    document.modelspace().add_blockref("B", (0, 0), dxfattribs=grid)
    document.saveas(tmp_path / "a.dxf")
    refused(tmp_path / "a.dxf", "expands")


def test_block_that_holds_itself(tmp_path: Path) -> None:
    document = ezdxf.new()
    block = document.blocks.new("B")
    block.add_line((0, 0), (1, 1))
    block.add_blockref("B", (1, 0))
    document.modelspace().add_blockref("B", (0, 0))
    document.saveas(tmp_path / "a.dxf")
    reading = collect(FORMAT.read(tmp_path / "a.dxf"))
    assert reading.skipped["INSERT more than 32 blocks deep"] == 1


def test_types_that_nobody_knows_are_counted(tmp_path: Path) -> None:
    drawing = HEAD + entity("WORMHOLE") * 2 + entity("li ne?") + LINE + TAIL
    reading = collect(FORMAT.read(file(tmp_path / "a.dxf", drawing)))
    assert [len(sketch) for sketch in reading] == [1]
    assert reading.skipped == {
        "WORMHOLE cannot be a primitive": 2,
        "an entity of a type without a proper name cannot be a primitive": 1,
    }
