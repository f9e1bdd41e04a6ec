"""Real sketches: nearly all that came from solid models close, and nothing a person drew makes the search stumble."""

from __future__ import annotations

import random
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.outlines import backwards, permuted, turned
from support.real_sketches import Drawings, spread

from sketchdnn.geometry import Point, Primitive, Profile, overlaps, profile, tessellate


@pytest.fixture(scope="module")
def drawings(real_data: Path) -> Drawings:
    """About two thousand sketches."""
    found = spread(real_data, every=39)
    assert sum(map(len, found.values())) > 1990
    return found


@pytest.fixture(scope="module")
def profiles(drawings: Drawings) -> dict[str, list[Profile]]:
    return {source: [profile(items) for items in some] for source, some in drawings.items()}


@pytest.mark.parametrize(
    ("source", "extrudable", "closed"),
    [("hpsketch", 0.985, 0.995), ("whucad", 0.97, 0.98), ("freecad", 0.9, 0.9), ("sketchgraphs", 0.6, 0.6)],
)
def test_most_real_sketches_close(
    profiles: dict[str, list[Profile]], source: str, extrudable: float, closed: float
) -> None:
    some = profiles[source]
    assert np.mean([p.is_extrudable for p in some]) >= extrudable
    assert np.mean([bool(p.loops) and not p.chains for p in some]) >= closed


def test_every_curve_is_accounted_for(drawings: Drawings, profiles: dict[str, list[Profile]]) -> None:
    for source, some in drawings.items():
        for items, found in zip(some, profiles[source], strict=True):
            used = {e.primitive for part in (*found.loops, *found.chains) for e in part.edges} | {*found.ignored}
            assert used == {i for i, p in enumerate(items) if not isinstance(p, Point) and not p.construction}
            assert found.is_extrudable == (not found.reasons)


def scanned_area(items: list[Primitive], count: int = 400) -> float:
    """The area between every other crossing of level lines with what is drawn: knows nothing of loops."""
    curves = [tessellate(p, 1e-5) for p in items if not isinstance(p, Point) and not p.construction]
    a = np.concatenate([c[:-1] for c in curves])
    b = np.concatenate([c[1:] for c in curves])
    low, high = min(a[:, 1].min(), b[:, 1].min()), max(a[:, 1].max(), b[:, 1].max())
    step = (high - low) / count
    total = 0.0
    for y in low + step * (np.arange(count) + 0.4142):
        passed = (a[:, 1] > y) != (b[:, 1] > y)
        (ax, ay), (bx, by) = a[passed].T, b[passed].T
        x = np.sort(ax + (y - ay) / (by - ay) * (bx - ax))
        if len(x) % 2 == 0:  # odd where a level slips through a gap that rounding left
            total += float((x[1::2] - x[::2]).sum()) * step
    return total


def test_areas_and_nesting_agree_with_a_scan_of_the_drawing(
    drawings: Drawings, profiles: dict[str, list[Profile]]
) -> None:
    pairs = [
        (items, found)
        for source in drawings
        for items, found in zip(drawings[source], profiles[source], strict=True)
        if found.is_extrudable and len(found.loops) > 1
    ]
    assert len(pairs) > 200
    for items, found in pairs[:200]:
        assert found.area == pytest.approx(scanned_area(items), rel=0.03, abs=2e-3)


def test_order_direction_and_turn_do_not_change_what_is_found(
    drawings: Drawings, profiles: dict[str, list[Profile]]
) -> None:
    dice = random.Random(0)
    for source, some in drawings.items():
        for items, found in islice(zip(some, profiles[source], strict=True), 100):
            order = dice.sample(range(len(items)), len(items))
            other = profile([turned(backwards(p), np.pi / 2, scale=7, by=(1, 2)) for p in permuted(items, order)])
            assert other.is_extrudable == found.is_extrudable
            assert other.area == pytest.approx(49 * found.area, rel=1e-6, abs=1e-6)
            assert sorted(loop.depth for loop in other.loops) == sorted(loop.depth for loop in found.loops)
            assert len(other.meetings) == len(found.meetings)


def test_a_profile_takes_about_a_millisecond(drawings: Drawings) -> None:
    """Generous, since a test machine may be busy; the typical figure is below one."""
    sample = [items for some in drawings.values() for items in some if 8 <= len(items) <= 16][:400]
    begin = time.process_time()
    for items in sample:
        profile(items)
    assert (time.process_time() - begin) / len(sample) < 10e-3


def test_overlaps_of_the_profile_are_those_of_the_sketch(
    drawings: Drawings, profiles: dict[str, list[Profile]]
) -> None:
    """Where nothing is construction or a point, both look at the same curves with the same tolerance."""
    for source, some in drawings.items():
        for items, found in zip(some, profiles[source], strict=True):
            if not any(p.construction or isinstance(p, Point) for p in items):
                assert overlaps(items) == found.overlaps
