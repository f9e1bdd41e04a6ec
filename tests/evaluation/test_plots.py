"""Plots show what they are given: nothing overlaps or leaves its panel, and a larger value stands higher."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from sketchdnn.evaluation.plots import Curve, Panel, _ticks, paired_columns, panels


def found(svg: str, kind: str) -> list[dict[str, str]]:
    """Attributes of every element of a class, with its words."""
    words = {"words": ""}
    return [
        {**words, **e.attrib, "words": "".join(e.itertext())}
        for e in ET.fromstring(svg).iter()
        if kind in e.attrib.get("class", "").split()
    ]


def number(element: dict[str, str], name: str) -> float:
    return float(element[name])


@pytest.mark.parametrize("count", [1, 2, 16, 60])
def test_columns_stand_side_by_side_within_the_plot(count: int) -> None:
    first = {f"n{i}": (i + 1) / count for i in range(count)}
    svg = paired_columns(first, dict.fromkeys(first, 0.5), ("ours", "theirs"), "size", width=600)
    columns = [*found(svg, "mine")[1:], *found(svg, "theirs")[1:]]  # but for the key
    assert len(columns) == 2 * count
    spans = sorted((number(c, "x"), number(c, "x") + number(c, "width")) for c in columns)
    assert spans[0][0] >= 0
    assert spans[-1][1] <= 600
    assert all(end <= begin + 0.2 for (_, end), (begin, _) in pairwise(spans))
    assert all(0.3 * 600 / count < end - begin <= 28 or end - begin == 28 for begin, end in spans)


def test_larger_shares_are_taller_and_stand_on_the_axis() -> None:
    svg = paired_columns({"a": 0.1, "b": 0.4}, {"a": 0.2}, ("ours", "theirs"), "kind of thing")
    (axis,) = found(svg, "axis")
    heights = {}
    for kind in ("mine", "theirs"):
        for column in found(svg, kind)[1:]:
            assert number(column, "y") + number(column, "height") == pytest.approx(number(axis, "y1"), abs=0.11)
            heights[kind, column["words"]] = number(column, "height")
    tallest = heights["mine", "b: 40.0 %"]
    assert heights["mine", "a: 10.0 %"] == pytest.approx(tallest / 4, abs=0.1)
    assert heights["theirs", "a: 20.0 %"] == pytest.approx(tallest / 2, abs=0.1)
    assert heights["theirs", "b: 0.0 %"] == 0.5  # a trace
    names = {e["words"]: number(e, "y") for e in found(svg, "small")}
    assert number(axis, "y1") < names["a"] == names["b"] < names["kind of thing"]


@pytest.mark.parametrize("values", [(1.0, 2.0, 8.0), (-3.0, 0.0, 4.0), (0.0, 0.0, 0.0), (-5.0, -2.0, -1.0)])
def test_dots_lie_in_their_panel_over_their_names(values: tuple[float, ...]) -> None:
    one = Panel("FID", [Curve("jitter", ["1", "2", "3"], values), Curve("drop", ["x"], [values[1]])], values[1], "ours")
    svg = panels([one, one])
    axes = found(svg, "axis")
    assert len(axes) == 2
    for axis, dots, labels in ((axes[0], found(svg, "dot")[:4], found(svg, "tiny")[:4]),
                               (axes[1], found(svg, "dot")[4:], found(svg, "tiny")[4:])):  # fmt: skip
        left, right, bottom = (number(axis, name) for name in ("x1", "x2", "y1"))
        xs = [number(dot, "cx") for dot in dots]
        assert left < xs[0] < xs[1] < xs[2] < xs[3] < right
        assert xs[0] - left == pytest.approx(right - xs[3], abs=0.2)
        assert xs == [number(label, "x") for label in labels]
        ys = [number(dot, "cy") for dot in dots]
        assert all(31 < y <= bottom for y in ys), "below the top, which the title needs"
        assert ys[:3] == sorted(ys[:3], reverse=True)
        assert (ys[2] < 45) or values[2] <= 0, "the largest nearly reaches the top"
    level = found(svg, "level")[0]
    assert number(level, "y1") == number(level, "y2") == number(found(svg, "dot")[1], "cy")


@pytest.mark.parametrize(("low", "high"), [(0, 47), (0, 1), (-3, 4), (-200, -50), (0.3, 9.9), (0, 8.1e5)])
def test_ticks_are_a_handful_of_round_numbers(low: float, high: float) -> None:
    ticks = _ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert low <= ticks[0] < ticks[-1] <= high
    step = ticks[1] - ticks[0]
    assert f"{step:.6e}"[:8] in ("1.000000", "2.000000", "5.000000")
    assert [b - a for a, b in pairwise(ticks)] == pytest.approx([step] * (len(ticks) - 1))
    # No room for another at either end.
    assert ticks[0] - step < low
    assert ticks[-1] + step > high
