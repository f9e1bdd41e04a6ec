"""The container and the pickles of SketchGraphs: damaged and hostile files are refused, and no pickle runs code."""

from __future__ import annotations

import copyreg
import io
import json
import os
import pickle
import pickletools
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.errors import FormatError
from sketchdnn.formats.format import Skipped, collect
from sketchdnn.formats.sketchgraphs import count, pickles, read, read_table, write
from sketchdnn.formats.sketchgraphs.container import open_sequences, sequence_writer
from sketchdnn.formats.sketchgraphs.notes import split_notes
from sketchdnn.formats.sketchgraphs.pickles import LONGEST_TEXT, LONGEST_TUPLE, PickleError
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

SKETCH = Sketch(
    (Line((0, 0), (1, 0)), Circle((0, 0), 1, True), Arc((1, 0), 2, 0.5, 4), Point((3, 4))),
    (
        Constraint(ConstraintType.DISTANCE, (Ref(1, Part.CENTER), Ref(0)), 0.0127, extra={"halfSpace0": "LEFT"}),
        Constraint(ConstraintType.OTHER, tuple(Ref(i) for i in range(4)), name="Circular_Pattern"),
        Constraint(ConstraintType.ANGLE, (Ref(0), Ref(2)), 1.0, extra={"note": "ä" * 300, "n": 2**40}),
    ),
    "m",
)
FRAME = lz4.frame.compress(pickles.dump_ops(sketch_to_ops(SKETCH)), store_size=False)


def flat_list(frames: list[bytes], offsets: list[int] | None = None, number: int | None = None) -> bytes:
    ends = np.cumsum([0, *map(len, frames)]).tolist() if offsets is None else offsets
    header = struct.pack("<3q", -2356038617, 2, len(ends) - 1 if number is None else number)
    return header + np.array(ends, "<i8").tobytes() + b"".join(frames) + bytes(8)


def dictionary(entries: object, blobs: bytes = b"", header_size: int | None = None) -> bytes:
    header = pickle.dumps(entries, 4)
    size = len(header) if header_size is None else header_size
    return struct.pack("<3q", 87374267, 1, size) + header + blobs


def save(path: Path, data: bytes) -> Path:
    np.save(path, np.frombuffer(data, np.int8))
    return path


GOOD = flat_list([FRAME, FRAME])


def refused(path: Path) -> str:
    """The reason that every way of reading gives."""
    reasons = set()
    ways: tuple[Callable[[Path], object], ...] = (lambda p: list(read(p)), read_table, count)
    for way in ways:
        with pytest.raises(FormatError) as error:
            way(path)
        reasons.add(error.value.reason)
        assert str(path) in str(error.value)
    (reason,) = reasons
    return reason


def named(tmp_path: Path, ids: np.ndarray) -> Path:
    """A file of two sequences with these ids."""
    blob = io.BytesIO()
    np.save(blob, ids, allow_pickle=True)
    size = len(blob.getvalue())
    entries = {"sketch_ids": (0, size, 1), "sequences": (size, len(GOOD), 2)}
    return save(tmp_path / "a.npy", dictionary(entries, blob.getvalue() + GOOD))


class TestLayouts:
    def test_layouts_of_bytes(self, tmp_path: Path) -> None:
        entries = {"sequences": (0, len(GOOD), 2), "other": (0, 5, 0)}
        for data in (GOOD, dictionary(entries, GOOD)):
            reading = collect(read(save(tmp_path / "a.npy", data)))
            assert [s.primitives for s in reading] == [SKETCH.primitives] * 2
            assert not reading.skipped
        np.save(tmp_path / "a.npy", np.frombuffer(GOOD + b"slack", np.uint8))
        assert count(tmp_path / "a.npy") == 2
        for ids in (np.array(["a"]), np.zeros((2, 2)), np.array(2)):
            assert "should name 2 sketches" in refused(named(tmp_path, ids))
        assert "names" in refused(named(tmp_path, np.array([{}, {}], object)))  # pickled, and not loaded

    @pytest.mark.parametrize(("ids", "expected"), [
        (np.array(["first", "second"]), ["first", "second"]),
        (np.array([b"a", b"b\xff"]), ["a", "b\ufffd"]),
        (np.array([7, 8]), ["7", "8"]),
        # What no text can hold, half of a surrogate pair, and a text without end.
        (np.array([0x7FFFFFFF, 0x61], "<u4").view("<U1"), ["a/0", "a"]),
        (np.array([0xD800, 0x61], "<u4").view("<U1"), ["?", "a"]),
        (np.array(["a" * 10_000, "b"]), ["a" * 200, "b"]),
        (np.array([(b"doc", 1), (b"doc", 2)], [("document", "S3"), ("sketch", "i4")]), ["doc/1", "doc/2"]),
    ])  # fmt: skip
    def test_names_of_sketches(self, tmp_path: Path, ids: np.ndarray, expected: list[str]) -> None:
        assert [s.extra["id"] for s in collect(read(named(tmp_path, ids)))] == expected


