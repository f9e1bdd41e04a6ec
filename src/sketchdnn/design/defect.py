"""A defect of a sketch as a designer would name it: a kind, the primitives concerned, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class DefectKind(StrEnum):
    """The kinds of defects. Each is one feature of the score."""

    OPEN = "open"
    GAP = "gap"
    BRANCH = "branch"
    CROSSING = "crossing"
    TOUCH = "touch"
    OVERLAP = "overlap"
    SPLIT = "split"
    SPECK = "speck"
    THIN = "thin"
    OUTSIDE = "outside"
    NESTED = "nested"
    STRAY = "stray"
    UNALIGNED = "unaligned"
    NEAR_CENTER = "near center"
    NEAR_RADIUS = "near radius"
    NEAR_LEVEL = "near level"
    NEAR_ANGLE = "near angle"
    NEAR_ROW = "near row"
    NEAR_MIRROR = "near mirror"
    ASYMMETRIC = "asymmetric"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Defect:
    """Something a designer would not have drawn, or would not have left.

    Attributes:
        kind: Its kind.
        primitives: The indices of the primitives concerned, in order.
        sentence: What is wrong.
        amount: How severe it is compared with others of its kind, above 0 and at most 1.
    """

    kind: DefectKind
    primitives: tuple[int, ...]
    sentence: str
    amount: float = 1.0


def defect(kind: DefectKind, primitives: Iterable[int], sentence: str, amount: float = 1.0) -> Defect:
    """A defect of primitives in any order."""
    return Defect(kind, tuple(sorted(set(primitives))), sentence, amount)
