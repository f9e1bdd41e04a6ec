"""Sequences hold what the official library knows and nothing else; what we keep besides lies beside them."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_forms import all_forms
from support.strategies import constraints_on, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import registry
from sketchdnn.formats.format import collect
from sketchdnn.formats.sketchgraphs import read, write
from sketchdnn.formats.sketchgraphs.container import open_sequences, sequence_writer
from sketchdnn.formats.sketchgraphs.pickles import dump_ops, load_ops
from sketchdnn.formats.sketchgraphs.sketches import sketch_to_ops
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
FLAGS = {True, False, "TRUE", "FALSE", "True", "False"}
# Every parameter that `sketch_from_sequence` of the official library accepts, and the members of its enumerations.
OFFICIAL: dict[str, set[Any] | type] = {
    "angle": str,
    "length": str,
    "direction": {"MINIMUM", "HORIZONTAL", "VERTICAL"},
    "halfSpace0": {"LEFT", "RIGHT"},
    "halfSpace1": {"LEFT", "RIGHT"},
    "alignment": {"ANTI_ALIGNED", "ALIGNED"},
    "aligned": FLAGS,
    "clockwise": FLAGS,
}
NOTED = Sketch(
    (Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((1, 0))),
    (
        Constraint(T.POINT_ON_CURVE, (Ref(2, Part.POINT), Ref(1))),
        Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(None, Part.ORIGIN))),
        Constraint(T.LENGTH, (Ref(0),), 1.0, extra={"driving": False, "label": "width"}),
        Constraint(T.LENGTH, (Ref(0),), extra={"length": 7, "direction": "SIDEWAYS", "aligned": 1, "clockwise": "no"}),
        Constraint(T.OTHER, (Ref(1),), 2.0, "Weight", {"driven": True}),
        Constraint(T.ANGLE, (Ref(0),), 0.5, extra={"aligned": True, "clockwise": "FALSE", "alignment": "ALIGNED"}),
    ),
    "m",
)
PLAIN = Sketch(NOTED.primitives, (Constraint(T.COINCIDENT, (Ref(1, Part.CENTER), Ref(0, Part.START))),))


def assert_official(path: Path) -> None:
    sequences = open_sequences(path)
    for data in sequences.pickles(0, len(sequences)):
        assert isinstance(data, bytes)
        for op in load_ops(data):
            for key, value in (op.step or {}).items():
                known = OFFICIAL[key]
                assert isinstance(value, known) if isinstance(known, type) else value in known, (key, value)
                assert type(value) is not int, (key, value)


def assert_survives(originals: list[Sketch], path: Path) -> None:
    reading = collect(read(path))
    assert not reading.skipped
    for original, found in zip(originals, reading, strict=True):
        assert sorted(original.in_units("m").constraints, key=repr) == sorted(found.constraints, key=repr)


def test_sequences_hold_only_official_parameters(tmp_path: Path) -> None:
    originals = [NOTED, *all_forms()]
    write(originals, tmp_path / "a.npy")
    assert_official(tmp_path / "a.npy")
    assert_survives(originals, tmp_path / "a.npy")


@given(st.data())
def test_any_sequence_holds_only_official_parameters(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    plain = data.draw(sketches(max_size=6))
    path = tmp_path_factory.mktemp("any") / "a.npy"
    write([Sketch(plain.primitives, tuple(data.draw(st.lists(constraints_on(plain), max_size=6))))], path)
    assert_official(path)


def test_real_sequences_hold_only_official_parameters(tmp_path: Path, real_data: Path) -> None:
    originals = list(registry.read(real_data / "freecad"))
    write(originals, tmp_path / "a.npy")
    assert_official(tmp_path / "a.npy")
    assert_survives(originals, tmp_path / "a.npy")


def test_notes_inside_sequences_of_older_files_are_read(tmp_path: Path) -> None:
    with sequence_writer(tmp_path / "a.npy") as add:
        add(dump_ops(sketch_to_ops(NOTED)), 1)
    assert open_sequences(tmp_path / "a.npy").notes is None
    assert_survives([NOTED], tmp_path / "a.npy")


def test_notes_are_an_array_and_only_where_there_is_something_to_note(tmp_path: Path) -> None:
    """The official library loads every array of a file with numpy, and may not be given a pickle."""
    write([NOTED], tmp_path / "noted.npy")
    write([Sketch(NOTED.primitives)], tmp_path / "plain.npy")
    assert b"sketchdnn_notes" not in (tmp_path / "plain.npy").read_bytes()
    data = (tmp_path / "noted.npy").read_bytes()
    array = np.lib.format.read_array(open_at(data, data.rindex(b"\x93NUMPY")), allow_pickle=False)
    assert (array.dtype, array.ndim) == (np.uint8, 1)


def open_at(data: bytes, start: int) -> io.BytesIO:
    return io.BytesIO(data[start:])


def test_a_list_of_none_is_an_empty_array(tmp_path: Path) -> None:
    """The official library cannot count the elements of a flat list of none."""
    write([], tmp_path / "a.npy")
    data = (tmp_path / "a.npy").read_bytes()
    first = np.lib.format.read_array(open_at(data, data.index(b"\x93NUMPY", 1)), allow_pickle=False)
    assert first.shape == (0,)
    assert list(read(tmp_path / "a.npy")) == []


def noted(path: Path, *texts: bytes) -> Path:
    """A file with a sequence for each text, and the text beside it."""
    with sequence_writer(path) as add:
        for text in texts:
            add(dump_ops(sketch_to_ops(PLAIN)), 1, text)
    return path


HEADER = struct.Struct("<3q")
LIST = HEADER.pack(-2356038617, 2, 2)


def test_damaged_notes_refuse_the_file_in_one_sentence(tmp_path: Path) -> None:
    path = noted(tmp_path / "a.npy", b"{}", b"{}")
    data = path.read_bytes()
    start = data.rindex(b"\x93NUMPY")
    for old, new in (
        (b"\x93NUMPY", b"\x93numpy"),
        (b"'|u1'", b"'<f8'"),
        (b"(", b"9"),
        (b"'shape'", b"'shade'"),
        (LIST, HEADER.pack(87374267, 2, 2)),
        (LIST, HEADER.pack(-2356038617, 2, 1)),
        (LIST, HEADER.pack(-2356038617, 2, 1 << 60)),
        (LIST, HEADER.pack(-2356038617, 2, -1)),
    ):
        assert old in data[start:]
        path.write_bytes(data[:start] + data[start:].replace(old, new, 1))
        with pytest.raises(FormatError):
            list(read(path))


DAMAGED_TEXTS = (
    *(b"{", b"\xff", b"[1]", b"7", b"[" * 100_000, b" " * (4 << 20) + b"{}"),
    *(b'{"0": 1}', b'{"": {}}', b'{"-1": {}}', b'{"' + b"9" * 5000 + b'": {}}'),
    *(b'{"0": {}, "0": {}}', b'{"0": {"n": NaN}}'),
)


def test_damaged_notes_on_a_sequence_are_counted_and_the_sequence_is_read(tmp_path: Path) -> None:
    reading = collect(read(noted(tmp_path / "a.npy", b'{"0": {"mine": 1}}', *DAMAGED_TEXTS)))
    extras = [c.extra for sketch in reading for c in sketch.constraints]
    assert extras == [{"mine": 1}, *({} for _ in DAMAGED_TEXTS)]
    assert reading.skipped == {"damaged notes beside a sequence": len(DAMAGED_TEXTS)}


def test_notes_add_parameters_and_never_replace_them(tmp_path: Path) -> None:
    """Nor do they add what is no parameter, or a constraint that is not there."""
    note = json.dumps({"0": {"mine": 1, "list": [1], "deep": {"a": {}}}, "7": {"mine": 2}}).encode()
    reading = collect(read(noted(tmp_path / "a.npy", note, b"")))
    assert [c.extra for sketch in reading for c in sketch.constraints] == [{"mine": 1}, {}]
    assert not reading.skipped
