"""Recall, precision and speed of inferred constraints, and FreeCAD's autoconstraint beside them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import run_benchmark, write_page
from support.noisy_sketches import constraint
from support.outlines import slot, turned
from support.sketch_sets import polygon

from benchmarks import constraint_recall as recall
from benchmarks.constraint_speed import measure_constraint_speed
from benchmarks.constraints import OURS, TYPES, autoconstrain, measure_constraints
from sketchdnn.errors import FormatError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Part, Ref, Sketch

T = ConstraintType
SIDES = tuple(polygon((0, 0), (40, 0), (40, 30), (0, 30)))
ALIGNED = tuple(Constraint(T.VERTICAL if i % 2 else T.HORIZONTAL, (Ref(i),)) for i in range(4))
JOINED = tuple(Constraint(T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4))
RECTANGLE = Sketch(SIDES, (*ALIGNED, *JOINED))
SLOT = Sketch((*(turned(p, by=(20, 0)) for p in slot(40, 10)), Circle((60, 40), 10)))


def test_implied_constraints_follow_from_others_and_scores_count_by_type() -> None:
    pairs = ((T.PARALLEL, 0, 2), (T.PERPENDICULAR, 0, 1), (T.EQUAL, 0, 2), (T.EQUAL, 0, 1))
    candidates = [constraint(*pair) for pair in pairs]
    assert recall.implied_constraints(RECTANGLE, RECTANGLE.constraints, candidates) == [True, True, True, False]
    # A constraint that holds by accident is not implied, and neither is one that does not hold.
    assert recall.implied_constraints(RECTANGLE, (), ALIGNED) == [False] * 4
    assert recall.implied_constraints(RECTANGLE, ALIGNED[:2], ALIGNED) == [True, True, False, False]
    skewed = Sketch((replace(SIDES[0], end=(40, 1)), *SIDES[1:]))
    assert recall.implied_constraints(skewed, ALIGNED, ALIGNED[:2]) == [False, True]
    score = recall.RecallScore()
    jittered = recall.JitteredSketch(RECTANGLE, replace(RECTANGLE, constraints=()), 0.0)
    wrong = Constraint(T.EQUAL, (Ref(0), Ref(1)))
    score.add(jittered, recall.Inference((*ALIGNED, wrong), RECTANGLE, conflicting=(wrong,)))
    assert (score.recall("horizontal"), score.recall("vertical"), score.recall("coincident")) == (1, 1, 0)
    assert score.precision() == pytest.approx(0.8)
    assert (score.precision("equal"), score.precision("vertical")) == (0, 1)
    assert score.residuals == [0.0]
    score.add(jittered, recall.Inference((), None))
    assert (score.failed, score.sketches, score.recall("horizontal")) == (1, 2, 0.5)
    assert recall.constraint_name(Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1)))) == "on or along"
    assert recall.constraint_name(JOINED[0]) == "coincident"


def test_jitter_is_bounded_and_constraints_of_a_rectangle_are_recalled() -> None:
    sketch = Sketch((*SIDES, Circle((10, 10), 4), Arc((20, 10), 5, 0.5, 2)))
    jittered, displacement = recall.jitter_sketch(sketch, 0.005, np.random.default_rng(0))
    assert jittered.constraints == ()
    assert 0.002 < displacement < 0.005 * 2**0.5
    pairs = zip(SIDES, jittered.primitives[:4], strict=True)
    largest = max(np.hypot(*np.subtract(p.start, q.start)) for p, q in pairs)  # type: ignore[union-attr]
    assert 0 < largest <= 0.005 * 40 * 2**0.5
    assert [item.sketch for item in recall.jitter_sketches([sketch], 0.005)] == [jittered]
    score = recall.measure_recall([RECTANGLE] * 5, 0.001, 0.001)
    assert score.recall("coincident") == score.recall("horizontal") == score.recall("vertical") == 1
    assert score.precision() == 1
    assert max(score.residuals) < 1e-9
    assert np.mean(score.displacements) <= np.mean(score.jitters)


def test_freecad_infers_a_slot_and_is_on_the_page(freecadcmd: str, real_data: Path, tmp_path: Path) -> None:
    """Tangent ends count as a coincident and a tangent."""
    jittered = recall.jitter_sketches([SLOT], 0.001)
    (inference,) = autoconstrain(freecadcmd, jittered, 0.001)
    assert {"coincident", "tangent", "equal"} <= {str(constraint.type) for constraint in inference.constraints}
    score = recall.RecallScore()
    score.add(jittered[0], inference)
    assert score.precision() == 1
    assert score.residuals[0] < 1e-9
    assert 0 < score.displacements[0] < 0.01
    assert freecadcmd
    file = real_data / "sketchgraphs" / "sg_subset.npy"
    page = write_page(tmp_path / "page.md", "constraints", "--data", file, "--count", 12, "--timed", 2)
    assert "python -m benchmarks constraints --data sg_subset.npy --count 12 --timed 2\n" in page
    columns = ("ours, 0.1 %", "FreeCAD, 0.1 %", "ours, 0.5 %", "FreeCAD, 0.5 %")
    assert all(f"| {column} |" in page for column in columns)
    assert str(tmp_path) not in page


def test_benchmark_runs_without_freecad(real_data: Path, tmp_path: Path) -> None:
    result = measure_constraints(real_data / "sketchgraphs" / "sg_subset.npy", count=12, timed=2, freecad=False)
    assert not any("FreeCAD" in score.name for score in result.scores)
    ours = next(score.score for score in result.scores if score.name == OURS)
    assert ours.sketches == 12
    assert sum(ours.true[name] for name in TYPES) > 50
    assert ours.recall("coincident") > 0.9
    assert 0 < result.speed.median <= result.speed.percentile95
    refused = run_benchmark("constraints", "--no-freecad", "--data", tmp_path / "none.npy")
    assert isinstance(refused.exception, FormatError)


def test_constraint_speed_page_has_drawings_and_files(real_data: Path) -> None:
    result = measure_constraint_speed(real_data / "freecad" / "f0bc6d_slittingsaw.FCStd", (200,))
    assert [speed.drawing for speed in result.drawings] == ["grid"] * 2 + ["chain"] * 2
    assert all(speed.plain >= 398 for speed in result.drawings)
    without, with_origin = result.recalls[2:]
    assert 0 < with_origin.external == without.external
    assert with_origin.inferred_external > without.inferred_external
    assert f"| {with_origin.inferred_external} of {with_origin.external} |" in result.markdown("")
