"""The report of an evaluation: its sections in words and tables, and its files.

`report.json` holds the numbers, `report.md` and `report.html` show them. A report of an older version is read through
the alias table of report keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.io import atomic_write, load_json
from sketchdnn.render.html import Document, Section, Table, Thumbnails
from sketchdnn.representation import Compact
from sketchdnn.systems.aliases import current_sampler, rename_report_keys
from sketchdnn.systems.baselines.tokens.system import TokenSystem
from sketchdnn.systems.registry import SYSTEMS

from .plots import Curve, Panel, make_galleries, plot_distributions, plot_panels, write_sheet
from .protocol import Protocol, describe_protocol
from .report_format import format_interval, format_number, format_percent, lookup

Report = Mapping[str, Any]

REPORT, SAMPLES = "report.json", "samples.jsonl"
# The parts of a report that comparisons need.
_REQUIRED = {"system": dict, "scores": dict, "validity": dict, "novelty": dict, "warnings": list}
# Token models have no steps; their reports hold a number without a meaning.
_TOKEN_SYSTEMS = [name for name, system in SYSTEMS.items() if issubclass(system, TokenSystem)]

SCORES = {
    "fid": "FID ↓",
    "fid_infinity": "FID∞, extrapolated to infinite samples ↓",
    "kid": "KID × 1000 ↓",
    "kid.standard_error": "KID × 1000, standard error",
    "precision": "precision (Kynkäänniemi 2019, k = 3) ↑",
    "recall": "recall (Kynkäänniemi 2019, k = 3) ↑",
    "authors_precision": "precision (authors' variant) ↑",
    "authors_recall": "recall (authors' variant) ↑",
    "density": "density (k = 5) ↑",
    "coverage": "coverage (k = 5) ↑",
}
VALIDITY = {
    "gaps.within_fine": "ends within 0.005 of another end",
    "gaps.within_loose": "ends within 0.02 of another end",
    "gaps.sketches_within_loose": "sketches with every end within 0.02",
    "exact.closed": "sketches that are closed profiles, exactly",
    "loose.closed": "… within 0.02",
    "exact.extrudable": "sketches that can be extruded, exactly",
    "loose.extrudable": "… within 0.02",
    "exact.overlapping": "sketches with overlapping primitives, exactly",
    "loose.overlapping": "… within 0.02",
    "loose.primitives_overlapping": "primitives that overlap another, within 0.02",
    "tiny": "primitives smaller than 0.005 (degenerate)",
    "flat": "sketches flatter than 0.005 (degenerate)",
    "symmetric": "sketches that are mirror-symmetric",
    "axis_aligned": "lines along an axis",
}
DISTRIBUTIONS = {"kinds": "Kinds of primitive", "construction": "Construction", "counts": "Primitives per sketch"}
LIKELIHOOD = {
    "grid_set": "bound on the grid, of the set (order subtracted)",
    "grid.bits": "bound on the grid, of the rows in order",
    "density.bits": "bound on the density (differential bits)",
    "authors": "authors' estimate (not a bound)",
    "tokens": "exact, of the tokens on their own grid",
}
PLAIN_PROCESS = (
    "These are bits of the plain diffusion process, one ancestral step after another, not of the sampler of the "
    "sketches above. "
)
COMPARABLE_BITS = (
    "Only the figures on the grid may be compared with those of a token model on that grid; the authors' estimate is "
    "not a bound. Bits per primitive are all bits over all primitives, bits per row divide by all 16 rows, empty ones "
    "included. The paper's table mixes the two: 5.08 = 81.33/16 for SketchDNN is per row, 8.19 = 84.80/10.35 for "
    "Vitruvion is per primitive."
)


def write_report(report: Report, samples: Compact, real: Compact, folder: Path) -> None:
    """Write the report and its images; `report.json` comes last, so a folder that has it is complete."""
    document = report_document(report, make_galleries(samples, report["galleries"]))
    write_sheet(samples, folder / "sheet.png")
    write_sheet(real, folder / "real.png")
    contents = {
        "report.md": document.to_markdown(),
        "report.html": document.to_html(),
        REPORT: json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    for name, text in contents.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def load_report(path: Path) -> dict[str, Any]:
    """Read a report from its folder or its JSON file; keys of older versions are renamed.

    Raises:
        FormatError: If it is not the report of an evaluation.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        report: Any = rename_report_keys(load_json(file))
        Protocol.from_json(report["protocol"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SketchError) as error:
        raise FormatError(file, f"is no report of an evaluation ({quoted(error)})") from error
    for name, kind in _REQUIRED.items():
        if not isinstance(report.get(name), kind):
            raise FormatError(file, f"is no report of an evaluation: it has no {name}")
    if not isinstance(report["system"].get("name"), str):
        raise FormatError(file, "is no report of an evaluation: its system has no name")
    return dict(report)


def is_report(path: Path) -> bool:
    """Whether a path looks like a report of an evaluation: a corpus has a `report.json` of another kind."""
    file = path / REPORT if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        content = load_json(file)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "protocol" in content


def headline(report: Report) -> str:
    """FID in one sentence, with the floor and the protocol."""
    part = report["scores"]["test"]
    repaired = lookup(report, "repaired.scores.test.system.fid")
    after_repair = "" if repaired is None else f", after repair {format_interval(repaired)}"
    return (
        f"{report['system']['name']}: FID {format_interval(part['system']['fid'])} of {part['samples']:,} samples "
        f"against the {part['reference']}, floor {format_interval(part['floor']['fid'])}{after_repair}; "
        f"protocol {report['protocol']['id']}"
    )


def describe_samples(report: Report) -> str:
    """The source of the samples of a report."""
    if report["system"]["kind"] != "model":
        return "read from a file"
    protocol = report["protocol"]
    steps = f"with {protocol['steps']} {current_sampler(protocol['sampler'])} steps"
    return f"drawn {'token by token' if is_autoregressive(report) else steps}, seed {protocol['sample_seed']}"


def is_autoregressive(report: Report) -> bool:
    """Whether a report is of a token model."""
    return report["system"].get("system") in _TOKEN_SYSTEMS


def reference_split(report: Report) -> str:
    """The split that samples were compared with: "test split" or "validation split"."""
    return str(report["scores"]["test"]["reference"])


def report_document(report: Report, galleries: Sequence[Thumbnails] = ()) -> Document:
    """The report as a document."""
    system, protocol = report["system"], report["protocol"]["id"]
    parts = (_scores, _corruption, _validity, _repaired, _distributions, _novelty, _likelihood, _decoding)
    sections = []
    for section in filter(None, (part(report) for part in parts)):
        tables = [replace(table, caption=f"{table.caption} Protocol {protocol}.") for table in section.tables]
        sections.append(replace(section, tables=tables))
    lead = [
        f"{system['samples']:,} sketches, {describe_samples(report)}; protocol {protocol}. Intervals are 95 %.",
        f"Made by {report['program']}" + (":" if report["command"] else "."),
    ]
    sections += [_galleries(report, galleries), _protocol(report)]
    return Document(f"Evaluation of {system['name']}", lead, report["warnings"], sections, report["command"])


def _score_rows(*columns: Report) -> list[tuple[str, ...]]:
    rows = []
    for key, name in SCORES.items():
        factor = 1000.0 if key.startswith("kid") else 1.0
        rows.append((name, *(format_interval(lookup(column, key), factor) for column in columns)))
    return rows


def _validity_rows(*columns: Report) -> list[tuple[str, ...]]:
    rows = [("median end gap ↓", *(format_interval(lookup(column, "gaps.median")) for column in columns))]
    rows += [(name, *(format_percent(lookup(column, path)) for column in columns)) for path, name in VALIDITY.items()]
    return rows


def _scores(report: Report) -> Section:
    tables = []
    for part in report["scores"].values():
        head = (f"against {part['references']:,} of the {part['reference']}", report["system"]["name"], "floor")
        caption = (
            f"The first {part['samples']:,} samples against {part['references']:,} sketches of the "
            f"{part['reference']}. Floor: {part['floor_of']}, both real, at the same size."
        )
        tables.append(Table(head, _score_rows(part["system"], part["floor"]), caption))
    text = (
        "How far the samples are from real sketches, measured with the FID Inception. The floor is the score of real "
        "sketches against other real sketches: no system can be expected to pass it."
    )
    return Section("Likeness to the data", [text], tables)


def _corruption(report: Report) -> Section | None:
    steps = report.get("corruption")
    if not steps:
        return None
    name, split = report["system"]["name"], reference_split(report)
    own = {"name": name, **report["scores"]["test"]["system"], **report["validity"]["samples"]["gaps"]}
    rows = [
        (s["name"], format_interval(s["fid"]), format_interval(s["kid"], 1000.0), format_percent(s["within_loose"]))
        for s in (*steps, own)
    ]
    panels = []
    titles = {"fid": "FID ↓", "kid": "KID × 1000 ↓", "within_loose": "ends within 0.02, % ↑"}
    for (key, title), factor in zip(titles.items(), (1.0, 1000.0, 100.0), strict=True):
        if curves := _corruption_curves(steps, key, factor):
            level = own[key]["value"]
            panels.append(Panel(title, curves, None if level is None else level * factor, name))
    failed = [
        f"{panel.title} ({curve.name})"
        for panel in panels
        for curve in panel.curves
        if curve.values != sorted(set(curve.values), reverse="↑" in panel.title)
    ]
    verdict = "Here every one of them gets worse with every step of damage."
    if failed:
        verdict = f"Here not all of them do so with every step: {'; '.join(failed)}."
    text = (
        f"A check of the scores. Real sketches of the {split} are damaged on purpose: noise on every end, or dropped "
        "primitives. Undamaged they score the floor, and every score must get worse with the damage."
    )
    count = report["scores"]["test"]["samples"]
    caption = f"{count:,} of these sketches, damaged, against as many training sketches; {name} as above."
    table = Table((split, "FID", "KID × 1000", "ends within 0.02"), rows, caption)
    return Section("Sanity by corruption", [text, verdict], [table], [plot_panels(panels)] if panels else [])


def _corruption_curves(steps: Sequence[Report], key: str, factor: float) -> list[Curve]:
    """A curve for each kind of corruption; none where a value is missing (circles have no ends to meet)."""
    curves = []
    for kind, name in {"jitter": "noise on ends", "drop": "primitives dropped"}.items():
        own = [step for step in steps if step["kind"] in ("none", kind)]
        if all(step[key]["value"] is not None for step in own):
            amounts = [f"{100 * step['amount']:g} %" if kind == "drop" else f"{step['amount']:g}" for step in own]
            curves.append(Curve(name, amounts, [factor * step[key]["value"] for step in own]))
    return curves


def _validity(report: Report) -> Section:
    samples, real = report["validity"]["samples"], report["validity"]["test"]
    caption = (
        f"{samples['sketches']:,} samples and {real['sketches']:,} sketches of the {reference_split(report)}; the "
        "larger side of each is 2. Intervals are by sketch."
    )
    head = ("measure", report["system"]["name"], reference_split(report))
    text = "Whether ends meet, profiles close, primitives overlap or are too small to see."
    return Section("Validity", [text], [Table(head, _validity_rows(samples, real), caption)])


def _repaired(report: Report) -> Section | None:
    repaired = report.get("repaired")
    if not repaired:
        return None
    tables = []
    for split, scores in repaired["scores"].items():
        part = report["scores"][split]
        head = (f"against {part['references']:,} of the {part['reference']}", "as drawn", "repaired", "floor")
        caption = f"The same {part['samples']:,} samples before and after repair."
        tables.append(Table(head, _score_rows(part["system"], scores["system"], part["floor"]), caption))
    sides = (report["validity"]["samples"], repaired["validity"], report["validity"]["test"])
    exact = (repaired["exact_ends"][side] for side in ("samples", "repaired", "test"))
    rows = [("ends that meet another end exactly, to 1e-6", *map(format_percent, exact)), *_validity_rows(*sides)]
    caption = (
        f"{repaired['validity']['sketches']:,} samples before and after repair and {sides[2]['sketches']:,} sketches "
        f"of the {reference_split(report)}; the larger side of each is 2."
    )
    tables.append(Table(("measure", "as drawn", "repaired", reference_split(report)), rows, caption))
    text = (
        "Every sample repaired as by “sketchdnn generate”, scored against the same references. All other sections are "
        "about the samples as drawn."
    )
    return Section("After repair", [text, _repair_text(repaired)], tables)


def _repair_text(repaired: Report) -> str:
    actions = ", ".join(f"{kind} {count:,}" for kind, count in repaired["actions"].items()) or "none"
    moves = repaired["displacement"]
    median, p95, largest = (f"{format_number(moves[name], 100)} %" for name in ("median", "p95", "max"))
    sentences = [
        f"Of {repaired['sketches']:,} samples repair moved something in {format_percent(repaired['changed'])}.",
        f"The largest move of a sample, as a share of its size: median {median}, 95th percentile {p95}, max {largest}.",
        f"Actions: {actions}. Median degrees of freedom left: {format_number(repaired['dof'])}.",
    ]
    warned = sum(repaired["warnings"].values())
    if warned:
        reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(repaired["warnings"].items())[:3])
        sentences.append(f"With a warning: {warned:,} ({reasons}).")
    if repaired["lost"]:
        sentences.append(f"Repair left nothing to score of {repaired['lost']:,}; they count as drawn.")
    return " ".join(sentences)


