"""A script that FreeCAD, or a Python with build123d, runs to build the solid of a job file. It imports no own package.

FreeCAD runs a script twice and hides its errors, so the script writes a report.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def build_with_freecad(job: dict[str, Any]) -> dict[str, Any]:
    """Build the solid, write it, and measure it."""
    freecad, part = import_module("FreeCAD"), import_module("Part")

    def vector(at: list[float]) -> Any:
        return freecad.Vector(at[0], at[1], 0)

    def wire(outline: dict[str, Any]) -> Any:
        if "edges" not in outline:
            return part.Wire([part.makeCircle(outline["radius"], vector(outline["center"]))])
        edges, shapes = outline["edges"], []
        for (start, middle), (end, _) in zip(edges, edges[1:] + edges[:1]):  # noqa: B905
            if middle is None:
                shapes.append(part.LineSegment(vector(start), vector(end)).toShape())
            else:
                shapes.append(part.Arc(vector(start), vector(middle), vector(end)).toShape())
        return part.Wire(shapes)

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


def build_with_build123d(job: dict[str, Any]) -> dict[str, Any]:
    """Build the solid, write it, and measure it."""
    b = import_module("build123d")

    def face(outline: dict[str, Any]) -> Any:
        if "edges" not in outline:
            return b.Pos(*outline["center"]) * b.Circle(outline["radius"])
        edges = [(tuple(start), middle and tuple(middle)) for start, middle in outline["edges"]]  # it takes no lists
        return b.make_face(
            b.Line(start, end) if middle is None else b.ThreePointArc(start, middle, end)
            for (start, middle), (end, _) in zip(edges, edges[1:] + edges[:1])  # noqa: B905
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


def main(path: str) -> None:
    with open(path) as file:  # noqa: PTH123  FreeCAD's Python may be an old one
        job = json.load(file)
    if os.path.exists(job["report"]):  # noqa: PTH110
        return
    try:
        report = build_with_freecad(job) if "FreeCAD" in sys.modules else build_with_build123d(job)
    except Exception as error:  # noqa: BLE001  a CAD kernel raises anything
        report = {"error": str(error) or type(error).__name__}
    with open(job["report"], "w") as file:  # noqa: PTH123
        json.dump(report, file)


if "SKETCHDNN_JOB" in os.environ:
    main(os.environ["SKETCHDNN_JOB"])
