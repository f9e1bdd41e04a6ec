"""What repair does to sketches as a model drew them: ends that meet, profiles that close, and how far things move."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from rich.table import Table

from sketchdnn.constraints import REPAIR_TOLERANCE, RepairedSketch, repair, repair_all
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.generation.repair import available_cores
from sketchdnn.geometry import Arc, Line, Point, Primitive, Sketch, Vec, bounds, profile
from sketchdnn.geometry.intersections import distance_to_curve

from .completion import percent

EXACT = 1e-6
GOAL = 0.98
# So few are not worth processes.
_FEW = 100
OnStage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of lines and arcs: all, and those with an end or curve of another primitive close enough to snap to.

    `exact` ends lie on another primitive to 1e-6 of the size; `gone` ones are of what was dropped or merged.
    """

    before: int
    exact_before: int
    after: int
    exact_after: int
    close: int
    close_exact: int
    close_gone: int

    def __add__(self, other: Ends) -> Ends:
        return Ends(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def share(self) -> Estimate:
        """Of the ends that were close to something and are still there, those that are exact now."""
        return share_estimate(self.close_exact, self.close - self.close_gone)


@dataclass(frozen=True, slots=True)
class RepairBench:
    """What happened to all sketches."""

    count: int
    ends: Ends
    closed: tuple[int, int]
    displacements: tuple[float, ...]
    unrepaired: int
    actions: Counter[str]
    sketches_with: Counter[str]
    median: float  # seconds of one core for a sketch
    many: int
    workers: int
    seconds: float
    busy: float  # seconds of all cores together, whatever else they had to do

    def rows(self) -> Iterator[tuple[str, str, str]]:
        ends, (closed, closed_now) = self.ends, self.closed
        yield (
            "ends close to another, exact",
            "",
            f"{percent(ends.share)} of {ends.close - ends.close_gone:,}",
        )
        yield (
            "all ends, exact",
            f"{percent(share_estimate(ends.exact_before, ends.before))} of {ends.before:,}",
            f"{percent(share_estimate(ends.exact_after, ends.after))} of {ends.after:,}",
        )
        yield (
            "profiles that can be extruded",
            f"{percent(share_estimate(closed, self.count))}",
            f"{percent(share_estimate(closed_now, self.count))}",
        )
        moved = np.array(self.displacements)
        cells = [f"{each:.3%}".replace("%", " %") for each in (np.median(moved), np.quantile(moved, 0.95), moved.max())]
        yield "largest move of a sketch: median, 95 of 100, all", "", ", ".join(cells)
        yield "sketches left as they were, with a warning", "", f"{self.unrepaired:,}"

    def table(self) -> Table:
        table = Table("", "raw", "repaired", title=f"Repair of {self.count:,} raw sketches")
        for row in self.rows():
            table.add_row(*row)
        return table

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        is_met = "met" if self.ends.share.value >= GOAL else "missed"
        yield f"Of the ends close to another, at least {GOAL:.0%} exact: {is_met}.".replace("%", " %")
        bound = "met" if max(self.displacements) <= REPAIR_TOLERANCE else "missed"
        yield f"Nothing moves by more than the tolerance: {bound}."

    def markdown(self, command: str) -> str:
        header = ("", "raw", "repaired")
        lines = [f"| {' | '.join(row)} |" for row in (header, ("---",) * 3, *self.rows())]
        actions = [
            f"| {kind} | {number:,} | {self.sketches_with[kind]:,} |" for kind, number in self.actions.most_common()
        ]
        return _PAGE.format(
            command=command,
            count=self.count,
            tolerance=f"{REPAIR_TOLERANCE:.1%}".replace("%", " %"),
            rows="\n".join(lines),
            actions="\n".join(["| action | times | sketches |", "| --- | --- | --- |", *actions]),
            gone=self.ends.close_gone,
            many=self.many,
            workers=self.workers,
            s="" if self.workers == 1 else "s",
            seconds=self.seconds,
            median=1e3 * self.median,
            busy=self.busy,
            least=self.busy / self.workers,
            speed=self.many / self.seconds,
            goals="\n".join(f"- {sentence}" for sentence in self.sentences()),
        )


def measure_repair(
    sketches: Sequence[Sketch], *, many: int = 10_000, on_stage: OnStage = lambda stage: None
) -> RepairBench:
    """Repair sketches one by one and look; then many, these over and over, on all cores."""
    ends = Ends(0, 0, 0, 0, 0, 0, 0)
    closed = closed_now = unrepaired = 0
    displacements = []
    seconds = []
    actions: Counter[str] = Counter()
    sketches_with: Counter[str] = Counter()
    for number, sketch in enumerate(sketches):
        on_stage(f"repairing: {number:,} of {len(sketches):,}")
        begin = time.process_time()
        done = repair(sketch)
        seconds.append(time.process_time() - begin)
        ends += count_ends(sketch, done)
        closed += profile(sketch).is_extrudable
        closed_now += profile(done.sketch).is_extrudable
        displacements.append(done.displacement)
        unrepaired += done.warning is not None and not done.actions
        kinds = [str(action.kind) for action in done.actions]
        actions.update(kinds)
        sketches_with.update(set(kinds))
    workers = available_cores() if many > _FEW else 1
    start, busy = time.perf_counter(), _busy()
    for number, _ in enumerate(repair_all(islice(cycle(sketches), many), workers=workers)):
        on_stage(f"repairing on all cores: {number:,} of {many:,}")
    return RepairBench(
        len(sketches),
        ends,
        (closed, closed_now),
        tuple(displacements),
        unrepaired,
        actions,
        sketches_with,
        float(np.median(seconds)),
        many,
        workers,
        time.perf_counter() - start,
        _busy() - busy,
    )


def _busy() -> float:
    """Processor time of this process and of those it has started and ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def count_ends(sketch: Sketch, done: RepairedSketch) -> Ends:
    """Which ends were close to another primitive, and which are on one now.

    An end's other primitives are those that did not become one with its own.
    """
    size = bounds(sketch).size
    became: dict[int, set[int]] = {}
    for number, sources in enumerate(done.sources):
        for source in sources:
            became.setdefault(source, set()).add(number)
    now = {
        (number, place): _off(done.sketch, {number}, place) / size <= EXACT
        for number, p in enumerate(done.sketch)
        for place in _ends(p)
    }
    before = exact_before = close = close_exact = close_gone = 0
    for i, p in enumerate(sketch):
        mine = became.get(i, set())
        one = {j for j in range(len(sketch)) if j == i or mine & became.get(j, set())}
        for place in _ends(p):
            before += 1
            exact_before += _off(sketch, {i}, place) / size <= EXACT
            if _off(sketch, one, place) / size > REPAIR_TOLERANCE:
                continue
            close += 1
            candidates = [end for end in now if end[0] in mine]
            nearest = min(candidates, key=lambda end: math.dist(end[1], place), default=None)
            if nearest is None or math.dist(nearest[1], place) / size > 2 * REPAIR_TOLERANCE:
                close_gone += 1
            else:
                close_exact += now[nearest]
    return Ends(before, exact_before, len(now), sum(now.values()), close, close_exact, close_gone)


def _ends(p: Primitive) -> tuple[Vec, ...]:
    return (p.start, p.end) if isinstance(p, Line | Arc) else ()


def _off(sketch: Sketch, without: set[int], place: Vec) -> float:
    """How far a place is from the nearest curve, but for some."""
    others = (p for j, p in enumerate(sketch) if j not in without and not isinstance(p, Point))
    return min((distance_to_curve(p, place) for p in others), default=math.inf)


_PAGE = """# Repair of what the model draws

    {command}

{count:,} sketches as a model drew them, repaired with a tolerance of {tolerance} of the size. In brackets,
95 % intervals.

{rows}

- **ends close to another**: ends of lines and arcs that had an end or curve of another primitive within the tolerance,
  and are still there ({gone:,} went with what was dropped or merged). **exact**: such an end or curve is within 1e-6 of
  the size. Primitives that became one with an end's own do not count as another.
- **all ends**: whether they had anything close by or not; real sketches have open ends too.
- **profiles that can be extruded**: sketches whose curves all close to loops that do not cross, touch or overlap.

What was done:

{actions}

One sketch takes a median of {median:.0f} ms of one core. {many:,} sketches, these over and over, on {workers} core{s}:
{seconds:,.0f} s, {speed:,.0f} sketches a second. The cores were busy with it for {busy:,.0f} s together: without other
work it would take {least:,.0f} s.

{goals}
"""
