"""Repair of generated sketches: near ends are joined, and the constraints that hold are added.

Each sketch is repaired by itself, so the result does not depend on the rest of the batch or the number of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sketchdnn.constraints import RepairedSketch, repair_all
from sketchdnn.geometry import Sketch
from sketchdnn.systems.devices import usable_cores

# Called with the fraction, or the number of sketches' worth of work, that is done.
OnProgress = Callable[[float], None]


def ignore(done: float) -> None:
    """The callback for progress that nobody needs."""


# Fewer sketches are repaired before a pool of processes has started.
_MIN_FOR_POOL = 200

# Kinds of action, as a summary words them.
_ACTION_WORDS = {"drop": "dropped", "merge": "merged", "snap": "joined", "extend": "extended", "trim": "trimmed"}
_ACTION_WORDS |= {"tangent": "made tangent", "square": "squared up", "constrain": "aligned"}
_ACTION_WORDS |= {"close": "added to close an outline", "construction": "made construction"}


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What repair changed in a sketch.

    Attributes:
        actions: One sentence for each action.
        kinds: The kind of each action.
        displacement: Largest move, as a fraction of the size.
        dof: Degrees of freedom after repair.
        warning: Why the repair is incomplete, if it is. Without actions the sketch is unchanged.
        rounding: What was rounded afterwards, if that was asked for.
    """

    actions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    displacement: float = 0.0
    dof: int = 0
    warning: str | None = None
    rounding: str | None = None

    @property
    def summary(self) -> str:
        """The report in one line.

        >>> RepairReport(("…", "…", "…"), ("snap", "merge", "snap"), 0.00421, 9).summary
        'repaired: 2 joined, 1 merged; nothing moved by more than 0.42 %; 9 degrees of freedom'
        """
        rounding = f"; {self.rounding}" if self.rounding else ""
        if self.warning:
            return f"{'repaired in part' if self.kinds else 'not repaired'}: {self.warning}{rounding}"
        free = f"{self.dof} degree{'s' * (self.dof != 1)} of freedom"
        if not self.kinds:
            return f"nothing to repair; {free}{rounding}"
        counts = Counter(self.kinds).most_common()
        words = ", ".join(f"{count} {_ACTION_WORDS.get(kind, kind)}" for kind, count in counts)
        moved = f"nothing moved by more than {100 * self.displacement:.2f} %"
        return f"repaired: {words}; {moved}; {free}{rounding}"

    def to_json(self) -> dict[str, Any]:
        """The entry of a manifest."""
        content: dict[str, Any] = {"summary": self.summary, "actions": list(self.actions)}
        displacement = float(f"{self.displacement:.3g}")
        content |= {"displacement": displacement, "dof": self.dof, "warning": self.warning}
        return content | ({"rounding": self.rounding} if self.rounding else {})


class RepairResult(NamedTuple):
    """A sketch after repair, and the report."""

    sketch: Sketch
    report: RepairReport


def repair_sketches(
    sketches: Sequence[Sketch], num_fixed: int = 0, *, workers: int = 1, on_progress: OnProgress = ignore
) -> list[RepairResult]:
    """Repair sketches, large sets in several processes.

    Args:
        sketches: The sketches.
        num_fixed: The first primitives of each sketch, which must not change.
        workers: Number of processes. More than one needs a script with `if __name__ == "__main__"`.
        on_progress: Called with the fraction that is done.
    """
    results: list[RepairResult] = []
    workers = workers if len(sketches) >= _MIN_FOR_POOL else 1
    repaired = repair_all(sketches, keep=range(num_fixed), workers=workers)
    for sketch, result in zip(sketches, repaired, strict=True):
        results.append(_to_result(sketch, result, num_fixed))
        on_progress(len(results) / len(sketches))
    return results


def _to_result(sketch: Sketch, result: RepairedSketch, num_fixed: int) -> RepairResult:
    if result.sketch.primitives[:num_fixed] != sketch.primitives[:num_fixed]:
        return RepairResult(sketch, RepairReport(dof=result.dof, warning="something that was given would have moved"))
    actions, kinds = tuple(map(str, result.actions)), tuple(str(action.kind) for action in result.actions)
    return RepairResult(result.sketch, RepairReport(actions, kinds, result.displacement, result.dof, result.warning))


def available_cores(shared_by: int = 1) -> int:
    """Number of processes that can run at once, if so many programs share the machine."""
    return max(1, usable_cores() // shared_by)
