"""Parsers of lengths, ranges and counts of kinds; what they refuse is a `SketchError` that names the option."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from sketchdnn.errors import SketchError

from .bounds import Box
from .primitives import Kind
from .sketch import MM_PER_UNIT

_KINDS = {kind.label: kind for kind in Kind}
_KIND_NAMES = ", ".join(_KINDS)
KindCounts = str | Mapping[str, int] | Mapping[Kind, int]
_STEP = re.compile(r"(\d+\.?\d*|\.\d+)(?:/(\d+))?\s*([a-z]*)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_length(text: str, option: str = "--size", units: str = "mm") -> tuple[float, str]:
    """A number and its unit, by default `units`.

    >>> parse_length("4in"), parse_length("120")
    ((4.0, 'in'), (120.0, 'mm'))
    """
    match = re.fullmatch(r"\s*+([0-9.eE+-]++)\s*+([a-z]*+)\s*+", text)
    try:
        number, units = float(match[1]), match[2] or units  # type: ignore[index]
    except (TypeError, ValueError):
        number, units = math.nan, ""
    if not (0 < number < math.inf) or units not in MM_PER_UNIT:
        known = ", ".join(MM_PER_UNIT)
        raise SketchError(f"{option} is a length such as 120mm or 4in, not '{text}'; units are {known}")
    return number, units


def parse_step(text: str, option: str = "--round") -> tuple[float, str | None]:
    """A step to round to, and its unit if it has one.

    >>> parse_step("0.5mm"), parse_step("1/16in"), parse_step("2")
    ((0.5, 'mm'), (0.0625, 'in'), (2.0, None))
    """
    match = _STEP.fullmatch(text.strip())
    step = float(match[1]) / float(match[2] or 1) if match and float(match[2] or 1) else 0.0
    if not match or not 0 < step < math.inf or match[3] not in {"", *MM_PER_UNIT}:
        raise SketchError(f"{option} is auto or a step such as 0.5, 0.5mm or 1/16in, not '{text}'")
    return step, match[3] or None


def parse_range(text: str, option: str, example: str) -> tuple[float, float]:
    """The range of a number, or of two numbers with `..` between.

    >>> parse_range("0.1..0.3", "--construction", "0.1..0.3"), parse_range("2", "--aspect", "0.5..2")
    ((0.1, 0.3), (2.0, 2.0))
    """
    ends = [end.strip() for end in text.split("..", 1)]
    if not all(_NUMBER.fullmatch(end) for end in ends):
        raise SketchError(f"{option} is a number or a range such as {example}, not '{text}'")
    low, high = float(ends[0]), float(ends[-1])
    if low > high:
        raise SketchError(f"{option} {text} is empty: put the smaller number first")
    return low, high


def parse_int_range(text: str, option: str, example: str) -> tuple[int, int]:
    """A range of whole numbers.

    >>> parse_int_range("12", "--primitives", "8..16"), parse_int_range("8..16", "--primitives", "8..16")
    ((12, 12), (8, 16))
    """
    low, high = parse_range(text, option, example)
    if not (low.is_integer() and high.is_integer()):
        raise SketchError(f"{option} is a whole number or a range such as {example}, not '{text}'")
    return int(low), int(high)


def parse_kind_counts(counts: KindCounts, option: str = "--kinds") -> dict[Kind, int]:
    """The count of each kind, from text or from a mapping of names or kinds.

    >>> parse_kind_counts("line=8,circle=2") == parse_kind_counts({"lines": 8, Kind.CIRCLE: 2})
    True
    """
    parsed: dict[Kind, int] = {}
    for name, number in _pairs(counts, option):
        kind = name if isinstance(name, Kind) else _KINDS.get(str(name).strip().lower().removesuffix("s"))
        if kind is None:
            raise SketchError(f"'{name}' is no kind; {option} is such as line=8,circle=2 (of {_KIND_NAMES})")
        if kind in parsed:
            raise SketchError(f"{option} names {kind.label} twice")
        parsed[kind] = number
    return parsed


def _pairs(counts: KindCounts, option: str) -> list[tuple[str | Kind, int]]:
    if not isinstance(counts, str):
        return list(counts.items())
    matches = [re.fullmatch(r"\s*(\w+)\s*=\s*(\d{1,9})\s*", part) for part in counts.split(",")]
    if not all(matches):
        raise SketchError(f"{option} is such as line=8,circle=2 (of {_KIND_NAMES}), not '{counts}'")
    return [(match[1], int(match[2])) for match in matches if match]


def parse_box(text: str, option: str) -> Box:
    """A box from the coordinates of two opposite corners.

    >>> parse_box("10,0, 0,5", "--window")
    Box(low=(0.0, 0.0), high=(10.0, 5.0))
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        raise SketchError(f"{option} is two opposite corners such as 0,0,40,20, not '{text}'")
    x0, y0, x1, y1 = map(float, parts)
    box = Box((min(x0, x1), min(y0, y1)), (max(x0, x1), max(y0, y1)))
    if not 0 < box.size < math.inf:
        raise SketchError(f"{option} {text} has no area")
    return box
