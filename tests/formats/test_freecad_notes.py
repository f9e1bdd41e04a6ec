"""What we note beside a sketch, and when it still counts."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.freecad_document import read

from sketchdnn.formats.freecad import FORMAT
from sketchdnn.formats.freecad.notes import recall, to_notes
from sketchdnn.formats.freecad.selection import REDUNDANT, say
from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType


def edited(path: Path, old: str, new: str) -> Path:
    """The document after someone changed a thing in it."""
    with zipfile.ZipFile(path) as archive:
        xml = archive.read("Document.xml").decode()
    assert old in xml
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Document.xml", xml.replace(old, new, 1))
    return path


MIDDLE = Constraint(T.MIDPOINT, (Ref(1, Part.POINT), Ref(0)))
LENGTH = Constraint(T.DISTANCE, (Ref(0, Part.START), Ref(0, Part.END)), 4.0, extra={"mine": 1})
FAR = Constraint(T.PARALLEL, (Ref(0), EXTERNAL))
NOTED = Sketch((Line((0, 0), (4, 0)), Point((2, 0))), (MIDDLE, LENGTH, FAR), "mm")


def test_notes_give_way_to_what_was_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    FORMAT.write([NOTED], path)
    (as_it_was,) = read(path)
    assert as_it_was.constraints == NOTED.constraints
    (longer,) = read(edited(path, 'Value="4.0"', 'Value="5.0"'))
    assert longer.constraints == (MIDDLE, FAR, Constraint(T.DISTANCE, LENGTH.refs, 5.0))


def test_notes_about_other_primitives_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.FCStd"
    FORMAT.write([NOTED], path)
    (sketch,) = read(edited(path, "&quot;LP&quot;", "&quot;LC&quot;"))
    assert [c.type for c in sketch.constraints] == [T.SYMMETRIC, T.DISTANCE]


@pytest.mark.parametrize(
    "note", ["", "{", "7", "[]", "{}", '{"primitives": "LP"}', "[" * 10_000, '{"primitives": 1e999}']
)
def test_notes_that_are_not_ours_say_nothing(tmp_path: Path, note: str) -> None:
    said = say(NOTED)
    relations = [relation for s in said for relation in s.relations]
    head, *rest = to_notes(NOTED, said)
    assert recall([head, *rest], NOTED.primitives, relations).relations == ()
    for notes in ([], [note], [note, *rest], [head, note], [head, rest[0].replace("[0,", '["x",')]):
        assert recall(notes, NOTED.primitives, relations).relations == tuple(relations)


def test_the_file_says_which_constraint_is_redundant(tmp_path: Path) -> None:
    level = Constraint(T.HORIZONTAL, (Ref(0),))
    FORMAT.write([Sketch((Line((0, 0), (1, 0)),), (level, level))], tmp_path / "a.FCStd")
    (twice,) = read(tmp_path / "a.FCStd")
    assert twice.constraints == (level, level)
    with zipfile.ZipFile(tmp_path / "a.FCStd") as archive:
        root = ET.fromstring(archive.read("Document.xml"))
    assert [c.get("IsActive") for c in root.iter("Constrain")] == ["1", "0"]
    notes = [s.get("value", "") for s in root.iterfind(".//Property[@name='SketchDNN']/StringList/String")]
    assert [REDUNDANT in note for note in notes] == [False, False, True]
