"""Run as a script where build123d is installed: builds what a job file describes, as `freecad_job` does."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any


def build(job: dict[str, Any]) -> dict[str, Any]:
    """Make the solid, write it, and measure it."""
    b = import_module("build123d")

    def face(outline: dict[str, Any]) -> Any:
        if "ways" not in outline:
            return b.Pos(*outline["center"]) * b.Circle(outline["radius"])
        ways = [(tuple(start), middle and tuple(middle)) for start, middle in outline["ways"]]  # it takes no lists
        return b.make_face(
            b.Line(start, end) if middle is None else b.ThreePointArc(start, middle, end)
            for (start, middle), (end, _) in zip(ways, ways[1:] + ways[:1], strict=True)
        )

    solids = []
    for region in job["regions"]:
        material = face(region["outer"])
        for hole in region["holes"]:
            material -= face(hole)
        solids += b.extrude(material, job["height"], dir=(0, 0, 1)).solids()
    shape = b.Compound(solids)
    if job["kind"] == "step":
        b.export_step(shape, job["out"])
    else:
        b.export_stl(shape, job["out"], tolerance=shape.bounding_box().diagonal / 2000, angular_tolerance=0.1)
    return {"volume": shape.volume, "valid": bool(shape.is_valid) and len(solids) == len(job["regions"])}


def main(path: Path) -> None:
    job = json.loads(path.read_text())
    try:
        report = build(job)
    except Exception as error:  # noqa: BLE001  a CAD kernel raises anything, and it must be told
        report = {"error": str(error) or type(error).__name__}
    Path(job["report"]).write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(os.environ["SKETCHDNN_JOB"]))