class TestOtherFiles:
    def test_other_files(self, tmp_path: Path) -> None:
        assert refused(tmp_path / "a.npy") == "cannot be read (No such file or directory)"
        assert "cannot be read" in refused(tmp_path)
        path = tmp_path / "a.npy"
        for data in (b"", b"\0", bytes(1000), b"PK\x03\x04" + bytes(100), b"\x93NUMPY", b"{}"):
            path.write_bytes(data)
            assert refused(path) == "is not a whole .npy file"
        np.save(path, np.array([print], object), allow_pickle=True)  # objects, which are not unpickled
        assert refused(path) == "is not a whole .npy file"
        for array in (np.zeros(9), np.zeros((9, 9), np.int8), np.array("text"), np.zeros(50, "V8")):
            np.save(path, array)
            assert "not of bytes" in refused(path)
        for size in (0, 1, 23):
            assert refused(save(path, GOOD[:size])) in ("is cut short", "is not a whole .npy file")
        for numbers in ((0, 0, 0), (87374267, 2, 0), (-2356038617, 1, 0), (1, 87374267, 1)):
            assert "not a SketchGraphs file" in refused(save(path, struct.pack("<3q", *numbers) + GOOD))

    @pytest.mark.parametrize("header", [
        b"{'descr': '|i1', 'fortran_order': False, 'shape': (-5,), }",
        b"{'descr': '|i1', 'fortran_order': False, 'shape': (9999999999999999999999,), }",
        b"{'descr': '|i1', 'fortran_order': False, 'shape': (10000,), }",
        b"{'descr': '|i1', 'fortran_order': False, 'shape': [4], }",
        b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (4,), }",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", b"__import__('os').system('true')", b"(" * 900,
        b"\xff" * 50,
    ])  # fmt: skip
    def test_array_header_that_lies(self, tmp_path: Path, header: bytes) -> None:
        (tmp_path / "a.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + GOOD
        )
        assert refused(tmp_path / "a.npy") == "is not a whole .npy file"


