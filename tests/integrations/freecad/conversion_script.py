"""Runs inside FreeCAD's command-line program: what the add-on makes of sketches, as data. Its job is a JSON file."""

import json
import os
import sys
import traceback
from itertools import pairwise
from pathlib import Path


def main() -> None:
    job = json.loads(Path(os.environ["SKETCHDNN_JOB"]).read_text())
    findings = Path(job["findings"])
    if findings.exists():  # FreeCAD runs a script twice
        return
    sys.path.insert(0, job["addon"])
    try:
        found = {
            "forms": [fill_and_read(record) for record in job["records"]],
            "documents": {path: documents(path) for path in job["documents"]},
            "respect": respect(),
            "repair": repair(job["gap"]),
            "refused": refused(),
            "match": match(),
            "metadata": metadata(job["addon"]),
            "lengths": lengths(),
            "commands": commands(),
            "numbers": numbers(),
        }
    except BaseException:
        traceback.print_exc()
        raise
    findings.with_suffix(".part").write_text(json.dumps(found))
    findings.with_suffix(".part").rename(findings)


def fill_and_read(record):
    """A record put into an empty sketch, and read back."""
    import FreeCAD
    from sketchdnn_addon import edit, sketch_json

    document = FreeCAD.newDocument()
    sketch = document.addObject("Sketcher::SketchObject", "Sketch")
    edited = edit.fill(sketch, record)
    solved = sketch.solve()
    again = sketch_json.read_sketch(sketch)
    moved = max(map(edit._distance, record["primitives"], again.record["primitives"]), default=0.0)
    again_sketch = document.addObject("Sketcher::SketchObject", "Again")
    twice = edit.fill(again_sketch, again.record)
    FreeCAD.closeDocument(document.Name)
    return {
        "solve": solved,
        "refused": dict(edited.refused),
        "moved": moved,
        "record": again.record,
        "constraints": edited.constraints,
        "again": twice.constraints,
    }


def documents(path):
    """Each sketch of a real document that solves, copied through JSON."""
    import FreeCAD
    from sketchdnn_addon import sketch_json

    document = FreeCAD.openDocument(path)
    found = []
    for sketch in [o for o in document.Objects if o.TypeId == "Sketcher::SketchObject"]:
        if sketch.solve() == 0:
            data = sketch_json.read_sketch(sketch)
            found.append(fill_and_read(data.record) | {"unseen": dict(data.unseen), "sent": data.record})
    FreeCAD.closeDocument(document.Name)
    return found


