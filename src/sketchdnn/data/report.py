"""The report of a preparation: `report.json` for programs, `report.html` and `gallery.png` for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sketchdnn.errors import FormatError
from sketchdnn.geometry import Kind, Sketch
from sketchdnn.io import atomic_write, load_json
from sketchdnn.render import gallery_png
from sketchdnn.render.figures import bar_chart, column_chart
from sketchdnn.render.html import Document, Section, Table, Thumbnails
from sketchdnn.representation import decode_compact

from .candidates import Selection
from .config import SPLITS, PrepareConfig, config_to_dict
from .loader import Dataset
from .sources import Tally
from .staging import write_json
from .store import Summary

REPORT = "report.json"
GALLERY_SIZE = 60
GALLERY_COLUMNS = 10
MAX_FILES_LISTED = 200


def report_data(config: PrepareConfig, tally: Tally, selection: Selection, summary: Summary) -> dict[str, Any]:
    """The content of `report.json`: the settings, and the counts of the input, the duplicates and the corpus."""
    licences: dict[str, dict[str, int]] = {}
    for (source, licence), count in sorted(summary["licences"].items()):
        licences.setdefault(source, {})[licence or "not stated"] = count
    groups = selection.group_sizes
    return {
        "config": config_to_dict(config),
        "found": tally.found,
        "refused": _sorted(tally.refused),
        "duplicates": sum((size - 1) * count for size, count in groups.items()),
        "repeats_of_an_earlier_split": dict(selection.repeated),
        "kept": len(selection),
        "splits": {split: selection.count(split) for split in SPLITS},
        "passed_over": _sorted(tally.skipped),
        "files": tally.files,
        "files_not_read": dict(sorted(tally.bad_files.items())[:MAX_FILES_LISTED]),
        "kinds": {kind.label: summary["kinds"][kind.label] for kind in Kind},
        "construction": {kind.label: summary["construction"][kind.label] for kind in Kind},
        "primitives_per_sketch": {str(n): count for n, count in sorted(summary["primitives"].items())},
        "sizes_mm": {_size_range(n): count for n, count in sorted(summary["sizes"].items())},
        "units": {unit or "not stated": count for unit, count in sorted(summary["units"].items())},
        "duplicate_group_sizes": {str(n): count for n, count in sorted(groups.items())},
        "licences": licences,
    }


def load_report(folder: Path) -> dict[str, Any]:
    """The report of a prepared corpus, as `report_data` returns it."""
    try:
        report = load_json(folder / REPORT)
    except (OSError, ValueError) as error:
        raise FormatError(folder / REPORT, f"cannot be read ({error})") from error
    if not isinstance(report, dict):
        raise FormatError(folder / REPORT, "is no report of a corpus")
    return report


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Write `report.json`, `report.html` and `gallery.png`."""
    write_json(folder / REPORT, report)
    sketches = _first_sketches(folder)
    with atomic_write(folder / "report.html") as temporary:
        temporary.write_text(_corpus_page(report, sketches), encoding="utf-8")
    with atomic_write(folder / "gallery.png") as temporary:
        gallery_png(sketches, columns=GALLERY_COLUMNS).save(temporary)


def _first_sketches(folder: Path) -> list[Sketch]:
    """The first sketches of the corpus, whose order is random."""
    sketches: list[Sketch] = []
    for split in SPLITS:
        rows = Dataset.open(folder).split(split).compact
        sketches += [decoded.sketch for decoded in decode_compact(rows[: GALLERY_SIZE - len(sketches)])]
    return sketches


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _size_range(half_decades: int) -> str:
    """
    >>> _size_range(3)
    '32–100'
    """
    low, high = (float(f"{10 ** (n / 2):.2g}") for n in (half_decades, half_decades + 1))
    return f"{low:g}–{high:g}"


MAX_REASONS = 12
# Sizes of groups of duplicates that are counted together, by their fewest members.
_GROUPS = ("unique", "2 copies", "3 to 5 copies", "6 to 10 copies", "11 to 100 copies", "over 100 copies")
_FEWEST = [1, 2, 3, 6, 11, 101, np.inf]


