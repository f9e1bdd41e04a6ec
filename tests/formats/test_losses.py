"""Whatever a conversion leaves out, switches off or changes is counted, with the reason."""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.outlines import rectangle
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.formats import convert, write
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

T = ConstraintType
OFF = "a constraint switched off in FreeCAD"
MISSED = f"{OFF}: the geometry does not satisfy it ('sketchdnn constrain' moves it)"
ENDS = [(0, 0), (100, 0.2), (100.2, 50), (0.2, 50.2)]
# A rectangle drawn by hand: every side is off by 0.2 % of the size.
CROOKED = Sketch(
    tuple(Line(ENDS[i], ENDS[(i + 1) % 4]) for i in range(4)),
    (
        *(Constraint(T.HORIZONTAL if i % 2 == 0 else T.VERTICAL, (Ref(i),)) for i in range(4)),
        *(Constraint(T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4)),
    ),
    "mm",
)
# Something of everything that one format or another does not hold.
RICH = Sketch(
    (
        *rectangle(0, 0, 30, 20),
        Circle((10.0, 10.0), 2.0),
        Line((0.0, 0.0), (30.0, 20.0), construction=True),
        Point((3.0, 3.0)),
    ),
    (
        Constraint(T.HORIZONTAL, (Ref(0),)),
        Constraint(T.HORIZONTAL, (Ref(0),)),
        Constraint(T.RADIUS, (Ref(4),), 2.0, extra={"list": [1, 2]}),
        Constraint(T.PARALLEL, (Ref(0), Ref(None, Part.EXTERNAL))),
        Constraint(T.OTHER, (Ref(4),), name="Pierce"),
    ),
    None,
    {"id": "plate", "author": "me", "primitives": {"0": {"color": "red"}}},
)


def losses(tmp_path: Path, sketch: Sketch, name: str, **options: object) -> tuple[Counter[str], Counter[str]]:
    write(sketch, tmp_path / "in.json")
    result = convert(tmp_path / "in.json", tmp_path / name, **options)  # type: ignore[arg-type]
    return result.skipped, result.changed


def test_switched_off_constraints_are_said_with_their_reason(tmp_path: Path) -> None:
    write(CROOKED, tmp_path / "in.json")
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "in.json"), str(tmp_path / "out.FCStd")])
    assert result.stderr.splitlines() == [f"{tmp_path}/out.FCStd: 1 sketch", f"changed 4 × {MISSED}"]
    with zipfile.ZipFile(tmp_path / "out.FCStd") as archive:
        assert archive.read("Document.xml").count(b'IsActive="0"') == 4


def test_constrain_satisfies_what_was_switched_off(tmp_path: Path) -> None:
    """So the advice in the report is sound."""
    write(CROOKED, tmp_path / "in.json")
    result = CliRunner().invoke(app, ["constrain", str(tmp_path / "in.json"), "--out", str(tmp_path / "out.FCStd")])
    assert result.exit_code == 0, result.output
    assert MISSED not in result.stderr


@pytest.mark.parametrize("name", ["out.FCStd", "folder/"])
def test_what_freecad_cannot_be_given_is_counted(tmp_path: Path, name: str) -> None:
    options = {"format": "freecad"} if name.endswith("/") else {}
    skipped, changed = losses(tmp_path, RICH, name, **options)
    assert not skipped
    assert changed == {
        f"{OFF}: it follows from the others": 1,
        "a constraint only noted in the file: it refers to something outside the sketch": 1,
        "a constraint only noted in the file: FreeCAD has no such constraint for what it refers to": 1,
        "a sketch without units, taken to be in millimeters": 1,
    }


@pytest.mark.parametrize(
    ("name", "format_", "left_out", "changed"),
    [
        ("out.svg", "svg", {"a constraint": 5, "a name or other key of a sketch": 2}, {}),
        ("out.dxf", "dxf", {"a constraint": 5, "a name or other key of a sketch": 2}, {}),
        (
            "out.py",
            "cadquery",
            {"a constraint": 5, "a name or other key of a sketch": 2, "construction geometry": 1, "a point": 1},
            {"a sketch without units, taken to be in millimeters": 1},
        ),
        (
            "out.npy",
            "sketchgraphs",
            {
                "a name or other key of a sketch": 2,
                "a constraint's parameter that is neither a number, a word nor a flag": 1,
            },
            {"a sketch without units, taken to be in meters": 1},
        ),
        (
            "out.onshape.json",
            "onshape",
            {
                "a name or other key of a sketch": 2,
                "a constraint's parameter that is neither a number, a word nor a flag": 1,
            },
            {
                "a sketch without units, taken to be in meters": 1,
                "a reference to something outside the sketch, written as an empty query": 1,
            },
        ),
        ("out.corpus.jsonl", "corpus", {"a primitive's own keys": 1}, {}),
        ("out.jsonl", "jsonl", {}, {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_format_does_not_hold_is_counted(
    tmp_path: Path, name: str, format_: str, left_out: dict[str, int], changed: dict[str, int]
) -> None:
    found, found_changed = losses(tmp_path, RICH, name)
    assert {reason.removesuffix(f", which {format_} cannot hold"): count for reason, count in found.items()} == left_out
    assert found_changed == changed


@pytest.mark.parametrize(("suffix", "facets"), [("step", 0), ("stl", 1)])
def test_what_a_solid_does_not_hold_is_counted(tmp_path: Path, freecadcmd: str, suffix: str, facets: int) -> None:
    found, changed = losses(tmp_path, replace(RICH, constraints=(), units="mm", extra={}), f"out.{suffix}")
    assert found == {f"construction geometry, which {suffix} cannot hold": 1, f"a point, which {suffix} cannot hold": 1}
    assert changed == ({"a curve, which stl holds as flat facets": 1} if facets else {})


def test_gaps_that_polylines_close_are_counted(tmp_path: Path) -> None:
    first, *rest = rectangle(0, 0, 30, 20)
    moved = replace(first, end=(30.001, 0.0))
    assert losses(tmp_path, Sketch((first, *rest), units="mm"), "out.dxf", polylines=True)[1] == {}
    assert losses(tmp_path, Sketch((moved, *rest), units="mm"), "out.dxf", polylines=True)[1] == {
        "a gap between ends, closed where a polyline has one corner": 1
    }