def respect():
    """A sketch with external geometry, an ellipse, names and an expression is completed; undo takes it back."""
    import FreeCAD
    import Part
    import Sketcher
    from sketchdnn_addon import edit, sketch_json

    V, C = FreeCAD.Vector, Sketcher.Constraint
    document = FreeCAD.newDocument()
    document.UndoMode = 1
    box = document.addObject("Part::Box", "Box")
    sheet = document.addObject("App::FeaturePython", "Sizes")
    sheet.addProperty("App::PropertyLength", "Width")
    sheet.Width = 40
    sketch = document.addObject("Sketcher::SketchObject", "Sketch")
    document.recompute()
    sketch.Support, sketch.MapMode = [(box, "Face6")], "FlatFace"
    document.recompute()
    sketch.addExternal("Box", "Edge10")
    bottom = sketch.addGeometry(Part.LineSegment(V(0, 0, 0), V(40, 0, 0)), False)
    side = sketch.addGeometry(Part.LineSegment(V(40, 0, 0), V(40, 30, 0)), False)
    ellipse = sketch.addGeometry(Part.Ellipse(V(20, 15, 0), 6, 3), False)
    sketch.exposeInternalGeometry(ellipse)
    for constraint in (
        C("Coincident", bottom, 2, side, 1),
        C("Horizontal", bottom),
        C("Vertical", side),
        C("Distance", bottom, 40),
        C("PointOnObject", bottom, 1, -3),
        C("Coincident", bottom, 1, -1, 1),
    ):
        sketch.addConstraint(constraint)
        if sketch.solve() != 0:  # the external edge passes through the origin, or does not: only one of the two is kept
            sketch.delConstraint(sketch.ConstraintCount - 1)
    named = [c.Type for c in sketch.Constraints].index("Distance")
    sketch.renameConstraint(named, "width")
    sketch.setExpression("Constraints.width", "Sizes.Width")
    document.recompute()
    before = state(sketch)
    data = sketch_json.read_sketch(sketch)
    given = len(data.record["primitives"])
    result = json.loads(json.dumps(data.record))
    result["primitives"] += [
        {"type": "line", "construction": False, "start": [40, 30], "end": [0, 30]},
        {"type": "line", "construction": False, "start": [0, 30], "end": [0, 0]},
        {"type": "circle", "construction": True, "center": [10, 8], "radius": 3},
    ]
    result["constraints"] += [
        {"type": "coincident", "refs": [[1, "end"], [given, "start"]]},
        {"type": "coincident", "refs": [[given, "end"], [given + 1, "start"]]},
        {"type": "coincident", "refs": [[given + 1, "end"], [0, "start"]]},
        {"type": "horizontal", "refs": [[given, "whole"]]},
        {"type": "horizontal", "refs": [[given, "whole"]]},
        {"type": "diameter", "refs": [[given + 2, "whole"]], "value": 6.0, "label": "width"},
        {"type": "parallel", "refs": [[0, "whole"], [1, "whole"]]},
    ]
    with edit.transaction(document, "Complete sketch"):
        edited = edit.complete(sketch, data, result, given)
    after, solved = state(sketch), sketch.solve()
    sheet.Width = 50
    document.recompute()
    wide = sketch.getDatum("width").Value
    sheet.Width = 40
    document.recompute()
    document.undo()  # the two changes of the width are no transactions of their own
    document.recompute()
    undone = state(sketch)
    return {
        "unseen": dict(data.unseen),
        "sent": data.record,
        "before": before,
        "after": after,
        "undone": undone,
        "solve": solved,
        "wide": wide,
        "added": [edited.geometry, edited.constraints, dict(edited.refused)],
        "summary": edited.summary,
        "steps": document.UndoCount,
    }


def state(sketch):
    """All that must survive a change."""
    shapes = [
        shape.toShape().exportBrepToString() if hasattr(shape, "toShape") else repr(shape) for shape in sketch.Geometry
    ]
    return {
        "geometry": [repr(shape) for shape in sketch.Geometry],
        "shapes": len(shapes),
        "construction": [bool(sketch.getConstruction(i)) for i in range(sketch.GeometryCount)],
        "constraints": [[c.Type, c.Name, c.First, c.Second, c.Third, round(c.Value, 9)] for c in sketch.Constraints],
        "expressions": [list(pair) for pair in sketch.ExpressionEngine],
        "external": [[o.Name, list(names)] for o, names in sketch.ExternalGeometry],
        "map": [sketch.MapMode, str(sketch.Support[0][1]) if sketch.Support else "", str(sketch.Placement)],
    }


def repair(gap):
    """An open rectangle with a named dimension becomes a closed one: a line is added, and a speck removed."""
    import FreeCAD
    import Part
    import Sketcher
    from sketchdnn_addon import edit, sketch_json

    V = FreeCAD.Vector
    document = FreeCAD.newDocument()
    document.UndoMode = 1
    sketch = document.addObject("Sketcher::SketchObject", "Sketch")
    corners = [(0, 0), (60, 0), (60, 40), (gap, 40.0)]
    for (x, y), (z, w) in pairwise(corners):
        sketch.addGeometry(Part.LineSegment(V(x, y, 0), V(z, w, 0)), False)
    sketch.addGeometry(Part.LineSegment(V(20, 20, 0), V(20.05, 20, 0)), False)
    sketch.addGeometry(Part.Circle(V(30, 20, 0), V(0, 0, 1), 5), False)
    sketch.addConstraint(Sketcher.Constraint("Diameter", 4, 10.0))
    sketch.renameConstraint(0, "hole")
    document.recompute()
    before = state(sketch)
    data = sketch_json.read_sketch(sketch)
    result = json.loads(json.dumps(data.record))
    primitives = result["primitives"]
    primitives[2]["end"] = [0.0, 40.0]
    primitives[4]["construction"] = True
    del primitives[3]
    primitives.append({"type": "line", "construction": False, "start": [0.0, 40.0], "end": [0.0, 0.0]})
    result["constraints"] = [
        {"type": "diameter", "refs": [[3, "whole"]], "value": 10.0, "label": "hole"},
        *({"type": "coincident", "refs": [[i, "end"], [j, "start"]]} for i, j in ((0, 1), (1, 2), (2, 4), (4, 0))),
    ]
    with edit.transaction(document, "Close and repair"):
        edited = edit.repair(sketch, data, result)
    after, solved = state(sketch), sketch.solve()
    closed = Part.Wire(
        Part.__sortEdges__([e for e in sketch.Shape.Edges if "Line" in type(e.Curve).__name__])
    ).isClosed()
    document.undo()
    document.recompute()
    return {
        "before": before,
        "after": after,
        "undone": state(sketch),
        "solve": solved,
        "closed": closed,
        "edited": [edited.geometry, edited.removed, edited.constraints],
    }


