"""The studio in a real browser: starts `sketchdnn serve` and drives its page, for tests and pictures of the docs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from sketchdnn.cli.serve import READY
from sketchdnn.geometry import Sketch, Vec

# Most milliseconds that one step of a page may take.
TIMEOUT = 60_000


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[str]:
    """A server on a free port; its URL."""
    command = [sys.executable, "-m", "sketchdnn", "serve", "--port", "0", *options]
    variables = {**os.environ, "OMP_NUM_THREADS": "2", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:  # noqa: S603
        try:
            for line in process.stdout or ():
                if line.startswith(READY):
                    yield line.removeprefix(READY).strip()
                    return
            raise RuntimeError(f"the server ended with exit code {process.wait()}")
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextmanager
def browsing(program: str = "/usr/bin/chromium") -> Iterator[Browser]:
    """A browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Studio:
    """One page of the studio, with what went wrong on it: errors of the console, and requests to other origins."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(TIMEOUT)
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._note_request)

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"request: {request.url}")

    def open(self, fragment: str = "") -> Studio:
        """Load the page and wait until it is ready."""
        self.page.goto(f"{self.url}{fragment}")
        self.page.wait_for_selector("html[data-ready]")
        return self

    def generate(self, **conditions: str | int | bool) -> None:
        """Fill in conditions by their names in the form, generate, and wait for the last sketch."""
        form = self.page.locator("#conditions")
        self.page.evaluate("document.getElementById('more-conditions').open = true")
        for name, value in conditions.items():
            control = form.locator(f"[name={name}]")
            if isinstance(value, bool):
                control.set_checked(value)
            elif control.evaluate("node => node.tagName") == "SELECT":
                control.select_option(str(value))
            else:
                control.fill(str(value))
        self.page.click("#generate")
        self.wait_for_cards()

    def wait_for_cards(self) -> None:
        """Wait until nothing is under way in the grid and it has cards."""
        self.page.wait_for_selector("#cards[aria-busy=false] .card[data-index]")

    def open_card(self, index: int) -> None:
        """Open a card of the grid and wait until it is inspected."""
        self.page.click(f".card[data-index='{index}'] .card-open")
        self.wait_for_inspection()

    def wait_for_inspection(self) -> None:
        """Wait until the degrees of freedom of the sketch are known."""
        self.page.wait_for_selector("#status-dof:not(:empty)")

    def open_sketch(self, sketch: Sketch, name: str = "A sketch") -> None:
        """Open a sketch as a card or a file would."""
        script = """async ([sketch, name]) => {
            const { store } = await import("/store.js");
            store.open(sketch, name);
            store.setView("sketch");
        }"""
        self.page.evaluate(script, [sketch.to_dict(), name])
        self.wait_for_inspection()

    def record(self) -> dict[str, Any]:
        """The open sketch as the page holds it."""
        record: dict[str, Any] = self.page.evaluate("async () => (await import('/store.js')).store.sketch")
        return record

    def sketch(self) -> Sketch:
        """The open sketch."""
        return Sketch.from_dict(self.record())

    def cards(self) -> list[Sketch]:
        """The sketches in the grid, in order of their index."""
        script = "async () => (await import('/generate.js')).results()"
        results = sorted(self.page.evaluate(script), key=lambda result: result["index"])
        return [Sketch.from_dict(result["sketch"]) for result in results]

    def pixel(self, key: str) -> Vec:
        """Where a point such as "0:start" is on the screen."""
        return self._place(f"#canvas .dot[data-key='{key}']", 0.5, 0.5)

    def stage(self, x: float, y: float) -> Vec:
        """A position of the drawing area, as shares of its width and its height, on the screen."""
        return self._place("#canvas", x, y)

    def _place(self, selector: str, x: float, y: float) -> Vec:
        box = self.page.locator(selector).bounding_box()
        if box is None:
            raise RuntimeError(f"{selector} is not shown")
        return (box["x"] + x * box["width"], box["y"] + y * box["height"])

    def drag(self, start: Vec, end: Vec, steps: int = 8) -> None:
        """Drag the pointer from one position of the screen to another."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move(*end, steps=steps)
        mouse.up()

    def wait_for_drag(self) -> None:
        """Wait until a drag has ended, with its last answer, and the sketch is inspected."""
        self.page.wait_for_selector("#canvas:not([data-dragging])")
        self.wait_for_inspection()
        self.settle()

    def message(self) -> str:
        """The message that is shown."""
        return self.page.locator("#message").inner_text().strip()

    def settle(self) -> None:
        """Wait until what was requested is drawn: two frames."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
