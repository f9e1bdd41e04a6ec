"""What a report says, section by section: the numbers of `report.json` in tables, plots and words.

Here are the scores; `sketch_sections` has what is seen in the sketches themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from . import repair_section, sketch_sections
from .document import Document, Gallery, Section, Table
from .plots import Curve, Panel, panels
from .protocol import in_words
from .wording import SCORES, at, how_drawn, interval, is_of_tokens, number, percent, reference, score_in_words

Report = Mapping[str, Any]

LIKELIHOOD: tuple[tuple[str, str], ...] = (
    ("grid_set", "bound on the grid, of the set (order taken off)"),
    ("grid.bits", "bound on the grid, of the rows in order"),
    ("density.bits", "bound on the density (differential bits)"),
    ("authors", "authors' estimate (no bound)"),
    ("tokens", "exact, of the tokens on their own grid"),
)


def document(report: Report, galleries: Sequence[Gallery] = ()) -> Document:
    """The report in words."""
    system, protocol = report["system"], report["protocol"]
    sections = [
        *_scores(report),
        *_corruption(report),
        *sketch_sections.validity(report),
        *repair_section.after_repair(report),
        *sketch_sections.distributions(report),
        *sketch_sections.novelty(report),
        *_likelihood(report),
        *sketch_sections.drawing(report),
        *sketch_sections.galleries(report, galleries),
        *_protocol(report),
    ]
    return Document(
        f"Evaluation of {system['name']}",
        [
            f"{system['samples']:,} sketches, {how_drawn(report)}; protocol {protocol['id']}. Intervals are 95 %.",
            f"Made by {report['program']}" + (":" if report["command"] else "."),
        ],
        report["warnings"],
        sections,
        report["command"],
    )


def headline(report: Report) -> str:
    """The one number that everybody asks for, and what it must never be quoted without."""
    part = report["scores"]["test"]
    return (
        f"{report['system']['name']}: FID {interval(part['system']['fid'])} of {part['samples']:,} samples against the "
        f"{part['reference']}, floor {interval(part['floor']['fid'])}{_after_repair(report)}; "
        f"protocol {report['protocol']['id']}"
    )


def _after_repair(report: Report) -> str:
    fid = at(report, "repaired.scores.test.system.fid")
    return "" if fid is None else f", after repair {interval(fid)}"


def _scores(report: Report) -> list[Section]:
    tables = []
    for part in report["scores"].values():
        rows = [
            (name, *(score_in_words(at(part, f"{side}.{key}"), factor) for side in ("system", "floor")))
            for key, name, factor in SCORES
        ]
        head = (f"against {part['references']:,} of the {part['reference']}", report["system"]["name"], "floor")
        caption = (
            f"The first {part['samples']:,} samples against {part['references']:,} sketches of the "
            f"{part['reference']}. Floor: {part['floor_of']}, both real, at the same size. "
            f"Protocol {report['protocol']['id']}."
        )
        tables.append(Table(head, rows, caption))
    words = (
        "How far the samples are from real sketches, seen through the FID Inception. The floor is what real sketches "
        "score against other real sketches: no system can be expected to pass it."
    )
    return [Section("Likeness to the data", [words], tables)]


def _corruption(report: Report) -> list[Section]:
    steps = report.get("corruption")
    if not steps:
        return []
    measures = (
        ("fid", "FID ↓", 1.0, "fid"),
        ("kid", "KID × 1000 ↓", 1000.0, "kid"),
        ("within_loose", "ends within 0.02, % ↑", 100.0, "gaps.within_loose"),
    )
    rows = [
        (
            step["name"],
            *(interval(step[key], factor) for key, _, factor, _ in measures[:2]),
            percent(step["within_loose"]),
        )
        for step in steps
    ]
    own = {
        "fid": at(report["scores"]["test"], "system.fid.value"),
        "kid": at(report["scores"]["test"], "system.kid.value"),
        "within_loose": at(report["validity"]["samples"], "gaps.within_loose.value"),
    }
    name = report["system"]["name"]
    rows.append(
        (
            name,
            *(interval(report["scores"]["test"]["system"][key], factor) for key, _, factor, _ in measures[:2]),
            percent(at(report["validity"]["samples"], "gaps.within_loose")),
        )
    )
    plots = [
        Panel(title, curves, None if own[key] is None else own[key] * factor, name)
        for key, title, factor, _ in measures
        if (curves := _curves(steps, key, factor))
    ]
    caption = (
        f"{at(report, 'scores.test.samples'):,} of these sketches, damaged, against as many training sketches; "
        f"{name} as above. Protocol {report['protocol']['id']}."
    )
    words = (
        f"Do the scores measure anything? Real sketches of the {reference(report)} are damaged on purpose: noise on "
        "every end, or primitives left out. Undamaged they score the floor, and every score must get worse with the "
        "damage."
    )
    return [
        Section(
            "Sanity by corruption",
            [words, _verdict(plots)],
            [Table((reference(report), "FID", "KID × 1000", "ends within 0.02"), rows, caption)],
            [panels(plots)],
        )
    ]


def _verdict(plots: Sequence[Panel]) -> str:
    """Whether every score got worse with every step of damage, as they must."""
    failed = [
        f"{panel.title} ({curve.name})"
        for panel in plots
        for curve in panel.curves
        for values in [[-value for value in curve.values] if "↑" in panel.title else curve.values]
        if any(after <= before for before, after in pairwise(values))
    ]
    if not failed:
        return "Here every one of them gets worse with every step of damage."
    return f"Here not all of them do so with every step: {'; '.join(failed)}."


def _curves(steps: Sequence[Report], key: str, factor: float) -> list[Curve]:
    names = {"jitter": "noise on ends", "drop": "primitives dropped"}
    start = next(step for step in steps if step["kind"] == "none")
    found = []
    for kind, name in names.items():
        own = [start, *(step for step in steps if step["kind"] == kind)]
        if any(step[key]["value"] is None for step in own):
            continue  # a corpus of circles has no ends to meet
        values = [factor * step[key]["value"] for step in own]
        places = [f"{100 * step['amount']:g} %" if kind == "drop" else f"{step['amount']:g}" for step in own]
        found.append(Curve(name, places, values))
    return found


def _likelihood(report: Report) -> list[Section]:
    found = report.get("likelihood")
    if not found:
        return []
    protocol = report["protocol"]["id"]
    rows = [
        (name, *(interval(at(found, f"{path}.{unit}")) for unit in ("per_sketch", "per_primitive", "per_row")))
        for path, name in LIKELIHOOD
        if at(found, path) is not None
    ]
    drawn = f", {found['draws']} draws of t for each" if found["draws"] else ""
    figures = Table(
        ("bits ↓", "per sketch", "per primitive", "per row (of 16)"),
        rows,
        f"{found['sketches']:,} sketches of the {reference(report)}, {number(found['mean_primitives'])} primitives "
        f"each on average{drawn}. Protocol {protocol}.",
    )
    terms = Table(
        ("bits a sketch, part by part", "bound on the grid", "on the density"),
        [
            (name, interval(at(found, f"grid.{kind}.{name}")), interval(at(found, f"density.{kind}.{name}")))
            for kind in ("terms", "parts")
            for name in at(found, f"grid.{kind}") or ()
        ],
        f"The same bound twice: by term, and by part of a row. Protocol {protocol}.",
    )
    read_off = f"; a sketch is read off at step {found['read_at']}" if found["read_at"] else ""
    plain_process = (
        "These are bits of the plain diffusion process, one ancestral step after another, not of the sampler that drew "
        "the sketches above. "
        if found["draws"]
        else ""
    )
    words = (
        f"{plain_process}The grid has {found['grid_levels']} levels from −1 to 1{read_off}. "
        "Only the figures on the grid may be compared with those of a model of tokens on that grid; the authors' "
        "estimate bounds nothing. Bits a primitive are all bits over all primitives, bits a row divide by all 16 rows, "
        "empty ones included. The paper's table mixes the two: 5.08 = 81.33/16 for SketchDNN is a row's, "
        "8.19 = 84.80/10.35 for Vitruvion a primitive's."
    )
    return [Section("Likelihood", [words], [figures, terms] if terms.rows else [figures])]


def _protocol(report: Report) -> list[Section]:
    facts = in_words(report["protocol"], of_tokens=is_of_tokens(report))
    named = (("sha256", "the weights (SHA-256)"), ("samples_sha256", "the samples (SHA-256)"))
    facts += [(words, str(report["system"][name])) for name, words in named if report["system"].get(name)]
    seconds = [(name, f"{time:.1f} s") for name, time in report["timings"].items()]
    return [
        Section(
            "Protocol and timings",
            ["Scores of two reports may be compared if all of this agrees, but for how the system drew its sketches."],
            [
                Table(("protocol", ""), facts),
                Table(
                    ("stage", "time"),
                    seconds,
                    f"On {report['device']}, {sum(report['timings'].values()):.0f} s in all.",
                ),
            ],
        )
    ]
