"""Galleries hold every sketch and caption, whatever the captions say."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import assert_self_contained
from support.strategies import sketches

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.render import gallery_html, gallery_png, gallery_svg, png

SVG = "{http://www.w3.org/2000/svg}"
DISC = Sketch((Circle((0, 0), 1),))
BAR = Sketch((Line((0, 0), (1, 0)),))


@given(st.lists(sketches(max_size=4), min_size=1, max_size=7), st.integers(1, 9))
def test_svg_and_png_have_one_size(items: list[Sketch], columns: int) -> None:
    root = ET.fromstring(gallery_svg(items, columns=columns, cell=60))
    assert gallery_png(items, columns=columns, cell=60).size == (int(root.attrib["width"]), int(root.attrib["height"]))
    assert len(root.findall(f"{SVG}g")) == len(items)


def test_cards_fill_rows() -> None:
    root = ET.fromstring(gallery_svg([DISC] * 5, columns=3, cell=100))
    corners = [tuple(map(int, re.findall(r"\d+", g.attrib["transform"]))) for g in root.findall(f"{SVG}g")]
    xs, ys = (sorted({corner[axis] for corner in corners}) for axis in (0, 1))
    assert corners == [(xs[0], ys[0]), (xs[1], ys[0]), (xs[2], ys[0]), (xs[0], ys[1]), (xs[1], ys[1])]
    assert min(*np.diff(xs), *np.diff(ys)) > 100
    # A card shows the picture of its sketch.
    root = ET.fromstring(gallery_svg([BAR, DISC], columns=2, cell=100))
    x, y = (int(n) for n in re.findall(r"\d+", root.findall(f"{SVG}g")[1].attrib["transform"]))
    card = gallery_png([BAR, DISC], columns=2, cell=100).crop((x + 4, y + 4, x + 96, y + 96))
    assert card.tobytes() == png(DISC, 100).crop((4, 4, 96, 96)).tobytes()


def test_card_of_an_empty_sketch_says_so_or_shows_its_caption() -> None:
    empty = Sketch(())
    assert "empty sketch" in gallery_svg([empty])
    captioned = gallery_svg([empty, DISC], captions=["no further idea", "disc"])
    assert "empty sketch" not in captioned
    assert "no further idea" in captioned
    card = gallery_png([empty, DISC], columns=2, cell=100, captions=["no", "disc"]).crop((10, 10, 90, 90))
    assert np.ptp(np.asarray(card), axis=(0, 1)).tolist() == [0, 0, 0]


@given(st.text(max_size=60))
def test_hostile_captions_are_escaped(caption: str) -> None:
    hostile = f"<script>&\"'{caption}]]>"
    ET.fromstring(gallery_svg([DISC], captions=[hostile]))
    gallery_png([DISC], captions=[hostile], cell=60)
    page = gallery_html([DISC], captions=[hostile], title=hostile, subtitle=hostile)
    assert "<script" not in page


def test_long_captions_are_cut_and_their_number_is_checked() -> None:
    texts = ET.fromstring(gallery_svg([DISC, DISC], captions=["washer 12", "w" * 500])).iter(f"{SVG}text")
    short, long = [element.text or "" for element in texts]
    assert (short, len(long) < 60, long[-1]) == ("washer 12", True, "…")
    for draw in (gallery_svg, gallery_png, gallery_html):
        with pytest.raises(ValueError, match="1 captions for 2 sketches"):
            draw([DISC, DISC], captions=["one"])


def test_empty_gallery_is_drawn_and_too_large_one_refused() -> None:
    for items in ([], [Sketch(())]):
        assert "empty sketch" in gallery_svg(items)
        assert "empty sketch" in gallery_html(items)
        assert gallery_png(items).size[0] > 100
    with pytest.raises(SketchError, match="SVG or HTML"):
        gallery_png([DISC] * 100_000)


def test_page_is_complete_and_self_contained() -> None:
    assert "repeat(1, minmax(0, 300px))" in gallery_html([DISC], cell=300)
    page = assert_self_contained(gallery_html([DISC, BAR, DISC], title="Parts", columns=2))
    assert (page.tags.count("svg"), page.tags.count("figcaption"), page.addresses) == (3, 3, [])
