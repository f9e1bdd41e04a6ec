"""Completion of half-hidden sketches: what is hidden, what counts as recovered, and the page with its figure."""

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from support.benchmarks import run_benchmark, write_page
from support.corpora import prepared_parts
from support.generation import randomized
from support.sketch_sets import square
from support.strategies import primitives

from benchmarks import completion
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import share_estimate
from sketchdnn.generation.complete import CompletedPart
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch
from sketchdnn.systems import System, load_preset, save_pretrained

SIDES = tuple(square())
CASE = completion.Case(Sketch(SIDES[:2]), SIDES[2:])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_parts(tmp_path_factory.mktemp("completion"))


@pytest.fixture(scope="module")
def system() -> System:
    torch.manual_seed(0)
    return randomized(load_preset("tiny").make().eval(), std=0.05)


def test_half_of_each_sketch_is_hidden(corpus: Path) -> None:
    test = Dataset.open(corpus).split("test").compact
    cases, cases_hash = completion.hide_halves(test, 4, seed=1)
    assert (cases, cases_hash) == completion.hide_halves(test, 4, seed=1)
    assert cases != completion.hide_halves(test, 4, seed=2)[0]
    assert all(0 <= len(case.part) - len(case.hidden) <= 1 for case in cases)
    assert all(len(case.original) in test.counts for case in cases)
    with pytest.raises(SketchError, match="the test split has"):
        completion.hide_halves(test, len(test) + 1, seed=0)


def test_best_and_first_completion_are_scored() -> None:
    right = CompletedPart(Sketch(SIDES), 2, 0.0)
    wrong = CompletedPart(Sketch((*SIDES[:2], Line((0, 0), (0.5, 0.5)))), 1, 0.0)
    moved = CompletedPart(Sketch((replace(SIDES[0], start=(0, 0)), *SIDES[1:])), 2, 0.5)
    score = completion.score_method("conditional", "known", [CASE, CASE], [[wrong, right], [wrong, moved]])
    assert (score.closes.value, score.closes_once.value) == (0.5, 0)
    assert (score.recovers.value, score.recovers_once.value) == (0.5, 0)  # of four hidden sides, two of the first case
    assert score.unchanged.value == 0.75
    assert [completion.closes(Sketch(sides)) for sides in (SIDES, SIDES[:3])] == [True, False]
    # The figure shows given, added and hidden primitives.
    completed = CompletedPart(Sketch((*SIDES[:2], Circle((0, 0), 0.5))), 1, 0.0)
    score = completion.score_method("conditional", "known", [CASE], [[completed]])
    half = share_estimate(1, 2)
    benchmark = completion.CompletionBenchmark((CASE,), 1, "ancestral", 5, 1.0, half, half, (score,))
    picture = np.asarray(completion.completion_figure(benchmark), np.int64)

    def shows(part: np.ndarray, color: str) -> bool:
        rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        return bool((np.abs(part - rgb).max(axis=-1) <= 12).any())

    above, below = np.split(picture[: len(picture) // 2 * 2], 2)
    colors = (completion.GIVEN_COLOR, completion.ADDED_COLOR, completion.HIDDEN_COLOR)
    assert [shows(above, color) for color in colors] == [True, False, True]
    assert [shows(below, color) for color in colors] == [True, True, True]


def test_all_methods_and_frames_are_sampled_and_cached(corpus: Path, system: System, tmp_path: Path) -> None:
    cache = tmp_path / "samples.safetensors"
    task = completion.plan_completion(corpus, sketches=3, best_of=2, steps=3)
    samples, seconds = completion.sample_completions(system, task, cache)
    result = completion.score_completions(task, samples, seconds, system)
    expected = [(method, frame) for method in ("conditional", "repaint") for frame in ("known", "unknown")]
    assert [(score.method, score.frame) for score in result.scores] == expected
    assert all(score.unchanged.value == 1 for score in result.scores)
    again, none = completion.sample_completions(system, task, cache)
    assert seconds is not none is None
    assert completion.score_completions(task, again, none, system).scores == result.scores
    assert "3\nrestart steps" in result.markdown("")
    other = copy.deepcopy(system)
    with torch.no_grad():
        next(other.parameters()).add_(1e-3)
    for another_system, another_task in ((system, replace(task, steps=4)), (other, task)):
        with pytest.raises(SketchError, match="other settings"):
            completion.sample_completions(another_system, another_task, cache)


def test_command_writes_page_and_figure_or_samples_only(corpus: Path, system: System, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "model")
    arguments = ["completion", "--data", corpus, "--model", tmp_path / "model", "--sketches", 2, "--steps", 2]
    page = write_page(tmp_path / "page.md", *arguments, "--best-of", 2)
    assert all(words in page for words in ("| repaint | unknown |", "(page.png)"))
    assert (tmp_path / "page.png").is_file()
    arguments += ["--best-of", 1, "--sample-only"]
    assert "--cache" in str(run_benchmark(*arguments).exception)
    result = run_benchmark(*arguments, "--cache", tmp_path / "samples.safetensors")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "samples.safetensors").is_file()


@given(primitives, primitives)
def test_primitive_distance_is_symmetric_and_zero_to_itself(a: Primitive, b: Primitive) -> None:
    assert completion.primitive_distance(a, a) == 0
    assert completion.primitive_distance(a, b) == completion.primitive_distance(b, a)


def test_each_added_primitive_recovers_at_most_one() -> None:
    assert completion.primitive_distance(Line((0, 0), (1, 0)), Line((1, 0), (0, 0.01))) == pytest.approx(0.01)
    assert completion.primitive_distance(Arc((0, 0), 1, 0, math.pi), Arc((0, 0), 1, math.pi, math.pi)) >= 2
    near, far = 0.9 * completion.RECOVERY_TOLERANCE, 1.1 * completion.RECOVERY_TOLERANCE
    circle, point = Circle((0, 0), 1), Point((3, 3))
    cases: list[tuple[list[Primitive], int]] = [
        ([], 0), ([circle], 1), ([circle, circle], 1), ([replace(circle, construction=True)], 0),
        ([Circle((0, near), 1), point], 2), ([Circle((0, far), 1), point], 1), ([Arc((0, 0), 1, 0, 6.2)], 0),
    ]  # fmt: skip
    for added, count in cases:
        assert completion.count_recovered([circle, point], added) == count
    # A greedy choice for the first hidden circle would leave nothing for the second.
    hidden = [Circle((0, 0), 1), Circle((0.08, 0), 1)]
    assert completion.count_recovered(hidden, [Circle((0.04, 0), 1), Circle((-0.04, 0), 1)]) == 2
