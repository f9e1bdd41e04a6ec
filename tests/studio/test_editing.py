"""The view "Sketch": dragging, dimensions, drawing, selection, constraints, undo."""

import math

import pytest
from playwright.sync_api import expect
from support.plates import plate

from benchmarks.studio_driver import Studio
from sketchdnn.geometry import Arc, Circle, ConstraintType, Line, Point, Sketch

pytestmark = pytest.mark.browser


def lines(sketch: Sketch) -> list[Line]:
    return [p for p in sketch if isinstance(p, Line)]


def test_joined_ends_follow_a_dragged_end(studio: Studio) -> None:
    studio.open_sketch(plate(dimensions=False))
    before = studio.sketch()
    corner = studio.pixel("0:end")
    studio.drag(corner, (corner[0] + 90, corner[1] + 60))
    studio.wait_for_drag()
    bottom, right, top, left = lines(studio.sketch())
    old = lines(before)[0].end
    assert bottom.end[0] > old[0] + 1
    assert bottom.end[1] < old[1] - 1
    for one, other in (
        (bottom.end, right.start),
        (right.end, top.start),
        (top.end, left.start),
        (left.end, bottom.start),
    ):
        assert math.dist(one, other) < 1e-6
    assert abs(bottom.start[1] - bottom.end[1]) < 1e-6
    assert abs(right.start[0] - right.end[0]) < 1e-6
    # The end is where the pointer let it go.
    x, y = studio.pixel("0:end")
    assert math.hypot(x - corner[0] - 90, y - corner[1] - 60) < 2
    studio.page.keyboard.press("Control+z")
    assert studio.sketch() == before


def test_dimensions_hold_while_a_side_is_dragged(studio: Studio) -> None:
    studio.open_sketch(plate())
    start = studio.pixel("0:start")
    middle = (start[0] + 40, start[1])
    studio.drag(middle, (middle[0] + 30, middle[1] + 50))
    studio.wait_for_drag()
    bottom, right, *_ = lines(studio.sketch())
    assert math.isclose(bottom.length, 60, rel_tol=1e-6)
    assert math.isclose(right.length, 40, rel_tol=1e-6)
    assert bottom.start[1] < -1


def test_radius_is_dragged_by_the_rim(studio: Studio) -> None:
    studio.open_sketch(plate(dimensions=False))
    x, y = studio.pixel("4:center")
    scale = (studio.pixel("0:end")[0] - studio.pixel("0:start")[0]) / 60
    studio.drag((x + 8 * scale, y), (x + 12 * scale, y))
    studio.wait_for_drag()
    circle = studio.sketch().primitives[4]
    assert isinstance(circle, Circle)
    assert abs(circle.radius - 12) < 0.3


def test_dimension_is_edited_in_place_with_a_decimal_comma(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate())
    before = studio.sketch()
    page.locator(".dimension text", has_text="60").dblclick()
    expect(page.locator("#dimension")).to_be_focused()
    page.locator("#dimension").fill("42,5")
    page.keyboard.press("Enter")
    expect(page.locator(".dimension", has_text="42.5")).to_be_visible()
    sketch = studio.sketch()
    assert math.isclose(lines(sketch)[0].length, 42.5, rel_tol=1e-9)
    assert [c.name for c in sketch.constraints if c.value == 42.5] == ["Width"]
    page.keyboard.press("Control+z")
    assert studio.sketch() == before
    page.keyboard.press("Control+Shift+z")
    assert studio.sketch() == sketch


def test_dimension_takes_inches_by_keyboard_and_refuses_words(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate())
    page.locator(".dimension", has_text="40").focus()
    page.keyboard.press("Enter")
    page.locator("#dimension").fill("wide")
    page.keyboard.press("Enter")
    expect(page.locator("#message-alert")).to_contain_text("is not a length")
    page.locator("#dimension").fill("1 1/2 in")
    page.keyboard.press("Enter")
    expect(page.locator(".dimension", has_text="38.1")).to_be_visible()
    assert math.isclose(lines(studio.sketch())[1].length, 38.1, rel_tol=1e-9)


def test_drawing_a_chain_of_lines_joins_ends_and_keeps_directions(studio: Studio) -> None:
    page = studio.page
    page.click("#view-sketch")
    page.keyboard.press("l")
    for x, y in ((0.3, 0.7), (0.6, 0.7), (0.6, 0.3), (0.3, 0.7)):
        page.mouse.move(*studio.stage(x, y), steps=3)
        page.mouse.down()
        page.mouse.up()
    studio.wait_for_inspection()
    sketch = studio.sketch()
    assert len(lines(sketch)) == 3
    kinds = sorted(c.type for c in sketch.constraints)
    assert kinds == [*[ConstraintType.COINCIDENT] * 3, ConstraintType.HORIZONTAL, ConstraintType.VERTICAL]
    expect(page.locator("#status-outline")).to_contain_text("Closed")
    assert sketch.primitives[2].end == sketch.primitives[0].start


