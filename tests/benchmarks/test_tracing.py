"""The scores of traced sketches: what agrees, what only looks the same, and what the benchmark counts."""

import math
from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import refuse, run_benchmark, write_page
from support.evaluation_data import small_corpus

from benchmarks import trace_styles
from benchmarks.trace_constraints import comparable, compare_constraints, constrained_sources
from benchmarks.trace_scores import Match, compare, match, transformed, visible
from benchmarks.trace_styles import STYLES, cairo, choose_styles
from benchmarks.tracing import TraceBenchmark, cases_by_lot, measure, sheet, trace_case
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch, profile

PLATE = Sketch(
    (
        Line((-1, -0.5), (1, -0.5)),
        Line((1, -0.5), (1, 0.5)),
        Line((1, 0.5), (-1, 0.5)),
        Line((-1, 0.5), (-1, -0.5)),
        Circle((0.3, 0.1), 0.2),
    )
)


def test_sketch_agrees_with_itself_in_any_order_and_direction() -> None:
    turned = Sketch(tuple(Line(p.end, p.start) if isinstance(p, Line) else p for p in reversed(PLATE.primitives)))
    result = compare(PLATE, turned)
    assert (result.hits, result.truth, result.found, result.flags) == (5, 5, 5, 5)
    assert result.tokens == result.all_tokens == 4 * 6 + 5
    assert (result.f1, result.chamfer) == (1, 0)
    assert result.mse < 1e-4


def test_five_levels_are_the_limit() -> None:
    for levels, hits in ((5, 5), (6.2, 4)):
        circle = Circle((0.3 + levels * 2 / 63, 0.1), 0.2)
        assert compare(PLATE, Sketch((*PLATE.primitives[:4], circle))).hits == hits


def test_wrong_kind_missing_and_surplus_primitives_count() -> None:
    arc = Arc((0.3, 0.1), 0.2, 0.0, 6.2)
    result = compare(PLATE, Sketch((*PLATE.primitives[:3], arc, Point((0.0, 0.0)), Point((0.5, 0.0)))))
    assert (result.hits, result.found) == (3, 6)
    assert result.f1 == pytest.approx(6 / 11)
    assert result.chamfer > 1
    assert result.mse > 0


def test_construction_flags_are_counted_apart() -> None:
    dashed = Sketch((Line((-1, -0.5), (1, -0.5), construction=True), *PLATE.primitives[1:]))
    result = compare(PLATE, dashed)
    assert (result.hits, result.flags) == (5, 4)


def test_lines_in_a_row_and_duplicates_look_like_one() -> None:
    halves = (Line((-1, -0.5), (0, -0.5)), Line((1, -0.5), (0, -0.5)), Line((-0.5, -0.5), (0.5, -0.5)))
    seen = visible(Sketch((*halves, *PLATE.primitives[1:])))
    assert len(seen) == 5
    assert compare(PLATE, seen).hits == 5
    assert len(visible(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (2, 0), construction=True))))) == 2
    assert len(visible(Sketch((Line((0, 0), (1, 0)), Line((1, 0), (1, 1)))))) == 2


def test_arcs_of_one_circle_look_like_one() -> None:
    third = math.tau / 3
    parts = tuple(Arc((0, 0), 1, k * third + 0.4, third) for k in range(3))
    assert visible(Sketch(parts)).primitives == (Circle((0, 0), 1),)
    (arc,) = visible(Sketch(parts[:2])).primitives
    assert isinstance(arc, Arc)
    assert arc.sweep == pytest.approx(2 * third)


def test_similarity_moves_every_kind() -> None:
    sketch = Sketch((*PLATE.primitives, Arc((0, 0), 0.5, 0.3, 4.0), Point((0.2, 0.2))))
    turn = np.array([[0, -2, 1], [2, 0, 3], [0, 0, 1.0]])
    back = transformed(transformed(sketch, turn), np.linalg.inv(turn))
    assert compare(sketch, back).hits == len(sketch)
    assert compare(sketch, back).chamfer == pytest.approx(0, abs=1e-9)


