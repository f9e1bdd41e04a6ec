"""The whole of what is measured, on parts that are known to be good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.drawn_sets import parts, rows, sets, shuffled, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.scores import drop_primitives, jitter_ends
from sketchdnn.evaluation.validity import Validity, measure_validity
from sketchdnn.geometry import Circle, Line, Point
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.symmetric import NUM_SYMMETRIES, turned


def shares(found: Validity) -> dict[str, float]:
    """The shares that drawings should have, by name."""
    return {
        "meet": found.gaps.within_loose.value,
        "closed": found.exact.closed.value,
        "loosely closed": found.loose.closed.value,
        "extrudable": found.exact.extrudable.value,
        "symmetric": found.symmetric.value,
        "aligned": found.axis_aligned.value,
    }


def test_a_square_is_all_that_one_could_wish() -> None:
    found = measure_validity(rows(square(), square()))
    assert set(shares(found).values()) == {1}
    assert (found.sketches, found.specks.value, found.flat.value, found.exact.overlapping.value) == (2, 0, 0, 0)


def test_a_sketch_on_one_line_is_flat() -> None:
    found = measure_validity(rows([Line((-1, 0), (1, 0)), Point((0, 0))], [Circle((0, 0), 1)]))
    assert found.flat.value == 0.5


def test_a_sketch_without_primitives_is_neither_closed_nor_symmetric() -> None:
    compact = rows(square(), square())
    compact.kind[1], compact.params[1] = layout.NONE, 0
    found = measure_validity(compact)
    assert (found.exact.closed.value, found.symmetric.value, found.flat.value) == (0.5, 0.5, 0.5)
    assert found.gaps.sketches_within_loose.value == 1


@settings(max_examples=25)
@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_turning_and_reordering_change_nothing(compact: Compact, symmetry: int, seed: int) -> None:
    before, after = measure_validity(compact), measure_validity(shuffled(turned(compact, symmetry), seed))
    assert shares(before) == pytest.approx(shares(after), nan_ok=True)
    assert (before.kinds, before.construction, before.counts) == (after.kinds, after.construction, after.counts)
    assert before.specks == after.specks
    assert before.flat == after.flat


@pytest.fixture(scope="module")
def jittered() -> list[dict[str, float]]:
    return [shares(measure_validity(jitter_ends(parts(80), sigma, seed=0))) for sigma in (0, 0.005, 0.02, 0.05)]


@pytest.mark.parametrize("name", ["meet", "closed", "loosely closed", "extrudable", "symmetric", "aligned"])
def test_noise_makes_everything_worse(jittered: list[dict[str, float]], name: str) -> None:
    values = [found[name] for found in jittered]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


def test_dropping_primitives_opens_profiles() -> None:
    found = [measure_validity(drop_primitives(parts(60), share, seed=0)) for share in (0, 0.1, 0.4)]
    closed = [each.exact.closed.value for each in found]
    assert closed == sorted(set(closed), reverse=True)


def test_nothing_to_judge_and_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(GeometryError, match="no sketches"):
        measure_validity(parts(5)[:0])
    broken = Compact(parts(5).kind, parts(5).construction, np.full_like(parts(5).params, np.nan))
    with pytest.raises(GeometryError, match="make no primitive"):
        measure_validity(broken)


def test_progress_runs_through_both_halves() -> None:
    seen: list[float] = []
    measure_validity(parts(5), on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] >= 0.5
