"""The wheel and the sdist: built, installed into a new environment, and used outside the repository."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from support.documents import ROOT

pytestmark = pytest.mark.package

MAX_WHEEL = 100 * 10**6
# What no package may hold: data, builds, caches.
FOREIGN = re.compile(r"^(build|demo|data|dist)/|(^|/)(\.git|\.venv|__pycache__)/|\.pyc$")
USE = """
import sketchdnn
from sketchdnn import Circle, Line, Sketch
corners = ((0.2, 0.1), (60, 0), (60.1, 40), (0, 39.8))
lines = [Line(a, (b[0], b[1] + 0.2)) for a, b in zip(corners, (*corners[1:], corners[0]))]
sketchdnn.write(Sketch((*lines, Circle((30, 20), 8)), units="mm"), "plate.dxf")
sketchdnn.write(Sketch(tuple(lines[:3]), units="mm"), "part.dxf")
"""


def run(*command: object, cwd: Path) -> str:
    """A command without the repository on its path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run([*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel and the extra of the server."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    install = ("-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt")
    run(python, *install, f"sketchdnn[studio] @ {wheel.as_uri()}", cwd=folder)
    return python


def test_wheel_and_sdist_hold_the_package_and_its_notes(built: Path) -> None:
    wheel, sdist = next(built.glob("*.whl")), next(built.glob("*.tar.gz"))
    assert wheel.stat().st_size < MAX_WHEEL
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    for name in ("README.md", "NOTICE.md", "config.json", "model.safetensors.index.json"):
        assert f"sketchdnn/weights/ours/{name}" in names
    assert {name.split("/")[0] for name in names} == {"sketchdnn", wheel.name.split("-py3")[0] + ".dist-info"}
    assert not [name for name in names if FOREIGN.search(name)]
    for extra in ("cad", "eval", "loggers", "mcp", "studio", "docs"):
        assert f"Provides-Extra: {extra}" in metadata
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs/index.md", "examples/tour.ipynb"} <= inside
    assert not [name for name in inside if FOREIGN.search(name)]


def test_the_installed_package_works_outside_the_repository(python: Path, tmp_path: Path) -> None:
    sketchdnn = python.with_name("sketchdnn")
    location = run(python, "-c", "import sketchdnn; print(sketchdnn.__file__)", cwd=tmp_path)
    assert str(python.parent.parent) in location
    run(python, "-c", USE, cwd=tmp_path)
    run(sketchdnn, "constrain", "plate.dxf", "--out", "plate.FCStd", cwd=tmp_path)
    run(sketchdnn, "convert", "plate.FCStd", "plate.svg", cwd=tmp_path)
    run(sketchdnn, "generate", "--count", 1, "--steps", 10, "--out", "new", cwd=tmp_path)
    run(sketchdnn, "complete", "part.dxf", "--count", 1, "--steps", 10, "--out", "ideas", cwd=tmp_path)
    assert (tmp_path / "plate.svg").read_text().startswith("<")
    assert list((tmp_path / "new").glob("*.dxf"))
    assert list((tmp_path / "ideas").glob("*.json"))
    assert run(python, "-c", "import sketchdnn.server.run; print('server')", cwd=tmp_path) == "server\n"
