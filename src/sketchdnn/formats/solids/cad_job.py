"""A script that builds the solid of a job file. It runs in FreeCAD, or in a Python with build123d.

It must not import sketchdnn, which is not installed there. FreeCAD hides the errors of a script, so the script writes a
report. FreeCAD may also run the script twice; the second run stops at once, because the report exists.

The job is a JSON file, written by `extrusion.py`. Its path is in the environment variable SKETCHDNN_JOB. Lengths are in
millimeters. Keys:

- `file_type`: "step" or "stl".
- `out`: the path of the STEP or STL file.
- `report`: the path of the report.
- `height`: the height of the extrusion, along +z.
- `regions`: a list of {"outer": outline, "holes": [outline, ...]}.

An outline is a circle, {"center": [x, y], "radius": r}, or a closed chain of edges, {"edges": [[start, middle], ...]}.
Each edge ends at the start of the next one, the last edge at the start of the first. `start` is [x, y]. `middle` is
null for a line, or a point [x, y] halfway along an arc.

The report is a JSON file with the keys `volume` (mm³) and `valid`, or with the key `error` (the message).
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

# The largest distance between an STL mesh and the solid is the diagonal of the bounding box divided by this number.
MESH_RESOLUTION = 2000
# The largest angle between neighboring facets of a curve in an STL mesh, in radians.
MESH_ANGLE = 0.1


def build_with_freecad(job: dict[str, Any]) -> dict[str, Any]:
    """Build the solid with FreeCAD, write the file, and return the report."""
    freecad, part = import_module("FreeCAD"), import_module("Part")

    def vector(point: list[float]) -> Any:
        return freecad.Vector(point[0], point[1], 0)

    def wire(outline: dict[str, Any]) -> Any:
        if "edges" not in outline:
            return part.Wire([part.makeCircle(outline["radius"], vector(outline["center"]))])
        edges, shapes = outline["edges"], []
        for (start, middle), (end, _) in zip(edges, edges[1:] + edges[:1]):  # noqa: B905  FreeCAD's Python may be too old for `strict`
            points = [vector(point) for point in (start, middle, end) if point is not None]
            shapes.append((part.LineSegment if middle is None else part.Arc)(*points).toShape())
        return part.Wire(shapes)

    solids = []
    for region in job["regions"]:
        wires = [wire(outline) for outline in [region["outer"], *region["holes"]]]
        solids.append(part.makeFace(wires, "Part::FaceMakerBullseye").extrude(freecad.Vector(0, 0, job["height"])))
    shape = solids[0] if len(solids) == 1 else part.makeCompound(solids)
    if job["file_type"] == "step":
        shape.exportStep(job["out"])
    else:
        diagonal = shape.BoundBox.DiagonalLength
        limits = {"LinearDeflection": diagonal / MESH_RESOLUTION, "AngularDeflection": MESH_ANGLE}
        import_module("MeshPart").meshFromShape(Shape=shape, **limits).write(job["out"])
    # Valid: the CAD kernel finds no error, and there is one solid for each region.
    return {"volume": shape.Volume, "valid": shape.isValid() and len(shape.Solids) == len(solids)}


def build_with_build123d(job: dict[str, Any]) -> dict[str, Any]:
    """Build the solid with build123d, write the file, and return the report."""
    bd = import_module("build123d")

    def face(outline: dict[str, Any]) -> Any:
        if "edges" not in outline:
            return bd.Pos(*outline["center"]) * bd.Circle(outline["radius"])
        # build123d takes points as tuples; JSON contains lists.
        edges = [(tuple(start), middle and tuple(middle)) for start, middle in outline["edges"]]
        return bd.make_face(
            bd.Line(start, end) if middle is None else bd.ThreePointArc(start, middle, end)
            for (start, middle), (end, _) in zip(edges, edges[1:] + edges[:1])  # noqa: B905  as above
        )

    solids = []
    for region in job["regions"]:
        profile = face(region["outer"])
        for hole in region["holes"]:
            profile -= face(hole)
        solids += bd.extrude(profile, job["height"], dir=(0, 0, 1)).solids()
    shape = bd.Compound(solids)
    if job["file_type"] == "step":
        bd.export_step(shape, job["out"])
    else:
        diagonal = shape.bounding_box().diagonal
        bd.export_stl(shape, job["out"], tolerance=diagonal / MESH_RESOLUTION, angular_tolerance=MESH_ANGLE)
    # Valid: the CAD kernel finds no error, and there is one solid for each region.
    return {"volume": shape.volume, "valid": bool(shape.is_valid) and len(solids) == len(job["regions"])}


def main(job_path: str) -> None:
    """Build the solid of a job file and write the report. Do nothing if the report exists."""
    # `open` and `os.path` instead of pathlib: FreeCAD's Python may be an old one.
    with open(job_path) as file:  # noqa: PTH123
        job = json.load(file)
    if os.path.exists(job["report"]):  # noqa: PTH110
        return  # the second run in FreeCAD
    try:
        # FreeCAD has imported its own module before it runs a script.
        report = build_with_freecad(job) if "FreeCAD" in sys.modules else build_with_build123d(job)
    except Exception as error:  # noqa: BLE001  CAD kernels raise exceptions of many types
        report = {"error": str(error) or type(error).__name__}
    with open(job["report"], "w") as file:  # noqa: PTH123
        json.dump(report, file)


# Not `if __name__ == "__main__"`: FreeCAD imports the script as a module. The variable is set only for this script, so
# importing the module, for example in a test, builds nothing.
if "SKETCHDNN_JOB" in os.environ:
    main(os.environ["SKETCHDNN_JOB"])
