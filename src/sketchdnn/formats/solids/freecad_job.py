"""Run by FreeCAD, not by us: builds what a job file describes. Imports nothing of this package, which is not there.

FreeCAD runs a script twice and hides its errors, so a report says what came of it.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any


def build(job: dict[str, Any]) -> dict[str, Any]:
    """Make the solid, write it, and measure it."""
    freecad, part = import_module("FreeCAD"), import_module("Part")

    def place(at: list[float]) -> Any:
        return freecad.Vector(at[0], at[1], 0)

    def wire(outline: dict[str, Any]) -> Any:
        if "ways" not in outline:
            return part.Wire([part.makeCircle(outline["radius"], place(outline["center"]))])
        ways, edges = outline["ways"], []
        for (start, middle), (end, _) in zip(ways, ways[1:] + ways[:1]):  # noqa: B905
            if middle is None:
                edges.append(part.LineSegment(place(start), place(end)).toShape())
            else:
                edges.append(part.Arc(place(start), place(middle), place(end)).toShape())
        return part.Wire(edges)

    solids = []
    for region in job["regions"]:
        wires = [wire(outline) for outline in [region["outer"], *region["holes"]]]
        solids.append(part.makeFace(wires, "Part::FaceMakerBullseye").extrude(freecad.Vector(0, 0, job["height"])))
    shape = solids[0] if len(solids) == 1 else part.makeCompound(solids)
    if job["kind"] == "step":
        shape.exportStep(job["out"])
    else:
        size = shape.BoundBox.DiagonalLength
        mesh = import_module("MeshPart").meshFromShape(Shape=shape, LinearDeflection=size / 2000, AngularDeflection=0.1)
        mesh.write(job["out"])
    return {"volume": shape.Volume, "valid": shape.isValid() and len(shape.Solids) == len(solids)}


def main(path: str) -> None:
    with open(path) as file:  # noqa: PTH123  FreeCAD's Python may be an old one
        job = json.load(file)
    if os.path.exists(job["report"]):  # noqa: PTH110
        return
    try:
        report = build(job)
    except Exception as error:  # noqa: BLE001  a CAD kernel raises anything, and it must be told
        report = {"error": str(error) or type(error).__name__}
    with open(job["report"], "w") as file:  # noqa: PTH123
        json.dump(report, file)


if "SKETCHDNN_JOB" in os.environ:
    main(os.environ["SKETCHDNN_JOB"])
