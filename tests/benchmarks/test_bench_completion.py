"""The measuring of completion: what is hidden, what counts as found, and a page with its figure."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.commands.app import app
from support.corpora import parts, written
from typer.testing import CliRunner

from benchmarks.completion import (
    ADDED,
    GIVEN,
    HIDDEN,
    Case,
    CompletionBench,
    closes,
    completion_figure,
    draw_completions,
    half_hidden,
    judge_completions,
    judged,
    plan_completion,
)
from sketchdnn.data import PRESETS, prepare
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import share_estimate
from sketchdnn.generation.inpainting import CompletedPart
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.systems import System, load_preset, save_pretrained

CORNERS = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
SIDES = tuple(Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    prepare([written(parts(150), folder / "parts.jsonl")], folder / "out", PRESETS["ours"], workers=1)
    return folder / "out"


@pytest.fixture(scope="module")
def system() -> System:
    torch.manual_seed(0)
    system = load_preset("tiny").make().eval()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    return system


def test_half_of_each_sketch_is_hidden(corpus: Path) -> None:
    test = Dataset.open(corpus).split("test").compact
    cases, mark = half_hidden(test, 4, seed=1)
    again, same = half_hidden(test, 4, seed=1)
    other, _ = half_hidden(test, 4, seed=2)
    assert (cases, mark) == (again, same)
    assert cases != other
    for case in cases:
        assert 0 <= len(case.part) - len(case.hidden) <= 1
        assert len(case.truth) in test.counts
    with pytest.raises(SketchError, match="the test split has"):
        half_hidden(test, len(test) + 1, seed=0)


def test_scores_say_what_the_best_does() -> None:
    case = Case(Sketch(SIDES[:2]), SIDES[2:])
    right = CompletedPart(Sketch(SIDES), 2, 0.0)
    wrong = CompletedPart(Sketch((*SIDES[:2], Line((0, 0), (0.5, 0.5)))), 1, 0.0)
    moved = CompletedPart(Sketch((replace(SIDES[0], start=(0, 0)), *SIDES[1:])), 2, 0.5)
    score = judged("conditional", "known", [case, case], [[wrong, right], [wrong, moved]])
    assert score.closes.value == 0.5
    assert score.closes_once.value == 0
    assert score.recovers.value == 0.5  # of four hidden sides, the two of the first case
    assert score.recovers_once.value == 0
    assert score.unchanged.value == 0.75
    assert closes(Sketch(SIDES))
    assert not closes(Sketch(SIDES[:3]))


def test_all_four_are_measured_and_kept(corpus: Path, system: System, tmp_path: Path) -> None:
    kept = tmp_path / "draws.safetensors"
    task = plan_completion(corpus, sketches=3, best_of=2, steps=3)
    drawn, seconds = draw_completions(system, task, kept)
    bench = judge_completions(task, drawn, seconds, system)
    assert [(score.method, score.frame) for score in bench.scores] == [
        ("conditional", "known"),
        ("conditional", "unknown"),
        ("repaint", "known"),
        ("repaint", "unknown"),
    ]
    assert all(score.unchanged.value == 1 for score in bench.scores)
    assert seconds is not None
    again, none = draw_completions(system, task, kept)
    assert none is None
    assert judge_completions(task, again, none, system).scores == bench.scores
    with pytest.raises(SketchError, match="drawn for something else"):
        draw_completions(system, replace(task, steps=4), kept)
    assert "3\nclosing steps" in bench.markdown("python -m benchmarks completion", "completion.png")
    other = copy.deepcopy(system)
    with torch.no_grad():
        next(other.parameters()).add_(1e-3)
    with pytest.raises(SketchError, match="drawn for something else"):
        draw_completions(other, task, kept)


def test_the_figure_shows_what_was_given_added_and_hidden() -> None:
    case = Case(Sketch(SIDES[:2]), SIDES[2:])
    score = judged("conditional", "known", [case], [[CompletedPart(Sketch((*SIDES[:2], Circle((0, 0), 0.5))), 1, 0.0)]])
    some = share_estimate(1, 2)
    picture = np.asarray(
        completion_figure(CompletionBench((case,), 1, "ancestral", 5, 1.0, some, some, (score,))), np.int64
    )
    above, below = picture[: len(picture) // 2], picture[len(picture) // 2 :]
    assert [shows(above, color) for color in (GIVEN, ADDED, HIDDEN)] == [True, False, True]
    assert [shows(below, color) for color in (GIVEN, ADDED, HIDDEN)] == [True, True, True]


def shows(picture: np.ndarray, color: str) -> bool:
    """Whether the color is there, a little paler perhaps at the edges of thin strokes."""
    wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return bool((np.abs(picture - wanted).max(axis=-1) <= 12).any())


def test_the_command_writes_a_page_and_its_figure(corpus: Path, system: System, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "model")
    out = tmp_path / "completion.md"
    arguments = ["completion", "--data", str(corpus), "--model", str(tmp_path / "model"), "--out", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--sketches", "2", "--best-of", "2", "--steps", "2"])
    assert result.exit_code == 0, result.exception
    page = out.read_text()
    assert "| repaint | unknown |" in page
    assert "(completion.png)" in page
    assert (tmp_path / "completion.png").is_file()


def test_drawing_alone_needs_a_file_and_keeps_it(corpus: Path, system: System, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "model")
    arguments = ["completion", "--data", str(corpus), "--model", str(tmp_path / "model"), "--only-draw"]
    arguments += ["--sketches", "2", "--best-of", "1", "--steps", "2"]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, SketchError)
    assert "--draws" in str(result.exception)
    result = CliRunner().invoke(app, [*arguments, "--draws", str(tmp_path / "draws.safetensors")])
    assert result.exit_code == 0, result.exception
    assert result.stdout == ""
    assert (tmp_path / "draws.safetensors").is_file()
