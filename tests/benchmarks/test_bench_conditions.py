"""What is measured of conditions is what was drawn: even an untrained model keeps what it is given."""

from __future__ import annotations

import pytest
from support.small_systems import small_system

from benchmarks.conditions import measure_conditions
from sketchdnn.errors import SketchError


def test_given_parts_are_kept_by_any_model() -> None:
    measured = measure_conditions(small_system(), 18, steps=4)
    rows = {row.name: row for row in measured.rows}
    assert all(row.requests == 18 for row in measured.rows)
    assert all(row.first <= row.met <= row.requests for row in measured.rows)
    assert rows["given primitives unchanged"].met == 18
    # Told the kinds, it misses only where a circle has no radius; told empty rows, it does not understand.
    assert rows["number of each kind"].met > rows["number of each kind"].first > 0
    assert rows["number of primitives"].attempts > 1
    page = measured.markdown("python -m benchmarks conditions")
    assert page.count("100.0 %") >= 2
    assert "`python -m benchmarks conditions`" in page
    assert "4 closing steps" in page


def test_a_model_that_knows_nothing_is_measured_too() -> None:
    measured = measure_conditions(small_system(knows=False), 4, steps=3)
    assert {row.name for row in measured.rows} >= {"number of each kind", "closed profile"}


def test_no_requests_are_refused() -> None:
    with pytest.raises(SketchError, match="at least one"):
        measure_conditions(small_system(), 0)