class TestDamage:
    def test_numbers_that_lie_and_cut_off_lists(self, tmp_path: Path) -> None:
        path, size = tmp_path / "a.npy", len(GOOD)
        for header_size in (-1, 10**6, 2**40, -(2**63), 2**63 - 1):
            assert "header" in refused(save(path, dictionary({"sequences": (0, size, 2)}, GOOD, header_size)))
        for entry in ((1, size, 2), (-1, size, 2), (0, -1, 2), (2**62, 2**62, 2), (0, 2**63 - 1, 2), (size, 8, 2)):
            assert "lies outside" in refused(save(path, dictionary({"sequences": entry}, GOOD)))
        for number in (-1, -2, 4, 10**6, 2**60, 2**63 - 1, -(2**63)):
            assert "no room" in refused(save(path, flat_list([b"", b""], number=number)))
        others = [{}, [], None, 5, {"x": (0, 1, 2)}]
        for entries in (*others, *({"sequences": entry} for entry in (None, (0, 1), (0, 9, 1)))):
            assert refused(save(tmp_path / "a.npy", dictionary(entries, GOOD))) in (
                "holds no sequences",
                "has a header with a pickle that is more than plain data",
            )
        data = dictionary({"sequences": (0, len(GOOD), 2)}, GOOD)
        for keep in range(0, 1200, 23):
            refused(save(tmp_path / "a.npy", data[: min(keep, len(data) - 1)]))
            path = save(tmp_path / "b.npy", GOOD[: min(keep, len(GOOD) - 9)])
            try:
                assert collect(read(path)).skipped
            except FormatError:
                refused(path)

    def test_frames_cost_only_their_sequence(self, tmp_path: Path) -> None:
        size = len(FRAME)
        offsets = [0, size, -5, size, 2**62, 2 * size, 3 * size]
        path = save(tmp_path / "a.npy", flat_list([FRAME] * 3, offsets))
        reading = collect(read(path))
        assert [s.extra["index"] for s in reading] == [0, 5]
        assert reading.skipped == {"a sequence that lies outside its file": 4}
        table = read_table(path)
        assert (table.table.counts.tolist(), table.skipped) == ([4, 0, 0, 0, 0, 4], reading.skipped)
        bomb = lz4.frame.compress(b"\x80\x04" + b"]" * 50_000_000)
        assert len(bomb) < 300_000
        path = save(tmp_path / "a.npy", flat_list([bomb, FRAME]))
        data, good = open_sequences(path).pickles(0, 2)
        assert data == Skipped("a sequence over 4 MiB", is_sketch=True)
        assert isinstance(good, bytes)
        assert collect(read(path)).skipped == {"a sequence over 4 MiB": 1}
        raw = pickles.dump_ops(sketch_to_ops(SKETCH))
        honest = lz4.frame.compress(raw, store_size=True)
        assert collect(read(save(tmp_path / "a.npy", flat_list([honest])))).skipped == {}
        for size in (2**40, 2**63):
            lying = honest[:6] + struct.pack("<Q", size) + honest[14:]
            assert len(collect(read(save(tmp_path / "a.npy", flat_list([lying]))))) == 0

    @pytest.mark.parametrize(
        "frame",
        [b"", b"\0", FRAME[:-1], FRAME[:20], FRAME[1:], FRAME[:4] + b"\xff" * 20, b"\x50\x2a\x4d\x18\xff\xff\xff\xff"],
    )
    def test_damaged_frame_costs_only_its_sequence(self, tmp_path: Path, frame: bytes) -> None:
        reading = collect(read(save(tmp_path / "a.npy", flat_list([frame, FRAME, frame, FRAME]))))
        assert (reading.skipped, len(reading)) == ({"a sequence with a damaged LZ4 frame": 2}, 2)


NODE = b"\x8c\x1asketchgraphs.data.sequence\x94\x8c\x06NodeOp\x94\x93\x94"
ENTITY = b"\x8c\x19sketchgraphs.data._entity\x94\x8c\x0aEntityType\x94\x93\x94"

# The classes of the official library, as their own pickles name them.
OFFICIAL = """
import json, pickle, sys, types
from enum import IntEnum
from typing import Any, Dict, NamedTuple, Tuple

class NodeOp(NamedTuple):
    label: Any
    params: Dict

class EdgeOp(NamedTuple):
    label: Any
    references: Tuple
    params: Dict

codes = {f"c{i}": i for i in range(104)}
enums = [IntEnum(name, codes) for name in ("EntityType", "SubnodeType", "ConstraintType")]
homes = {"NodeOp": "sequence", "EdgeOp": "sequence", "EntityType": "_entity", "SubnodeType": "_entity",
         "ConstraintType": "_constraint"}
for name in ("sketchgraphs", "sketchgraphs.data", *(f"sketchgraphs.data.{home}" for home in set(homes.values()))):
    sys.modules[name] = types.ModuleType(name)
for cls in (NodeOp, EdgeOp, *enums):
    setattr(sys.modules[f"sketchgraphs.data.{homes[cls.__name__]}"], cls.__name__, cls)

for line in sys.stdin:
    ops = pickle.loads(bytes.fromhex(line))
    assert type(ops) is list
    print(json.dumps([[type(op).__name__, type(op.label).__name__, int(op.label), *op[1:]] for op in ops]))
"""


