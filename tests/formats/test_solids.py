"""Extrusions: the right regions, solids of the right volume, scripts that any CAD Python runs, plain refusals."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from support.cad_pythons import python_with
from support.outlines import nested_plate, placements, rectangle

from sketchdnn.errors import FormatError, SketchError, UnsuitableSketchError
from sketchdnn.formats import convert, read, write
from sketchdnn.formats.solids import extrusion as solids
from sketchdnn.formats.solids.extrusion import extrude
from sketchdnn.formats.solids.scripts import build123d_script, cadquery_script
from sketchdnn.geometry import Circle, Line, Point, Primitive, Sketch, bounds

# A nested plate, a ring beside it, an axis and a mark.
NESTED = Sketch(
    (
        *nested_plate(), Circle((60.0, 0.0), 9.0), Circle((60.0, 0.0), 5.0),
        Line((-60.0, 0.0), (80.0, 0.0), construction=True), Point((0.0, 20.0)),
    ),
    units="mm",
)  # fmt: skip
AREA = 80 * 60 - (1 - math.pi / 4) * 25 - (30 * 30 + math.pi * 225) + 8 * (4 - math.sin(4)) + math.pi * (81 - 25)
OPEN = Sketch((Line((0.0, 0.0), (10.0, 0.0)), Line((10.0, 0.0), (10.0, 5.0))), units="mm")


def stl_volume(path: Path) -> float:
    """Of a closed mesh, by the tetrahedra from the origin; every edge must belong to two triangles."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<I", data, 80)
    assert len(data) == 84 + 50 * count
    volume, edges = 0.0, Counter[tuple[tuple[float, ...], ...]]()
    for i in range(count):
        numbers = struct.unpack_from("<9f", data, 84 + 50 * i + 12)
        a, b, c = numbers[:3], numbers[3:6], numbers[6:]
        cross = (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
        volume += sum(x * y for x, y in zip(a, cross, strict=True)) / 6
        edges.update(tuple(sorted(pair)) for pair in ((a, b), (b, c), (c, a)))
    assert set(edges.values()) == {2}
    return volume


class TestRegions:
    def test_regions_of_nested_loops_in_millimeters(self) -> None:
        what = extrude(NESTED, 5.0, Path("x"))
        assert ([len(region.holes) for region in what.regions], what.area) == ([1, 0, 1], pytest.approx(AREA))
        inch = Sketch((Circle((0.0, 0.0), 1.0),), units="in")
        assert extrude(inch, 5.0, Path("x")).area == pytest.approx(math.pi * 25.4**2)

    @pytest.mark.parametrize(("sketch", "words"), [
        (OPEN, "There is no closed loop. 1 chain is left open, such as primitives 0 and 1"),
        (Sketch((Point((0.0, 0.0)),)), "There is no closed loop"),
        (Sketch(()), "There is no closed loop"),
        (Sketch((Circle((0.0, 0.0), 2.0), Circle((1.0, 0.0), 2.0))), "Curves cross in 2 places"),
    ])  # fmt: skip
    @pytest.mark.parametrize("suffix", [".step", ".stl", ".py", ".build123d.py"])
    def test_open_profiles_are_refused(self, tmp_path: Path, sketch: Sketch, words: str, suffix: str) -> None:
        with pytest.raises(FormatError, match=f"part{re.escape(suffix)}: cannot be extruded: {words}"):
            sketch.save(tmp_path / f"part{suffix}")
        assert not list(tmp_path.iterdir())

    def test_advice_fits_reason(self, tmp_path: Path) -> None:
        disk = Circle((0.0, 0.0), 2.0)
        cases = [
            (OPEN, ["gaps"]),
            (Sketch((Point((0.0, 0.0)),)), ["Draw a closed outline"]),
            (Sketch((disk, disk)), ["merged by 'sketchdnn constrain'"]),
            (Sketch((disk, Circle((1.0, 0.0), 2.0))), ["Trim curves that cross"]),
            (Sketch((disk, Line((0.0, 0.0), (9.0, 0.0)))), ["gaps", "Trim curves that cross"]),
        ]
        hints = {hint for _, those in cases for hint in those}
        for sketch, those in cases:
            with pytest.raises(FormatError) as refused:
                sketch.save(tmp_path / "part.py")
            assert {hint for hint in hints if hint in str(refused.value)} == set(those)

    @pytest.mark.parametrize("height", [0, -1, math.inf, math.nan])
    def test_height_that_is_none(self, tmp_path: Path, height: float) -> None:
        with pytest.raises(SketchError, match="a height is a number of millimeters above 0"):
            NESTED.save(tmp_path / "part.py", height=height)


class TestScripts:
    def test_it_is_plain_code(self, tmp_path: Path) -> None:
        hostile = {
            "name": '"""\nimport os', "id": "'); os.abort(", "source": "\n", "primitives": {"0": {"x": "__import__"}},
        }  # fmt: skip
        for script in (cadquery_script, build123d_script):
            clean = script(extrude(NESTED, 5.0, Path("x")))
            assert script(extrude(replace(NESTED, extra=hostile), 5.0, Path("x"))) == clean
            names = {node.id for node in ast.walk(ast.parse(clean)) if isinstance(node, ast.Name)}
            assert not names & {"os", "eval", "exec", "__import__", "open", "sketchdnn"}
            assert "sketchdnn" not in clean
            assert clean.isascii()
            assert max(map(len, clean.splitlines())) <= 120

    def test_suffix_and_format_choose_library(self, tmp_path: Path) -> None:
        for name, format_, word in (
            ("a.py", None, "cadquery"), ("b.cadquery.py", None, "cadquery"), ("c.build123d.py", None, "build123d"),
            ("d.py", "build123d", "build123d"),
        ):  # fmt: skip
            NESTED.save(tmp_path / name, format_, height=2.5)
            code = (tmp_path / name).read_text()
            assert f"import {word}" in code or f"from {word}" in code
            assert "\nHEIGHT = 2.5\n" in code

    @pytest.mark.parametrize("value", [1e-9, 123456.789, 1 / 3, 1e11, 3])
    def test_numbers_are_literals(self, value: float) -> None:
        code = cadquery_script(extrude(Sketch((Circle((value, -value), value),)), 1.0, Path("x")))
        (circle,) = re.findall(r"\.circle\((.*)\)", code)
        assert ast.literal_eval(circle) == pytest.approx(value, rel=1e-11)

    @pytest.mark.parametrize("library", ["cadquery", "build123d"])
    def test_it_builds_solid(self, tmp_path: Path, library: str) -> None:
        python = python_with(library)
        NESTED.save(tmp_path / "part.py", library, height=7.5)
        done = subprocess.run(
            [python, "part.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        words = done.stdout.split()
        assert (words[0], float(words[1])) == ("part.step:", pytest.approx(7.5 * AREA, rel=1e-9))
        assert (tmp_path / "part.step").read_bytes().startswith(b"ISO-10303-21;")


class TestFiles:
    @pytest.mark.parametrize("suffix", [".step", ".stp"])
    def test_freecad_reads_step_that_it_wrote(self, freecadcmd: str, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"part{suffix}"
        NESTED.save(path, height=7.5)
        script = tmp_path / "ask.py"
        script.write_text(
            "import os, Part\nshape = Part.read(os.environ['SKETCHDNN_STEP'])\n"
            "print('VERDICT', shape.Volume, len(shape.Solids), shape.isValid())\n"
        )
        environment = {**os.environ, "SKETCHDNN_STEP": str(path), "HOME": str(tmp_path)}
        how = {"env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run([freecadcmd, str(script)], check=False, **how)
        _, volume, solids, valid = re.findall(r"VERDICT.*", done.stdout)[0].split()
        assert (float(volume), solids, valid) == (pytest.approx(7.5 * AREA, rel=1e-9), "3", "True")

    def test_solids_are_reproducible(self, freecadcmd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        NESTED.save("flansch ü.step")
        assert len(list(tmp_path.iterdir())) == 1
        NESTED.save(tmp_path / "b.step")
        data = (tmp_path / "flansch ü.step").read_bytes()
        assert data.startswith(b"ISO-10303-21;")
        assert b"'1970-01-01T00:00:00'" in data
        assert data == (tmp_path / "b.step").read_bytes()
        for name in ("a.stl", "b.stl"):
            NESTED.save(tmp_path / name)
        assert (tmp_path / "a.stl").read_bytes() == (tmp_path / "b.stl").read_bytes()
        assert stl_volume(tmp_path / "a.stl") == pytest.approx(10 * AREA, rel=2e-3)

    @settings(max_examples=4)
    @given(items=placements(NESTED.primitives, [0.01, 1.0, 100.0]))
    def test_invariance_to_order_and_transform(
        self, freecadcmd: str, tmp_path_factory: pytest.TempPathFactory, items: list[Primitive]
    ) -> None:
        path = tmp_path_factory.mktemp("solid") / "part.step"
        Sketch(tuple(items), units="mm").save(path, height=bounds(items).size / 100)
        assert path.stat().st_size > 1000

    def test_build123d_builds_what_freecad_does(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        job = [python_with("build123d"), str(Path(solids.__file__).with_name("cad_job.py"))]
        monkeypatch.setattr(solids, "_builder", lambda path: job)
        NESTED.save(tmp_path / "part.stl", height=3)
        assert stl_volume(tmp_path / "part.stl") == pytest.approx(3 * AREA, rel=2e-3)

    def test_missing_cad_program_names_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(solids.shutil, "which", lambda name: None)
        monkeypatch.setattr(solids, "find_spec", lambda name: None)
        needed = r"part\.step: a \.step file needs FreeCAD or build123d; .*`pip install 'sketchdnn\[cad\]'`"
        with pytest.raises(FormatError, match=needed):
            NESTED.save(tmp_path / "part.step")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(("code", "words"), [
        ("", "gave up"),
        ("import time; time.sleep(60)", "was not built within 1 seconds"),
        ("report({'error': 'BRep_API: command not done'})", "says 'BRep_API: command not done'"),
        ("report({'valid': True, 'volume': 1.0})", "makes 1 mm³ of what should be"),
        ("open(job['report'], 'w').write('[')", "gave up"),
        (f"report({{'valid': True, 'volume': {AREA * 10}}})", "wrote nothing"),
    ])  # fmt: skip
    def test_program_that_fails_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
    ) -> None:
        head = "import json, os; job = json.load(open(os.environ['SKETCHDNN_JOB']))\n"
        head += "def report(said): json.dump(said, open(job['report'], 'w'))\n"
        monkeypatch.setattr(solids, "_builder", lambda path: [sys.executable, "-c", head + code])
        monkeypatch.setattr(solids, "LIMIT_SECONDS", 1 if "sleep" in code else 60)
        with pytest.raises(FormatError, match=words):
            NESTED.save(tmp_path / "part.step")
        assert not list(tmp_path.iterdir())

    def test_data_goes_as_numbers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        code = f"import os, shutil; shutil.copy(os.environ['SKETCHDNN_JOB'], {str(tmp_path / 'job.json')!r})"
        monkeypatch.setattr(solids, "_builder", lambda path: [sys.executable, "-c", code])
        with pytest.raises(FormatError):
            replace(NESTED, extra={"name": "import os"}).save(tmp_path / "part.step")
        job = json.loads((tmp_path / "job.json").read_text())
        assert set(job) == {"file_type", "out", "report", "height", "regions"}
        assert "import" not in json.dumps(job["regions"])


class TestMany:
    def test_folder_gets_those_that_close(self, tmp_path: Path) -> None:
        square = Sketch(tuple(rectangle(0, 0, 1, 1)), units="mm")
        write([square, OPEN, NESTED], tmp_path / "many.jsonl")
        result = convert(tmp_path / "many.jsonl", f"{tmp_path}/out/", format="cadquery", height=2.0)
        assert (result.written, result.skipped["a sketch that cannot be extruded"]) == (2, 1)
        assert len(list((tmp_path / "out").iterdir())) == 2
        write([OPEN, OPEN], tmp_path / "many.jsonl")
        none_fits = r"none: cannot be written: no sketch fits, the last one cannot be extruded: .* 1 chain is left open"
        with pytest.raises(FormatError, match=none_fits):
            convert(tmp_path / "many.jsonl", f"{tmp_path}/none/", format="cadquery")
        assert not (tmp_path / "none").exists()
        write(OPEN, tmp_path / "open.json")
        with pytest.raises(UnsuitableSketchError):
            convert(tmp_path / "open.json", tmp_path / "open.py")


@pytest.mark.parametrize("suffix", [".step", ".stl", ".py", ".build123d.py"])
def test_solids_are_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"part{suffix}"
    path.write_text("ISO-10303-21;\n" if suffix == ".step" else "import os\n")
    with pytest.raises(FormatError, match=r"is for other programs: .* files are written here, not read"):
        read(path)
