"""Repair, and conditions that generated sketches meet."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.benchmarks import write_page
from support.small_systems import small_system

import sketchdnn
from benchmarks.conditions import measure_conditions
from benchmarks.repair import EndCounts, count_ends, measure_repair
from benchmarks.repair_speed import compare_versions
from benchmarks.samples import raw_sketches
from sketchdnn.constraints import RepairedSketch, repair
from sketchdnn.errors import SketchError
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Line, Sketch

# There are gaps at the origin and at (0, 60); the last line has open ends.
ENDS = [((0.3, 0), (80, 0)), ((80, 0), (80, 60)), ((80, 60), (0.2, 60)), ((0, 60.1), (0, 0.2)), ((30, 20), (50, 40))]
GAPS = Sketch(tuple(Line(*ends) for ends in ENDS))


def unrepaired(sketch: Sketch) -> RepairedSketch:
    return RepairedSketch(sketch, sources=tuple((i,) for i in range(len(sketch))))


def test_ends_before_and_after_repair() -> None:
    ends = count_ends(GAPS, unrepaired(GAPS))
    assert (ends.before, ends.exact_before) == (ends.after, ends.exact_after) == (10, 4)
    assert (ends.close, ends.close_exact, ends.close_gone, ends.share.value) == (8, 4, 0, 0.5)
    ends = count_ends(GAPS, repair(GAPS, close=False))
    assert (ends.close, ends.close_exact, ends.share.value) == (8, 8, 1)
    dropped = RepairedSketch(Sketch(GAPS.primitives[:3]), sources=((0,), (1,), (2,)))
    ends = count_ends(GAPS, dropped)
    assert (ends.close, ends.close_gone, ends.close_exact) == (8, 2, 4)
    # Merged primitives are not others.
    on_circle = Sketch((Circle((0, 0), 50), Line((50.2, 0), (90, 0))))
    assert count_ends(on_circle, unrepaired(on_circle)).close == 1
    double = Sketch((Line((0, 0), (80, 0)), Line((0, 0.1), (80, 0.1))))
    merged = RepairedSketch(Sketch(double.primitives[:1]), sources=((0, 1),))
    assert [count_ends(double, repaired).close for repaired in (unrepaired(double), merged)] == [4, 0]


def test_page_goals_and_too_few_samples(tmp_path: Path) -> None:
    write([GAPS, GAPS.moved(2.0)], tmp_path / "raw.jsonl")
    arguments = ["repair", "--count", 2, "--throughput-count", 3, "--samples", tmp_path / "raw.jsonl"]
    page = write_page(tmp_path / "page.md", *arguments)
    assert "python -m benchmarks repair --count 2 --throughput-count 3 --seed 0\n" in page
    assert "| snap | " in page
    assert page.count(": met") == 2
    assert str(tmp_path) not in page
    assert all(f"| {stage} | " in page for stage in ("inference", "solution", "all else", "sum"))
    result = measure_repair([GAPS], throughput_count=1)
    poor = replace(result, ends=EndCounts(10, 0, 10, 0, 8, 7, 0), displacements=(0.02,))
    assert all("missed" in sentence for sentence in poor.sentences())
    with pytest.raises(SketchError, match="holds 2"):
        raw_sketches(3, samples=tmp_path / "raw.jsonl")


def test_two_versions_repair_in_turns(tmp_path: Path) -> None:
    source = Path(sketchdnn.__file__).parents[1]
    comparison = compare_versions([GAPS, GAPS.moved(2.0), GAPS.moved(3.0)], source)
    assert (comparison.count, comparison.num_equal) == (3, 3)
    assert comparison.here > 0 < comparison.there
    assert "3 are equal to the bit" in comparison.sentence()
    with pytest.raises(SketchError, match="holds no other version"):
        compare_versions([GAPS], tmp_path)


def test_given_primitives_are_kept_by_an_untrained_model() -> None:
    result = measure_conditions(small_system(), 18, steps=4)
    scores = {score.name: score for score in result.scores}
    assert all(score.requests == 18 for score in result.scores)
    assert all(score.first <= score.met <= score.requests for score in result.scores)
    assert scores["given primitives unchanged"].met == 18
    # With given kinds, only circles without a radius miss; numbers of rows are not learned.
    assert scores["number of each kind"].met > scores["number of each kind"].first > 0
    assert scores["number of primitives"].attempts > 1
    page = result.markdown("python -m benchmarks conditions")
    assert page.count("100.0 %") >= 2
    assert all(words in page for words in ("`python -m benchmarks conditions`", "4 restart steps"))
    # Without a training index too.
    result = measure_conditions(small_system(knows=False), 4, steps=3)
    assert {score.name for score in result.scores} >= {"number of each kind", "closed profile"}
    with pytest.raises(SketchError, match="at least one"):
        measure_conditions(small_system(), 0)
