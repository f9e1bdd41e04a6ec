"""Variations of a sketch: noise takes it some of the way to nothing, and the model brings it back.

All of it is noised, empty rows too, so primitives may come, go and change their kind; the more the stronger. It stays
in its place, at its size and in its units, as far as the model lets it.

The strength is the share of a whole draw's steps that are walked back. These are spaced quadratically, so of T steps of
noise a strength s takes s²·T: 0.3 leaves a sketch recognizable, where 0.3·T would leave little but its kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sketchdnn.diffusion.sampling import SamplingOptions, Start
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Placement, Sketch, bounds, normalize
from sketchdnn.representation import layout
from sketchdnn.systems import System

from .conditions import NO_CONDITIONS, Conditions, check_conditions
from .engine import Engine, compiled, device_of
from .frames import visible
from .generate import STEPS, UNITS, Drawing, OnProgress, Placing, check_request, draw_with
from .rows import rows_of

STRENGTH = 0.3


def draw_like(
    system: System,
    sketch: Sketch,
    count: int,
    *,
    seed: int = 0,
    strength: float = STRENGTH,
    steps: int = STEPS,
    sampler: str | None = None,
    conditions: Conditions = NO_CONDITIONS,
    first: int = 0,
    frames: int = 0,
    compile: bool = False,  # noqa: A002
    repair: bool = False,
    workers: int = 1,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Drawing]:
    """Variations first..first+count−1 of a seed. A `strength` near 0 gives the sketch back, 1 anything the model draws.

    `steps` are those of a whole draw, of which a variation takes its share in one walk or two. All `conditions` are met
    by drawing again: nothing is given beside the sketch. `compile`, `repair` and `workers` are those of `draw`.
    """
    check_request(count, seed, 1.0, first)
    options = system.resolve(SamplingOptions(sampler, steps))
    check_conditions(conditions, system)
    start, where = start_like(system, sketch, strength)
    fewer = min(start.t, max(1, round(steps * strength)))
    options = replace(options, steps=fewer, start=start)
    engine = Engine(compiled(system) if compile else system, seed, options)
    place = partial(_placed, where=where, units=sketch.units or UNITS)
    placing = Placing(place, repair, workers)
    return draw_with(engine, count, placing, conditions, first=first, frames=frames, on_progress=on_progress)


def start_like(system: System, sketch: Sketch, strength: float) -> tuple[Start, Placement]:
    """Where the walk back begins, one sketch on the system's device, and where the sketch came from."""
    if not 0 < strength <= 1:
        raise SketchError(f"the strength of a variation lies above 0 and goes up to 1, not {strength}")
    if len(sketch) > layout.MAX_PRIMITIVES:
        raise SketchError(f"the sketch has {len(sketch)} primitives and this model draws up to {layout.MAX_PRIMITIVES}")
    if system.max_steps is None:
        raise SketchError(
            f"a '{system.name}' takes no noise away, so it cannot vary a sketch; use a model that denoises"
        )
    placed, where = normalize(visible(sketch, bounds(sketch).size / 2))
    batch = rows_of([placed], system.rows, device_of(system))
    return Start(max(1, round(strength**2 * system.max_steps)), batch), where


def _placed(sketch: Sketch, where: Placement, units: str, name: str) -> Sketch | None:
    """A variation where its sketch was; none if it is empty or has no extent."""
    try:
        normalize(sketch)
        return replace(where.restore(sketch), units=units, extra={"id": name})
    except GeometryError:
        return None