def refused():
    """A sketch that does not solve is refused, and stays as it is."""
    import FreeCAD
    import Part
    import Sketcher
    from sketchdnn_addon import edit, sketch_json

    V = FreeCAD.Vector
    document = FreeCAD.newDocument()
    document.UndoMode = 1
    sketch = document.addObject("Sketcher::SketchObject", "Sketch")
    sketch.addGeometry(Part.LineSegment(V(0, 0, 0), V(10, 0, 0)), False)
    sketch.addConstraint([Sketcher.Constraint("Distance", 0, 10.0), Sketcher.Constraint("Distance", 0, 12.0)])
    before = state(sketch)
    data = sketch_json.read_sketch(sketch)
    try:
        with edit.transaction(document, "Complete sketch"):
            edit.complete(sketch, data, data.record, 1)
    except edit.EditError as error:
        return {"sentence": str(error), "same": state(sketch) == before, "steps": document.UndoNames}
    return {}


def match():
    """Which primitives of a repaired sketch are which of the sketch before."""
    from sketchdnn_addon import edit

    before = [
        {"type": "line", "start": [0, 0], "end": [10, 0]},
        {"type": "circle", "center": [5, 5], "radius": 1},
        {"type": "line", "start": [10, 0], "end": [10, 10]},
    ]
    after = [
        {"type": "line", "start": [10, 0.1], "end": [10, 10]},
        {"type": "line", "start": [0, 0], "end": [10, 0.1]},
        {"type": "circle", "center": [5, 5], "radius": 3},
    ]
    return edit.match(before, after)


def metadata(addon):
    """What FreeCAD reads in package.xml."""
    import FreeCAD

    found = FreeCAD.Metadata(str(Path(addon) / "package.xml"))
    workbench = found.Content["workbench"][0]
    return {"name": found.Name, "version": str(found.Version), "icon": found.Icon, "class": workbench.Classname}


def numbers():
    """Sentences with the numbers of FreeCAD's elements; the geometry 1 is not seen by the server."""
    from sketchdnn_addon.texts import with_element_numbers

    sentences = ("Joined ends of primitives 0, 1 and 2, which moved by 3 %.", "Dropped primitive 1: it is only 0.2 %.")
    return [with_element_numbers(sentence, [0, 2, 3]) for sentence in sentences]


def commands():
    """The command line of the server for several settings."""
    from sketchdnn_addon.settings import Settings

    texts = ("sketchdnn", "/opt/env/bin/python3.11", "nice -n 5 sketchdnn", sys.executable)
    return [Settings(command=text, port=9000).arguments for text in texts]


def lengths():
    """Texts read as lengths under each of three systems of units, and an inch as each shows it."""
    import FreeCAD

    sys.modules.setdefault("FreeCADGui", type(sys)("FreeCADGui"))
    from sketchdnn_addon import fields

    found = {}
    for schema in (0, 2, 3):
        FreeCAD.Units.setSchema(schema)
        texts = ("25.4 mm", "1 in", "2,5 mm", "1", "nonsense", "")
        found[schema] = [[fields.parse_length(text) for text in texts], fields.show_length(25.4)]
    FreeCAD.Units.setSchema(0)
    return found


main()
