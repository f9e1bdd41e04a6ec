"""FreeCAD itself opens what we write and solves it, and reads real documents as we do. It is started twice."""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sketchdnn.formats.freecad.relation import Code
from support.freecad_forms import all_forms
from support.freecad_judge import ask_freecad
from support.strategies import assert_same, numbers

from sketchdnn.formats import collect, dxf, freecad, sketchgraphs
from sketchdnn.formats.freecad.selection import HOLDS, say
from sketchdnn.geometry import Constraint, ConstraintType, Kind, Point, Sketch, bounds

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
    said = Counter(code_name(relation.code) for s in say(sketch) for relation in s.relations)
    assert found["constraints"] == said


def code_name(code: Code) -> str:
    return code.name.title().replace("_", "")


def test_every_form_is_opened_and_solved(findings: Findings, folder: Path) -> None:
    for sketch, found in zip(FORMS, findings["documents"][str(folder / "forms.FCStd")], strict=True):
        assert [s.note for s in say(sketch)] == [""] * len(sketch.constraints), sketch.extra
        assert_found(sketch, found)
        assert found["solve"] == 0, sketch.extra
        assert found["solved"] == [pytest.approx(numbers(p), abs=1e-9) for p in sketch], sketch.extra


def test_freecad_keeps_what_our_equations_say(findings: Findings, folder: Path) -> None:
    """After FreeCAD has pulled at a sketch it keeps the same constraint, by our own measure, elsewhere."""
    moved = 0
    for sketch, now in zip(FORMS, reread(folder / "forms-moved.FCStd"), strict=True):
        assert now.constraints == sketch.constraints
        assert [s.note for s in say(now)] == [""] * len(sketch.constraints), (sketch.extra, now.primitives)
        moved += numbers(sketch.primitives[0]) != pytest.approx(numbers(now.primitives[0]), abs=1e-3)
    assert moved >= 0.8 * len(FORMS)  # some have nowhere to go


def test_real_sketches_are_opened_and_solved(findings: Findings, folder: Path, real_data: Path) -> None:
    real = real_sketches(real_data)
    assert len(real) == REAL_SKETCHES
    assert {p.kind for sketch in real for p in sketch} == set(Kind)
    for sketch, found in zip(real, findings["documents"][str(folder / "real.FCStd")], strict=True):
        assert_found(sketch, found)
        assert found["solve"] == 0, sketch.extra
        assert found["edges"] == sum(not p.construction and p.kind is not Kind.POINT for p in sketch)
        assert len(found["notes"]) == 1 + len(sketch.constraints)


def test_what_freecad_saves_is_read_as_it_was(findings: Findings, folder: Path, real_data: Path) -> None:
    for sketch, saved in zip(real_sketches(real_data), reread(folder / "real-solved.FCStd"), strict=True):
        assert_same(sketch, saved, 2 * HOLDS)
        assert saved.constraints == sketch.constraints


def test_freecad_imports_our_drawings(findings: Findings, folder: Path, real_data: Path) -> None:
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


def test_real_documents_are_read_as_freecad_reads_them(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    """Geometry, places, construction, kinds of constraints: of every document that FreeCAD 0.20 is not too old for."""
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
    with zipfile.ZipFile(path) as archive:
        head = archive.read("Document.xml")[:1000].decode()
    found = re.search(r'ProgramVersion="(\d+)\.(\d+)', head)
    assert found is not None
    return tuple(map(int, found.groups()))


def _freecad_name(constraint: Constraint) -> str:
    """What FreeCAD calls a constraint that came from it."""
    other_names = {
        ConstraintType.COLLINEAR: "Tangent",
        ConstraintType.LENGTH: "Distance",
        ConstraintType.HORIZONTAL_DISTANCE: "DistanceX",
        ConstraintType.VERTICAL_DISTANCE: "DistanceY",
        ConstraintType.POINT_ON_CURVE: "PointOnObject",
        ConstraintType.FIX: "Block",
        ConstraintType.OTHER: constraint.name or "",
    }
    return other_names.get(constraint.type, constraint.type.value.title())


@pytest.mark.slow
def test_all_of_sketchgraphs_is_solved(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    found = sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy")
    sketches = [s for s in found if isinstance(s, Sketch)]
    documents = [tmp_path / f"{start}.FCStd" for start in range(0, len(sketches), 500)]
    for number, path in enumerate(documents):
        freecad.FORMAT.write(sketches[500 * number : 500 * (number + 1)], path)
    findings = ask_freecad(freecadcmd, tmp_path, documents, [], solve=True)["documents"]
    solved = Counter(found["solve"] for path in documents for found in findings[str(path)])
    assert solved == {0: len(sketches)}
