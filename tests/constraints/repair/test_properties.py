"""Properties of a repair: valid, idempotent, independent of orientation, size and order; and real sketches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.noisy_sketches import add_noise
from support.real_sketches import spread
from support.strategies import assert_same, constraints_on, numbers, sketches

from sketchdnn.constraints import RepairedSketch, repair
from sketchdnn.constraints.repair.symmetry import TURNS, Turn
from sketchdnn.geometry import Line, Primitive, Sketch, Vec, bounds, profile

TOLERANCE = 0.01


def jittered(sketch: Sketch, seed: int, share: float) -> Sketch:
    """Ends on a coarse grid, each off by a little noise, so that they nearly meet, as in generated sketches."""
    rng = random.Random(seed)
    step, off = bounds(sketch).size / 5, share * bounds(sketch).size

    def near(at: Vec) -> Vec:
        return tuple(round(x / step) * step + rng.uniform(-off, off) for x in at)

    moved = [replace(p, start=near(p.start), end=near(p.end)) if isinstance(p, Line) else p for p in sketch]
    return Sketch(tuple(p for p in moved if not isinstance(p, Line) or p.length > 4 * off))


def with_image(sketch: Sketch, turn: Turn, again: bool) -> Sketch:
    """A drawing and its image after a turn: several repairs are equally good, and none may be preferred."""
    twice = [*sketch, *(turn.primitive(p) for p in sketch)]
    return Sketch(tuple([*twice, *twice[:2]] if again else twice))


drawings = st.one_of(
    sketches(),
    st.builds(with_image, sketches(max_size=5), st.sampled_from(TURNS[1:]), st.booleans()),
    st.builds(jittered, sketches(min_size=4, max_size=12), st.integers(0, 10_000), st.sampled_from([1e-4, 2e-3, 6e-3])),
).filter(lambda sketch: len(sketch) > 0 and bounds(sketch).size > 1e-2)


@given(drawings, st.sampled_from(TURNS[1:]))
def test_repair_is_idempotent_and_orientation_does_not_matter(sketch: Sketch, turn: Turn) -> None:
    turned = Sketch(tuple(turn.primitive(p) for p in sketch))
    result, again = repair(sketch), repair(turned)
    twice = repair(result.sketch)
    assert_same(result.sketch, twice.sketch)
    assert not twice.actions
    assert again.sources == result.sources
    turned_after = Sketch(tuple(turn.primitive(p) for p in result.sketch))
    assert_same(canonical(turned_after, result.sources), canonical(again.sketch, again.sources))


@given(drawings, st.floats(-6, 4))
def test_result_is_valid_and_near_and_size_does_not_matter(sketch: Sketch, magnitude: float) -> None:
    scale = 10**magnitude
    result, again = repair(sketch), repair(sketch.moved(scale))
    assert 0 < len(again.sketch) == len(again.sources)
    assert again.displacement <= TOLERANCE
    assert {i for source in again.sources for i in source} <= set(range(len(sketch)))
    assert abs(bounds(again.sketch).size / (scale * bounds(sketch).size) - 1) < 5 * TOLERANCE
    assert again.sources == result.sources
    assert_same(canonical(result.sketch, result.sources), canonical(again.sketch.moved(1 / scale), again.sources))


@given(drawings, st.randoms(use_true_random=False))
def test_order_does_not_matter(sketch: Sketch, rng: random.Random) -> None:
    order = list(range(len(sketch)))
    rng.shuffle(order)
    result = repair(sketch)
    again = repair(Sketch(tuple(sketch.primitives[i] for i in order)))
    here, there = _by_source(result, range(len(sketch))), _by_source(again, order)
    assert here.keys() == there.keys()
    for source, p in here.items():
        assert np.allclose(numbers(p), numbers(there[source]), rtol=0, atol=1e-6 * bounds(sketch).size)


def canonical(sketch: Sketch, sources: Sequence[tuple[int, ...]]) -> Sketch:
    """A sketch in which merged and added lines run one way, and added ones are in one order."""
    size = bounds(sketch).size

    def near(at: Vec) -> tuple[int, int]:
        return (round(1e4 * at[0] / size), round(1e4 * at[1] / size))

    def one_way(p: Primitive) -> Primitive:
        return Line(*sorted((p.start, p.end), key=near), p.construction) if isinstance(p, Line) else p

    both = list(zip(sketch, sources, strict=True))
    own = [p if len(source) == 1 else one_way(p) for p, source in both if source]
    added = [one_way(p) for p, source in both if not source]
    return Sketch((*own, *sorted(added, key=lambda p: near(p.start) + near(p.end) if isinstance(p, Line) else ())))


def _by_source(result: RepairedSketch, order: Sequence[int]) -> dict[frozenset[int], Primitive]:
    """Primitives by their sources, without added ones."""
    ordered = canonical(result.sketch, result.sources)
    sources = [source for source in result.sources if source]
    return {frozenset(order[i] for i in source): p for source, p in zip(sources, ordered, strict=False)}


@given(st.data())
def test_arbitrary_constraints_are_handled(data: st.DataObject) -> None:
    bare = data.draw(sketches(max_size=6))
    given = tuple(data.draw(st.lists(constraints_on(bare), max_size=6)))
    result = repair(Sketch(bare.primitives, given))
    assert len(result.sketch) > 0
    assert result.displacement <= TOLERANCE
    twice = repair(result.sketch)
    assert_same(result.sketch, twice.sketch)
    assert not twice.actions


@given(drawings, st.data())
def test_kept_primitives_never_change(sketch: Sketch, data: st.DataObject) -> None:
    keep = data.draw(st.sets(st.integers(0, len(sketch) - 1)))
    result = repair(sketch, keep=keep)
    now = {i: p for p, source in zip(result.sketch, result.sources, strict=True) for i in source}
    assert all(now[i] == sketch.primitives[i] for i in keep)


def test_real_sketches_are_hardly_changed_and_close_again_with_noise(real_data: Path) -> None:
    items = [Sketch(tuple(p)) for some in spread(real_data, 400).values() for p in some if 4 <= len(p) <= 16]
    real_profiles = [sketch for sketch in items if bounds(sketch).size > 0 and profile(sketch).is_extrudable][:60]
    results = [repair(sketch) for sketch in real_profiles]
    assert np.quantile([result.displacement for result in results], 0.9) < 1e-4
    assert np.mean([len(r.sketch) == len(sketch) for r, sketch in zip(results, real_profiles, strict=True)]) > 0.95
    assert np.mean([profile(result.sketch).is_extrudable for result in results]) > 0.98
    rough = [add_noise(sketch, 0.002 * bounds(sketch).size, seed) for seed, sketch in enumerate(real_profiles)]
    assert np.mean([profile(sketch).is_extrudable for sketch in rough]) < 0.3
    results = [repair(sketch) for sketch in rough]
    assert np.mean([profile(result.sketch, 1e-6).is_extrudable for result in results]) > 0.9
    assert max(result.displacement for result in results) <= 0.01
    assert np.median([result.displacement for result in results]) < 0.005
