"""What was drawn, repaired: ends that nearly met meet, and the constraints that hold are part of the sketch.

A sketch is repaired by itself, so what becomes of it does not depend on what else is drawn, nor on how many processes
do it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sketchdnn.constraints import RepairResult, repair_all
from sketchdnn.geometry import Sketch
from sketchdnn.systems.threads import usable_cores

# Fewer are repaired sooner than processes start.
_WORTH_PROCESSES = 200

# How a line tells of the kinds of action.
_DONE = {
    "drop": "dropped",
    "merge": "merged",
    "snap": "joined",
    "extend": "extended",
    "trim": "trimmed",
    "tangent": "made tangent",
    "square": "squared up",
    "constrain": "aligned",
    "close": "added to close an outline",
    "construction": "set aside as construction",
}

OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was done to a sketch: each action as a sentence and by its kind.

    `displacement` is the largest move as a share of the size, `dof` what is free afterwards. With a `warning` the
    sketch may be as it was drawn.
    """

    actions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    displacement: float = 0.0
    dof: int = 0
    warning: str | None = None

    @property
    def summary(self) -> str:
        """All of it in a line.

        >>> Repairs(("…", "…", "…"), ("snap", "merge", "snap"), 0.00421, 9).summary
        'repaired: 2 joined, 1 merged; nothing moved by more than 0.42 %; 9 degrees of freedom'
        """
        free = f"{self.dof} degree{'s' * (self.dof != 1)} of freedom"
        if self.warning:
            return f"not repaired: {self.warning}" if not self.kinds else f"repaired in part: {self.warning}"
        if not self.kinds:
            return f"nothing to repair; {free}"
        counted = ", ".join(f"{count} {_DONE.get(kind, kind)}" for kind, count in Counter(self.kinds).most_common())
        return f"repaired: {counted}; nothing moved by more than {self.displacement:.2%}; {free}".replace("%", " %")

    def to_json(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {
            "summary": self.summary,
            "actions": list(self.actions),
            "displacement": float(f"{self.displacement:.3g}"),
            "dof": self.dof,
            "warning": self.warning,
        }


@dataclass(frozen=True, slots=True)
class Mended:
    """A sketch after repair, and what was done to it."""

    sketch: Sketch
    repairs: Repairs


def mend(sketch: Sketch, given: int = 0) -> Mended:
    """Repair one sketch; its first `given` primitives stay where they are and as they are."""
    return mend_all([sketch], given)[0]


def mend_all(
    sketches: Sequence[Sketch],
    given: int = 0,
    *,
    workers: int = 1,
    on_progress: OnProgress = lambda share: None,
) -> list[Mended]:
    """Repair many, where it is worth it in so many processes. `on_progress` hears the share that is done.

    More than one process is for programs, not for scripts: each of them imports what was started.
    """
    many = workers if len(sketches) >= _WORTH_PROCESSES else 1
    done: list[RepairResult] = []
    for each in repair_all(sketches, keep=range(given), workers=many):
        done.append(each)
        on_progress(len(done) / len(sketches))
    return [_mended(sketch, each, given) for sketch, each in zip(sketches, done, strict=True)]


def _mended(sketch: Sketch, done: RepairResult, given: int) -> Mended:
    if done.sketch.primitives[:given] != sketch.primitives[:given]:
        return Mended(sketch, Repairs(dof=done.dof, warning="something that was given would have moved"))
    actions, kinds = (tuple(map(str, each)) for each in (done.actions, (action.kind for action in done.actions)))
    return Mended(done.sketch, Repairs(actions, kinds, done.displacement, done.dof, done.warning))


def cores(shared_by: int = 1) -> int:
    """How many processes may work at once on this machine, if so many programs share it."""
    return max(1, usable_cores() // shared_by)
