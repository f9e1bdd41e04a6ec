"""The report in the docs is one of the model that ships, by the protocol as it is now."""

from __future__ import annotations

import json
from pathlib import Path

from sketchdnn.evaluation import load_report
from sketchdnn.evaluation.protocol import Protocol
from sketchdnn.evaluation.report import report_document
from sketchdnn.evaluation.report_format import markdown
from sketchdnn.generation.generate import STEPS
from sketchdnn.systems import from_pretrained
from sketchdnn.systems.pretrained import model_hash

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = ROOT / "benchmarks/reports/ours"
REPORT = json.loads((KEPT / "report.json").read_text())


def test_it_is_of_the_weights_that_ship() -> None:
    assert REPORT["system"]["sha256"] == model_hash("ours")


def test_it_is_of_what_generate_draws_unless_told() -> None:
    assert (REPORT["system"]["sampler"], REPORT["system"]["steps"]) == (from_pretrained("ours").default_sampler, STEPS)


def test_its_protocol_is_ours() -> None:
    load_report(KEPT)
    said = dict(REPORT["protocol"])
    assert said.pop("id") == Protocol(**said).id


def test_the_card_quotes_it() -> None:
    card = (DOCS / "model_card.md").read_text()
    fid = REPORT["scores"]["test"]["system"]["fid"]
    assert REPORT["protocol"]["id"] in card
    assert f"**{fid['value']:.1f}** ({fid['low']:.1f}–{fid['high']:.1f})" in card
    assert f"{REPORT['validity']['samples']['gaps']['within_loose']['value']:.1%}".replace("%", " %") in card


def test_its_words_are_those_of_its_numbers() -> None:
    """With the section on samples after repair, if it was made since there is one."""
    said, shipped = markdown(report_document(REPORT)), (DOCS / "results/ours/report.md").read_text()
    titles = [line for line in shipped.splitlines() if line.startswith("## ")]
    assert [line for line in said.splitlines() if line.startswith("## ")] == titles
    assert ("## After repair" in titles) == bool(REPORT.get("repaired"))
