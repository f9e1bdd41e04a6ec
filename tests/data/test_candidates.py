"""Filtering, normalization, keys, de-duplication and splitting of candidates; nothing depends on order."""

import math
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.noisy_sketches import constraint
from support.strategies import assert_same, sketches

from sketchdnn.data import PRESETS, PrepareConfig, candidates
from sketchdnn.data.sources import Block, Tally, gather_blocks
from sketchdnn.errors import SketchError
from sketchdnn.formats import Skipped
from sketchdnn.geometry import Arc, Circle, ConstraintType, Line, Placement, Point, Sketch, bounds, normalize
from sketchdnn.geometry.table import sketches_to_table, table_to_sketches
from sketchdnn.representation import decode_compact, encode
from sketchdnn.representation.hashing import mix

ANY = replace(PRESETS["ours"], min_primitives=1)


def block(*many: Sketch) -> Block:
    return next(gather_blocks(many, Tally(), "test"))


def candidates_of(config: PrepareConfig, *many: Sketch) -> tuple[candidates.Candidates, Tally]:
    tally = Tally()
    return candidates.make_candidates(block(*many), config, tally), tally


def dots(count: int, constraints: int = 0) -> Sketch:
    fix = constraint(ConstraintType.FIX, 0)
    return Sketch(tuple(Point((i, i * i)) for i in range(count)), (fix,) * constraints)


def test_limits_of_primitives() -> None:
    for preset, first in (("paper", 8), ("ours", 8), ("authors", 7)):
        found, tally = candidates_of(PRESETS[preset], *(dots(n, n) for n in range(1, 20)))
        assert sorted(found.compact.counts) == list(range(first, 17))
        assert tally.refused == {f"fewer than {first} primitives": first - 1, "more than 16 primitives": 3}
    with pytest.raises(SketchError, match=r"must lie in 1..16"):
        replace(PRESETS["ours"], max_primitives=17)
    with pytest.raises(SketchError, match="add up to 1"):
        replace(PRESETS["ours"], fractions=(0.5, 0.1, 0.1))


def test_refused_and_skipped_items_are_counted() -> None:
    lossy, tally = replace(block(dots(10, 12)), dropped=np.array([1])), Tally()
    assert not len(candidates.make_candidates(lossy, PRESETS["ours"], tally))
    assert tally.refused == {"an entity that is no primitive": 1}
    assert len(candidates.make_candidates(lossy, PRESETS["authors"], Tally())) == 1
    # The authors count entities that they drop later.
    crowded = replace(block(dots(16, 20)), dropped=np.array([1]))
    assert not len(candidates.make_candidates(crowded, PRESETS["authors"], Tally()))
    speck = Sketch((Line((0, 0), (1, 0)), Line((0.5, 0.5), (0.5, 0.5 + 1e-12))))
    _, tally = candidates_of(ANY, speck, Sketch((Point((1, 1)),)), Sketch(()))
    assert tally.refused == {candidates.TOO_FINE: 1, "no extent": 1, "no primitives": 1}
    invalid, tally = block(dots(8), dots(8)), Tally()
    invalid.table.x[3] = math.nan
    assert len(candidates.make_candidates(invalid, PRESETS["ours"], tally)) == 1
    assert tally.refused == {"no extent": 1}
    tally = Tally()
    assert len(list(gather_blocks([Skipped("odd", True, 3), dots(2), Skipped("TEXT", False, 5)], tally, "test"))) == 1
    assert (tally.found, tally.refused, tally.skipped) == (4, {"odd": 3}, {"TEXT": 5})
    found, tally = candidates_of(PRESETS["authors"], dots(8, 7), dots(8, 8), dots(8, 208), dots(8, 209))
    assert len(found) == 2
    assert tally.refused == {"fewer constraints than primitives": 1, "more than 208 constraints": 1}