def _distributions(report: Report) -> Section:
    distributions = report["distributions"]
    name, split = report["system"]["name"], reference_split(report)
    tables, plots = [], []
    for part, title in DISTRIBUTIONS.items():
        deviations, rows = distributions[part]["deviations"], []
        for d in deviations:
            relative = "—" if d["relative"] is None else f"{100 * d['relative']:+.0f} %"
            within = "yes" if d["is_within"] else "no"
            shares = _share(d["value"]), _share(d["reference"])
            rows.append((d["name"], *shares, relative, format_number(d["z_score"]), within))
        caption = (
            f"Total variation {format_number(distributions[part]['total_variation'])}; {distributions['samples']:,} "
            f"samples and {distributions['test']:,} of the {split}."
        )
        head = (title, name, split, "relative", "standard errors", "within 15 % or 2 se")
        tables.append(Table(head, rows, caption))
        if part != "construction":
            ours, real = ({d["name"]: d[side] for d in deviations} for side in ("value", "reference"))
            plots.append(plot_distributions(ours, real, (name, split), f"{title}, %"))
    return Section("Composition", (), tables, plots)


def _novelty(report: Report) -> Section:
    novelty = report["novelty"]
    near, name, split = novelty["neighbors"], report["system"]["name"], reference_split(report)
    keys = ("in_training", "real_in_training", "unique_same_size", "real_unique")
    repeats = Table(
        ("grid", f"{name} in training", f"{split} in training", f"{name} unique", f"{split} unique"),
        [(f"{level['levels']} levels", *(format_percent(level[key]) for key in keys)) for level in novelty["repeats"]],
        f"Equal to a training sketch on the grid up to symmetry, and distinct sketches among {novelty['same_size']:,} "
        f"of each; {novelty['samples']:,} samples, {novelty['test']:,} of the {split} and {novelty['train']:,} "
        "training sketches.",
    )
    closer = []
    for percent in (1, 5, 25):
        shares = (format_percent(near[f"{side}closer_than_{percent}"]) for side in ("", "real_"))
        closer.append((f"no farther than the closest {percent} % of the {split}", *shares))
    nearest = Table(
        ("distance to the nearest training sketch", name, split),
        [
            ("median", format_interval(near["median"]), format_interval(near["real_median"])),
            *closer,
            (f"samples nearer than the {split}, by at most", _share(near["nearer"]), ""),
            ("difference in either direction (Kolmogorov–Smirnov)", _share(near["kolmogorov_smirnov"]), ""),
        ],
        f"Distances of blurred images, up to symmetry, from 0 to √2. The {split} exceeds its own 1 % and 5 % if many "
        "of its distances are equal, as for real sketches that look like a training sketch. Nearer by at most: the "
        "largest difference of the two cumulative shares.",
    )
    plot = plot_distributions(near["samples"], near["test"], (name, split), "distance to the nearest, %")
    text = (
        "A system that copies would be found in the training split more often than held-out real sketches are. "
        "`prepare` removes from the held-out splits what equals a training sketch on a grid of 256 levels, so compare "
        "on the coarser grids."
    )
    return Section("Novelty", [text], [repeats, nearest], [plot])


