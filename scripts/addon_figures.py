"""The pictures of docs/freecad_addon.md: FreeCAD's window on a virtual display, with the add-on and the real server.

.venv/bin/python scripts/addon_figures.py docs/figures/freecad_addon
"""

import json
import socket
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.freecad_addon import drive_window  # noqa: E402

import sketchdnn  # noqa: E402
from sketchdnn import Sketch  # noqa: E402
from sketchdnn.constraints import constrain  # noqa: E402

GIVEN = (0, 1, 2, 6, 9)  # of the bracket: the lower right of its outline, a hole and the axis


def main(out: Path) -> None:
    """Draw and shrink the pictures."""
    drawn = Sketch.from_dict(json.loads((ROOT / "docs/figures/bracket.json").read_text()))
    clean = constrain(drawn).sketch
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = Path(name)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        sketchdnn.write(drawn, folder / "bracket.dxf")
        command = folder / "sketchdnn"
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m sketchdnn "$@"\n')
        command.chmod(0o755)
        job = {
            "command": str(command),
            "port": port,
            "out": str(folder),
            "part": clean.select(GIVEN).to_dict(),
            "choice": 0,
            "drawn": drawn.to_dict(),
            "open": clean.select([i for i in range(len(clean)) if i not in (4, 10)]).to_dict(),
            "drawing": str(folder / "bracket.dxf"),
        }
        drive_window(folder, job, script="figures_script.py", size=(1180, 900))
        out.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.png")):
            with Image.open(path) as image:
                image.convert("RGB").save(out / path.name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
