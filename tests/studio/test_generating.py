"""The view "Generate": the sketches of the library, progress, cancel, permalinks, variations and the animation."""

import json
import math
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from benchmarks.studio_driver import Studio
from sketchdnn import SketchDNN
from sketchdnn.geometry import Sketch

pytestmark = pytest.mark.browser

STEPS = 8


def numbers(sketch: Sketch) -> list[float]:
    found: list[float] = []
    for primitive in sketch.to_dict()["primitives"]:
        for value in primitive.values():
            found += value if isinstance(value, list) else [value] if isinstance(value, float | int) else []
    return found


def assert_alike(shown: list[Sketch], expected: list[Sketch]) -> None:
    assert [[p.kind for p in sketch] for sketch in shown] == [[p.kind for p in sketch] for sketch in expected]
    for one, other in zip(shown, expected, strict=True):
        pairs = zip(numbers(one), numbers(other), strict=True)
        assert all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3) for a, b in pairs)


def test_cards_are_the_sketches_of_the_library(studio: Studio) -> None:
    studio.generate(count=3, seed=7, steps=STEPS, size="50")
    model = SketchDNN.from_pretrained()
    assert_alike(studio.cards(), model.generate(3, seed=7, steps=STEPS, size=50))
    expect(studio.page.locator("#cards-count")).to_have_text("3 results")


def test_conditions_are_met(studio: Studio) -> None:
    studio.generate(count=2, seed=3, steps=STEPS, least=8, most=9, circle=1, closed=True)
    for sketch in studio.cards():
        assert 8 <= len(sketch) <= 9
        assert sum(p["type"] == "circle" and not p["construction"] for p in sketch.to_dict()["primitives"]) == 1


def test_permalink_reproduces_the_sketches(studio: Studio, open_studio: Callable[..., Studio]) -> None:
    studio.generate(count=2, seed=11, steps=STEPS, aspect="0.5..2")
    fragment = studio.page.url.partition("#")[2]
    assert {"model=ours", "seed=11", "count=2", f"steps={STEPS}"} <= set(fragment.split("&"))
    other = open_studio(f"#{fragment}")
    other.wait_for_cards()
    assert_alike(other.cards(), studio.cards())


def test_new_seed_gives_other_sketches(studio: Studio) -> None:
    studio.generate(count=1, seed=1, steps=STEPS)
    first = studio.cards()
    studio.page.click("#reroll")
    expect(studio.page.locator("#cards-title")).not_to_have_text("Seed 1")
    studio.wait_for_cards()
    assert [s.to_dict() for s in studio.cards()] != [s.to_dict() for s in first]


def test_cancel_ends_the_job(studio: Studio) -> None:
    page = studio.page
    page.fill("#count", "64")
    page.evaluate("document.getElementById('more-conditions').open = true")
    page.fill("[name=steps]", "400")
    page.click("#generate")
    expect(page.locator("#generate-progress")).to_be_visible()
    page.click("#cancel-generate")
    expect(page.locator("#message")).to_contain_text("Canceled")
    expect(page.locator("#cancel-generate")).to_be_hidden()
    for _ in range(200):  # the batch under way ends with its step
        with urllib.request.urlopen(f"{studio.url}api/v1/health") as response:
            if json.load(response)["queue"]["running"] == 0:
                return
        page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    pytest.fail("the job still runs")


def test_variations_of_a_card(studio: Studio) -> None:
    studio.generate(count=2, seed=5, steps=STEPS)
    studio.page.click(".card[data-index='1'] [aria-label^='More like']")
    expect(studio.page.locator("#cards-title")).to_contain_text("Variations of sketch 1 of seed 5")
    studio.wait_for_cards()
    assert len(studio.cards()) == 2


def test_animation_ends_with_the_sketch(studio: Studio) -> None:
    page = studio.page
    studio.generate(count=1, seed=2, steps=STEPS)
    page.click(".card [aria-label^='Show how']")
    expect(page.locator("#trajectory-text")).to_have_text("finished")
    assert page.locator("#trajectory-picture path").count() == len(studio.cards()[0])
    page.locator("#trajectory-step").fill("0")
    expect(page.locator("#trajectory-text")).to_contain_text("step t =")
    page.keyboard.press("Escape")
    expect(page.locator("#trajectory")).to_be_hidden()


def test_errors_of_the_server_are_shown_as_their_sentence(studio: Studio) -> None:
    studio.page.fill("[name=line]", "16")
    studio.page.fill("[name=most]", "9")
    studio.page.click("#generate")
    expect(studio.page.locator("#message-alert")).to_contain_text("makes 16 primitives, more than")
    assert [fault for fault in studio.faults if "400 (Bad Request)" not in fault] == []
    studio.faults.clear()
