"""Counting ends that meet after repair, on sketches where the count is known, and a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.commands.app import app
from typer.testing import CliRunner

from benchmarks.repair import Ends, RepairBench, count_ends, measure_repair
from benchmarks.samples import drawn_sketches
from sketchdnn.constraints import RepairedSketch, repair
from sketchdnn.errors import SketchError
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Line, Sketch

# The corner at the origin has a gap, and so has the one at (0, 60); the last line ends on nothing.
GAPS = Sketch(
    (
        Line((0.3, 0), (80, 0)),
        Line((80, 0), (80, 60)),
        Line((80, 60), (0.2, 60)),
        Line((0, 60.1), (0, 0.2)),
        Line((30, 20), (50, 40)),
    )
)


def as_it_is(sketch: Sketch) -> RepairedSketch:
    return RepairedSketch(sketch, sources=tuple((i,) for i in range(len(sketch))))


def test_ends_of_a_sketch_that_was_left_alone() -> None:
    ends = count_ends(GAPS, as_it_is(GAPS))
    assert (ends.before, ends.exact_before) == (10, 4)
    assert (ends.after, ends.exact_after) == (10, 4)
    assert (ends.close, ends.close_exact, ends.close_gone) == (8, 4, 0)
    assert ends.share.value == 0.5


def test_ends_of_one_that_was_repaired() -> None:
    ends = count_ends(GAPS, repair(GAPS, close=False))
    assert (ends.close, ends.close_exact) == (8, 8)
    assert ends.share.value == 1


def test_ends_on_a_curve_count_and_a_double_does_not() -> None:
    on_circle = Sketch((Circle((0, 0), 50), Line((50.2, 0), (90, 0))))
    assert count_ends(on_circle, as_it_is(on_circle)).close == 1
    double = Sketch((Line((0, 0), (80, 0)), Line((0, 0.1), (80, 0.1))))
    merged = RepairedSketch(Sketch((Line((0, 0), (80, 0)),)), sources=((0, 1),))
    assert count_ends(double, as_it_is(double)).close == 4
    assert count_ends(double, merged).close == 0


def test_what_is_gone_is_no_miss() -> None:
    dropped = RepairedSketch(Sketch(GAPS.primitives[:3]), sources=((0,), (1,), (2,)))
    ends = count_ends(GAPS, dropped)
    assert (ends.close, ends.close_gone, ends.close_exact) == (8, 2, 4)


def test_a_whole_run(tmp_path: Path) -> None:
    write([GAPS, GAPS.moved(2.0)], tmp_path / "raw.jsonl")
    page = tmp_path / "repair.md"
    arguments = ["repair", "--count", "2", "--many", "3", "--samples", str(tmp_path / "raw.jsonl")]
    result = CliRunner().invoke(app, [*arguments, "--out", str(page)])
    assert result.exit_code == 0, result.output
    words = page.read_text()
    assert "python -m benchmarks repair --count 2 --many 3 --seed 0" in words
    assert "| snap | " in words
    assert words.count(": met") == 2
    assert str(tmp_path) not in words


def test_goals_can_be_missed() -> None:
    bench = measure_repair([GAPS], many=1)
    poor = RepairBench(
        **{name: getattr(bench, name) for name in RepairBench.__slots__}
        | {"ends": Ends(10, 0, 10, 0, 8, 7, 0), "displacements": (0.02,)}
    )
    assert all("missed" in sentence for sentence in poor.sentences())


def test_too_few_samples_is_a_sentence(tmp_path: Path) -> None:
    write([GAPS], tmp_path / "raw.jsonl")
    with pytest.raises(SketchError, match="holds 1"):
        drawn_sketches(2, samples=tmp_path / "raw.jsonl")
