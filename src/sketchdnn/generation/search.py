"""The attempts at one sketch, and which of them is kept: the first that will do, the best of some, or the closest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Sketch, normalize
from sketchdnn.representation.decoding import Decoded

from .conditions import ATTEMPTS, Conditions
from .keep import Keeper, Shortfall
from .record import Moment
from .repairs import Repairs
from .score import score


@dataclass(frozen=True, slots=True)
class Drawing:
    """A sketch, where it came from, and what the model drew that was no primitive: left out, or made one.

    `shortfall` says what it lacks of what was asked for, if no attempt had it all; `score` is that of the best of
    several, and `fewer` says if these were not as many as asked for. `frames` show how it came about, if that was
    wanted: they end in what the model drew. `repair` says what was done to that afterwards, if it was to be repaired.
    """

    number: int
    sketch: Sketch
    attempts: int = 1
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    shortfall: str | None = None
    score: float | None = None
    frames: tuple[Moment, ...] = ()
    repair: Repairs | None = None
    fewer: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was drawn, repaired if that is wanted, at the size asked for; no sketch if it is empty or has no extent."""

    sketch: Sketch | None
    decoded: Decoded
    frames: tuple[Moment, ...] = ()
    repair: Repairs | None = None


@dataclass(slots=True)
class Search:
    """All attempts at the sketch of a number, in order."""

    number: int
    attempts: list[Attempt] = field(default_factory=list)
    lacking: dict[int, Shortfall | None] = field(default_factory=dict)

    def settle(self, keeper: Keeper) -> Drawing | None:
        """The sketch to keep; None if it must be drawn again."""
        conditions = keeper.conditions
        met: list[int] = []
        for number, attempt in enumerate(self.attempts):
            if attempt.sketch is None:
                continue
            # What was short stays so; what was not may by now repeat a sketch that was kept.
            if number not in self.lacking or (conditions.unique and self.lacking[number] is None):
                self.lacking[number] = keeper.shortfall(attempt.sketch)
            if self.lacking[number] is None:
                met.append(number)
                if len(met) == conditions.best_of:
                    return self._drawing(met, number + 1, conditions.best_of)
        if len(self.attempts) < most_attempts(conditions):
            return None
        return self._drawing(met, len(self.attempts), conditions.best_of)

    def worth_drawing(self, best_of: int) -> int:
        """How many attempts pay at once: those that are needed at least, or as many as there were so far.

        None if it only waits for the sketches before it, as those that are to be unique do.
        """
        met = sum(lack is None for lack in self.lacking.values())
        unseen = sum(attempt.sketch is not None for attempt in self.attempts) - len(self.lacking)
        needed = best_of - met - unseen
        return max(needed, len(self.attempts)) if needed > 0 else 0

    def _drawing(self, met: Sequence[int], looked_at: int, best_of: int) -> Drawing:
        """Of those that meet the conditions the one with the highest score, else the one that comes closest."""
        scores = {number: score(self._sketch(number)) for number in met} if best_of > 1 else {}
        if met:
            chosen = max(met, key=lambda number: (scores.get(number, 0.0), -number))
        elif self.lacking:
            chosen = min(self.lacking, key=lambda number: (_distance(self.lacking[number]), number))
        else:
            raise SketchError(f"the model drew nothing in {looked_at} attempts; use more steps or another model")
        attempt, lack = self.attempts[chosen], self.lacking[chosen]
        decoded = attempt.decoded
        rejected, repaired = (tuple(i.reason for i in issues) for issues in (decoded.rejects, decoded.repairs))
        return Drawing(
            self.number,
            self._sketch(chosen),
            looked_at,
            rejected,
            repaired,
            lack.sentence if lack else None,
            scores.get(chosen),
            attempt.frames,
            attempt.repair,
            _fewer(len(met), best_of, looked_at) if met else None,
        )

    def _sketch(self, number: int) -> Sketch:
        sketch = self.attempts[number].sketch
        assert sketch is not None  # noqa: S101 - only such are looked at
        return sketch


def most_attempts(conditions: Conditions) -> int:
    """How often a sketch is drawn at the most."""
    return ATTEMPTS + conditions.best_of - 1


def sized(sketch: Sketch, size: float, units: str, name: str) -> Sketch | None:
    """The sketch, centered, its larger side `size`; none if it is empty or has no extent."""
    if not sketch.primitives:
        return None
    try:
        placed, _ = normalize(sketch, size / 2)
    except GeometryError:
        return None
    return replace(placed, units=units, extra={"id": name})


def _fewer(met: int, wanted: int, looked_at: int) -> str | None:
    if met >= wanted:
        return None
    return f"it is the best of {met}, not of {wanted}: no more of {looked_at} attempts were what was asked for"


def _distance(lack: Shortfall | None) -> float:
    return lack.distance if lack else 0.0
