"""The figures of sketches: teaser, comparison, failures. What they find is tested; how they look is looked at."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from benchmarks.figures.failures import crossings, drawn_twice, open_ends

from benchmarks.figures import (
    Source,
    find_failures,
    random_sample,
    write_comparison_figure,
    write_failures,
    write_teaser,
)
from benchmarks.figures.sketches import panel_of_square
from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch
from sketchdnn.render.figures import panel_of_sketch, polyline

CORNERS = [(-1.0, -0.5), (1.0, -0.5), (1.0, 0.5), (-1.0, 0.5)]
PLATE = [Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True)]


@pytest.fixture(scope="module")
def parts() -> list[Sketch]:
    return [procedural(3, i) for i in range(10)]


def pictures(paths: list[Path]) -> list[bytes]:
    assert [path.suffix for path in paths] == [".png", ".svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(paths[1]).getroot().tag.endswith("svg")
    return [path.read_bytes() for path in paths]


def test_figures_are_drawn_the_same_every_time(parts: list[Sketch], tmp_path: Path) -> None:
    sources = [Source("data", parts[:5]), Source("a system", parts[5:])]
    for write in (
        lambda folder: write_teaser(folder, parts, columns=4),
        lambda folder: write_comparison_figure(folder, sources, columns=3),
        lambda folder: write_failures(folder, find_failures(parts, each=2)),
    ):
        assert pictures(write(tmp_path / "a")) == pictures(write(tmp_path / "b"))


def test_a_panel_keeps_proportions_and_its_sketch_inside(parts: list[Sketch]) -> None:
    for sketch in parts:
        panel = panel_of_sketch(sketch, 100, 200, 50)
        places = [place for primitive in sketch for place in polyline(primitive, panel)]
        assert all(abs(x - 100) < 25 and abs(y - 200) < 25 for x, y in places)
        assert max(max(abs(x - 100), abs(y - 200)) for x, y in places) > 18
    assert panel_of_square(0, 0, 30, 1.5).to_sheet((1.5, -1.5)) == pytest.approx((15, -15))  # y runs up


def test_a_good_sketch_has_no_fault() -> None:
    axis = Line((-1.2, 0), (1.2, 0), construction=True)  # may end anywhere, and cross what it likes
    rib = Line((0, -0.5), (0, 0.5))  # ends on other curves
    for good in (PLATE, [*PLATE, axis], [*PLATE, rib], [*PLATE, Circle((0, 0), 0.2), Point((0, 0))]):
        sketch = Sketch(tuple(good))
        assert open_ends(0, sketch) is None
        assert drawn_twice(0, sketch) is None
        assert crossings(0, sketch) is None


def test_open_ends_are_found_where_they_are() -> None:
    short = [*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.38))]
    case = open_ends(7, Sketch(tuple(short)))
    assert case is not None
    assert case.number == 7
    assert sorted(case.places) == [(-1.0, -0.5), (-1.0, -0.38)]
    assert case.score == (2, pytest.approx(0.12))
    assert case.caption == "2 of 8 ends open\nwidest gap 0.12"
    nearly = [*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.49))]
    assert open_ends(0, Sketch(tuple(nearly))) is None
    alone = open_ends(0, Sketch((Arc((0, 0), 1, 0, 1),)))
    assert alone is not None
    assert "nothing else" in alone.caption


def test_what_is_drawn_twice_is_measured() -> None:
    case = drawn_twice(0, Sketch((*PLATE, Line((-0.5, -0.5), (0.7, -0.5)))))
    assert case is not None
    assert case.pairs == ((0, 4),)
    assert case.score == (pytest.approx(1.2),)
    assert "1 pair" in case.caption


def test_crossings_are_counted() -> None:
    case = crossings(0, Sketch((*PLATE, Line((-1.3, 0), (1.3, 0)))))
    assert case is not None
    assert sorted(case.places) == [(pytest.approx(-1), pytest.approx(0)), (pytest.approx(1), pytest.approx(0))]
    assert case.caption == "2 crossings"


def test_the_worst_come_first_and_only_what_fails_is_shown() -> None:
    def gap(size: float) -> Sketch:
        return Sketch((*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.5 + size))))

    found = find_failures([gap(0.1), Sketch(tuple(PLATE)), gap(0.4), gap(0.2)], each=2)
    gaps, twice, crossed = found.modes
    assert (found.sketches, gaps.found) == (4, 3)
    assert [case.number for case in gaps.worst] == [2, 3]
    assert (twice.found, crossed.found, twice.worst, crossed.worst) == (0, 0, (), ())


def test_size_and_place_do_not_matter(parts: list[Sketch]) -> None:
    moved = [sketch.moved(25.0, (100.0, -30.0)) for sketch in parts]
    for a, b in zip(find_failures(parts).modes, find_failures(moved).modes, strict=True):
        assert [case.caption for case in a.worst] == [case.caption for case in b.worst]


def test_lots_are_drawn_alike_from_one_seed(parts: list[Sketch]) -> None:
    first, again, other = (random_sample(range(1000), 20, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 20
    assert random_sample(parts, 50, 0) == parts


def test_figures_of_nothing_are_refused(tmp_path: Path) -> None:
    for nothing in (
        lambda: write_teaser(tmp_path, []),
        lambda: find_failures([]),
        lambda: write_comparison_figure(tmp_path, [Source("a", [Sketch(tuple(PLATE))])]),
        lambda: write_comparison_figure(tmp_path, [Source("a", []), Source("b", [])]),
    ):
        with pytest.raises(SketchError):
            nothing()
    assert not list(tmp_path.iterdir())
