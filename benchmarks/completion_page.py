"""What was measured of completion, as a table and as a page."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from sketchdnn.evaluation.estimate import Estimate
from sketchdnn.evaluation.profiles import LOOSE
from sketchdnn.generation.inpainting import SCALES
from sketchdnn.geometry import Sketch

from .half_hidden import Case
from .recovery import NEAR

COLUMNS = (
    "method",
    "frame",
    "closes, best of {best_of}",
    "closes, one draw",
    "recovered, best of {best_of}",
    "recovered, one draw",
    "given unchanged",
)


@dataclass(frozen=True, slots=True)
class CompletionScore:
    """One method, with the frame known or not: shares of sketches that close, of hidden primitives that came back, and
    of walks that left every given primitive as it was. `chosen` are the best completions, case by case."""

    method: str
    frame: str
    closes: Estimate
    closes_once: Estimate
    recovers: Estimate
    recovers_once: Estimate
    unchanged: Estimate
    chosen: tuple[Sketch, ...]

    def row(self) -> tuple[str, ...]:
        shares = (self.closes, self.closes_once, self.recovers, self.recovers_once)
        return (self.method, self.frame, *map(percent, shares), f"{self.unchanged.value:.0%}")


@dataclass(frozen=True, slots=True)
class CompletionBench:
    """All four, on the same cases, beside what the real sketches and their halves alone do."""

    cases: tuple[Case, ...]
    best_of: int
    sampler: str
    steps: int
    seconds: float | None  # of drawing; none if it was done before
    truth_closes: Estimate
    part_closes: Estimate
    scores: tuple[CompletionScore, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.format(best_of=self.best_of) for column in COLUMNS)

    def rows(self) -> list[tuple[str, ...]]:
        """The table: the four, then the real sketches whole and halved."""
        beside = [("the real rest", self.truth_closes), ("nothing added", self.part_closes)]
        return [
            *(score.row() for score in self.scores),
            *((name, "–", "–", percent(closes), "–", "–", "–") for name, closes in beside),
        ]

    def table(self) -> Table:
        table = Table(*self.columns, title=f"Completing {len(self.cases):,} half-hidden sketches")
        for row in self.rows():
            table.add_row(*(cell.partition(" (")[0] for cell in row))  # intervals are for the page
        return table

    def markdown(self, command: str, figure: str) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, ("---",) * len(self.columns), *self.rows())]
        seconds = "" if self.seconds is None else f" All walks took {self.seconds:,.0f} s."
        return _PAGE.format(
            command=command,
            cases=len(self.cases),
            sampler=self.sampler,
            steps=self.steps,
            rows="\n".join(lines),
            figure=figure,
            near=NEAR,
            within=2 * LOOSE,
            best_of=self.best_of,
            low=SCALES[0],
            high=SCALES[1],
            seconds=seconds,
        )


def percent(estimate: Estimate) -> str:
    """A share with its 95 % interval."""
    return f"{estimate.value:.1%} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


_PAGE = """# Completion: half of a sketch, finished

    {command}

{cases:,} sketches of the test split, each without half of its primitives (by lot, the larger half stays), {steps}
{sampler} steps.{seconds} In brackets, 95 % intervals, by sketch.

{rows}

- **method**: `conditional` shows the network the given rows as they are, which it was trained for; `repaint` noises
  them like the rest and walks each stretch four times, which works with any network (Lugmayr et al. 2022).
- **frame**: `known` lays the part where it lies in the real sketch's own box. `unknown` tries what `sketchdnn complete`
  tries: every other walk is in a frame of {low:g} times the part's size about its middle, the others in frames of up to
  {high:g} times, around it or to a side.
- **best of {best_of}**: the one that `sketchdnn complete` would keep, by its score and by how well it fills its frame;
  nothing of the real sketch is used to choose, and nothing is repaired. **one draw** is the first of them.
- **closes**: every curve that is not construction is part of a loop, ends within {within:g} (larger side 2) counting as
  joined. **recovered**: hidden primitives that an added one of the same kind and flag matches within {near:g} in every
  end, middle, center and radius, each added one counting once. There are many good ways to finish half a sketch, so
  100 % is not to be had.
- **given unchanged**: walks after which every given primitive is equal to what was given, to the bit.

![Given in black, added in blue, what was hidden in light gray]({figure})
"""
