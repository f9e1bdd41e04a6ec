"""Values as people type them: lengths, ranges, numbers of kinds. What cannot be read is a sentence."""

from __future__ import annotations

import math
import re

from sketchdnn.geometry import MM_PER_UNIT, Kind, SketchError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def length(words: str, option: str = "--size") -> tuple[float, str]:
    """A number and its unit, millimetres unless said.

    >>> length("4in"), length("120")
    ((4.0, 'in'), (120.0, 'mm'))
    """
    match = re.fullmatch(r"\s*+([0-9.eE+-]++)\s*+([a-z]*+)\s*+", words)
    try:
        number, units = float(match[1]), match[2] or "mm"  # type: ignore[index]
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


def kind_counts(words: str, option: str = "--kinds") -> dict[Kind, int]:
    """How many of each kind.

    >>> kind_counts("line=8,circle=2")
    {<Kind.LINE: 0>: 8, <Kind.CIRCLE: 1>: 2}
    """
    kinds = {kind.label: kind for kind in Kind}
    counts: dict[Kind, int] = {}
    for part in words.split(","):
        match = re.fullmatch(r"\s*+([a-z]+?)s?\s*+=\s*+(\d{1,9})\s*+", part.lower())
        if match is None or match[1] not in kinds:
            raise SketchError(f"{option} is such as line=8,circle=2 (of {', '.join(kinds)}), not '{words}'")
        if kinds[match[1]] in counts:
            raise SketchError(f"{option} names {match[1]} twice")
        counts[kinds[match[1]]] = int(match[2])
    return counts
