"""FreeCAD as a judge of files: what it finds in documents and drawings, as plain data.

It exits with 0 whatever happens and runs a script twice, so a script counts as run only if it has written its findings.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from support.freecad_window import run_freecad


def ask_freecad(
    program: str, folder: Path, documents: list[Path], drawings: list[Path], *, solve: bool
) -> dict[str, Any]:
    files = {"documents": [*map(str, documents)], "drawings": [*map(str, drawings)]}
    job: dict[str, Any] = {**files, "solve": solve, "findings": str(folder / "findings.json")}
    output = run_freecad(program, folder, SCRIPT, job)
    if not Path(job["findings"]).exists():
        pytest.fail(f"FreeCAD did not finish:\n{output}")
    return json.loads(Path(job["findings"]).read_text())


SCRIPT = """
import json, os
import FreeCAD, Import, Part, Sketcher
from collections import Counter

job = json.load(open(os.environ["SKETCHDNN_JOB"]))

def numbers(sketch, index):
    geometry = sketch.Geometry[index]
    kind = type(geometry).__name__
    ends = {"LineSegment": (1, 2), "ArcOfCircle": (1, 2), "Point": (1,), "Circle": (3,)}.get(kind, ())
    places = [sketch.getPoint(index, pos) for pos in ends]
    if kind == "ArcOfCircle":
        middle = geometry.value((geometry.FirstParameter + geometry.LastParameter) / 2)
        places = [geometry.Center, places[0], middle, places[1]]
    flat = [c for place in places for c in (place.x, place.y)]
    if kind in ("Circle", "ArcOfCircle"):
        flat.insert(2, geometry.Radius)
    return kind, flat

def describe(sketch):
    shapes = [numbers(sketch, i) for i in range(sketch.GeometryCount)]
    return {
        "label": sketch.Label,
        "kinds": [kind for kind, _ in shapes],
        "numbers": [flat for _, flat in shapes],
        "construction": [bool(sketch.getConstruction(i)) for i in range(sketch.GeometryCount)],
        "constraints": Counter(c.Type for c in sketch.Constraints),
        "notes": list(getattr(sketch, "SketchDNN", [])),
    }

def edges(shape):
    found = []
    for edge in shape.Edges:
        box = edge.BoundBox
        found.append([type(edge.Curve).__name__, edge.Length, box.XMin, box.YMin, box.XMax, box.YMax])
    return found

def look():
    findings = {"documents": {}, "drawings": {}}
    for path in job["documents"]:
        document = FreeCAD.openDocument(path)
        sketches = [o for o in document.Objects if o.TypeId == "Sketcher::SketchObject"]
        found = [describe(sketch) for sketch in sketches]
        if job["solve"]:
            for sketch, one in zip(sketches, found):
                one["solve"] = sketch.solve()
                one["solved"] = [numbers(sketch, i)[1] for i in range(sketch.GeometryCount)]
            document.saveCopy(path.replace(".FCStd", "-solved.FCStd"))
            document.recompute()
            for sketch, one in zip(sketches, found):
                one["edges"] = len(sketch.Shape.Edges)
            for sketch in sketches:
                at = 3 if "Circle" in type(sketch.Geometry[0]).__name__ else 1
                try:
                    sketch.movePoint(0, at, FreeCAD.Vector(0.37, 0.23, 0), 1)
                except ValueError:
                    pass  # it has nowhere to go
            document.saveCopy(path.replace(".FCStd", "-moved.FCStd"))
        findings["documents"][path] = found
        FreeCAD.closeDocument(document.Name)
    for path in job["drawings"]:
        document = FreeCAD.newDocument()
        Import.readDXF(path, document.Name)
        shapes = [o.Shape for o in document.Objects]
        findings["drawings"][path] = {
            "edges": [edge for shape in shapes for edge in edges(shape)],
            "points": [[s.Vertexes[0].X, s.Vertexes[0].Y] for s in shapes if not s.Edges],
        }
        FreeCAD.closeDocument(document.Name)
    with open(job["findings"] + "~", "w") as file:
        json.dump(findings, file)
    os.replace(job["findings"] + "~", job["findings"])

if not os.path.exists(job["findings"]):
    look()
"""
