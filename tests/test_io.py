"""Files and folders written whole: exclusive, with the user's permissions, and nothing left of what was killed."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sketchdnn.io as io_module
from sketchdnn.errors import FormatError
from sketchdnn.formats import convert, read, write
from sketchdnn.geometry import Line, Sketch
from sketchdnn.io import atomic_write, exclusive_run, remove_abandoned, temporary_folder

SKETCH = Sketch((Line((0, 0), (80, 0)),), units="mm")
WRITER = """
import sys, time
from pathlib import Path
from sketchdnn.io import atomic_write, temporary_folder
from sketchdnn.io import exclusive_run
folder = Path(sys.argv[1])
with exclusive_run(folder / "run"), atomic_write(folder / "part.json") as file, temporary_folder(folder) as aside:
    file.write_text("half")
    (aside / "some").write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_only_abandoned_files_are_removed(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    (tmp_path / ".sketchdnn-notes").write_text("mine")
    remove_abandoned(tmp_path)
    assert len(hidden(tmp_path)) == 4  # file, folder and lock of the other process, and the user's
    with (
        pytest.raises(FormatError, match=f"run: is in use by another run .process {writer.pid}.; wait"),
        exclusive_run(tmp_path / "run"),
    ):
        pass
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    write(SKETCH, tmp_path / "source.json")
    convert(tmp_path / "source.json", tmp_path / "part.dxf")  # as the next command does
    with exclusive_run(tmp_path / "run"):
        pass
    assert hidden(tmp_path) == [tmp_path / ".sketchdnn-notes"]


def test_new_files_obey_umask(tmp_path: Path) -> None:
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o007, 0o660)):
        before = os.umask(umask)
        try:
            with atomic_write(tmp_path / "part.json") as temporary:
                assert stat.S_IMODE(temporary.stat().st_mode) == mode  # from the beginning
            with temporary_folder(tmp_path) as folder:
                assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~umask
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "part.json").stat().st_mode) == mode


def test_temporary_files_are_never_written_through_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_module.secrets, "token_hex", lambda size: "0" * 2 * size)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / f".sketchdnn-{'0' * 16}.json").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(FormatError, match="File exists"):
        write(SKETCH, tmp_path / "part.json")
    remove_abandoned(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_content_is_flushed_before_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of many files in a folder, the folder alone: each would take as long as a single result."""
    flushed: list[int] = []
    flush = os.fsync

    def fsync(handle: int) -> None:
        assert not (tmp_path / "part.json").exists()
        flushed.append(handle)
        flush(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write(SKETCH, tmp_path / "part.json")
    assert len(flushed) == 1
    monkeypatch.setattr(os, "fsync", flushed.append)
    write([SKETCH] * 5, tmp_path / "many.jsonl")
    flushed.clear()
    convert(tmp_path / "many.jsonl", tmp_path / "many", format="json")
    assert (len(flushed), len(read(tmp_path / "many"))) == (1, 5)


def test_folder_made_for_nothing_goes(tmp_path: Path) -> None:
    with exclusive_run(tmp_path / "new" / "run"):
        assert (tmp_path / "new" / "run").is_dir()
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FormatError, match="file: cannot be written to as a folder"), exclusive_run(tmp_path / "file"):
        pass
