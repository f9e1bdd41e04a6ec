"""FreeCAD documents: written sketches and real ones are read back; broken and hostile ones are refused."""

from __future__ import annotations

import math
import struct
import zipfile
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.freecad_document import constrain, document, document_xml, geometry, line, read, zipped
from support.freecad_forms import all_forms
from support.strategies import assert_refused, assert_same, numbers, sketches

from sketchdnn.errors import FormatError
from sketchdnn.formats import collect
from sketchdnn.formats.freecad import FORMAT
from sketchdnn.formats.freecad.file import MAX_BYTES
from sketchdnn.formats.freecad.notes import read_notes, write_notes
from sketchdnn.formats.freecad.selection import REDUNDANT, select_relations
from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Kind, Line, Part, Point, Ref, Sketch
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
def test_write_then_read_is_identity(tmp_path_factory: pytest.TempPathFactory, written: list[Sketch]) -> None:
    path = tmp_path_factory.mktemp("freecad") / "a.FCStd"
    for sketch, back in zip(written, round_trip(path, *written), strict=True):
        assert_same(sketch, back)
        assert (back.constraints, back.units) == (sketch.constraints, "mm")


def test_units_labels_and_other_objects(tmp_path: Path) -> None:
    inches = Sketch(
        (Line((0, 0), (1, 0)),), (Constraint(T.LENGTH, (Ref(0),), 1.0), Constraint(T.ANGLE, (Ref(0),), 0.0)), "in"
    )
    (back,) = round_trip(tmp_path / "a.FCStd", inches)
    assert (back.primitives, [c.value for c in back.constraints]) == ((Line((0, 0), (25.4, 0)),), [25.4, 0])
    names = ["<\"&'>", "Grundriß\n2", "nul \0 and \ud800", "", 7]
    written = [Sketch((Circle((0, 0), i + 1),), extra={"name": name}) for i, name in enumerate(names)]
    back = round_trip(tmp_path / "a.FCStd", *written)
    assert [s.primitives for s in back] == [s.primitives for s in written]
    assert [s.extra["name"] for s in back] == [*names[:2], "nul ? and ?", "Sketch003", "7"]
    path = document(tmp_path / "a.FCStd", line(0, 0, 1, 0), types="PartDesign::Pad")
    assert not len(read(path))
    assert read(path).skipped == Counter({"a document without a sketch": 1})
    assert not len(read(document(path)))
    assert read(path).skipped == Counter({"a sketch without a line, circle, arc or point": 1})


def without_notes(path: Path) -> Path:
    """The document as it would be had FreeCAD, or anyone, written it."""
    root = ET.fromstring(document_xml(path))
    for properties in root.iter("Properties"):
        for note in properties.findall("Property[@name='SketchDNN']"):
            properties.remove(note)
    return zipped(path.with_name(f"bare-{path.name}"), ET.tostring(root))


def test_constraints_survive_without_notes(real_data: Path, tmp_path: Path) -> None:
    kept = 0
    for path in sorted((real_data / "freecad").glob("*.FCStd")):
        real = read(path)
        FORMAT.write(real, tmp_path / path.name)
        for sketch, bare in zip(real, read(without_notes(tmp_path / path.name)), strict=True):
            assert_same(sketch, bare, 1e-9)
            written = [s.constraint for s in select_relations(sketch) if not s.note]
            there = [c for c in bare.constraints if c.extra.get("active") is not False]
            assert list(map(_gist, there)) == list(map(_gist, written))
            kept += len(written)
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


def test_construction_flags_of_old_and_new_files(tmp_path: Path) -> None:
    point = '<GeomPoint X="1" Y="2" Z="0"/>'
    shapes = [
        line(0, 0, 1, 0, flags="10"),
        line(0, 0, 1, 0, flags="01"),
        line(0, 0, 1, 0, flags=None, construction=True),
        line(0, 0, 1, 0, flags=None, construction=False),
        line(0, 0, 1, 0).replace('internalGeometryType="0"', 'internalGeometryType="2"'),
        geometry("Point", point, flags="0"),
        geometry("Point", point, construction=False),  # never part of a profile before there were flags
    ]
    (sketch,) = read(document(tmp_path / "a.FCStd", "".join(shapes)))
    assert [p.construction for p in sketch] == [True, False, True, False, True, False, True]
    assert (sketch.extra["name"], sketch.units) == ("Plate & co", "mm")


