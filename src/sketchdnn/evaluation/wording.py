"""Numbers of a report as words, and its values as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sketchdnn.systems.autoregressive import TokenSystem
from sketchdnn.systems.registry import SYSTEMS

# An estimate as it stands in a report: value, low, high.
Interval = Mapping[str, Any]

# Key, name and factor.
SCORES: tuple[tuple[str, str, float], ...] = (
    ("fid", "FID ↓", 1.0),
    ("fid_infinity", "FID∞, extrapolated to infinite samples ↓", 1.0),
    ("kid", "KID × 1000 ↓", 1000.0),
    ("kid.standard_error", "KID × 1000, standard error", 1000.0),
    ("precision", "precision (Kynkäänniemi 2019, k = 3) ↑", 1.0),
    ("recall", "recall (Kynkäänniemi 2019, k = 3) ↑", 1.0),
    ("authors_precision", "precision (authors' variant) ↑", 1.0),
    ("authors_recall", "recall (authors' variant) ↑", 1.0),
    ("density", "density (k = 5) ↑", 1.0),
    ("coverage", "coverage (k = 5) ↑", 1.0),
)

# Systems with no noise to take away, by name: a report has a number of steps for them too, which means nothing.
_OF_TOKENS = [name for name, one in SYSTEMS.items() if issubclass(one, TokenSystem)]

# After the point; the median gap of real sketches is zero but for rounding.
_MOST_DIGITS = 5


def plain(value: Any) -> Any:
    """Anything measured, as JSON: dataclasses become objects, numbers keep six digits, what is not finite is null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def number(value: float | None, scale: float = 1.0) -> str:
    """Three or four digits that count.

    >>> number(28.4567), number(0.0123456), number(1234.5), number(None), number(0.0)
    ('28.5', '0.0123', '1,234', '—', '0')
    """
    if value is None:
        return "—"
    value *= scale
    if value == 0:
        return "0"
    size = abs(value)
    words = f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
    return words.replace("-", "−")


def interval(estimate: Interval | None, scale: float = 1.0) -> str:
    """A value and its interval, to as many digits as the interval is worth.

    >>> interval({"value": 28.4612, "low": 27.904, "high": 29.04})
    '28.5 (27.9 to 29.0)'
    """
    if estimate is None or estimate["value"] is None:
        return "—"
    low, high = estimate.get("low"), estimate.get("high")
    if low is None or high is None or low == high:
        return number(estimate["value"], scale)
    digits = min(_MOST_DIGITS, max(0, 1 - math.floor(math.log10((high - low) * scale))))
    if max(abs(low), abs(high)) * scale < 0.5 * 10**-_MOST_DIGITS:
        return "0"
    words = [f"{end * scale:,.{digits}f}" for end in (estimate["value"], low, high)]
    return f"{words[0]} ({words[1]} to {words[2]})".replace("-", "−")


def score_in_words(found: Any, factor: float = 1.0) -> str:
    """A score with its interval, or a number alone."""
    return interval(found, factor) if isinstance(found, Mapping) else number(found, factor)


def percent(estimate: Interval | None) -> str:
    """
    >>> percent({"value": 0.7823, "low": 0.77, "high": 0.79})
    '78.2 % (77.0 to 79.0)'
    """
    if estimate is None or estimate["value"] is None:
        return "—"
    low, high = estimate.get("low"), estimate.get("high")
    words = f"{100 * estimate['value']:.1f} %"
    return words if low is None or high is None else f"{words} ({100 * low:.1f} to {100 * high:.1f})"


def how_drawn(report: Mapping[str, Any]) -> str:
    """Where the sketches of a report come from."""
    if report["system"]["kind"] != "model":
        return "read from a file"
    protocol = report["protocol"]
    steps = f"with {protocol['steps']} {protocol['sampler']} steps"
    return f"drawn {'token by token' if is_of_tokens(report) else steps}, seed {protocol['sample_seed']}"


def is_of_tokens(report: Mapping[str, Any]) -> bool:
    """Whether a report is of a model that draws token by token."""
    return report["system"].get("system") in _OF_TOKENS


def at(report: Mapping[str, Any], path: str) -> Any:
    """What lies at a dotted path, None where the report has no such thing.

    >>> at({"gaps": {"median": 1}}, "gaps.median"), at({}, "gaps.median")
    (1, None)
    """
    value: Any = report
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def reference(report: Mapping[str, Any]) -> str:
    """The split that samples were compared with: "test split", or "validation split"."""
    return str(report["scores"]["test"]["reference"])
