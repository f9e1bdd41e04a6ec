"""Variations of a sketch: noise takes it some of the way to nothing, and the model brings it back.

All of it is noised, empty rows too, so primitives may come, go and change their kind; the more the stronger. It stays
in its place, at its size and in its units, as far as the model lets it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from sketchdnn.diffusion.walk import Start
from sketchdnn.geometry import GeometryError, Placement, Sketch, SketchError, normalise
from sketchdnn.representation import encode, layout
from sketchdnn.representation.codec import expand
from sketchdnn.systems import System
from sketchdnn.systems.sampling import check_sampler, check_step_count

from .conditions import NO_CONDITIONS, Conditions, check_conditions
from .engine import Engine, device_of
from .generate import STEPS, UNITS, Drawing, OnProgress, check_request, draw_with

STRENGTH = 0.3


def draw_like(
    system: System,
    sketch: Sketch,
    count: int,
    *,
    seed: int = 0,
    strength: float = STRENGTH,
    steps: int = STEPS,
    sampler: str = "ancestral",
    conditions: Conditions = NO_CONDITIONS,
    first: int = 0,
    frames: int = 0,
    on_progress: OnProgress = lambda sketches: None,
) -> Iterator[Drawing]:
    """Variations first..first+count−1 of a seed. A `strength` near 0 gives the sketch back, 1 anything the model draws.

    `steps` are those of a whole walk, of which a shorter one takes only what lies on its way. All `conditions` are met
    by drawing again: nothing is given beside the sketch.
    """
    check_request(count, seed, 1.0, first)
    check_sampler(sampler, system)
    check_step_count(steps, system.max_steps)
    check_conditions(conditions, system)
    start, where = start_like(system, sketch, strength)
    engine = Engine(system, seed, steps_like(steps, start.t, system.max_steps or steps), sampler, start=start)
    place = partial(_placed, where=where, units=sketch.units or UNITS)
    yield from draw_with(engine, count, place, conditions, first=first, frames=frames, on_progress=on_progress)


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
    placed, where = normalise(sketch)
    form = system.rows
    compact = encode([placed], canonical_lines=form.canonical_lines)
    device = device_of(system)
    kind, construction, params = (
        torch.from_numpy(part).to(device) for part in (compact.kind, compact.construction, compact.params)
    )
    batch = expand(kind, construction, params, arc_scalar=form.arc_scalar, none_construction=form.none_construction)
    return Start(max(1, round(strength * system.max_steps)), batch), where


def steps_like(steps: int, t: int, num_steps: int) -> int:
    """How many of the steps of a whole walk, spaced quadratically, lie below t."""
    return min(t, max(1, round(steps * math.sqrt(t / num_steps))))


def _placed(sketch: Sketch, where: Placement, units: str, name: str) -> Sketch | None:
    """A variation where its sketch was; none if there is nothing in it."""
    try:
        return replace(where.restore(sketch), units=units, extra={"id": name}) if sketch.primitives else None
    except GeometryError:
        return None
