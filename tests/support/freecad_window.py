"""FreeCAD's own window on a virtual display: which of some documents it shows, as they open.

`python tests/support/freecad_window.py FOLDER` counts the documents of a folder that are visible.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# Without this FreeCAD opens its start page, which needs a web browser.
SETTINGS = """<?xml version="1.0" encoding="UTF-8" standalone="no" ?>
<FCParameters><FCParamGroup Name="Root"><FCParamGroup Name="BaseApp"><FCParamGroup Name="Preferences">
<FCParamGroup Name="General"><FCText Name="AutoloadModule">NoneWorkbench</FCText></FCParamGroup>
</FCParamGroup></FCParamGroup></FCParamGroup></FCParameters>
"""
# Nothing is fitted, recomputed or switched on: the picture is what a person sees who opens the file.
SCRIPT = """
import json, os
import FreeCAD, FreeCADGui

job = json.load(open(os.environ["SKETCHDNN_JOB"]))
for path, picture in job["views"]:
    document = FreeCAD.openDocument(path)
    visible = [object.ViewObject.Visibility for object in document.Objects]
    FreeCADGui.getDocument(document.Name).activeView().saveImage(picture, 320, 240, "Black")
    FreeCAD.closeDocument(document.Name)
    with open(job["findings"], "a") as file:
        file.write(json.dumps({"visible": visible}) + "\\n")
os._exit(0)
"""


def missing() -> str | None:
    """Why there is no window here, if so."""
    absent = [program for program in ("freecad", "Xvfb") if shutil.which(program) is None]
    return f"{' and '.join(absent)} not on PATH" if absent else None


def look(documents: Sequence[Path], folder: Path, *, patience: float = 300) -> list[dict[str, Any]]:
    """For each document `visible`, FreeCAD's flag of each object, and `lit`, the share of pixels that are not black.

    The pictures stay in `folder` as `0.png`, `1.png`, …
    """
    findings = folder / "findings.jsonl"
    pictures = [folder / f"{number}.png" for number in range(len(documents))]
    views = [(str(path.resolve()), str(picture)) for path, picture in zip(documents, pictures, strict=True)]
    (folder / ".config/FreeCAD").mkdir(parents=True)
    (folder / ".config/FreeCAD/user.cfg").write_text(SETTINGS)
    with display() as name:
        job = {"views": views, "findings": str(findings)}
        environment = {"DISPLAY": name, "QTWEBENGINE_DISABLE_SANDBOX": "1"}
        output = run_freecad("freecad", folder, SCRIPT, job, timeout=patience, **environment)
    found = [json.loads(line) for line in findings.read_text().splitlines()] if findings.exists() else []
    if len(found) < len(documents):
        raise RuntimeError(f"FreeCAD did not finish:\n{output}")
    return [one | {"lit": _lit(picture)} for one, picture in zip(found, pictures, strict=True)]


def run_freecad(
    program: str, folder: Path, script: str, job: dict[str, Any], *, timeout: float = 300, **environment: str
) -> str:
    """Run a script that finds its job in a file; the end of what FreeCAD prints."""
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "script.py").write_text(script)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    environment |= {"HOME": str(folder), "SKETCHDNN_JOB": str(folder / "job.json")}
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": timeout}
    done = subprocess.run([program, folder / "script.py"], env=inherited | environment, check=False, **options)
    return f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _lit(picture: Path) -> float:
    with Image.open(picture) as image:
        return float((np.asarray(image.convert("L")) > 0).mean())


@contextmanager
def display(width: int = 800, height: int = 600) -> Iterator[str]:
    """A virtual display of its own, on a number that is free."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, pass_fds=(writing,), stdin=quiet, stdout=quiet, stderr=quiet) as server:
        os.close(writing)
        try:
            with os.fdopen(reading) as number:
                yield f":{number.readline().strip()}"
        finally:
            server.terminate()


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).glob("*.FCStd"))
    with tempfile.TemporaryDirectory() as name:
        shown = [one["lit"] > 0 and all(one["visible"]) for one in look(files, Path(name), patience=1800)]
    print(f"{sum(shown)} of {len(files)} documents are visible in FreeCAD's window")  # noqa: T201
    sys.exit(not all(shown))
