"""The paper's claims against numbers: its own confirm them, reversed ones contradict them."""

from collections.abc import Callable

from benchmarks.reproduction.page import CLAIMS, FAILS, HOLDS, NOT_MEASURED, check_claims
from benchmarks.reproduction.tables import FIDELITY, LIKELIHOOD, PAPER, Cell, ResultTable, Row


def tables(
    change: Callable[[float], float] = lambda value: value, width: float = 0.0, without: str = ""
) -> list[ResultTable]:
    """Tables of the paper's numbers, changed, with intervals of some width."""

    def row(name: str) -> Row:
        values = {key: change(value) for key, value in PAPER[name.partition(":")[0]].items()}
        return Row(name, name, {k: Cell(f"{v:g}", v, v - width / 2, v + width / 2) for k, v in values.items()})

    names = [name if name != "vitruvion" else "vitruvion:arcs=sweep" for name in PAPER if name != without]
    columns = {"table1": FIDELITY, "table2": LIKELIHOOD}
    return [ResultTable(name, name, columns[name], [row(system) for system in names], []) for name in columns]


def test_paper_confirms_its_claims() -> None:
    findings = check_claims(tables())
    assert len(findings) == len(CLAIMS) >= 7
    assert {finding.verdict for finding in findings} == {HOLDS}
    for finding in findings:
        paper, ours = (text.split("; ")[0] for text in (finding.paper, finding.ours))
        assert float(paper) == float(ours)


def test_reversed_equal_and_overlapping_values() -> None:
    assert {finding.verdict for finding in check_claims(tables(lambda value: -value))} == {FAILS}
    assert all(finding.verdict.startswith(FAILS) for finding in check_claims(tables(lambda value: 1.0)))
    assert all("intervals overlap" in finding.verdict for finding in check_claims(tables(width=1e3)))


def test_missing_systems_are_named() -> None:
    for name in PAPER:
        concerned = [f for f in check_claims(tables(without=name)) if name in (f.claim.first, *f.claim.others)]
        assert concerned
        for finding in concerned:
            decided = finding.claim.first != name and len(finding.claim.others) > 1
            assert finding.verdict.startswith(HOLDS if decided else NOT_MEASURED)
            assert ("without" in finding.verdict) == decided
