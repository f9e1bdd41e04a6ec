"""Runs inside FreeCAD's command-line program: each operation of the add-on on each sketch of a real document."""

import json
import os
import sys
import traceback
from pathlib import Path

import FreeCAD

JOB = json.loads(Path(os.environ["SKETCHDNN_JOB"]).read_text())


def report(**found):
    with Path(JOB["findings"]).open("a") as file:
        file.write(json.dumps(found) + "\n")


def sketches(path):
    """The sketches of a document that can be solved, with the number of curves that the server sees."""
    from sketchdnn_addon.sketch_json import read_sketch

    document = FreeCAD.openDocument(path)
    for sketch in [o for o in document.Objects if o.TypeId == "Sketcher::SketchObject"]:
        data = read_sketch(sketch)
        curves = [i for i, p in zip(data.geo_ids, data.record["primitives"], strict=True) if not p["construction"]]
        if sketch.solve() == 0 and 3 <= len(curves) <= 40:
            yield document, sketch, curves


def kept(before, sketch):
    """Whether constraints, expressions and external geometry are those of before, followed by others."""
    constraints, expressions, external = before
    now = [(c.Type, c.Name, c.First, c.Second, c.Third) for c in sketch.Constraints]
    return [
        now[: len(constraints)] == constraints,
        list(map(list, sketch.ExpressionEngine)) == expressions,
        [(o.Name, tuple(names)) for o, names in sketch.ExternalGeometry] == external,
    ]


def remembered(sketch):
    return (
        [(c.Type, c.Name, c.First, c.Second, c.Third) for c in sketch.Constraints],
        list(map(list, sketch.ExpressionEngine)),
        [(o.Name, tuple(names)) for o, names in sketch.ExternalGeometry],
    )


def moved(before, after):
    from sketchdnn_addon.edit import _shape_distance
    from sketchdnn_addon.sketch_json import KINDS

    pairs = [pair for pair in zip(before, after, strict=False) if pair[0].TypeId in KINDS]
    return max((_shape_distance(a, b) for a, b in pairs), default=0.0)


def complete(document, sketch, curves, client):
    """The last third of the curves is taken away and completed."""
    from sketchdnn_addon import edit
    from sketchdnn_addon.sketch_json import read_sketch

    sketch.delGeometries(curves[-max(1, len(curves) // 3) :])
    data, before, shapes = read_sketch(sketch), remembered(sketch), sketch.Geometry
    if sketch.solve() != 0:
        return None
    request = {"part": data.record, "count": 2, "seed": 0, "steps": JOB["steps"]}
    results = client.call("/complete", request)["results"]
    if not results:
        return {"results": 0}
    with edit.transaction(document, "Complete sketch"):
        edited = edit.complete(sketch, data, results[0]["sketch"], results[0]["num_given"])
    return {
        "results": len(results),
        "kept": kept(before, sketch),
        "moved": moved(shapes, sketch.Geometry),
        "solve": sketch.solve(),
        "added": edited.constraints,
        "refused": sum(edited.refused.values()),
    }


def constrain(document, sketch, curves, client):
    """All constraints are taken away, and the first full set of the alternatives is added."""
    from sketchdnn_addon import edit
    from sketchdnn_addon.sketch_json import read_sketch

    sketch.deleteAllConstraints()
    data = read_sketch(sketch)
    request = {"sketch": data.record, "options": {"repair": False, "origin": True}, "alternatives": True}
    results = client.call("/constrain", request)["alternatives"]
    full = [r for r in results if r["fully_constrained"]]
    if not full:
        return {"results": len(results), "full": 0}
    result = full[0]["sketch"]
    new = edit.added_constraints(data.record, result)
    with edit.transaction(document, "Auto-constrain"):
        edited = edit.constrain(sketch, data, result, new)
    return {
        "results": len(results),
        "full": len(full),
        "solve": sketch.solve(),
        "fully": bool(sketch.FullyConstrained),
        "unseen": dict(data.unseen),
        "added": edited.constraints,
        "refused": dict(edited.refused),
    }


def repair(document, sketch, curves, client):
    """The last curve is taken away, and the sketch closed."""
    from sketchdnn_addon import edit
    from sketchdnn_addon.sketch_json import read_sketch

    sketch.delGeometries(curves[-1:])
    if sketch.solve() != 0:
        return None
    data = read_sketch(sketch)
    result = client.call("/repair", {"sketch": data.record, "close": True})
    names = {c.Name for c in sketch.Constraints if c.Name}
    with edit.transaction(document, "Close and repair"):
        edited = edit.repair(sketch, data, result["sketch"])
    return {
        "ends": [len(result["open_ends_before"]), len(result["open_ends_after"])],
        "solve": sketch.solve(),
        "names": names <= {c.Name for c in sketch.Constraints},
        "edited": [edited.geometry, edited.removed, edited.constraints],
        "refused": sum(edited.refused.values()),
    }


def main():
    sys.path.insert(0, JOB["addon"])
    from sketchdnn_addon.client import Client, ServerError
    from sketchdnn_addon.edit import EditError

    for operation in (complete, constrain, repair):
        for document, sketch, curves in sketches(JOB["document"]):
            name = f"{Path(JOB['document']).stem}/{sketch.Name}"
            document.UndoMode = 1
            try:
                found = operation(document, sketch, curves, Client(JOB["port"]))
            except (ServerError, EditError) as error:
                found = {"error": str(error)}
            if found is not None:
                report(operation=operation.__name__, sketch=name, curves=len(curves), **found)
        for name in list(FreeCAD.listDocuments()):
            FreeCAD.closeDocument(name)


if not Path(JOB["findings"]).exists():
    report(operation="begin")
    try:
        main()
    except Exception:  # noqa: BLE001  reported to the test
        report(operation="failed", trace=traceback.format_exc())
    report(operation="end")
sys.stdout.flush()
os._exit(0)
