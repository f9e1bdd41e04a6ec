"""What a report says of the sketches themselves: validity, what they are made of, novelty, and some to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .document import Gallery, Section, Table
from .plots import paired_columns
from .wording import at, interval, number, percent, reference

Report = Mapping[str, Any]

VALIDITY: tuple[tuple[str, str], ...] = (
    ("gaps.within_fine", "ends within 0.005 of another end"),
    ("gaps.within_loose", "ends within 0.02"),
    ("gaps.sketches_within_loose", "sketches with every end within 0.02"),
    ("exact.closed", "sketches that are closed profiles, exactly"),
    ("loose.closed", "… forgiving 0.02"),
    ("exact.extrudable", "sketches that can be extruded, exactly"),
    ("loose.extrudable", "… forgiving 0.02"),
    ("exact.overlapping", "sketches with a primitive along another, exactly"),
    ("loose.overlapping", "… forgiving 0.02"),
    ("loose.primitives_overlapping", "primitives along another, forgiving 0.02"),
    ("specks", "primitives smaller than 0.005 (degenerate)"),
    ("flat", "sketches flatter than 0.005 (degenerate)"),
    ("symmetric", "sketches that are mirror-symmetric"),
    ("axis_aligned", "lines along an axis"),
)
_PARTS = {"kinds": "Kinds of primitive", "construction": "Construction", "counts": "Primitives a sketch"}


def validity(report: Report) -> list[Section]:
    ours, real = report["validity"]["samples"], report["validity"]["test"]
    rows = [("median end gap ↓", interval(at(ours, "gaps.median")), interval(at(real, "gaps.median")))]
    rows += [(name, percent(at(ours, path)), percent(at(real, path))) for path, name in VALIDITY]
    caption = (
        f"{ours['sketches']:,} samples and {real['sketches']:,} sketches of the {reference(report)}; the larger side "
        f"of each is 2. Intervals are by sketch. Protocol {report['protocol']['id']}."
    )
    words = ["Do ends meet, do profiles close, is anything drawn twice or too small to see?"]
    head = ("what a CAD user would ask", report["system"]["name"], reference(report))
    return [Section("Validity", words, [Table(head, rows, caption)])]


def distributions(report: Report) -> list[Section]:
    found = report["distributions"]
    tables, plots = [], []
    for part, title in _PARTS.items():
        rows = [
            (
                d["name"],
                _share(d["value"]),
                _share(d["reference"]),
                _signed(d["relative"]),
                number(d["errors"]),
                _yes(d),
            )
            for d in found[part]["deviations"]
        ]
        head = (
            title,
            report["system"]["name"],
            reference(report),
            "relative",
            "standard errors",
            "within 15 % or 2 se",
        )
        caption = (
            f"Total variation {number(found[part]['total_variation'])}; {found['samples']:,} samples and "
            f"{found['test']:,} of the {reference(report)}. Protocol {report['protocol']['id']}."
        )
        tables.append(Table(head, rows, caption))
        if part != "construction":
            ours, real = ({d["name"]: d[side] for d in found[part]["deviations"]} for side in ("value", "reference"))
            plots.append(paired_columns(ours, real, (report["system"]["name"], reference(report)), title + ", %"))
    return [Section("What sketches are made of", (), tables, plots)]


def novelty(report: Report) -> list[Section]:
    found = report["novelty"]
    rows = [
        (
            f"{level['levels']} levels",
            *(percent(level[key]) for key in ("found", "real_found", "unique_of_equal", "real_unique")),
        )
        for level in found["repeats"]
    ]
    name, real = report["system"]["name"], reference(report)
    near = found["neighbours"]
    head = ("grid", f"{name} in training", f"{real} in training", f"{name} unique", f"{real} unique")
    sizes = f"{found['samples']:,} samples, {found['test']:,} of the {real} and {found['train']:,} training sketches"
    same = Table(
        head,
        rows,
        f"Equal to a training sketch on the grid up to symmetry, and different sketches among {found['equal']:,} of "
        f"each; {sizes}. Protocol {report['protocol']['id']}.",
    )
    nearest = Table(
        ("way to the nearest training sketch", name, real),
        [
            ("median distance", interval(near["median"]), interval(near["real_median"])),
            *(
                (
                    f"no further than the closest {share} % of the {real}",
                    percent(near[f"closer_than_{share}"]),
                    percent(near[f"real_closer_than_{share}"]),
                )
                for share in (1, 5, 25)
            ),
            (f"samples nearer than the {real}, by at most", _share(near["nearer"]), ""),
            ("difference either way (Kolmogorov–Smirnov)", _share(near["kolmogorov_smirnov"]), ""),
        ],
        f"Distances of blurred pictures, up to symmetry, from 0 to √2. The {real} passes its own 1 % and 5 % where "
        "many of its distances are equal: real sketches that are drawn like a training sketch. Nearer by at most: the "
        f"largest difference of the two cumulative shares. Protocol {report['protocol']['id']}.",
    )
    plot = paired_columns(near["samples"], near["test"], (name, real), "distance to the nearest, %")
    words = (
        "A system that copies would be found in the training split more often than held-out real sketches are. "
        "`prepare` leaves out of the held-out splits what equals a training sketch on a grid of 256 levels, so compare "
        "on the coarser grids."
    )
    return [Section("Novelty", [words], [same, nearest], [plot])]


def drawing(report: Report) -> list[Section]:
    found = report["drawing"]
    rows = [("primitives repaired", reason, f"{count:,}") for reason, count in found["repaired"].items()]
    rows += [("primitives left out", reason, f"{count:,}") for reason, count in found["rejected"].items()]
    rows += [("sketches left out", reason, f"{count:,}") for reason, count in found["skipped"].items()]
    rows.append(("empty draws, drawn anew", "", f"{found['empty_draws']:,}"))
    caption = (
        f"Of {found['primitives']:,} primitives in {report['system']['samples']:,} sketches. "
        f"Protocol {report['protocol']['id']}."
    )
    return [Section("Repaired and left out", (), [Table(("what", "why", "how often"), rows, caption)])]


def galleries(report: Report, shown: Sequence[Gallery]) -> list[Section]:
    words = [
        f"Chosen by {report['galleries']['score']}.",
        f"sheet.png shows 64 samples drawn at random, and real.png as many sketches of the {reference(report)}.",
    ]
    return [Section("Best, typical and worst", words, galleries=shown, pictures=["sheet.png"])]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _signed(relative: float | None) -> str:
    return "—" if relative is None else f"{100 * relative:+.0f} %"


def _yes(deviation: Report) -> str:
    return "yes" if deviation["is_within"] else "no"