def _likelihood(report: Report) -> Section | None:
    likelihood = report.get("likelihood")
    if not likelihood:
        return None
    units = ("per_sketch", "per_primitive", "per_row")
    draws = f", {likelihood['draws']} draws of t for each" if likelihood["draws"] else ""
    figures = Table(
        ("bits ↓", "per sketch", "per primitive", "per row (of 16)"),
        [
            (name, *(format_interval(lookup(likelihood, f"{path}.{unit}")) for unit in units))
            for path, name in LIKELIHOOD.items()
            if lookup(likelihood, path) is not None
        ],
        f"{likelihood['sketches']:,} sketches of the {reference_split(report)}, "
        f"{format_number(likelihood['mean_primitives'])} primitives each on average{draws}.",
    )
    parts = [
        (name, *(format_interval(lookup(likelihood, f"{bound}.{kind}.{name}")) for bound in ("grid", "density")))
        for kind in ("terms", "parts")
        for name in lookup(likelihood, f"grid.{kind}") or ()
    ]
    head = ("bits per sketch, part by part", "bound on the grid", "on the density")
    caption = "The same bound twice: by term, and by part of a row."
    step = likelihood["reconstruction_step"]
    reconstruction = f"; the reconstruction is taken at step {step}" if step else ""
    text = PLAIN_PROCESS if likelihood["draws"] else ""
    text += f"The grid has {likelihood['grid_levels']} levels from −1 to 1{reconstruction}. {COMPARABLE_BITS}"
    return Section("Likelihood", [text], [figures, Table(head, parts, caption)] if parts else [figures])


