"""The rest of a sketch: a part stays exactly as it is, and the model adds what may have been left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from sketchdnn.constraints import infer
from sketchdnn.diffusion.conditioning import ConditioningMethod
from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch, bounds
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System

from .choices import kinds_beside
from .conditions import trained_for
from .engine import Ask, chunk_size, device_of
from .frames import MOST_ROOM, NUM_CHOICES, check_room, choose_frame, visible
from .generate import STEPS, check_request
from .repairs import Repairs, mend_all
from .score import score
from .walks import Finished, OnProgress, Walk, check_method, finished, walk_all

# Frames tried for each completion, of which the best is kept.
TRIES = 4
# A completion that adds nothing, or not as many as asked for, is tried anew, but not for ever.
_ATTEMPTS = 4
# What is missed by no more, as a share of the size, holds but for rounding.
_EXACTLY = 1e-9
# Draws of noise that no walk comes to.
_FRAME_DRAW, _COUNT_DRAW, _KIND_DRAW = (2**31 - each for each in (1, 2, 3))

Room = float | tuple[float, float] | None
Primitives = int | tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished sketch: its first `given` primitives are those of the part, equal to the bit; the others were added.

    `room` is the size of its frame over that of the part. `repeated` counts what the model drew on top of what was
    there, which is left out. `shortfall` says what it lacks of what was asked for, if no attempt had it; `repair` what
    was done to what was added, if it was to be repaired.
    """

    number: int
    sketch: Sketch
    given: int
    room: float
    score: float
    attempts: int = 1
    repeated: int = 0
    rejected: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    shortfall: str | None = None
    repair: Repairs | None = None


def complete(
    system: System,
    part: Sketch,
    count: int = 8,
    *,
    seed: int = 0,
    method: ConditioningMethod = "conditional",
    room: Room = None,
    tries: int = TRIES,
    steps: int = STEPS,
    sampler: str | None = None,
    primitives: Primitives = None,
    repair: bool = False,
    workers: int = 1,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Completion]:
    """Completions 0..count−1 of a part, each the best of some `tries`, in the part's own coordinates and units.

    `room` is the finished size over that of the part, or a range of it to try; `primitives` how many there are to be
    in all, or a range of that. Completion i of a seed is the same whatever the count. With `repair` what was added is
    repaired, in large batches by so many `workers`, and judged so; what was given is not touched, but what holds in it
    exactly becomes its constraints if it has none. `on_progress` hears how many sketches' worth of work is done.
    """
    check_part(part)
    check_request(count, seed, 1.0)
    check_method(system, method)
    options = system.resolve(SamplingOptions(sampler, steps))
    if tries < 1:
        raise SketchError(f"each completion takes at least one try, not {tries}")
    wanted = _check_primitives(primitives, len(part), system)
    if repair and not part.constraints:
        # Repair relates what it may move: that corners of the part meet would go unsaid.
        part = replace(part, constraints=infer(part, _EXACTLY))
    task = _Task(system, part, seed, method, check_room(room), tries, options, wanted, repair, workers)
    return _completions(task, count, _rising(on_progress))


def check_part(part: Sketch) -> None:
    """Refuses, with a sentence, a part that cannot be completed."""
    if not len(part):
        raise SketchError("the part is empty: there is nothing to complete; `sketchdnn generate` draws new sketches")
    if len(part) > MAX_PRIMITIVES:
        raise SketchError(
            f"the part has {len(part)} primitives, and a finished sketch at most {MAX_PRIMITIVES}; take some away"
        )
    if len(part) == MAX_PRIMITIVES:
        raise SketchError(f"the part has {MAX_PRIMITIVES} primitives, as many as a sketch can have: nothing to add")
    box = bounds(part)
    if not box.size > 0:
        raise SketchError("the part has no extent, so there is no telling how large the sketch is to be; add a line")
    if not len(visible(part, MOST_ROOM * box.size / 2)):
        raise SketchError("all that is in the part is too small beside its size to go on from; add a longer line")


def frame_walks(
    part: Sketch, rooms: tuple[float, float], *, seed: int, number: int, tries: int, first: int = 0
) -> tuple[list[float], list[Walk]]:
    """The rooms and the walks of one completion: as many frames as tries, and noise of its own for each.

    Tries are numbered on from `first`.
    """
    box = bounds(part)
    trials = range(first, first + tries)
    noise = [Ask(number, trial).sample for trial in trials]
    choices = uniform(seed, torch.tensor(noise), _FRAME_DRAW, (NUM_CHOICES,)).tolist()
    frames = [choose_frame(box, rooms, trial % tries, tries, own) for trial, own in zip(trials, choices, strict=True)]
    walks = [Walk(part, frame, sample) for (_, frame), sample in zip(frames, noise, strict=True)]
    return [room for room, _ in frames], walks


def standing(one: Finished) -> float:
    """How good a completion is, to choose among some: its score, less the misfit of its frame; at most 1."""
    return score(one.sketch) - one.misfit if one.added else -math.inf