@pytest.mark.parametrize("turn", [0.0, 0.4, -3.0])
@pytest.mark.parametrize(("start", "end"), [(0.5, 2.0), (5.0, 7.5), (2.0, 1.0), (-1.0, 1.0)])
def test_arc_in_a_plane_that_faces_down(tmp_path: Path, turn: float, start: float, end: float) -> None:
    """Both arcs are the same set of places: a plane facing down is turned over about the y axis."""

    def arc(normal: int) -> str:
        plane = f'CenterX="1" CenterY="2" NormalX="0" NormalY="0" NormalZ="{normal}" AngleXU="{turn}"'
        return geometry("ArcOfCircle", f'<ArcOfCircle {plane} Radius="3" StartAngle="{start}" EndAngle="{end}"/>')

    (sketch,) = read(document(tmp_path / "a.FCStd", arc(1) + arc(-1)))
    up, down = sketch
    assert isinstance(up, Arc)
    assert isinstance(down, Arc)
    for fraction in (0, 0.3, 1):
        angle = turn + start + fraction * ((end - start) % math.tau)
        assert up.at(fraction) == pytest.approx((1 + 3 * math.cos(angle), 2 + 3 * math.sin(angle)))
        assert down.at(1 - fraction) == pytest.approx((1 - 3 * math.cos(angle), 2 + 3 * math.sin(angle)))


def test_unreadable_elements_are_counted(tmp_path: Path) -> None:
    shapes = [
        geometry("Ellipse", '<Ellipse CenterX="0"/>'),
        line(0, 0, 5, 0),
        line("nan", 0, 5, 0),  # type: ignore[arg-type]
        line(1, 1, 1, 1),
        geometry("Circle", '<Circle CenterX="0" CenterY="0" NormalX="1" NormalY="0" NormalZ="0" Radius="1"/>'),
        geometry("Circle", "<Square/>"),
        line(0, 0, 0, 5),
    ]
    rules = [
        constrain(12, (0, 0), (1, 0)),
        constrain(1, (1, 1), (6, 1)),
        constrain(1, (1, 3), (6, 1)),
        constrain(1, (1, 1), (99, 1)),
        constrain(99, (1, 0)),
        constrain(6, (1, 0), value="inf"),  # type: ignore[arg-type]
        constrain(2),
        constrain(20, (1, 0), (6, 0), ElementIds="1 6 1 6", ElementPositions="0 0 1 1"),
    ]
    reading = read(document(tmp_path / "a.FCStd", "".join(shapes), "".join(rules)))
    (sketch,) = reading
    assert [numbers(p) for p in sketch] == [[0, 0, 5, 0], [0, 0, 0, 5]]
    assert sketch.constraints == (Constraint(T.COINCIDENT, (Ref(0, Part.START), Ref(1, Part.START))),)
    assert reading.skipped == Counter({
        "GeomEllipse cannot be a primitive": 1, "GeomLineSegment with impossible numbers": 2,
        "GeomCircle with impossible numbers": 2, "a constraint on geometry that was left out": 2,
        "a constraint on a part that its geometry does not have": 1,
        "a constraint of a kind or with numbers that we do not know": 4,
    })  # fmt: skip


X, O = Ref(None, Part.X_AXIS), Ref(None, Part.ORIGIN)  # noqa: E741
L0, L1, C2, A3, P4 = (Ref(i) for i in range(5))
START, END, CENTER = Part.START, Part.END, Part.CENTER


