"""Clusters and close pairs agree with a comparison of all pairs."""

import math
import random
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import primitives

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Line, Primitive, Vec, proximity, tessellate
from sketchdnn.geometry.bounds import primitive_bounds, row_bounds
from sketchdnn.geometry.table import sketches_to_table

SMALL = st.integers(0, 12).map(lambda k: k / 4)
POINTS = st.lists(st.tuples(SMALL, SMALL), max_size=25)
DISTANCES = st.sampled_from([0.2, 0.26, 0.36, 0.51, 0.75])


def linked(points: list[tuple[float, float]], distance: float) -> list[int]:
    group = list(range(len(points)))
    changed = True
    while changed:
        changed = False
        for i, p in enumerate(points):
            for j, q in enumerate(points):
                if math.dist(p, q) <= distance and group[j] > group[i]:
                    group[j], changed = group[i], True
    order = {g: k for k, g in enumerate(dict.fromkeys(group))}
    return [order[g] for g in group]


@given(POINTS | st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), max_size=25), DISTANCES | st.floats(0.01, 2))
def test_clusters_on_and_off_a_grid(points: list[tuple[float, float]], distance: float) -> None:
    assert proximity.cluster_points(points, distance) == linked(points, distance)
    with mock.patch.object(proximity, "_MAX_SWEPT", 0):  # as many points are clustered
        assert proximity.cluster_points(points, distance) == linked(points, distance)


@given(POINTS, DISTANCES)
def test_near_points_of_few_and_of_many_agree(points: list[tuple[float, float]], distance: float) -> None:
    swept = sorted(proximity.near_points(points, distance))
    with mock.patch.object(proximity, "_MAX_SWEPT", 0):
        assert not points or sorted(proximity.near_points(points, distance)) == swept
    apart = [(i, j, abs(p[0] - q[0]), abs(p[1] - q[1])) for (i, p), (j, q) in combinations(enumerate(points), 2)]
    assert swept == [pair for pair in apart if max(pair[2:]) <= distance]


@given(*[st.tuples(st.floats(-1, 1), st.floats(-1, 1))] * 2, st.floats(0.1, 3))
def test_two_points_join_within_the_distance_only(p: Vec, q: Vec, distance: float) -> None:
    assert proximity.cluster_points([p, q], distance) == ([0, 0] if math.dist(p, q) <= distance else [0, 1])
    # In every direction, just within reach and just beyond it.
    for k in range(64):
        x, y = math.cos(k / 64 * math.tau), math.sin(k / 64 * math.tau)
        for factor, labels in ((0.999, [0, 0]), (1.001, [0, 1])):
            step = factor * distance
            assert proximity.cluster_points([p, (p[0] + step * x, p[1] + step * y)], distance) == labels


def test_dense_points_are_clustered_and_parallel_hatching_is_not_close() -> None:
    rng = random.Random(3)
    crowd = [(rng.gauss(0, 0.3), rng.gauss(0, 0.3)) for _ in range(50_000)]
    assert set(proximity.cluster_points([*crowd, (100.0, 0.0)], 0.5)) >= {0, 1}
    hatch = [Line((k, 0), (k + 1000, 577)) for k in range(300)]
    table = sketches_to_table([hatch])
    assert list(proximity.close_pairs(table, *row_bounds(table), 1e-3)) == []
    for tolerance in (0.0, -1e-6, 1.0, math.nan):
        with pytest.raises(GeometryError, match="share of the size"):
            proximity.absolute_tolerance(tolerance, (0.0, 0.0), (1.0, 1.0))
    far = 1e9 + 1e-3
    assert proximity.absolute_tolerance(1e-9, (1e9, 1e9), (far, far)) >= np.spacing(1e9)
    assert proximity.absolute_tolerance(1e-4, (0.0, 0.0), (50.0, 20.0)) == pytest.approx(5e-3)


@given(st.lists(primitives, min_size=1, max_size=20), st.floats(0, 5))
def test_box_pairs_are_complete(items: list[Primitive], distance: float) -> None:
    low, high = row_bounds(sketches_to_table([items]))
    found = [tuple(pair) for a, b in proximity.box_pairs(low, high, distance) for pair in np.stack([a, b], 1).tolist()]
    near = (low[:, None] <= high + distance).all(axis=2)
    expected = set(zip(*map(np.ndarray.tolist, np.nonzero(np.triu(near & near.T, 1))), strict=True))
    assert (len(found), set(found)) == (len(set(found)), expected)


@given(st.lists(primitives, min_size=2, max_size=12), st.floats(0.001, 5))
def test_close_pairs_are_complete(items: list[Primitive], distance: float) -> None:
    table = sketches_to_table([items])
    found = set(proximity.close_pairs(table, *row_bounds(table), distance))
    found &= set(proximity.few_close_pairs(items, [*map(primitive_bounds, items)], distance))
    drawn = [tessellate(p, 0.05) for p in items]
    for i, a in enumerate(drawn):
        for j in range(i):
            gap = np.min(np.hypot(*(a[:, None] - drawn[j][None]).transpose(2, 0, 1)))
            assert gap > distance or (j, i) in found


def test_box_pairs_come_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proximity, "CHUNK", 100)
    low, high = np.zeros((60, 2)), np.ones((60, 2))
    sizes = [len(a) for a, _ in proximity.box_pairs(low, high)]
    assert sum(sizes) == 60 * 59 // 2
    assert max(sizes) <= 100
