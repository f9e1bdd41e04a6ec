"""Strokes: distinguishable colors, a frame that fits, whole dashes, and pale strokes for uncertain primitives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, bounds
from sketchdnn.render import PALETTE, Frame, Style, frame, strokes
from sketchdnn.render.raster import draw_strokes
from sketchdnn.render.style import WeightedPrimitive, blend, superposed_strokes

# Machado, Oliveira, Fernandes 2009: color blindness as matrices on linear RGB.
PROTAN = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTAN = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def linear(color: str) -> np.ndarray:
    value = np.frombuffer(bytes.fromhex(color[1:]), dtype=np.uint8) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(np.clip(XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883], 1e-3, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_colors_contrast_with_white_and_with_each_other() -> None:
    for color in PALETTE:
        luminance = float(linear(color) @ [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) >= 3  # WCAG 2 for graphics
    for eye in (np.eye(3), PROTAN, DEUTAN):
        seen = [lab(np.array(eye) @ linear(color)) for color in PALETTE]
        for a, b in itertools.pairwise([*seen, seen[0]]):
            assert np.linalg.norm(a - b) > 20


@given(sketches(), st.floats(-6, 6), st.integers(40, 900), st.integers(40, 900))
def test_frame_keeps_margins_and_proportions(sketch: Sketch, magnitude: float, width: int, height: int) -> None:
    sketch = sketch.moved(10**magnitude)
    view, margin = frame(sketch, width, height, Style()), Style().margin * min(width, height)
    low, high = view.to_pixel(bounds(sketch).low), view.to_pixel(bounds(sketch).high)
    assert margin - 1e-6 <= low[0] <= high[0] <= width - margin + 1e-6
    assert margin - 1e-6 <= high[1] <= low[1] <= height - margin + 1e-6
    # and as large as it can be: it fills one direction
    filled = max((high[0] - low[0]) / (width - 2 * margin), (low[1] - high[1]) / (height - 2 * margin))
    assert filled == pytest.approx(1)
    # Proportions are kept, and y is flipped.
    (x, y), unit = view.center, bounds(sketch).size
    right, up = view.to_pixel((x + unit, y)), view.to_pixel((x, y + unit))
    assert right[0] - width / 2 == pytest.approx(view.scale * unit)
    assert height / 2 - up[1] == pytest.approx(view.scale * unit)


def test_frame_of_a_point_and_of_a_sketch_far_from_the_origin() -> None:
    sketch = Sketch((Point((1e6, -1e6)),))
    assert frame(sketch, 100, 60, Style()).to_pixel((1e6, -1e6)) == (50, 30)
    sketch = Sketch((Line((1e6, 1e6), (1e6 + 1e-3, 1e6)),))
    view = frame(sketch, 100, 100, Style(margin=0.1))
    assert view.to_pixel((1e6, 1e6))[0] == pytest.approx(10, abs=1e-4)


@given(sketches(min_size=2))
def test_painting_order(sketch: Sketch) -> None:
    drawn = strokes(sketch, frame(sketch, 200, 200, Style()), Style())
    assert sorted(map(id, sketch)) == sorted(id(s.primitive) for s in drawn)
    rank = [2 if isinstance(s.primitive, Point) else int(not s.primitive.construction) for s in drawn]
    assert rank == sorted(rank)
    assert [s.dash is not None for s in drawn] == [r == 0 for r in rank]
    # Primitives that are certain look the same.
    certain = [WeightedPrimitive(primitive, 1.0, row) for row, primitive in enumerate(sketch)]
    assert list(superposed_strokes(certain, frame(sketch, 200, 200, Style()), Style())) == drawn


def test_consecutive_colors_differ_and_strokes_grow_with_the_picture() -> None:
    sketch = Sketch(tuple(Circle((i, 0), 1) for i in range(25)))
    colors = [s.color for s in strokes(sketch, frame(sketch, 200, 200, Style()), Style())]
    assert all(a != b for a, b in itertools.pairwise(colors))
    assert Style().width < Style().sized(1000).width < 1000 / 320 * Style().width  # slower than the picture


@given(st.floats(1, 500), st.sampled_from(["line", "arc", "circle"]))
def test_dashes_are_whole(length: float, kind: str) -> None:
    arc, circle = Arc((0, 0), length / 2, 0.3, 2.0, True), Circle((0, 0), length / math.tau, True)
    primitive = {"line": Line((0, 0), (length, 0), True), "arc": arc, "circle": circle}[kind]
    sketch = Sketch((primitive, Line((-300, -300), (300, 300))))  # so that a unit is a pixel or so
    view = frame(sketch, 400, 400, Style())
    (dashed, _) = strokes(sketch, view, Style())
    on, off = dashed.dash
    pixels = primitive.length * view.scale
    periods = pixels / (on + off) if kind == "circle" else (pixels + off) / (on + off)
    assert periods == pytest.approx(max(2, round(periods)))
    assert on <= 1.5 * Style().dash


STYLE = Style()
VIEW = Frame(64, 64, (0.0, 0.0), 20.0)


@given(st.lists(st.integers(1, 10), min_size=2, unique=True))
def test_probable_primitives_are_darker_and_on_top(tenths: list[int]) -> None:
    probabilities = [each / 10 for each in tenths]
    items = [WeightedPrimitive(Circle((0, 0), 0.1 + p), p, 0) for p in probabilities]
    drawn = list(superposed_strokes(items, VIEW, STYLE))
    assert [stroke.primitive for stroke in drawn] == [Circle((0, 0), 0.1 + p) for p in sorted(probabilities)]
    darkness = [1 - sum(bytes.fromhex(stroke.color[1:])) / (3 * 255) for stroke in drawn]
    assert darkness == sorted(set(darkness))
    assert darkness[-1] <= 1 - sum(bytes.fromhex(STYLE.palette[0][1:])) / (3 * 255)


def test_color_follows_the_row_and_improbable_and_huge_primitives_are_not_drawn() -> None:
    rows = (Line((0, 0), (1, 0)), 3), (Circle((0, 0), 1), 3), (Circle((0, 0), 2), 4)
    line, circle, other = superposed_strokes([WeightedPrimitive(p, 0.5, row) for p, row in rows], VIEW, STYLE)
    assert line.color == circle.color != other.color
    for probability in (0.0, 0.01, math.nan):
        assert not list(superposed_strokes([WeightedPrimitive(Circle((0, 0), 1), probability, 0)], VIEW, STYLE))
    arcs = [Arc((0, 0), radius, 0.0, 6.0, construction=True) for radius in (1.0, 1e3, 1e9, 1e12)]
    items = [WeightedPrimitive(arc, 0.9, 0) for arc in arcs]  # the dashes of a huge arc would be too many
    draw_strokes(superposed_strokes(items, VIEW, STYLE), VIEW, STYLE)
    assert len(list(superposed_strokes(items, VIEW, STYLE))) == 1


@given(st.floats(0, 1))
def test_blend(share: float) -> None:
    assert blend("#0072b2", "#0072b2", share) == "#0072b2"
    red, green, blue = bytes.fromhex(blend("#000000", "#ffffff", share)[1:])
    assert red == green == blue == pytest.approx(255 * (1 - share), abs=0.51)
