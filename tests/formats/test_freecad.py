"""FreeCAD documents: sketches come back with their constraints, and real ones are read as FreeCAD means them."""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_document import document, line, read
from support.strategies import assert_same, sketches

from sketchdnn.formats import sketchgraphs
from sketchdnn.formats.freecad import FORMAT
from sketchdnn.formats.freecad.selection import say
from sketchdnn.geometry import EXTERNAL, Circle, Constraint, ConstraintType, Kind, Line, Part, Point, Ref, Sketch
from sketchdnn.geometry.constraints import LENGTHS, PARTS_OF_KIND

T = ConstraintType
OUTSIDE = (EXTERNAL, Ref(None, Part.ORIGIN), Ref(None, Part.X_AXIS), Ref(None, Part.Y_AXIS))


def round_trip(path: Path, *written: Sketch) -> tuple[Sketch, ...]:
    FORMAT.write(written, path)
    reading = read(path)
    assert not reading.skipped
    assert len(reading) == len(written)
    return reading.sketches


@st.composite
def constrained(draw: st.DrawFn) -> Sketch:
    """A sketch with constraints of any type between any of its parts, most of which it does not keep."""
    sketch = draw(sketches(max_size=6, units="mm"))
    refs = [Ref(i, part) for i, p in enumerate(sketch) for part in sorted(PARTS_OF_KIND[p.kind])]
    ref = st.sampled_from([*refs, *refs, *OUTSIDE])
    constraints = []
    for _ in range(draw(st.integers(0, 8))):
        type_ = draw(st.sampled_from(T))
        value = draw(st.floats(-50, 50)) if type_ in LENGTHS or type_ is T.ANGLE else None
        extra = draw(st.dictionaries(st.sampled_from(["label", "note", "offset"]), st.text(max_size=5), max_size=2))
        name = "Projected" if type_ is T.OTHER else draw(st.none() | st.text(min_size=1, max_size=5))
        constraints.append(Constraint(type_, tuple(draw(st.lists(ref, min_size=1, max_size=4))), value, name, extra))
    return replace(sketch, constraints=tuple(constraints))


@given(written=st.lists(constrained(), min_size=1, max_size=3))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, written: list[Sketch]) -> None:
    """Geometry, construction, and every constraint just as it was, whatever FreeCAD can make of it."""
    path = tmp_path_factory.mktemp("freecad") / "a.FCStd"
    for sketch, back in zip(written, round_trip(path, *written), strict=True):
        assert_same(sketch, back)
        assert back.constraints == sketch.constraints
        assert back.units == "mm"


def test_real_sketches_come_back_with_their_constraints(real_data: Path, tmp_path: Path) -> None:
    found = sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy")
    real = [s.in_units("mm") for s in islice(found, 0, 1600, 8) if isinstance(s, Sketch)]
    assert sum(len(s.constraints) for s in real) > 1000
    for sketch, back in zip(real, round_trip(tmp_path / "a.FCStd", *real), strict=True):
        assert_same(sketch, back)
        assert back.constraints == sketch.constraints
        assert {**sketch.extra, "name": sketch.extra["id"]} == back.extra


def test_sizes_are_millimeters(tmp_path: Path) -> None:
    inches = Sketch(
        (Line((0, 0), (1, 0)),), (Constraint(T.LENGTH, (Ref(0),), 1.0), Constraint(T.ANGLE, (Ref(0),), 0.0)), "in"
    )
    (back,) = round_trip(tmp_path / "a.FCStd", inches)
    assert back.primitives == (Line((0, 0), (25.4, 0)),)
    assert [c.value for c in back.constraints] == [25.4, 0]


def test_a_label_may_be_anything(tmp_path: Path) -> None:
    names = ["<\"&'>", "Grundriß\n2", "nul \0 and \ud800", "", 7]
    written = [Sketch((Point((0, 0)),), extra={"name": name}) for name in names]
    FORMAT.write(written, tmp_path / "a.FCStd")
    assert [s.extra["name"] for s in read(tmp_path / "a.FCStd")] == [*names[:2], "nul ? and ?", "Sketch003", "7"]


def test_every_sketch_of_a_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    written = [Sketch((Circle((0, 0), r),), extra={"name": f"hole {r}"}) for r in (1, 2, 3)]
    assert [s.primitives for s in round_trip(path, *written)] == [s.primitives for s in written]
    assert [s.extra["name"] for s in read(path)] == ["hole 1", "hole 2", "hole 3"]


def test_objects_that_are_no_sketch_are_passed_over(tmp_path: Path) -> None:
    path = document(tmp_path / "a.FCStd", line(0, 0, 1, 0), types="PartDesign::Pad")
    assert not len(read(path))
    assert read(path).skipped == Counter({"a document without a sketch": 1})
    assert not len(read(document(path)))
    assert read(path).skipped == Counter({"a sketch without a line, circle, arc or point": 1})


def without_notes(path: Path) -> Path:
    """The document as it would be had FreeCAD, or anyone, written it."""
    with zipfile.ZipFile(path) as archive:
        root = ET.fromstring(archive.read("Document.xml"))
    for properties in root.iter("Properties"):
        for note in properties.findall("Property[@name='SketchDNN']"):
            properties.remove(note)
    bare = path.with_name(f"bare-{path.name}")
    with zipfile.ZipFile(bare, "w") as archive:
        archive.writestr("Document.xml", ET.tostring(root))
    return bare


def test_freecads_own_constraints_need_no_notes(real_data: Path, tmp_path: Path) -> None:
    """Real documents, read, written and read without our notes: what FreeCAD itself can say is all there."""
    kept = 0
    for path in sorted((real_data / "freecad").glob("*.FCStd")):
        real = read(path)
        FORMAT.write(real, tmp_path / path.name)
        for sketch, bare in zip(real, read(without_notes(tmp_path / path.name)), strict=True):
            assert_same(sketch, bare, 1e-9)
            sayable = [s.constraint for s in say(sketch) if not s.note]
            there = [c for c in bare.constraints if c.extra.get("active") is not False]
            assert list(map(_gist, there)) == list(map(_gist, sayable))
            kept += len(sayable)
    assert kept > 1500


def _gist(constraint: Constraint) -> tuple[object, ...]:
    """But for where tangent curves meet, which we add where there is such a place."""
    refs = constraint.refs[:2] if constraint.type in (T.TANGENT, T.COLLINEAR) else constraint.refs
    is_tangent = constraint.type in (T.TANGENT, T.COLLINEAR)
    return "tangent" if is_tangent else constraint.type, refs, constraint.value, constraint.extra


def test_all_real_documents_are_read(real_data: Path) -> None:
    files = sorted((real_data / "freecad").glob("*.FCStd"))
    assert len(files) == 36
    readings = [read(path) for path in files]
    assert sum(len(reading) for reading in readings) == 108
    kinds = Counter(p.kind for reading in readings for sketch in reading for p in sketch)
    assert kinds == {Kind.LINE: 526, Kind.CIRCLE: 114, Kind.ARC: 66, Kind.POINT: 29}
    skipped = sum((reading.skipped for reading in readings), Counter())
    assert skipped == {"GeomArcOfEllipse cannot be a primitive": 4, "a constraint on geometry that was left out": 31}
    assert sum(sketch.extra.get("dropped_entities", 0) for reading in readings for sketch in reading) == 4
    constraints = sum(len(sketch.constraints) for reading in readings for sketch in reading)
    assert constraints + 31 == 1714  # as many as there are in the files
