"""Whatever goes in: a valid sketch comes out, repairing it again changes nothing, and how it lay does not matter."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from sketchdnn.constraints.mending.turns import TURNS, Turn
from support.strategies import assert_same, constraints_on, numbers, sketches

from sketchdnn.constraints import Repaired, repair
from sketchdnn.geometry import Line, Primitive, Sketch, Vec, bounds

TOLERANCE = 0.01


def jittered(sketch: Sketch, seed: int, share: float) -> Sketch:
    """Corners of a drawing on a coarse grid, each end off by a little of its own: things nearly meet, as they do in
    what a model draws."""
    chance = random.Random(seed)
    step, off = bounds(sketch).size / 5, share * bounds(sketch).size

    def near(x: float) -> float:
        return round(x / step) * step + chance.uniform(-off, off)

    def one(p: Primitive) -> Primitive | None:
        match p:
            case Line((x0, y0), (x1, y1)):
                start, end = (near(x0), near(y0)), (near(x1), near(y1))
                return Line(start, end, p.construction) if math.dist(start, end) > 4 * off else None
            case _:
                return p

    return Sketch(tuple(q for p in sketch if (q := one(p)) is not None))


def with_image(sketch: Sketch, turn: Turn, again: bool) -> Sketch:
    """A drawing and its image in a mirror or after a turn: where several ways to repair are as good, none may win."""
    twice = [*sketch, *(turn.primitive(p) for p in sketch)]
    return Sketch(tuple([*twice, *twice[:2]] if again else twice))


drawings = st.one_of(
    sketches(),
    st.builds(with_image, sketches(max_size=5), st.sampled_from(TURNS[1:]), st.booleans()),
    st.builds(jittered, sketches(min_size=4, max_size=12), st.integers(0, 10_000), st.sampled_from([1e-4, 2e-3, 6e-3])),
).filter(lambda sketch: len(sketch) > 0 and bounds(sketch).size > 1e-2)


@given(drawings, st.floats(-6, 4))
def test_a_valid_sketch_comes_out_and_nothing_moves_too_far(sketch: Sketch, magnitude: float) -> None:
    sketch = sketch.moved(10**magnitude)
    done = repair(sketch)
    assert 0 < len(done.sketch) == len(done.sources)
    assert done.displacement <= TOLERANCE
    assert {i for source in done.sources for i in source} <= set(range(len(sketch)))
    assert abs(bounds(done.sketch).size / bounds(sketch).size - 1) < 5 * TOLERANCE


@given(drawings)
def test_repairing_again_changes_nothing(sketch: Sketch) -> None:
    once = repair(sketch)
    twice = repair(once.sketch)
    assert_same(once.sketch, twice.sketch)
    assert not twice.actions


@given(drawings, st.sampled_from(TURNS[1:]))
def test_turns_and_mirrors_do_not_matter(sketch: Sketch, turn: Turn) -> None:
    turned = Sketch(tuple(turn.primitive(p) for p in sketch))
    done, again = repair(sketch), repair(turned)
    assert again.sources == done.sources
    turned_after = Sketch(tuple(turn.primitive(p) for p in done.sketch))
    assert_same(_told(turned_after, done.sources), _told(again.sketch, again.sources))


@given(drawings, st.floats(-6, 4))
def test_size_does_not_matter(sketch: Sketch, magnitude: float) -> None:
    scale = 10**magnitude
    done, again = repair(sketch), repair(sketch.moved(scale))
    assert again.sources == done.sources
    assert_same(_told(done.sketch, done.sources), _told(again.sketch.moved(1 / scale), again.sources))


@given(drawings, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(sketch: Sketch, chance: random.Random) -> None:
    order = list(range(len(sketch)))
    chance.shuffle(order)
    done = repair(sketch)
    again = repair(Sketch(tuple(sketch.primitives[i] for i in order)))
    here, there = _by_source(done, range(len(sketch))), _by_source(again, order)
    assert here.keys() == there.keys()
    for source, p in here.items():
        worst = max(abs(x - y) for x, y in zip(numbers(p), numbers(there[source]), strict=True))
        assert worst <= 1e-6 * bounds(sketch).size


def _told(sketch: Sketch, sources: Sequence[tuple[int, ...]]) -> Sketch:
    """A sketch in which lines that are not one of the input's run one way, and added ones are in one order."""
    size = bounds(sketch).size

    def near(at: Vec) -> tuple[int, int]:
        return (round(1e4 * at[0] / size), round(1e4 * at[1] / size))

    def one_way(p: Primitive) -> Primitive:
        return Line(*sorted((p.start, p.end), key=near), p.construction) if isinstance(p, Line) else p

    both = list(zip(sketch, sources, strict=True))
    own = [p if len(source) == 1 else one_way(p) for p, source in both if source]
    added = [one_way(p) for p, source in both if not source]
    return Sketch((*own, *sorted(added, key=lambda p: near(p.start) + near(p.end) if isinstance(p, Line) else ())))


def _by_source(done: Repaired, order: Sequence[int]) -> dict[frozenset[int], Primitive]:
    """Primitives by what they came from; what was added came from nothing and is left out."""
    told = _told(done.sketch, done.sources)
    sources = [source for source in done.sources if source]
    return {frozenset(order[i] for i in source): p for source, p in zip(sources, told, strict=False)}


@given(st.data())
def test_any_constraints_may_come_with_it(data: st.DataObject) -> None:
    bare = data.draw(sketches(max_size=6))
    given = tuple(data.draw(st.lists(constraints_on(bare), max_size=6)))
    done = repair(Sketch(bare.primitives, given))
    assert len(done.sketch) > 0
    assert done.displacement <= TOLERANCE
    twice = repair(done.sketch)
    assert_same(done.sketch, twice.sketch)
    assert not twice.actions


@given(drawings, st.data())
def test_what_is_kept_never_changes(sketch: Sketch, data: st.DataObject) -> None:
    keep = data.draw(st.sets(st.integers(0, len(sketch) - 1)))
    done = repair(sketch, keep=keep)
    for i in keep:
        now = next(p for p, source in zip(done.sketch, done.sources, strict=True) if i in source)
        assert now == sketch.primitives[i]
