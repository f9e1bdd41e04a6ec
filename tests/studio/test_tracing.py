"""Tracing in the studio: pictures that are dropped, chosen or pasted, and strokes drawn by hand."""

import base64
import math
from collections import Counter
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect
from support.accessibility import SIZES, serious_findings
from support.pictures import color_photo, encoded, pdf, plate_picture
from support.plates import plate

from benchmarks.studio_driver import Studio
from sketchdnn.geometry import Circle, Line, Sketch, Vec, bounds, profile

pytestmark = pytest.mark.browser

DROP = """([name, type, text, kind]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name, { type }));
    if (kind === "paste") {
        dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
        return;
    }
    for (const type of ["dragenter", "dragover", "drop"]) {
        dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }
}"""


def give(studio: Studio, content: bytes, name: str = "plate.png", kind: str = "drop", mime: str = "") -> None:
    """Drop or paste a file."""
    studio.page.evaluate(DROP, [name, mime, base64.b64encode(content).decode(), kind])


def choose(studio: Studio, content: bytes, name: str = "plate.png") -> None:
    """Choose a file by the input of the button."""
    studio.page.locator("#picture").set_input_files({"name": name, "mimeType": "", "buffer": content})


def wait_for_result(studio: Studio) -> None:
    studio.page.wait_for_selector("#trace-figure svg", state="attached")
    studio.page.wait_for_selector("#trace-result[aria-busy=false]", state="attached")
    studio.wait_for_inspection()
    studio.settle()


def kinds(sketch: Sketch) -> Counter[str]:
    return Counter(p.kind.label for p in sketch)


def stroke(studio: Studio, places: Iterable[Vec]) -> None:
    """One stroke of the mouse through positions of the screen."""
    first, *rest = places
    studio.page.mouse.move(*first)
    studio.page.mouse.down()
    for place in rest:
        studio.page.mouse.move(*place)
    studio.page.mouse.up()


def shaky_line(start: Vec, end: Vec, seed: int) -> list[Vec]:
    """Positions along a line that a hand misses by up to two pixels."""
    t = np.linspace(0, 1, 30)[:, None]
    a, b = np.array(start), np.array(end)
    across = np.array([-(b - a)[1], (b - a)[0]]) / np.linalg.norm(b - a)
    off = 2 * np.sin(np.pi * t * (1 + seed % 3 / 2) + seed)
    return [(float(x), float(y)) for x, y in a + (b - a) * t + off * across]


def draw_plate(studio: Studio) -> None:
    """Draw a rectangle and a circle by hand."""
    corners = [studio.stage(x, y) for x, y in ((0.2, 0.3), (0.8, 0.3), (0.8, 0.75), (0.2, 0.75))]
    for number, corner in enumerate(corners):
        stroke(studio, shaky_line(corner, corners[(number + 1) % 4], number))
    x, y = studio.stage(0.45, 0.52)
    radius = 0.12 * abs(corners[1][0] - corners[0][0])
    angles = np.linspace(0.3, 0.3 + math.tau, 50).tolist()
    stroke(studio, [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles])


def test_dropped_photo_becomes_a_constrained_sketch(studio: Studio) -> None:
    page = studio.page
    give(studio, encoded(plate_picture().rotate(4, fillcolor=255), "jpeg"), "photo.JPG")
    wait_for_result(studio)
    sketch = studio.sketch()
    assert kinds(sketch) == {"line": 4, "circle": 1}
    assert profile(sketch).is_extrudable
    assert sketch.constraints
    assert (sketch.units, bounds(sketch).size) == ("mm", pytest.approx(100, rel=0.02))
    expect(page.locator("#sketch-name")).to_have_text("photo.JPG")
    expect(page.locator("#panel-trace")).to_be_visible()
    expect(page.locator("#trace-text")).to_contain_text("4 lines, 1 circle")
    expect(page.locator("#trace-text")).to_contain_text("closed, can be extruded")
    expect(page.locator("#trace-figure path")).to_have_count(5)
    expect(page.locator("#trace-figure svg")).to_have_attribute(
        "aria-label", "The result over the picture: 4 lines, 1 circle"
    )


