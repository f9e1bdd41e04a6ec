"""Speed of completion: one suggestion and eight for the same part, with the seconds of each stage."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from rich.table import Table

from sketchdnn.generation import CompleteRequest
from sketchdnn.generation.complete import Completion
from sketchdnn.generation.engine import device_of
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.systems import System
from sketchdnn.systems.devices import usable_cores

from .blind_look import slotted_plate
from .results import OnStage, device_name, ignore_stage, markdown_table, rich_table

# How many times the seconds of one suggestion eight may take.
MAX_OF_ONE = 3.0
FEW, MANY = 1, 8
STAGES = ("geometry", "sampling", "repair and score", "choice")
_COLUMNS = ("part", "suggestions", "candidates", *(f"{stage}, s" for stage in STAGES), "all, s", "of one")


@dataclass(frozen=True, slots=True)
class CompletionTiming:
    """The fastest of several rounds.

    Attributes:
        part: The name of the part.
        count: Number of suggestions.
        candidates: Number of candidates that the model sampled.
        seconds: Those of each stage.
    """

    part: str
    count: int
    candidates: int
    seconds: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.seconds)


@dataclass(frozen=True, slots=True)
class CompletionSpeed:
    """All timings of a run."""

    device: str
    steps: int
    rounds: int
    timings: tuple[CompletionTiming, ...]

    def of_one(self, timing: CompletionTiming) -> float:
        """The seconds over those of one suggestion for the same part."""
        one = next(each for each in self.timings if (each.part, each.count) == (timing.part, FEW))
        return timing.total / one.total

    @property
    def is_allowed(self) -> bool:
        return max(map(self.of_one, self.timings)) <= MAX_OF_ONE

    def rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.timings:
            seconds = (f"{number:.2f}" for number in (*each.seconds, each.total))
            yield (each.part, str(each.count), str(each.candidates), *seconds, f"{self.of_one(each):.2f}")

    def sentences(self) -> Iterator[str]:
        worst = max(map(self.of_one, self.timings))
        yield f"{MANY} suggestions take at most {worst:.2f} times as long as one ({MAX_OF_ONE:g} allowed)."

    def table(self) -> Table:
        return rich_table(f"Completion on {self.device}, best of {self.rounds}", _COLUMNS, self.rows())

    def markdown(self, command: str) -> str:
        note = f"`{command}` on {self.device}; {self.steps} steps, the best of {self.rounds} rounds, model loaded."
        table = markdown_table(_COLUMNS, self.rows())
        return "\n\n".join(["# Speed of completion", note, table, "\n".join(self.sentences())]) + "\n"


def open_plate() -> Sketch:
    """Three sides of a plate, and a hole."""
    corners = [(0.0, 40.0), (80.0, 40.0), (80.0, 0.0), (0.0, 0.0)]
    return Sketch((*(Line(a, b) for a, b in pairwise(corners)), Circle((20, 20), 6)), units="mm")


PARTS = {"three sides and a hole": open_plate, "plate with a slot and two holes": slotted_plate}


def time_completion(
    system: System,
    parts: Iterable[str] = PARTS,
    *,
    steps: int = 50,
    rounds: int = 5,
    on_stage: OnStage = ignore_stage,
) -> CompletionSpeed:
    """Time one and eight suggestions for an open and a finished part."""
    timings = []
    for name in parts:
        part = PARTS[name]()
        for count in (FEW, MANY):
            on_stage(f"{name}: {count}")
            request = CompleteRequest(part=part, count=count, steps=steps)
            timings.append(min((_time(system, name, request) for _ in range(rounds)), key=lambda timing: timing.total))
    device = device_of(system)
    where = f"{usable_cores()} cores of a CPU" if device.type == "cpu" else device_name(device)
    return CompletionSpeed(where, steps, rounds, tuple(timings))


def _time(system: System, name: str, request: CompleteRequest) -> CompletionTiming:
    """One completion in one round of candidates."""
    clock = [time.perf_counter()]
    completion = Completion(system, request)
    finisher = completion.finisher
    candidates = finisher.finish(*finisher.geometric_candidates())
    clock.append(time.perf_counter())
    parts = completion.plan(0)
    completed = completion.sample(parts)
    clock.append(time.perf_counter())
    candidates += finisher.finish(parts, completed)
    clock.append(time.perf_counter())
    finisher.choose(candidates)
    clock.append(time.perf_counter())
    return CompletionTiming(name, request.count, len(parts), tuple(b - a for a, b in pairwise(clock)))
