"""Bad input of every kind: one sentence that names the file, exit code 2, nothing written; or counted reasons.

Through the command line, each case makes one file that must be refused; those that could do harm run as the program
itself. Files with random damage give sketches, counted reasons, or one `FormatError`: damage to their bytes, to the
bytes inside their compression, and for JSON to its values, which keeps it well-formed and gets further in.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import pickle
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.freecad_document import document_xml, zipped

from sketchdnn.cli import main
from sketchdnn.errors import FormatError, SketchError, display_path
from sketchdnn.formats import FORMATS, ReadResult, read, scan, write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

LINE = Sketch((Line((0.0, 0.0), (12.5, 0.0)),), units="mm")
SUFFIXES = sorted({suffix for form in FORMATS for suffix in form.suffixes} | {".tar", ".tar.xz"})
WRITABLE = [form.suffixes[0] for form in FORMATS if form.write and form.read]


Refused = Callable[..., str]  # converts a file to targets, which must be refused, and returns the reason given


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refused:
    def convert(source: Path, *targets: str) -> str:
        out = tmp_path / "results"
        out.mkdir(exist_ok=True)
        start = f"sketchdnn: {display_path(source)}: "
        stderr = ""
        for target in targets or ("out.jsonl",):
            monkeypatch.setattr(sys, "argv", ["sketchdnn", "convert", str(source), f"{out}/{target}"])
            with pytest.raises(SystemExit) as stopped:
                main()
            stdout, stderr = capfd.readouterr()
            assert (stopped.value.code, stdout) == (2, "")
            assert stderr.startswith(start)
            assert (stderr.count("\n"), list(out.iterdir())) == (1, [])
        return stderr.removeprefix(start).strip()

    return convert


def test_wrong_or_damaged_content(tmp_path: Path, refused: Refused) -> None:
    for suffix in SUFFIXES:
        path = tmp_path / f"wrong{suffix}"
        path.touch()
        assert refused(path) == "is empty"
        for content in (b"hello, world\n", b"\x00" * 600, b"PK\x03\x04 nothing", b"\x93NUMPY\x01\x00"):
            path.write_bytes(content)
            refused(path)
    for suffix in [*WRITABLE, ".jsonl.gz", ".jsonl.xz"]:
        path = tmp_path / f"cut{suffix}"
        write(LINE, path)
        whole = path.read_bytes()
        for share in (0.3, 0.6, 0.9):
            path.write_bytes(whole[: int(share * len(whole))])
            refused(path)
    write(LINE, tmp_path / "line.json")
    path = tmp_path / "damaged.tar"
    with tarfile.open(path, "w") as archive:
        for _ in range(3):
            archive.add(tmp_path / "line.json")
    blocks = bytearray(path.read_bytes())
    blocks[2 * 512 + 150] ^= 255  # the checksum of the second header
    path.write_bytes(blocks)
    assert refused(path) == "is not a whole tar archive: a header is damaged"


def test_bombs_and_paths_cannot_escape(tmp_path: Path) -> None:
    path = tmp_path / "bomb.FCStd"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("Document.xml", "w") as file:
        for _ in range(256):
            file.write(b" " * 2**20)
    assert path.stat().st_size < 3e5
    _run_harmless(path, tmp_path, memory=50 * 2**20)
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("../../escaped.json", "/tmp/escaped.json", "..", "x/.."):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"{}\n"))
    _run_harmless(path, tmp_path)
    assert not list(tmp_path.parent.rglob("escaped*"))


class _Evil:
    """What the pickle of a hostile file would do."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


def test_plain_pickle_with_wrong_name(tmp_path: Path, refused: Refused) -> None:
    marker = tmp_path / "executed"
    for name in ("evil.npy", "evil.h5", "evil.json", "evil.FCStd"):
        (tmp_path / name).write_bytes(pickle.dumps(_Evil(f"touch {marker}")))
        refused(tmp_path / name)
    objects = np.empty(1, dtype=object)
    objects[0] = _Evil(f"touch {marker}")
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    refused(tmp_path / "objects.npy")
    assert not marker.exists()


