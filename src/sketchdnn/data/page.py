"""`report.html` of a prepared corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sketchdnn.geometry import Sketch
from sketchdnn.render.figures import bar_chart, column_chart
from sketchdnn.render.html import Section, Table, Thumbnails, report_page

MOST_REASONS = 12
# Sizes of groups of duplicates that are counted together: up to this many members.
_GROUP_SIZES = {
    "unique": 1,
    "2 copies": 2,
    "3 to 5 copies": 5,
    "6 to 10 copies": 10,
    "11 to 100 copies": 100,
    "over 100 copies": 10**12,
}


def corpus_page(report: Mapping[str, Any], sketches: Sequence[Sketch]) -> str:
    """The page of a report, as `Report.to_json` returns it, with a gallery of these sketches."""
    config, found, refused = report["config"], report["found"], sum(report["refused"].values())
    tiles = {
        "sketches found": found,
        "refused": refused,
        "duplicates": report["duplicates"],
        "in an earlier split": sum(report["repeats_of_an_earlier_split"].values()),
        "kept": report["kept"],
        **{f"in {split}": count for split, count in report["splits"].items()},
    }
    stages = {
        "found": found,
        "accepted": found - refused,
        "without duplicates": found - refused - report["duplicates"],
        "kept": report["kept"],
        **report["splits"],
    }
    licences = [
        (source, licence, f"{count:,}")
        for source, counts in report["licences"].items()
        for licence, count in counts.items()
    ]
    kinds = bar_chart(report["kinds"], total=sum(report["kinds"].values()), parts=report["construction"])
    sections = [
        Section("From found to kept", plots=[bar_chart(stages, total=found)]),
        _counts("Why sketches were refused", report["refused"], found),
        _duplicates(report["duplicate_group_sizes"]),
        Section("Sources and licences", tables=[Table(("source", "licence", "sketches"), licences)]),
        Section("Primitives per sketch", plots=[column_chart(report["primitives_per_sketch"], "primitives")]),
        Section("Kinds of primitives", ["The dark part is construction geometry."], plots=[kinds]),
        _sizes(report),
    ]
    if report["passed_over"]:
        sections.append(_counts("Skipped while reading", report["passed_over"]))
    if report["files_not_read"]:
        rows = list(report["files_not_read"].items())
        sections.append(Section("Files that could not be read", tables=[Table(("file", "reason"), rows, is_text=True)]))
    gallery = Thumbnails(sketches)
    sections.append(Section(f"The first {len(sketches)} sketches, in random order", galleries=[gallery]))
    size = f"{config['min_primitives']} to {config['max_primitives']} primitives"
    files = f" · {report['files']:,} file{'s' * (report['files'] > 1)} read" if report["files"] else ""
    return report_page(
        f"{report['kept']:,} prepared sketches",
        sections,
        lead=[f"Preset {config['preset']} · {size}{files}"],
        tiles={name: f"{value:,}" for name, value in tiles.items()},
    )


def _counts(title: str, counts: Mapping[str, int], total: int | None = None) -> Section:
    """The most frequent reasons as bars, the others added up."""
    if not counts:
        return Section(title, ["None."])
    shown = dict(list(counts.items())[:MOST_REASONS])
    if others := sum(counts.values()) - sum(shown.values()):
        shown[f"{len(counts) - len(shown)} other reasons"] = others
    return Section(title, plots=[bar_chart(shown, total=total)])


def _duplicates(sizes: Mapping[str, int]) -> Section:
    counts, low = {}, 0
    for name, high in _GROUP_SIZES.items():
        if count := sum(count for size, count in sizes.items() if low < int(size) <= high):
            counts[name] = count
        low = high
    largest = max(map(int, sizes))
    remark = f"The largest group had {largest:,} members." if largest > 1 else "No sketch occurs twice."
    return Section("Groups of duplicates", [remark], plots=[bar_chart(counts)])


def _sizes(report: Mapping[str, Any]) -> Section:
    unknown = report["units"].get("not stated", 0)
    lows = {_thousands(name.split("–")[0]): count for name, count in report["sizes_mm"].items()}
    plots = [column_chart(lows, "larger side in mm, lower end of each range")] if lows else []
    return Section(
        "True size", [f"{unknown:,} sketches come from files without units."] if unknown else [], plots=plots
    )


def _thousands(number: str) -> str:
    return f"{float(number) / 1000:g}k" if float(number) >= 1000 else number
