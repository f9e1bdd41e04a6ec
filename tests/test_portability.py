"""Commands run on a system without what only POSIX has: locks, limits of memory, groups of processes, some flags.

The names are removed from a real process and from the processes that it starts. That is not the same as another system.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT

REMOVED = """
import os, signal, sys
sys.modules["fcntl"] = sys.modules["resource"] = None
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "setsid", "killpg", "sched_getaffinity"):
    delattr(os, name)
del signal.SIGHUP
"""
FILES = """
import sketchdnn
from sketchdnn import Circle, Line, Sketch
square = ((0, 0), (40, 0), (40, 40), (0, 40))
outline = (Line(a, b) for a, b in zip(square, (*square[1:], square[0])))
sketchdnn.write(Sketch((*outline, Circle((20, 20), 5)), units="mm"), "plate.dxf")
sketchdnn.write(sketchdnn.read("plate.dxf").sketches * 3, "plates.jsonl")
"""
WORKERS = """
import operator
from sketchdnn.errors import SketchError
from sketchdnn.server.workers import WorkerPool
from sketchdnn.server.responses import ApiError

if __name__ == "__main__":
    pool = WorkerPool("test", 1, 20, 2**30)
    assert pool.call(operator.add, 1, 2) == 3
    import time
    try:
        pool.call(time.sleep, 30, seconds=0.2)
    except ApiError as error:
        assert error.status == 504
    assert pool.call(operator.add, 2, 2) == 4, "a new process took its place"
    pool.close()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """An environment whose Python has no POSIX names."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REMOVED)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(ROOT / "src")])}


def test_commands_run_without_posix_names(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    def python(*arguments: object) -> str:
        command = [sys.executable, *map(str, arguments)]
        result = subprocess.run(command, cwd=tmp_path, env=elsewhere, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    assert python("-c", "import os, signal; print(hasattr(os, 'setsid'), hasattr(signal, 'SIGHUP'))") == "False False\n"
    (tmp_path / "files.py").write_text(FILES)
    python("files.py")
    python("-m", "sketchdnn", "convert", "plate.dxf", "plate.FCStd")
    python("-m", "sketchdnn", "constrain", "plates.jsonl", "--out", "fixed.jsonl")
    python("-m", "sketchdnn", "prepare", "--source", "procedural", "--count", 20, "--out", "corpus")
    python("-m", "sketchdnn", "train", "--preset", "tiny", "--data", "corpus", "--out", "run", "--steps", 1)
    assert (tmp_path / "run" / "model" / "config.json").is_file()
    (tmp_path / "workers.py").write_text(WORKERS)
    python("workers.py")
