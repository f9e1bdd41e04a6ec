"""FreeCAD opens, solves and shows what we write, and reads real documents as we do."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.freecad_document import document_xml
from support.freecad_forms import all_forms
from support.freecad_judge import ask_freecad
from support.freecad_window import look
from support.outlines import rectangle, slot
from support.strategies import assert_same, numbers

from benchmarks.freecad import run_in_freecad
from sketchdnn.constraints import infer
from sketchdnn.formats import collect, dxf, freecad, sketchgraphs
from sketchdnn.formats.freecad.selection import HOLDS, select_relations
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Kind, Line, Point, Ref, Sketch, bounds

KINDS = {"LineSegment": Kind.LINE, "Circle": Kind.CIRCLE, "ArcOfCircle": Kind.ARC, "Point": Kind.POINT}
FORMS = all_forms()
REAL_SKETCHES = 40
Findings = dict[str, Any]


@cache
def real_sketches(folder: Path) -> list[Sketch]:
    """SketchGraphs sketches of all sorts, with 8 to 16 primitives and as many constraints or more."""
    found = sketchgraphs.FORMAT.read(folder / "sketchgraphs/sg_subset.npy")
    of_a_size = (s for s in found if isinstance(s, Sketch) and 8 <= len(s) <= min(16, len(s.constraints)))
    # A few hold lines of 1e-15 m, which are nothing to FreeCAD.
    sound = (s for s in of_a_size if all(p.kind is Kind.POINT or p.length > 1e-6 * bounds(s).size for p in s))
    return [s.in_units("mm") for s in islice(sound, 0, 8 * REAL_SKETCHES, 8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("freecad")


@pytest.fixture(scope="module")
def findings(freecadcmd: str, folder: Path) -> Findings:
    """What FreeCAD says about files that we wrote: of every form, and of real sketches where there are any."""
    freecad.FORMAT.write(FORMS, folder / "forms.FCStd")
    documents, drawings = [folder / "forms.FCStd"], []
    data = Path(os.environ.get("SKETCHDNN_DATA") or "nowhere")
    if data.is_dir():
        real = real_sketches(data)
        freecad.FORMAT.write(real, folder / "real.FCStd")
        documents.append(folder / "real.FCStd")
        drawings = [folder / f"{number}.dxf" for number in range(len(real))]
        for sketch, drawing in zip(real, drawings, strict=True):
            dxf.FORMAT.write([sketch], drawing)
    return ask_freecad(freecadcmd, folder, documents, drawings, solve=True)


def reread(path: Path) -> tuple[Sketch, ...]:
    """What FreeCAD saved."""
    reading = collect(freecad.FORMAT.read(path))
    assert not reading.skipped
    return reading.sketches


def assert_found(sketch: Sketch, found: Findings) -> None:
    """FreeCAD has the same geometry, construction and constraints as we meant; it solves a sketch when it opens it."""
    assert [KINDS[kind] for kind in found["kinds"]] == [p.kind for p in sketch]
    assert found["construction"] == [p.construction for p in sketch]
    size = bounds(sketch).size
    for p, there in zip(sketch, found["numbers"], strict=True):
        assert there == pytest.approx(numbers(p), abs=2 * HOLDS * size)
    names = (r.type.name.title().replace("_", "") for s in select_relations(sketch) for r in s.relations)
    assert found["constraints"] == Counter(names)


def test_every_form_is_solved_and_held(findings: Findings, folder: Path) -> None:
    for sketch, found in zip(FORMS, findings["documents"][str(folder / "forms.FCStd")], strict=True):
        assert [s.note for s in select_relations(sketch)] == [""] * len(sketch.constraints), sketch.extra
        assert_found(sketch, found)
        assert found["solve"] == 0, sketch.extra
        assert found["solved"] == [pytest.approx(numbers(p), abs=1e-9) for p in sketch], sketch.extra
    moved = 0
    for sketch, now in zip(FORMS, reread(folder / "forms-moved.FCStd"), strict=True):
        assert now.constraints == sketch.constraints
        assert [s.note for s in select_relations(now)] == [""] * len(sketch.constraints), (sketch.extra, now.primitives)
        moved += numbers(sketch.primitives[0]) != pytest.approx(numbers(now.primitives[0]), abs=1e-3)
    assert moved >= 0.8 * len(FORMS)  # some have nowhere to go


def test_real_sketches_are_solved_saved_and_drawn(findings: Findings, folder: Path, real_data: Path) -> None:
    real = real_sketches(real_data)
    assert (len(real), {p.kind for sketch in real for p in sketch}) == (REAL_SKETCHES, set(Kind))
    for sketch, found in zip(real, findings["documents"][str(folder / "real.FCStd")], strict=True):
        assert_found(sketch, found)
        assert found["solve"] == 0, sketch.extra
        assert found["edges"] == sum(not p.construction and p.kind is not Kind.POINT for p in sketch)
        assert len(found["notes"]) == 1 + len(sketch.constraints)
    for sketch, saved in zip(real_sketches(real_data), reread(folder / "real-solved.FCStd"), strict=True):
        assert_same(sketch, saved, 2 * HOLDS)
        assert saved.constraints == sketch.constraints
    for number, sketch in enumerate(real_sketches(real_data)):
        found = findings["drawings"][str(folder / f"{number}.dxf")]
        size = bounds(sketch).size
        curves = [p for p in sketch if not isinstance(p, Point)]
        assert len(found["edges"]) == len(curves)
        for p, (kind, *measures) in zip(curves, found["edges"], strict=True):
            assert kind == ("Line" if p.kind is Kind.LINE else "Circle")
            box = bounds([p])  # tight: it tells an arc from the rest of its circle
            assert measures == pytest.approx([p.length, *box.low, *box.high], abs=1e-6 * size)
        assert found["points"] == [pytest.approx(p.at, abs=1e-6 * size) for p in sketch if isinstance(p, Point)]


def test_real_documents_are_read_as_by_freecad(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    files = [path for path in sorted((real_data / "freecad").glob("*.FCStd")) if _version(path) <= (0, 20)]
    assert len(files) >= 15
    documents = ask_freecad(freecadcmd, tmp_path, files, [], solve=False)["documents"]
    compared = 0
    for path in files:
        reading = collect(freecad.FORMAT.read(path))
        for sketch, found in zip(reading, (f for f in documents[str(path)] if f["kinds"]), strict=True):
            assert sketch.extra["name"] == found["label"]
            known = [i for i, kind in enumerate(found["kinds"]) if kind in KINDS]
            assert [KINDS[found["kinds"][i]] for i in known] == [p.kind for p in sketch]
            assert [found["construction"][i] for i in known] == [p.construction for p in sketch]
            for i, p in zip(known, sketch, strict=True):
                assert found["numbers"][i] == pytest.approx(numbers(p), abs=1e-9 * bounds(sketch).size)
            if len(known) == len(found["kinds"]):
                assert found["constraints"] == Counter(map(_freecad_name, sketch.constraints))
            compared += 1
    assert compared >= 40


def _version(path: Path) -> tuple[int, ...]:
    found = re.search(r'ProgramVersion="(\d+)\.(\d+)', document_xml(path)[:1000].decode())
    assert found is not None
    return tuple(map(int, found.groups()))


def _freecad_name(constraint: Constraint) -> str:
    """What FreeCAD calls a constraint that came from it."""
    other_names = {
        ConstraintType.COLLINEAR: "Tangent", ConstraintType.LENGTH: "Distance",
        ConstraintType.HORIZONTAL_DISTANCE: "DistanceX", ConstraintType.VERTICAL_DISTANCE: "DistanceY",
        ConstraintType.POINT_ON_CURVE: "PointOnObject", ConstraintType.FIX: "Block",
        ConstraintType.OTHER: constraint.name or "",
    }  # fmt: skip
    return other_names.get(constraint.type, constraint.type.value.title())


@pytest.mark.slow
def test_all_sketchgraphs_sketches_are_solved(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    found = sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy")
    sketches = [s for s in found if isinstance(s, Sketch)]
    documents = [tmp_path / f"{start}.FCStd" for start in range(0, len(sketches), 500)]
    for number, path in enumerate(documents):
        freecad.FORMAT.write(sketches[500 * number : 500 * (number + 1)], path)
    findings = ask_freecad(freecadcmd, tmp_path, documents, [], solve=True)["documents"]
    solved = Counter(found["solve"] for path in documents for found in findings[str(path)])
    assert solved == {0: len(sketches)}


PLATE = Sketch(
    (
        *rectangle(5, 5, 60, 40), *slot(10.0, 2.0), Circle((20.0, 20.0), 3.0),
        Line((0.0, 25.0), (80.0, 25.0), construction=True), Line((70.0, 3.0), (81.0, 14.0)), Point((7.0, 9.0)),
    ),
    units="mm",
)  # fmt: skip
_SCRIPT = """
def evaluate(document, task):
    solve = [s.solve() for s in document.Objects]
    return {"solve": solve, "full": [bool(s.FullyConstrained) for s in document.Objects]}
