"""The paper's claims against numbers: its own bear them out, turned around they do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.reproduction.page import CLAIMS, FAILS, HOLDS, UNKNOWN, findings
from benchmarks.reproduction.tables import FIDELITY, LIKELIHOOD, PAPER, Cell, Grid, Row


def tables(value: Callable[[float], float] = lambda one: one, width: float = 0.0, leave_out: str = "") -> list[Grid]:
    """Tables of the paper's numbers, changed, with intervals this wide."""

    def row(name: str) -> Row:
        numbers = {key: value(number) for key, number in PAPER[name.partition(":")[0]].items()}
        return Row(name, name, {k: Cell(f"{n:g}", n, n - width / 2, n + width / 2) for k, n in numbers.items()})

    names = [name if name != "vitruvion" else "vitruvion:arcs=sweep" for name in PAPER if name != leave_out]
    return [
        Grid(name, name, columns, [row(one) for one in names], [])
        for name, columns in (("table1", FIDELITY), ("table2", LIKELIHOOD))
    ]


def test_the_papers_own_numbers_bear_out_every_claim() -> None:
    found = findings(tables())
    assert len(found) == len(CLAIMS) >= 7
    assert {one.verdict for one in found} == {HOLDS}
    assert all(one.paper.split("; ")[0] == f"{float(one.ours.split('; ')[0]):.{_digits(one.paper)}f}" for one in found)


def _digits(words: str) -> int:
    return len(words.split("; ")[0].partition(".")[2])


def test_turned_around_none_holds() -> None:
    assert {one.verdict for one in findings(tables(lambda one: -one))} == {FAILS}


def test_equal_numbers_bear_out_nothing() -> None:
    assert all(one.verdict.startswith(FAILS) for one in findings(tables(lambda one: 1.0)))


def test_intervals_that_overlap_are_told() -> None:
    assert all("intervals overlap" in one.verdict for one in findings(tables(width=1e3)))


@pytest.mark.parametrize("name", PAPER)
def test_what_is_missing_is_told(name: str) -> None:
    concerned = [one for one in findings(tables(leave_out=name)) if name in (one.claim.first, *one.claim.others)]
    assert concerned
    for one in concerned:
        decided = one.claim.first != name and len(one.claim.others) > 1
        assert one.verdict.startswith(HOLDS if decided else UNKNOWN)
        assert ("without" in one.verdict) == decided