@given(st.lists(sketches(), min_size=1, max_size=4))
def test_placement_agrees_with_normalize(many: list[Sketch]) -> None:
    table = sketches_to_table(many)
    center, scale = candidates.placements(table, PRESETS["ours"])
    normalized = table_to_sketches(candidates.normalize_table(table, center, scale))
    for index, (sketch, ours) in enumerate(zip(many, normalized, strict=True)):
        expected, placement = normalize(sketch)
        assert_same(expected, ours, 1e-9)
        assert center[index] == pytest.approx(placement.center)
        assert scale[index] == pytest.approx(placement.scale)


@given(sketches(max_size=16))
def test_true_size_is_restored(sketch: Sketch) -> None:
    found, tally = candidates_of(ANY, sketch)
    if tally.refused:
        assert set(tally.refused) == {candidates.TOO_FINE}
        return
    back = Placement(tuple(found.center[0]), found.scale[0]).restore(decode_compact(found.compact)[0].sketch)
    was, now = bounds(sketch), bounds(back)
    assert now.center == pytest.approx(was.center, abs=1e-4 * was.size)
    assert now.size == pytest.approx(was.size, rel=1e-4)


def test_authors_box_includes_the_origin_and_whole_circles() -> None:
    table = sketches_to_table([[Line((10, 10), (14, 10))], [Arc((0, 0), 1, math.pi / 4, math.pi / 2)]])
    center, scale = candidates.placements(table, PRESETS["authors"])
    assert (center.tolist(), scale.tolist()) == ([[7, 5], [0, 0]], [7, 1])
    assert candidates.placements(table, PRESETS["ours"])[0][0].tolist() == [12, 10]


@given(sketch=sketches(min_size=2, max_size=16), rng=st.randoms(use_true_random=False))
def test_keys_are_independent_of_order_and_direction(sketch: Sketch, rng: random.Random) -> None:
    primitives = [replace(p, start=p.end, end=p.start) if isinstance(p, Line) else p for p in sketch]
    rng.shuffle(primitives)
    turned = replace(sketch, primitives=tuple(primitives))
    for preset in ("ours", "paper"):
        config = replace(PRESETS[preset], min_primitives=1)
        (one, _), (other, _) = candidates_of(config, sketch), candidates_of(config, turned)
        assert one.duplicate.tolist() == other.duplicate.tolist()
        if preset == "ours":
            assert one.content.tolist() == other.content.tolist()
            assert np.array_equal(one.compact.params, other.compact.params)


def test_only_visible_differences_change_the_key() -> None:
    line, circle = Line((0, 0), (1, 0)), Circle((0.3, 0.2), 0.1)
    changed_circles = [(line, replace(circle, radius=0.15)), (line, replace(circle, center=(0.35, 0.2)))]
    others = [(line, circle), (replace(line, construction=True), circle), (line, circle, Point((0, 0))), (line,)]
    changed = [*others, *changed_circles]
    for preset in ("ours", "paper", "authors"):
        config = replace(PRESETS[preset], min_primitives=1, constrained=False)
        assert len(set(candidates_of(config, *map(Sketch, changed))[0].duplicate.tolist())) == len(changed)
    one, other = candidates_of(config, Sketch((line, circle)), Sketch((circle, line)))[0].duplicate
    assert (config.preset, one != other) == ("authors", True)  # their keys depend on the order
    # Scale, position and noise do not.
    base = Sketch((Line((0, 0), (1, 0)), Circle((0.3, 0.2), 0.1), Arc((0.5, 0.5), 0.2, 0, 1)))
    same = [base.moved(25.4, (3.0, -8.0)), base.moved(1 + 1e-12, (1e-12, 0.0)), base.moved(1e-3)]
    for preset in ("ours", "paper"):
        config = replace(PRESETS[preset], min_primitives=1)
        assert len(set(candidates_of(config, base, *same)[0].duplicate.tolist())) == 1


OURS = PRESETS["ours"]
small = st.integers(0, 6)


