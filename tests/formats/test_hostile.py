"""Files made to take time or memory: each is read or refused in one sentence, within bounds.

What each reader must hold is tested with small files made here. `SKETCHDNN_HOSTILE` names a folder of larger ones: each
of these is run as the program itself, with little processor time and memory.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import resource
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import lz4.frame
import numpy as np
import pytest
from support.freecad_document import zipped
from support.strategies import assert_refused

from sketchdnn.errors import FormatError
from sketchdnn.formats import Skipped, archives, collect, json_files, read, scan, svg
from sketchdnn.formats import dxf as dxf_files
from sketchdnn.formats.freecad import notes
from sketchdnn.formats.freecad.elements import GeoId, Relation, RelationType
from sketchdnn.formats.sketchgraphs.constraints import quantity
from sketchdnn.formats.sketchgraphs.container import LIST_MAGIC, LIST_VERSION, open_sequences
from sketchdnn.formats.sketchgraphs.pickles import dump_ops
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import Line, Sketch

LINE = Sketch((Line((0.0, 0.0), (1.0, 0.0)),), units="m")
CPU_SECONDS, MEMORY = 30, 3 * 2**30  # the program imports in about a second of processor time and 60 MB
RESIDENT = 2**30
RECORD = b'{"primitives": [{"type": "line", "start": [0, 0], "end": [1, 0]}]}\n'


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small limits, so that small files reach them."""
    monkeypatch.setattr(dxf_files, "MAX_ENTITIES", 20)
    monkeypatch.setattr(dxf_files, "MAX_TAGS", 200)
    monkeypatch.setattr(svg, "MAX_ELEMENTS", 20)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Of processor time: what should take a fraction of a second, and would take minutes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < seconds


def test_no_frame_is_unpacked_twice(tmp_path: Path) -> None:
    """Offsets that go back and forth, from any start on: as `prepare` reads a part of a file."""
    frame = lz4.frame.compress(dump_ops(sketch_to_ops(LINE)))
    offsets = [0, len(frame)] * 50
    data = struct.pack("<3q", LIST_MAGIC, LIST_VERSION, len(offsets) - 1) + struct.pack(f"<{len(offsets)}q", *offsets)
    np.save(tmp_path / "a.npy", np.frombuffer(data + frame, np.int8))
    assert len(collect(scan(tmp_path / "a.npy"))) == 1
    sequences = open_sequences(tmp_path / "a.npy")
    assert all(isinstance(found, Skipped) for found in sequences.pickles(2, len(sequences)))


@pytest.mark.parametrize("packing", ["", "gz", "xz", "bz2"])
def test_archive_member_beyond_end_is_refused(tmp_path: Path, packing: str) -> None:
    record = tarfile.TarInfo("a.jsonl")
    record.size = len(RECORD)
    huge = tarfile.TarInfo("b.jsonl")
    huge.size = 2**62
    path = tmp_path / f"a.tar.{packing}".rstrip(".")
    with tarfile.open(path, f"w:{packing}", format=tarfile.GNU_FORMAT) as archive:  # type: ignore[call-overload]
        archive.addfile(record, io.BytesIO(RECORD))
        archive.fileobj.write(huge.tobuf(tarfile.GNU_FORMAT))
    found = scan(path)
    assert isinstance(next(found), Sketch)
    with pytest.raises(FormatError, match="a member is larger than what remains"):
        list(found)


@pytest.mark.parametrize("spaces", [" " * 200_000, "\t\n" * 100_000])
def test_texts_are_read_in_linear_time(tmp_path: Path, spaces: str) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><line x2="1{0}!" transform="a{0}!"/><path d="M0{0}!"/></svg>'
    (tmp_path / "a.svg").write_text(svg.format(spaces))
    with within(5):
        list(scan(tmp_path / "a.svg"))
    with within(5):
        assert quantity(f"1{spaces}!", is_angle=False) is None


