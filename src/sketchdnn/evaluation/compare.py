"""Systems side by side: measured under one protocol, in one table. Others are refused."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sketchdnn.errors import SketchError, display_path
from sketchdnn.formats import scan
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.systems.pretrained import bundled_names

from .document import Document, Section, Table, markdown
from .protocol import Protocol, refuse_unlike
from .report import SAMPLES, is_report, load_report
from .run import Run
from .wording import at, how_drawn, interval, percent, reference

Report = Mapping[str, Any]


# As many sketches of a system as a figure may show.
MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """One system of a comparison: its report, and sketches to show if they were kept."""

    report: Report
    sketches: Sequence[Sketch]


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: where a report has it for the system, and where it has it for real sketches."""

    name: str
    path: str
    real: str | None = None
    factor: float = 1.0
    is_share: bool = False


LIKENESS = (
    Measure("FID, test", "scores.test.system.fid", "scores.test.floor.fid"),
    Measure("FID∞, test", "scores.test.system.fid_infinity", "scores.test.floor.fid_infinity"),
    Measure("KID × 1000, test", "scores.test.system.kid", "scores.test.floor.kid", 1000.0),
    Measure("precision, test", "scores.test.system.precision", "scores.test.floor.precision"),
    Measure("recall, test", "scores.test.system.recall", "scores.test.floor.recall"),
    Measure("density, test", "scores.test.system.density", "scores.test.floor.density"),
    Measure("coverage, test", "scores.test.system.coverage", "scores.test.floor.coverage"),
    Measure("FID, training", "scores.train.system.fid", "scores.train.floor.fid"),
    Measure("precision, training", "scores.train.system.precision", "scores.train.floor.precision"),
    Measure("recall, training", "scores.train.system.recall", "scores.train.floor.recall"),
    Measure(
        "authors' precision, training", "scores.train.system.authors_precision", "scores.train.floor.authors_precision"
    ),
    Measure("authors' recall, training", "scores.train.system.authors_recall", "scores.train.floor.authors_recall"),
)
SOUNDNESS = (
    Measure("median end gap", "validity.samples.gaps.median", "validity.test.gaps.median"),
    Measure("ends within 0.02", "validity.samples.gaps.within_loose", "validity.test.gaps.within_loose", is_share=True),
    Measure("closed, forgiving 0.02", "validity.samples.loose.closed", "validity.test.loose.closed", is_share=True),
    Measure(
        "overlapping, forgiving 0.02",
        "validity.samples.loose.overlapping",
        "validity.test.loose.overlapping",
        is_share=True,
    ),
    Measure("symmetric", "validity.samples.symmetric", "validity.test.symmetric", is_share=True),
)
AFTER_REPAIR = (
    Measure("FID, test", "repaired.scores.test.system.fid", "scores.test.floor.fid"),
    Measure("precision, test", "repaired.scores.test.system.precision", "scores.test.floor.precision"),
    Measure("recall, test", "repaired.scores.test.system.recall", "scores.test.floor.recall"),
    Measure("ends that meet exactly", "repaired.exact_ends.repaired", "repaired.exact_ends.test", is_share=True),
    Measure("closed, exactly", "repaired.validity.exact.closed", "validity.test.exact.closed", is_share=True),
    Measure("extruded, exactly", "repaired.validity.exact.extrudable", "validity.test.exact.extrudable", is_share=True),
)
LIKELIHOOD = (
    Measure("bits a sketch, grid, as a set", "likelihood.grid_set.per_sketch"),
    Measure("bits a sketch, grid", "likelihood.grid.bits.per_sketch"),
    Measure("bits a primitive, grid", "likelihood.grid.bits.per_primitive"),
    Measure("bits a row (of 16), grid", "likelihood.grid.bits.per_row"),
    Measure("bits a sketch, authors' estimate", "likelihood.authors.per_sketch"),
)
TABLES = (
    ("Likeness to the data", LIKENESS),
    ("Validity", SOUNDNESS),
    ("After repair", AFTER_REPAIR),
    ("Likelihood", LIKELIHOOD),
)
REAL = "real sketches"


def compare_systems(run: Run, names: Sequence[str], out: Path) -> dict[str, Compared]:
    """Measure what has no report yet, each in a folder of its own; refuses what was not measured alike.

    Reports come first: that two of them do not fit is found out before anything is measured, and so is a model that
    cannot draw as asked, or a file that holds too little.
    """
    names = list(dict.fromkeys(names))
    for name in names:
        if (kind := kind_of(name)) != "report":
            run.check(name, is_model=kind == "model")
    found: dict[str, Compared] = {}
    for name in sorted(names, key=lambda one: kind_of(one) != "report"):
        kind = kind_of(name)
        if kind == "report":
            found[name] = Compared(load_report(Path(name)), _saved_sketches(Path(name)))
        else:
            like = next((Protocol.from_json(one.report["protocol"]) for one in found.values()), None)
            folder = out / _folder_name(name, names.index(name))
            measured = run.measure(name, folder, is_model=kind == "model", like=like)
            found[name] = Compared(measured.report, measured.samples.sketches[:MOST_SHOWN])
        refuse_unlike({place: Protocol.from_json(one.report["protocol"]) for place, one in found.items()})
    labels = unique_names([(name, found[name].report) for name in names])
    return {label: found[name] for label, name in zip(labels, names, strict=True)}


