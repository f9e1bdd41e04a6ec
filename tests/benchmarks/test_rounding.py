"""The benchmark of rounding: what counts as round, and its page."""

from pathlib import Path

from support.benchmarks import write_page
from support.corpora import prepared_parts
from support.outlines import rectangle

from benchmarks.rounding import measure_rounding, visible_lengths
from sketchdnn.geometry import Circle, Line, Sketch


def test_visible_lengths_are_radii_level_lines_and_coordinates() -> None:
    sketch = Sketch((Circle((1, 2), 3), Line((0, 0), (3, 4)), Line((5, 6), (5, 8))))
    assert visible_lengths(sketch) == [3, 1, 2, 0, 0, 3, 4, 2, 5, 6, 5, 8]
    assert visible_lengths(Sketch(tuple(rectangle(0, 0, 4, 3)[:1]))) == [4, 0, 0, 4, 0]


def test_real_parts_become_round_and_the_page_says_so(tmp_path: Path, freecadcmd: str) -> None:
    corpus = prepared_parts(tmp_path)
    result = measure_rounding(corpus, count=6, freecad=0, seed=1)
    preferred, rounded, total = result.dimensions
    before, after, visible = result.visible
    assert result.full == result.count == result.holds == result.same_profile == 6
    assert 0 < preferred <= rounded == total
    assert before < 0.2 * visible
    assert after > 0.6 * visible
    assert max(result.moves) <= 0.02
    assert all(same > 0.5 * number > 0 for same, number in result.recovered.values())
    assert measure_rounding(corpus, count=6, freecad=0, seed=1).visible == result.visible
    assert freecadcmd
    page = write_page(tmp_path / "page.md", "rounding", "--data", corpus, "--count", 3, "--freecad", 2)
    assert "python -m benchmarks rounding --data corpus --count 3 --noise 0.002 --freecad 2 --seed 0\n" in page
    assert "| in FreeCAD: `solve()` returns 0 |  | 2 |" in page
    assert str(tmp_path) not in page
