"""The modules of the page: what they compute, tried in the browser; and what the files must not hold."""

import math
import re
from typing import Any

import pytest

from benchmarks.studio_driver import Studio
from sketchdnn.server import studio_files

FILES = studio_files.find_files()


def call(studio: Studio, module: str, name: str, *arguments: Any) -> Any:
    """The value of a function of a module; an error is its message."""
    script = """async ([module, name, values]) => {
        try {
            return (await import(`/${module}.js`))[name](...values);
        } catch (error) {
            return error.message;
        }
    }"""
    return studio.page.evaluate(script, [module, name, list(arguments)])


def test_page_loads_nothing_from_elsewhere_and_has_no_inline_code() -> None:
    html = FILES["index.html"].read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)
    for name, path in FILES.items():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name


def test_all_files_are_small_and_their_icons_exist() -> None:
    icons = set(re.findall(r'<symbol id="(i-[^"]+)"', FILES["icons.svg"].read_text()))
    used = re.findall(r"icons\.svg#(i-[\w-]+)", FILES["index.html"].read_text())
    assert set(used) <= icons
    from sketchdnn.geometry import ConstraintType, Kind

    assert {f"i-c-{kind}" for kind in ConstraintType} <= icons
    assert {f"i-{kind.label}" for kind in Kind} <= icons
    for name, path in FILES.items():
        assert len(path.read_text().splitlines()) < 600, name


def test_modules_import_each_other_without_a_missing_file() -> None:
    for path in FILES.values():
        if path.suffix == ".js":
            for name in re.findall(r'from "\./([^"]+)"', path.read_text()):
                assert name in FILES


@pytest.mark.browser
@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        ("12,5", "mm", 12.5),
        ("12.5 mm", "cm", 1.25),
        ("1/2 in", "mm", 12.7),
        ("1 1/2in", "in", 1.5),
        ('2"', "mm", 50.8),
        (",5", None, 0.5),
        ("1e2", "mm", 100),
    ],
)
def test_lengths_are_understood(studio: Studio, text: str, units: str | None, value: float) -> None:
    assert math.isclose(call(studio, "quantity", "parseLength", text, units), value)


@pytest.mark.browser
def test_what_is_no_length_is_refused_in_a_sentence(studio: Studio) -> None:
    for text in ("", "wide", "1 2", "1.2.3", "0", "-3", "3 parsecs"):
        assert call(studio, "quantity", "parseLength", text, "mm").endswith((".", "yd."))
    assert math.isclose(call(studio, "quantity", "parseAngle", "22,5°"), math.radians(22.5))


@pytest.mark.browser
def test_arc_through_three_points_runs_over_the_third(studio: Studio) -> None:
    for via in ([0, 1], [0, -1]):
        arc = call(studio, "geometry", "arcThrough", [1, 0], [-1, 0], via)
        assert math.isclose(arc["radius"], 1)
        middle = call(studio, "geometry", "halfway", arc)
        assert math.dist(middle, via) < 1e-9
    assert call(studio, "geometry", "arcThrough", [0, 0], [2, 0], [1, 0]) is None


@pytest.mark.browser
def test_removing_a_primitive_renumbers_constraints(studio: Studio) -> None:
    from support.plates import plate

    sketch = call(studio, "sketch", "removePrimitives", plate().to_dict(), [1])
    assert len(sketch["primitives"]) == 4
    refs = {tuple(ref) for constraint in sketch["constraints"] for ref in constraint["refs"]}
    assert max(ref[0] for ref in refs) == 3
    assert [c["refs"] for c in sketch["constraints"] if c["type"] == "diameter"] == [[[3, "whole"]]]
