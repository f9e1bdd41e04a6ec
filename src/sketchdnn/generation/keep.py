"""Whether a drawing is what was asked for and, if not, how far from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sketchdnn.geometry import Kind, Sketch, bounds, normalize
from sketchdnn.geometry.table import to_table
from sketchdnn.representation import encode_table
from sketchdnn.representation.symmetric import symmetric_keys
from sketchdnn.systems import TrainingIndex
from sketchdnn.systems.training_index import GRID

from .closed import CLOSE, reasons_not_closed
from .conditions import Conditions


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a sketch lacks, as a sentence for people, and how much, to tell which of several comes closest.

    `distance` is about how many primitives would have to be others. It is above 0.
    """

    sentence: str
    distance: float


def shortfall(conditions: Conditions, sketch: Sketch, close: float = CLOSE) -> Shortfall | None:
    """What a sketch lacks of what it must be by itself; None if nothing. Whether it is new, a `Keeper` knows.

    Ends count as joined at `close` of the size.
    """
    return _joined(_lacking(conditions, sketch, close))


@dataclass(slots=True)
class Keeper:
    """Looks at sketches as they come, and remembers those it kept: what `unique` means depends on them."""

    conditions: Conditions
    known: TrainingIndex | None = None
    close: float = CLOSE
    kept: set[int] = field(default_factory=set)

    def shortfall(self, sketch: Sketch) -> Shortfall | None:
        """What a sketch lacks, beside those that were kept before it."""
        lacking = list(_lacking(self.conditions, sketch, self.close))
        if self.conditions.unique or self.conditions.novel:
            key = sketch_key(sketch)
            if self.conditions.unique and key in self.kept:
                lacking.append(Shortfall("it repeats another sketch of this run", 1.0))
            if self.conditions.novel and self.known is not None and self.known.holds(key):
                lacking.append(Shortfall("it is in the training corpus", 1.0))
        return _joined(lacking)

    def keep(self, sketch: Sketch) -> None:
        """This sketch goes out; none that is the same will do from now on, if that was asked."""
        if self.conditions.unique:
            self.kept.add(sketch_key(sketch))


def sketch_key(sketch: Sketch) -> int:
    """The same for sketches that are the same up to symmetry and size, on the grid of 6 bits."""
    placed, _ = normalize(sketch)
    return int(symmetric_keys(encode_table(to_table([placed]), max_primitives=len(sketch)), GRID)[0])


def _lacking(conditions: Conditions, sketch: Sketch, close: float) -> Iterator[Shortfall]:
    number = len(sketch)
    if conditions.count is not None and (off := _outside(number, conditions.count)):
        yield Shortfall(f"it has {number} primitives, not {_span(conditions.count)}", off)
    if conditions.kinds is not None:
        found = Counter(p.kind for p in sketch if conditions.count_construction or not p.construction)
        wrong = {kind: wanted for kind, wanted in conditions.kinds.items() if found[kind] != wanted}
        for kind, wanted in wrong.items():
            beside = "" if conditions.count_construction else " besides construction"
            words = f"it has {_number(found[kind], kind)}{beside}, not {wanted}"
            yield Shortfall(words, abs(found[kind] - wanted))
    if conditions.construction is not None:
        share = sum(p.construction for p in sketch) / max(number, 1)
        if off := _outside(share, conditions.construction):
            yield Shortfall(f"{share:.2f} of it is construction, not {_span(conditions.construction)}", off * number)
    if conditions.aspect is not None:
        yield from _aspect(conditions.aspect, sketch)
    if conditions.closed:
        yield from (Shortfall(*reason) for reason in reasons_not_closed(sketch, close))


def _aspect(wanted: tuple[float, float], sketch: Sketch) -> Iterator[Shortfall]:
    """By the logarithm: twice as wide is as far off as half as wide."""
    box = bounds(sketch)
    ratio = box.width / box.height if box.height else math.inf
    if _outside(ratio, wanted):
        tiny = 1e-6
        off = _outside(math.log(min(max(ratio, tiny), 1 / tiny)), (math.log(max(wanted[0], tiny)), math.log(wanted[1])))
        yield Shortfall(f"its width is {ratio:.3g} of its height, not {_span(wanted)}", max(off, tiny))


def _joined(lacking: Iterator[Shortfall] | list[Shortfall]) -> Shortfall | None:
    every = list(lacking)
    return (
        Shortfall("; ".join(each.sentence for each in every), sum(each.distance for each in every)) if every else None
    )


def _outside(value: float, span: tuple[float, float]) -> float:
    """How far a value lies from a range; 0 within it."""
    return max(span[0] - value, value - span[1], 0.0)


def _span(span: tuple[float, float]) -> str:
    return f"{span[0]:g}" if span[0] == span[1] else f"{span[0]:g} to {span[1]:g}"


def _number(count: int, kind: Kind) -> str:
    return f"{count} {kind.label}{'' if count == 1 else 's'}"
