"""What a sketch must be like: how many primitives, of which kinds, how it is shaped, and that it is new.

Numbers and kinds are told to the model, as its training told it: an exact number by giving it the rows that stay empty,
kinds by giving it the kind of every row. All else is a matter of drawing again. Where a range leaves a choice, the
choice belongs to the seed and the number of the sketch, and is made as often one way as the training corpus did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.systems import System

# How often a sketch is drawn before the closest one is taken, with a word about what it lacks.
ATTEMPTS = 24


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that was asked; what is None or False was not. Ranges include their ends.

    `kinds` are exact for the kinds it names, and count what is not construction, or with `count_construction` all.
    Without `primitives` there is nothing else in the sketch; with it, the rest are construction, or primitives of kinds
    that were not named. `construction` is the share of primitives that are construction,
    `aspect` the width of the tight box over its height. `closed`: the sketch can be extruded, and its largest outline
    is at least half as large as the sketch (`closed.py`); ends are joined at `closed.CLOSE` of the size, or exactly
    where sketches are repaired. `unique`: no other
    sketch of the run is the same, `novel`: no training sketch is, both up to symmetry and on a grid of 6 bits.
    `best_of`: so many are drawn that meet all this, and the one of the highest score is kept.
    """

    primitives: tuple[int, int] | None = None
    kinds: Mapping[Kind, int] | None = None
    count_construction: bool = False
    construction: tuple[float, float] | None = None
    aspect: tuple[float, float] | None = None
    closed: bool = False
    unique: bool = False
    novel: bool = False
    best_of: int = 1

    def __post_init__(self) -> None:
        _check_ranges(self)
        if self.kinds is not None:
            _check_kinds(self.kinds, self.primitives)
        if self.best_of < 1:
            raise SketchError(f"the best is chosen of at least 1 sketch, not {self.best_of}")

    @property
    def asked(self) -> bool:
        """Whether there is any condition at all, the choice of the best aside."""
        told = (self.primitives, self.kinds, self.construction, self.aspect)
        return any(each is not None for each in told) or self.closed or self.unique or self.novel

    @property
    def count(self) -> tuple[int, int] | None:
        """The number of primitives, which kinds alone also say."""
        if self.primitives is None and self.kinds is not None:
            return (sum(self.kinds.values()),) * 2
        return self.primitives


def check_conditions(conditions: Conditions, system: System, rows: int = layout.MAX_PRIMITIVES) -> None:
    """Refuses what this model cannot do or was not trained for, before anything is drawn."""
    low, high = trained_for(system, rows)
    if conditions.count is not None:
        least, most = conditions.count
        if most > rows:
            raise SketchError(f"{most} primitives do not fit: a sketch of this model has {rows} rows")
        if least < low or most > high:
            raise SketchError(
                f"this model was trained on sketches of {low} to {high} primitives and cannot be asked for "
                f"{_span(least, most)}{_rest_hint(conditions, low, high)}"
            )
    if conditions.novel and system.training_index is None:
        raise SketchError("this model does not say what it was trained on, so it cannot tell which sketches are new")


def trained_for(system: System, rows: int = layout.MAX_PRIMITIVES) -> tuple[int, int]:
    """The fewest and the most primitives of the sketches a model knows; any that fit, if it does not say."""
    return (1, rows) if system.training_index is None else system.training_index.primitives


def _check_ranges(asked: Conditions) -> None:
    limits = {
        "number of primitives": (asked.primitives, 1, math.inf),
        "share of construction": (asked.construction, 0, 1),
        "aspect ratio": (asked.aspect, 0, math.inf),
    }
    for name, (span, least, most) in limits.items():
        if span is None:
            continue
        low, high = span
        if not (math.isfinite(low) and math.isfinite(high) and least <= low and high <= most):
            allowed = f"{least} to {most}" if most < math.inf else f"at least {least}"
            raise SketchError(f"a {name} is {allowed}, not {_span(low, high)}")
        if low > high:
            raise SketchError(f"a {name} from {low} to {high} is empty: put the smaller number first")
    if asked.aspect is not None and asked.aspect[1] <= 0:
        raise SketchError("an aspect ratio, width over height, is above 0")


def _check_kinds(kinds: Mapping[Kind, int], primitives: tuple[int, int] | None) -> None:
    told = ", ".join(f"{kind.label}={number}" for kind, number in kinds.items())
    total = sum(kinds.values())
    if not kinds or min(kinds.values()) < 0:
        raise SketchError(f"kinds are asked for by how many of each there are, none or more, not '{told}'")
    if primitives is None:
        if total == 0:
            raise SketchError(f"'{told}' leaves open what there is; say also how many primitives are wanted")
        return
    low, high = primitives
    if total > high:
        raise SketchError(f"'{told}' makes {total} primitives, more than the {_span(low, high)} asked for")
    if total < low and len(kinds) == len(Kind):
        raise SketchError(
            f"'{told}' makes {total} primitives of all kinds, fewer than the {_span(low, high)} asked for"
        )


def _rest_hint(conditions: Conditions, low: int, high: int) -> str:
    """How to ask for a few of a kind, and for the rest as it comes."""
    if conditions.primitives is not None or conditions.kinds is None or sum(conditions.kinds.values()) >= low:
        return ""
    return f"; to have others beside these, ask for {low}..{high} primitives as well"


def _span(low: float, high: float) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


# At the end, since making it calls the checks above.
NO_CONDITIONS = Conditions()
