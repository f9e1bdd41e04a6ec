"""Lengths, ranges and numbers of kinds as people write them. What cannot be read is a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from sketchdnn.errors import SketchError

from .primitives import Kind
from .sketch import MM_PER_UNIT

_KINDS = ", ".join(kind.label for kind in Kind)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def length(words: str, option: str = "--size", units: str = "mm") -> tuple[float, str]:
    """A number and its unit; `units` if none is written.

    >>> length("4in"), length("120")
    ((4.0, 'in'), (120.0, 'mm'))
    """
    default = units
    match = re.fullmatch(r"\s*+([0-9.eE+-]++)\s*+([a-z]*+)\s*+", words)
    try:
        number, units = float(match[1]), match[2] or default  # type: ignore[index]
    except (TypeError, ValueError):
        number, units = math.nan, ""
    if not (0 < number < math.inf) or units not in MM_PER_UNIT:
        known = ", ".join(MM_PER_UNIT)
        raise SketchError(f"{option} is a length such as 120mm or 4in, not '{words}'; units are {known}")
    return number, units


def span(words: str, option: str, example: str) -> tuple[float, float]:
    """A number, or two with `..` between.

    >>> span("0.1..0.3", "--construction", "0.1..0.3"), span("2", "--aspect", "0.5..2")
    ((0.1, 0.3), (2.0, 2.0))
    """
    ends = [end.strip() for end in words.split("..", 1)]
    if not all(_NUMBER.fullmatch(end) for end in ends):
        raise SketchError(f"{option} is a number or a range such as {example}, not '{words}'")
    low, high = float(ends[0]), float(ends[-1])
    if low > high:
        raise SketchError(f"{option} {words} is empty: put the smaller number first")
    return low, high


def whole_span(words: str, option: str, example: str) -> tuple[int, int]:
    """The same in whole numbers.

    >>> whole_span("12", "--primitives", "8..16"), whole_span("8..16", "--primitives", "8..16")
    ((12, 12), (8, 16))
    """
    low, high = span(words, option, example)
    if not (low.is_integer() and high.is_integer()):
        raise SketchError(f"{option} is a whole number or a range such as {example}, not '{words}'")
    return int(low), int(high)


def kind_counts(asked: str | Mapping[str, int] | Mapping[Kind, int], option: str = "--kinds") -> dict[Kind, int]:
    """How many of each kind, from words or from a mapping of names or kinds.

    >>> kind_counts("line=8,circle=2") == kind_counts({"lines": 8, Kind.CIRCLE: 2}) == {Kind.LINE: 8, Kind.CIRCLE: 2}
    True
    """
    counts: dict[Kind, int] = {}
    for name, number in _pairs(asked, option):
        kind = _kind(name)
        if kind is None:
            raise SketchError(f"'{name}' is no kind of primitive; {option} is such as line=8,circle=2 (of {_KINDS})")
        if kind in counts:
            raise SketchError(f"{option} names {kind.label} twice")
        counts[kind] = number
    return counts


def _pairs(asked: str | Mapping[str, int] | Mapping[Kind, int], option: str) -> list[tuple[str | Kind, int]]:
    if not isinstance(asked, str):
        return list(asked.items())
    found = [re.fullmatch(r"\s*(\w+)\s*=\s*(\d{1,9})\s*", part) for part in asked.split(",")]
    if not all(found):
        raise SketchError(f"{option} is such as line=8,circle=2 (of {_KINDS}), not '{asked}'")
    return [(match[1], int(match[2])) for match in found if match]


def _kind(name: str | Kind) -> Kind | None:
    if isinstance(name, Kind):
        return name
    plain = str(name).strip().lower().removesuffix("s")
    return next((kind for kind in Kind if kind.label == plain), None)
