"""The random choices of a designer, and the part they lead to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from sketchdnn.geometry import Primitive, Vec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dice:
    """Random choices in a designer's terms."""

    rng: np.random.Generator

    def mm(self, low: float, high: float, step: float = 0.5) -> float:
        """A length that a person would type: a multiple of `step`, at least one of them."""
        return max(step, round(float(self.rng.uniform(low, high)) / step) * step)

    def count(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return float(self.rng.random()) < probability

    def pick(self, *options: T) -> T:
        return options[int(self.rng.integers(len(options)))]


@dataclass(frozen=True, slots=True)
class Part:
    """What is cut, and what its designer may have drawn to get there.

    `aids` are construction geometry, the likeliest first; `marks` are places where a point is at home.
    """

    solid: list[Primitive]
    aids: list[Primitive] = field(default_factory=list)
    marks: list[Vec] = field(default_factory=list)
