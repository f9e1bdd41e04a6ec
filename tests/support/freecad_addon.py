"""FreeCAD with the add-on: scripts that run inside it, and a home folder where it is installed."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.freecad_window import SETTINGS, display, run_freecad

ROOT = Path(__file__).parents[2]
ADDON = ROOT / "integrations" / "freecad"
SCRIPTS = ROOT / "tests" / "integrations" / "freecad"


def convert(program: str, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """What `conversion_script.py` finds under FreeCAD's command-line program."""
    findings = folder / "findings.json"
    script = (SCRIPTS / "conversion_script.py").read_text()
    output = run_freecad(program, folder, script, job | {"findings": str(findings), "addon": str(ADDON)})
    if not findings.exists():
        pytest.fail(f"FreeCAD did not finish:\n{output}")
    return json.loads(findings.read_text())


def drive_window(
    folder: Path,
    job: dict[str, Any],
    *,
    script: str = "window_script.py",
    size: tuple[int, int] = (1400, 900),
    timeout: float = 600,
) -> list[dict[str, Any]]:
    """What a script finds in FreeCAD's window: a line of a file each, so that a crash leaves those before it."""
    findings = folder / "findings.jsonl"
    mods = folder / ".local/share/FreeCAD/Mod"
    mods.mkdir(parents=True)
    (mods / "SketchDNN").symlink_to(ADDON)
    (folder / ".config/FreeCAD").mkdir(parents=True)
    (folder / ".config/FreeCAD/user.cfg").write_text(SETTINGS)
    text = (SCRIPTS / script).read_text()
    with display(*size) as name:
        environment = {"DISPLAY": name, "QTWEBENGINE_DISABLE_SANDBOX": "1", "LANG": "C.UTF-8"}
        output = run_freecad("freecad", folder, text, job | {"findings": str(findings)}, timeout=timeout, **environment)
    found = [json.loads(line) for line in findings.read_text().splitlines()] if findings.exists() else []
    if not found or found[-1].get("name") != "end":
        pytest.fail(f"FreeCAD did not finish:\n{found[-1:]}\n{output}")
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return not state.startswith("Z")
