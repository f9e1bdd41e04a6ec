"""Comparison of systems under one protocol: tables of all measures, and the paper's figure 4 of their sketches."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sketchdnn.errors import SketchError, display_path
from sketchdnn.formats import scan
from sketchdnn.geometry import Sketch
from sketchdnn.render.figures import INK, draw_rule, draw_sketch, panel_of_sketch, save_figure, sheet
from sketchdnn.render.html import Document, Section, Table
from sketchdnn.systems.pretrained import bundled_names

from .evaluate import Evaluator
from .protocol import Protocol, refuse_incomparable
from .report import SAMPLES, Report, describe_samples, is_report, load_report, reference_split, write_texts
from .report_format import format_interval, format_percent, lookup

Item = TypeVar("Item")

REAL = "real sketches"
# Sketches of each system in the figure, and read from a report for it.
NUM_SHOWN, MAX_SHOWN = 16, 100
# The figure, in points.
_SIDE, _GAP, _MARGIN, _BETWEEN = 66.0, 8.0, 22.0, 12.0


class ComparedSystem(NamedTuple):
    """A system of a comparison: its report, and sketches to show if they were saved."""

    report: Report
    sketches: Sequence[Sketch]


@dataclass(frozen=True, slots=True)
class Source:
    """A named set of sketches to show."""

    name: str
    sketches: Sequence[Sketch]


class Measure(NamedTuple):
    """A column of a table: the paths of its values for the system and for real sketches."""

    name: str
    path: str
    real: str | None = None
    is_share: bool = False

    def text(self, value: Any) -> str:
        """A value of the measure with its interval."""
        return (
            format_percent(value)
            if self.is_share
            else format_interval(value, 1000.0 if self.path.endswith("kid") else 1.0)
        )


def _likeness(split: str, keys: str, prefix: str = "") -> list[Measure]:
    """Measures of `scores`; with a prefix, those of the repaired samples."""
    names = {"fid": "FID", "fid_infinity": "FID∞", "kid": "KID × 1000"}
    names |= {f"authors_{key}": f"authors' {key}" for key in ("precision", "recall")}
    against = "training" if split == "train" else split
    real, system = f"scores.{split}.floor", f"{prefix}scores.{split}.system"
    return [Measure(f"{names.get(key, key)}, {against}", f"{system}.{key}", f"{real}.{key}") for key in keys.split()]


def _shares(system: str, keys: Mapping[str, str]) -> list[Measure]:
    """Measures of validity, by their keys in the sections of the system and of the test split."""
    return [Measure(name, f"{system}.{key}", f"validity.test.{key}", is_share=True) for key, name in keys.items()]


VALIDITY = {
    "gaps.within_loose": "ends within 0.02",
    "loose.closed": "closed, within 0.02",
    "loose.overlapping": "overlapping, within 0.02",
    "symmetric": "symmetric",
}
TABLES: Mapping[str, Sequence[Measure]] = {
    "Likeness to the data": (
        *_likeness("test", "fid fid_infinity kid precision recall density coverage"),
        *_likeness("train", "fid precision recall authors_precision authors_recall"),
    ),
    "Validity": (
        Measure("median end gap", "validity.samples.gaps.median", "validity.test.gaps.median"),
        *_shares("validity.samples", VALIDITY),
    ),
    "After repair": (
        *_likeness("test", "fid precision recall", "repaired."),
        Measure("ends that meet exactly", "repaired.exact_ends.repaired", "repaired.exact_ends.test", is_share=True),
        *_shares("repaired.validity", {f"exact.{name}": f"{name}, exactly" for name in ("closed", "extrudable")}),
    ),
    "Likelihood": (
        Measure("bits per sketch, grid, as a set", "likelihood.grid_set.per_sketch"),
        Measure("bits per sketch, grid", "likelihood.grid.bits.per_sketch"),
        Measure("bits per primitive, grid", "likelihood.grid.bits.per_primitive"),
        Measure("bits per row (of 16), grid", "likelihood.grid.bits.per_row"),
        Measure("bits per sketch, authors' estimate", "likelihood.authors.per_sketch"),
    ),
}


def compare_and_write(evaluator: Evaluator, names: Sequence[str], out: Path) -> list[Path]:
    """Evaluate systems that have no report yet, and write tables and a figure of all.

    Args:
        names: Models, sample files or reports.
        out: Receives the tables, and a folder for each new report.

    Returns:
        The files of the comparison.
    """
    systems = compare_systems(evaluator, names, out)
    written = write_tables(out, {name: system.report for name, system in systems.items()})
    sources = [Source("data", random_sample(evaluator.real_sketches(MAX_SHOWN), NUM_SHOWN, seed=0))]
    sources += [Source(name, system.sketches[:NUM_SHOWN]) for name, system in systems.items() if system.sketches]
    return written + write_comparison_figure(out, sources) if len(sources) > 1 else written


def compare_systems(evaluator: Evaluator, names: Sequence[str], out: Path) -> dict[str, ComparedSystem]:
    """The reports of systems by label; systems without a report are evaluated, each in its own folder.

    Models and files are checked and reports are loaded first, so that a problem is found before any evaluation.

    Raises:
        SketchError: If protocols differ, or a system cannot be evaluated.
    """
    names = list(dict.fromkeys(names))
    kinds = {name: system_kind(name) for name in names}
    for name, kind in kinds.items():
        if kind != "report":
            evaluator.check(name, is_model=kind == "model")
    systems: dict[str, ComparedSystem] = {}
    protocols: dict[str, Protocol] = {}
    for name in sorted(names, key=lambda name: kinds[name] != "report"):
        if kinds[name] == "report":
            systems[name] = ComparedSystem(load_report(Path(name)), _saved_sketches(Path(name)))
        else:
            expected = next(iter(protocols.values()), None)
            folder = out / _folder_name(name, names.index(name))
            evaluation = evaluator.evaluate(name, folder, is_model=kinds[name] == "model", expected=expected)
            systems[name] = ComparedSystem(evaluation.report, evaluation.samples.sketches[:MAX_SHOWN])
        protocols[name] = Protocol.from_json(systems[name].report["protocol"])
        refuse_incomparable(protocols)
    labels = _unique_labels({name: str(systems[name].report["system"]["name"]) for name in names})
    return {labels[name]: systems[name] for name in names}


def system_kind(name: str) -> str:
    """What a name refers to: "report", "model" or "samples"."""
    path = Path(name)
    if is_report(path):
        return "report"
    if (path / "config.json").is_file() or (name in bundled_names() and not path.exists()):
        return "model"
    return "samples" if path.exists() else "model"


def comparison_document(reports: Mapping[str, Report]) -> Document:
    """The tables of a comparison as a document."""
    first = next(iter(reports.values()))
    ids = ", ".join(f"{name}: {report['protocol']['id']}" for name, report in reports.items())
    sections = []
    for title in TABLES:
        measures = _present_measures(title, reports)
        if not measures:
            continue
        rows = [(name, *(m.text(lookup(report, m.path)) for m in measures)) for name, report in reports.items()]
        if any(measure.real for measure in measures):
            rows.append((REAL, *(m.text(m.real and lookup(first, m.real)) for m in measures)))
        sections.append(Section(title, (), [Table(("", *(m.name for m in measures)), rows, f"Protocol {ids}.")]))
    lead = (
        f"{len(reports)} systems, measured under one protocol. The row of {REAL} is the floor: real against real at "
        f"the same size, and the {reference_split(first)}. Intervals are 95 %."
    )
    sources = "; ".join(f"{name}: {describe_samples(report)}" for name, report in reports.items())
    warnings = list(dict.fromkeys(warning for report in reports.values() for warning in report["warnings"]))
    return Document("Comparison", [lead, f"{sources}."], warnings, sections)


def write_tables(folder: Path, reports: Mapping[str, Report]) -> list[Path]:
    """Write the tables as Markdown, CSV and JSON."""
    if len(reports) < 2:
        raise SketchError("a comparison needs two systems at least; name more models, sample files or reports")
    rows = _numbers(reports)
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    contents = {
        "comparison.md": comparison_document(reports).to_markdown(),
        "comparison.csv": text.getvalue(),
        "comparison.json": json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    return write_texts(folder, contents)


def random_sample(items: Sequence[Item], count: int, seed: int) -> list[Item]:
    """`count` random items; all in order if there are no more."""
    if len(items) <= count:
        return list(items)
    index = np.random.default_rng(seed).choice(len(items), count, replace=False)
    return [items[i] for i in index.tolist()]


def write_comparison_figure(folder: Path, sources: Sequence[Source], *, columns: int = 8) -> list[Path]:
    """Write PNG and SVG: a block of rows for each source, with rules between."""
    for source in sources:
        if not source.sketches:
            raise SketchError(f"'{source.name}' has no sketches to show")
    if len(sources) < 2:
        raise SketchError("a comparison needs two sources of sketches at least")
    pitch = _SIDE + _GAP
    heights = [-(-len(source.sketches) // columns) * pitch for source in sources]
    width = _MARGIN + columns * pitch
    top = sum(heights) + _BETWEEN * (len(sources) - 1)
    label = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold", "color": INK}
    with sheet(width, top) as (figure, axes):
        for number, (source, height) in enumerate(zip(sources, heights, strict=True)):
            if number:
                draw_rule(axes, 0, width, top + _BETWEEN / 2)
            # The name of a file may hold dollar signs.
            axes.text(_MARGIN / 2 - 2, top - height / 2, source.name, parse_math=False, **label)
            for index, sketch in enumerate(source.sketches):
                row, column = divmod(index, columns)
                x, y = _MARGIN + (column + 0.5) * pitch, top - (row + 0.5) * pitch
                draw_sketch(axes, sketch, panel_of_sketch(sketch, x, y, _SIDE))
            top -= height + _BETWEEN
        return save_figure(figure, folder, "comparison")


def _unique_labels(names: Mapping[str, str]) -> dict[str, str]:
    """For each path, the name of its system; equal names are followed by their paths."""
    count = Counter(names.values())
    return {path: name if count[name] == 1 else f"{name} ({display_path(path)})" for path, name in names.items()}


def _present_measures(title: str, reports: Mapping[str, Report]) -> list[Measure]:
    return [m for m in TABLES[title] if any(lookup(report, m.path) is not None for report in reports.values())]


def _numbers(reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """One row per system, with value, low and high of each measure, for other programs."""
    measures = [measure for title in TABLES for measure in _present_measures(title, reports)]
    rows = []
    for name, report in reports.items():
        protocol = report["protocol"]
        row = {"system": name, "protocol": protocol["id"], "sampler": protocol["sampler"], "steps": protocol["steps"]}
        for measure in measures:
            estimate = lookup(report, measure.path) or {}
            for end in ("value", "low", "high"):
                row[measure.path if end == "value" else f"{measure.path}.{end}"] = estimate.get(end)
        rows.append(row)
    return rows


def _saved_sketches(path: Path) -> Sequence[Sketch]:
    """The first samples saved beside a report, if any."""
    file = (path if path.is_dir() else path.parent) / SAMPLES
    if not file.is_file():
        return ()
    return list(islice((item for item in scan(file) if isinstance(item, Sketch)), MAX_SHOWN))


def _folder_name(name: str, number: int) -> str:
    """A folder name that cannot lead out of its parent."""
    word = re.sub(r"[^\w.-]", "-", Path(name).name).strip(".-") or "system"
    return f"{number + 1}-{word}"
