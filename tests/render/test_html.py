"""Web pages and charts: complete, escaped and self-contained."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from sketchdnn.geometry import Circle, Line, Point, Sketch
from sketchdnn.render import figures
from sketchdnn.render.figures import bar_chart, column_chart
from sketchdnn.render.html import Card, Document, Section, Table, Thumbnails, gallery_page, render_page

HOSTILE = "<script>\x1b & $\\frac 日本"


def test_report_is_escaped() -> None:
    table = Table((HOSTILE, "n"), [(HOSTILE, "1")], caption=HOSTILE)
    thumbnails = Thumbnails([Sketch((Circle((0, 0), 1),))], [HOSTILE], HOSTILE)
    chart = bar_chart({HOSTILE: 3, "x" * 99: 1}, total=4, parts={HOSTILE: 1})
    section = Section(HOSTILE, [HOSTILE], [table], [chart, column_chart({"8": 12_345, "9": 0}, HOSTILE)], [thumbnails])
    page = Document(HOSTILE, [HOSTILE], [HOSTILE], [section], HOSTILE, {HOSTILE: HOSTILE}).to_html()
    assert not any(text in page for text in ("<script", "\x1b", "url("))
    assert (page.count("<svg"), page.rstrip()[-7:]) == (3, "</html>")
    assert page.count("&lt;script&gt;") > 10


def test_charts_are_svg_with_texts() -> None:
    chart = bar_chart({"kept": 30, "refused": 10}, total=40)
    texts = {element.text for element in ET.fromstring(chart).iter("{http://www.w3.org/2000/svg}text")}
    assert {"kept", "refused", "30 · 75 %", "10 · 25 %"} <= texts
    assert chart == bar_chart({"kept": 30, "refused": 10}, total=40)
    assert not re.search(r'\bid="', chart)  # ids of several charts would clash
    assert "12k" in column_chart({"8": 12_345}, "primitives")


def test_gallery_page_shows_all_parts_of_a_card_and_needs_all_values() -> None:
    card = Card("<svg/>", "Title", "label", "tip", ["a line"], "a <warning>", {"DXF": "a&b.dxf"}, "card-1")
    page = gallery_page("Gallery", [card], lead=["first", ""], legend="<svg/>")
    parts = "<svg/>", "<b>Title</b>", "label", 'title="tip"', "a line", "a &lt;warning&gt;", 'id="card-1"'
    assert all(part in page for part in (*parts, '<a href="a&amp;b.dxf">DXF</a>'))
    assert page.count("<header>") == 1
    with pytest.raises(Exception, match="'title' is undefined"):
        render_page("gallery.html", lead=[], cards=[])


def test_sheet_of_sketches_is_reproducible(tmp_path: Path) -> None:
    sketch = Sketch((Circle((0, 0), 1), Line((0, 0), (1, 0), construction=True), Point((0, 1))))
    pictures = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        with figures.sheet(120, 60) as (figure, axes):
            figures.draw_sketch(axes, sketch, figures.panel_of_sketch(sketch, 30, 30, 50))
            figures.draw_rule(axes, 0, 120, 30)
            pictures.append([path.read_bytes() for path in figures.save_figure(figure, folder, "sheet")])
    assert (pictures[0], len(pictures[0])) == (pictures[1], 2)
