"""Round values: which numbers a person would write for a measured length or angle.

A length is rounded to multiples of a step, which follows from the size of the part: 1 mm for 100 mm, 0.5 mm for 80 mm,
1/16 in for 4 in. A small length has a finer step. A value that is near a rounder number, such as 80, gets that one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

# The automatic step is at most this share of the size; in inches, where steps are 1/2, 1/4, 1/8, …, the second.
_STEP_SHARE = 1 / 100
_FRACTION_SHARE = 1 / 64
_SMALLEST_FRACTION = 1 / 64
# A length has at least so many steps, unless the step would be below a fraction of that of the part.
_MIN_STEPS = 8
_FINEST = 1 / 50
# Multiples of a step, and how far off a value may be, in steps, to get such a multiple.
_DECIMAL_LEVELS = ((10, 1.0), (5, 0.7), (2, 0.55), (1, 0.5))
_FRACTION_LEVELS = ((8, 1.0), (4, 0.7), (2, 0.55), (1, 0.5))
# The same for angles, in degrees.
_ANGLE_LEVELS = ((15.0, 1.0), (5.0, 0.5))
_FINER_DECIMALS = (2, 5, 10)
_FINER_FRACTIONS = (2, 4, 8)
_DIGITS = 12
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of lengths in a sketch of some size.

    Attributes:
        step: The step of large lengths.
        is_fraction: Whether steps are powers of two, as inches are divided.
        is_given: Whether the step was given, so that no other is used.
    """

    step: float
    is_fraction: bool = False
    is_given: bool = False

    @classmethod
    def automatic(cls, size: float, units: str | None) -> Steps:
        """The steps for a sketch of some size.

        >>> Steps.automatic(80, "mm").step, Steps.automatic(120, "mm").step, Steps.automatic(4, "in").step
        (0.5, 1.0, 0.0625)
        """
        if units == "in" and size * _FRACTION_SHARE >= _SMALLEST_FRACTION:
            return cls(_round_down(size * _FRACTION_SHARE, is_fraction=True), is_fraction=True)
        return cls(_round_down(size * _STEP_SHARE, is_fraction=False))

    def sizes(self, value: float) -> list[float]:
        """Round values for a length above zero, the preferred first.

        >>> steps = Steps.automatic(80, "mm")
        >>> [steps.sizes(value)[0] for value in (79.987, 12.498, 3.03, 0.81)]
        [80.0, 12.5, 3.0, 0.8]
        """
        if self.is_given:
            return [nearest] if (nearest := _nearest(value, self.step)) > 0 else []
        step = min(self.step, _round_down(value / _MIN_STEPS, is_fraction=self.is_fraction))
        step = max(step, _round_down(self.step * _FINEST, is_fraction=self.is_fraction))
        return [target for target in self._targets(value, step) if target > 0]

    def positions(self, value: float) -> list[float]:
        """Round values for a distance from the datum, which may be zero, the preferred first.

        >>> Steps.automatic(80, "mm").positions(-0.1)
        [0.0, -0.1]
        """
        if self.is_given:
            return [_nearest(value, self.step)]
        return list(dict.fromkeys(self._targets(value, self.step)))

    def _targets(self, value: float, step: float) -> Iterator[float]:
        levels = _FRACTION_LEVELS if self.is_fraction else _DECIMAL_LEVELS
        for multiple, reach in levels:
            target = _nearest(value, multiple * step)
            if target and abs(target - value) <= reach * step * (1 + _ROUNDING):
                yield target
                break
        yield _nearest(value, step)
        for parts in _FINER_FRACTIONS if self.is_fraction else _FINER_DECIMALS:
            yield _nearest(value, step / parts)


def round_angles(angle: float) -> list[float]:
    """Round values in radians for an angle that is near a multiple of 15° or 5°; none for others.

    >>> [math.degrees(target) for angle in (44.9, 61.3) for target in round_angles(math.radians(angle))]
    [45.0]
    """
    degrees = math.degrees(angle)
    for step, reach in _ANGLE_LEVELS:
        target = _nearest(degrees, step)
        if abs(target - degrees) <= reach:
            return [math.radians(target)]
    return []


def _nearest(value: float, step: float) -> float:
    """The nearest multiple of a step, as the float that its decimal number has.

    >>> _nearest(0.29, 0.1), _nearest(-0.01, 0.5)
    (0.3, 0.0)
    """
    return float(f"{round(value / step) * step:.{_DIGITS}g}") + 0.0


def _round_down(step: float, *, is_fraction: bool) -> float:
    """The largest step up to a limit: of 1, 2, 5, 10, …, or of the powers of two, and fractions of these."""
    if is_fraction:
        return float(2.0 ** math.floor(math.log2(step) + 1e-9))
    power = math.floor(math.log10(step) + 1e-9)
    multiple = max(m for m in (1, 2, 5) if m * 10.0**power <= step * (1 + 1e-9))
    return float(f"{multiple}e{power}")
