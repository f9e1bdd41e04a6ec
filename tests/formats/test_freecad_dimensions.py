"""FreeCAD agrees that a sketch written with dimensions is fully constrained, and none of them is one too many."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from support.outlines import rectangle, slot
from support.strategies import assert_same

from sketchdnn.constraints import infer
from sketchdnn.errors import SketchError
from sketchdnn.formats import read, sketchgraphs, write
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Kind, Line, Point, Ref, Sketch, bounds

PLATE = Sketch(
    (
        *rectangle(5, 5, 60, 40),
        *slot(10.0, 2.0),
        Circle((20.0, 20.0), 3.0),
        Line((0.0, 25.0), (80.0, 25.0), construction=True),
        Line((70.0, 3.0), (81.0, 14.0)),
        Point((7.0, 9.0)),
    ),
    units="mm",
)


def ask(program: str, document: Path) -> list[dict[str, int | bool]]:
    """For each sketch of a document: what solving it returns, and whether nothing is free."""
    found = document.with_suffix(".json")
    script = document.with_name("script.py")
    script.write_text(SCRIPT)
    environment = {**os.environ, "SKETCHDNN_JOB": str(document), "HOME": str(document.parent)}
    subprocess.run(
        [program, str(script)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    return json.loads(found.read_text())


SCRIPT = """
import json, os
import FreeCAD
path = os.environ["SKETCHDNN_JOB"]
document = FreeCAD.openDocument(path)
found = [{"solve": s.solve(), "full": bool(s.FullyConstrained)} for s in document.Objects]
FreeCAD.closeDocument(document.Name)
json.dump(found, open(path.replace(".FCStd", ".json"), "w"))
"""


def test_freecad_finds_nothing_free(freecadcmd: str, tmp_path: Path) -> None:
    related = replace(PLATE, constraints=infer(PLATE))
    held = replace(
        related, constraints=(*related.constraints, Constraint(ConstraintType.ANGLE, (Ref(10),), 0.7853981633974483))
    )
    write([PLATE, related, held], tmp_path / "plain.FCStd")
    assert ask(freecadcmd, tmp_path / "plain.FCStd") == [{"solve": 0, "full": False}] * 3
    write([PLATE, related, held], tmp_path / "full.FCStd", dimensions=True)
    assert ask(freecadcmd, tmp_path / "full.FCStd") == [{"solve": 0, "full": True}] * 3


def test_the_sketch_stays_as_it_was_and_gains_constraints(tmp_path: Path) -> None:
    related = replace(PLATE, constraints=infer(PLATE))
    write(related, tmp_path / "full.FCStd", dimensions=True)
    (again,) = read(tmp_path / "full.FCStd")
    assert_same(PLATE, again)
    assert again.constraints[: len(related.constraints)] == related.constraints
    added = again.constraints[len(related.constraints) :]
    assert ConstraintType.DIAMETER in {c.type for c in added}
    write(again, tmp_path / "again.FCStd", dimensions=True)
    assert read(tmp_path / "again.FCStd").sketches[0].constraints == again.constraints  # nothing is left to add


def test_real_sketches_are_settled(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    found = (s for s in sketchgraphs.FORMAT.read(real_data / "sketchgraphs/sg_subset.npy") if isinstance(s, Sketch))
    # A few hold lines of 1e-15 m, which are nothing to FreeCAD.
    sound = (s for s in found if all(p.kind is Kind.POINT or p.length > 1e-6 * bounds(s).size for p in s))
    write(islice(sound, 0, 2000, 50), tmp_path / "real.FCStd", dimensions=True)
    verdicts = ask(freecadcmd, tmp_path / "real.FCStd")
    assert len(verdicts) == 40
    assert all(verdict["solve"] == 0 for verdict in verdicts)
    assert sum(verdict["full"] for verdict in verdicts) >= 0.97 * len(verdicts)


def test_the_option_is_freecads_alone(tmp_path: Path) -> None:
    with pytest.raises(SketchError, match="'dimensions' is an option of freecad, not of json"):
        PLATE.save(tmp_path / "plate.json", dimensions=True)