@given(st.lists(st.tuples(small, small, small, small), min_size=0, max_size=40, unique=True), st.randoms())
def test_selection_is_independent_of_order(rows: list[tuple[int, ...]], rng: random.Random) -> None:
    def chosen(some: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int]]:
        keys = np.array(some, np.uint64).reshape(-1, 4)
        kept = candidates.select_candidates(np.stack([*keys.T, keys[:, 0]]), replace(OURS, distinct_splits=False))
        return [(some[i], s) for i, s in zip(kept.index.tolist(), kept.split.tolist(), strict=True)]

    first = chosen(rows)
    mixed = list(rows)
    rng.shuffle(mixed)
    # Rows that agree in all but the split do not occur.
    if len({row[:3] for row in rows}) == len(rows):
        assert chosen(mixed) == first
    assert len({row[0] for row, _ in first}) == len(first) == len({row[0] for row in rows})


def test_smallest_content_of_a_group_is_kept_and_splits_have_their_fractions() -> None:
    keys = np.array([[5, 30, 1, 0], [5, 10, 9, 0], [5, 10, 2, 0], [8, 7, 0, 0]], np.uint64)
    kept = candidates.select_candidates(np.stack([*keys.T, keys[:, 0]]), OURS)
    assert (sorted(kept.index.tolist()), kept.group_sizes) == ([2, 3], {3: 1, 1: 1})
    keys = np.random.default_rng(0).integers(0, 2**63, 50_000).astype(np.uint64)
    for preset in PRESETS.values():
        counts = np.bincount(candidates.assign_splits(keys, preset), minlength=3) / len(keys)
        assert np.abs(counts - preset.fractions).max() < 0.01
    assert set(candidates.assign_splits(keys[:1000], replace(OURS, fractions=(1.0, 0.0, 0.0))).tolist()) == {0}
    # Groups share a split, and the seed changes it.
    keys = np.repeat(np.arange(1000, dtype=np.uint64), 5)
    split = candidates.assign_splits(keys, OURS).reshape(1000, 5)
    assert (split == split[:, :1]).all()
    assert (candidates.assign_splits(keys, replace(OURS, split_seed=1)) != split.reshape(-1)).any()


@given(st.lists(st.tuples(small, small), min_size=1, max_size=60))
def test_splits_are_distinct_up_to_symmetry(rows: list[tuple[int, int]]) -> None:
    split, symmetric = np.array(rows, np.uint64).T
    number = np.arange(len(rows), dtype=np.uint64)
    kept = candidates.select_candidates(np.stack([number, number, number, split, symmetric]), OURS)
    there = [set(symmetric[kept.index[kept.split == part]].tolist()) for part in range(3)]
    assert not any(earlier & later for earlier, later in combinations(there, 2))
    # The earliest split keeps all of its own, and the others are counted.
    all_parts = candidates.assign_splits(split, OURS)
    assert (kept.split == all_parts.min()).sum() == (all_parts == all_parts.min()).sum()
    assert len(kept) + sum(kept.repeated.values()) == len(rows)


def test_keys_of_numbers_rows_and_texts() -> None:
    values = np.arange(100_000, dtype=np.uint64)
    mixed = mix(values)
    assert len(np.unique(mixed)) == len(values)
    bits = np.unpackbits(mixed.view(np.uint8)).reshape(len(values), 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.01
    a, b = candidates.fold_keys(np.array([[1, 2, 3], [3, 2, 1]], np.uint64))
    assert a != b
    assert candidates.fold_keys(np.array([[1, 2, 3]], np.uint64))[0] == a
    plus, minus = (candidates.row_keys(encode([Sketch((Line((zero, 0), (1, 0)),))])) for zero in (0.0, -0.0))
    assert np.array_equal(plus, minus)
    rows = encode([Sketch((Point((0, 0)), Point((0, 0), True), Point((1e-7, 0)), Line((0, 0), (1, 0))))])
    assert len(set(candidates.row_keys(rows)[0].tolist())) == 5  # the four, and the empty rows
    # A change of the keys of texts would move sketches between the splits of stored corpora.
    sketch, other, again, _ = candidates.text_keys(["sketch", "b", "sketch", "\udcff"]).tolist()
    assert (sketch, again, other != again) == (0x4A10A5D53CFE1F37, 0x4A10A5D53CFE1F37, True)
    assert len(set(candidates.text_keys([str(i) for i in range(10_000)]).tolist())) == 10_000
