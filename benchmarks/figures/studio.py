"""Screenshots of every view of the studio: the real page in Chromium, against a real server with the shipped model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import Browser

from benchmarks.studio_driver import Studio, browsing, serving
from sketchdnn.drawing import PHOTO, draw
from sketchdnn.geometry import Arc, Circle, Line, Sketch, Vec, bounds
from sketchdnn.io import atomic_write
from sketchdnn.representation import encode

Scheme = Literal["light", "dark"]
DESKTOP, PHONE = (1280, 720), (390, 844)
# Colors of a picture: interfaces have few.
_COLORS = 256
# An open outline, as a person would draw it to have it completed.
OUTLINE = Sketch((Line((0, 40), (0, 0)), Line((0, 0), (80, 0)), Line((80, 0), (80, 25))), units="mm")

# A bracket, as a person would draw it on paper.
BRACKET = Sketch(
    (
        Line((0, 0), (80, 0)),
        Line((80, 0), (80, 30)),
        Arc((60, 30), 20, 0, math.pi / 2),
        Line((60, 50), (0, 50)),
        Line((0, 50), (0, 0)),
        Circle((58, 28), 9),
        Circle((18, 25), 6),
    ),
    units="mm",
)
_PHOTO_SIDE = 900
# Of a photo that is traced well; docs/tracing.md has the share of those that are.
_PHOTO_SEED = 24


def write_studio(out: Path, program: str = "/usr/bin/chromium") -> Iterator[Path]:
    """Write a PNG of each view; yields the paths as they are written."""
    with serving() as url, browsing(program) as browser:
        views: list[tuple[str, Callable[[Studio], Iterator[str]], tuple[int, int], Scheme]] = [
            ("", _desktop_views, DESKTOP, "light"),
            ("dark-", _main_views, DESKTOP, "dark"),
            ("phone-", _main_views, PHONE, "light"),
            ("phone-dark-", _main_views, PHONE, "dark"),
        ]
        for prefix, visit, size, scheme in views:
            studio = _open(browser, url, size, scheme)
            for name in visit(studio):
                yield write_picture(studio, out / f"{prefix}{name}.png")
            studio.page.context.close()


def _open(browser: Browser, url: str, size: tuple[int, int], scheme: Scheme) -> Studio:
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    return Studio(context.new_page(), url).open()


def write_picture(studio: Studio, path: Path) -> Path:
    """Write what the page shows, without the message of the last step; with few colors, unless it shows a photo."""
    studio.settle()
    with Image.open(BytesIO(studio.page.screenshot())) as image:
        small = image.convert("RGB")
    if not studio.page.locator("#trace-figure image").is_visible():
        small = small.quantize(_COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    with atomic_write(path) as temporary:
        small.save(temporary, format="png", optimize=True)
    if studio.faults:
        raise RuntimeError(f"{path.name}: {studio.faults}")
    return path


def _main_views(studio: Studio) -> Iterator[str]:
    """The views with which a person spends the most time; yields the name of each as it is shown."""
    page = studio.page
    is_phone = (page.viewport_size or {"width": 0})["width"] == PHONE[0]
    studio.generate(count=12, seed=1)
    hush(studio)
    if is_phone:
        page.evaluate("document.getElementById('results').scrollIntoView()")
    yield "generate"
    studio.open_card(5)
    _auto_constrain(studio)
    if is_phone:
        page.click("#tab-constrain")
        page.click("#fit")
    else:
        page.click("#tab-inspect")
        page.locator("#primitive-list [data-focus=p2]").click()
        page.evaluate("document.getElementById('panel-inspect').scrollTop = 0")
    yield "sketch"
    studio.open_sketch(OUTLINE, "Open outline")
    _complete(studio)
    yield "complete"
    _trace(studio)
    yield "trace"


def _desktop_views(studio: Studio) -> Iterator[str]:
    page = studio.page
    yield from _main_views(studio)
    yield from _freehand(studio)
    studio.open_sketch(OUTLINE, "Open outline")
    _complete(studio)
    page.locator("#completions .tile-main").first.click()
    studio.wait_for_inspection()
    page.click("#tab-constrain")
    page.click("#constrain")
    page.locator("#alternatives .tile-main", has_text="fully constrained").first.hover()
    hush(studio)
    yield "constrain"
    page.locator("#alternatives .tile-main", has_text="fully constrained").first.click()
    studio.wait_for_inspection()
    hush(studio)
    page.click("#tab-inspect")
    page.locator(".dimension text").first.dblclick()
    yield "dimension"
    page.keyboard.press("Escape")
    yield from _drawing(studio)
    gap = Sketch((*OUTLINE.primitives[:2], Line((80, 0.6), (80, 40)), Line((80, 40), (0, 40))), units="mm")
    studio.open_sketch(gap, "Outline with a gap")
    page.click("#tab-repair")
    page.click("#repair")
    page.locator("#accept-repair").wait_for()
    yield "repair"
    page.click("#export")
    page.check("[name=format][value=fcstd]")
    yield "export"
    page.keyboard.press("Escape")
    page.click("#help-open")
    yield "help"
    page.keyboard.press("Escape")
    page.click("#view-generate")
    page.click(".card[data-index='3'] [aria-label^='Show how']")
    page.locator("#trajectory-controls").wait_for()
    slider = page.locator("#trajectory-step")
    slider.fill(str(round(0.45 * int(slider.get_attribute("max") or "0"))))
    yield "animation"
    page.keyboard.press("Escape")


def _drawing(studio: Studio) -> Iterator[str]:
    """A chain of lines while it is drawn, the pointer on a guide."""
    page = studio.page
    page.click("#new")
    page.keyboard.press("l")
    for x, y in ((0.25, 0.75), (0.7, 0.75), (0.7, 0.35)):
        page.mouse.move(*studio.stage(x, y), steps=2)
        page.mouse.down()
        page.mouse.up()
    page.mouse.move(*studio.stage(0.42, 0.352), steps=4)
    yield "draw"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")


def _trace(studio: Studio) -> None:
    """A photo of a drawing, traced."""
    page = studio.page
    page.click("#view-sketch")
    page.locator("#picture").set_input_files(
        {"name": "bracket.jpg", "mimeType": "image/jpeg", "buffer": photo(BRACKET)}
    )
    page.wait_for_selector("#trace-figure svg")
    studio.wait_for_inspection()
    hush(studio)


def photo(sketch: Sketch, seed: int = _PHOTO_SEED) -> bytes:
    """A photo of a drawing by hand on paper, as a JPEG."""
    (low_x, low_y), (high_x, high_y) = bounds(sketch).low, bounds(sketch).high
    middle = (-(low_x + high_x) / 2, -(low_y + high_y) / 2)
    rows = encode([sketch.moved(1.0, middle).moved(2 / bounds(sketch).size)])
    tensors = (torch.from_numpy(rows.kind.astype(np.int64)), torch.from_numpy(rows.construction))
    generator = torch.Generator().manual_seed(seed)
    gray = draw(*tensors, torch.from_numpy(rows.params), replace(PHOTO, size=_PHOTO_SIDE), generator).gray[0]
    content = BytesIO()
    Image.fromarray((255 * gray.numpy()).round().astype(np.uint8)).save(content, format="jpeg", quality=90)
    return content.getvalue()


def _freehand(studio: Studio) -> Iterator[str]:
    """Strokes by hand before they are traced."""
    page = studio.page
    page.click("#new")
    page.click("[data-tool=freehand]")
    corners = [studio.stage(x, y) for x, y in ((0.2, 0.3), (0.78, 0.28), (0.8, 0.75), (0.21, 0.76))]
    for number, corner in enumerate(corners):
        end = corners[(number + 1) % len(corners)]
        _stroke(studio, [_between(corner, end, k / 30, 4 * math.sin(k / 9 + 2 * number)) for k in range(31)])
    x, y = studio.stage(0.42, 0.52)
    turns = [0.3 + math.tau * k / 50 for k in range(51)]
    _stroke(studio, [(x + 66 * math.cos(a), y + 62 * math.sin(a)) for a in turns])
    yield "freehand"
    page.keyboard.press("Escape")


def _between(start: Vec, end: Vec, share: float, off: float) -> Vec:
    """A place on the way, moved across it."""
    (a, b), (c, d) = start, end
    length = math.dist(start, end)
    return (a + (c - a) * share - off * (d - b) / length, b + (d - b) * share + off * (c - a) / length)


def _stroke(studio: Studio, places: list[Vec]) -> None:
    mouse = studio.page.mouse
    mouse.move(*places[0])
    mouse.down()
    for place in places[1:]:
        mouse.move(*place)
    mouse.up()


def _auto_constrain(studio: Studio) -> None:
    page = studio.page
    page.click("#tab-constrain")
    page.click("#constrain")
    page.locator("#alternatives .tile-main", has_text="Rounded").or_(
        page.locator("#alternatives .tile-main", has_text="fully constrained")
    ).last.click()
    studio.wait_for_inspection()
    hush(studio)


def _complete(studio: Studio) -> None:
    page = studio.page
    page.click("#tab-complete")
    page.click("#complete")
    page.wait_for_selector("#completions[aria-busy=false] .tile:not(.waiting)")
    page.locator("#completions .tile-main").first.hover()


def hush(studio: Studio) -> None:
    """Hide the message of the last step."""
    studio.page.evaluate("document.getElementById('message').hidden = true")
