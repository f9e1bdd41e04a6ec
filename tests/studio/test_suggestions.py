"""The panels "Complete", "Constrain" and "Repair"."""

import pytest
from playwright.sync_api import expect
from support.plates import open_outline, plate

from benchmarks.studio_driver import Studio
from sketchdnn.constraints import solve
from sketchdnn.geometry import profile

pytestmark = pytest.mark.browser


@pytest.fixture
def quick(studio: Studio) -> Studio:
    """The studio with few denoising steps in its completions."""
    studio.page.evaluate("document.documentElement.dataset.steps = '8'")
    return studio


def complete(studio: Studio, control: str = "#complete") -> None:
    studio.page.click(control)
    studio.page.wait_for_selector("#completions[aria-busy=false] .tile:not(.waiting)")


def test_half_a_sketch_is_completed_and_a_tile_accepted(quick: Studio) -> None:
    page = quick.page
    quick.open_sketch(plate())
    before = quick.sketch()
    page.click("[data-focus=p0]")
    page.click("[data-focus=p1]", modifiers=["Shift"])
    page.click("#tab-complete")
    expect(page.locator("#complete-part")).to_have_text("Keeps the 2 selected primitives; the other 3 go.")
    complete(quick)
    tiles = page.locator("#completions .tile-main")
    assert 1 <= tiles.count() <= 8
    # Drawn over the part: what is given and what is added look different, in the tile and on the canvas.
    expect(tiles.first.locator(".stroke:not(.added)")).to_have_count(2)
    assert tiles.first.locator(".stroke.added").count() > 0
    tiles.first.hover()
    expect(page.locator(".curve.given")).to_have_count(2)
    given, added = page.locator(".curve.given").first, page.locator(".curve.added").first
    color = "node => getComputedStyle(node).stroke"
    assert given.evaluate(color) == "rgb(31, 41, 51)"
    assert added.evaluate(color) == "rgb(0, 114, 178)"
    assert quick.sketch() == before
    tiles.first.click()
    quick.wait_for_inspection()
    sketch = quick.sketch()
    assert sketch.primitives[:2] == before.primitives[:2]
    assert len(sketch) > 2
    assert {c.name for c in sketch.constraints} >= {"Width", "Height"}
    page.keyboard.press("Control+z")
    assert quick.sketch() == before


def test_more_like_this_and_something_else(quick: Studio) -> None:
    page = quick.page
    quick.open_sketch(plate())
    page.click("[data-focus=p0]")
    page.click("[data-focus=p1]", modifiers=["Shift"])
    page.click("#tab-complete")
    expect(page.locator("#something-else")).to_be_disabled()
    complete(quick)
    complete(quick, "#completions .tile:first-child [aria-label^='More like']")
    assert page.locator("#completions .tile-main").count() >= 1
    complete(quick, "#something-else")
    page.keyboard.press("1")
    expect(page.locator("#message")).to_contain_text("Accepted. Suggestion 1")


def test_completion_can_be_canceled(quick: Studio) -> None:
    page = quick.page
    quick.open_sketch(plate())
    page.evaluate("document.documentElement.dataset.steps = '400'")
    page.click("#tab-complete")
    page.click("#complete")
    expect(page.locator("#complete-progress")).to_be_visible()
    page.click("#cancel-complete")
    expect(page.locator("#complete-progress")).to_be_hidden()
    expect(page.locator("#completions .tile")).to_have_count(0)


def test_auto_constrain_offers_several_results(studio: Studio) -> None:
    page = studio.page
    bare = open_outline()
    studio.open_sketch(bare)
    page.click("#tab-constrain")
    page.click("#constrain")
    tiles = page.locator("#alternatives .tile-main")
    expect(tiles.nth(1)).to_be_visible()
    for number in range(tiles.count()):
        words = tiles.nth(number).inner_text()
        assert "constraint" in words
        assert "dimension" in words
        assert "fully constrained" in words or "degree" in words
    full = page.locator("#alternatives .tile-main", has_text="fully constrained").first
    full.hover()
    expect(page.locator("#canvas .dimension").first).to_be_visible()
    assert studio.sketch() == bare
    full.click()
    expect(page.locator("#status-dof")).to_have_text("Fully constrained")
    assert solve(studio.sketch()).dof == 0


def test_repair_shows_before_and_after(studio: Studio) -> None:
    page = studio.page
    studio.open_sketch(open_outline())
    expect(page.locator("#status-outline")).to_have_text("4 open ends")
    page.click("#tab-repair")
    page.click("#repair")
    expect(page.locator("#repair-result figcaption").first).to_have_text("Before 4 open ends")
    expect(page.locator("#repair-result figcaption").last).to_have_text("After 0 open ends")
    page.click("#accept-repair")
    expect(page.locator("#status-outline")).to_contain_text("Closed")
    assert profile(studio.sketch()).is_extrudable
    page.keyboard.press("Control+z")
    assert studio.sketch() == open_outline()


def test_a_sketch_without_faults_needs_no_repair(studio: Studio) -> None:
    studio.open_sketch(plate())
    studio.page.click("#tab-repair")
    studio.page.click("#repair")
    expect(studio.page.locator("#repair-result")).to_contain_text("Nothing to repair.")
    expect(studio.page.locator("#accept-repair")).to_have_count(0)
