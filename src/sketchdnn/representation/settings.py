"""Settings of configs: the range of each number, written beside the field it belongs to and checked in one place.

A config that is made from a file is checked before anything is built of it or memory is taken for it.

>>> from dataclasses import dataclass, field
>>> @dataclass
... class Config:
...     width: int = field(default=512, metadata=within(1, 4096))
...
...     def __post_init__(self) -> None:
...         check_settings(self)
>>> Config(width=0)
Traceback (most recent call last):
sketchdnn.errors.SketchError: width must lie in 1..4096, not 0
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sketchdnn.errors import SketchError

RANGE = "range"
Number = int | float
# Parameters of one network: eight times the paper's largest, and 4 GiB in single precision.
LARGEST_NETWORK = 2**30


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, with or without its ends."""

    low: Number
    high: Number
    with_low: bool = True
    with_high: bool = True

    def holds(self, value: object) -> bool:
        """Whether a value is a number in the range; NaN is in none."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        above = value >= self.low if self.with_low else value > self.low
        return above and (value <= self.high if self.with_high else value < self.high)

    def __str__(self) -> str:
        ends = [str(end) for end, with_it in ((self.low, self.with_low), (self.high, self.with_high)) if not with_it]
        return f"{self.low}..{self.high}" + (f" without {' and '.join(ends)}" if ends else "")


def within(low: Number, high: Number, *, with_low: bool = True, with_high: bool = True) -> dict[str, Any]:
    """Metadata of a field: each of its numbers lies in this range."""
    return {RANGE: Range(low, high, with_low, with_high)}


def check_settings(config: Any) -> None:
    """Refuse a number outside its range. `None` stands for a setting that is not made."""
    for field in fields(config):
        allowed = field.metadata.get(RANGE)
        value = getattr(config, field.name)
        if allowed is None or value is None:
            continue
        if not all(map(allowed.holds, value if isinstance(value, tuple) else (value,))):
            raise SketchError(f"{field.name} must lie in {allowed}, not {value!r}")


def check_network(config: Any) -> None:
    """The settings of a network: in range, its width shared by its heads, and not too large to be built."""
    check_settings(config)
    if config.width % config.heads:
        raise SketchError(f"width must be a multiple of heads, but {config.width} is none of {config.heads}")
    if (least := least_parameters(config)) > LARGEST_NETWORK:
        raise SketchError(f"a network of {least:,} parameters is too large; it may have {LARGEST_NETWORK:,}")


def least_parameters(config: Any) -> int:
    """A number of parameters that a system has at least, by the widths and depths in its config.

    Each block of a transformer has four square matrices, and most have two more that are `expansion` times as large.
    """
    values = (getattr(config, field.name) for field in fields(config))
    count = sum(least_parameters(value) for value in values if is_dataclass(value))
    if hasattr(config, "width") and hasattr(config, "depth"):
        count += config.depth * config.width**2 * (4 + 2 * getattr(config, "expansion", 0))
        count += config.width * getattr(config, "num_steps", 0)
    return count
