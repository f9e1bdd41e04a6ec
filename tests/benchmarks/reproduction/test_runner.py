"""Small runs of all systems in parts: finished stages are kept, stopped ones continue."""

import csv
import json
import re
import shutil
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from support.evaluation_data import SMALL, FakeExtractor, small_corpus

from benchmarks import reproduction
from benchmarks.reproduction.page import make_page
from benchmarks.reproduction.plan import MANIFEST, SAMPLER, PlannedSystem, find_folder, folder_name, parse_systems
from benchmarks.reproduction.plan import SETTINGS as PLAN_SETTINGS
from benchmarks.reproduction.runner import load_results, training_settings
from benchmarks.reproduction.tables import all_tables
from sketchdnn.data import PRESETS, Procedural, prepare
from sketchdnn.errors import SketchError
from sketchdnn.generation.quality import STEPS
from sketchdnn.systems import from_pretrained
from sketchdnn.training.config import parse_train_config
from sketchdnn.training.run import Report

SETTINGS = replace(SMALL, count=12, against_test=8, against_train=8, validity=8, likelihood_draws=1, corruption=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    small_corpus(folder / "corpus")
    return folder


def make_request(folder: Path, name: str = "tables", **changes: Any) -> reproduction.ReproductionRequest:
    paths = {"data": folder / "corpus", "out": folder / name, "cache": folder / "cache"}
    small = {"budget": reproduction.Budget(steps=2), "preset": "tiny", "settings": SETTINGS, "steps": 2}
    return reproduction.ReproductionRequest(**paths | small | {"device": "cpu"} | changes)


def planned(request: reproduction.ReproductionRequest) -> Any:
    return reproduction.plan_reproduction(request, extractor=lambda device: FakeExtractor())


def run(request: reproduction.ReproductionRequest, **changes: Any) -> list[Path]:
    return reproduction.reproduce(planned(request), **changes)


def refuse_training(report: Report) -> None:
    raise AssertionError("trains again")


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def parts(folder: Path) -> dict[str, str]:
    """Two systems first, all six and a variant then; the page after each time."""
    pages = {}
    run(make_request(folder, systems=["sketchgen", "sketchdnn"]))
    pages["two"] = (folder / "tables" / "reproduction.md").read_text()
    before = {name: stamps(folder / "tables" / name) for name in ("sketchgen", "sketchdnn")}
    run(make_request(folder, systems=[*reproduction.PAPER_SYSTEMS, "sketchdnn:predict=noise"]))
    assert before == {name: stamps(folder / "tables" / name) for name in ("sketchgen", "sketchdnn")}
    pages["all"] = (folder / "tables" / "reproduction.md").read_text()
    return pages


def test_inference_only_settings_reuse_weights(parts: dict[str, str], folder: Path, tmp_path: Path) -> None:
    out = folder / "drawing"
    shutil.copytree(folder / "tables" / "sketchdnn", out / "sketchdnn")
    shutil.copy(folder / "tables" / MANIFEST, out / MANIFEST)
    (out / "another").mkdir()
    (out / "another" / "training.json").write_text("{}")  # an empty record is ignored
    names = ["sketchdnn:reverse_logits=log", "sketchdnn:superposition=max"]
    run(make_request(folder, "drawing", systems=names), on_report=refuse_training)
    base, *others = (from_pretrained(out / folder_name(name) / "run" / "model") for name in ("sketchdnn", *names))
    assert (base.process.reverse_logits, base.process.superposition) == ("expected", "expected")
    assert [one.process.reverse_logits for one in others] == ["log", "expected"]
    assert [one.process.superposition for one in others] == ["expected", "max"]
    for one in others:
        assert all(torch.equal(weight, one.state_dict()[name]) for name, weight in base.state_dict().items())
    drawn = [(out / folder_name(name) / "report" / "samples.jsonl").read_text() for name in ("sketchdnn", *names)]
    assert len(set(drawn)) == 3
    page = (out / "reproduction.md").read_text()
    assert page.startswith("# SketchDNN and its settings\n")
    words = ("the weights are the same: SketchDNN, reverse", "missing in the tables", "The paper's claims")
    assert [text in page for text in words] == [True, False, False]
    for name in ("sketchdnn:mse_weighting=low_noise", "sketchdnn-pos"):
        with pytest.raises(AssertionError, match="trains again"):
            run(make_request(folder, "drawing", systems=[name]), on_report=refuse_training)
    # Checkpoints are large: reports of another machine are enough for the tables.
    shutil.copytree(folder / "tables", tmp_path / "tables", ignore=shutil.ignore_patterns("run", "*.md", "*.csv"))
    run(make_request(folder, out=tmp_path / "tables", systems=["latent"]), on_report=refuse_training)
    assert (tmp_path / "tables" / "table1.csv").read_text() == (folder / "tables" / "table1.csv").read_text()
    assert "81.33" in (tmp_path / "tables" / "reproduction.md").read_text()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_page_names_missing_systems_and_quotes_the_paper(parts: dict[str, str], folder: Path) -> None:
    assert "missing in the tables: SketchDNN (Pos.), SketchDNN (Cat.), Latent Diffusion, Vitruvion" in parts["two"]
    assert "not measured: no Vitruvion nor Latent Diffusion" in parts["two"]
    page = parts["all"]
    assert not any(words in page for words in ("missing in the tables", "not measured"))
    for words in ("7.80", "148.93", "16.04", "0.294", "81.33", "106.10", "not in the paper", "real sketches (floor)"):
        assert words in page
    for words in ("tab:fid-calculations", "tab:nll-calculations", "84.80/10.35", "2 steps", "comparison.png"):
        assert words in page
    assert len(re.findall(r"\| (holds|does not hold)", page)) == 8
    # It names the sampling.
    results = {result.name: result for result in load_results(folder / "tables")}
    steps, tokens = "in 2 ancestral steps", "token by token"
    for names, words in (
        (["sketchdnn", "latent"], f"{steps}."),
        (["sketchgen", "vitruvion:arcs=sweep"], f"{tokens}."),
        (["sketchgen", "sketchdnn"], f"{steps} (diffusion) or {tokens}."),
    ):
        chosen = [results[name] for name in names]
        text = make_page(chosen, all_tables(chosen), budget="2 steps", command="", has_figure=False)
        assert f"of the test split, {words} Intervals are 95 %" in text


def test_tables_have_the_same_cells_in_all_formats(parts: dict[str, str], folder: Path) -> None:
    out = folder / "tables"
    expected = [*reproduction.PAPER_SYSTEMS, "sketchdnn:predict=noise"]
    for name, floor in {"table1": 1, "table1-training": 1, "table2": 0, "cost": 0}.items():
        found = rows(out / f"{name}.csv")
        assert [row["system"] for row in found] == expected + ["real"] * floor
        lines = [line for line in (out / f"{name}.md").read_text().splitlines() if line.startswith("|")]
        assert [line.count("|") for line in lines] == [lines[0].count("|")] * (len(found) + 2)
        text = (out / f"{name}.tex").read_text()
        body = [line for line in text.splitlines() if r" \\" in line]
        cells = [len(re.findall(r"(?<!\\)&", line)) for line in body]
        assert cells == [cells[0]] * (len(found) + 1)
        depth = text.replace(r"\{", "").replace(r"\}", "")
        assert depth.count("{") == depth.count("}")
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
        # The first number of a Markdown row is the rounded one of the CSV.
        key = list(found[0])[1]
        for row, line in zip(found, lines[2:], strict=True):
            words = line.split("|")[2].split("(")[0].strip().replace("−", "-").replace(",", "")
            assert float(words) == pytest.approx(float(row[key]), rel=0.1, abs=0.06)
    # The cost is measured, and all systems share a sampler.
    for row in rows(folder / "tables" / "cost.csv"):
        assert (row["steps"], row["samples_seen"]) == ("2", "128")
        assert min(float(row["minutes"]), float(row["drawing"])) > 0
        assert float(row["parameters"]) > 1e5
    reports = list(folder.glob("tables/*/report/report.json"))
    assert len(reports) == len(reproduction.PAPER_SYSTEMS) + 1
    assert {json.loads(path.read_text())["protocol"]["sampler"] for path in reports} == {"ancestral"}
    # The authors' schedule ends with noise: `ancestral` would leave it on every coordinate.
    names = ["sketchdnn:variant=authors", "sketchdnn:variant=paper"]
    systems = planned(make_request(folder, "forms", systems=names)).plan.systems
    assert [(one.variant.name, one.sampler) for one in systems] == [(names[0], "authors"), (names[1], "ancestral")]


def test_bits_are_on_one_grid(parts: dict[str, str], folder: Path) -> None:
    found = {row["system"]: row for row in rows(folder / "tables" / "table2.csv")}
    for name in reproduction.PAPER_SYSTEMS:
        row = found[name]
        per_sketch, per_row = float(row["per_sketch"]), float(row["per_row"])
        assert per_sketch == pytest.approx(16 * per_row, rel=1e-3)
        assert float(row["per_primitive"]) > per_row
        facts = json.loads((folder / "tables" / folder_name(name) / "grid.json").read_text())
        assert facts["bits"]["grid_levels"] == 64
        tokens = name.startswith(("vitruvion", "sketchgen"))
        assert bool(row["tokens"]) == tokens == facts["exact"]
        assert bool(row["density"]) != tokens
        if tokens:
            assert float(row["tokens"]) == pytest.approx(per_sketch, rel=1e-4)
    assert not found["latent"]["paper_per_sketch"]
    assert found["sketchdnn"]["paper_per_sketch"] == "81.33"


def test_kept_reports_can_be_resumed() -> None:
    for name in ("reproduction", "switches"):
        kept = Path(__file__).parents[3] / "benchmarks/reports" / name
        protocol = json.loads((kept / MANIFEST).read_text())["protocol"]
        present = {**asdict(PLAN_SETTINGS), "sampler": SAMPLER, "steps": STEPS}
        assert all(value == present[key] for key, value in protocol.items() if key != "count")
        results = load_results(kept)
        assert len(results) == len(list(kept.glob("*/training.json"))) >= 8
        assert all_tables(results)[0].cell("sketchdnn", "fid") is not None
        assert {result.report["protocol"]["sampler"] for result in results} == {SAMPLER}
        for result in results:
            # The records have older names; read, they are the present settings.
            (variant,) = parse_systems([result.name])
            config = parse_train_config(result.training["training"], minutes=8.0)
            system = PlannedSystem(variant, config, result.training["parameters"], SAMPLER, ())
            settings = json.loads(json.dumps(training_settings(system)))
            assert all(settings[key] == result.training[key] for key in ("name", "system", "config", "training"))
            other = replace(system, training=replace(config, optimizer="muon"))
            assert training_settings(other)["training"] != result.training["training"]
            assert find_folder(kept, result.name) == result.folder


def test_tables_of_something_else_are_refused(parts: dict[str, str], folder: Path, tmp_path: Path) -> None:
    config = replace(PRESETS["ours"], fractions=(0.6, 0.1, 0.3))
    prepare([], tmp_path / "corpus", config, parts=Procedural(100, 5), workers=1)
    before = stamps(folder / "tables")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"budget": reproduction.Budget(steps=3)}, "another budget (2 steps, not 3 steps)"),
        ({"budget": reproduction.Budget(minutes=2)}, "another budget (2 steps, not 2 minutes)"),
        ({"seed": 1}, "another seed (0, not 1)"),
        ({"preset": None}, "another preset (tiny, not each system's own)"),
        ({"settings": replace(SETTINGS, count=10)}, "another protocol"),
        ({"data": tmp_path / "corpus"}, "another corpus"),
    ]
    for change, words in changes:
        with pytest.raises(SketchError, match=rf"{re.escape(words)}.* name another --out"):
            planned(make_request(folder, **change))
    assert stamps(folder / "tables") == before
    # Other settings of the same name are refused.
    shutil.copytree(folder / "tables", tmp_path / "tables", ignore=shutil.ignore_patterns("run"))
    record = tmp_path / "tables" / "latent" / "training.json"
    facts = json.loads(record.read_text())
    facts["config"]["kl_weight"] = 0.5
    record.write_text(json.dumps(facts))
    with pytest.raises(SketchError, match="was trained with another config"):
        run(make_request(folder, out=tmp_path / "tables", systems=["latent"]))
    record.write_text("{}")
    with pytest.raises(SketchError, match="latent"):
        run(make_request(folder, out=tmp_path / "tables", systems=["sketchdnn"]))


