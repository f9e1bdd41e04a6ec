"""What a report says of the samples after repair, beside the samples as they were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .document import Section, Table
from .wording import SCORES, at, interval, number, percent, reference, score_in_words

Report = Mapping[str, Any]

# Of `validity`.
MEASURES: tuple[tuple[str, str], ...] = (
    ("gaps.within_loose", "ends within 0.02 of another end"),
    ("gaps.sketches_within_loose", "sketches with every end within 0.02"),
    ("exact.closed", "sketches that are closed profiles, exactly"),
    ("loose.closed", "… forgiving 0.02"),
    ("exact.extrudable", "sketches that can be extruded, exactly"),
    ("loose.extrudable", "… forgiving 0.02"),
    ("loose.overlapping", "sketches with a primitive along another, forgiving 0.02"),
    ("specks", "primitives smaller than 0.005 (degenerate)"),
    ("axis_aligned", "lines along an axis"),
)


def after_repair(report: Report) -> list[Section]:
    """Nothing, where the samples were not repaired."""
    found = report.get("repaired")
    if not found:
        return []
    words = (
        "What a designer gets: every sample repaired as by “sketchdnn generate”, scored against the same references. "
        "All other sections are about the samples as the system drew them."
    )
    return [Section("After repair", [words, _account(found)], [*_scores(report, found), _validity(report, found)])]


def _scores(report: Report, found: Report) -> list[Table]:
    tables = []
    for split, scores in found["scores"].items():
        part = report["scores"][split]
        rows = [
            (
                name,
                score_in_words(at(part, f"system.{key}"), factor),
                score_in_words(at(scores, f"system.{key}"), factor),
                score_in_words(at(part, f"floor.{key}"), factor),
            )
            for key, name, factor in SCORES
        ]
        head = (f"against {part['references']:,} of the {part['reference']}", "as drawn", "repaired", "floor")
        caption = f"The same {part['samples']:,} samples before and after repair. Protocol {report['protocol']['id']}."
        tables.append(Table(head, rows, caption))
    return tables


def _validity(report: Report, found: Report) -> Table:
    sides = (report["validity"]["samples"], found["validity"], report["validity"]["test"])
    exact = (found["exact_ends"][side] for side in ("samples", "repaired", "test"))
    rows = [
        ("ends that another end meets exactly, to 1e-6", *map(percent, exact)),
        ("median end gap ↓", *(interval(at(side, "gaps.median")) for side in sides)),
        *((name, *(percent(at(side, path)) for side in sides)) for path, name in MEASURES),
    ]
    caption = (
        f"{found['validity']['sketches']:,} samples before and after repair and {sides[2]['sketches']:,} sketches of "
        f"the {reference(report)}; the larger side of each is 2. Protocol {report['protocol']['id']}."
    )
    return Table(("what a CAD user would ask", "as drawn", "repaired", reference(report)), rows, caption)


def _account(found: Report) -> str:
    moved = found["displacement"]
    done = ", ".join(f"{kind} {count:,}" for kind, count in found["actions"].items()) or "nothing"
    median, most_of_95, most = (_share(moved[name]) for name in ("median", "most_of_95", "most"))
    parts = [
        f"Of {found['sketches']:,} samples repair moved something in {percent(found['changed'])}.",
        f"The largest move is {median} of the size at the median, {most_of_95} at most in 95 of 100, {most} at worst.",
        f"Actions: {done}. Degrees of freedom left, at the median: {number(found['dof'])}.",
    ]
    warned = sum(found["warnings"].values())
    if warned:
        reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(found["warnings"].items())[:3])
        parts.append(f"{warned:,} came back with a warning: {reasons}.")
    if found["lost"]:
        parts.append(f"Of {found['lost']:,} repair left nothing that can be judged; they count as drawn.")
    return " ".join(parts)


def _share(value: float) -> str:
    return f"{number(value, 100)} %"
