"""What may be there: pale if unlikely, below what is likelier, and as in any picture once it is certain."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.geometry import Arc, Circle, Line, Sketch
from sketchdnn.render import Frame, Style, frame, strokes
from sketchdnn.render.raster import draw_strokes
from sketchdnn.render.style import WeightedPrimitive, blend, superposed_strokes

STYLE = Style()
VIEW = Frame(64, 64, (0.0, 0.0), 20.0)


def ink(color: str) -> float:
    """0 for white, 1 for black."""
    return 1 - sum(bytes.fromhex(color[1:])) / (3 * 255)


@given(sketches())
def test_what_is_certain_looks_as_a_sketch_does(sketch: Sketch) -> None:
    view = frame(sketch, 100, 100, STYLE)
    certain = [WeightedPrimitive(primitive, 1.0, row) for row, primitive in enumerate(sketch)]
    assert list(superposed_strokes(certain, view, STYLE)) == strokes(sketch, view, STYLE)


@given(st.lists(st.integers(1, 10), min_size=2, unique=True))
def test_the_likelier_has_more_ink_and_lies_on_top(tenths: list[int]) -> None:
    chances = [each / 10 for each in tenths]
    items = [WeightedPrimitive(Circle((0, 0), 0.1 + chance), chance, 0) for chance in chances]
    drawn = list(superposed_strokes(items, VIEW, STYLE))
    assert [stroke.primitive for stroke in drawn] == [Circle((0, 0), 0.1 + chance) for chance in sorted(chances)]
    darkness = [ink(stroke.color) for stroke in drawn]
    assert darkness == sorted(set(darkness))
    assert darkness[-1] <= ink(STYLE.palette[0])


def test_a_row_keeps_its_color_whatever_it_is_read_as() -> None:
    items = [
        WeightedPrimitive(Line((0, 0), (1, 0)), 0.5, 3),
        WeightedPrimitive(Circle((0, 0), 1), 0.5, 3),
        WeightedPrimitive(Circle((0, 0), 2), 0.5, 4),
    ]
    line, circle, other = superposed_strokes(items, VIEW, STYLE)
    assert line.color == circle.color != other.color


@pytest.mark.parametrize("chance", [0.0, 0.01, float("nan")])
def test_what_is_hardly_there_is_not_drawn(chance: float) -> None:
    assert not list(superposed_strokes([WeightedPrimitive(Circle((0, 0), 1), chance, 0)], VIEW, STYLE))


def test_what_is_beyond_measure_takes_no_time() -> None:
    """Noise may make an arc of a radius that no picture holds; its dashes would never end."""
    items = [
        WeightedPrimitive(Arc((0, 0), radius, 0.0, 6.0, construction=True), 0.9, 0) for radius in (1.0, 1e3, 1e9, 1e12)
    ]
    begun = time.perf_counter()
    draw_strokes(superposed_strokes(items, VIEW, STYLE), VIEW, STYLE)
    assert time.perf_counter() - begun < 2
    assert len(list(superposed_strokes(items, VIEW, STYLE))) == 1


@given(st.floats(0, 1))
def test_a_mix_lies_between(share: float) -> None:
    assert blend("#0072b2", "#0072b2", share) == "#0072b2"
    red, green, blue = bytes.fromhex(blend("#000000", "#ffffff", share)[1:])
    assert red == green == blue == pytest.approx(255 * (1 - share), abs=0.51)