@pytest.mark.parametrize(("xml", "meaning"), [
    (constrain(1, (0, 2), (1, 1)), Constraint(T.COINCIDENT, (Ref(0, END), Ref(1, START)))),
    (constrain(1, (4, 1), (-1, 1)), Constraint(T.COINCIDENT, (Ref(4, Part.POINT), O))),
    (constrain(1, (4, 1), (-3, 2)), Constraint(T.COINCIDENT, (Ref(4, Part.POINT), EXTERNAL))),
    (constrain(2, (0, 0)), Constraint(T.HORIZONTAL, (L0,))),
    (constrain(3, (0, 1), (2, 3)), Constraint(T.VERTICAL, (Ref(0, START), Ref(2, CENTER)))),
    (constrain(4, (0, 0), (-1, 0)), Constraint(T.PARALLEL, (L0, X))),
    (constrain(5, (0, 0), (2, 0)), Constraint(T.TANGENT, (L0, C2))),
    (constrain(5, (0, 0), (1, 0)), Constraint(T.COLLINEAR, (L0, L1))),
    (constrain(5, (0, 2), (3, 1), value=1.5),
        Constraint(T.TANGENT, (Ref(0, END), Ref(3, START)), extra={"offset": 1.5})),
    (constrain(6, (0, 0), value=4), Constraint(T.LENGTH, (L0,), 4)),
    (constrain(6, (0, 1), (1, 0), value=4), Constraint(T.DISTANCE, (Ref(0, START), L1), 4)),
    (constrain(7, (0, 0), value=-4), Constraint(T.HORIZONTAL_DISTANCE, (Ref(0, START), Ref(0, END)), -4)),
    (constrain(8, (0, 2), value=4), Constraint(T.VERTICAL_DISTANCE, (O, Ref(0, END)), 4)),
    (constrain(9, (0, 0), value=1), Constraint(T.ANGLE, (L0,), 1)),
    (constrain(9, (-1, 1), (0, 2), value=1), Constraint(T.ANGLE, (X, Ref(0, END)), 1)),
    (constrain(10, (0, 0), (1, 0)), Constraint(T.PERPENDICULAR, (L0, L1))),
    (constrain(11, (3, 0), value=2, IsDriving="0").replace('Name=""', 'Name="size"'),
        Constraint(T.RADIUS, (A3,), 2, extra={"label": "size", "driving": False})),
    (constrain(12, (2, 0), (3, 0), IsActive="0"), Constraint(T.EQUAL, (C2, A3), extra={"active": False})),
    (constrain(13, (3, 2), (0, 0)), Constraint(T.POINT_ON_CURVE, (Ref(3, END), L0))),
    (constrain(14, (0, 1), (0, 2), (4, 1)),
        Constraint(T.SYMMETRIC, (Ref(0, START), Ref(0, END), Ref(4, Part.POINT)))),
    (constrain(15, (4, 1), (2, 0)), Constraint(T.OTHER, (Ref(4, Part.POINT), C2), name="InternalAlignment")),
    (constrain(16, (0, 2), (1, 1), (2, 0), value=1.3),
        Constraint(T.OTHER, (Ref(0, END), Ref(1, START), C2), 1.3, name="SnellsLaw")),
    (constrain(17, (0, 0)), Constraint(T.FIX, (L0,))),
    (constrain(18, (2, 0), value=6), Constraint(T.DIAMETER, (C2,), 6)),
    (constrain(19, (2, 0), value=1), Constraint(T.OTHER, (C2,), 1, name="Weight")),
])  # fmt: skip
def test_each_relation_is_read_and_written(tmp_path: Path, xml: str, meaning: Constraint) -> None:
    plane = 'CenterX="1" CenterY="2" NormalX="0" NormalY="0" NormalZ="1"'
    shapes = [
        line(0, 0, 4, 1), line(4, 1, 5, 5), geometry("Circle", f'<Circle {plane} Radius="3"/>', flags="0"),
        geometry("ArcOfCircle", f'<ArcOfCircle {plane} Radius="2" StartAngle="0" EndAngle="1"/>', flags="0"),
        geometry("Point", '<GeomPoint X="1" Y="2" Z="0"/>', flags="0"),
    ]  # fmt: skip
    reading = read(document(tmp_path / "a.FCStd", "".join(shapes), xml))
    assert reading.sketches[0].constraints == (meaning,)
    FORMAT.write(reading, tmp_path / "b.FCStd")
    (back,) = read(tmp_path / "b.FCStd")
    assert back.constraints == (meaning,)


def edited(path: Path, old: str, new: str) -> Path:
    """The document after someone changed a thing in it."""
    xml = document_xml(path).decode()
    assert old in xml
    return zipped(path, xml.replace(old, new, 1))


MIDDLE = Constraint(T.MIDPOINT, (Ref(1, Part.POINT), Ref(0)))
LENGTH = Constraint(T.DISTANCE, (Ref(0, Part.START), Ref(0, Part.END)), 4.0, extra={"mine": 1})
FAR = Constraint(T.PARALLEL, (Ref(0), EXTERNAL))
NOTED = Sketch((Line((0, 0), (4, 0)), Point((2, 0))), (MIDDLE, LENGTH, FAR), "mm")


