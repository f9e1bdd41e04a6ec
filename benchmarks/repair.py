"""Effect and speed of repair on raw sketches: ends that meet, profiles that close, and displacements."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from rich.table import Table

from sketchdnn.constraints import REPAIR_TOLERANCE, RepairedSketch, repair, repair_all
from sketchdnn.evaluation.estimates import Estimate, mean_estimate, normal_estimate, share_estimate
from sketchdnn.generation.repair import available_cores
from sketchdnn.geometry import Arc, Line, Point, Primitive, Sketch, Vec, bounds, profile
from sketchdnn.geometry.intersections import distance_to_curve

from .repair_speed import VersionComparison, compare_versions, measure_stages
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

# An end is exact if another primitive is within this share of the size.
EXACT = 1e-6
GOAL = 0.98
# Fewer sketches are repaired in one process.
_MIN_PARALLEL = 100


@dataclass(frozen=True, slots=True)
class EndCounts:
    """Ends of lines and arcs: all, and those close enough to another primitive to snap to it.

    `exact` ends lie on another primitive to 1e-6 of the size; `gone` ends belong to dropped or merged primitives.
    """

    before: int
    exact_before: int
    after: int
    exact_after: int
    close: int
    close_exact: int
    close_gone: int

    def __add__(self, other: EndCounts) -> EndCounts:
        return EndCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def share(self) -> Estimate:
        """Of the ends that were close to another primitive and remain, the share that is exact after repair."""
        return share_estimate(self.close_exact, self.close - self.close_gone)


@dataclass(frozen=True, slots=True)
class RepairBenchmark:
    """The effect on all sketches, and the times."""

    count: int
    ends: EndCounts
    extrudable: tuple[int, int]  # before and after
    displacements: tuple[float, ...]
    unrepaired: int
    actions: Counter[str]
    sketches_with: Counter[str]
    mean: Estimate  # processor seconds per sketch
    median: float
    stages: dict[str, float]  # processor milliseconds per sketch
    comparison: VersionComparison | None  # with another version
    throughput_count: int
    workers: int
    seconds: float
    processor_seconds: float  # of all cores

    def rows(self) -> Iterator[tuple[str, str, str]]:
        ends, (before, after) = self.ends, self.extrudable
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
            f"{percent(share_estimate(before, self.count))}",
            f"{percent(share_estimate(after, self.count))}",
        )
        displacements = np.array(self.displacements)
        quantiles = np.quantile(displacements, (0.5, 0.95, 1.0))
        cells = [f"{quantile:.3%}".replace("%", " %") for quantile in quantiles]
        yield "largest displacement in a sketch: median, 95th percentile, maximum", "", ", ".join(cells)
        yield "sketches not repaired, with a warning", "", f"{self.unrepaired:,}"
        yield (
            "processor time of a sketch: mean, median",
            "",
            f"{1e3 * self.mean.value:.1f} ms, {1e3 * self.median:.1f} ms",
        )

    def stage_rows(self) -> Iterator[tuple[str, str]]:
        for stage, milliseconds in self.stages.items():
            yield stage, f"{milliseconds:.2f}"
        yield "sum", f"{sum(self.stages.values()):.2f}"

    def table(self) -> Table:
        return rich_table(f"Repair of {self.count:,} raw sketches", ("", "raw", "repaired"), self.rows())

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        is_met = "met" if self.ends.share.value >= GOAL else "missed"
        yield f"Of the ends close to another, at least {GOAL:.0%} exact: {is_met}.".replace("%", " %")
        bound = "met" if max(self.displacements) <= REPAIR_TOLERANCE else "missed"
        yield f"Nothing moves by more than the tolerance: {bound}."

    def markdown(self, command: str) -> str:
        actions = [(kind, f"{count:,}", f"{self.sketches_with[kind]:,}") for kind, count in self.actions.most_common()]
        return _PAGE.format(
            command=command,
            count=self.count,
            tolerance=f"{REPAIR_TOLERANCE:.1%}".replace("%", " %"),
            table=markdown_table(("", "raw", "repaired"), self.rows()),
            actions=markdown_table(("action", "times", "sketches"), actions),
            gone=self.ends.close_gone,
            throughput_count=self.throughput_count,
            workers=self.workers,
            s="" if self.workers == 1 else "s",
            seconds=self.seconds,
            mean=f"{1e3 * self.mean.value:.1f} ({1e3 * self.mean.low:.1f}–{1e3 * self.mean.high:.1f})",
            median=1e3 * self.median,
            stages=markdown_table(("stage", "ms a sketch"), self.stage_rows()),
            comparison=f"\n{self.comparison.sentence()}\n" if self.comparison else "",
            processor_seconds=self.processor_seconds,
            least=self.processor_seconds / self.workers,
            speed=self.throughput_count / self.seconds,
            goals="\n".join(f"- {sentence}" for sentence in self.sentences()),
        )


def measure_repair(
    sketches: Sequence[Sketch],
    *,
    throughput_count: int = 10_000,
    against: Path | None = None,
    on_stage: OnStage = ignore_stage,
) -> RepairBenchmark:
    """Repair sketches one by one and measure them; then repair `throughput_count`, these repeated, on all cores.

    Args:
        sketches: Raw sketches.
        throughput_count: How many to repair on all cores.
        against: The folder `src` of another version, which repairs the same sketches in turns with this one.
        on_stage: Called with the stage.
    """
    comparison = compare_versions(sketches, against, on_stage=on_stage) if against else None
    ends = EndCounts(0, 0, 0, 0, 0, 0, 0)
    extrudable_before = extrudable_after = unrepaired = 0
    displacements = []
    seconds = []
    actions: Counter[str] = Counter()
    sketches_with: Counter[str] = Counter()
    for number, sketch in enumerate(sketches):
        on_stage(f"repairing: {number:,} of {len(sketches):,}")
        start = time.process_time()
        result = repair(sketch)
        seconds.append(time.process_time() - start)
        ends += count_ends(sketch, result)
        extrudable_before += profile(sketch).is_extrudable
        extrudable_after += profile(result.sketch).is_extrudable
        displacements.append(result.displacement)
        unrepaired += result.warning is not None and not result.actions
        kinds = [str(action.kind) for action in result.actions]
        actions.update(kinds)
        sketches_with.update(set(kinds))
    on_stage("timing the stages")
    stages = measure_stages(sketches)
    workers = available_cores() if throughput_count > _MIN_PARALLEL else 1
    start, processor_start = time.perf_counter(), _processor_seconds()
    for number, _ in enumerate(repair_all(islice(cycle(sketches), throughput_count), workers=workers)):
        on_stage(f"repairing on all cores: {number:,} of {throughput_count:,}")
    return RepairBenchmark(
        len(sketches),
        ends,
        (extrudable_before, extrudable_after),
        tuple(displacements),
        unrepaired,
        actions,
        sketches_with,
        mean_estimate(seconds) if len(seconds) > 1 else normal_estimate(seconds[0], 0.0),
        float(np.median(seconds)),
        stages,
        comparison,
        throughput_count,
        workers,
        time.perf_counter() - start,
        _processor_seconds() - processor_start,
    )


def _processor_seconds() -> float:
    """Processor time of this process and its ended child processes."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def count_ends(sketch: Sketch, result: RepairedSketch) -> EndCounts:
    """Count the ends that were close to another primitive, and those that lie on one after repair.

    Primitives that were merged with that of an end do not count as others.
    """
    size = bounds(sketch).size
    targets: dict[int, set[int]] = {}  # the repaired primitives that each primitive became
    for number, sources in enumerate(result.sources):
        for source in sources:
            targets.setdefault(source, set()).add(number)
    is_exact = {
        (number, end): _distance_to_others(result.sketch, {number}, end) / size <= EXACT
        for number, primitive in enumerate(result.sketch)
        for end in _ends(primitive)
    }
    before = exact_before = close = close_exact = close_gone = 0
    for i, primitive in enumerate(sketch):
        own = targets.get(i, set())
        merged = {j for j in range(len(sketch)) if j == i or own & targets.get(j, set())}
        for end in _ends(primitive):
            before += 1
            exact_before += _distance_to_others(sketch, {i}, end) / size <= EXACT
            if _distance_to_others(sketch, merged, end) / size > REPAIR_TOLERANCE:
                continue
            close += 1
            candidates = [key for key in is_exact if key[0] in own]
            nearest = min(candidates, key=lambda key: math.dist(key[1], end), default=None)
            if nearest is None or math.dist(nearest[1], end) / size > 2 * REPAIR_TOLERANCE:
                close_gone += 1
            else:
                close_exact += is_exact[nearest]
    return EndCounts(before, exact_before, len(is_exact), sum(is_exact.values()), close, close_exact, close_gone)


