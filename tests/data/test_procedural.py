"""Procedural parts: reproducible, varied and extrudable; their outlines are closed and smooth."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outlines import turned
from support.sketch_sets import parts
from support.strategies import numbers, primitives

from sketchdnn.data.procedural import FAMILIES, flat_parts, procedural, shapes
from sketchdnn.data.procedural.flat_parts import belt, rectangle
from sketchdnn.data.procedural.shapes import DesignRng, chamfered, outline
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Sketch, Vec, bounds, overlaps, profile
from sketchdnn.representation.hashing import row_codes


@pytest.fixture(scope="module")
def corpus() -> list[Sketch]:
    return [procedural(0, index) for index in range(2000)]


def ends(primitives: list[Primitive]) -> list[Vec]:
    return [end for p in primitives if isinstance(p, Line | Arc) for end in (p.start, p.end)]


def test_sketch_is_determined_by_seed_and_index(corpus: list[Sketch]) -> None:
    assert all(procedural(0, index) == corpus[index] for index in (1999, 3, 742, 3))
    assert not any(procedural(1, index) == corpus[index] for index in range(50))
    sketch = procedural(4, 12)
    named = dict.fromkeys(("id", "group"), "procedural-4-12") | {"source": "procedural", "licence": "CC0"}
    assert (sketch.units, sketch.extra) == ("mm", named | {"family": sketch.extra["family"]})


def test_statistics_of_the_corpus(corpus: list[Sketch]) -> None:
    families = Counter(sketch.extra["family"] for sketch in corpus)
    assert set(families) == set(FAMILIES)
    assert min(families.values()) >= 10
    counts = np.array([len(sketch) for sketch in corpus])
    assert (counts.min() >= 1) & (counts.max() <= 16) & (np.mean(counts >= 8) > 0.9)
    assert len(set(counts.tolist())) >= 10
    primitives = [p for sketch in corpus for p in sketch]
    assert 0.03 < np.mean([isinstance(p, Point) for p in primitives]) < 0.1
    assert 0.05 < np.mean([p.construction for p in primitives]) < 0.1
    assert all(np.mean([isinstance(p, kind) for p in primitives]) > 0.1 for kind in (Line, Circle, Arc))
    sizes = np.array([bounds(sketch).size for sketch in corpus])
    assert (sizes.min() > 1) & (sizes.max() < 2000) & (sizes.max() / sizes.min() > 30)
    lines = [p for p in primitives if isinstance(p, Line)]
    along = [math.isclose(p.start[0], p.end[0]) or math.isclose(p.start[1], p.end[1]) for p in lines]
    assert 0.6 < np.mean(along) < 0.95
    codes = np.sort(row_codes(parts(len(corpus)), 1.0), axis=1)
    assert len(corpus) - len(np.unique(codes, axis=0)) <= 10


def test_ends_join_exactly_in_pairs_and_profiles_have_no_overlaps(corpus: list[Sketch]) -> None:
    for sketch in corpus:
        points = np.array(ends([p for p in sketch if not p.construction]) or [(0.0, 0.0), (0.0, 0.0)])
        near = np.hypot(*(points[:, None] - points).transpose(2, 0, 1)) < 1e-9
        assert (near.sum(axis=1) == 2).all(), sketch.extra["id"]
    for sketch in corpus[:800]:
        assert profile(sketch).reasons == overlaps(sketch) == (), sketch.extra["id"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_extrudable(family: str) -> None:
    for seed in range(60):
        solid = FAMILIES[family](DesignRng(np.random.default_rng(seed))).solid
        assert (1 <= len(solid) <= 16, profile(solid).reasons, any(p.construction for p in solid)) == (True, (), False)


def tangents(p: Primitive) -> dict[Vec, Vec]:
    """The tangent at both ends, up to its sign."""
    if isinstance(p, Line):
        direction = ((p.end[0] - p.start[0]) / p.length, (p.end[1] - p.start[1]) / p.length)
        return {p.start: direction, p.end: direction}
    return {end: ((end[1] - p.center[1]) / p.radius, (p.center[0] - end[0]) / p.radius) for end in (p.start, p.end)}


def kinks(parts: list[Primitive]) -> int:
    """The number of joints that are not smooth. Fails where pieces do not meet in pairs."""
    count = 0
    everything = [(i, end, direction) for i, p in enumerate(parts) for end, direction in tangents(p).items()]
    for i, end, (x, y) in everything:
        (other,) = [w for j, e, w in everything if (j, e) != (i, end) and math.dist(e, end) < 1e-9]
        count += abs(x * other[1] - y * other[0]) > 1e-6
    return count // 2


def test_fillets_make_an_outline_smooth_and_chamfers_cut_it() -> None:
    corners: list[Vec] = [(0, 0), (10, 0), (10, 4), (4, 4), (4, 9), (0, 9)]
    assert (kinks(outline(corners)), kinks(outline(corners, 1.0))) == (6, 0)
    assert kinks(outline(corners, [1, 0, 1, 0, 1, 0])) == 3
    # Five corners turn left and lose (1 − π/4)·r² each, the inner one gains as much.
    assert profile(outline(corners, 1.0)).area == pytest.approx(60 - 4 * (1 - math.pi / 4))
    short = outline(rectangle(10, 4), 2.0)
    assert [type(p) for p in short].count(Line) == 2  # fillets use up a side
    assert kinks(short) == 0
    cut = outline(chamfered(rectangle(10, 6), 1.0))
    assert (len(cut), profile(cut).area) == (8, pytest.approx(60 - 4 * 0.5))


@given(st.floats(1, 20), st.floats(1, 20), st.floats(1.01, 4), st.floats(0, TAU))
def test_belt_around_two_discs_is_smooth(a: float, b: float, far: float, angle: float) -> None:
    span = far * (a + b)
    other = (span * math.cos(angle), span * math.sin(angle))
    parts = belt([((0.0, 0.0), a), (other, b)])
    assert kinks(parts) == 0
    arcs = [p for p in parts if isinstance(p, Arc)]
    assert sum(arc.sweep for arc in arcs) == pytest.approx(TAU)
    larger = max(arcs, key=lambda arc: arc.radius)
    assert larger.sweep >= math.pi - 1e-9
    assert profile(parts).is_extrudable


def test_belt_around_three_discs_in_a_row_and_areas_of_slots() -> None:
    parts = belt([((-30.0, 0.0), 5.0), ((0.0, 0.0), 12.0), ((30.0, 0.0), 5.0), ((0.0, 0.0), 12.0)])
    assert (kinks(parts), [p.radius for p in parts if isinstance(p, Arc)]) == (0, [5, 12, 5, 12])
    assert profile(flat_parts.slot((0, 0), (10, 0), 2)).area == pytest.approx(10 * 4 + math.pi * 4)
    bent = flat_parts.curved_slot(20, 3, 0.5, 1.5)
    assert (kinks(bent), profile(bent).area) == (0, pytest.approx(20 * 1.5 * 6 + math.pi * 9))


@given(primitives, st.floats(0, TAU))
def test_rotations_and_mirror_images(p: Primitive, angle: float) -> None:
    for image, expected in (
        (shapes.rotated(p, angle), turned(p, angle)),
        (shapes.mirrored(p), turned(p, mirrored=True)),
    ):
        assert numbers(image) == pytest.approx(numbers(expected), abs=1e-9)
        assert image.construction == p.construction
    there = p
    for _ in range(4):
        there = shapes.rotated(there, TAU / 4)
    if isinstance(p, Arc):
        there = replace(there, start_angle=p.start_angle)  # rounded, and below a full turn
    assert there == p  # quarter turns are exact