def test_result_lies_over_the_picture_on_the_canvas_and_in_the_panel(studio: Studio) -> None:
    page = studio.page
    choose(studio, encoded(plate_picture()))
    wait_for_result(studio)
    number = next(n for n, p in enumerate(studio.sketch()) if isinstance(p, Line))
    x, y = studio.pixel(f"{number}:start")
    for layer in ("curves", "points", "annotations", "grid"):
        page.evaluate(f"document.querySelector('#canvas .layer-{layer}').remove()")
    with_picture = np.asarray(Image.open(BytesIO(page.locator("#canvas").screenshot())).convert("L"), int)
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    near = with_picture[round(y - box["y"]) - 20 : round(y - box["y"]) + 20, round(x - box["x"]) - 20 :][:, :40]
    assert (near < 210).sum() > 40  # the ink of the picture, under the corner of the sketch
    page.uncheck("#show-picture")
    studio.settle()
    expect(page.locator("#canvas image")).to_have_count(0)
    page.check("#show-picture")
    expect(page.locator("#canvas image")).to_have_count(1)
    figure = page.locator("#trace-figure svg")
    image, curve = figure.locator("image").bounding_box(), figure.locator("path").first.bounding_box()
    assert image is not None
    assert curve is not None
    assert image["x"] < curve["x"] < image["x"] + image["width"]


def test_tracing_is_one_step_of_undo(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate())
    give(studio, encoded(plate_picture()))
    wait_for_result(studio)
    traced = studio.sketch()
    page.keyboard.press("Control+z")
    assert studio.sketch() == plate()
    expect(page.locator("#sketch-name")).to_have_text("A sketch")
    expect(page.locator("#trace-result")).to_be_hidden()
    expect(page.locator("#canvas image")).to_have_count(0)
    page.keyboard.press("Control+Shift+z")
    assert studio.sketch() == traced
    expect(page.locator("#trace-result")).to_be_visible()


def test_size_page_and_options_are_sent_and_a_picture_can_be_traced_again(studio: Studio) -> None:
    page = studio.page
    give(studio, pdf(3, content=b"4 w 100 300 400 260 re S"), "scan.pdf")
    wait_for_result(studio)
    page.fill("#trace-form [name=size]", "4 in")
    page.fill("#trace-form [name=page]", "2")
    page.uncheck("#trace-form [name=constrain]")
    page.click("#trace-again")
    expect(page.locator("#constraints-count")).to_have_text("0")
    assert bounds(studio.sketch()).size == pytest.approx(101.6, rel=0.01)
    page.fill("#trace-form [name=page]", "4")
    page.click("#trace-again")
    expect(page.locator("#message-alert")).to_have_text("The picture has 3 pages; there is no page 4.")
    page.fill("#trace-form [name=size]", "wide")
    page.click("#trace-again")
    expect(page.locator("#message-alert")).to_contain_text("“wide” is not a length")
    studio.faults.clear()


def test_known_size_of_a_line_scales_the_sketch_and_the_picture(studio: Studio) -> None:
    page = studio.page
    give(studio, encoded(plate_picture()))
    wait_for_result(studio)
    before = studio.sketch()
    expect(page.locator("#scale-name")).to_have_text("Larger side of the sketch, mm")
    number = next(n for n, p in enumerate(before) if isinstance(p, Circle))
    page.evaluate("(n) => import('/store.js').then(({ store }) => store.choose([`${n}:whole`]))", number)
    expect(page.locator("#scale-name")).to_have_text(f"Diameter of circle {number + 1}, mm")
    page.fill("#scale-value", "75,5")
    page.click("#scale")
    studio.wait_for_inspection()
    sketch = studio.sketch()
    circle = sketch.primitives[number]
    assert isinstance(circle, Circle)
    assert circle.radius == pytest.approx(37.75)
    factor = circle.radius / before.primitives[number].radius  # type: ignore[union-attr]
    assert bounds(sketch).size == pytest.approx(factor * bounds(before).size)
    assert sketch.constraints == before.constraints
    studio.settle()
    image, curves = (page.locator(f"#canvas {each}").first.bounding_box() for each in ("image", ".layer-curves"))
    assert image is not None
    assert curves is not None
    assert image["width"] == pytest.approx(curves["width"], rel=0.15)
    page.fill("#scale-value", "no")
    page.click("#scale")
    expect(page.locator("#message-alert")).to_contain_text("is not a length")
    page.keyboard.press("Escape")
    page.click("#undo")
    assert studio.sketch() == before


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (encoded(color_photo(), "jpeg"), "cat.jpg", "No "),
        (encoded(plate_picture(), "jpeg")[:900], "cut.jpg", "The picture is damaged"),
        (encoded(Image.new("RGB", (1, 1))), "dot.png", "The picture is too small to trace: 1 by 1 pixels"),
        (b"GIF89a nothing", "moving.gif", "The picture is no picture that can be read: use PNG"),
        (bytes(17 * 2**20), "large.bmp", "large.bmp has 17 MB, and at most 16 MB are taken"),
    ],
)
def test_bad_picture_is_refused_in_a_sentence_and_nothing_changes(
    studio: Studio, content: bytes, name: str, sentence: str
) -> None:
    studio.open_sketch(plate())
    give(studio, content, name)
    alert = studio.page.locator("#message-alert")
    expect(alert).to_contain_text(sentence)
    text = alert.inner_text()
    assert text.endswith(".")
    assert studio.sketch() == plate()
    expect(studio.page.locator("#trace-result")).to_be_hidden()
    assert [fault for fault in studio.faults if "(Bad Request)" not in fault] == []
    studio.faults.clear()