def test_official_classes_read_our_files(tmp_path: Path) -> None:
    sketches = [SKETCH, Sketch(tuple(Point((i, i)) for i in range(300)))]
    write(sketches, tmp_path / "a.npy")
    data = np.load(tmp_path / "a.npy", mmap_mode="r", allow_pickle=False).tobytes()
    magic, version, size = struct.unpack_from("<3q", data)
    assert (magic, version) == (87374267, 1)
    header = pickle.loads(data[24 : 24 + size])
    assert list(header) == ["sequences", "sequence_lengths", "sketchdnn_notes"]
    blobs = data[24 + size :]
    offset, length, kind = header["sequence_lengths"]
    lengths = np.load(io.BytesIO(blobs[offset : offset + length]), allow_pickle=False)
    assert (kind, lengths.dtype) == (1, np.int64)
    start, size, note_kind = header["sketchdnn_notes"]
    assert (start, start + size, note_kind) == (offset + length, len(blobs), 1)
    offset, length, kind = header["sequences"]
    flat = blobs[offset : offset + length]
    magic, version, number = struct.unpack_from("<3q", flat)
    assert (magic, version, number, kind) == (-2356038617, 2, 2, 2)
    *starts, end = struct.unpack_from(f"<{number + 1}q", flat, 24)
    frames = flat[24 + 8 * (number + 1) :]
    assert len(frames) == end + 8
    raws = [lz4.frame.decompress(frames[a:b]) for a, b in zip(starts, [*starts[1:], end], strict=True)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", OFFICIAL],
        input="\n".join(raw.hex() for raw in raws),
        capture_output=True,
        text=True,
        check=True,
    )
    for line, raw, sketch, num_ops in zip(done.stdout.splitlines(), raws, sketches, lengths.tolist(), strict=True):
        ops, _ = split_notes(sketch_to_ops(sketch))
        expected = [
            ["NodeOp", "SubnodeType" if op.start > 100 else "EntityType", op.start, op.stop]
            if op.step is None
            else ["EdgeOp", "ConstraintType", op.start, list(op.stop), op.step]
            for op in ops
        ]
        assert (json.loads(line), len(ops)) == (json.loads(json.dumps(expected)), num_ops)
        opcodes = {op.name for op, _, _ in pickletools.genops(raw)}
        assert "NEWOBJ" in opcodes
        assert "REDUCE" in opcodes


@given(
    st.dictionaries(
        st.text(max_size=300), st.tuples(st.integers(0, 2**62), st.integers(0, 2**31), st.integers(0, 2)), max_size=5
    )
)
def test_header_is_read_back(header: dict[str, tuple[int, int, int]]) -> None:
    assert pickles.load_plain(pickles.dump_header(header)) == header == pickle.loads(pickles.dump_header(header))
    for protocol in (4, 5):
        assert pickles.load_plain(pickle.dumps(header, protocol)) == header


class Malice:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> object:
        return os.system, (self.command,)


def hostile(command: str) -> dict[str, bytes]:
    code = command.encode()
    text = b"\x8c" + bytes([len(code)]) + code
    argument = b"S'" + code + b"'\n"
    pickles = {f"reduce, protocol {p}": pickle.dumps([Malice(command)], p) for p in range(6)}
    return pickles | {
        "reduce in a frame that looks right": b"\x80\x04]\x94(\x8c\x05posix\x94\x8c\x06system\x94\x93\x94"
        + text
        + b"\x94\x85\x94R\x94e.",
        "global": b"\x80\x04cposix\nsystem\n" + text + b"\x85R.",
        "inst": b"(" + argument + b"iposix\nsystem\n.",
        "obj": b"(cposix\nsystem\n" + argument + b"o.",
        "newobj": b"\x80\x04cposix\nsystem\n" + text + b"\x85\x81.",
        "newobj_ex": b"\x80\x04cposix\nsystem\n" + text + b"\x85}\x92.",
        "extension": b"\x80\x04\x82\xf0" + text + b"\x85R.",
        "extension 2": b"\x80\x04\x83\xf0\x00" + text + b"\x85R.",
        "extension 4": b"\x80\x04\x84\xf0\x00\x00\x00" + text + b"\x85R.",
        "persistent id": b"\x80\x04" + text + b"Q.",
        "dotted name": b"\x80\x04]\x94(" + NODE.replace(b"\x06NodeOp", b"\x10NodeOp.__class__") + b"e.",
        "builtins": b"\x80\x04]\x94(\x8c\x08builtins\x94\x8c\x04eval\x94\x93\x94" + text + b"\x94\x85\x94R\x94e.",
        "a change to an allowed class": b"\x80\x04]\x94(" + NODE + b"N}\x8c\x05label\x94K\x01s\x86\x94be.",
        "state of an operation": b"\x80\x04]\x94(" + NODE + b"K\x01}\x94\x86\x94\x81\x94}b.",
        "operation by reduce": b"\x80\x04]\x94(" + NODE + text + b"\x94}\x94\x86\x94R\x94e.",
    }


@pytest.fixture
def registered_extension() -> object:
    """Someone in this process has given os.system a short code, and it has been looked up before."""
    copyreg.add_extension("posix", "system", 0xF0)
    assert pickle.loads(b"\x80\x04\x82\xf0.") is os.system
    yield
    copyreg.remove_extension("posix", "system", 0xF0)
    copyreg.clear_extension_cache()