def test_stopped_training_continues(folder: Path) -> None:
    request = make_request(folder, "stopped", systems=["sketchdnn"], budget=reproduction.Budget(steps=60))
    with pytest.raises(reproduction.StoppedError, match=r"saved at step 50; the same command continues") as stopped:
        run(request, on_report=lambda report: signal.raise_signal(signal.SIGTERM))
    assert stopped.value.signal == signal.SIGTERM
    assert not (folder / "stopped" / "sketchdnn" / "training.json").exists()
    seen: list[int] = []
    run(request, on_report=lambda report: seen.append(report.step))
    assert (seen, rows(folder / "stopped" / "cost.csv")[0]["samples_seen"]) == ([60], str(60 * 64))
    # A budget below one step is refused.
    request = make_request(folder, "short", systems=["sketchdnn"], budget=reproduction.Budget(minutes=1e-9))
    with pytest.raises(SketchError, match="too small for one step of sketchdnn, which took"):
        run(request)


def test_finished_training_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = replace(make_request(folder, "cut", systems=["latent"]), cache=folder / "other cache")
    with monkeypatch.context() as patch:
        patch.setattr(FakeExtractor, "features", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(request)
    assert not (folder / "cut" / "reproduction.md").exists()
    assert planned(request).plan.systems[0].done == ("trained",)
    run(request, on_report=refuse_training)
    assert (folder / "cut" / "reproduction.md").exists()
