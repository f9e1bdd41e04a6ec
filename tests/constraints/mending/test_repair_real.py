"""Real sketches: clean ones are left alone, and shaken ones close again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from support.real_sketches import spread

from sketchdnn.constraints import repair
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec, arc_from_sweep, bounds, profile


@pytest.fixture(scope="module")
def parts(real_data: Path) -> list[Sketch]:
    """Real sketches of some size that can be extruded."""
    found = [Sketch(tuple(p)) for some in spread(real_data, 400).values() for p in some if 4 <= len(p) <= 16]
    return [sketch for sketch in found if bounds(sketch).size > 0 and profile(sketch).is_extrudable][:60]


def shaken(sketch: Sketch, share: float, chance: random.Random) -> Sketch | None:
    """Every end, center and radius off by up to a share of the size, each on its own."""
    off = share * bounds(sketch).size

    def near(at: Vec) -> Vec:
        return (at[0] + chance.uniform(-off, off), at[1] + chance.uniform(-off, off))

    def one(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return Line(near(start), near(end), p.construction)
            case Arc():
                return arc_from_sweep(near(p.start), near(p.end), p.sweep, construction=p.construction)
            case Circle(center, radius):
                return Circle(near(center), radius + chance.uniform(-off, off), p.construction)
            case Point(at):
                return Point(near(at), p.construction)

    try:
        return Sketch(tuple(one(p) for p in sketch))
    except GeometryError:
        return None


def test_clean_sketches_are_left_alone(parts: list[Sketch]) -> None:
    done = [repair(sketch) for sketch in parts]
    moved = np.array([each.displacement for each in done])
    assert np.quantile(moved, 0.9) < 1e-4
    assert np.mean([len(each.sketch) == len(sketch) for each, sketch in zip(done, parts, strict=True)]) > 0.95
    assert np.mean([profile(each.sketch).is_extrudable for each in done]) > 0.98


def test_shaken_sketches_close_again(parts: list[Sketch]) -> None:
    chance = random.Random(0)
    rough = [sketch for part in parts if (sketch := shaken(part, 0.002, chance)) is not None]
    assert np.mean([profile(sketch).is_extrudable for sketch in rough]) < 0.3
    done = [repair(sketch) for sketch in rough]
    assert np.mean([profile(each.sketch, 1e-6).is_extrudable for each in done]) > 0.9
    assert max(each.displacement for each in done) <= 0.01
    assert np.median([each.displacement for each in done]) < 0.005
