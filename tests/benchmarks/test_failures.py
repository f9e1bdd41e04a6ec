"""Failure cases: their shares on sketches with known failures, a whole run, and the figure of the worst."""

from pathlib import Path

import pytest
import torch
from support.benchmarks import run_benchmark, write_page
from support.corpora import prepared_parts
from support.generation import randomized
from support.sketch_sets import polygon, square

from benchmarks import failures
from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, normalize
from sketchdnn.representation import encode
from sketchdnn.systems import System, load_preset, save_pretrained

SQUARE = tuple(square())
SCATTERED = (Line((-1, -1), (0.2, 0.1)), Line((0.5, -0.3), (1, 0.7)), Circle((-0.6, 0.5), 0.2))
PLATE = polygon((-1, -0.5), (1, -0.5), (1, 0.5), (-1, 0.5))


@pytest.fixture(scope="module")
def system() -> System:
    torch.manual_seed(0)
    return randomized(load_preset("tiny").make().eval(), std=0.05)


def test_each_failure_is_counted() -> None:
    cases: list[tuple[tuple[Primitive, ...], tuple[int, int, int]]] = [
        (SQUARE, (0, 0, 0)),
        (SQUARE[:3], (0, 1, 0)),
        ((*SQUARE, Line((-0.5, 1), (0.5, 1))), (0, 1, 1)),  # its ends meet no other end
        ((*SQUARE, Circle((0, 0), 0.5), Circle((0, 0), 0.504)), (0, 0, 1)),
        (SCATTERED, (1, 1, 0)),
        ((Line((-1, 0), (-0.5, 0)), Line((0.5, 0), (1, 0))), (0, 1, 0)),  # mirror symmetry is a pattern
        ((Circle((0, 0), 1), Circle((0.3, 0.2), 0.1)), (1, 0, 0)),
    ]
    for primitives, expected in cases:
        shares = failures.failure_shares("", encode([normalize(Sketch(primitives))[0]]), 1)
        assert (shares.no_pattern.value, shares.gap.value, shares.overlap.value) == expected, primitives
    # Turned sketches are not distinct.
    turned = tuple(Line((-line.start[1], line.start[0]), (-line.end[1], line.end[0])) for line in SCATTERED[:2])
    compact = encode([normalize(Sketch(items))[0] for items in (SQUARE, SQUARE, SCATTERED[:2], turned)])
    shares = failures.failure_shares("these", compact, 5)
    assert (shares.sketches, shares.empty, shares.distinct) == (4, 1, 2)
    assert (shares.shares["line"], shares.no_pattern.value) == (1, 0.5)


def test_every_weight_is_sampled_cached_and_counted_and_the_page_written(system: System, tmp_path: Path) -> None:
    cache = tmp_path / "samples.safetensors"
    samples, seconds = failures.sample_for_failures(system, count=6, steps=3, weights=(1.0, 2.0), cache=cache)
    result = failures.count_failures(samples, seconds, 3, system, prepared_parts(tmp_path))
    names = [failures.OURS, failures.REPAIRED, "authors', weight 1", "authors', weight 2", failures.REAL]
    assert ([shares.name for shares in result.sets], result.count) == (names, 6)
    assert result.sets[-1].gap.value < 1
    again, none = failures.sample_for_failures(system, count=6, steps=3, weights=(1.0, 2.0), cache=cache)
    assert seconds is not none is None
    assert failures.count_failures(again, none, 3, system).sets == result.sets[:-1]
    save_pretrained(system, tmp_path / "model")
    arguments = ["failures", "--count", 6, "--steps", 2, "--model", tmp_path / "model", "--weight", 1.5]
    page = write_page(tmp_path / "page.md", *arguments)
    for words in ("--count 6 --steps 2 --weight 1.5", "| authors', weight 1.5 |", "- **ours**: the sampler `restart`"):
        assert words in page
    with pytest.raises(SketchError, match="steps"):
        failures.sample_for_failures(system, count=2, steps=100_000)
    assert "above zero" in str(run_benchmark("failures", "--weight", 0).exception)


def test_open_ends_overlaps_and_crossings_are_measured() -> None:
    axis = Line((-1.2, 0), (1.2, 0), construction=True)  # may end anywhere and cross other curves
    rib = Line((0, -0.5), (0, 0.5))  # ends on other curves
    for good in (PLATE, [*PLATE, axis], [*PLATE, rib], [*PLATE, Circle((0, 0), 0.2), Point((0, 0))]):
        for find in (failures.find_open_ends, failures.find_overlaps, failures.find_crossings):
            assert find(0, Sketch(tuple(good))) is None
    case = failures.find_open_ends(7, Sketch((*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.38)))))
    assert (case.number, sorted(case.points)) == (7, [(-1.0, -0.5), (-1.0, -0.38)])
    assert (case.score, case.caption) == ((2, pytest.approx(0.12)), "2 of 8 ends open\nwidest gap 0.12")
    assert failures.find_open_ends(0, Sketch((*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.49))))) is None
    alone = failures.find_open_ends(0, Sketch((Arc((0, 0), 1, 0, 1),)))
    assert "nothing else" in alone.caption
    case = failures.find_overlaps(0, Sketch((*PLATE, Line((-0.5, -0.5), (0.7, -0.5)))))
    assert (case.pairs, case.score) == (((0, 4),), (pytest.approx(1.2),))
    assert "1 pair" in case.caption
    case = failures.find_crossings(0, Sketch((*PLATE, Line((-1.3, 0), (1.3, 0)))))
    assert sorted(case.points) == [(pytest.approx(-1), pytest.approx(0)), (pytest.approx(1), pytest.approx(0))]
    assert case.caption == "2 crossings"


def test_worst_cases_come_first() -> None:
    def gap(size: float) -> Sketch:
        return Sketch((*PLATE[:3], Line((-1.0, 0.5), (-1.0, -0.5 + size))))

    found = failures.find_failures([gap(0.1), Sketch(tuple(PLATE)), gap(0.4), gap(0.2)], each=2)
    gaps, overlaps, crossings = found.modes
    assert (found.sketches, gaps.count) == (4, 3)
    assert [case.number for case in gaps.worst] == [2, 3]
    assert (overlaps.count, crossings.count, overlaps.worst, crossings.worst) == (0, 0, (), ())
    # Failures do not depend on size and position.
    parts = [procedural(3, i) for i in range(10)]
    moved = [sketch.moved(25.0, (100.0, -30.0)) for sketch in parts]
    for a, b in zip(failures.find_failures(parts).modes, failures.find_failures(moved).modes, strict=True):
        assert [case.caption for case in a.worst] == [case.caption for case in b.worst]
