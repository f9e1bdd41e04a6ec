"""Bars as inline SVG: all the plots that the report needs, in colors that follow the page's."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_ROW, _GAP = 22, 6
_WIDTH, _NUMBERS, _LETTER = 640, 100, 7.3
_COLUMN_HEIGHT, _COLUMN_GAP = 150, 0.18


def bars(values: Mapping[str, int], *, of: int | None = None, parts: Mapping[str, int] | None = None) -> str:
    """A horizontal bar for each name, longest value full width; `parts` are shown darker within their bars.

    `of` is what percentages are taken of.
    """
    if not values:
        return "<p class=soft>none</p>"
    most = max(values.values()) or 1
    labels = 12 + _LETTER * max(len(_short(name)) for name in values)
    longest = _WIDTH - _NUMBERS - labels
    rows = []
    for index, (name, value) in enumerate(values.items()):
        y = index * (_ROW + _GAP)
        length = longest * value / most
        share = f" · {_percent(value, of)}" if of else ""
        rows.append(
            f'<text class=name x="{labels - 8:.0f}" y="{y + 15}" text-anchor="end">{escape(_short(name))}'
            f"<title>{escape(name)}</title></text>"
            f'<rect class=bar x="{labels:.0f}" y="{y}" width="{max(1.0, length):.1f}" height="{_ROW}" rx="2"/>'
        )
        if parts and parts.get(name):
            rows.append(
                f'<rect class=part x="{labels:.0f}" y="{y}" width="{max(1.0, longest * parts[name] / most):.1f}" '
                f'height="{_ROW}" rx="2"/>'
            )
        rows.append(f'<text x="{labels + length + 8:.1f}" y="{y + 15}">{value:,}{share}</text>')
    height = len(values) * (_ROW + _GAP)
    return f'<svg class=plot viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(rows)}</svg>'


def columns(values: Mapping[str, int], axis: str) -> str:
    """A histogram: a column for each name, in the order given."""
    if not values:
        return "<p class=soft>none</p>"
    most = max(values.values()) or 1
    step = max(26.0, min(64.0, 660 / len(values)))
    left, bottom = 12, 22 + _COLUMN_HEIGHT
    drawn = []
    for index, (name, value) in enumerate(values.items()):
        x, height = left + index * step, _COLUMN_HEIGHT * value / most
        middle = x + step / 2
        drawn.append(
            f'<rect class=bar x="{x + step * _COLUMN_GAP / 2:.1f}" y="{bottom - height:.1f}" '
            f'width="{step * (1 - _COLUMN_GAP):.1f}" height="{max(1.0, height):.1f}" rx="2">'
            f"<title>{escape(name)}: {value:,}</title></rect>"
            f'<text class=small x="{middle:.1f}" y="{bottom - height - 5:.1f}" text-anchor="middle">'
            f"{_compact(value)}</text>"
            f'<text class=small x="{middle:.1f}" y="{bottom + 16}" text-anchor="middle">'
            f"{escape(name)}</text>"
        )
    width = left * 2 + len(values) * step
    drawn.append(
        f'<text class="small soft" x="{width / 2:.1f}" y="{bottom + 36}" text-anchor="middle">{escape(axis)}</text>'
    )
    return (
        f'<svg class=plot style="max-width:{width:.0f}px" viewBox="0 0 {width:.0f} {bottom + 42}" '
        f'role="img">{"".join(drawn)}</svg>'
    )


def _percent(value: int, of: int) -> str:
    share = 100 * value / of
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %" if share >= 0.1 else "< 0.1 %"


def _compact(value: int) -> str:
    """A number short enough to stand on a column.

    >>> _compact(950), _compact(12_345), _compact(4_100_000)
    ('950', '12k', '4.1M')
    """
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.0f}{unit}" if scaled >= 10 else f"{scaled:.1f}{unit}"
    return str(value)


def _short(name: str, longest: int = 38) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
