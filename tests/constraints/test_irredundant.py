"""What is inferred is consistent and irredundant, and what is reported of it agrees."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from sketchdnn.constraints.contacts import contacts
from sketchdnn.constraints.sharing import Sharing
from sketchdnn.constraints.system import build
from support.shaky import PLATE, shaken
from support.strategies import sketches

from benchmarks.freecad import ask_freecad
from sketchdnn.constraints import Freedom, solve
from sketchdnn.constraints.constrain import Constrained, constrain
from sketchdnn.constraints.equations import bodies, equations_of
from sketchdnn.constraints.variables import Variables
from sketchdnn.formats import scan, write
from sketchdnn.geometry import Arc, Line, Sketch, bounds

# An outline that lacks a line, an arc on its chord, and lines in line with each other.
OPEN = Sketch((Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 30))))
CHORD = Sketch((Arc((0, 0), 10, np.pi / 2, np.pi), Line((0, 10), (0, -10))))
IN_LINE = Sketch((Line((0, 0), (10, 3)), Line((10, 3), (30, 9)), Line((0, 20), (35, 20)), Line((50, 20), (80, 20))))


def _real(folder: Path, every: int) -> list[Sketch]:
    """Some of FreeCAD's sketches."""
    files = sorted((folder / "freecad").glob("*.FCStd"))
    found = [s for file in files for s in scan(file) if isinstance(s, Sketch) and 0 < len(s) <= 30]
    return [replace(s, constraints=()) for s in found[::every]]


def _rank(sketch: Sketch) -> tuple[int, int, int]:
    """Numbers, equations and the rank of the Jacobian, counted without sharing numbers."""
    variables = Variables(sketch.primitives)
    slots = Sharing(variables).slots()
    meeting = contacts(sketch.constraints, variables)
    each = [equations_of(c, variables, variables.f, meeting) or [] for c in sketch.constraints]
    equations = [*bodies(variables), *(e for several in each for e in several)]
    if not equations:
        return slots.free, 0, 0
    rows = build(equations, slots).evaluate(np.zeros(slots.free))[1]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return slots.free, len(equations), int((np.linalg.svd(rows, compute_uv=False) > 1e-7).sum())


def _agrees(done: Constrained) -> bool:
    """Two constraints may each say half of one thing, such as two symmetric ones; but none follows from the others."""
    sketch, told = done.sketch, done.sketch.constraints
    numbers, equations, rank = _rank(sketch)
    needed = equations == rank or all(
        numbers - _rank(replace(sketch, constraints=(*told[:k], *told[k + 1 :])))[2] > done.dof
        for k in range(len(told))
    )
    return (
        needed
        and not done.redundant
        and not solve(sketch).conflicting
        and Freedom.OVER not in done.freedom
        and done.dof == numbers - rank
    )


@pytest.mark.parametrize("close", [True, False])
def test_inferred_constraints_are_irredundant(close: bool) -> None:
    for sketch in (OPEN, CHORD, IN_LINE, PLATE, shaken(PLATE, 0.1)):
        done = constrain(sketch, close=close)
        numbers, equations, rank = _rank(done.sketch)
        assert (equations, done.redundant) == (rank, ())
        assert done.dof == numbers - rank


@settings(max_examples=25)
@given(sketches(max_size=10))
def test_rank_of_random_sketches_agrees_with_the_report(sketch: Sketch) -> None:
    drawn = replace(sketch, constraints=())
    for done in (constrain(drawn, close=True), constrain(drawn, repairing=False)):
        if not done.warning:
            assert _agrees(done)


def test_real_sketches_have_no_redundant_inferred_constraint(real_data: Path) -> None:
    drawing = next(s for s in scan(real_data / "dxf" / "4dc0d4_VP4.dxf") if isinstance(s, Sketch))
    for sketch in (drawing, *_real(real_data, 2)):
        assert _agrees(constrain(sketch, close=True))


def test_own_constraints_stay_though_redundant() -> None:
    once = constrain(shaken(PLATE, 0.1))
    given = once.sketch.constraints
    twice = replace(once.sketch, constraints=(*given, given[0]))
    done = constrain(twice)
    assert set(given) <= set(done.sketch.constraints)
    assert set(done.redundant) <= set(given)


_LOOK = """
def look(document, task):
    sketch = document.Objects[0]
    return {"solve": sketch.solve(), "off": [str(c) for c in sketch.Constraints if not c.IsActive]}
"""


def test_freecad_finds_nothing_redundant_or_conflicting(real_data: Path, freecadcmd: str) -> None:
    drawn = [OPEN, CHORD, IN_LINE, shaken(PLATE, 0.1), *_real(real_data, 4)]
    with tempfile.TemporaryDirectory() as name:
        tasks = []
        for number, sketch in enumerate(drawn):
            done = constrain(sketch, close=True, origin=True)
            large = done.sketch.moved(100 / bounds(done.sketch).size)
            path = Path(name) / f"{number}.FCStd"
            write(replace(large, units="mm", extra={}), path)
            tasks.append({"document": str(path)})
        answers = ask_freecad(freecadcmd, _LOOK, tasks)
    for answer in answers:
        assert answer is not None
        assert answer == {"solve": 0, "off": []}
