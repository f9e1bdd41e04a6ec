"""From a seed to sketches of a real size. Sketch i of a seed is the same whatever is asked for beside it.

A sketch that is empty or not what was asked for is drawn anew, from other noise. Which attempt is kept depends on the
sketch alone (and, if sketches are to be unique, on those before it), so attempts may be drawn ahead, several in a
batch. On a GPU rows to spare cost nothing, so all of them are attempts. On a CPU each row costs: as many attempts are
drawn as were in vain so far, so at most about half of all rows are for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Protocol

from sketchdnn.diffusion.sampling import Progress, SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.geometry import MM_PER_UNIT, Sketch
from sketchdnn.geometry.near import TOLERANCE
from sketchdnn.geometry.quantities import length
from sketchdnn.representation.decoding import Decoded
from sketchdnn.systems import System

from .choices import given_for
from .closed import CLOSE
from .conditions import NO_CONDITIONS, Conditions, check_conditions
from .engine import CHUNK, GPU_CHUNK, NUMBER_BITS, Ask, Engine, chunk_size, compiled
from .keep import Keeper
from .record import Recorder
from .repairs import mend_all
from .search import Attempt, Drawing, Search, most_attempts, sized

__all__ = [
    "CHUNK",
    "GPU_CHUNK",
    "SIZE",
    "STEPS",
    "UNITS",
    "Drawing",
    "OnProgress",
    "check_request",
    "chunk_size",
    "draw",
]

STEPS = 50
SIZE = 100.0
UNITS = "mm"
_MOST_SEEDS = 2**64

OnProgress = Callable[[float], None]


class Place(Protocol):
    """Where a sketch is to be, how large and by which name; none if it is empty or has no extent."""

    def __call__(self, sketch: Sketch, *, name: str) -> Sketch | None: ...


def draw(
    system: System,
    count: int,
    *,
    seed: int = 0,
    steps: int = STEPS,
    sampler: str | None = None,
    size: float | str = SIZE,
    units: str = UNITS,
    conditions: Conditions = NO_CONDITIONS,
    first: int = 0,
    frames: int = 0,
    compile: bool = False,  # noqa: A002
    repair: bool = False,
    workers: int = 1,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Drawing]:
    """Sketches first..first+count−1 of a seed as their batches finish, the larger side of each `size` in `units`.

    A `size` in words, such as "4in", says its unit itself.

    Memory is bounded, however many there are. `frames` moments are kept of how each came about. With `compile` a GPU
    is quicker, once it has compiled. `on_progress` hears how many sketches' worth of work is done.

    They come as the model drew them, which is what measurements are of; with `repair` each is repaired, on large
    batches by so many `workers`, and it is the repaired sketch that must be what was asked for.
    """
    size, units = check_size(size, units)
    check_request(count, seed, size, first)
    options = system.resolve(SamplingOptions(sampler, steps))
    check_conditions(conditions, system)
    given_of = partial(given_for, conditions, seed, system=system)
    engine = Engine(compiled(system) if compile else system, seed, options, given_of)
    place = partial(sized, size=size, units=units)
    placing = Placing(place, repair, workers)
    return draw_with(engine, count, placing, conditions, first=first, frames=frames, on_progress=on_progress)


@dataclass(frozen=True, slots=True)
class Placing:
    """What becomes of what was drawn: it is repaired, if that is wanted, and then put in its place."""

    place: Place
    repair: bool = False
    workers: int = 1

    def all(self, drawn: Sequence[Decoded], names: Sequence[str]) -> list[Attempt]:
        """Each as an attempt at the sketch of that name."""
        placed = [self.place(each.sketch, name=name) for each, name in zip(drawn, names, strict=True)]
        attempts = [Attempt(sketch, each) for sketch, each in zip(placed, drawn, strict=True)]
        if not self.repair:
            return attempts
        there = [number for number, sketch in enumerate(placed) if sketch is not None]
        # Before it is placed, so that in the end it has the size asked for.
        mended = mend_all([drawn[number].sketch for number in there], workers=self.workers)
        for number, done in zip(there, mended, strict=True):
            sketch = self.place(done.sketch, name=names[number])
            attempts[number] = Attempt(sketch, drawn[number], repair=done.repairs)
        return attempts


def draw_with(
    engine: Engine,
    count: int,
    placing: Placing,
    conditions: Conditions = NO_CONDITIONS,
    *,
    first: int = 0,
    frames: int = 0,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Drawing]:
    """`draw` with an engine that is ready, each sketch where `placing` has it."""
    # What was repaired is closed if its ends meet, not if they nearly do.
    keeper = Keeper(conditions, engine.system.training_index, TOLERANCE if placing.repair else CLOSE)
    recorder = Recorder(frames, engine.system.rows.arc_scalar)
    for begin in range(0, count, window := engine.chunk):
        numbers = range(first + begin, first + min(begin + window, count))
        tell = _Teller(on_progress, begin, conditions)
        found: dict[int, Drawing] = {}
        searches = {number: Search(number) for number in numbers}
        while searches:
            asks = _asks(list(searches.values()), window, conditions, free=engine.pads)
            tell.begin(len(found), len(searches))
            drawn = zip(asks, engine.draw(asks, _both(tell, recorder)), strict=True)
            # Attempts ahead are looked at only where those before them would not do.
            for _, same in groupby(drawn, key=lambda pair: pair[0].attempt):
                some = [(ask, decoded) for ask, decoded in same if ask.number in searches]
                names = [f"seed {engine.seed}, sketch {ask.number}" for ask, _ in some]
                attempts = placing.all([decoded for _, decoded in some], names)
                for (ask, _), attempt in zip(some, attempts, strict=True):
                    searches[ask.number].attempts.append(replace(attempt, frames=recorder.taken(ask)))
                found |= _settled(searches, keeper)
            recorder.forget()
        on_progress(float(min(begin + window, count)))
        yield from (found[number] for number in numbers)


def check_request(count: int, seed: int, size: float, first: int = 0) -> None:
    """Refuses what cannot be drawn, before anything is."""
    if count < 1:
        raise SketchError(f"at least one sketch must be asked for, not {count}")
    if not 0 <= seed < _MOST_SEEDS:
        raise SketchError(f"a seed is a whole number from 0 to 2^64 − 1, not {seed}")
    if first < 0 or first + count > 1 << NUMBER_BITS:
        raise SketchError(f"the sketches of a seed are numbered from 0 to 2^{NUMBER_BITS} − 1")
    if not 1e-6 <= size <= 1e9:
        raise SketchError(f"a sketch cannot be {size} large")


def check_size(size: float | str, units: str = UNITS) -> tuple[float, str]:
    """A length and its unit, in words as on the command line or as a number of `units`.

    >>> check_size("120mm"), check_size(4, "in")
    ((120.0, 'mm'), (4, 'in'))
    """
    if units not in MM_PER_UNIT:
        raise SketchError(f"'{units}' is no unit; use one of {', '.join(MM_PER_UNIT)}")
    return length(size, "size", units) if isinstance(size, str) else (size, units)


def _settled(searches: dict[int, Search], keeper: Keeper) -> dict[int, Drawing]:
    """Takes out what is settled. Where sketches are to be unique, each waits for those before it."""
    found: dict[int, Drawing] = {}
    for number, search in list(searches.items()):
        drawing = search.settle(keeper)
        if drawing is not None:
            keeper.keep(drawing.sketch)
            found[number] = drawing
            del searches[number]
        elif keeper.conditions.unique:
            break
    return found


def _asks(searches: Sequence[Search], room: int, conditions: Conditions, *, free: bool) -> list[Ask]:
    """The next attempts at each, as many as there is room for; where rows are not `free`, only those that may pay."""
    worth = [room if free else search.worth_drawing(conditions.best_of) for search in searches]
    room_each = max(1, room // sum(map(bool, worth)))
    most = most_attempts(conditions)
    return [
        Ask(search.number, len(search.attempts) + step)
        for step in range(min(room_each, max(worth)))
        for search, ahead in zip(searches, worth, strict=True)
        if step < ahead and len(search.attempts) + step < most
    ]


@dataclass(slots=True)
class _Teller:
    """Turns the steps of batches into sketches' worth of work, which never falls."""

    on_progress: OnProgress
    done: int
    conditions: Conditions
    base: float = 0.0
    worth: float = 0.0
    highest: float = 0.0

    def begin(self, settled: int, unsettled: int) -> None:
        """A batch, which is likely to settle some of what is not."""
        share = 0.5 if self.conditions.asked else 1.0
        self.base, self.worth = self.done + settled, unsettled * share / self.conditions.best_of

    def hear(self, progress: Progress) -> None:
        self.highest = max(self.highest, self.base + self.worth * progress.number / progress.total)
        self.on_progress(self.highest)


def _both(tell: _Teller, recorder: Recorder) -> Callable[[Sequence[Ask], Progress], None]:
    def hear(asks: Sequence[Ask], progress: Progress) -> None:
        tell.hear(progress)
        if recorder.count:
            recorder.hear(asks, progress)

    return hear