def need_cairo(style: str) -> None:
    """Skip where cairo is missing."""
    if style.startswith("cairo"):
        try:
            cairo()
        except SketchError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("tracing") / "corpus")


@pytest.mark.parametrize("style", STYLES)
def test_plate_in_every_style_is_traced(style: str) -> None:
    need_cairo(style)
    case = trace_case(PLATE, style, 1)
    assert case.result is not None
    assert case.agreement is not None
    assert case.agreement.f1 >= (1 if style in ("precise", "cairo") else 0.8)
    assert profile(case.result.sketch).is_extrudable
    assert case.agreement.chamfer < (0.5 if style in ("precise", "cairo") else 4)
    assert sheet([case], 2).shape[1] > 2 * case.drawn.picture.shape[1]


def test_pictures_of_cairo_depend_on_the_seed_only_with_wobble() -> None:
    need_cairo("cairo")
    for style, differs in (("cairo", False), ("cairo-hand", True)):
        first, same, other = (STYLES[style](PLATE, seed).picture for seed in (1, 1, 2))
        assert (first == same).all()
        assert (first != other).any() == differs
        assert 0.01 < (first < 128).mean() < 0.2


def test_missing_cairo_is_left_out_with_a_sentence_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"no library called {name!r} was found")

    monkeypatch.setattr(trace_styles, "import_module", missing)
    styles, sentence = choose_styles(None)
    assert styles == ("precise", "hand", "inertia", "photo", "xkcd")
    assert sentence == "Left out: pictures of cairo need it: pip install cairocffi, and the library libcairo2."
    assert choose_styles(["hand"]) == (("hand",), "")
    with pytest.raises(SketchError, match="pip install cairocffi"):
        choose_styles(["cairo"])


def test_refused_picture_counts_as_nothing_found() -> None:
    good = trace_case(PLATE, "precise", 0)
    missed = good._replace(result=None, agreement=None, stored=None)
    result = TraceBenchmark({"precise": [good.score, good.score, missed.score, missed.score]})
    assert result.f1("precise").value == pytest.approx(0.5)
    (row,) = result.rows()
    assert row[9] == "2"
    assert row[8].startswith("50.0%")
    assert "missed" in next(iter(result.sentences()))
    nothing = TraceBenchmark({"precise": [missed.score] * 2})
    assert "nan" in " ".join(nothing.sentences())
    assert "| 2 |" in nothing.markdown("a command")


def test_unknown_style_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SketchError, match="there is no style 'oil'"):
        measure(tmp_path, ["oil"])


def test_processes_change_nothing_and_all_is_the_whole_split(corpus: Path) -> None:
    done: list[tuple[int, int]] = []
    alone = measure(corpus, ["precise"], None, 3, on_progress=lambda *each: done.append(each))
    together = measure(corpus, ["precise"], None, 3, workers=2)
    count = len(alone.scores["precise"])
    assert done == [(number + 1, count) for number in range(count)]
    one, other = ([s._replace(seconds=0) for s in result.scores["precise"]] for result in (alone, together))
    assert one == other
    assert len(measure(corpus, ["precise"], 2, 3).scores["precise"]) == 2 < count


def test_sheet_is_drawn_by_lot_with_a_fixed_seed(corpus: Path) -> None:
    cases = cases_by_lot(corpus, ["precise", "hand"], 3, seed=1)
    assert [case.truth for case in cases] == [*(case.truth for case in cases[:2]), cases[0].truth]
    again = cases_by_lot(corpus, ["precise", "hand"], 3, seed=1)
    assert (sheet(cases) == sheet(again)).all()
    assert not (sheet(cases) == sheet([case._replace(result=None, agreement=None) for case in cases])).all()


