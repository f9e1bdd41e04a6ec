"""Validity of known sketches, its decline with noise, and the comparison of distributions."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.sketch_sets import parts, pulled_square, rows, sets, shuffled, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.scores import drop_primitives, jitter_ends
from sketchdnn.evaluation.validity import (
    EXACT_TOLERANCE,
    LOOSE_TOLERANCE,
    construction_distribution,
    count_distribution,
    deviations,
    exact_ends,
    kind_distribution,
    measure_gaps,
    measure_profiles,
    measure_validity,
    total_variation,
)
from sketchdnn.geometry import Circle, Line, Point, Sketch
from sketchdnn.representation import Compact, decode_compact, encode, layout
from sketchdnn.representation.hashing import NUM_SYMMETRIES, turned

FIELDS = ("kind", "construction", "params")
PLATE = rows([*square(), Circle((0, 0), 0.5), Line((-1, 0), (1, 0), True)], [*square(), Point((0, 0)), Point((1, 0))])
SQUARE, NEARLY_CLOSED, OPEN = (Sketch(tuple(each)) for each in (square(), pulled_square(0.01), pulled_square(0.03)))


def shares(validity: dict[str, Any]) -> dict[str, float]:
    return {
        "meet": validity["gaps"].within_loose.value,
        "closed": validity["exact"].closed.value,
        "loosely closed": validity["loose"].closed.value,
        "extrudable": validity["exact"].extrudable.value,
        "symmetric": validity["symmetric"].value,
        "aligned": validity["axis_aligned"].value,
    }


def test_validity_of_known_and_noisy_sketches() -> None:
    validity = measure_validity(rows(square(), square()))
    assert (set(shares(validity).values()), validity["sketches"]) == ({1}, 2)
    assert validity["tiny"].value == validity["flat"].value == validity["exact"].overlapping.value == 0
    assert validity["gaps"].median.value == 0
    # On one line, a sketch is flat.
    assert measure_validity(rows([Line((-1, 0), (1, 0)), Point((0, 0))], [Circle((0, 0), 1)]))["flat"].value == 0.5
    compact = rows(square(), square())
    compact.kind[1], compact.params[1] = layout.NONE, 0
    validity = measure_validity(compact)
    assert validity["exact"].closed.value == validity["symmetric"].value == validity["flat"].value == 0.5
    assert validity["gaps"].sketches_within_loose.value == 1
    with pytest.raises(GeometryError, match="no sketches"):
        measure_validity(parts(5)[:0])
    broken = rows(square(), square())
    broken.params[1, 2, 0] = np.nan
    with pytest.raises(GeometryError, match=r"sketch 1 holds an invalid primitive \(1 sketches do\)"):
        measure_validity(broken)
    jittered = [measure_validity(jitter_ends(parts(80), sigma, seed=0)) for sigma in (0, 0.005, 0.02, 0.05)]
    for name in shares(jittered[0]):
        values = [shares(validity)[name] for validity in jittered]
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1]
    closed = [
        measure_validity(drop_primitives(parts(60), share, seed=0))["exact"].closed.value for share in (0, 0.1, 0.4)
    ]
    assert closed == sorted(set(closed), reverse=True)
    progress: list[float] = []
    measure_validity(parts(5), progress.append)
    assert (progress, progress[0]) == (sorted(progress), 0)
    assert progress[-1] >= 0.5
    progress.clear()
    measure_profiles([SQUARE] * 250, on_progress=progress.append)
    assert progress == [0, 0.4, 0.8]


@settings(max_examples=25)
@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_validity_does_not_depend_on_symmetry_or_order(compact: Compact, symmetry: int, seed: int) -> None:
    # Ends whose distance is the tolerance are joined or not by rounding.
    drawn = [decoded.sketch for decoded in decode_compact(compact)]
    low, high = (measure_profiles(drawn, LOOSE_TOLERANCE * factor).closed for factor in (0.999, 1.001))
    assume(low == high)
    before, after = measure_validity(compact), measure_validity(shuffled(turned(compact, symmetry), seed))
    assert shares(before) == pytest.approx(shares(after), nan_ok=True)
    for name in ("kinds", "construction", "counts", "tiny", "flat"):
        assert before[name] == after[name]


def test_gaps_ends_and_profiles() -> None:
    for gap, fine, loose, sketches in ((0.004, 8, 8, 1), (0.01, 6, 8, 1), (0.03, 6, 6, 0)):
        gaps = measure_gaps(rows(pulled_square(gap)))
        assert (gaps.within_fine.value, gaps.within_loose.value) == (pytest.approx(fine / 8), pytest.approx(loose / 8))
        assert gaps.sketches_within_loose.value == sketches
    # Isolated ends are not within reach, and the number of rows does not matter.
    gaps = measure_gaps(rows([Line((0, 0), (0.001, 0)), Circle((0, 0), 1), Point((0, 0))], [Circle((0, 0), 1)]))
    assert gaps.within_loose.value == 0
    assert gaps.sketches_within_loose.value == 0  # of the one sketch that has ends
    assert measure_gaps(encode([SQUARE], max_primitives=40)) == measure_gaps(rows(square()))
    assert exact_ends(parts(24)).value > 0.9
    assert exact_ends(jitter_ends(parts(24), 1e-4, 0)).value < 0.05
    for tolerance, closed in ((EXACT_TOLERANCE, 1 / 3), (LOOSE_TOLERANCE, 2 / 3)):
        profiles = measure_profiles([SQUARE, NEARLY_CLOSED, OPEN], tolerance)
        assert profiles.closed.value == profiles.extrudable.value == pytest.approx(closed)
        assert profiles.overlapping.value == 0
    # Crossing loops are closed but cannot be extruded; points and construction close nothing.
    profiles = measure_profiles([Sketch((Circle((0, 0), 1), Circle((1, 0), 1)))])
    assert (profiles.closed.value, profiles.extrudable.value) == (1, 0)
    assert measure_profiles([Sketch((Circle((0, 0), 1, True), Point((0, 0)))), Sketch(())]).closed.value == 0
    profiles = measure_profiles([SQUARE, Sketch((*square(), Line((-0.5, -1), (0.5, -1))))])
    assert (profiles.overlapping.value, profiles.primitives_overlapping.value) == (0.5, pytest.approx(2 / 9))


def test_distributions_and_their_variation() -> None:
    kinds = {name: share.estimate.value for name, share in kind_distribution(PLATE).items()}
    assert kinds == pytest.approx({"line": 9 / 12, "circle": 1 / 12, "arc": 0, "point": 2 / 12})
    construction = {name: share.estimate.value for name, share in construction_distribution(PLATE).items()}
    assert construction == pytest.approx({"construction": 1 / 12, "regular": 11 / 12})
    assert {name: share.estimate.value for name, share in count_distribution(PLATE).items()} == {"6": 1.0}
    lines, rings = rows(square()), rows([Circle((0, 0), 1)])
    assert total_variation(kind_distribution(PLATE), kind_distribution(PLATE)) == 0
    assert total_variation(kind_distribution(lines), kind_distribution(rings)) == 1
    assert total_variation(count_distribution(lines), count_distribution(rings)) == 1
    assert total_variation(kind_distribution(PLATE), kind_distribution(lines)) == pytest.approx(3 / 12)
    squares, rings = rows(*[square()] * 9), rows(*[[Circle((0, 0), 1)]] * 9)
    by_name = {d.name: d for d in deviations(kind_distribution(squares), kind_distribution(rings))}
    assert math.isinf(by_name["line"].relative)
    assert not by_name["line"].is_within
    assert by_name["arc"].relative == by_name["arc"].z_score == 0


def test_significance_of_deviations() -> None:
    whole = parts(400)
    first, second = kind_distribution(whole[:200]), kind_distribution(whole[200:])
    assert all(deviation.is_within for deviation in deviations(first, second))
    lines_only = Compact(np.where(whole.kind == 0, 0, 4).astype(np.uint8), whole.construction, whole.params)
    circle = {d.name: d for d in deviations(kind_distribution(lines_only), kind_distribution(whole))}["circle"]
    assert not circle.is_within
    assert circle.relative == -1
    assert circle.z_score < -2
    plain, rare = rows(square()), rows([*square(), Circle((0, 0), 1)])
    reference = Compact(*(np.concatenate([getattr(plain, n)[[0] * 1960], getattr(rare, n)[[0] * 40]]) for n in FIELDS))
    for count in (20, 2000):
        samples = plain[np.zeros(count, np.int64)]
        for measure, name in ((kind_distribution, "circle"), (count_distribution, str(rare.counts[0]))):
            for ours, theirs, sign in ((samples, reference, -1), (reference, samples, 1)):
                deviation = {d.name: d for d in deviations(measure(ours), measure(theirs))}[name]
                assert deviation.is_within == (count == 20)
                # 20 draws miss 2 % two times in three, 2,000 draws never.
                assert (abs(deviation.z_score) < 1) == (count == 20)
                assert deviation.z_score * sign > 0
    rng, rare = np.random.default_rng(0), rows(square(), [*square(), Circle((0, 0), 1)])
    for share, count in ((0.3, 100), (0.02, 100)):
        pairs = [
            deviations(
                *(count_distribution(rare[(rng.random(n) < share).astype(np.int64)]) for n in (count, 4 * count))
            )
            for _ in range(300)
        ]
        assert np.std([d.z_score for pair in pairs for d in pair if d.name == "5"]) == pytest.approx(1, abs=0.2)
