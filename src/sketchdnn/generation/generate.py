"""From a seed to sketches of a real size. Sketch i of a seed is the same whatever is asked for beside it.

Its noise belongs to its number alone, and the network sees it in a batch of one fixed size, together with the same
neighbours: arithmetic in a batch of another size may round otherwise, and a sampler makes much of the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.geometry import GeometryError, Sketch, SketchError, normalise
from sketchdnn.representation.codec import decode
from sketchdnn.representation.decoding import Decoded
from sketchdnn.systems import System
from sketchdnn.systems.sampling import check_sampler, check_step_count

CHUNK = 16
STEPS = 50
SIZE = 100.0
UNITS = "mm"
# A sketch with nothing in it is drawn anew, from other noise, but not for ever.
_ATTEMPTS = 8
_MOST_SEEDS = 2**64


@dataclass(frozen=True, slots=True)
class Drawing:
    """A sketch, where it came from, and what the model drew that was no primitive and had to be left out."""

    number: int
    sketch: Sketch
    attempts: int = 1
    rejected: tuple[str, ...] = ()


OnProgress = Callable[[float], None]


def draw(
    system: System,
    count: int,
    *,
    seed: int = 0,
    steps: int = STEPS,
    sampler: str = "ancestral",
    size: float = SIZE,
    units: str = UNITS,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Drawing]:
    """Sketches 0..count−1 of a seed as their batches finish, the larger side of each `size` in `units`.

    `on_progress` hears how many sketches' worth of work is done.
    """
    check_request(count, seed, size)
    check_sampler(sampler)
    check_step_count(steps, system.config.num_steps)

    for first in range(0, count, CHUNK):
        places = range(min(CHUNK, count - first))
        found: dict[int, Drawing] = {}
        for attempt in range(_ATTEMPTS):
            decoded = _chunk(system, seed, first, attempt, sampler, steps, partial(_tell, on_progress, first, count))
            for place in places:
                sketch = _sized(decoded[place], size, units)
                if place not in found and sketch is not None:
                    named = replace(sketch, extra={"id": f"seed {seed}, sketch {first + place}"})
                    rejected = tuple(issue.reason for issue in decoded[place].rejects)
                    found[place] = Drawing(first + place, named, attempt + 1, rejected)
            if len(found) == len(places):
                break
        else:
            raise SketchError(f"the model drew nothing in {_ATTEMPTS} attempts; use more steps or another model")
        yield from (found[place] for place in places)


def check_request(count: int, seed: int, size: float) -> None:
    """Refuses what cannot be drawn, before anything is."""
    if count < 1:
        raise SketchError(f"at least one sketch must be asked for, not {count}")
    if not 0 <= seed < _MOST_SEEDS:
        raise SketchError(f"a seed is a whole number from 0 to 2^64 − 1, not {seed}")
    if not 1e-6 <= size <= 1e9:
        raise SketchError(f"a sketch cannot be {size} large")


def _chunk(
    system: System,
    seed: int,
    first: int,
    attempt: int,
    sampler: str,
    steps: int,
    on_part: OnProgress,
) -> list[Decoded]:
    """A whole batch, needed or not: what is in it depends on the number of its first sketch alone."""
    device = next(system.parameters()).device
    # Attempts count in the upper half of a sample's number, which no sketch of a seed reaches.
    numbers = torch.arange(first, first + CHUNK, device=device) + (attempt << 32)
    with torch.no_grad():
        batch = system.sample(
            seeded_noise(seed, numbers),
            sampler=sampler,
            steps=steps,
            on_step=lambda progress: on_part(progress.number / progress.total),
        )
    return decode(batch, system.rows.arc_scalar)


def _tell(on_progress: OnProgress, first: int, count: int, part: float) -> None:
    on_progress(min(float(count), first + part * CHUNK))


def _sized(decoded: Decoded, size: float, units: str) -> Sketch | None:
    """The sketch, centred, its larger side `size`; none if it is empty or has no extent."""
    if not decoded.sketch.primitives:
        return None
    try:
        placed, _ = normalise(decoded.sketch, size / 2)
    except GeometryError:
        return None
    return replace(placed, units=units)