@pytest.mark.usefixtures("registered_extension")
@pytest.mark.parametrize("name", hostile(""))
def test_no_pickle_runs_code(tmp_path: Path, name: str) -> None:
    harm = tmp_path / "harm"
    data = hostile(f"touch {harm}")[name]
    with pytest.raises(PickleError):
        pickles.load_ops(data)
    with pytest.raises(PickleError):
        pickles.load_plain(data)
    with sequence_writer(tmp_path / "element.npy") as add:
        add(data, 1)
        add(pickles.dump_ops(sketch_to_ops(SKETCH)), 1)
    skipped, sketch = read(tmp_path / "element.npy")
    assert isinstance(skipped, Skipped)
    assert skipped.is_sketch
    assert isinstance(sketch, Sketch)
    assert read_table(tmp_path / "element.npy").table.counts.tolist() == [0, 4]
    blob = struct.pack("<3q", 87374267, 1, len(data)) + data + bytes(64)
    np.save(tmp_path / "header.npy", np.frombuffer(blob, np.int8))
    with pytest.raises(FormatError, match="header with"):
        list(read(tmp_path / "header.npy"))
    assert not harm.exists()


def test_malice_is_real_and_damage_is_refused(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    pickle.loads(hostile(f"touch {harm}")["reduce, protocol 4"])
    assert harm.exists()
    for data in DAMAGED_PICKLES:
        with pytest.raises(PickleError):
            pickles.load_ops(data)
    for opcode in (b"]", b"}", b"]\x94", b"(", b"N"):
        with pytest.raises(PickleError):
            pickles.load_ops(b"\x80\x04]\x94(" + opcode * 500_000 + b"e.")


DAMAGED_PICKLES = (
    b"", b".", b"\x80\x04", b"\x80\x04.", b"\x80\x04N.", b"\x80\x04]\x94.", b"\x80\x04}\x94.", b"\x80\x04u.",
    b"\x80\x04]\x94(K\x01K\x02e.", b"\x80\x04]\x94(]\x94e.", b"\x80\x04]\x94(h\x07e.", b"\x80\x04]\x94e.",
    b"\x80\x04]\x94h\x00a.",  # a list that holds itself
    b"\x80\x04]\x94(" + NODE + b"e.", b"\x80\x04]\x94(" + NODE + b"K\x01\x85\x94\x81\x94e.",
    b"\x80\x04]\x94(" + NODE + b"}\x94}\x94\x86\x94\x81\x94e.", b"\x80\x04]\x94(" + ENTITY + b"K\x01\x85\x94R\x94e.",
    b"\x80\x04\x8c\xffabc.", b"\x80\x04X\xff\xff\xff\xffabc.", b"\x80\x04\x8c\x01\xff\x94.",
    b"\x80\x04]\x94r\xff\xff\xff\xff.",  # a memo of 4 billion places
    b"\x80\x04]\x94p4294967295\n.", b"\x80\x04]\x94q\xff.", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff]\x94.",
    b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", b"\x80\x04\x8b\xff\xff\xff\x7f.", b"\x80\x04]\x94.garbage",
)  # fmt: skip


def test_odd_operations_are_skipped(tmp_path: Path) -> None:
    node = NODE + b"K\x01"
    odd = [
        node + b"N\x86\x94\x81\x94", node + b"K\x05\x86\x94\x81\x94", node + b"h\x00\x86\x94\x81\x94",
        node + b"K\x01}\x94\x87\x94\x81\x94", node + b"]\x94}\x94\x87\x94\x81\x94",
        node + b"K\x01K\x02\x86\x94K\x03\x87\x94\x81\x94", node + b"K\x01\x85\x94h\x00\x87\x94\x81\x94",
        node + b"K\x01\x85\x94}\x94\x8c\x01a\x94h\x00s\x87\x94\x81\x94",
    ]  # fmt: skip
    path = tmp_path / "a.npy"
    with sequence_writer(path) as add:
        for op in odd:
            add(b"\x80\x04]\x94(" + op + b"e.", 1)
    assert all(isinstance(found, Skipped) for found in read(path))
    assert read_table(path).table.counts.tolist() == [0] * len(odd)