def test_command_writes_the_page_and_the_sheet(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = write_page(
        tmp_path / "page.md", "trace", "--data", corpus, "--count", 2, "--style", "precise", "--workers", 1
    )
    assert "`python -m benchmarks trace --data corpus --count 2 --style precise --seed 0`" in page
    assert "| precise | 2 |" in page
    result = run_benchmark(
        "trace-sheet", "--data", corpus, "--style", "hand", "--count", 2, "--out", tmp_path / "a.png"
    )
    assert result.exit_code == 0, result.exception
    assert "primitive F1" in result.output
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for count in ("1", "some"):
        assert "a number from 2, or all" in refuse(monkeypatch, capsys, "trace", "--data", corpus, "--count", count)


def relation(kind: str, *refs: tuple[int, Part]) -> Constraint:
    return Constraint(ConstraintType(kind), tuple(Ref(number, part) for number, part in refs))


WHOLE, START, END, CENTER = Part.WHOLE, Part.START, Part.END, Part.CENTER
# The designer made one line level, its neighbors upright, and joined all corners.
DESIGNED = Sketch(
    PLATE.primitives,
    (
        *(relation("coincident", (k, END), ((k + 1) % 4, START)) for k in range(4)),
        relation("horizontal", (0, WHOLE)),
        relation("perpendicular", (0, WHOLE), (1, WHOLE)),
        relation("parallel", (0, WHOLE), (2, WHOLE)),
        relation("vertical", (3, WHOLE)),
        Constraint(ConstraintType.LENGTH, (Ref(0),), 2.0),
    ),
)


def test_constraints_that_say_the_same_are_recalled() -> None:
    case = trace_case(DESIGNED, "precise", 1)
    assert case.constraints is not None
    assert (case.constraints.recalled, case.constraints.true) == (8, 8)
    assert case.constraints.right == case.constraints.inferred >= 8
    assert case.constraints.f1 == 1
    assert 0.5 < case.constraints.same_f1 < 1  # level and upright in place of parallel and perpendicular


def test_turned_lines_keep_their_ends_and_unmatched_primitives_lose_their_constraints() -> None:
    turned = Sketch((Line((1, -0.5), (-1, -0.5)), *PLATE.primitives[1:]))
    pairs = match(PLATE, turned)
    assert sorted(pairs) == [Match(0, 0, True), *(Match(k, k, False) for k in range(1, 5))]
    corners = ((0, START, 1), (1, END, 2), (2, END, 3))
    joined = [relation("coincident", (a, part), (b, START)) for a, part, b in corners]
    joined.append(relation("coincident", (3, END), (0, END)))
    found = Sketch(turned.primitives, tuple(joined))
    only_joints = Sketch(DESIGNED.primitives, DESIGNED.constraints[:4])
    result = compare_constraints(only_joints, found, pairs)
    assert (result.recalled, result.right, result.same_f1) == (4, 4, 1)
    partial = compare_constraints(only_joints, found, [pair for pair in pairs if pair.truth != 0])
    assert (partial.recalled, partial.true, partial.right, partial.inferred) == (2, 4, 2, 4)
    assert partial.f1 == pytest.approx(0.5)
    assert compare_constraints(only_joints, found, []).f1 == 0


def test_wrong_constraints_count_and_dimensions_do_not() -> None:
    assert len(comparable(DESIGNED)) == 8
    wrong = Sketch(PLATE.primitives, (relation("equal", (0, WHOLE), (1, WHOLE)), relation("horizontal", (2, WHOLE))))
    result = compare_constraints(DESIGNED, wrong, match(PLATE, wrong))
    assert (result.right, result.inferred) == (1, 2)
    assert (result.recalled, result.same_f1) == (0, 0)


def test_sources_have_constraints_that_a_picture_can_show(real_data: Path) -> None:
    sources = constrained_sources(real_data / "sketchgraphs" / "sg_subset.npy", 20, 0)
    assert len(sources) == 20
    assert sources == constrained_sources(real_data / "sketchgraphs" / "sg_subset.npy", 20, 0)
    for sketch in sources:
        assert 3 <= len(sketch) <= 16
        assert comparable(sketch)
        assert len(visible(sketch)) == len(sketch)


def test_constraints_are_measured_on_their_own_sources(corpus: Path, real_data: Path) -> None:
    data = real_data / "sketchgraphs" / "sg_subset.npy"
    result = measure(corpus, ["precise"], 3, constrained=data)
    assert [len(scores) for scores in result.constrained.values()] == [3]
    page = result.markdown("a command")
    assert "## Constraints" in page
    assert "Constraint F1, precise: " in page
