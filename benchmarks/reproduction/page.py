"""The page: our numbers beside the paper's, which of its orderings hold, and what must not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sketchdnn.evaluation.report import is_autoregressive
from sketchdnn.evaluation.report_format import Document, lookup
from sketchdnn.render.html import Section, Table

from .plan import LABELS, SIX, label_of
from .tables import DIGITS, FID_TABLE, NLL_TABLE, PAPER, Cell, Grid, Result, words_of

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


# Of the comparison with the paper, whatever the numbers are.
COMPARABLE = (
    (
        "What can be compared is the systems with one another: one corpus, one seed, one budget, one sampler "
        "setting, one protocol. Where intervals overlap, the order may be chance. One training of each was made, "
        "and intervals do not hold what another seed would have changed."
    ),
    (
        "The paper's numbers are of another corpus (SketchGraphs, 70,000 test sketches) and another budget (1000 "
        "epochs on 8 GPUs, a network 512 wide and 32 deep). Ours can confirm or contradict its orderings, not its "
        "values. A system that learns fast looks better under a short budget than it would under a long one."
    ),
    (
        "FID: the paper's is of 10,000 sketches, plotted at 640×480 with the axes scaled to each set by the "
        "authors' code; ours is of exact pictures in one frame. FID falls with the number of sketches, so read it "
        "beside the floor: real sketches against real ones at the same size."
    ),
    (
        "Precision and recall: ours are the standard ones (Kynkäänniemi 2019: distance to the third neighbor). "
        "The authors' code normalizes features, takes the mean of three neighbors, which may count a point "
        "itself, and a threshold of 0.95, so its values are lower for the same sketches. Theirs stand in the "
        "table against the training split."
    ),
    (
        "Likelihood: the paper's bits of diffusion systems come from an estimate without prior and reconstruction "
        "terms that leaves out columns whose noise betrays the kind; it bounds nothing. It stands in a column of "
        "its own. So does the continuous ELBO: a density, whose bits depend on the unit and may be negative."
    ),
    (
        "Bits stand beside each other only on one grid, that of the token systems: 64 levels, 1/30 apart, and the "
        "sketch as a set. What a token system says there is exact; what a diffusion system says is a bound, and "
        "may be far above."
    ),
    (
        "Bits a primitive: the paper divides by two things. 5.08 = 81.33/16 divides by rows, empty ones too; "
        "Vitruvion's 8.19 = 84.80/10.35 divides by primitives. We print both, named, and compare bits a sketch."
    ),
)
LEFT_OUT = (
    (
        f"The paper leaves out: SketchGen in {FID_TABLE}, latent diffusion in {NLL_TABLE}; any interval or floor; "
        "KID; the size and the training of its latent diffusion; how long drawing takes. It does not say whether "
        "Vitruvion and SketchGen were trained again on sketches of 8 to 16 primitives."
    ),
    (
        "SketchDNN here is in our form unless the name says otherwise, and Pos. and Cat. differ from it in one thing "
        "each (docs/systems.md). Vitruvion and SketchGen are our own implementations of their papers, of primitives "
        "alone. Arcs told by their sweep put Vitruvion's bits on the common grid; its paper tells them by three points."
    ),
)


def page(results: Sequence[Result], tables: Sequence[Grid], *, budget: str, command: str, has_figure: bool) -> str:
    """All of it as Markdown. Of one system and variants of it, what its switches do comes first."""
    sections = [Section(table.title, table.notes, [words_of(table)]) for table in tables]
    alone = _alone(results)
    if not alone:
        sections.insert(len(sections) - 1, _orderings(tables))
    if any(_base(result, results) for result in results):
        sections.insert(0 if alone else len(sections), _switches(results, tables))
    sections.append(Section("What is and what is not comparable", COMPARABLE))
    sections.append(Section("What the paper leaves out, and what is ours", LEFT_OUT))
    if has_figure:
        sections.append(
            Section("Sketches that nobody chose", ["Data above, then each system."], pictures=["comparison.png"])
        )
    warnings = list(dict.fromkeys(words for result in results for words in result.report["warnings"]))
    title = f"{label_of(results[0].system)} and its switches" if alone else "The paper's tables, on another corpus"
    return Document(title, _lead(results, budget), warnings, sections, command).to_markdown()


def missing(results: Sequence[Result]) -> list[str]:
    """Which of the six have not been run."""
    there = {result.system for result in results if not result.is_variant or result.name in SIX}
    return [name for name in SIX if name.partition(":")[0] not in there]


def _alone(results: Sequence[Result]) -> bool:
    """Whether it is about one system and variants of it: then none of the others is missed."""
    return len(results) > 1 and len({result.system for result in results}) == 1


def _lead(results: Sequence[Result], budget: str) -> list[str]:
    protocols = dict.fromkeys(str(result.report["protocol"]["id"]) for result in results)
    devices = dict.fromkeys(str(result.training["device"]) for result in results)
    drawn = lookup(results[0].report, "protocol")
    said = [
        (
            f"{len(results)} system{'' if len(results) == 1 else 's'}, each trained for {budget} on "
            f"{' or '.join(devices)} (compiling included) with seed {results[0].training['training']['seed']}, from "
            f"{results[0].training['train_sketches']:,} sketches, and judged under protocol {', '.join(protocols)}: "
            f"{drawn['samples']:,} sketches drawn, {drawn['against_test']:,} of them against as many of the test "
            f"split, {_way(results)}. Intervals are 95 %."
        )
    ]
    if len(devices) > 1:
        said.append("They were not all trained on one kind of device, so equal minutes were not equal budgets.")
    if not _alone(results) and (absent := missing(results)):
        said.append(f"Not run yet, and missing in the tables: {', '.join(label_of(name) for name in absent)}.")
    return said


def _way(results: Sequence[Result]) -> str:
    """How sketches are drawn: in steps, by systems with noise to take away."""
    drawn = [result.report["protocol"] for result in results if not is_autoregressive(result.report)]
    samplers = " or ".join(dict.fromkeys(str(one["sampler"]) for one in drawn))
    steps = f"in {drawn[0]['steps']} {samplers} steps" if drawn else ""
    of_tokens = {is_autoregressive(result.report) for result in results}
    if len(of_tokens) > 1:
        return f"{steps} where there is noise to take away, else token by token"
    return "token by token" if True in of_tokens else steps


def _orderings(tables: Sequence[Grid]) -> Section:
    rows = [(found.claim.words, found.paper, found.ours, found.verdict) for found in findings(tables)]
    head = ("the paper's claim", "its numbers", "ours", "here it")
    caption = (
        "The first number is that of the system named first; the second that of the system that is the hardest to beat "
        "among those of the paper's table. FID, precision and recall against the test split, NLL in bits a sketch on "
        "the common grid. There diffusion systems have upper bounds, so an order of theirs is one of bounds."
    )
    return Section("The paper's orderings", (), [Table(head, rows, caption)])


def _base(result: Result, results: Sequence[Result]) -> Result | None:
    """The system that a variant varies, if it was run as well."""
    if not result.is_variant:
        return None
    return next((other for other in results if other.name == result.system), None)


def _switches(results: Sequence[Result], tables: Sequence[Grid]) -> Section:
    """What a setting changes: the same system with and without it."""
    by_name = {table.name: table for table in tables}
    measures = (
        ("FID", "table1", "fid"),
        ("precision", "table1", "precision"),
        ("recall", "table1", "recall"),
        ("bits/sketch, grid", "table2", "per_sketch"),
    )
    rows = []
    for result in results:
        base = _base(result, results)
        if base is None:
            continue
        row = [label_of(result.name)]
        for _, table, key in measures:
            cells = [by_name[table].cell(name, key) for name in (base.name, result.name)]
            row.append(" → ".join("—" if cell is None else cell.words for cell in cells))
        rows.append(row)
    caption = "Without the setting → with it."
    shared = [label_of(result.name) for result in results if result.training.get("weights_of")]
    notes = (
        [f"Training knows nothing of these settings, so the weights are the same: {'; '.join(shared)}."]
        if shared
        else []
    )
    return Section("Switches", notes, [Table(("", *(name for name, _, _ in measures)), rows, caption)])