def test_notes_give_way_to_edits(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    FORMAT.write([NOTED], path)
    (as_it_was,) = read(path)
    assert as_it_was.constraints == NOTED.constraints
    (longer,) = read(edited(path, 'Value="4.0"', 'Value="5.0"'))
    assert longer.constraints == (MIDDLE, FAR, Constraint(T.DISTANCE, LENGTH.refs, 5.0))
    path = tmp_path / "a.FCStd"
    FORMAT.write([NOTED], path)
    (sketch,) = read(edited(path, "&quot;LP&quot;", "&quot;LC&quot;"))
    assert [c.type for c in sketch.constraints] == [T.SYMMETRIC, T.DISTANCE]


@pytest.mark.parametrize(
    "note", ["", "{", "7", "[]", "{}", '{"primitives": "LP"}', "[" * 10_000, '{"primitives": 1e999}']
)
def test_damaged_notes_are_ignored(tmp_path: Path, note: str) -> None:
    selected = select_relations(NOTED)
    relations = [relation for s in selected for relation in s.relations]
    head, *rest = write_notes(NOTED, selected)
    assert read_notes([head, *rest], NOTED.primitives, relations).relations == ()
    for notes in ([], [note], [note, *rest], [head, note], [head, rest[0].replace("[0,", '["x",')]):
        assert read_notes(notes, NOTED.primitives, relations).relations == tuple(relations)


def test_redundant_constraint_is_noted_in_the_file(tmp_path: Path) -> None:
    level = Constraint(T.HORIZONTAL, (Ref(0),))
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),), (level, level))], tmp_path / "a.FCStd")
    (twice,) = read(tmp_path / "a.FCStd")
    assert twice.constraints == (level, level)
    root = ET.fromstring(document_xml(tmp_path / "a.FCStd"))
    assert [c.get("IsActive") for c in root.iter("Constrain")] == ["1", "0"]
    notes = [s.get("value", "") for s in root.iterfind(".//Property[@name='SketchDNN']/StringList/String")]
    assert [REDUNDANT in note for note in notes] == [False, False, True]


@pytest.mark.parametrize("sketches", [[], [Sketch(())], [Sketch((Point((1, 1)),))], all_forms()])
def test_documents_are_reproducible_and_show_every_object(tmp_path: Path, sketches: list[Sketch]) -> None:
    for name in ("a.FCStd", "b.FCStd"):
        FORMAT.write(sketches, tmp_path / name)
    assert (tmp_path / "a.FCStd").read_bytes() == (tmp_path / "b.FCStd").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.FCStd") as archive:
        assert archive.namelist() == ["Document.xml", "GuiDocument.xml"]
        view = archive.read("GuiDocument.xml").decode()
    assert view.count("<ViewProvider name=") == view.count('<Bool value="true"/>') == len(sketches)
    assert view.count("<Camera ") == 1


SKETCH = Sketch(
    (Line((0, 0), (4, 0)), Arc((1, 2), 3, 0.5, 2), Circle((0, 1), 2, True), Point((3, 3))),
    (Constraint(ConstraintType.HORIZONTAL, (Ref(0),)), Constraint(ConstraintType.RADIUS, (Ref(2),), 2.0)),
    "mm",
)


refused = partial(assert_refused, FORMAT.read)


def test_other_files_and_hostile_xml_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    for content in (b"", b"PK\x03\x04", b"hello", b"\x89PNG" + bytes(999), b"PK\x05\x06" + bytes(9)):
        path.write_bytes(content)
        refused(path, "zip file")
    FORMAT.write([SKETCH], path)
    whole = path.read_bytes()
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        refused(path, "zip file")
    refused(zipped(path, "<Document/>", "word/document.xml"), r"without Document\.xml")
    refused(zipped(path, "<Document/>", method=zipfile.ZIP_LZMA), "packed")
    path = tmp_path / "a.FCStd"
    bad_encoding = b"<?xml version='1.0' encoding='x'?><a/>"
    for xml in ("", "<Document>", "no xml", "<a></b>", b"\xff\xfe\x00<\x00", bad_encoding):
        refused(zipped(path, xml), "not proper XML")
    for bomb in BOMBS:
        refused(zipped(path, bomb), "entities")
    refused(zipped(path, b"<a>" + b" " * (4 * 2**20) + b"</a>"), "zip bomb")
    refused(zipped(path, b"<a>" + bytes(MAX_BYTES), method=zipfile.ZIP_STORED), "MiB")


