"""The page of a reproduction: the tables, the paper's claims against our numbers, and what can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sketchdnn.evaluation.report import is_autoregressive
from sketchdnn.evaluation.report_format import lookup
from sketchdnn.render.html import Document, Section, Table

from .plan import LABELS, PAPER_SYSTEMS, system_label
from .tables import DIGITS, FID_TABLE, NLL_TABLE, PAPER, Cell, Result, ResultTable, format_table

# A system of the paper may be measured as a variant.
_VARIANTS: Mapping[str, tuple[str, ...]] = {"vitruvion": ("vitruvion", "vitruvion:arcs=sweep")}

HOLDS, FAILS, NOT_MEASURED = "holds", "does not hold", "not measured"


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that `first` has a lower (or higher) value than all `others`."""

    table: str
    key: str
    first: str
    than: Literal["lower", "higher"]
    others: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim with the values of `first` and of its closest competitor, in the paper and here."""

    claim: Claim
    paper: str
    ours: str
    verdict: str


def _lower_fid(first: str, second: str) -> Claim:
    return Claim("table1", "fid", first, "lower", (second,), f"FID: {LABELS[first]} < {LABELS[second]}")


_FIDELITY = ("sketchdnn", "sketchdnn-pos", "vitruvion", "latent", "sketchdnn-cat")
_LIKELIHOOD = ("sketchdnn", "sketchdnn-pos", "vitruvion", "sketchgen", "sketchdnn-cat")


def _best_claim(table: str, key: str, first: str, than: Literal["lower", "higher"], text: str) -> Claim:
    systems = _FIDELITY if table == "table1" else _LIKELIHOOD
    return Claim(table, key, first, than, tuple(system for system in systems if system != first), text)


CLAIMS = (
    *(_lower_fid(first, second) for first, second in pairwise(_FIDELITY)),
    _best_claim("table1", "precision", "vitruvion", "higher", "Vitruvion has the best precision"),
    _best_claim("table1", "recall", "sketchdnn", "higher", "SketchDNN has the best recall"),
    _best_claim("table2", "per_sketch", "sketchdnn", "lower", "SketchDNN has the best NLL"),
    _best_claim("table2", "per_sketch", "sketchdnn-cat", "higher", "SketchDNN (Cat.) has the worst NLL"),
)


def check_claims(tables: Sequence[ResultTable]) -> list[Finding]:
    """Every claim of the paper against the measured values."""
    by_name = {table.name: table for table in tables}
    return [_check_claim(claim, by_name[claim.table]) for claim in CLAIMS]


def _check_claim(claim: Claim, table: ResultTable) -> Finding:
    competitor = _closest({name: PAPER[name][claim.key] for name in claim.others}, claim)
    digits = DIGITS[claim.key]
    paper = _against(
        f"{PAPER[claim.first][claim.key]:.{digits}f}", competitor, f"{PAPER[competitor][claim.key]:.{digits}f}"
    )
    own = _measured(table, claim.first, claim.key)
    others = {name: cell for name in claim.others if (cell := _measured(table, name, claim.key)) is not None}
    missing = [LABELS[name] for name in claim.others if name not in others]
    if own is None or not others:
        lacking = [LABELS[claim.first]] if own is None else []
        return Finding(claim, paper, "—", f"{NOT_MEASURED}: no {' nor '.join(lacking + missing)}")
    rival = _closest({name: _value(cell) for name, cell in others.items()}, claim)
    ours = _against(own.text, rival, others[rival].text)
    below = _value(own) < _value(others[rival])
    above = _value(own) > _value(others[rival])
    verdict = HOLDS if (below if claim.than == "lower" else above) else FAILS
    if _overlap(own, others[rival]):
        verdict += "; the intervals overlap"
    if missing:
        verdict += f"; without {', '.join(missing)}"
    return Finding(claim, paper, ours, verdict)


def _closest(values: Mapping[str, float], claim: Claim) -> str:
    """The system that is the hardest to beat."""
    choose = min if claim.than == "lower" else max
    return choose(values, key=lambda name: values[name])


def _measured(table: ResultTable, system: str, key: str) -> Cell | None:
    for name in _VARIANTS.get(system, (system,)):
        cell = table.cell(name, key)
        if cell is not None and cell.value is not None:
            return cell
    return None


def _value(cell: Cell) -> float:
    if cell.value is None:
        raise ValueError("the cell has no value")
    return cell.value


def _overlap(first: Cell, second: Cell) -> bool:
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return False
    return first.low <= second.high and second.low <= first.high


def _against(first: str, other: str, second: str) -> str:
    return f"{first}; {LABELS[other]} {second}"


COMPARABLE = (
    (
        "The systems can be compared with each other: one corpus, one seed, one budget, one sampler, one protocol. "
        "Where intervals overlap, the order may be chance. Each system was trained once, and intervals do not "
        "include the variation between seeds of training."
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
        "The authors' code normalizes features, takes the mean of three neighbors, which may include the "
        "point itself, and a threshold of 0.95, so its values are lower for the same sketches. They are in the "
        "table of the training split."
    ),
    (
        "Likelihood: the paper's bits of diffusion systems come from an estimate without prior and reconstruction "
        "terms that leaves out columns whose noise reveals the kind; it is not a bound. It has a column of its own. "
        "So has the continuous ELBO: a density, whose bits depend on the unit and may be negative."
    ),
    (
        "Bits can be compared only on one grid, that of the token systems: 64 levels, 1/30 apart, with the sketch as "
        "a set. The values of token systems are exact; those of diffusion systems are upper bounds, which may be "
        "loose."
    ),
    (
        "Bits per primitive: the paper divides by two numbers. 5.08 = 81.33/16 divides by rows, empty ones too; "
        "Vitruvion's 8.19 = 84.80/10.35 divides by primitives. The table has both; bits per sketch are compared."
    ),
)
DIFFERENCES = (
    (
        f"The paper leaves out: SketchGen in {FID_TABLE}, latent diffusion in {NLL_TABLE}; any interval or floor; "
        "KID; the size and the training of its latent diffusion; the time of sampling. It does not say whether "
        "Vitruvion and SketchGen were trained again on sketches of 8 to 16 primitives."
    ),
    (
        "SketchDNN is our variant unless the name has another, and Pos. and Cat. differ from it in one aspect each "
        "(docs/systems.md). Vitruvion and SketchGen are our implementations of their papers, for primitives alone. "
        "Arcs with a sweep put Vitruvion's bits on the common grid; its paper has arcs of three points."
    ),
)


def make_page(
    results: Sequence[Result], tables: Sequence[ResultTable], *, budget: str, command: str, has_figure: bool
) -> str:
    """The page as Markdown. For variants of one system, the effect of their settings comes first."""
    sections = [Section(table.title, table.notes, [format_table(table)]) for table in tables]
    one_system = _is_one_system(results)
    if not one_system:
        sections.insert(len(sections) - 1, _claims_section(tables))
    if any(_find_base(result, results) for result in results):
        sections.insert(0 if one_system else len(sections), _settings_section(results, tables))
    sections.append(Section("What can be compared", COMPARABLE))
    sections.append(Section("What the paper leaves out, and what is ours", DIFFERENCES))
    if has_figure:
        sections.append(Section("Random samples", ["The data, then each system."], pictures=["comparison.png"]))
    warnings = list(dict.fromkeys(warning for result in results for warning in result.report["warnings"]))
    title = (
        f"{system_label(results[0].system)} and its settings" if one_system else "The paper's tables, on another corpus"
    )
    return Document(title, _introduction(results, budget), warnings, sections, command).to_markdown()


def missing_systems(results: Sequence[Result]) -> list[str]:
    """The systems of the paper without a result."""
    present = {result.system for result in results if not result.is_variant or result.name in PAPER_SYSTEMS}
    return [name for name in PAPER_SYSTEMS if name.partition(":")[0] not in present]


def _is_one_system(results: Sequence[Result]) -> bool:
    """Whether all results are of one system and its variants."""
    return len(results) > 1 and len({result.system for result in results}) == 1


def _introduction(results: Sequence[Result], budget: str) -> list[str]:
    protocols = dict.fromkeys(str(result.report["protocol"]["id"]) for result in results)
    devices = dict.fromkeys(str(result.training["device"]) for result in results)
    protocol = lookup(results[0].report, "protocol")
    paragraphs = [
        (
            f"{len(results)} system{'' if len(results) == 1 else 's'}, each trained for {budget} on "
            f"{' or '.join(devices)} (compiling included) with seed {results[0].training['training']['seed']}, from "
            f"{results[0].training['train_sketches']:,} sketches, and evaluated under protocol {', '.join(protocols)}: "
            f"{protocol['samples']:,} samples, {protocol['against_test']:,} of them against as many of the test "
            f"split, {_sampling_text(results)}. Intervals are 95 %."
        )
    ]
    if len(devices) > 1:
        paragraphs.append("Devices differ, so equal minutes are not equal budgets.")
    if not _is_one_system(results) and (absent := missing_systems(results)):
        labels = ", ".join(system_label(name) for name in absent)
        paragraphs.append(f"Not run yet, and missing in the tables: {labels}.")
    return paragraphs


def _sampling_text(results: Sequence[Result]) -> str:
    """The sampling of diffusion systems and of autoregressive systems."""
    protocols = [result.report["protocol"] for result in results if not is_autoregressive(result.report)]
    samplers = " or ".join(dict.fromkeys(str(protocol["sampler"]) for protocol in protocols))
    parts = [f"in {protocols[0]['steps']} {samplers} steps"] if protocols else []
    if len(protocols) < len(results):
        parts.append("token by token")
    return " (diffusion) or ".join(parts)


def _claims_section(tables: Sequence[ResultTable]) -> Section:
    rows = [(finding.claim.text, finding.paper, finding.ours, finding.verdict) for finding in check_claims(tables)]
    head = ("the paper's claim", "its values", "ours", "here it")
    caption = (
        "The first value is that of the system named first, the second that of its closest competitor in the paper's "
        "table. FID, precision and recall are against the test split, NLL in bits per sketch on the common grid, where "
        "the values of diffusion systems are upper bounds."
    )
    return Section("The paper's claims", (), [Table(head, rows, caption)])


def _find_base(result: Result, results: Sequence[Result]) -> Result | None:
    """The result of the system without the settings of a variant; None if there is none."""
    if not result.is_variant:
        return None
    return next((other for other in results if other.name == result.system), None)


def _settings_section(results: Sequence[Result], tables: Sequence[ResultTable]) -> Section:
    """The effect of settings: the same system without and with them."""
    by_name = {table.name: table for table in tables}
    measures = (
        ("FID", "table1", "fid"),
        ("precision", "table1", "precision"),
        ("recall", "table1", "recall"),
        ("bits/sketch, grid", "table2", "per_sketch"),
    )
    rows = []
    for result in results:
        base = _find_base(result, results)
        if base is None:
            continue
        row = [system_label(result.name)]
        for _, table, key in measures:
            cells = [by_name[table].cell(name, key) for name in (base.name, result.name)]
            row.append(" → ".join("—" if cell is None else cell.text for cell in cells))
        rows.append(row)
    caption = "Without the setting → with it."
    shared = [system_label(result.name) for result in results if result.training.get("weights_of")]
    notes = [f"These settings do not affect training, so the weights are the same: {'; '.join(shared)}."]
    return Section(
        "Settings", notes if shared else [], [Table(("", *(name for name, _, _ in measures)), rows, caption)]
    )