def test_pasted_screenshot_and_opened_picture_are_traced(studio: Studio, tmp_path: Path) -> None:
    give(studio, encoded(plate_picture()), "image.png", "paste", "image/png")
    wait_for_result(studio)
    assert len(studio.sketch()) == 5
    path = tmp_path / "dark.tiff"
    plate_picture(10, 240).save(path)
    studio.page.locator("#file").set_input_files(path)
    expect(studio.page.locator("#sketch-name")).to_have_text("dark.tiff")
    assert len(studio.sketch()) == 5


@pytest.mark.parametrize(("name", "mime"), [("plate.dxf", "image/vnd.dxf"), ("plate.svg", "image/svg+xml")])
def test_drawing_with_a_type_of_pictures_is_opened(studio: Studio, tmp_path: Path, name: str, mime: str) -> None:
    plate().save(tmp_path / name)
    give(studio, (tmp_path / name).read_bytes(), name, "drop", mime)
    expect(studio.page.locator("#sketch-name")).to_have_text(name)
    assert len(studio.sketch()) == 5
    expect(studio.page.locator("#trace-result")).to_be_hidden()


def test_button_asks_for_a_picture_in_both_views(studio: Studio) -> None:
    page = studio.page
    for button in ("#trace-picture", "#choose-picture", "#trace-picture"):
        with page.expect_file_chooser() as chooser:
            page.click(button)
        assert ".pdf" in chooser.value.element.get_attribute("accept")
        expect(page.locator("#panel-trace")).to_be_visible()
    page.click("#view-generate")
    with page.expect_file_chooser():
        page.get_by_role("button", name="Trace a picture").last.click()


@pytest.mark.parametrize("size", SIZES)
def test_strokes_by_hand_are_traced_where_they_are(open_studio: Callable[..., Studio], size: str) -> None:
    studio = open_studio("", *SIZES[size])
    page = studio.page
    page.click("#view-sketch")
    page.click("[data-tool=freehand]")
    draw_plate(studio)
    expect(page.locator("#freehand-count")).to_have_text("5 strokes")
    drawn = page.evaluate("async () => (await import('/store.js')).store.strokes.flat()")
    page.click("#freehand-trace")
    studio.wait_for_inspection()
    studio.settle()
    sketch = studio.sketch()
    assert kinds(sketch) == {"line": 4, "circle": 1}
    assert profile(sketch).is_extrudable
    expect(page.locator("#freehand-bar")).to_be_hidden()
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(0)
    box, slack = bounds(sketch), 0.02 * bounds(sketch).size
    assert box.low == pytest.approx(np.min(drawn, axis=0), abs=slack)
    assert box.high == pytest.approx(np.max(drawn, axis=0), abs=slack)
    page.keyboard.press("Control+z")
    assert len(studio.sketch()) == 0
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(5)
    page.keyboard.press("Control+z")
    expect(page.locator("#freehand-count")).to_have_text("4 strokes")
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Control+Shift+z")
    assert studio.sketch() == sketch


