"""One server and one browser for all tests of the studio; every page must be free of errors and stay on its origin."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.studio_driver import Studio, browsing, serving


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server with the shipped model."""
    with serving() as url:
        yield url


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium. Expectations wait for processes of the server that start for their first call."""
    expect.set_options(timeout=20_000)
    with browsing(chromium) as browser:
        yield browser


@pytest.fixture
def open_studio(server: str, browser: Browser) -> Iterator[Callable[..., Studio]]:
    """Opens pages of the studio, each with storage of its own."""
    pages: list[Studio] = []

    def open_page(fragment: str = "", width: int = 1280, height: int = 720, scheme: str = "light") -> Studio:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        pages.append(Studio(context.new_page(), server))
        return pages[-1].open(fragment)

    yield open_page
    for studio in pages:
        studio.page.context.close()
    assert [fault for studio in pages for fault in studio.faults] == []


@pytest.fixture
def studio(open_studio: Callable[..., Studio]) -> Studio:
    """One page, in light colors, 1280 by 720."""
    return open_studio()
