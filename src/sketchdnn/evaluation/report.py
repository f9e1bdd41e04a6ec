"""The report of an evaluation: its sections in words and tables, and its files.

`report.json` holds the numbers, `report.md` and `report.html` show them. A report of an older version is read through
the alias table of report keys.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
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
_REQUIRED = {"system": dict, "system.name": str, "scores": dict, "validity": dict, "novelty": dict, "warnings": list}
# Token models have no steps; their reports hold a number without a meaning.
_TOKEN_SYSTEMS = [name for name, system in SYSTEMS.items() if issubclass(system, TokenSystem)]

# The words of the sections.
WORDS: Mapping[str, Any] = tomllib.loads(files("sketchdnn.evaluation").joinpath("report.toml").read_text("utf-8"))


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
    write_texts(folder, contents)


def write_texts(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write files by their names, one after another."""
    for name, text in contents.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [folder / name for name in contents]


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
        if not isinstance(lookup(report, name), kind):
            raise FormatError(file, f"is no report of an evaluation: it has no {name}")
    return dict(report)


def is_report(path: Path) -> bool:
    """Whether a path looks like a report of an evaluation: a corpus has a `report.json` of another kind."""
    file = path / REPORT if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return False
    with suppress(OSError, ValueError):
        content = load_json(file)
        return isinstance(content, dict) and "protocol" in content
    return False


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
        tables = [table._replace(caption=f"{table.caption} Protocol {protocol}.") for table in section.tables]
        sections.append(section._replace(tables=tables))
    lead = [
        f"{system['samples']:,} sketches, {describe_samples(report)}; protocol {protocol}. Intervals are 95 %.",
        f"Made by {report['program']}" + (":" if report["command"] else "."),
    ]
    sections += [_galleries(report, galleries), _protocol(report)]
    return Document(f"Evaluation of {system['name']}", lead, report["warnings"], sections, report["command"])


def _say(section: str, name: str, /, **values: Any) -> str:
    return str(WORDS[section][name].format(**values))


def _score_rows(*columns: Report) -> list[tuple[str, ...]]:
    rows = []
    for key, name in WORDS["scores"]["rows"].items():
        factor = 1000.0 if key.startswith("kid") else 1.0
        rows.append((name, *(format_interval(lookup(column, key), factor) for column in columns)))
    return rows


def _validity_rows(*columns: Report) -> list[tuple[str, ...]]:
    rows = [("median end gap ↓", *(format_interval(lookup(column, "gaps.median")) for column in columns))]
    for path, name in WORDS["validity"]["rows"].items():
        rows.append((name, *(format_percent(lookup(column, path)) for column in columns)))
    return rows


def _scores(report: Report) -> Section:
    tables = []
    for part in report["scores"].values():
        head = (f"against {part['references']:,} of the {part['reference']}", report["system"]["name"], "floor")
        tables.append(Table(head, _score_rows(part["system"], part["floor"]), _say("scores", "caption", **part)))
    return Section(_say("scores", "title"), [_say("scores", "text")], tables)


def _corruption(report: Report) -> Section | None:
    steps = report.get("corruption")
    if not steps:
        return None
    name, split, part = report["system"]["name"], reference_split(report), report["scores"]["test"]
    own = {"name": name, **part["system"], **report["validity"]["samples"]["gaps"]}
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
    verdict = _say("corruption", "failed" if failed else "passed", failed="; ".join(failed))
    caption = _say("corruption", "caption", count=part["samples"], name=name)
    table = Table((split, "FID", "KID × 1000", "ends within 0.02"), rows, caption)
    plots = [plot_panels(panels)] if panels else []
    return Section(_say("corruption", "title"), [_say("corruption", "text", split=split), verdict], [table], plots)


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
    samples, real, split = report["validity"]["samples"], report["validity"]["test"], reference_split(report)
    caption = _say("validity", "caption", samples=samples["sketches"], real=real["sketches"], split=split)
    table = Table(("measure", report["system"]["name"], split), _validity_rows(samples, real), caption)
    return Section(_say("validity", "title"), [_say("validity", "text")], [table])