def unreadable(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Files and folders that cannot be read, and why."""
    (tmp_path / "folder.dxf").mkdir()
    yield tmp_path / "folder.dxf", "holds no sketch that can be read"
    (tmp_path / "dangling.dxf").symlink_to(tmp_path / "nowhere")
    yield tmp_path / "dangling.dxf", "cannot be read (No such file or directory)"
    os.mkfifo(tmp_path / "pipe.dxf")
    yield tmp_path / "pipe.dxf", "is not a regular file"
    yield Path("/dev/zero"), "is not a regular file"
    not_utf8 = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.dxf"))
    not_utf8.write_text("nonsense")
    yield not_utf8, ""
    yield not_utf8.with_suffix(".json"), "cannot be read (No such file or directory)"
    (tmp_path / "part.iges").write_text("S      1")
    yield tmp_path / "part.iges", "is in no format that we read"
    (tmp_path / "part.step").write_text("ISO-10303-21;")
    yield tmp_path / "part.step", "is for other programs: step files are written here, not read"
    write(LINE, tmp_path / "mine.json")
    (tmp_path / "mine.json").chmod(0)
    if not os.access(tmp_path / "mine.json", os.R_OK):  # permissions do not bind every user
        yield tmp_path / "mine.json", "cannot be read (Permission denied)"


def test_unreadable_inputs(tmp_path: Path, refused: Refused) -> None:
    for path, reason in unreadable(tmp_path):
        assert refused(path, "out.jsonl", "out.dxf", "out.FCStd", "folder/").startswith(reason)


def test_paths_that_are_not_utf8(tmp_path: Path) -> None:
    source, target = (os.fsencode(tmp_path) + name for name in (b"/\xfe.json", b"/\xff.svg"))
    write(LINE, os.fsdecode(source))
    program = [sys.executable, "-m", "sketchdnn", "convert", source, target]
    result = subprocess.run(program, capture_output=True, check=False)
    assert result.returncode == 0
    assert Path(os.fsdecode(target)).read_bytes().startswith(b"<svg")
    assert rb"\udcff.svg: 1 sketch" in result.stderr


def _run_harmless(path: Path, tmp_path: Path, memory: int = 0) -> None:
    """The program itself refuses the file, with one sentence and without a trace."""
    limits = f"ulimit -v {memory // 1024 + 500_000}; " if memory else ""
    out = tmp_path / "harmless.jsonl"
    command = [sys.executable, "-m", "sketchdnn", "convert", str(path), str(out)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        ["bash", "-c", f'{limits}exec "$@"', "bash", *command], capture_output=True, env=environment, check=False
    )
    stderr = result.stderr.decode()
    assert result.returncode == 2, stderr
    assert stderr.startswith(f"sketchdnn: {path}: ")
    assert stderr.count("\n") == 1
    assert not out.exists()


PART = Sketch(
    (Line((0.0, 0.0), (80.0, 0.0)), Arc((40.0, 0.0), 40.0, 0.0, math.pi),
        Circle((40.0, 10.0), 5.0, construction=True), Point((10.0, 10.0))),
    (Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
        Constraint(ConstraintType.HORIZONTAL, (Ref(0),)),
        Constraint(ConstraintType.RADIUS, (Ref(2),), 5.0)),
    units="mm",
    extra={"id": "part"},
)  # fmt: skip
# Programming mistakes. A parser may raise what it likes, but these in the chain of causes would be ours to mend.
MISTAKES = (NameError, AssertionError, NotImplementedError)


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


# Files of our own: how to get at their bytes, or those inside their compression.
PACKED = [(suffix, Path.read_bytes, Path.write_bytes) for suffix in [*WRITABLE, ".h5", ".tar"]] + [
    (".jsonl.gz", lambda path: gzip.decompress(path.read_bytes()), lambda p, data: p.write_bytes(gzip.compress(data))),
    (".jsonl.xz", lambda path: lzma.decompress(path.read_bytes()), lambda p, data: p.write_bytes(lzma.compress(data))),
    (".FCStd", document_xml, zipped),
]


@pytest.mark.parametrize(("suffix", "unpack", "pack"), PACKED)
@settings(max_examples=40)
@given(changes=edits)
def test_damaged_files_of_our_own(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, unpack: Any, pack: Any, changes: list[Edit]
) -> None:
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
