"""What tests may need beyond the package: real data, FreeCAD and its window, Chromium, the FID Inception. Absent, they
skip and say so, unless it is required.

Property tests run with fixed seeds, so that every run tries the same examples; `make fuzz` draws new ones.
`SKETCHDNN_DATA` names a folder of real sketches, `SKETCHDNN_HOSTILE` one of files made to take time or memory; without
it, the folder `hostile` beside the data is taken. `SKETCHDNN_REQUIRE` lists what must be there
(`data,freecad,gui,chromium,inception,hostile`): then a missing one fails instead of skipping, so that a green run
means that it ran.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from support.freecad_window import missing as freecad_window_missing

# Tests run in as many processes as there are cores. Threads in each of them would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# `fuzz` is chosen with `--hypothesis-profile fuzz`. It keeps failing examples in .hypothesis/ and tries them first.
settings.register_profile(
    "sketchdnn",
    derandomize=True,
    database=None,
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile(
    "fuzz",
    settings.get_profile("sketchdnn"),
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis"),
    max_examples=200,
)
# For scripts/mutants.py, which only asks whether a test fails: the smallest failing example is not looked for.
settings.register_profile(
    "mutants", settings.get_profile("sketchdnn"), phases=[Phase.explicit, Phase.generate], print_blob=False
)
settings.load_profile("sketchdnn")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed the global generators before each test, so that no result depends on the tests before it."""
    random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def _absent(what: str, reason: str) -> None:
    if what in os.environ.get("SKETCHDNN_REQUIRE", "").split(","):
        pytest.fail(f"{what} is required here: {reason}")
    pytest.skip(reason)


def _folder(what: str, variable: str, content: str, default: str = "") -> Path:
    folder = os.environ.get(variable) or default
    if not folder or not Path(folder).is_dir():
        _absent(what, f"{variable} does not name a folder of {content}")
    return Path(folder)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real sketches."""
    return _folder("data", "SKETCHDNN_DATA", "real sketches")


@pytest.fixture(scope="session")
def hostile() -> Path:
    """The folder of hostile files."""
    data = os.environ.get("SKETCHDNN_DATA")
    return _folder("hostile", "SKETCHDNN_HOSTILE", "hostile files", str(Path(data).parent / "hostile") if data else "")


@pytest.fixture(scope="session")
def freecadcmd() -> str:
    """FreeCAD's command-line program."""
    program = shutil.which("freecadcmd") or shutil.which("FreeCADCmd")
    if program is None:
        _absent("freecad", "freecadcmd is not on PATH")
    return str(program)


@pytest.fixture(scope="session")
def freecad_window() -> None:
    """FreeCAD's window and a virtual display for it."""
    if reason := freecad_window_missing():
        _absent("gui", reason)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        _absent("chromium", "chromium is not on PATH")
    return str(program)


@pytest.fixture(scope="session")
def inception_file() -> Path:
    """The file of the FID Inception."""
    from sketchdnn.evaluation.features import InceptionError, find_inception

    try:
        return find_inception(None)
    except InceptionError as error:
        _absent("inception", str(error))
        raise
