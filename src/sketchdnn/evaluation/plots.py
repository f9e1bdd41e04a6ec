"""The report's plots as inline SVG, in colors that follow the page's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 860
_PANEL_HEIGHT, _PANEL_GAP = 190, 34
_LEFT, _TOP, _BOTTOM = 44, 30, 46


@dataclass(frozen=True, slots=True)
class Curve:
    """Values at named places, in order; None where there is none."""

    name: str
    places: Sequence[str]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves side by side over one scale, and a level to compare them with."""

    title: str
    curves: Sequence[Curve]
    level: float | None = None
    level_name: str = ""


def panels(shown: Sequence[Panel]) -> str:
    """A row of panels: what each measure makes of growing damage, with the system's own score as a dashed line."""
    if not shown:
        return ""
    width = (_WIDTH - _PANEL_GAP * (len(shown) - 1)) / len(shown)
    drawn = [_panel(panel, index * (width + _PANEL_GAP), width) for index, panel in enumerate(shown)]
    height = _TOP + _PANEL_HEIGHT + _BOTTOM
    return f'<svg class="plot" viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(drawn)}</svg>'


def paired_columns(
    first: Mapping[str, float], second: Mapping[str, float], names: tuple[str, str], axis: str, width: int = _WIDTH
) -> str:
    """Two distributions beside each other: a pair of columns for each name, as shares."""
    places = list(dict.fromkeys([*first, *second]))
    most = max([*first.values(), *second.values(), 1e-12])
    height, bottom = 130, 160
    step = width / max(1, len(places))
    column = min(28.0, step * 0.36)
    parts = []
    for index, place in enumerate(places):
        middle = (index + 0.5) * step
        for offset, kind, values in ((-column - 1, "mine", first), (1, "theirs", second)):
            value = values.get(place, 0.0)
            tall = max(0.5, height * value / most)
            parts.append(
                f'<rect class="{kind}" x="{middle + offset:.1f}" y="{bottom - tall:.1f}" width="{column:.1f}" '
                f'height="{tall:.1f}" rx="1.5"><title>{escape(place)}: {100 * value:.1f} %</title></rect>'
            )
            parts.append(
                f'<text class="tiny" x="{middle + offset + column / 2:.1f}" y="{bottom - tall - 4:.1f}" '
                f'text-anchor="middle">{_percent(value)}</text>'
            )
        parts.append(_text(middle, bottom + 16, place, "small"))
    parts.append(f'<line class="axis" x1="0" y1="{bottom}" x2="{width}" y2="{bottom}"/>')
    parts.append(_text(width / 2, bottom + 36, axis, "small soft"))
    after = 30 + 7 * len(names[0])
    key = (
        f'<rect class="mine" x="0" y="0" width="10" height="10" rx="2"/>{_text(15, 9, names[0], "small", "start")}'
        f'<rect class="theirs" x="{after}" y="0" width="10" height="10" rx="2"/>'
        f"{_text(after + 15, 9, names[1], 'small', 'start')}"
    )
    return (
        f'<svg class="plot" style="max-width:{width}px" viewBox="0 0 {width} {bottom + 42}" role="img">'
        f"{key}{''.join(parts)}</svg>"
    )


def _panel(panel: Panel, x: float, width: float) -> str:
    values = [value for curve in panel.curves for value in curve.values if math.isfinite(value)]
    if panel.level is not None and math.isfinite(panel.level):
        values.append(panel.level)
    low, high = min([0.0, *values]), max([*values, 1e-12])
    high += 0.06 * (high - low)
    left, right = x + _LEFT, x + width

    def height_of(value: float) -> float:
        return _TOP + _PANEL_HEIGHT * (1 - (value - low) / (high - low))

    parts = [_text(x, 14, panel.title, "strong", "start")]
    for tick in _ticks(low, high):
        y = height_of(tick)
        parts.append(f'<line class="grid" x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:,g}", "small soft", "end"))
    total = sum(len(curve.places) for curve in panel.curves)
    step = (right - left) / max(1, total)
    place = 0
    for number, curve in enumerate(panel.curves):
        spots = [(left + (place + i + 0.5) * step, height_of(v)) for i, v in enumerate(curve.values)]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in spots)
        parts.append(f'<polyline class="curve c{number}" points="{line}"/>')
        for (px, py), name, value in zip(spots, curve.places, curve.values, strict=True):
            parts.append(
                f'<circle class="dot c{number}" cx="{px:.1f}" cy="{py:.1f}" r="3.2">'
                f"<title>{escape(curve.name)} {escape(name)}: {value:.4g}</title></circle>"
            )
            parts.append(_text(px, _TOP + _PANEL_HEIGHT + 15, name, "tiny"))
        middle = left + (place + len(curve.places) / 2) * step
        parts.append(_text(middle, _TOP + _PANEL_HEIGHT + 33, curve.name, f"small t{number}"))
        place += len(curve.places)
    if panel.level is not None and math.isfinite(panel.level):
        y = height_of(panel.level)
        parts.append(f'<line class="level" x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>')
        name = panel.level_name if len(panel.level_name) <= 14 else panel.level_name[:13] + "…"
        # Beside the title, where it cannot lie on a curve.
        parts.append(_text(right, 14, f"- - {name}", "small level-name", "end"))
    bottom = _TOP + _PANEL_HEIGHT
    parts.append(f'<line class="axis" x1="{left:.1f}" y1="{bottom}" x2="{right:.1f}" y2="{bottom}"/>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """A handful of round numbers.

    >>> _ticks(0.0, 47.0)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.8)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _percent(share: float) -> str:
    """
    >>> _percent(0.123), _percent(0.004), _percent(0)
    ('12', '0.4', '0')
    """
    return f"{100 * share:.0f}" if share >= 0.0995 or not share else f"{100 * share:.1f}"


def _text(x: float, y: float, words: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
