"""Bad input of every kind, through the command line: one sentence that names the file, exit code 2, nothing written.

Each case makes one file that must be refused. Most run in this process through the same `main` that the program runs;
the ones that could do harm run as the program itself.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from support.freecad_document import document_xml, zipped

from sketchdnn.cli import main
from sketchdnn.errors import display_path
from sketchdnn.formats import FORMATS, write
from sketchdnn.geometry import Line, Sketch

LINE = Sketch((Line((0.0, 0.0), (12.5, 0.0)),), units="mm")
SUFFIXES = sorted({suffix for form in FORMATS for suffix in form.suffixes} | {".tar", ".tar.xz"})
WRITABLE = [form.suffixes[0] for form in FORMATS if form.write and form.read]


class Refused(Protocol):
    """Converts a file that must be refused, and returns the reason given."""

    def __call__(self, source: Path, *targets: str) -> str: ...


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


def test_empty_or_wrong_content(tmp_path: Path, refused: Refused) -> None:
    for suffix in SUFFIXES:
        path = tmp_path / f"wrong{suffix}"
        path.touch()
        assert refused(path) == "is empty"
        for content in (b"hello, world\n", b"\x00" * 600, b"PK\x03\x04 nothing", b"\x93NUMPY\x01\x00"):
            path.write_bytes(content)
            refused(path)


def test_truncated_file(tmp_path: Path, refused: Refused) -> None:
    for suffix in [*WRITABLE, ".jsonl.gz", ".jsonl.xz"]:
        path = tmp_path / f"cut{suffix}"
        write(LINE, path)
        whole = path.read_bytes()
        for share in (0.3, 0.6, 0.9):
            path.write_bytes(whole[: int(share * len(whole))])
            refused(path)


def test_archive_with_damage_in_middle(tmp_path: Path, refused: Refused) -> None:
    write(LINE, tmp_path / "line.json")
    path = tmp_path / "damaged.tar"
    with tarfile.open(path, "w") as archive:
        for _ in range(3):
            archive.add(tmp_path / "line.json")
    blocks = bytearray(path.read_bytes())
    blocks[2 * 512 + 150] ^= 255  # the checksum of the second header
    path.write_bytes(blocks)
    assert refused(path) == "is not a whole tar archive: a header is damaged"


def test_coordinates_that_are_not_finite(tmp_path: Path, refused: Refused) -> None:
    for suffix in (".json", ".jsonl", ".corpus.jsonl", ".svg", ".dxf"):
        path = tmp_path / f"bad{suffix}"
        write(LINE, path)
        text = path.read_text()
        assert "12.5" in text
        for word in ("nan", "inf", "-inf", "1e999"):
            path.write_text(text.replace("12.5", word))
            refused(path)
    path = tmp_path / "bad.FCStd"
    write(LINE, path)
    document = document_xml(path)
    assert b"12.5" in document
    for word in ("nan", "inf", "1e999"):
        refused(zipped(path, document.replace(b"12.5", word.encode())))


def test_zip_bomb(tmp_path: Path) -> None:
    path = tmp_path / "bomb.FCStd"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("Document.xml", "w") as file:
        for _ in range(256):
            file.write(b" " * 2**20)
    assert path.stat().st_size < 3e5
    _run_harmless(path, tmp_path, memory=50 * 2**20)


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


def test_archive_paths_cannot_escape(tmp_path: Path) -> None:
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("../../escaped.json", "/tmp/escaped.json", "..", "x/.."):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"{}\n"))
    _run_harmless(path, tmp_path)
    assert not list(tmp_path.parent.rglob("escaped*"))


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
