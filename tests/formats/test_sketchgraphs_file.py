"""The container: files that are damaged, hostile or something else end in one sentence, never in a traceback."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchdnn.errors import FormatError
from sketchdnn.formats.format import Skipped, collect
from sketchdnn.formats.sketchgraphs import count, read, read_table, write
from sketchdnn.formats.sketchgraphs.container import open_sequences
from sketchdnn.formats.sketchgraphs.pickles import dump_ops
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

SKETCH = Sketch(
    (Line((0, 0), (1, 0)), Circle((0, 0), 1, True), Arc((1, 0), 2, 0.5, 4), Point((3, 4))),
    (Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.START), Ref(1, Part.CENTER))),),
)
FRAME = lz4.frame.compress(dump_ops(sketch_to_ops(SKETCH)), store_size=False)


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


class TestLayouts:
    def test_a_dictionary_and_a_bare_list(self, tmp_path: Path) -> None:
        entries = {"sequences": (0, len(GOOD), 2), "other": (0, 5, 0)}
        for data in (GOOD, dictionary(entries, GOOD)):
            reading = collect(read(save(tmp_path / "a.npy", data)))
            assert [s.primitives for s in reading] == [SKETCH.primitives] * 2
            assert not reading.skipped

    def test_unsigned_bytes_and_extra_slack(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.frombuffer(GOOD + b"slack", np.uint8))
        assert count(tmp_path / "a.npy") == 2

    @pytest.mark.parametrize(
        ("ids", "expected"),
        [
            (np.array(["first", "second"]), ["first", "second"]),
            (np.array([b"a", b"b\xff"]), ["a", "b\ufffd"]),
            (np.array([7, 8]), ["7", "8"]),
            # What no text can hold, half of a surrogate pair, and a text without end.
            (np.array([0x7FFFFFFF, 0x61], "<u4").view("<U1"), ["a/0", "a"]),
            (np.array([0xD800, 0x61], "<u4").view("<U1"), ["?", "a"]),
            (np.array(["a" * 10_000, "b"]), ["a" * 200, "b"]),
            (np.array([(b"doc", 1), (b"doc", 2)], [("document", "S3"), ("sketch", "i4")]), ["doc/1", "doc/2"]),
        ],
    )
    def test_names_of_sketches(self, tmp_path: Path, ids: np.ndarray, expected: list[str]) -> None:
        np.save(tmp_path / "ids.npy", ids)
        blob = (tmp_path / "ids.npy").read_bytes()
        entries = {"sketch_ids": (0, len(blob), 1), "sequences": (len(blob), len(GOOD), 2)}
        path = save(tmp_path / "a.npy", dictionary(entries, blob + GOOD))
        assert [s.extra["id"] for s in collect(read(path))] == expected

    @pytest.mark.parametrize("ids", [np.array(["a"]), np.zeros((2, 2)), np.array(2)])
    def test_names_that_do_not_fit(self, tmp_path: Path, ids: np.ndarray) -> None:
        np.save(tmp_path / "ids.npy", ids)
        blob = (tmp_path / "ids.npy").read_bytes()
        entries = {"sketch_ids": (0, len(blob), 1), "sequences": (len(blob), len(GOOD), 2)}
        assert "should name 2 sketches" in refused(save(tmp_path / "a.npy", dictionary(entries, blob + GOOD)))

    def test_names_that_are_pickled_objects_are_not_loaded(self, tmp_path: Path) -> None:
        np.save(tmp_path / "ids.npy", np.array([{}, {}], object), allow_pickle=True)
        blob = (tmp_path / "ids.npy").read_bytes()
        entries = {"sketch_ids": (0, len(blob), 1), "sequences": (len(blob), len(GOOD), 2)}
        assert "names" in refused(save(tmp_path / "a.npy", dictionary(entries, blob + GOOD)))


class TestOtherFiles:
    def test_no_file(self, tmp_path: Path) -> None:
        assert refused(tmp_path / "a.npy") == "cannot be read (No such file or directory)"
        assert "cannot be read" in refused(tmp_path)

    @pytest.mark.parametrize("data", [b"", b"\0", bytes(1000), b"PK\x03\x04" + bytes(100), b"\x93NUMPY", b"{}"])
    def test_no_array(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "a.npy").write_bytes(data)
        assert refused(tmp_path / "a.npy") == "is not a whole .npy file"

    @pytest.mark.parametrize(
        "header",
        [
            b"{'descr': '|i1', 'fortran_order': False, 'shape': (-5,), }",
            b"{'descr': '|i1', 'fortran_order': False, 'shape': (9999999999999999999999,), }",
            b"{'descr': '|i1', 'fortran_order': False, 'shape': (10000,), }",
            b"{'descr': '|i1', 'fortran_order': False, 'shape': [4], }",
            b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (4,), }",
            b"{'descr': '|O', 'fortran_order': False, 'shape': (4,), }",
            b"__import__('os').system('true')",
            b"(" * 900,
            b"\xff" * 50,
        ],
    )
    def test_an_array_header_that_lies(self, tmp_path: Path, header: bytes) -> None:
        (tmp_path / "a.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + GOOD
        )
        assert refused(tmp_path / "a.npy") == "is not a whole .npy file"

    @pytest.mark.parametrize("array", [np.zeros(9), np.zeros((9, 9), np.int8), np.array("text"), np.zeros(50, "V8")])
    def test_an_array_of_something_else(self, tmp_path: Path, array: np.ndarray) -> None:
        np.save(tmp_path / "a.npy", array)
        assert "not of bytes" in refused(tmp_path / "a.npy")

    def test_an_array_of_objects_is_not_unpickled(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array([print], object), allow_pickle=True)
        assert refused(tmp_path / "a.npy") == "is not a whole .npy file"

    @pytest.mark.parametrize("size", [0, 1, 23])
    def test_too_short(self, tmp_path: Path, size: int) -> None:
        assert refused(save(tmp_path / "a.npy", GOOD[:size])) in ("is cut short", "is not a whole .npy file")

    def test_other_numbers(self, tmp_path: Path) -> None:
        for numbers in ((0, 0, 0), (87374267, 2, 0), (-2356038617, 1, 0), (1, 87374267, 1)):
            path = save(tmp_path / "a.npy", struct.pack("<3q", *numbers) + GOOD)
            assert "not a SketchGraphs file" in refused(path)


class TestDamage:
    @pytest.mark.parametrize("size", [-1, 10**6, 2**40, -(2**63), 2**63 - 1])
    def test_a_header_size_that_lies(self, tmp_path: Path, size: int) -> None:
        path = save(tmp_path / "a.npy", dictionary({"sequences": (0, len(GOOD), 2)}, GOOD, size))
        assert "header" in refused(path)

    @pytest.mark.parametrize(
        "entry",
        [(1, len(GOOD), 2), (-1, len(GOOD), 2), (0, -1, 2), (2**62, 2**62, 2), (0, 2**63 - 1, 2), (len(GOOD), 8, 2)],
    )
    def test_a_list_outside_the_file(self, tmp_path: Path, entry: tuple[int, ...]) -> None:
        assert "lies outside" in refused(save(tmp_path / "a.npy", dictionary({"sequences": entry}, GOOD)))

    @pytest.mark.parametrize(
        "entries",
        [{}, [], None, 5, {"sequences": None}, {"sequences": (0, 1)}, {"sequences": (0, 9, 1)}, {"x": (0, 1, 2)}],
    )
    def test_no_list_in_the_dictionary(self, tmp_path: Path, entries: object) -> None:
        assert refused(save(tmp_path / "a.npy", dictionary(entries, GOOD))) in (
            "holds no sequences",
            "has a header with a pickle that is more than plain data",
        )

    @pytest.mark.parametrize("number", [-1, -2, 4, 10**6, 2**60, 2**63 - 1, -(2**63)])
    def test_a_number_of_sequences_that_lies(self, tmp_path: Path, number: int) -> None:
        data = flat_list([b"", b""], number=number)
        assert "no room" in refused(save(tmp_path / "a.npy", data))

    def test_offsets_that_lie_cost_only_their_sequences(self, tmp_path: Path) -> None:
        size = len(FRAME)
        offsets = [0, size, -5, size, 2**62, 2 * size, 3 * size]
        path = save(tmp_path / "a.npy", flat_list([FRAME] * 3, offsets))
        reading = collect(read(path))
        assert [s.extra["index"] for s in reading] == [0, 5]
        assert reading.skipped == {"a sequence that lies outside its file": 4}
        table = read_table(path)
        assert table.table.counts.tolist() == [4, 0, 0, 0, 0, 4]
        assert table.skipped == reading.skipped

    @pytest.mark.parametrize(
        "frame",
        [b"", b"\0", FRAME[:-1], FRAME[:20], FRAME[1:], FRAME[:4] + b"\xff" * 20, b"\x50\x2a\x4d\x18\xff\xff\xff\xff"],
    )
    def test_a_damaged_frame_costs_only_its_sequence(self, tmp_path: Path, frame: bytes) -> None:
        reading = collect(read(save(tmp_path / "a.npy", flat_list([frame, FRAME, frame, FRAME]))))
        assert reading.skipped == {"a sequence with a damaged LZ4 frame": 2}
        assert len(reading) == 2

    def test_a_bomb_is_not_unpacked(self, tmp_path: Path) -> None:
        bomb = lz4.frame.compress(b"\x80\x04" + b"]" * 50_000_000)
        assert len(bomb) < 300_000
        path = save(tmp_path / "a.npy", flat_list([bomb, FRAME]))
        data, good = open_sequences(path).pickles(0, 2)
        assert data == Skipped("a sequence over 4 MiB", is_sketch=True)
        assert isinstance(good, bytes)
        assert collect(read(path)).skipped == {"a sequence over 4 MiB": 1}

    def test_a_frame_that_claims_a_size_is_not_believed(self, tmp_path: Path) -> None:
        raw = dump_ops(sketch_to_ops(SKETCH))
        honest = lz4.frame.compress(raw, store_size=True)
        assert collect(read(save(tmp_path / "a.npy", flat_list([honest])))).skipped == {}
        for size in (2**40, 2**63):
            lying = honest[:6] + struct.pack("<Q", size) + honest[14:]
            assert len(collect(read(save(tmp_path / "a.npy", flat_list([lying]))))) == 0

    @pytest.mark.parametrize("keep", [*range(0, 400, 7), *range(400, 1200, 67)])
    def test_truncated_anywhere(self, tmp_path: Path, keep: int) -> None:
        write([SKETCH] * 3, tmp_path / "a.npy")
        data = (tmp_path / "a.npy").read_bytes()
        assert keep < len(data)
        (tmp_path / "a.npy").write_bytes(data[:keep])
        assert refused(tmp_path / "a.npy") == "is not a whole .npy file"

    @pytest.mark.parametrize("keep", range(0, 1200, 23))
    def test_truncated_inside_an_honest_array(self, tmp_path: Path, keep: int) -> None:
        data = dictionary({"sequences": (0, len(GOOD), 2)}, GOOD)
        path = save(tmp_path / "a.npy", data[: min(keep, len(data) - 1)])
        refused(path)
        path = save(tmp_path / "b.npy", GOOD[: min(keep, len(GOOD) - 9)])
        try:
            assert collect(read(path)).skipped
        except FormatError:
            refused(path)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8), st.floats(0, 1))
def test_a_mutated_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]], keep: float
) -> None:
    folder = tmp_path_factory.mktemp("mutated")
    path = folder / "a.npy"
    write([SKETCH, SKETCH.moved(0.5)], path)
    data = bytearray(path.read_bytes())
    for where, byte in changes:
        # Half of the changes to the few bytes that say where things are.
        at = int(where * 2 * 330) if where < 0.5 else int((where - 0.5) * 2 * len(data))
        data[min(at, len(data) - 1)] = byte
    path.write_bytes(data[: len(data) - int((1 - keep) ** 8 * len(data))])
    try:
        found = list(read(path))
        table = read_table(path)
    except FormatError:
        return
    whole = [f for f in found if isinstance(f, Sketch) or f.is_sketch]
    assert len(whole) == table.table.num_sketches
    assert [0 if isinstance(f, Skipped) else len(f) for f in whole] == table.table.counts.tolist()
