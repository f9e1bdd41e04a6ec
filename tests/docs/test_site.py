"""The built site in Chromium: complete without a network, searchable, on a desk and on a phone, in light and dark.

`make docs` builds it before these tests run.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from support.documents import ROOT

pytestmark = pytest.mark.site

SITE = ROOT / "build" / "docs"
# A page of each kind: long tables, pictures, code, docstrings.
PAGES = ("index", "start", "how_it_works", "tutorials/sloppy_drawing", "reference/cli", "reference/config",
         "reference/api/sketchdnn.geometry", "results/index", "equations", "changes")  # fmt: skip
DESK, PHONE = (1280, 800), (390, 844)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert (SITE / "index.html").is_file(), "build the site first: make docs"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[("light", DESK), ("light", PHONE), ("dark", DESK), ("dark", PHONE)], ids=str)
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    scheme, (width, height) = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    yield context.new_page()
    context.close()


def url(name: str) -> str:
    return f"file://{SITE / name}.html"


def test_pages_fit_and_ask_for_nothing_from_elsewhere(page: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    page.on("request", lambda r: r.url.startswith(("file:", "data:")) or problems.append(f"elsewhere: {r.url}"))
    for name in PAGES:
        page.goto(url(name))
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{name} is {wider} pixels wider than the window"
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), name
    assert problems == []


def test_text_is_readable(page: Any) -> None:
    """No serious finding of axe about contrast, names of controls, or pictures without a description."""
    from axe_playwright_python.sync_playwright import Axe

    for name in ("index", "tutorials/sloppy_drawing", "results/index"):
        page.goto(url(name))
        found = Axe().run(
            page, options={"runOnly": ["color-contrast", "image-alt", "link-name", "button-name", "label"]}
        )
        assert [v["id"] + ": " + v["nodes"][0]["html"] for v in found.response["violations"]] == []


def test_search_by_keyboard_finds_a_setting_and_a_function(browser: Any) -> None:
    page = browser.new_page()
    for words, wanted in (("self_conditioning", "systems.html"), ("register_sampler", "sketchdnn.diffusion.html")):
        page.goto(url("index"))
        box = page.locator("input[name=q]").first
        while not box.evaluate("box => box === document.activeElement"):
            page.keyboard.press("Tab")
        page.keyboard.type(words)
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results li a")
        addresses = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
        assert any(wanted in address for address in addresses)
    page.close()


def test_the_first_key_leads_to_the_content(browser: Any) -> None:
    page = browser.new_page()
    page.goto(url("how_it_works"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to content"
    page.close()


def test_every_page_is_in_the_navigation() -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").glob("*.md")}
    sidebar = (SITE / "index.html").read_text(encoding="utf-8")
    assert [name for name in pages - {"index"} if f'href="{name}.html"' not in sidebar] == []
