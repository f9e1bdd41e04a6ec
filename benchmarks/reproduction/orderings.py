"""What the paper's tables say of the systems' order, each claim held against the measured numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from .names import LABELS
from .paper import DIGITS, PAPER
from .tables import Cell, Grid

# A system may be measured under another name.
_STAND_INS: Mapping[str, tuple[str, ...]] = {"vitruvion": ("vitruvion", "vitruvion:arcs=sweep")}

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measured"


@dataclass(frozen=True, slots=True)
class Claim:
    """`first` has the lower (or higher) value than all `others`."""

    table: str
    key: str
    first: str
    than: Literal["lower", "higher"]
    others: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim with the two numbers that decide it: of `first`, and of the nearest of the others."""

    claim: Claim
    paper: str
    ours: str
    verdict: str


def _pair(first: str, second: str) -> Claim:
    words = f"FID: {LABELS[first]} < {LABELS[second]}"
    return Claim("table1", "fid", first, "lower", (second,), words)


_FIDELITY = ("sketchdnn", "sketchdnn-pos", "vitruvion", "latent", "sketchdnn-cat")
_LIKELIHOOD = ("sketchdnn", "sketchdnn-pos", "vitruvion", "sketchgen", "sketchdnn-cat")


def _but(systems: tuple[str, ...], one: str) -> tuple[str, ...]:
    return tuple(system for system in systems if system != one)


CLAIMS = (
    *(_pair(first, second) for first, second in pairwise(_FIDELITY)),
    Claim(
        "table1", "precision", "vitruvion", "higher", _but(_FIDELITY, "vitruvion"), "Vitruvion has the best precision"
    ),
    Claim("table1", "recall", "sketchdnn", "higher", _but(_FIDELITY, "sketchdnn"), "SketchDNN has the best recall"),
    Claim("table2", "per_sketch", "sketchdnn", "lower", _but(_LIKELIHOOD, "sketchdnn"), "SketchDNN has the best NLL"),
    Claim(
        "table2",
        "per_sketch",
        "sketchdnn-cat",
        "higher",
        _but(_LIKELIHOOD, "sketchdnn-cat"),
        "SketchDNN (Cat.) has the worst NLL",
    ),
)


def findings(tables: Sequence[Grid]) -> list[Finding]:
    """Every claim against the numbers that are there."""
    by_name = {table.name: table for table in tables}
    return [_finding(claim, by_name[claim.table]) for claim in CLAIMS]


def _finding(claim: Claim, table: Grid) -> Finding:
    nearest = _nearest({name: PAPER[name][claim.key] for name in claim.others}, claim)
    digits = DIGITS[claim.key]
    paper = _against(f"{PAPER[claim.first][claim.key]:.{digits}f}", nearest, f"{PAPER[nearest][claim.key]:.{digits}f}")
    mine = _measured(table, claim.first, claim.key)
    others = {name: cell for name in claim.others if (cell := _measured(table, name, claim.key)) is not None}
    missing = [LABELS[name] for name in claim.others if name not in others]
    if mine is None or not others:
        lacking = [LABELS[claim.first]] if mine is None else []
        return Finding(claim, paper, "—", f"{UNKNOWN}: no {' nor '.join(lacking + missing)}")
    rival = _nearest({name: _value(cell) for name, cell in others.items()}, claim)
    ours = _against(mine.words, rival, others[rival].words)
    below = _value(mine) < _value(others[rival])
    above = _value(mine) > _value(others[rival])
    verdict = HOLDS if (below if claim.than == "lower" else above) else FAILS
    if _overlap(mine, others[rival]):
        verdict += "; the intervals overlap"
    if missing:
        verdict += f"; without {', '.join(missing)}"
    return Finding(claim, paper, ours, verdict)


def _nearest(values: Mapping[str, float], claim: Claim) -> str:
    """The one that is the hardest to beat."""
    chosen = min if claim.than == "lower" else max
    return chosen(values, key=lambda name: values[name])


def _measured(table: Grid, system: str, key: str) -> Cell | None:
    for name in _STAND_INS.get(system, (system,)):
        cell = table.cell(name, key)
        if cell is not None and cell.value is not None:
            return cell
    return None


def _value(cell: Cell) -> float:
    if cell.value is None:
        raise ValueError("a cell without a value decides nothing")
    return cell.value


def _overlap(one: Cell, other: Cell) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _against(first: str, other: str, second: str) -> str:
    return f"{first}; {LABELS[other]} {second}"
