"""Text forms of reports: numbers with intervals, values at dotted paths, and documents as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sketchdnn.render.html import Section, Table, report_page

# An estimate in a report: value, low, high.
Interval = Mapping[str, Any]

# Of the fraction; the median gap of real sketches is 0 up to rounding.
_MAX_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Document:
    """A title, introductory paragraphs, warnings and sections; `command` is shown so that it can be copied."""

    title: str
    lead: Sequence[str]
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
    command: str = ""

    def to_html(self) -> str:
        """A self-contained web page."""
        options: dict[str, Any] = {"lead": self.lead, "warnings": self.warnings, "command": self.command}
        return report_page(self.title, self.sections, **options)

    def to_markdown(self) -> str:
        """Markdown, without plots and galleries."""
        blocks = [f"# {_escape(self.title)}", *map(_escape, self.lead)]
        if self.command:
            blocks.append(f"    {' '.join(self.command.split())}")
        blocks += [f"> **Note.** {_escape(warning)}" for warning in self.warnings]
        for section in self.sections:
            blocks += [f"## {_escape(section.title)}", *map(_escape, section.paragraphs)]
            for table in section.tables:
                blocks += _table_blocks(table)
            blocks += [f"![{name}]({name})" for name in section.pictures]
        return "\n\n".join(blocks).rstrip() + "\n"


def format_number(value: float | None, factor: float = 1.0) -> str:
    """Three or four significant digits.

    >>> format_number(28.4567), format_number(0.0123456), format_number(1234.5), format_number(None), format_number(0.0)
    ('28.5', '0.0123', '1,234', '—', '0')
    """
    if value is None:
        return "—"
    value *= factor
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
    return text.replace("-", "−")


def format_interval(estimate: Interval | None, factor: float = 1.0) -> str:
    """A value and its interval, with digits that match the width of the interval.

    >>> format_interval({"value": 28.4612, "low": 27.904, "high": 29.04})
    '28.5 (27.9 to 29.0)'
    """
    if estimate is None or estimate["value"] is None:
        return "—"
    low, high = estimate.get("low"), estimate.get("high")
    if low is None or high is None or low == high:
        return format_number(estimate["value"], factor)
    digits = min(_MAX_DIGITS, max(0, 1 - math.floor(math.log10((high - low) * factor))))
    if max(abs(low), abs(high)) * factor < 0.5 * 10**-_MAX_DIGITS:
        return "0"
    texts = [f"{end * factor:,.{digits}f}" for end in (estimate["value"], low, high)]
    return f"{texts[0]} ({texts[1]} to {texts[2]})".replace("-", "−")


def format_percent(estimate: Interval | None) -> str:
    """
    >>> format_percent({"value": 0.7823, "low": 0.77, "high": 0.79})
    '78.2 % (77.0 to 79.0)'
    """
    if estimate is None or estimate["value"] is None:
        return "—"
    low, high = estimate.get("low"), estimate.get("high")
    text = f"{100 * estimate['value']:.1f} %"
    return text if low is None or high is None else f"{text} ({100 * low:.1f} to {100 * high:.1f})"


def lookup(report: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None if the report has no such value.

    >>> lookup({"gaps": {"median": 1}}, "gaps.median"), lookup({}, "gaps.median")
    (1, None)
    """
    value: Any = report
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def _table_blocks(table: Table) -> list[str]:
    ruler = "|" + "|".join(["---"] + ["---:"] * (len(table.head) - 1)) + "|"
    head, *rows = ("| " + " | ".join(map(_escape, cells)) + " |" for cells in (table.head, *table.rows))
    caption = [f"*{_escape(table.caption)}*"] if table.caption else []
    return ["\n".join([head, ruler, *rows]), *caption]


def _escape(text: str) -> str:
    """Text from a file or a command must not become markup, end a cell or start a line."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return text
