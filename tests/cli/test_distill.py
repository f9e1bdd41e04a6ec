"""`sketchdnn distill` as a person runs it: distilled, resumed, refused, and sampled in four steps."""

import csv
import json
from pathlib import Path

import pytest
from support.commands import refused, run
from support.corpora import parts, written
from support.students import small_teacher

from sketchdnn.data import PrepareConfig, prepare
from sketchdnn.systems import save_pretrained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distill")
    prepare([written(parts(40), folder / "parts.jsonl")], folder / "corpus", PrepareConfig(), workers=1)
    save_pretrained(small_teacher(width=16, num_steps=60), folder / "teacher")
    return folder


@pytest.mark.parametrize("method", ["flow_map", "moment_matching"])
def test_a_model_is_distilled_and_samples_in_four_steps(folder: Path, method: str) -> None:
    out = folder / method
    options = ["--model", folder / "teacher", "--data", folder / "corpus", "--out", out, "--method", method]
    options += ["--batch-size", 4, "--device", "cpu", "--log-every", 1, "--adapter-rank", 2, "--student-steps", "2,4"]
    options += ["--validate-every", 2, "--set", "distill.teacher_steps=2", "--set", "training.conditioning=0.5"]
    assert "trained 2 steps" in run("distill", *options, "--steps", 2).output
    assert "trained 3 steps" in run("distill", *options, "--steps", 3, "--resume", "--eight-bit").output
    with (out / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert (float(rows[0]["critic"]) > 0) == (method == "moment_matching")
    assert "joined_4" in (out / "validation.csv").read_text()
    run("generate", "--model", out / "model", "--out", out / "few", "--count", 2, "--steps", 4, "--device", "cpu")
    assert json.loads((out / "few" / "manifest.json").read_text())["sampler"] == "few_step"


def test_wrong_settings_are_refused_with_a_sentence(folder: Path) -> None:
    options = ["distill", "--model", folder / "teacher", "--data", folder / "corpus", "--device", "cpu", "--out"]
    assert "method must be one of" in refused(*options, folder / "new", "--method", "magic")
    assert "numbers such as 4,8" in refused(*options, folder / "new", "--student-steps", "four")
    assert "the corpus is there" in refused(*options, folder / "corpus")