"""


def test_dimensions_fully_constrain_a_sketch(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    related = replace(PLATE, constraints=infer(PLATE))
    angle = Constraint(ConstraintType.ANGLE, (Ref(10),), math.pi / 4)
    held = replace(related, constraints=(*related.constraints, angle))
    paths = [tmp_path / f"{name}.FCStd" for name in ("plain", "full", "real")]
    for path, dimensions in zip(paths, (False, True), strict=False):
        freecad.FORMAT.write([PLATE, related, held], path, dimensions=dimensions)
    freecad.FORMAT.write(real_sketches(real_data), paths[2], dimensions=True)
    plain, full, real = run_in_freecad(freecadcmd, _SCRIPT, [{"document": str(path)} for path in paths])
    assert (plain, full) == ({"solve": [0] * 3, "full": [False] * 3}, {"solve": [0] * 3, "full": [True] * 3})
    assert real is not None
    assert real["solve"] == [0] * REAL_SKETCHES
    assert sum(real["full"]) >= 0.97 * REAL_SKETCHES


SIDES = Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 0))
FAR_AWAY = Sketch(tuple(Line((x, y), (x + 1, y + 1)) for x, y in ((9000, 9000), (9001, 9000))), units="m")
SHOWN = {
    "plain": [Sketch((*SIDES, Circle((28, 10), 5), Arc((0, 0), 20, 0.1, 1.2)), units="mm")],
    "small": [Sketch((Circle((0, 0), 1e-3),), units="mm")], "far": [FAR_AWAY], "many": list(all_forms()),
    "with_an_empty_one": [Sketch(SIDES), Sketch(())],
}  # fmt: skip


@pytest.mark.usefixtures("freecad_window")
def test_documents_are_visible_and_fitted(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.FCStd" for name in SHOWN]
    for path, sketches in zip(paths, SHOWN.values(), strict=True):
        freecad.FORMAT.write(sketches, path)
    (tmp_path / "views").mkdir()
    for path, found in zip(paths, look(paths, tmp_path / "views"), strict=True):
        assert found["visible"] == [True] * len(SHOWN[path.stem]), path.stem
        assert 0.002 < found["lit"] < 0.5, path.stem  # a drawing, neither nothing nor a speck