def test_regular_expressions_are_linear() -> None:
    """Two runs of blanks with something optional between them can share a text in many ways."""
    source = Path(json_files.__file__).parents[1]
    twice = re.compile(r"\\s[*+](?![+])(?:\S{1,12}[?*](?![+]))?\\s[*+](?![+])")
    found = [str(file) for file in source.rglob("*.py") if twice.search(file.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    "entity", ["0\nLINE", "00\nLINE", "0\nline", " +0 \nline", "0_0\n5", "-0\nLINE", "\uff10\nLINE"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_entity_counts_that_parser_sees(tmp_path: Path, entity: str, end: str) -> None:
    text = "0\nSECTION\n2\nENTITIES\n" + f"{entity}\n" * 30 + "0\nENDSEC\n0\nEOF\n"
    (tmp_path / "a.dxf").write_bytes(text.replace("\n", end).encode())
    assert_refused(read, tmp_path / "a.dxf", r"holds more than 20 entities|is not a DXF drawing")


@pytest.mark.usefixtures("limited")
def test_tags_of_one_entity_count(tmp_path: Path) -> None:
    text = "0\nSECTION\n2\nENTITIES\n0\nTEXT\n" + "1\na\n" * 300 + "0\nENDSEC\n0\nEOF\n"
    (tmp_path / "a.dxf").write_text(text)
    assert_refused(read, tmp_path / "a.dxf", "holds more than 200 tags")


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("inside", ["<g/>" * 50, '<path d="M0 0' + "L1 1L0 0" * 30 + '"/>', "<g>" * 30 + "</g>" * 30])
def test_elements_and_pieces_of_path_are_limited(tmp_path: Path, inside: str) -> None:
    (tmp_path / "a.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')
    assert_refused(read, tmp_path / "a.svg", r"more than 20 (elements|lines and arcs)")


def test_one_long_tag_is_parsed_once(tmp_path: Path) -> None:
    """In small pieces, the XML parser goes over an unfinished tag again with each of them."""
    text = '<svg xmlns="http://www.w3.org/2000/svg"><line x2="1"/><path class="' + "a" * 16_000_000 + '"/></svg>'
    (tmp_path / "a.svg").write_text(text)
    with within(5):
        list(scan(tmp_path / "a.svg"))


TWO_LINES = tuple(Line((0.0, float(i)), (1.0, float(i))) for i in range(2))
NOTES_HEAD = '{"primitives": "LL", "extra": {}}'


def note(*relations: Relation) -> str:
    """The note of a distance that is written with these relations."""
    constraint = '{"type": "distance", "refs": [[0, "whole"], [1, "whole"]], "value": 1}'
    items = ",".join(notes.dump_json(notes._to_list(relation)) for relation in relations)
    return f'{{"constraint": {constraint}, "relations": [{items}]}}'


def test_constraints_are_recalled_fast_though_rounded() -> None:
    for value in (lambda _: 1.0, float, lambda i: 1 + i * 1e-15):
        relations = [Relation(RelationType.DISTANCE, (GeoId(0), GeoId(1)), value(i)) for i in range(5_000)]
        backwards = relations[::-1]
        alone, too_many = [note(relation) for relation in backwards], note(*backwards, backwards[0])
        with within(10):
            recalled = notes.read_notes([NOTES_HEAD, too_many, *alone, too_many], TWO_LINES, relations)
        assert (len(recalled.constraints), recalled.relations) == (len(relations), ())
    for value in (0.0, 1.0, -1.0, 1e-9, 0.1234567890123456, 123456.7890123456, -1e9):
        said = Relation(RelationType.DISTANCE, (GeoId(0), GeoId(1)), value)
        for found in (value, value * (1 + 5e-10) + 1e-16, value * (1 - 5e-10), value + 1e-10):
            relations = [Relation(said.type, said.ids, found)]
            assert len(notes.read_notes([NOTES_HEAD, note(said)], TWO_LINES, relations).constraints) == 1


def test_xz_dictionary_is_bounded(tmp_path: Path) -> None:
    def packed_with(size: int) -> bytes:
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}]
        return lzma.compress(RECORD, filters=filters)

    small, large = packed_with(2**16), bytearray(packed_with(2**16))
    at = large.index(b"\x21\x01") + 2  # the filter, the size of its settings, its dictionary
    large[at] = 40  # 4 GiB − 1
    header = slice(12, 12 + 4 * (large[12] + 1) - 4)
    large[header.stop : header.stop + 4] = zlib.crc32(large[header]).to_bytes(4, "little")
    for name in ("a.jsonl.xz", "a.tar.xz"):
        (tmp_path / name).write_bytes(large)
        assert_refused(scan, tmp_path / name, r"[Mm]emory")
    (tmp_path / "b.jsonl.xz").write_bytes(small + bytes(8) + small)  # two streams, with padding between
    assert len(read(tmp_path / "b.jsonl.xz")) == 2
    (tmp_path / "c.jsonl.xz").write_bytes(small[:-10])
    assert_refused(read, tmp_path / "c.jsonl.xz", "cut off")
    assert archives.XZ_MEMORY > 65 * 2**20  # `xz -9`


def test_chunk_of_hdf5_is_bounded(tmp_path: Path) -> None:
    def stored(**how: object) -> Path:
        path = tmp_path / "a.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("vec", (40, 21), "i4", data=np.full((40, 21), 5), **how)
        return path

    bomb = stored(chunks=(40, 21), compression="gzip")
    with h5py.File(bomb, "r+") as file:
        file["vec"].id.write_direct_chunk((0, 0), bytes(200 * 2**10))
    assert_refused(read, bomb, "packed piece")
    assert_refused(read, stored(chunks=(1_000_000, 21), maxshape=(None, 21)), "larger pieces")
    assert_refused(read, stored(chunks=(40, 21), scaleoffset=0), "packed otherwise")
    for how in ({}, {"chunks": (10, 21)}, {"compression": "gzip", "shuffle": True, "fletcher32": True}):
        assert collect(scan(stored(**how))).skipped.total() == 0


def test_tags_of_freecad_document_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sketchdnn.formats.freecad.file.MAX_TAGS", 100)
    assert_refused(
        read, zipped(tmp_path / "a.FCStd", "<Document>" + "<a/>" * 200 + "</Document>"), "more than 100 XML tags"
    )


FILES = (
    "denormal.json", "dxf_cap_evaded.dxf", "fcstd_notes_cubic.FCStd", "fcstd_notes_quadratic.FCStd", "h5_chunk_bomb.h5",
    "json_memory.jsonl.gz", "npy_overlapping_offsets.npy", "pickle_hash_bomb.npy", "svg_length_redos.svg",
    "svg_no_cap.tar.xz", "svg_rotate_inf.svg", "tar_declared_size.tar", "terminal_long_reason.FCStd",
    "xz_dictionary.jsonl.xz",
)  # fmt: skip
MODELS = ("model_deep", "model_heads0", "model_steps0", "model_width30000")
COMMANDS = [(name, "convert") for name in FILES] + [(name, "generate") for name in MODELS]


def run_bounded(arguments: list[str], memory: int = MEMORY) -> tuple[subprocess.CompletedProcess[str], float, int]:
    """The program with limits; its processor time in seconds and the most memory it held, in bytes.

    `ru_maxrss` would not do: a new process inherits that of the tests, which may be more than its own.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    measured = (
        "import atexit, re, runpy, sys, time\n"
        "peak = lambda: re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1]\n"
        "atexit.register(lambda: print('USED', time.process_time(), peak(), file=sys.stderr))\n"
        "runpy.run_module('sketchdnn', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", measured, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=limit,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )
    *words, used = done.stderr.splitlines() or [""]
    assert used.startswith("USED"), done.stderr[-2000:]
    _, seconds, kilobytes = used.split()
    done.stderr = "\n".join(words)
    return done, float(seconds), int(kilobytes) * 1024


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_hostile_file_costs_little(tmp_path: Path, hostile: Path, name: str, command: str) -> None:
    source = str(hostile / name)
    arguments = {
        "convert": ["convert", source, str(tmp_path / "out.jsonl")],
        "generate": ["generate", "--model", source, "--count", "1", "--out", str(tmp_path / "out")],
    }[command]
    done, seconds, memory = run_bounded(arguments, MEMORY if command == "convert" else 4 * MEMORY)
    assert done.returncode in (0, 2), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or (done.stderr.startswith("sketchdnn: ") and done.stderr.count("\n") == 0)
    assert len(done.stderr) < 2000
    assert seconds < CPU_SECONDS / 2  # 5 s on a machine that does nothing else
    assert memory < RESIDENT
