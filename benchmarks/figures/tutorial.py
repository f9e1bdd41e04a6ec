"""The pictures of docs/tutorials/outline_to_part.md: its steps, really done, in the studio and in FreeCAD's window."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.studio_driver import Studio, browsing, serving
from sketchdnn import write
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Line, Sketch, profile

from .studio import hush, write_picture

# Half of a bracket as a drawing program leaves it: no constraints, numbers that are not round, open at the right.
OUTLINE = Sketch(
    (
        Line((0.2, 39.9), (0.2, 0.1)),
        Line((0.2, 0.1), (79.7, 0.1)),
        Line((79.7, 0.1), (79.7, 14.9)),
        Line((0.2, 39.9), (24.9, 39.9)),
    ),
    units="mm",
)
HEIGHT = 10.0
# Pads the sketch of a document in its window; prints what became of it.
_PAD = """
import json, os
import FreeCAD, FreeCADGui

job = json.load(open(os.environ["SKETCHDNN_JOB"]))
document = FreeCAD.openDocument(job["document"])
sketch = next(o for o in document.Objects if o.TypeId == "Sketcher::SketchObject")
solved = sketch.solve()
body = document.addObject("PartDesign::Body", "Body")
body.addObject(sketch)
pad = body.newObject("PartDesign::Pad", "Pad")
pad.Profile = sketch
pad.Length = job["height"]
document.recompute()
sketch.ViewObject.Visibility = False
view = FreeCADGui.getDocument(document.Name).activeView()
view.setAnimationEnabled(False)
view.viewIsometric()
FreeCADGui.SendMsgToActiveView("ViewFit")
view.saveImage(job["picture"], 900, 560, "White")
found = {"solve": solved, "valid": pad.Shape.isValid(), "volume": pad.Shape.Volume, "dof": sketch.FullyConstrained}
with open(job["result"], "w") as file:
    json.dump(found, file)
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Part:
    """The end of the tutorial: the sketch that was exported, and what FreeCAD found.

    Attributes:
        sketch: The sketch in the studio.
        solve: The answer of FreeCAD's solver; 0 is success.
        valid: Whether the solid is valid.
        volume: Its volume, in mm³.
        fully_constrained: What FreeCAD says of the sketch.
    """

    sketch: Sketch
    solve: int
    valid: bool
    volume: float
    fully_constrained: bool


def write_tutorial(out: Path, program: str = "/usr/bin/chromium") -> tuple[list[Path], Part]:
    """Do the steps of the tutorial and write a picture of each; the paths, and the part."""
    with tempfile.TemporaryDirectory() as name, serving() as url, browsing(program) as browser:
        folder = Path(name)
        write(OUTLINE, folder / "outline.dxf")
        context = browser.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)
        studio = Studio(context.new_page(), url).open()
        paths = [write_picture(studio, out / f"{step}.png") for step in _steps(studio, folder)]
        sketch = studio.sketch()
        context.close()
        picture = out / "6-pad.png"
        found = _pad(folder, folder / "outline.FCStd", picture)
    _shrink(picture)
    part = Part(sketch, found["solve"], found["valid"], found["volume"], found["dof"])
    if part.solve != 0 or not part.valid or abs(part.volume - HEIGHT * profile(sketch).area) > 1e-3 * part.volume:
        raise SketchError(f"FreeCAD made another part than the studio shows: {part}")
    return [*paths, picture], part


def _steps(studio: Studio, folder: Path) -> Iterator[str]:
    page = studio.page
    page.locator("#file").set_input_files(folder / "outline.dxf")
    studio.wait_for_inspection()
    yield "1-outline"
    page.click("#tab-complete")
    page.click("#complete")
    page.wait_for_selector("#completions[aria-busy=false] .tile:not(.waiting)")
    closed = page.locator("#completions .tile", has_text="closed").locator(".tile-main")
    closed.first.hover()
    hush(studio)
    yield "2-suggestions"
    closed.first.click()
    studio.wait_for_inspection()
    page.click("#tab-constrain")
    page.click("#constrain")
    rounded = page.locator("#alternatives .tile-main", has_text="Rounded dimensions")
    rounded.hover()
    hush(studio)
    yield "3-constraints"
    rounded.click()
    studio.wait_for_inspection()
    hush(studio)
    page.click("#tab-inspect")
    page.click("#fit")
    yield "4-rounded"
    page.click("#export")
    page.check("[name=format][value=fcstd]")
    yield "5-export"
    with page.expect_download() as download:
        page.click("#export-save")
    download.value.save_as(folder / "outline.FCStd")


def _pad(folder: Path, document: Path, picture: Path) -> dict[str, Any]:
    """Pad the sketch in FreeCAD's window on a virtual display."""
    job = {"document": str(document), "picture": str(picture.resolve()), "height": HEIGHT}
    job["result"] = str(folder / "result.json")
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "pad.py").write_text(_PAD)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    with _display() as display:
        own = {"HOME": str(folder), "DISPLAY": display, "SKETCHDNN_JOB": str(folder / "job.json")}
        own["QTWEBENGINE_DISABLE_SANDBOX"] = "1"
        command = ["freecad", str(folder / "pad.py")]
        done = subprocess.run(  # noqa: S603
            command,
            env=inherited | own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    result = folder / "result.json"
    if not result.exists():
        raise SketchError(f"FreeCAD did not pad the sketch: {done.stderr[-400:]}")
    found: dict[str, Any] = json.loads(result.read_text())
    return found


@contextmanager
def _display() -> Iterator[str]:
    """A virtual display on a free number."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, pass_fds=(writing,), stdout=quiet, stderr=quiet) as server:  # noqa: S603
        os.close(writing)
        try:
            with os.fdopen(reading) as number:
                yield f":{number.readline().strip()}"
        finally:
            server.terminate()


def _shrink(path: Path) -> None:
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, format="png", optimize=True)
