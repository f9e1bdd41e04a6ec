"""Commands that are interrupted, and commands that write to one folder: real processes and real signals."""

import signal
from functools import partial
from pathlib import Path

import pytest
from support.commands import invoke, run, start, wait_for
from support.corpora import contents, parts, written

from sketchdnn.errors import FormatError
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.io import exclusive_run

SKETCH = Sketch((Line((0, 0), (80, 0)), Circle((40, 20), 5)), units="mm")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes seconds to convert."""
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    write(SKETCH, path, "jsonl")
    path.write_bytes(path.read_bytes() * 50_000)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("target", ["all.jsonl", "folder/"])
def test_signals_leave_no_files(many: Path, tmp_path: Path, number: signal.Signals, target: str) -> None:
    with start("convert", many, f"{tmp_path}/{target}") as process:
        wait_for(partial(names, tmp_path), process)
        process.send_signal(number)
        output = process.communicate()
    assert process.returncode == 128 + number
    assert not names(tmp_path)
    assert "Traceback" not in "".join(output)


def test_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    source = written([SKETCH] * 4000, tmp_path / "in" / "some.jsonl")
    with start("convert", source, tmp_path / "out" / "all.jsonl", ignored=(signal.SIGHUP,)) as process:
        wait_for((tmp_path / "out").exists, process)
        process.send_signal(signal.SIGHUP)
        process.communicate()
    assert (process.returncode, names(tmp_path / "out")) == (0, ["all.jsonl"])


def test_second_prepare_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    out, staging = tmp_path / "out", tmp_path / "out.partial"
    with start("prepare", "--source", "procedural", "--count", 9000, "--out", out, "--workers", 1) as process:
        wait_for(lambda: (staging / "chunks").exists(), process)
        with start("prepare", "--source", "procedural", "--count", 50, "--out", out) as second:
            output = second.communicate()[1]
        assert second.returncode == 2
        assert f"out: is in use by another run (process {process.pid}); wait until it ends" in output
        assert len(output.splitlines()) == 1
        process.send_signal(signal.SIGTERM)
        output = process.communicate()[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in output
    assert names(tmp_path) == ["out.partial"]  # to be resumed
    assert not list(staging.rglob(".*"))
    with start("prepare", "--source", "procedural", "--count", 50, "--out", out, "--workers", 1) as process:
        process.communicate()
    assert (process.returncode, names(tmp_path)) == (0, ["out"])


@pytest.mark.parametrize("command", ["train --preset tiny --steps 1", "evaluate --samples missing.jsonl"])
def test_folder_in_use_is_refused(tmp_path: Path, command: str) -> None:
    both = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    with exclusive_run(tmp_path / "out"):
        result = invoke(*command.split(), *both, "--device", "cpu")
    assert isinstance(result.exception, FormatError)
    assert "out: is in use by another run" in str(result.exception)
    # Nor do they write into the corpus that they read.
    both[-1] = f"{tmp_path}/out/../data"
    assert "the corpus" in str(invoke(*command.split(), *both, "--device", "cpu").exception)
    assert not names(tmp_path)


def test_forced_prepare_keeps_other_files(tmp_path: Path) -> None:
    sources = [written(parts(count), tmp_path / f"{count}.jsonl") for count in (30, 40)]
    out = tmp_path / "out"
    prepare = ["prepare", "--workers", "1", "--out", str(out)]
    run(*prepare, str(sources[0]))
    mine = {"notes.txt": "mine", "train/notes.txt": "mine too", "study/deep/notes.txt": "also mine"}
    for name, words in mine.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(words)
    (out / "link").symlink_to(tmp_path)
    run(*prepare, str(sources[1]), "--force")
    assert (out / "link").readlink() == tmp_path
    (out / "link").unlink()
    run(*prepare[:-1], str(tmp_path / "fresh"), str(sources[1]))
    whole = contents(out, without=())
    assert {name: whole.pop(name).decode() for name in mine} == mine
    assert whole == contents(tmp_path / "fresh", without=())
