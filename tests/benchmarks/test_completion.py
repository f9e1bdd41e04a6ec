"""Completion of held-out sketches: what is hidden, what counts as recovered, and the page with its goals."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from support.benchmarks import run_benchmark, write_page
from support.corpora import prepared_parts
from support.generation import randomized
from support.sketch_sets import square
from support.strategies import primitives

from benchmarks import completion, completion_cases
from benchmarks.completion_cases import Case
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, profile
from sketchdnn.systems import System, load_preset, save_pretrained

SIDES = tuple(square())
CASE = Case("open outline", Sketch(SIDES[:2]), SIDES[2:])


def plate(*holes: Circle) -> Sketch:
    """A plate of size 2 with holes."""
    corners = [(-1.0, -0.5), (1.0, -0.5), (1.0, 0.5), (-1.0, 0.5)]
    return Sketch((*(Line(corners[i - 1], corners[i]) for i in range(4)), *holes))


MIRRORED = plate(Circle((-0.5, 0), 0.2), Circle((0.5, 0), 0.2))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_parts(tmp_path_factory.mktemp("completion"))


@pytest.fixture(scope="module")
def system() -> System:
    torch.manual_seed(0)
    return randomized(load_preset("tiny").make().eval(), std=0.05)


def test_each_task_hides_what_it_says() -> None:
    cases = completion_cases.find_cases([MIRRORED] * 8, 8, seed=1)
    assert cases == completion_cases.find_cases([MIRRORED] * 8, 8, seed=1)
    assert [case.task for case in cases] == [task for task in completion_cases.TASKS for _ in range(2)]
    for case in cases:
        assert sorted(map(repr, (*case.part, *case.hidden))) == sorted(map(repr, MIRRORED))
        kinds = [type(p) for p in case.hidden]
        match case.task:
            case "open outline":
                assert set(kinds) == {Line}
                assert len(profile(case.part).chains) == 1
            case "inner features":
                assert kinds == [Circle, Circle]
            case "single feature":
                assert kinds == [Circle]
            case "symmetric half":
                assert kinds in ([Line, Circle], [Line])  # right of an upright axis, or above a level one
    only_one_hole = plate(Circle((0, 0), 0.2))
    assert "single feature" not in {case.task for case in completion_cases.find_cases([only_one_hole] * 8, 8)}
    with pytest.raises(SketchError, match="nothing to complete"):
        completion_cases.find_cases([Sketch(SIDES[:2])], 4)


def test_joints_of_the_originals_are_made_exact() -> None:
    rounded = replace(
        MIRRORED, primitives=(replace(MIRRORED.primitives[0], end=(-1 + 2e-6, -0.5)), *MIRRORED.primitives[1:])
    )
    (case,) = completion_cases.find_cases([rounded], 1)
    assert profile(Sketch((*case.part, *case.hidden)), 1e-12).is_extrudable
    mended = plate(Circle((0, 0), 0.2), Circle((0.9, 0), 0.2))  # a hole across the outline cannot be extruded
    with pytest.raises(SketchError, match="nothing to complete"):
        completion_cases.find_cases([mended], 1)


def test_held_out_sketches_come_from_a_corpus_or_a_file(corpus: Path, tmp_path: Path) -> None:
    some = list(completion_cases.held_out_sketches(corpus, (8, 16)))
    assert some
    assert some == list(completion_cases.held_out_sketches(corpus, (8, 16)))
    assert some != list(completion_cases.held_out_sketches(corpus, (8, 16), seed=1))
    holes = [{"type": "circle", "center": [3 * i, 0], "radius": 1} for i in range(17)]
    lines = [json.dumps({"primitives": holes, "group": f"document {number}"}) for number in range(60)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    large = list(completion_cases.held_out_sketches(tmp_path / "many.jsonl", (17, 32)))
    assert 0 < len(large) < 30  # those of the test split
    assert {len(sketch) for sketch in large} == {17}
    assert max(circle.center[0] for circle in large[0] if isinstance(circle, Circle)) < 1
    assert not list(completion_cases.held_out_sketches(tmp_path / "many.jsonl", (18, 32)))


def test_first_and_best_suggestions_are_scored() -> None:
    right = Sketch(SIDES)
    wrong = Sketch((*SIDES[:2], Line((0, 0), (0.5, 0.5))))
    moved = Sketch((replace(SIDES[0], start=(0, 0)), *SIDES[1:]))
    crossing = Sketch((*SIDES, Line((-2, 0), (2, 0))))
    assert [completion.meets_part(2, sketch) for sketch in (right, wrong, crossing)] == [False, False, True]
    suggestions = [
        completion.Suggestions(CASE, (wrong, right), 0.1, completion.BOTH, ("model", "geometry")),
        completion.Suggestions(CASE, (crossing, moved), 0.1),
        completion.Suggestions(CASE, (), 0.1),
    ]
    score = completion.score_suggestions("all", suggestions, count=2)
    assert (score.first.value, score.any.value) == (0, pytest.approx(1 / 3))
    assert score.crossings.value == 0.25
    assert (score.recovered.value, score.recovered_best.value) == (pytest.approx(2 / 6), pytest.approx(4 / 6))
    assert score.distinct.value == pytest.approx(4 / 3)
    assert score.unchanged.value == 0.75
    assert score.pads is None
    nothing = completion.score_suggestions("all", [completion.Suggestions(CASE, (), 0.1)] * 2)
    assert (nothing.first.value, nothing.crossings.value, nothing.unchanged.value) == (0, 0, 1)
    assert (score.source, score.from_model.value) == (completion.BOTH, pytest.approx(1 / 3))


def test_pads_are_one_solid_and_extrusions_may_be_several(freecadcmd: str) -> None:
    islands = Case("open outline", Sketch((*SIDES[:3], Circle((5, 5), 1))), SIDES[3:])
    whole = Sketch((*islands.part, *islands.hidden))
    suggestions = [
        completion.Suggestions(islands, (whole,), 0.1),
        completion.Suggestions(CASE, (Sketch(SIDES),), 0.1),
        completion.Suggestions(CASE, (), 0.1),
    ]
    score = completion.score_suggestions("all", suggestions, program=freecadcmd)
    assert score.first.value == pytest.approx(2 / 3)
    for estimate, share in ((score.pads, 1 / 3), (score.extrudes, 2 / 3), (score.originals_pad, 2 / 3)):
        assert estimate is not None
        assert estimate.value == pytest.approx(share)


def test_samples_are_cached_and_belong_to_their_settings(corpus: Path, system: System, tmp_path: Path) -> None:
    cache = tmp_path / "samples.safetensors"
    cases = completion_cases.find_cases(completion_cases.held_out_sketches(corpus, (3, 16)), 4)
    task = completion.CompletionTask(tuple(cases), count=2, steps=2)
    result = completion.score_completions(system, task, (3, 16), cache=cache)
    assert [(score.task, score.source) for score in result.scores][-3:] == [
        ("all", source) for source in completion.SOURCES
    ]
    origins = {each.source: {*each.origins} for each in result.suggestions if each.origins}
    assert origins.get(completion.GEOMETRY, {"geometry"}) == {"geometry"}
    assert origins.get(completion.MODEL, {"model"}) == {"model"}
    assert result.scores[-1].parts == len(cases)
    assert all(score.unchanged.value == 1 for score in result.scores)
    again = completion.score_completions(system, task, (3, 16), cache=cache)
    assert [each.sketches for each in again.suggestions] == [each.sketches for each in result.suggestions]
    other = copy.deepcopy(system)
    with torch.no_grad():
        next(other.parameters()).add_(1e-3)
    for another_system, another_task in ((system, replace(task, steps=4)), (other, task)):
        with pytest.raises(SketchError, match="other settings"):
            completion.sample_completions(another_system, another_task, cache)


def test_command_writes_page_or_samples_only(corpus: Path, system: System, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "model")
    arguments = ["completion", "--data", corpus, "--model", tmp_path / "model", "--parts", 4, "--steps", 2]
    arguments += ["--primitives", "3..16", "--count", 1]
    page = write_page(tmp_path / "page.md", *arguments)
    assert all(words in page for words in ("| task |", "of 3 to 16 primitives", "goal at least 90%"))
    arguments += ["--sample-only"]
    assert "--cache" in str(run_benchmark(*arguments).exception)
    result = run_benchmark(*arguments, "--cache", tmp_path / "samples.safetensors")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "samples.safetensors").is_file()


@given(primitives, primitives)
def test_primitive_distance_is_symmetric_and_zero_to_itself(a: Primitive, b: Primitive) -> None:
    assert completion_cases.primitive_distance(a, a) == 0
    assert completion_cases.primitive_distance(a, b) == completion_cases.primitive_distance(b, a)


def test_each_added_primitive_recovers_at_most_one() -> None:
    distance = completion_cases.primitive_distance
    assert distance(Line((0, 0), (1, 0)), Line((1, 0), (0, 0.01))) == pytest.approx(0.01)
    assert distance(Arc((0, 0), 1, 0, math.pi), Arc((0, 0), 1, math.pi, math.pi)) >= 2
    near, far = 0.9 * completion_cases.RECOVERY_TOLERANCE, 1.1 * completion_cases.RECOVERY_TOLERANCE
    circle, point = Circle((0, 0), 1), Point((3, 3))
    cases: list[tuple[list[Primitive], int]] = [
        ([], 0), ([circle], 1), ([circle, circle], 1), ([replace(circle, construction=True)], 0),
        ([Circle((0, near), 1), point], 2), ([Circle((0, far), 1), point], 1), ([Arc((0, 0), 1, 0, 6.2)], 0),
    ]  # fmt: skip
    for added, count in cases:
        assert completion_cases.count_recovered([circle, point], added) == count
    # A greedy choice for the first hidden circle would leave nothing for the second.
    hidden = [Circle((0, 0), 1), Circle((0.08, 0), 1)]
    assert completion_cases.count_recovered(hidden, [Circle((0.04, 0), 1), Circle((-0.04, 0), 1)]) == 2
