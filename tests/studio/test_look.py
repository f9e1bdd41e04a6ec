"""Accessibility by axe in light and dark, on a desktop and on a phone; the layout on a phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.accessibility import SIZES, serious_findings
from support.plates import open_outline, plate

from benchmarks.studio_driver import Studio

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_serious(open_studio: Callable[..., Studio], size: str) -> None:
    studio = open_studio("", *SIZES[size])
    page = studio.page
    findings = serious_findings(studio, "empty")
    studio.generate(count=2, seed=7, steps=4)
    findings += serious_findings(studio, "cards")
    studio.open_sketch(plate())
    if size == "phone":
        page.click("#tab-inspect")
    page.click("[data-focus=p0]")
    findings += serious_findings(studio, "inspect")
    studio.open_sketch(open_outline())
    page.evaluate("document.documentElement.dataset.steps = '4'")
    steps = {"complete": "#completions .tile-main", "constrain": "#alternatives .tile-main", "repair": "#accept-repair"}
    for name, result in steps.items():
        page.click(f"#tab-{name}")
        page.click(f"#{name}")
        page.locator(result).first.wait_for()
        findings += serious_findings(studio, name)
    page.click("#export")
    findings += serious_findings(studio, "export")
    page.keyboard.press("Escape")
    page.click("#help-open")
    findings += serious_findings(studio, "help")
    assert findings == []


def test_nothing_is_wider_than_a_phone(open_studio: Callable[..., Studio]) -> None:
    studio = open_studio("", *SIZES["phone"])
    page = studio.page
    is_wide = "document.documentElement.scrollWidth > innerWidth"
    studio.generate(count=2, seed=7, steps=4)
    assert not page.evaluate(is_wide)
    studio.open_sketch(plate())
    assert not page.evaluate(is_wide)
    panel = page.locator("#panel-inspect")
    expect(panel).to_be_hidden()
    page.click("#tab-inspect")
    expect(panel).to_be_visible()
    page.click("#tab-inspect")
    expect(panel).to_be_hidden()
    for control in page.locator("button:visible").all():
        box = control.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_theme_is_switched_and_kept(studio: Studio) -> None:
    page = studio.page
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.click("#theme")
    dark = page.evaluate(color)
    assert dark != light
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(color) == dark