def _repaired(report: Report) -> Section | None:
    repaired = report.get("repaired")
    if not repaired:
        return None
    tables = []
    for name, scores in repaired["scores"].items():
        part = report["scores"][name]
        head = (f"against {part['references']:,} of the {part['reference']}", "as drawn", "repaired", "floor")
        rows = _score_rows(part["system"], scores["system"], part["floor"])
        tables.append(Table(head, rows, _say("repaired", "scores", **part)))
    before, after, real = report["validity"]["samples"], repaired["validity"], report["validity"]["test"]
    exact = (repaired["exact_ends"][side] for side in ("samples", "repaired", "test"))
    rows = [("ends that meet another end exactly, to 1e-6", *map(format_percent, exact))]
    rows += _validity_rows(before, after, real)
    split = reference_split(report)
    caption = _say("repaired", "validity", samples=after["sketches"], real=real["sketches"], split=split)
    tables.append(Table(("measure", "as drawn", "repaired", split), rows, caption))
    return Section(_say("repaired", "title"), [_say("repaired", "text"), _repair_text(repaired)], tables)


def _repair_text(repaired: Report) -> str:
    actions = ", ".join(f"{kind} {count:,}" for kind, count in repaired["actions"].items()) or "none"
    moves = repaired["displacement"]
    median, p95, largest = (f"{format_number(moves[name], 100)} %" for name in ("median", "p95", "max"))
    values = {"sketches": repaired["sketches"], "median": median, "p95": p95, "largest": largest, "actions": actions}
    changed, dof = format_percent(repaired["changed"]), format_number(repaired["dof"])
    text = _say("repaired", "summary", changed=changed, dof=dof, **values)
    if warned := sum(repaired["warnings"].values()):
        reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(repaired["warnings"].items())[:3])
        text += _say("repaired", "warned", warned=warned, reasons=reasons)
    return text + (_say("repaired", "lost", lost=repaired["lost"]) if repaired["lost"] else "")


def _distributions(report: Report) -> Section:
    distributions = report["distributions"]
    name, split = report["system"]["name"], reference_split(report)
    tables, plots = [], []
    for part, title in WORDS["distributions"]["rows"].items():
        deviations, rows = distributions[part]["deviations"], []
        for d in deviations:
            relative = "—" if d["relative"] is None else f"{100 * d['relative']:+.0f} %".replace("-", "−")
            within = "yes" if d["is_within"] else "no"
            shares = _share(d["value"]), _share(d["reference"])
            rows.append((d["name"], *shares, relative, format_number(d["z_score"]), within))
        variation = format_number(distributions[part]["total_variation"])
        caption = _say("distributions", "caption", total_variation=variation, split=split, **distributions)
        head = (title, name, split, "relative", "standard errors", "within 15 % or 2 se")
        tables.append(Table(head, rows, caption))
        if part != "construction":
            ours, real = ({d["name"]: d[side] for d in deviations} for side in ("value", "reference"))
            plots.append(plot_distributions(ours, real, (name, split), f"{title}, %"))
    return Section(_say("distributions", "title"), (), tables, plots)


def _novelty(report: Report) -> Section:
    novelty = report["novelty"]
    near, name, split = novelty["neighbors"], report["system"]["name"], reference_split(report)
    keys = ("in_training", "real_in_training", "unique_same_size", "real_unique")
    repeats = Table(
        ("grid", f"{name} in training", f"{split} in training", f"{name} unique", f"{split} unique"),
        [(f"{level['levels']} levels", *(format_percent(level[key]) for key in keys)) for level in novelty["repeats"]],
        _say("novelty", "repeats", split=split, **novelty),
    )
    rows = [("median", format_interval(near["median"]), format_interval(near["real_median"]))]
    for percent in (1, 5, 25):
        ours, real = (format_percent(near[f"{side}closer_than_{percent}"]) for side in ("", "real_"))
        rows.append((f"no farther than the closest {percent} % of the {split}", ours, real))
    rows.append((f"samples nearer than the {split}, by at most", _share(near["nearer"]), ""))
    rows.append(("difference in either direction (Kolmogorov–Smirnov)", _share(near["kolmogorov_smirnov"]), ""))
    head = ("distance to the nearest training sketch", name, split)
    nearest = Table(head, rows, _say("novelty", "neighbors", split=split))
    plot = plot_distributions(near["samples"], near["test"], (name, split), "sketches by distance to the nearest, %")
    return Section(_say("novelty", "title"), [_say("novelty", "text")], [repeats, nearest], [plot])