def _corpus_page(report: Mapping[str, Any], sketches: Sequence[Sketch]) -> str:
    """The page of a report, as `report_data` returns it, with a gallery of these sketches."""
    config, found, kept, splits = (report[key] for key in ("config", "found", "kept", "splits"))
    refused, duplicates = sum(report["refused"].values()), report["duplicates"]
    repeats = sum(report["repeats_of_an_earlier_split"].values())
    tiles = {"sketches found": found, "refused": refused, "duplicates": duplicates, "in an earlier split": repeats}
    tiles |= {"kept": kept} | {f"in {split}": count for split, count in splits.items()}
    accepted = found - refused
    stages = {"found": found, "accepted": accepted, "without duplicates": accepted - duplicates, "kept": kept, **splits}
    licences = [(source, name, f"{n:,}") for source, counts in report["licences"].items() for name, n in counts.items()]
    kinds = bar_chart(report["kinds"], total=sum(report["kinds"].values()), parts=report["construction"])
    sections = [
        Section("From found to kept", plots=[bar_chart(stages, total=found)]),
        _counts("Why sketches were refused", report["refused"], found),
        _duplicates(report["duplicate_group_sizes"]),
        Section("Sources and licenses", tables=[Table(("source", "license", "sketches"), licences)]),
        Section("Primitives per sketch", plots=[column_chart(report["primitives_per_sketch"], "primitives")]),
        Section("Kinds of primitives", ["The dark part is construction geometry."], plots=[kinds]),
        _sizes(report),
    ]
    if report["passed_over"]:
        sections.append(_counts("Skipped while reading", report["passed_over"]))
    if report["files_not_read"]:
        rows = list(report["files_not_read"].items())
        sections.append(Section("Files that could not be read", tables=[Table(("file", "reason"), rows, is_text=True)]))
    title = f"The first {len(sketches)} sketches, in random order"
    sections.append(Section(title, galleries=[Thumbnails(sketches)]))
    size = f"{config['min_primitives']} to {config['max_primitives']} primitives"
    files = f" · {report['files']:,} file{'s' * (report['files'] > 1)} read" if report["files"] else ""
    return Document(
        f"{kept:,} prepared sketches",
        lead=[f"Preset {config['preset']} · {size}{files}"],
        sections=sections,
        tiles={name: f"{value:,}" for name, value in tiles.items()},
    ).to_html()


def _counts(title: str, counts: Mapping[str, int], total: int | None = None) -> Section:
    """The most frequent reasons as bars, the others added up."""
    if not counts:
        return Section(title, ["None."])
    shown = dict(list(counts.items())[:MAX_REASONS])
    if others := sum(counts.values()) - sum(shown.values()):
        shown[f"{len(counts) - len(shown)} other reasons"] = others
    return Section(title, plots=[bar_chart(shown, total=total)])


def _duplicates(sizes: Mapping[str, int]) -> Section:
    members = list(map(int, sizes))
    groups = np.histogram(members, _FEWEST, weights=list(sizes.values()))[0].tolist()
    counts = {name: int(count) for name, count in zip(_GROUPS, groups, strict=True) if count}
    largest = max(members)
    remark = f"The largest group had {largest:,} members." if largest > 1 else "No sketch occurs twice."
    return Section("Groups of duplicates", [remark], plots=[bar_chart(counts)])


def _sizes(report: Mapping[str, Any]) -> Section:
    unknown = report["units"].get("not stated", 0)
    lows = {_thousands(name.split("–")[0]): count for name, count in report["sizes_mm"].items()}
    plots = [column_chart(lows, "larger side in mm, lower end of each range")] if lows else []
    remarks = [f"{unknown:,} sketches come from files without units."] if unknown else []
    return Section("True size", remarks, plots=plots)


def _thousands(number: str) -> str:
    return f"{float(number) / 1000:g}k" if float(number) >= 1000 else number
