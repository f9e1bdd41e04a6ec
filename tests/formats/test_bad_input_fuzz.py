"""Files with random damage: reading gives sketches, counted reasons, or one `FormatError`, and never anything else.

Three ways to damage a file: its bytes; the bytes inside its compression, which would otherwise hide the parser behind a
checksum; and for JSON its values, which keeps it well-formed and gets further in.
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import os
import tarfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.freecad_document import document_xml, zipped

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import FORMATS, ReadResult, read, scan, write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

PART = Sketch(
    (
        Line((0.0, 0.0), (80.0, 0.0)), Arc((40.0, 0.0), 40.0, 0.0, math.pi),
        Circle((40.0, 10.0), 5.0, construction=True), Point((10.0, 10.0)),
    ),
    (
        Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
        Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),
        Constraint(ConstraintType.RADIUS, (Ref(2),), 5.0),
    ),
    units="mm",
    extra={"id": "part"},
)  # fmt: skip
# Programming mistakes. A parser may raise what it likes, but these in the chain of causes would be ours to mend.
MISTAKES = (NameError, AssertionError, NotImplementedError)

OWN = [form.suffixes[0] for form in FORMATS if form.write and form.read] + [".h5", ".tar"]

tokens = st.sampled_from([b"nan", b"-inf", b"1e999", b"9" * 20, b"-1", b"\0", b"\xff" * 8, b'"', b"<", b"{"])
Edit = tuple[str, float, int, bytes]
edits = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([1, 2, 8, 64, 512]),
        st.one_of(tokens, st.binary(min_size=1, max_size=8)),
    ),
    min_size=1,
    max_size=6,
)


def damaged(data: bytes, changes: list[Edit]) -> bytes:
    spoilt = bytearray(data)
    for what, where, size, new in changes:
        at = int(where * len(spoilt))
        match what:
            case "set":
                spoilt[at : at + len(new)] = new
            case "insert":
                spoilt[at:at] = new
            case "delete":
                del spoilt[at : at + size]
            case "repeat":
                spoilt[at:at] = spoilt[at : at + size]
            case "cut":
                del spoilt[len(spoilt) - size :]
    return bytes(spoilt)


def read_or_refuse(path: Path) -> ReadResult | None:
    try:
        return read(path)
    except FormatError as error:
        assert "\n" not in str(error)  # noqa: PT017
        cause: BaseException | None = error
        while cause := cause.__cause__:
            assert not isinstance(cause, MISTAKES), f"{path}: {cause!r}"
        return None


def own_file(folder: Path, suffix: str) -> Path:
    path = folder / f"part{suffix}"
    if suffix == ".h5":
        rows = np.full((5, 21), -1, dtype=np.int32)
        for index, row in enumerate([(6,), (0, 138, 128), (1, 128, 128, 128, 1), (6,), (2, 9, 9, 0, 0, 3)]):
            rows[index, : len(row)] = row
        with h5py.File(path, "w") as file:
            file["vec"] = rows
    elif suffix == ".tar":
        with tarfile.open(path, "w") as archive:
            archive.add(own_file(folder, ".json"), "part.json")
            archive.add(own_file(folder, ".svg"), "part.svg")
    else:
        write(PART, path)
    return path


@pytest.mark.parametrize("suffix", OWN)
@settings(max_examples=40)
@given(changes=edits)
def test_damaged_files_of_our_own(tmp_path_factory: pytest.TempPathFactory, suffix: str, changes: list[Edit]) -> None:
    path = own_file(tmp_path_factory.getbasetemp(), suffix)
    path.write_bytes(damaged(path.read_bytes(), changes))
    read_or_refuse(path)


INSIDE: dict[str, tuple[Callable[[Path], bytes], Callable[[Path, bytes], object]]] = {
    ".jsonl.gz": (lambda path: gzip.decompress(path.read_bytes()), lambda p, data: p.write_bytes(gzip.compress(data))),
    ".jsonl.xz": (lambda path: lzma.decompress(path.read_bytes()), lambda p, data: p.write_bytes(lzma.compress(data))),
    ".FCStd": (document_xml, zipped),
}


@pytest.mark.parametrize("suffix", INSIDE)
@settings(max_examples=40)
@given(changes=edits)
def test_damage_inside_compression(tmp_path_factory: pytest.TempPathFactory, suffix: str, changes: list[Edit]) -> None:
    unpack, pack = INSIDE[suffix]
    path = own_file(tmp_path_factory.getbasetemp(), suffix)
    pack(path, damaged(unpack(path), changes))
    read_or_refuse(path)


odd_values = st.sampled_from(
    [None, True, -1, 0, 7, 1e300, 10**400, "", "part", "0.1 METER", [], [0], [0, "start"], {}, {"a": 1}]
)


@st.composite
def altered(draw: st.DrawFn, value: Any) -> Any:
    """The same JSON with a few of its values, at any depth, replaced or removed."""
    places: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        inner = pending.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        places += [(inner, key) for key in keys]
        pending += [inner[key] for key in keys if isinstance(inner[key], dict | list)]
    for _ in range(draw(st.integers(1, 4))):
        inner, key = draw(st.sampled_from(places))
        if isinstance(inner, dict) and draw(st.booleans()):
            inner.pop(key, None)
        elif isinstance(inner, dict) or key < len(inner):
            inner[key] = draw(odd_values)
    return value


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".corpus.jsonl"])
@settings(max_examples=80)
@given(data=st.data())
def test_odd_values_in_our_own_json(tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject) -> None:
    path = own_file(tmp_path_factory.getbasetemp(), suffix)
    path.write_text(json.dumps(data.draw(altered(json.loads(path.read_text())))))
    read_or_refuse(path)


@pytest.fixture(scope="session")
def real_files(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bytes]]:
    """A small real file of each kind: its name and its bytes."""
    ten = tmp_path_factory.mktemp("real") / "ten.npy"
    sequences = scan(real_data / "sketchgraphs" / "sg_subset.npy")
    write(list(islice((found for found in sequences if isinstance(found, Sketch)), 10)), ten)
    with lzma.open(real_data / "open-sketches.jsonl.xz") as corpus:
        lines = b"".join(islice(corpus, 5))
    archive = real_data / "hpsketch_sample.tar.xz"
    files = {
        "corpus": ("some.jsonl", lines), "sketchgraphs": (ten.name, ten.read_bytes()),
        "archive": (archive.name, archive.read_bytes()), "hpsketch": ("model.h5", _member(archive)),
        "onshape": ("feature.json", _member(real_data / "sketchgraphs" / "onshape_json.tar.xz", at_least=10_000)),
    }  # fmt: skip
    for what in ("dxf", "freecad"):
        smallest = min((real_data / what).glob("*.[dF]*"), key=lambda path: path.stat().st_size)
        files[what] = (smallest.name, smallest.read_bytes())
    return files


def _member(archive: Path, at_least: int = 0) -> bytes:
    """The smallest file of an archive that is as large as that."""
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.isfile() and member.size >= at_least]
        smallest = min(members, key=lambda member: (member.size, member.name))
        return tar.extractfile(smallest).read()  # type: ignore[union-attr]


@settings(max_examples=60)
@given(data=st.data())
def test_odd_values_in_onshape_json(
    real_files: dict[str, tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name, whole = real_files["onshape"]
    path = tmp_path_factory.getbasetemp() / name
    path.write_text(json.dumps(data.draw(altered(json.loads(whole)))))
    read_or_refuse(path)


@pytest.mark.parametrize("what", ["corpus", "sketchgraphs", "archive", "hpsketch", "onshape", "dxf", "freecad"])
@settings(max_examples=30)
@given(changes=edits)
def test_damaged_real_files(
    real_files: dict[str, tuple[str, bytes]], tmp_path_factory: pytest.TempPathFactory, what: str, changes: list[Edit]
) -> None:
    name, whole = real_files[what]
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(damaged(whole, changes))
    read_or_refuse(path)


def test_damage_is_real(tmp_path: Path) -> None:
    """Most edits must reach a parser: a file that still reads the same would test nothing."""
    path = own_file(tmp_path, ".json")
    whole = path.read_bytes()
    path.write_bytes(damaged(whole, [("cut", 0.0, 64, b"x")]))
    assert read_or_refuse(path) is None
    path.write_bytes(damaged(whole, [("set", 0.0, 1, b"{")]))
    assert isinstance(read_or_refuse(path), ReadResult)
    with pytest.raises(SketchError):
        read(os.devnull)