def test_drawing_circle_arc_and_point_and_turning_to_construction(studio: Studio) -> None:
    page = studio.page
    page.click("#view-sketch")
    clicks = {"c": [(0.3, 0.3), (0.4, 0.3)], "a": [(0.6, 0.6), (0.8, 0.6), (0.7, 0.5)], "p": [(0.2, 0.8)]}
    for key, places in clicks.items():
        page.keyboard.press(key)
        for place in places:
            page.mouse.move(*studio.stage(*place))
            page.mouse.down()
            page.mouse.up()
    circle, arc, point = studio.sketch().primitives
    assert isinstance(circle, Circle)
    assert isinstance(arc, Arc)
    assert isinstance(point, Point)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    page.keyboard.press("x")
    assert all(p.construction for p in studio.sketch())
    expect(page.locator(".curve.construction")).to_have_count(3)
    page.keyboard.press("Delete")
    assert len(studio.sketch()) == 0
    page.keyboard.press("Control+z")
    assert len(studio.sketch()) == 3


def test_selection_by_click_shift_and_box(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate(dimensions=False))
    low, high = studio.pixel("0:start"), studio.pixel("2:start")
    side = ((low[0] + high[0]) / 2 + 20, low[1])
    page.mouse.click(*side)
    expect(page.locator(".curve.selected")).to_have_count(1)
    expect(page.locator("#selection")).to_contain_text("Line 1")
    expect(page.locator("#selection")).to_contain_text("60 mm")
    page.keyboard.down("Shift")
    page.mouse.click(high[0], (low[1] + high[1]) / 2 + 15)
    page.keyboard.up("Shift")
    expect(page.locator(".curve.selected")).to_have_count(2)
    studio.drag((low[0] - 20, low[1] + 20), (high[0] + 20, high[1] - 20))
    expect(page.locator(".curve.selected")).to_have_count(5)
    # To the left, a box selects what it touches: the right side, and the top and bottom.
    middle = (low[0] + high[0]) / 2
    studio.drag((high[0] + 20, high[1] - 20), (middle + 150, low[1] + 20))
    expect(page.locator(".curve.selected")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(page.locator(".curve.selected")).to_have_count(0)


def test_constraints_are_added_listed_and_removed(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(Sketch((Line((0, 0), (50, 4)), Line((50, 4), (60, 40)), Circle((20, 25), 6)), units="mm"))
    expect(page.locator("#status-dof")).to_have_text("11 degrees of freedom")
    page.click("[data-focus=p0]")
    expect(page.locator("[data-type=parallel]")).to_be_disabled()
    page.click("[data-type=horizontal]")
    expect(page.locator("#status-dof")).to_have_text("10 degrees of freedom")
    first, *_ = studio.sketch().primitives
    assert isinstance(first, Line)
    assert abs(first.start[1] - first.end[1]) < 1e-9
    page.click("[data-focus=p0]")
    page.click("[data-focus=p1]", modifiers=["Shift"])
    page.click("[data-type=perpendicular]")
    expect(page.locator("#status-dof")).to_have_text("9 degrees of freedom")
    page.click("[data-focus=p2]")
    page.click("[data-type=radius]")
    expect(page.locator("#dimension")).to_be_focused()
    page.locator("#dimension").fill("9")
    page.keyboard.press("Enter")
    expect(page.locator(".dimension", has_text="R 9")).to_be_visible()
    rows = page.locator("#constraint-list .row-item")
    expect(rows).to_have_count(3)
    page.click("[aria-label^='Remove Perpendicular']")
    expect(rows).to_have_count(2)
    expect(page.locator("#status-dof")).to_have_text("9 degrees of freedom")
    assert [c.type for c in studio.sketch().constraints] == [ConstraintType.HORIZONTAL, ConstraintType.RADIUS]


def test_degrees_of_freedom_and_open_ends_are_shown(studio: Studio) -> None:
    studio.open_sketch(Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10, 10))), units="mm"))
    expect(studio.page.locator("#status-outline")).to_have_text("2 open ends")
    expect(studio.page.locator("#canvas .open-end")).to_have_count(2)
    expect(studio.page.locator(".curve.freedom-free")).to_have_count(2)


def test_units_keep_the_real_size(studio: Studio) -> None:
    studio.open_sketch(plate())
    studio.page.select_option("#units", "in")
    expect(studio.page.locator(".dimension", has_text="2.3622")).to_be_visible()
    assert math.isclose(lines(studio.sketch().in_units("mm"))[0].length, 60, rel_tol=1e-12)


def test_pan_zoom_and_fit(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(plate())
    start = studio.pixel("0:start")
    center = studio.stage(0.5, 0.5)
    page.mouse.move(*center)
    page.mouse.wheel(0, -300)
    studio.settle()
    zoomed = studio.pixel("0:start")
    assert math.dist(zoomed, center) > 1.2 * math.dist(start, center)
    page.mouse.down(button="middle")
    page.mouse.move(center[0] + 50, center[1] + 30, steps=4)
    page.mouse.up(button="middle")
    studio.settle()
    assert math.dist(studio.pixel("0:start"), (zoomed[0] + 50, zoomed[1] + 30)) < 1.5
    page.keyboard.press("f")
    studio.settle()
    assert math.dist(studio.pixel("0:start"), start) < 1.5


def test_keyboard_reaches_help_and_tools(studio: Studio) -> None:
    page = studio.page
    page.keyboard.press("g")
    expect(page.locator("#sketch-view")).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator("#tools [data-tool=arc]")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help-keys")).to_contain_text("Perpendicular")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.locator("#tab-inspect").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-complete")).to_be_focused()
    expect(page.locator("#panel-complete")).to_be_visible()


def test_reloading_keeps_the_sketch(studio: Studio) -> None:
    studio.open_sketch(plate())
    studio.page.reload()
    studio.wait_for_inspection()
    assert studio.sketch() == plate()