def _likelihood(report: Report) -> Section | None:
    likelihood = report.get("likelihood")
    if not likelihood:
        return None
    split, primitives = reference_split(report), format_number(likelihood["mean_primitives"])
    draws = f", {likelihood['draws']} draws of t for each" if likelihood["draws"] else ""
    units = ("per_sketch", "per_primitive", "per_row")
    rows = [
        (name, *(format_interval(lookup(likelihood, f"{path}.{unit}")) for unit in units))
        for path, name in WORDS["likelihood"]["rows"].items()
        if lookup(likelihood, path) is not None
    ]
    values = {"sketches": likelihood["sketches"], "primitives": primitives, "split": split, "draws": draws}
    units_head = ("bits ↓", "per sketch", "per primitive", "per row (of 16)")
    tables = [Table(units_head, rows, _say("likelihood", "caption", **values))]
    parts = [
        (name, *(format_interval(lookup(likelihood, f"{bound}.{kind}.{name}")) for bound in ("grid", "density")))
        for kind in ("terms", "parts")
        for name in lookup(likelihood, f"grid.{kind}") or ()
    ]
    if parts:
        parts_head = ("bits per sketch, part by part", "bound on the grid", "on the density")
        tables.append(Table(parts_head, parts, _say("likelihood", "parts")))
    step = likelihood["reconstruction_step"]
    reconstruction = f"; the reconstruction is taken at step {step}" if step else ""
    text = _say("likelihood", "process") if likelihood["draws"] else ""
    text += _say("likelihood", "grid", levels=likelihood["grid_levels"], reconstruction=reconstruction)
    return Section(_say("likelihood", "title"), [text + _say("likelihood", "text")], tables)


def _decoding(report: Report) -> Section:
    decoding, kinds = report["decoding"], WORDS["decoding"]["rows"]
    rows = [(what, why, f"{count:,}") for key, what in kinds.items() for why, count in decoding[key].items()]
    rows.append(("empty samples, drawn again", "", f"{decoding['empty_draws']:,}"))
    sketches = report["system"]["samples"]
    caption = _say("decoding", "caption", primitives=decoding["primitives"], sketches=sketches)
    return Section(_say("decoding", "title"), (), [Table(("what", "why", "how often"), rows, caption, is_text=True)])


def _galleries(report: Report, galleries: Sequence[Thumbnails]) -> Section:
    selected = _say("galleries", "selected", score=report["galleries"]["score"])
    text = [selected, _say("galleries", "text", split=reference_split(report))]
    return Section(_say("galleries", "title"), text, galleries=galleries, pictures=["sheet.png"])


def _protocol(report: Report) -> Section:
    protocol = {**report["protocol"], "sampler": current_sampler(report["protocol"]["sampler"])}
    rows = describe_protocol(protocol, is_autoregressive=is_autoregressive(report))
    for name, words in WORDS["protocol"]["rows"].items():
        if value := report["system"].get(name):
            rows.append((words, str(value)))
    timings = report["timings"]
    caption = _say("protocol", "caption", device=report["device"], seconds=sum(timings.values()))
    seconds = Table(("stage", "time"), [(name, f"{time:.1f} s") for name, time in timings.items()], caption)
    settings = Table(("protocol", ""), rows, is_text=True)
    return Section(_say("protocol", "title"), [_say("protocol", "text")], [settings, seconds])


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
