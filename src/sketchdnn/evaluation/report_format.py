"""Text forms of reports: numbers with intervals, and values at dotted paths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# An estimate in a report: value, low, high.
Interval = Mapping[str, Any]

# Of the fraction; the median gap of real sketches is 0 up to rounding.
_MAX_DIGITS = 5


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


def format_interval(estimate: Interval | float | None, factor: float = 1.0) -> str:
    """A value and its interval, with digits that match the width of the interval; a number alone has none.

    >>> format_interval({"value": 1e-9, "low": 0.0, "high": 2e-9}), format_interval(0.25)
    ('0', '0.25')
    >>> format_interval({"value": 28.4612, "low": 27.904, "high": 29.04})
    '28.5 (27.9 to 29.0)'
    """
    if not isinstance(estimate, Mapping):
        return format_number(estimate, factor)
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
