"""Samples after repair: beside the raw ones, never in their place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sketchdnn.evaluation.sheets import sketches_of
from support.judging import SMALL, SMALL_FAST, StandIn, drawn_parts, sample_file, small_corpus

from sketchdnn.evaluation import EvaluationRequest, Evaluator, load_report
from sketchdnn.evaluation import repaired as repaired_room
from sketchdnn.evaluation.comparison import comparison
from sketchdnn.evaluation.protocol import make_settings
from sketchdnn.evaluation.report import headline, report_document
from sketchdnn.evaluation.report_format import markdown
from sketchdnn.evaluation.samples import read_samples, repair_samples
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.evaluation.validity import exact_ends
from sketchdnn.formats import write
from sketchdnn.generation.repair import RepairReport, RepairResult
from sketchdnn.geometry import Point, Sketch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, and parts whose ends nearly meet."""
    folder = tmp_path_factory.mktemp("repaired")
    small_corpus(folder / "corpus")
    write(drawn_parts(24), folder / "clean.jsonl")
    clean = read_samples(folder / "clean.jsonl", 24).compact
    write(sketches_of(jitter_ends(clean, 0.002, 0), range(24)), folder / "parts.jsonl")
    return folder


def measured(folder: Path, out: Path, **changes: Any) -> dict[str, Any]:
    settings = replace(SMALL, corruption=False, **changes)
    request = EvaluationRequest(folder / "corpus", settings=settings, device="cpu", cache=folder / "cache")
    run = Evaluator(request, extractor=lambda device: StandIn())
    return run.evaluate(str(folder / "parts.jsonl"), out, is_model=False).report


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return measured(folder, folder / "out", repaired=True)


def test_raw_scores_are_what_they_are_without_it(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    plain = measured(folder, tmp_path)
    assert plain["repaired"] is None
    assert "After repair" not in (tmp_path / "report.md").read_text()
    for name in ("protocol", "scores", "validity", "novelty", "distributions", "system"):
        assert plain[name] == report[name]


def test_the_same_is_measured_of_both(folder: Path, report: dict[str, Any]) -> None:
    found = report["repaired"]
    assert found["sketches"] == 20  # as many as are compared
    for split in ("test", "train"):
        assert set(found["scores"][split]["system"]) == set(report["scores"][split]["system"])
    assert found["validity"]["sketches"] == report["validity"]["samples"]["sketches"]
    assert sum(found["actions"].values()) > 0
    assert 0 < found["displacement"]["median"] <= found["displacement"]["most"] < 0.05


def test_repair_closes_what_noise_has_opened(report: dict[str, Any]) -> None:
    ends = report["repaired"]["exact_ends"]
    assert ends["samples"]["value"] < 0.1
    assert ends["repaired"]["value"] > 0.8
    closed = [
        side["exact"]["closed"]["value"] for side in (report["validity"]["samples"], report["repaired"]["validity"])
    ]
    assert closed[0] < 0.2 < 0.6 < closed[1]


def test_it_is_told_with_its_protocol_and_read_back(folder: Path, report: dict[str, Any]) -> None:
    words = markdown(report_document(report))
    section = words.split("## After repair")[1].split("\n## ")[0]
    assert section.count(report["protocol"]["id"]) == 3  # a caption for each table
    assert "| as drawn | repaired | floor |" in section
    assert "| as drawn | repaired | test split |" in section
    assert (
        load_report(folder / "out")["repaired"] == json.loads((folder / "out" / "report.json").read_text())["repaired"]
    )
    assert ", after repair " in headline(report)


def test_reports_with_and_without_it_are_compared(report: dict[str, Any]) -> None:
    older = {name: value for name, value in report.items() if name != "repaired"}
    both = markdown(comparison({"new": report, "old": older}))
    assert "## After repair" in both
    assert "## After repair" not in markdown(comparison({"old": older, "older": older}))
    report_document(older)


def test_what_repair_leaves_nothing_of_counts_as_drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = read_samples(folder / "parts.jsonl", 24)

    def spoilt(sketches: list[Sketch], **_: object) -> list[RepairResult]:
        return [RepairResult(Sketch((Point((0, 0)),)) if i == 2 else s, RepairReport()) for i, s in enumerate(sketches)]

    monkeypatch.setattr(repaired_room, "mend_all", spoilt)
    found = repair_samples(samples, 10)
    assert (len(found.compact), found.lost) == (10, 1)
    assert np.array_equal(found.compact.params, samples.compact.params[:10])


def test_exact_ends_are_ends_that_meet(tmp_path: Path) -> None:
    """Ends of built-in parts meet, but for those that are drawn free."""
    clean = read_samples(sample_file(tmp_path / "parts.jsonl"), 24).compact
    assert exact_ends(clean).value > 0.9
    assert exact_ends(jitter_ends(clean, 1e-4, 0)).value < 0.05


def test_it_is_asked_for_and_counted_in_the_time(folder: Path) -> None:
    asked: dict[str, Any] = {"count": None, "likelihood": True, "corruption": None}
    assert not make_settings(fast=False, **asked).repaired
    assert make_settings(fast=True, repaired=True, **asked).repaired
    pictures = [
        Evaluator(
            EvaluationRequest(folder / "corpus", settings=settings, device="cpu"), extractor=lambda device: StandIn()
        ).pictures
        for settings in (SMALL_FAST, replace(SMALL_FAST, repaired=True))
    ]
    assert pictures[1] == pictures[0] + SMALL_FAST.against_test