def _decoding(report: Report) -> Section:
    decoding = report["decoding"]
    kinds = {"repaired": "primitives repaired", "rejected": "primitives left out", "skipped": "sketches left out"}
    rows = [(what, why, f"{count:,}") for key, what in kinds.items() for why, count in decoding[key].items()]
    rows.append(("empty samples, drawn again", "", f"{decoding['empty_draws']:,}"))
    caption = f"Of {decoding['primitives']:,} primitives in {report['system']['samples']:,} sketches."
    return Section("Repaired and left out", (), [Table(("what", "why", "how often"), rows, caption)])


def _galleries(report: Report, galleries: Sequence[Thumbnails]) -> Section:
    text = [
        f"Selected by {report['galleries']['score']}.",
        f"sheet.png shows 64 random samples, and real.png as many sketches of the {reference_split(report)}.",
    ]
    return Section("Best, typical and worst", text, galleries=galleries, pictures=["sheet.png"])


def _protocol(report: Report) -> Section:
    protocol = {**report["protocol"], "sampler": current_sampler(report["protocol"]["sampler"])}
    rows = describe_protocol(protocol, is_autoregressive=is_autoregressive(report))
    hashes = {"sha256": "the weights (SHA-256)", "samples_sha256": "the samples (SHA-256)"}
    rows += [(words, str(report["system"][name])) for name, words in hashes.items() if report["system"].get(name)]
    timings = report["timings"]
    caption = f"On {report['device']}, {sum(timings.values()):.0f} s in all."
    seconds = Table(("stage", "time"), [(name, f"{time:.1f} s") for name, time in timings.items()], caption)
    text = "Scores of two reports may be compared if all of this agrees, except for how the system drew its sketches."
    return Section("Protocol and timings", [text], [Table(("protocol", ""), rows), seconds])


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
