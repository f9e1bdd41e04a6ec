"""The built-in corpus: the same for everyone, varied, and made of parts that could be cut."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from sketchdnn.data.procedural.dice import Dice

from sketchdnn.data.procedural import FAMILIES, procedural
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec, bounds, normalize
from sketchdnn.geometry.intersections import overlaps
from sketchdnn.geometry.profiles import profile


@pytest.fixture(scope="module")
def corpus() -> list[Sketch]:
    return [procedural(0, index) for index in range(2000)]


def ends(primitives: list[Primitive]) -> list[Vec]:
    return [end for p in primitives if isinstance(p, Line | Arc) for end in (p.start, p.end)]


def eight_bits(sketch: Sketch) -> tuple[tuple[int, ...], ...]:
    """The rows of a sketch on a grid of 256 levels, in an order of their own."""
    rows = []
    for p in normalize(sketch)[0]:
        match p:
            case Line(start, end):
                numbers = [*min(start, end), *max(start, end)]
            case Circle(center, radius):
                numbers = [*center, radius]
            case Arc():
                numbers = [*p.start, *p.mid, *p.end]
            case Point(at):
                numbers = [*at]
        rows.append((p.kind, p.construction, *(round(255 * (n + 1) / 2) for n in numbers)))
    return tuple(sorted(rows))


def test_a_sketch_depends_on_seed_and_index_alone(corpus: list[Sketch]) -> None:
    for index in (1999, 3, 742, 3):
        assert procedural(0, index) == corpus[index]
    assert sum(procedural(1, index) == corpus[index] for index in range(50)) == 0


def test_every_family_appears(corpus: list[Sketch]) -> None:
    seen = Counter(sketch.extra["family"] for sketch in corpus)
    assert set(seen) == set(FAMILIES)
    assert min(seen.values()) >= 10


def test_counts_are_those_the_paper_trains_on(corpus: list[Sketch]) -> None:
    counts = np.array([len(sketch) for sketch in corpus])
    assert counts.min() >= 1
    assert counts.max() <= 16
    assert np.mean(counts >= 8) > 0.9
    assert len(set(counts.tolist())) >= 10


def test_points_and_construction_are_as_common_as_in_real_sketches(corpus: list[Sketch]) -> None:
    primitives = [p for sketch in corpus for p in sketch]
    assert 0.03 < np.mean([isinstance(p, Point) for p in primitives]) < 0.1
    assert 0.05 < np.mean([p.construction for p in primitives]) < 0.1
    assert all(np.mean([isinstance(p, kind) for p in primitives]) > 0.1 for kind in (Line, Circle, Arc))


def test_lines_and_arcs_join_exactly_in_pairs(corpus: list[Sketch]) -> None:
    for sketch in corpus:
        places = np.array(ends([p for p in sketch if not p.construction]) or [(0.0, 0.0), (0.0, 0.0)])
        near = np.hypot(*(places[:, None] - places).transpose(2, 0, 1)) < 1e-9
        assert (near.sum(axis=1) == 2).all(), sketch.extra["id"]


def test_every_part_can_be_extruded_and_repeats_nothing(corpus: list[Sketch]) -> None:
    for sketch in corpus[:800]:
        assert profile(sketch).reasons == (), sketch.extra["id"]
        assert overlaps(sketch) == (), sketch.extra["id"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_of_a_family_is_sound(family: str) -> None:
    for seed in range(60):
        part = FAMILIES[family](Dice(np.random.default_rng(seed)))
        assert 1 <= len(part.solid) <= 16
        assert profile(part.solid).reasons == ()
        assert not any(p.construction for p in part.solid)
        assert all(p.construction for p in part.aids)


def test_there_are_few_duplicates_at_eight_bits(corpus: list[Sketch]) -> None:
    assert len(corpus) - len({eight_bits(sketch) for sketch in corpus}) <= 10


def test_sizes_are_those_of_parts_in_millimeters(corpus: list[Sketch]) -> None:
    sizes = np.array([bounds(sketch).size for sketch in corpus])
    assert {sketch.units for sketch in corpus} == {"mm"}
    assert sizes.min() > 1
    assert sizes.max() < 2000
    assert sizes.max() / sizes.min() > 30


def test_most_lines_follow_the_axes_and_some_do_not(corpus: list[Sketch]) -> None:
    lines = [p for sketch in corpus for p in sketch if isinstance(p, Line)]
    along = [math.isclose(p.start[0], p.end[0]) or math.isclose(p.start[1], p.end[1]) for p in lines]
    assert 0.6 < np.mean(along) < 0.95


def test_each_says_where_it_comes_from() -> None:
    assert procedural(4, 12).extra == {
        "id": "procedural-4-12",
        "group": "procedural-4-12",
        "source": "procedural",
        "licence": "CC0",
        "family": procedural(4, 12).extra["family"],
    }
