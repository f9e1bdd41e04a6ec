"""The palette can be told apart, the frame keeps everything inside, and dashes come out whole."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, bounds
from sketchdnn.render import PALETTE, Style, describe, frame, strokes

# Machado, Oliveira, Fernandes 2009: what the eye without its red or its green cones makes of linear RGB.
EYES = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def linear(color: str) -> np.ndarray:
    value = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(np.clip(XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883], 1e-3, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("color", PALETTE)
def test_every_color_stands_out_from_white(color: str) -> None:
    luminance = float(linear(color) @ [0.2126, 0.7152, 0.0722])
    assert 1.05 / (luminance + 0.05) >= 3  # what WCAG 2 asks of graphics


@pytest.mark.parametrize("eye", EYES)
def test_neighboring_colors_differ_to_every_eye(eye: str) -> None:
    seen = [lab(EYES[eye] @ linear(color)) for color in PALETTE]
    for a, b in itertools.pairwise([*seen, seen[0]]):
        assert np.linalg.norm(a - b) > 20


@given(sketches(), st.floats(-6, 6), st.integers(40, 900), st.integers(40, 900))
def test_everything_drawn_lies_within_the_margins(sketch: Sketch, magnitude: float, width: int, height: int) -> None:
    sketch = sketch.moved(10**magnitude)
    style = Style()
    view = frame(sketch, width, height, style)
    margin = style.margin * min(width, height)
    low, high = view.to_pixel(bounds(sketch).low), view.to_pixel(bounds(sketch).high)
    assert margin - 1e-6 <= low[0] <= high[0] <= width - margin + 1e-6
    assert margin - 1e-6 <= high[1] <= low[1] <= height - margin + 1e-6
    # and as large as it can be: it fills one direction
    assert max((high[0] - low[0]) / (width - 2 * margin), (low[1] - high[1]) / (height - 2 * margin)) == pytest.approx(
        1
    )


@given(sketches(), st.floats(-6, 6))
def test_a_frame_keeps_proportions_and_turns_y_over(sketch: Sketch, magnitude: float) -> None:
    sketch = sketch.moved(10**magnitude)
    view = frame(sketch, 300, 200, Style())
    unit = bounds(sketch).size
    x, y = view.center
    right, up = view.to_pixel((x + unit, y)), view.to_pixel((x, y + unit))
    assert right[0] - 150 == pytest.approx(view.scale * unit)
    assert 100 - up[1] == pytest.approx(view.scale * unit)


def test_a_lone_point_goes_to_the_middle() -> None:
    sketch = Sketch((Point((1e6, -1e6)),))
    assert frame(sketch, 100, 60, Style()).to_pixel((1e6, -1e6)) == (50, 30)


def test_a_small_sketch_far_away_keeps_its_precision() -> None:
    sketch = Sketch((Line((1e6, 1e6), (1e6 + 1e-3, 1e6)),))
    view = frame(sketch, 100, 100, Style(margin=0.1))
    assert view.to_pixel((1e6, 1e6))[0] == pytest.approx(10, abs=1e-4)


@given(sketches(min_size=2))
def test_every_primitive_is_one_stroke_points_last_construction_first(sketch: Sketch) -> None:
    drawn = strokes(sketch, frame(sketch, 200, 200, Style()), Style())
    assert sorted(map(id, sketch)) == sorted(id(s.primitive) for s in drawn)
    rank = [2 if isinstance(s.primitive, Point) else int(not s.primitive.construction) for s in drawn]
    assert rank == sorted(rank)
    assert all((s.dash is not None) == (r == 0) for s, r in zip(drawn, rank, strict=True))


def test_consecutive_primitives_have_different_colors() -> None:
    sketch = Sketch(tuple(Circle((i, 0), 1) for i in range(25)))
    colors = [s.color for s in strokes(sketch, frame(sketch, 200, 200, Style()), Style())]
    assert all(a != b for a, b in itertools.pairwise(colors))


@given(st.floats(1, 500), st.sampled_from(["line", "arc", "circle"]))
def test_dashes_come_out_whole(length: float, kind: str) -> None:
    primitive = {
        "line": Line((0, 0), (length, 0), construction=True),
        "arc": Arc((0, 0), length / 2, 0.3, 2.0, construction=True),
        "circle": Circle((0, 0), length / math.tau, construction=True),
    }[kind]
    sketch = Sketch((primitive, Line((-300, -300), (300, 300))))  # so that a unit is a pixel or so
    view = frame(sketch, 400, 400, Style())
    (dashed, _) = strokes(sketch, view, Style())
    assert dashed.dash is not None
    on, off = dashed.dash
    pixels = primitive.length * view.scale
    periods = pixels / (on + off) if kind == "circle" else (pixels + off) / (on + off)
    assert periods == pytest.approx(round(periods))
    assert round(periods) >= 2
    assert on <= 1.5 * Style().dash


def test_a_description_counts_each_kind() -> None:
    sketch = Sketch((Line((0, 0), (1, 0)), Line((0, 0), (0, 1), construction=True), Point((0, 0))))
    assert describe(sketch) == "2 lines, 1 point (1 dashed)"
    assert describe(Sketch(())) == "empty sketch"


def test_strokes_grow_more_slowly_than_the_picture() -> None:
    assert Style().width < Style().sized(1000).width < 1000 / 320 * Style().width


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, sketchdnn.render; print({'PIL', 'torch', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