def test_traced_strokes_are_added_to_the_open_sketch(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate())
    page.keyboard.press("b")
    x, y = studio.stage(0.5, 0.5)
    angles = np.linspace(0, math.tau, 60).tolist()
    stroke(studio, [(x + 60 * math.cos(a), y + 60 * math.sin(a)) for a in angles])
    page.keyboard.press("Enter")
    expect(page.locator("#freehand-bar")).to_be_hidden()
    studio.wait_for_inspection()
    sketch = studio.sketch()
    assert sketch.primitives[:5] == plate().primitives
    assert sketch.constraints[: len(plate().constraints)] == plate().constraints
    (circle,) = sketch.primitives[5:]
    assert isinstance(circle, Circle)
    scale = (studio.pixel("0:end")[0] - studio.pixel("0:start")[0]) / 60
    assert circle.radius * scale == pytest.approx(60, rel=0.03)
    cx, cy = studio.pixel("5:center")
    assert math.dist((cx, cy), (x, y)) < 3


def test_strokes_are_kept_over_a_reload_cleared_and_dropped_by_another_sketch(studio: Studio) -> None:
    page = studio.page
    page.click("#view-sketch")
    page.keyboard.press("b")
    stroke(studio, shaky_line(studio.stage(0.2, 0.4), studio.stage(0.7, 0.5), 1))
    page.mouse.click(*studio.stage(0.5, 0.8))  # no stroke
    expect(page.locator("#freehand-count")).to_have_text("1 stroke")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.evaluate("import('/store.js').then(({ store }) => store.setView('sketch'))")
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(1)
    page.click("#freehand-clear")
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(0)
    page.click("#undo")
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(1)
    page.click("#new")
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(0)
    page.keyboard.press("b")
    expect(page.locator("#freehand-trace")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page.locator("#freehand-bar")).to_be_hidden()


def test_strokes_that_show_no_drawing_stay(studio: Studio) -> None:
    page = studio.page
    page.route("**/api/v1/trace?**", lambda route: route.abort())
    page.click("#view-sketch")
    page.keyboard.press("b")
    stroke(studio, shaky_line(studio.stage(0.2, 0.4), studio.stage(0.7, 0.5), 1))
    page.click("#freehand-trace")
    expect(page.locator("#message-alert")).to_contain_text("The server does not answer.")
    expect(page.locator("#canvas .stroke-by-hand")).to_have_count(1)
    expect(page.locator("#freehand-trace")).to_be_enabled()
    studio.faults.clear()


def test_touch_draws_with_one_finger_and_moves_with_two(studio: Studio) -> None:
    studio.page.click("#view-sketch")
    studio.page.keyboard.press("b")
    script = """async ([fingers]) => {
        const svg = document.getElementById("canvas");
        const box = svg.getBoundingClientRect();
        svg.setPointerCapture = () => {};
        const send = (type, id, x, y) => svg.dispatchEvent(new PointerEvent(type, {
            pointerType: "touch", pointerId: id, button: 0, clientX: box.x + x, clientY: box.y + y, bubbles: true }));
        send("pointerdown", 1, 100, 100);
        send("pointermove", 1, 160, 140);
        if (fingers === 2) send("pointerdown", 2, 300, 300);
        send("pointermove", 1, 260, 160);
        send("pointerup", 1, 260, 160);
        if (fingers === 2) send("pointerup", 2, 300, 300);
    }"""
    studio.page.evaluate(script, [1])
    expect(studio.page.locator("#canvas .stroke-by-hand")).to_have_count(1)
    studio.page.evaluate(script, [2])
    studio.settle()
    expect(studio.page.locator("#canvas .stroke-by-hand")).to_have_count(1)


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_serious_while_tracing(open_studio: Callable[..., Studio], size: str) -> None:
    studio = open_studio("", *SIZES[size])
    page = studio.page
    page.click("#view-sketch")
    page.click("#tab-trace")
    findings = serious_findings(studio, "panel")
    page.click("#draw-freehand")
    draw_plate(studio)
    findings += serious_findings(studio, "strokes")
    give(studio, encoded(plate_picture()))
    wait_for_result(studio)
    findings += serious_findings(studio, "result")
    assert findings == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    for control in page.locator("button:visible").all():
        box = control.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= SIZES[size][0]
