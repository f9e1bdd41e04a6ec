"""Real sketches in two halves: one to give to a model, one to hold against what it adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Primitive, Sketch
from sketchdnn.representation import Compact, decode_compact

from .draws import fingerprint


@dataclass(frozen=True, slots=True)
class Case:
    """A real sketch, normalized, in two halves: what the model is given, and what it is not."""

    part: Sketch
    hidden: tuple[Primitive, ...]

    @property
    def truth(self) -> Sketch:
        return Sketch(self.part.primitives + self.hidden)


def half_hidden(test: Compact, count: int, seed: int) -> tuple[list[Case], str]:
    """Some sketches of a split by lot, each without the half of its primitives, by lot too; and a mark of them all.

    What is given is the larger half, and has an extent.
    """
    if len(test) < count:
        raise SketchError(f"{count:,} sketches are to be completed, and the test split has {len(test):,}")
    dice = np.random.default_rng(seed)
    chosen = test[np.sort(dice.permutation(len(test))[:count])]
    cases = []
    for decoded in decode_compact(chosen):
        items = decoded.sketch.primitives
        while True:
            order = dice.permutation(len(items))
            shown = set(order[: len(items) - len(items) // 2].tolist())
            part = Sketch(tuple(item for i, item in enumerate(items) if i in shown))
            if any(item.length > 0 for item in part):
                break
        cases.append(Case(part, tuple(item for i, item in enumerate(items) if i not in shown)))
    return cases, fingerprint(chosen)
