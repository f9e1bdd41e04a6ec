"""Sketches without a download: plausible parts in millimeters, each determined by a seed and an index alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from sketchdnn.geometry import TAU, Point, Primitive, Sketch, Vec, bounds

from . import plates, profiles, rounds
from .dice import Dice, Part
from .shapes import mirrored, turned

MOST_PRIMITIVES = 16

# How often each family comes beside the others.
_WEIGHTS: Mapping[Callable[[Dice], Part], float] = {
    plates.plate: 3,
    plates.row_plate: 2,
    plates.slotted_plate: 2,
    plates.keyhole_plate: 1,
    plates.window_plate: 2,
    plates.square_flange: 1,
    plates.ear_flange: 1,
    plates.link: 2,
    plates.rocker: 1,
    profiles.l_bracket: 3,
    profiles.t_bracket: 2,
    profiles.u_channel: 3,
    profiles.i_beam: 2,
    profiles.z_bracket: 2,
    profiles.hat_section: 1,
    profiles.cross: 1,
    profiles.gusset: 2,
    profiles.stepped_shaft: 3,
    profiles.symmetric_profile: 4,
    profiles.comb: 2,
    rounds.flange: 2,
    rounds.slotted_disc: 1,
    rounds.washer: 0.5,
    rounds.tab_washer: 1,
    rounds.retaining_ring: 1,
    rounds.keyed_hub: 1,
    rounds.d_hub: 1,
    rounds.polygon: 1.5,
    rounds.cog: 1,
    rounds.ratchet: 1,
    rounds.knob: 1,
}
FAMILIES: Mapping[str, Callable[[Dice], Part]] = {draw.__name__: draw for draw in _WEIGHTS}


def procedural(seed: int, index: int) -> Sketch:
    """Part number `index` of the corpus `seed`: the same whatever else is drawn, and in whichever order.

    >>> sketch = procedural(0, 7)
    >>> sketch == procedural(0, 7), sketch.extra["id"], sketch.units
    (True, 'procedural-0-7', 'mm')
    """
    dice = Dice(np.random.default_rng([seed, index]))
    family = list(FAMILIES)[int(np.searchsorted(_cumulative(), dice.rng.random(), side="right"))]
    part = FAMILIES[family](dice)
    name = f"procedural-{seed}-{index}"
    extra = {"id": name, "group": name, "source": "procedural", "licence": "CC0", "family": family}
    sketch = Sketch(tuple(_oriented(dice, [*part.solid, *_drafting(dice, part)])), units="mm", extra=extra)
    return sketch.moved(dice.pick(0.1, 0.2, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0, 5.0), _origin(dice, sketch))


@cache
def _cumulative() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    weights = np.fromiter(_WEIGHTS.values(), dtype=np.float64)
    return np.cumsum(weights / weights.sum())


def _drafting(dice: Dice, part: Part) -> list[Primitive]:
    """What a designer leaves beside the part: center lines, pitch circles, points. Small parts get more of it."""
    small = len(part.solid) < 8
    added: list[Primitive] = []
    if dice.chance(0.8 if small else 0.5):
        added += part.aids[: dice.count(1, 3)]
    if dice.chance(0.7 if small else 0.4):
        marks = list(dict.fromkeys(part.marks))  # two families of marks may share a place
        added += [Point(at) for at in marks[: dice.pick(1, 1, 1, 2, 3, 4)]]
    return added[: MOST_PRIMITIVES - len(part.solid)]


def _oriented(dice: Dice, primitives: list[Primitive]) -> list[Primitive]:
    """Mostly along the axes; now and then at an angle."""
    if dice.chance(0.5):
        primitives = [mirrored(p) for p in primitives]
    angle = dice.mm(0, TAU, step=TAU / 72) if dice.chance(0.08) else dice.count(0, 3) * TAU / 4
    return [turned(p, angle) for p in primitives] if angle else primitives


def _origin(dice: Dice, sketch: Sketch) -> Vec:
    """How far the part is moved from where it was designed: not at all, or with its corner onto the origin."""
    if dice.chance(0.7):
        return (0.0, 0.0)
    low = bounds(sketch).low
    return (-low[0], -low[1])