# Each level: a class, the arguments of the level below from the memo, a dictionary, and the operation made of them.
NESTING = """
import struct, sys, threading
from sketchdnn.formats.sketchgraphs.pickles import PickleError, load_ops

def nested(levels):
    def get(n):
        return b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n)
    data = [b"\\x80\\x04]\\x94(" + NODE + b"}\\x94K\\x01K\\x01\\x86\\x94"]  # memo: 3 class, 4 dictionary, 5 tuple
    number = 5
    for _ in range(levels):
        data.append(b"h\\x03" + get(number) + b"h\\x04\\x86\\x94\\x81")
        number += 1
    return b"".join([*data, b"h\\x04", get(number), b"K\\x01se."])  # the deepest tuple as a key, to be hashed

def run():
    for levels in LEVELS:
        try:
            load_ops(nested(levels))
        except PickleError as error:
            print(len(nested(levels)), error)

threading.stack_size(1 << 20)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def lines_printed(program: str) -> int:
    """By another process, which hostile data may end."""
    program = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, (20, 20))\nNODE = {NODE!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines())


def test_nested_tuples_are_refused_unhashed() -> None:
    assert (lines_printed(f"LEVELS = (10, 2600, 300_000)\n{NESTING}"), lines_printed(DOUBLING)) == (3, 6)


# Each level is twice the one before, and the last is a key: hashing it would take 2^60 steps.
DOUBLING = """
from sketchdnn.formats.sketchgraphs.pickles import PickleError, load_ops, load_plain

def doubled(levels, op):
    data, number = b"\\x80\\x04" + NODE + b"K\\x01K\\x02\\x86\\x94", 3
    for level in range(levels):
        data += b"h\\x02" + op(b"h" + bytes([number]), level)
        number += 1
    return data + b"}(h" + bytes([number]) + b"K\\x01u."

for op in (lambda n, _: n + n + b"\\x86\\x94\\x81", lambda n, _: n + b"K\\x01\\x85" + n + b"\\x87\\x94\\x81",
           lambda n, _: n + n + b"\\x86\\x94"):
    for load in (load_ops, load_plain):
        try:
            load(doubled(60, op))
        except PickleError as error:
            print(error)
"""


def test_long_keys_are_written_but_not_recalled(tmp_path: Path) -> None:
    text = b"X" + struct.pack("<I", LONGEST_TEXT + 1) + b"a" * (LONGEST_TEXT + 1)
    for long, value in (
        (b"(" + b"K\x01" * (LONGEST_TUPLE + 1) + b"t", (1,) * (LONGEST_TUPLE + 1)),
        (text, "a" * (LONGEST_TEXT + 1)),
    ):
        assert pickles.load_plain(b"\x80\x04" + long + b"\x94.") == value
        assert pickles.load_plain(b"\x80\x04]\x94(" + long + b"\x94h\x00e.")
        for recalled in (b"h\x01", b"j\x01\0\0\0"):
            with pytest.raises(PickleError, match="recalled"):
                pickles.load_plain(b"\x80\x04]\x94(" + long + b"\x94" + recalled + b"e.")
    short = b"(" + b"K\x01" * LONGEST_TUPLE + b"t\x94h\x00."
    assert pickles.load_plain(b"\x80\x04" + short) == (1,) * LONGEST_TUPLE
    for odd in (b"(K\x01Nt.", b"(h\x00t.", b"(K\x01K\x02\x86t.", b"(t."):
        with pytest.raises(PickleError):
            pickles.load_plain(b"\x80\x04]\x94" + odd)
    long = Constraint(ConstraintType.HORIZONTAL, (Ref(0),), extra={"note": "a" * 10_000, "again": "a" * 10_000})
    sketch = Sketch((Line((0, 0), (1, 0)),), (long,), "m")
    write([sketch], tmp_path / "a.npy")
    (found,) = read(tmp_path / "a.npy")
    assert isinstance(found, Sketch)
    assert found.constraints == sketch.constraints


@given(st.data())
def test_mutated_pickle_gives_operations_or_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(pickles.dump_ops(sketch_to_ops(SKETCH)))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("mutated") / "a.npy"
    with sequence_writer(path) as add:
        add(bytes(raw), 1)
    assert_columns_agree(path)


def assert_columns_agree(path: Path) -> None:
    """Each sequence is a sketch or is skipped, and the table has as many primitives of it."""
    found, table = list(read(path)), read_table(path)
    whole = [f for f in found if isinstance(f, Sketch) or f.is_sketch]
    assert [0 if isinstance(f, Skipped) else len(f) for f in whole] == table.table.counts.tolist()
