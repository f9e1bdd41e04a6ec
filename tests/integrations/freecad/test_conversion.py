"""The add-on's conversion of sketches, inside FreeCAD's command-line program: JSON ⇄ Sketcher objects."""

import ast
import runpy
import sys
from xml.etree import ElementTree as ET

import pytest
from support.freecad_addon import ADDON, convert
from support.freecad_forms import all_forms

import sketchdnn
from sketchdnn import Sketch

GAP = 1.5
# Real documents that FreeCAD 0.20 can open.
REAL = (
    "1ed497_WireThimble",
    "30dfbc_screw_temp",
    "4c38a5_spreadsheet_variables",
    "d7877b_release_lever",
    "fe9005_back_panel",
)


@pytest.fixture(scope="module")
def found(freecadcmd, tmp_path_factory):
    forms = [form.to_dict() for form in all_forms()]
    return convert(freecadcmd, tmp_path_factory.mktemp("freecad"), {"records": forms, "documents": [], "gap": GAP})


def test_each_constraint_is_added_and_solves(found):
    for form, one in zip(all_forms(), found["forms"], strict=True):
        name = form.extra["name"]
        assert one["solve"] == 0, name
        assert one["moved"] < 1e-6, name
        assert one["refused"] == {}, name
        assert one["constraints"] >= 1, name


def test_constraints_are_read_back_as_they_hold(found):
    for form, one in zip(all_forms(), found["forms"], strict=True):
        again = Sketch.from_dict(one["record"])
        assert [p.construction for p in again] == [p.construction for p in form]
        assert again.constraints, form.extra["name"]
        assert one["again"] == one["constraints"], form.extra["name"]
        assert again.units == "mm"


def test_real_sketches_are_copied_through_json(freecadcmd, tmp_path, real_data):
    paths = [str(real_data / "freecad" / f"{name}.FCStd") for name in REAL]
    found = convert(freecadcmd, tmp_path, {"records": [], "documents": paths, "gap": GAP})
    sketches = [one for path in paths for one in found["documents"][path]]
    assert len(sketches) >= 10
    for one in sketches:
        Sketch.from_dict(one["sent"])
        assert one["solve"] == 0
        assert one["moved"] < 1e-6
        outside = [c for c in one["sent"]["constraints"] if ["external"] in c["refs"] or c["type"] in ("other", "fix")]
        assert sum(one["refused"].values()) <= len(outside)


def test_names_expressions_and_unseen_geometry_survive_a_completion(found):
    one = found["respect"]
    before, after = one["before"], one["after"]
    count = len(before["constraints"])
    assert one["unseen"] == {"Ellipse": 1, "ExternalGeometry": 1}
    assert one["solve"] == 0
    assert after["geometry"][: len(before["geometry"])] == before["geometry"]
    assert after["constraints"][:count] == before["constraints"]
    assert after["expressions"] == before["expressions"] != []
    assert after["external"] == before["external"] != []
    assert after["map"] == before["map"]
    assert after["construction"][-1] is True
    assert one["wide"] == pytest.approx(50)


def test_a_completion_adds_what_the_solver_accepts(found):
    geometry, constraints, refused = found["respect"]["added"]
    assert geometry == 3
    assert constraints == 5
    assert refused == {"horizontal": 1}
    names = [c[1] for c in found["respect"]["after"]["constraints"]]
    assert "width_2" in names
    assert "left out because they repeat others or do not hold: 1 horizontal" in found["respect"]["summary"]


def test_undo_restores_a_completed_sketch(found):
    assert found["respect"]["undone"] == found["respect"]["before"]


def test_sketch_json_is_what_the_library_reads(found):
    sketch = Sketch.from_dict(found["respect"]["sent"])
    assert [str(c.type) for c in sketch.constraints][:4] == ["coincident", "horizontal", "vertical", "length"]


def test_a_repair_keeps_named_dimensions_and_closes(found):
    one = found["repair"]
    assert one["edited"] == [1, 1, 4]
    assert one["solve"] == 0
    assert one["closed"] is True
    assert "hole" in [c[1] for c in one["after"]["constraints"]]
    assert (one["before"]["construction"][4], one["after"]["construction"][3]) == (False, True)
    assert one["undone"] == one["before"]


def test_a_sketch_that_does_not_solve_is_refused_unchanged(found):
    assert found["refused"]["same"] is True
    assert found["refused"]["sentence"].endswith("that the Sketcher lists.")
    assert found["refused"]["steps"] == []


def test_repaired_primitives_are_matched_with_those_before(found):
    assert found["match"] == [2, 0, None]


def test_package_has_the_version_of_the_library(found):
    assert found["metadata"]["version"].startswith(sketchdnn.__version__)
    assert found["metadata"]["class"] == "SketchDNNWorkbench"
    assert (ADDON / found["metadata"]["icon"]).is_file()


def test_lengths_are_read_in_the_users_units(found):
    millimeters, us, imperial = (found["lengths"][schema] for schema in ("0", "2", "3"))
    assert millimeters[0] == pytest.approx([25.4, 25.4, 2.5, 1.0, 0.0, 0.0])
    assert us[0] == imperial[0] == pytest.approx([25.4, 25.4, 2.5, 25.4, 0.0, 0.0])
    assert "25.4" in millimeters[1]
    assert "1.0" in imperial[1]


def test_the_server_is_started_by_a_program_or_an_interpreter(found):
    program, interpreter, nice, _ = found["commands"]
    assert program == ["sketchdnn", "serve", "--port", "9000"]
    assert interpreter == ["/opt/env/bin/python3.11", "-m", "sketchdnn", "serve", "--port", "9000"]
    assert nice == ["nice", "-n", "5", "sketchdnn", "serve", "--port", "9000"]


def test_sentences_have_the_numbers_of_the_elements_in_freecad(found):
    assert found["numbers"] == [
        "Joined ends of curves 1, 3 and 4, which moved by 3 %.",
        "Dropped curve 3: it is only 0.2 %.",
    ]


def test_the_template_of_translations_has_all_texts():
    module = runpy.run_path(str(ADDON / "update_translations.py"))
    sources = [node.text for node in ET.parse(module["TEMPLATE"]).iter("source")]
    assert sources == module["texts"]()
    assert len(sources) > 100


def test_icons_are_small():
    icons = sorted((ADDON / "resources" / "icons").glob("*.svg"))
    assert len(icons) >= 6
    assert all(icon.stat().st_size <= 10_000 for icon in icons)


def test_no_file_needs_more_than_python_and_freecad():
    allowed = {"FreeCAD", "FreeCADGui", "Part", "Sketcher", "PySide", "PySide2", "PySide6", "pivy", "sketchdnn_addon"}
    for path in [*ADDON.glob("*.py"), *(ADDON / "sketchdnn_addon").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [str(node.module)]
            outside = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
            assert outside <= allowed, path.name
