"""FreeCAD as a judge: sketches go in as documents, what it makes of them comes back as plain data.

It exits with 0 whatever happens and runs a script twice, so only what a script has written counts, a line a document.
A document that it dies of is one without an answer, and the next process goes on behind it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sketchdnn.errors import SketchError

Answer = dict[str, Any]
OnDone = Callable[[int], None]

# Seconds for one process.
_PATIENCE = 1800

_FRAME = """
import json, os
import FreeCAD, Part, Sketcher

job = json.load(open(os.environ["SKETCHDNN_JOB"]))

{body}

def main():
    with open(job["answers"], "a") as file:
        for task in job["tasks"]:
            document = FreeCAD.openDocument(task["document"])
            try:
                answer = look(document, task)
            except Exception as error:
                answer = {{"error": str(error)}}
            FreeCAD.closeDocument(document.Name)
            file.write(json.dumps(answer) + "\\n")
            file.flush()

if not os.path.exists(job["answers"]):
    main()
"""


def find_freecad() -> str:
    """Its command-line program."""
    program = shutil.which("freecadcmd") or shutil.which("FreeCADCmd")
    if program is None:
        raise SketchError("FreeCAD is to judge, and there is no freecadcmd on the PATH; install FreeCAD")
    return program


def ask_freecad(
    program: str, look: str, tasks: Sequence[Answer], on_done: OnDone = lambda done: None
) -> list[Answer | None]:
    """What `look(document, task)`, given as a script, says of each task's `document`; none where FreeCAD died of it."""
    answers: list[Answer | None] = []
    while len(answers) < len(tasks):
        fresh = _ask_once(program, look, tasks[len(answers) :])
        answers.extend(fresh)
        if len(answers) < len(tasks):
            answers.append(None)
        on_done(len(answers))
    return answers


def _ask_once(program: str, look: str, tasks: Sequence[Answer]) -> list[Answer | None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = folder / "answers.jsonl"
        (folder / "job.json").write_text(json.dumps({"tasks": list(tasks), "answers": str(answers)}))
        (folder / "script.py").write_text(_FRAME.format(body=look))
        subprocess.run(  # noqa: S603 - our own script, and a program that the user has installed
            [program, str(folder / "script.py")],
            env={**os.environ, "SKETCHDNN_JOB": str(folder / "job.json"), "HOME": name},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
        lines = answers.read_text().splitlines() if answers.exists() else []
    return [json.loads(line) for line in lines]