def kind_of(name: str) -> str:
    """What a system was named by: "report", "model" or "samples"."""
    path = Path(name)
    if is_report(path):
        return "report"
    if (path / "config.json").is_file() or (name in bundled_names() and not path.exists()):
        return "model"
    return "samples" if path.exists() else "model"


def check_comparable(reports: Mapping[str, Report]) -> None:
    """Refuses fewer than two, and any that were not measured alike."""
    if len(reports) < 2:
        raise SketchError("a comparison needs two systems at least; name more models, sample files or reports")
    refuse_unlike({name: Protocol.from_json(report["protocol"]) for name, report in reports.items()})


def unique_names(reports: Sequence[tuple[str, Report]]) -> dict[str, Report]:
    """Reports under their systems' names; two of one name are told apart by where they come from."""
    names = [str(report["system"]["name"]) for _, report in reports]
    found: dict[str, Report] = {}
    for (place, report), name in zip(reports, names, strict=True):
        label = name if names.count(name) == 1 else f"{name} ({display_path(place)})"
        if label in found:
            raise SketchError(f"{place} is named twice")
        found[label] = report
    return found


def comparison(reports: Mapping[str, Report]) -> Document:
    """The tables in words."""
    first = next(iter(reports.values()))
    used = [(title, display_path) for title, measures in TABLES if (display_path := _present(measures, reports))]
    sections = []
    for title, measures in used:
        rows = [
            (name, *(_cell(at(report, measure.path), measure) for measure in measures))
            for name, report in reports.items()
        ]
        if any(measure.real for measure in measures):
            real = (_cell(at(first, measure.real) if measure.real else None, measure) for measure in measures)
            rows.append((REAL, *real))
        ids = ", ".join(f"{name}: {report['protocol']['id']}" for name, report in reports.items())
        sections.append(Section(title, (), [Table(("", *(m.name for m in measures)), rows, f"Protocol {ids}.")]))
    split = reference(first)
    lead = (
        f"{len(reports)} systems, measured alike. The row of {REAL} is the floor: real against real at the same size, "
        f"and the {split}. Intervals are 95 %."
    )
    drawn = "; ".join(f"{name}: {how_drawn(report)}" for name, report in reports.items())
    warnings = list(dict.fromkeys(words for report in reports.values() for words in report["warnings"]))
    return Document("Comparison", [lead, f"{drawn}."], warnings, sections)


def write_tables(folder: Path, reports: Mapping[str, Report]) -> list[Path]:
    """Write the tables as Markdown, CSV and JSON."""
    check_comparable(reports)
    rows = _numbers(reports)
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    contents = {
        "comparison.md": markdown(comparison(reports)),
        "comparison.csv": text.getvalue(),
        "comparison.json": json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    for name, words in contents.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(words, encoding="utf-8")
    return [folder / name for name in contents]


def _present(measures: Sequence[Measure], reports: Mapping[str, Report]) -> list[Measure]:
    return [m for m in measures if any(at(report, m.path) is not None for report in reports.values())]


def _cell(value: Any, measure: Measure) -> str:
    return percent(value) if measure.is_share else interval(value, measure.factor)


def _numbers(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """One row a system, with an interval for each measure, for other programs."""
    rows = []
    for name, report in reports.items():
        protocol = report["protocol"]
        row: dict[str, Any] = {"system": name, "protocol": protocol["id"]}
        row |= {"sampler": protocol["sampler"], "steps": protocol["steps"]}
        for measure in [m for _, measures in TABLES for m in _present(measures, reports)]:
            found = at(report, measure.path) or {}
            for end in ("value", "low", "high"):
                row[measure.path if end == "value" else f"{measure.path}.{end}"] = found.get(end)
        rows.append(row)
    return rows


def _saved_sketches(path: Path) -> Sequence[Sketch]:
    """The samples beside a report, the first of them, if they were kept."""
    file = (path if path.is_dir() else path.parent) / SAMPLES
    if not file.is_file():
        return ()
    return list(islice((found for found in scan(file) if isinstance(found, Sketch)), MOST_SHOWN))


def _folder_name(name: str, number: int) -> str:
    """A name that cannot lead out of its folder."""
    word = re.sub(r"[^\w.-]", "-", Path(name).name).strip(".-") or "system"
    return f"{number + 1}-{word}"