@dataclass(frozen=True, slots=True)
class _Task:
    """What was asked for, checked."""

    system: System
    part: Sketch
    seed: int
    method: ConditioningMethod
    rooms: tuple[float, float]
    tries: int
    options: SamplingOptions
    wanted: tuple[int, int] | None
    repair: bool
    workers: int

    def how_many(self, number: int) -> int | None:
        """How many primitives this completion is to have: one of the range, by lot."""
        if self.wanted is None:
            return None
        low, high = self.wanted
        lot = float(uniform(self.seed, torch.tensor([number]), _COUNT_DRAW, (1,)))
        return low + int(lot * (high - low + 1))

    def off(self, primitives: int) -> int:
        """How far a number of primitives is from what was asked for."""
        low, high = self.wanted or (primitives, primitives)
        return max(low - primitives, primitives - high, 0)

    def rank(self, sketch: Sketch, score: float) -> tuple[float, float]:
        """The number of primitives first, where it matters; then how good it is."""
        return -self.off(len(sketch)), score

    def walks(self, number: int, attempt: int) -> tuple[list[float], list[Walk]]:
        first = attempt * self.tries
        rooms, walks = frame_walks(self.part, self.rooms, seed=self.seed, number=number, tries=self.tries, first=first)
        wanted = self.how_many(number)
        if wanted is None:
            return rooms, walks
        noise = torch.tensor([walk.noise for walk in walks])
        chance = uniform(self.seed, noise, _KIND_DRAW, (1,))[:, 0].double().numpy()
        kinds = kinds_beside(self.part, wanted, chance, self.system.training_index)
        return rooms, [replace(walk, adding=adding) for walk, adding in zip(walks, kinds, strict=True)]


def _completions(task: _Task, count: int, on_progress: OnProgress) -> Iterator[Completion]:
    """As many at a time as share a batch."""
    together = max(1, chunk_size(device_of(task.system)) // task.tries)
    for first in range(0, count, together):
        numbers = range(first, min(first + together, count))
        best: dict[int, Completion] = {}
        for attempt in range(_ATTEMPTS):
            waiting = [n for n in numbers if n not in best or best[n].shortfall]
            if not waiting:
                break
            tell = partial(_tell, on_progress, numbers[-1] + 1 - len(waiting), len(waiting))
            for one in _tried(task, waiting, attempt, tell):
                best[one.number] = max(
                    best.get(one.number, one), one, key=lambda each: task.rank(each.sketch, each.score)
                )
            best |= {n: replace(best[n], attempts=attempt + 1) for n in waiting if n in best}
        if len(best) < len(numbers):
            raise SketchError(
                f"the model added nothing to the part in {_ATTEMPTS * task.tries} tries; give it more steps or room"
            )
        on_progress(float(numbers[-1] + 1))
        yield from (best[number] for number in numbers)


def _rising(on_progress: OnProgress) -> OnProgress:
    """Never less than before, though what was tried in vain is tried again."""
    highest = 0.0

    def tell(done: float) -> None:
        nonlocal highest
        highest = max(highest, done)
        on_progress(highest)

    return tell


def _tell(on_progress: OnProgress, base: int, worth: int, share: float) -> None:
    on_progress(base + share * worth)


def _tried(task: _Task, numbers: Sequence[int], attempt: int, on_progress: OnProgress) -> Iterator[Completion]:
    """The best of the tries at each of these completions; none where all added nothing."""
    plans = [task.walks(number, attempt) for number in numbers]
    walks = [walk for _, walks in plans for walk in walks]
    batch = walk_all(
        task.system,
        walks,
        seed=task.seed,
        method=task.method,
        options=task.options,
        chunk=chunk_size(device_of(task.system)),
        on_progress=on_progress,
    )
    outcomes = list(finished(walks, batch, task.system.rows.arc_scalar))
    repairs: list[Repairs | None] = [None] * len(outcomes)
    if task.repair:
        outcomes, repairs = _repaired(task, outcomes)
    for place, number in enumerate(numbers):
        found = outcomes[place * task.tries : (place + 1) * task.tries]
        chosen = max(range(task.tries), key=lambda trial: task.rank(found[trial].sketch, standing(found[trial])))
        if found[chosen].added:
            done = repairs[place * task.tries + chosen]
            yield _completion(task, number, found[chosen], plans[place][0][chosen], done)


def _repaired(task: _Task, outcomes: Sequence[Finished]) -> tuple[list[Finished], list[Repairs | None]]:
    """What walks came to after repair: there may be fewer primitives or more, but all that were given."""
    given = len(task.part)
    mended = mend_all([one.sketch for one in outcomes], given, workers=task.workers)
    return [
        replace(one, sketch=done.sketch, added=len(done.sketch) - given)
        for one, done in zip(outcomes, mended, strict=True)
    ], [done.repairs for done in mended]


def _completion(task: _Task, number: int, one: Finished, room: float, repairs: Repairs | None) -> Completion:
    has = len(one.sketch)
    return Completion(
        number,
        replace(one.sketch, extra={**one.sketch.extra, "id": f"seed {task.seed}, completion {number}"}),
        given=len(task.part),
        room=room,
        score=standing(one),
        repeated=one.repeated,
        rejected=one.rejected,
        repaired=one.repaired,
        shortfall=f"{_told(task.wanted)} primitives were asked for, and it has {has}" if task.off(has) else None,
        repair=repairs,
    )


def _check_primitives(primitives: Primitives, given: int, system: System) -> tuple[int, int] | None:
    if primitives is None:
        return None
    low, high = primitives if isinstance(primitives, tuple) else (primitives, primitives)
    fewest, most = trained_for(system)
    fewest, most = max(fewest, given + 1), min(most, MAX_PRIMITIVES)
    if not fewest <= low <= high <= most:
        raise SketchError(
            f"with {given} given, this model can be asked for {fewest} to {most} primitives in all, "
            f"not {_told((low, high))}"
        )
    return low, high


def _told(wanted: tuple[int, int] | None) -> str:
    low, high = wanted or (0, 0)
    return f"{low}" if low == high else f"{low}..{high}"