@pytest.mark.parametrize(("place", "value"), [(6, 99), (8, 0x20), (8, 0x40)])  # a later version, patches, a cipher
def test_unsupported_kinds_of_zip_are_refused(tmp_path: Path, place: int, value: int) -> None:
    """zipfile has NotImplementedError for these, which in a chain of causes would stand for a gap in our own code."""
    path = zipped(tmp_path / "a.FCStd", "<Document/>")
    content = bytearray(path.read_bytes())
    entry = content.find(b"PK\x01\x02")
    content[entry + place : entry + place + 2] = value.to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(FormatError, match="zip file") as refusal:
        collect(FORMAT.read(path))
    assert refusal.value.__cause__ is None


# A billion laughs, an external file, and a document type that is merely there.
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
BOMBS = (
    f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l9;</a>',
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd"><a/>',
)


@pytest.mark.parametrize("xml", ["<a/>", "<Document/>", "<Document><ObjectData><Object/></ObjectData></Document>"])
def test_document_without_objects_is_empty(tmp_path: Path, xml: str) -> None:
    reading = collect(FORMAT.read(zipped(tmp_path / "a.FCStd", xml)))
    assert not len(reading)
    assert reading.skipped == {"a document without a sketch": 1}


def test_false_headers_and_deep_nesting(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.FCStd", b"<a>" + b" " * (2 * MAX_BYTES))
    data = bytearray(path.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    refused(path, "zip|XML")
    path = zipped(tmp_path / "a.FCStd", "<Document/>")
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    refused(path, "encrypted")
    depth = 200_000
    path = zipped(tmp_path / "a.FCStd", b"<a>" * depth + b"</a>" * depth, method=zipfile.ZIP_STORED)
    assert not len(collect(FORMAT.read(path)))


def test_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.FCStd"
    for extra in ({"thing": object()}, {"number": float("nan")}):
        with pytest.raises(FormatError, match="cannot be written"):
            FORMAT.write([Sketch((Point((0, 0)),), extra=extra)], path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("sketchdnn.formats.freecad.file.MAX_BYTES", 2**17)
    FORMAT.write([SKETCH] * 10, tmp_path / "a.FCStd")
    assert len(collect(FORMAT.read(tmp_path / "a.FCStd"))) == 10
    with pytest.raises(FormatError, match="folder"):
        FORMAT.write(iter([SKETCH] * 1000), tmp_path / "b.FCStd")
    assert [path.name for path in tmp_path.iterdir()] == ["a.FCStd"]


def test_long_chain_is_written_without_rank_check(tmp_path: Path) -> None:
    n = 3000
    lines = tuple(Line((i, i % 2), (i + 1, (i + 1) % 2)) for i in range(n))
    chain = tuple(
        Constraint(ConstraintType.COINCIDENT, (Ref(i, Part.END), Ref(i + 1, Part.START))) for i in range(n - 1)
    )
    FORMAT.write([Sketch(lines, chain)], tmp_path / "a.FCStd")
    (back,) = collect(FORMAT.read(tmp_path / "a.FCStd"))
    assert back.constraints == chain


NUMBERS = st.sampled_from(
    ["nan", "inf", "-inf", "1e999", "1e308", "-0", "", "x", "99999999999999999999", "-2000", "-3", "3.5"]
)


@given(draw=st.data())
def test_impossible_attributes_skip_only_their_element(
    tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject
) -> None:
    from xml.etree import ElementTree as ET

    folder = tmp_path_factory.mktemp("freecad")
    FORMAT.write([SKETCH], folder / "a.FCStd")
    root = ET.fromstring(document_xml(folder / "a.FCStd"))
    tags = ("LineSegment", "ArcOfCircle", "Circle", "GeomPoint", "Constrain", "GeoExtension", "Geometry", "String")
    for element in root.iter():
        if element.tag in tags and draw.draw(st.booleans()):
            element.set(draw.draw(st.sampled_from(sorted(element.attrib))), draw.draw(NUMBERS))
    reading = collect(FORMAT.read(zipped(folder / "b.FCStd", ET.tostring(root))))
    assert len(reading) + sum(reading.skipped.values()) >= 1
