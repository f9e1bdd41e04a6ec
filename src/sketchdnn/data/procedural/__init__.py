"""A corpus without a download: plausible parts in millimeters, each determined by a seed and an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from sketchdnn.geometry import TAU, Point, Primitive, Sketch, Vec, bounds

from . import flat_parts as flat
from . import section_profiles as section
from .shapes import DesignRng, PartDesign, mirrored, rotated

__all__ = ["FAMILIES", "procedural"]

MAX_PRIMITIVES = 16

# The relative frequency of each family.
_WEIGHTS: Mapping[Callable[[DesignRng], PartDesign], float] = {
    flat.plate: 3, flat.row_plate: 2, flat.slotted_plate: 2, flat.keyhole_plate: 1, flat.window_plate: 2,
    flat.square_flange: 1, flat.ear_flange: 1, flat.link: 2, flat.rocker: 1, section.l_bracket: 3,
    section.t_bracket: 2, section.u_channel: 3, section.i_beam: 2, section.z_bracket: 2,
    section.hat_section: 1, section.cross: 1, section.gusset: 2, section.stepped_shaft: 3,
    section.symmetric_profile: 4, section.comb: 2, flat.flange: 2, flat.slotted_disc: 1, flat.washer: 0.5,
    flat.tab_washer: 1, flat.retaining_ring: 1, flat.keyed_hub: 1, flat.d_hub: 1, flat.polygon: 1.5,
    flat.cog: 1, flat.ratchet: 1, flat.knob: 1,
}  # fmt: skip
FAMILIES: Mapping[str, Callable[[DesignRng], PartDesign]] = {design.__name__: design for design in _WEIGHTS}


def procedural(seed: int, index: int) -> Sketch:
    """Part number `index` of the corpus `seed`, independent of all others.

    >>> sketch = procedural(0, 7)
    >>> sketch == procedural(0, 7), sketch.extra["id"], sketch.units
    (True, 'procedural-0-7', 'mm')
    """
    rng = DesignRng(np.random.default_rng([seed, index]))
    weights = np.array(list(_WEIGHTS.values()))
    family = list(FAMILIES)[int(rng.generator.choice(len(weights), p=weights / weights.sum()))]
    part = FAMILIES[family](rng)
    name = f"procedural-{seed}-{index}"
    extra = {"id": name, "group": name, "source": "procedural", "licence": "CC0", "family": family}
    sketch = Sketch(tuple(_oriented(rng, [*part.solid, *_drafting(rng, part)])), units="mm", extra=extra)
    return sketch.moved(rng.choice(0.1, 0.2, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0, 5.0), _offset(rng, sketch))


def _drafting(rng: DesignRng, part: PartDesign) -> list[Primitive]:
    """Center lines, pitch circles and points beside the part. Small parts get more of them."""
    is_small = len(part.solid) < 8
    added: list[Primitive] = []
    if rng.chance(0.8 if is_small else 0.5):
        added += [replace(p, construction=True) for p in part.construction[: rng.integer(1, 3)]]
    if rng.chance(0.7 if is_small else 0.4):
        points = list(dict.fromkeys(part.points))  # without duplicates
        added += [Point(at) for at in points[: rng.choice(1, 1, 1, 2, 3, 4)]]
    return added[: MAX_PRIMITIVES - len(part.solid)]


def _oriented(rng: DesignRng, primitives: list[Primitive]) -> list[Primitive]:
    """Mostly along the axes, sometimes at an angle."""
    if rng.chance(0.5):
        primitives = [mirrored(p) for p in primitives]
    angle = rng.length(0, TAU, step=TAU / 72) if rng.chance(0.08) else rng.integer(0, 3) * TAU / 4
    return [rotated(p, angle) for p in primitives] if angle else primitives


def _offset(rng: DesignRng, sketch: Sketch) -> Vec:
    """None, or the move of the lower left corner to the origin."""
    if rng.chance(0.7):
        return (0.0, 0.0)
    low = bounds(sketch).low
    return (-low[0], -low[1])
