"""Opening and exporting files in the studio; what FreeCAD makes of them."""

import base64
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.freecad_window import look, run_freecad
from support.plates import plate

import sketchdnn
from benchmarks.studio_driver import Studio
from sketchdnn.geometry import Sketch, profile

pytestmark = pytest.mark.browser

# Prints the volume and the box of a STEP file; FreeCAD's program ends with 0 after errors, so the line is the verdict.
MEASURE = """
import json, os
import Part
job = json.load(open(os.environ["SKETCHDNN_JOB"]))
shape = Part.read(job["file"])
print("VERDICT", json.dumps([shape.isValid(), shape.Volume, shape.BoundBox.ZLength]))
"""


def export(studio: Studio, format_: str, folder: Path) -> Path:
    """Export by the dialog; the file."""
    page = studio.page
    page.check(f"[name=format][value={format_}]")
    if format_ == "step":
        page.fill("[name=height]", "5,5")
    with page.expect_download() as download:
        page.click("#export-save")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    expect(page.locator("#message-status")).to_contain_text("Saved")
    return path


def test_real_drawing_is_opened(studio: Studio, real_data: Path) -> None:
    path = real_data / "dxf/a40b5c_1_polylines.dxf"
    studio.page.locator("#file").set_input_files(path)
    expect(studio.page.locator("#message-status")).to_contain_text("a40b5c_1_polylines.dxf: ")
    studio.wait_for_inspection()
    (expected,) = sketchdnn.read(path).sketches
    assert studio.sketch() == Sketch.from_dict(expected.to_dict())
    expect(studio.page.locator("#sketch-name")).to_have_text(path.name)


def test_dropped_file_is_opened(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "plate.FCStd"
    plate().save(path)
    script = """([name, text]) => {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], name));
        for (const type of ["dragenter", "dragover", "drop"]) {
            dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }
    }"""
    studio.page.evaluate(script, [path.name, base64.b64encode(path.read_bytes()).decode()])
    studio.wait_for_inspection()
    sketch = studio.sketch()
    assert len(sketch) == 5
    assert {c.name for c in sketch.constraints} >= {"Width", "Height"}


def test_file_of_several_sketches_is_shown_as_cards(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(plate(dimensions=each).to_dict()) + "\n" for each in (True, False)))
    studio.page.locator("#file").set_input_files(path)
    studio.wait_for_cards()
    assert studio.cards() == [plate(), plate(dimensions=False)]
    studio.open_card(1)
    assert studio.sketch() == plate(dimensions=False)


def test_file_that_is_none_is_refused_in_a_sentence(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "bad.dxf"
    path.write_text("nothing of the kind")
    studio.page.locator("#file").set_input_files(path)
    expect(studio.page.locator("#message-alert")).not_to_be_empty()
    assert [fault for fault in studio.faults if "(Bad Request)" not in fault] == []
    studio.faults.clear()


@pytest.mark.parametrize("format_", ["dxf", "svg", "json"])
def test_export_is_read_back_in_real_size(studio: Studio, tmp_path: Path, format_: str) -> None:
    studio.open_sketch(plate(), "Plate 1")
    studio.page.click("#export")
    path = export(studio, format_, tmp_path)
    assert path.name == f"Plate_1.{format_}"
    (sketch,) = sketchdnn.read(path).sketches
    assert math.isclose(profile(sketch.in_units("mm")).area, 60 * 40 - math.pi * 64, rel_tol=1e-6)
    if format_ == "json":
        assert sketch == plate()


@pytest.mark.desktop
def test_exported_document_is_visible_in_freecad(studio: Studio, tmp_path: Path, freecad_window: None) -> None:
    studio.open_sketch(plate())
    studio.page.click("#export")
    path = export(studio, "fcstd", tmp_path)
    (tmp_path / "window").mkdir()
    (found,) = look([path], tmp_path / "window")
    assert all(found["visible"])
    assert found["lit"] > 0


def test_exported_solid_is_measured_by_freecad(studio: Studio, tmp_path: Path, freecadcmd: str) -> None:
    studio.open_sketch(plate())
    studio.page.click("#export")
    path = export(studio, "step", tmp_path)
    output = run_freecad(freecadcmd, tmp_path, MEASURE, {"file": str(path)})
    (verdict,) = {line.removeprefix("VERDICT ") for line in output.splitlines() if line.startswith("VERDICT ")}
    valid, volume, height = json.loads(verdict)
    assert valid
    assert math.isclose(volume, 5.5 * (60 * 40 - math.pi * 64), rel_tol=1e-6)
    assert math.isclose(height, 5.5)


def test_all_sketches_are_exported_as_a_zip(studio: Studio, tmp_path: Path) -> None:
    studio.generate(count=3, seed=7, steps=8)
    studio.page.click("#export-all")
    path = export(studio, "dxf", tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == [f"sketch_000{number}.dxf" for number in range(3)]


def test_empty_sketch_is_not_exported(studio: Studio) -> None:
    studio.page.click("#view-sketch")
    studio.page.click("#export")
    expect(studio.page.locator("#message-alert")).to_contain_text("the sketch is empty")


def test_server_that_is_gone_is_named(studio: Studio) -> None:
    studio.open_sketch(plate())
    studio.page.route("**/api/v1/export", lambda route: route.abort())
    studio.page.click("#export")
    studio.page.click("#export-save")
    expect(studio.page.locator("#message-alert")).to_have_text(
        "The server does not answer. Start it again with “sketchdnn studio”."
    )
    studio.faults.clear()


def test_token_of_the_link_is_sent_and_not_shown(browser, chromium: str, open_studio: Callable[..., Studio]) -> None:
    from benchmarks.studio_driver import serving

    with serving(SKETCHDNN_TOKEN="secret-of-the-test") as url:
        context = browser.new_context()
        page = Studio(context.new_page(), url).open("#token=secret-of-the-test")
        assert "secret" not in page.page.url
        page.open_sketch(plate())
        assert page.faults == []
        page.page.reload()
        page.wait_for_inspection()
        context.close()