def _ends(primitive: Primitive) -> tuple[Vec, ...]:
    return (primitive.start, primitive.end) if isinstance(primitive, Line | Arc) else ()


def _distance_to_others(sketch: Sketch, excluded: set[int], point: Vec) -> float:
    """The distance from a point to the nearest curve that is not excluded."""
    others = (p for j, p in enumerate(sketch) if j not in excluded and not isinstance(p, Point))
    return min((distance_to_curve(p, point) for p in others), default=math.inf)


_PAGE = """# Repair of raw sketches

    {command}

{count:,} raw sketches of a model, repaired with a tolerance of {tolerance} of the size. In brackets, 95 % intervals.

{table}

- **ends close to another**: ends of lines and arcs that had an end or curve of another primitive within the tolerance
  and remain ({gone:,} belong to dropped or merged primitives). **exact**: such an end or curve is within 1e-6 of the
  size. Primitives that were merged with that of an end do not count as others.
- **all ends**: with or without another primitive nearby; real sketches have open ends too.
- **profiles that can be extruded**: sketches whose curves all close to loops that do not cross, touch or overlap.

Repair actions:

{actions}

One sketch takes {mean} ms of one core, a median of {median:.1f} ms. {throughput_count:,} sketches, these repeated, on
{workers} core{s}: {seconds:,.0f} s, {speed:,.0f} sketches per second. All cores together took
{processor_seconds:,.0f} s: on an idle machine it would take {least:,.0f} s.

Time by stage, of one core (the clocks take part of it):

{stages}
{comparison}
{goals}
"""
