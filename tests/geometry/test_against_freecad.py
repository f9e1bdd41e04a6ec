"""A CAD kernel builds faces from the same curves: the same area, as many outlines, as many holes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.outlines import d_shape, rectangle, slot
from support.real_sketches import spread

from sketchdnn.geometry import Circle, Line, Point, Primitive, profile

# Run by FreeCAD's Python. Prints one line to look for, since the program exits with 0 whatever happens.
SCRIPT = """
import json
import Part
from FreeCAD import Vector

def place(p):
    return Vector(1000 * p[0], 1000 * p[1], 0)

def edge(row):
    if row[0] == "line":
        return Part.LineSegment(place(row[1]), place(row[2])).toShape()
    if row[0] == "circle":
        return Part.Circle(place(row[1]), Vector(0, 0, 1), 1000 * row[2]).toShape()
    return Part.Arc(place(row[1]), place(row[2]), place(row[3])).toShape()

answers = []
for rows in json.load(open({drawings!r})):
    wires = [Part.Wire(edges) for edges in Part.sortEdges([edge(row) for row in rows])]
    face = Part.makeFace(wires, "Part::FaceMakerBullseye")
    holes = sum(len(each.Wires) - 1 for each in face.Faces)
    answers.append([face.Area / 1e6, len(face.Faces), holes, face.isValid()])
json.dump(answers, open({answers!r}, "w"))
print("VERDICT done")
"""


def row(p: Primitive) -> list[object]:
    match p:
        case Line(start, end):
            return ["line", start, end]
        case Circle(center, radius):
            return ["circle", center, radius]
        case Point():
            raise TypeError("a point is no edge")
        case arc:
            return ["arc", arc.start, arc.mid, arc.end]


def test_freecad_builds_the_same_faces(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    # A kernel joins ends that are equal to ten digits; only sketches that close so exactly can be compared.
    known: list[list[Primitive]] = [
        slot(4, 1),
        d_shape(1, 5),
        [*rectangle(-6, -3, 12, 6), *slot(2, 1), Circle((4, 0), 1)],
        [*rectangle(0, 0, 10, 10), *rectangle(1, 1, 8, 8), Circle((5, 5), 2)],
    ]
    real = [items for some in spread(real_data, every=199).values() for items in some]
    drawings = [items for items in (*known, *real) if profile(items, 1e-10).is_extrudable]
    assert len(drawings) > 150
    curves = [[row(p) for p in items if not isinstance(p, Point) and not p.construction] for items in drawings]
    (tmp_path / "drawings.json").write_text(json.dumps(curves))
    paths = {"drawings": str(tmp_path / "drawings.json"), "answers": str(tmp_path / "answers.json")}
    (tmp_path / "build.py").write_text(SCRIPT.format(**paths))
    done = subprocess.run(
        [freecadcmd, str(tmp_path / "build.py")], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
    )
    assert "VERDICT done" in done.stdout, done.stdout + done.stderr
    answers = json.loads((tmp_path / "answers.json").read_text())
    for items, (area, outlines, holes, is_valid) in zip(drawings, answers, strict=True):
        found = profile(items)
        assert is_valid
        assert found.area == pytest.approx(area, rel=1e-9)
        assert (len(found.outer), len(found.holes)) == (outlines, holes)
