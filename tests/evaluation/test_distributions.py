"""What a set is made of, and when two sets count as made of the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.drawn_sets import parts, rows, square

from sketchdnn.evaluation.validity import (
    construction_distribution,
    count_distribution,
    deviations,
    kind_distribution,
    total_variation,
)
from sketchdnn.geometry import Circle, Line, Point
from sketchdnn.representation import Compact

FIELDS = ("kind", "construction", "params")
PLATE = rows([*square(), Circle((0, 0), 0.5), Line((-1, 0), (1, 0), True)], [*square(), Point((0, 0)), Point((1, 0))])


def test_shares_are_of_all_primitives() -> None:
    found = {name: share.estimate.value for name, share in kind_distribution(PLATE).items()}
    assert found == pytest.approx({"line": 9 / 12, "circle": 1 / 12, "arc": 0, "point": 2 / 12})
    assert construction_distribution(PLATE)["construction"].estimate.value == pytest.approx(1 / 12)
    assert {name: share.estimate.value for name, share in count_distribution(PLATE).items()} == {"6": 1.0}


def test_total_variation_is_a_distance_from_nothing_to_all() -> None:
    lines, rings = rows(square()), rows([Circle((0, 0), 1)])
    assert total_variation(kind_distribution(PLATE), kind_distribution(PLATE)) == 0
    assert total_variation(kind_distribution(lines), kind_distribution(rings)) == 1
    assert total_variation(count_distribution(lines), count_distribution(rings)) == 1
    assert total_variation(kind_distribution(PLATE), kind_distribution(lines)) == pytest.approx(3 / 12)


def test_two_draws_of_one_source_are_within_and_another_source_is_not() -> None:
    whole = parts(600)
    first, second = kind_distribution(whole[:300]), kind_distribution(whole[300:])
    assert all(deviation.is_within for deviation in deviations(first, second))
    lines_only = Compact(
        np.where(whole.kind == 0, 0, 4).astype(np.uint8), whole.construction_distribution, whole.params
    )
    found = {d.name: d for d in deviations(kind_distribution(lines_only), kind_distribution(whole))}
    assert not found["circle"].is_within
    assert found["circle"].relative == -1
    assert found["circle"].z_score < -2


def test_what_the_reference_lacks_is_infinitely_far() -> None:
    squares, rings = rows(*[square()] * 9), rows(*[[Circle((0, 0), 1)]] * 9)
    found = {d.name: d for d in deviations(kind_distribution(squares), kind_distribution(rings))}
    assert math.isinf(found["line"].relative)
    assert not found["line"].is_within
    assert found["arc"].relative == found["arc"].z_score == 0


@pytest.mark.parametrize("few", [20, 2000])
def test_none_of_few_is_no_finding_and_none_of_many_is_one(few: int) -> None:
    """Of 2,000 reference sketches 2 % have a circle, and a seventh primitive; of the others none has."""
    plain, rare = rows(square()), rows([*square(), Circle((0, 0), 1)])
    reference = Compact(*(np.concatenate([getattr(plain, n)[[0] * 1960], getattr(rare, n)[[0] * 40]]) for n in FIELDS))
    samples = plain[np.zeros(few, np.int64)]
    for measure, name in ((kind_distribution, "circle"), (count_distribution, str(rare.count_distribution[0]))):
        for ours, theirs, sign in ((samples, reference, -1), (reference, samples, 1)):
            found = {d.name: d for d in deviations(measure(ours), measure(theirs))}[name]
            assert found.is_within == (few == 20)
            # As often as that many draws would have to miss: 0.98^20 is two in three, 0.98^2000 never.
            assert (abs(found.z_score) < 1) == (few == 20)
            assert found.z_score * sign > 0


def test_errors_are_standard_errors() -> None:
    """Over many pairs of sets from one source they spread by about one, whether or not a set has none."""
    dice, rare = np.random.default_rng(0), rows(square(), [*square(), Circle((0, 0), 1)])
    for share, count in ((0.3, 100), (0.02, 100)):
        z_score = [
            deviations(
                *(count_distribution(rare[(dice.random(n) < share).astype(np.int64)]) for n in (count, 4 * count))
            )
            for _ in range(300)
        ]
        assert np.std([e.z_score for one in z_score for e in one if e.name == "5"]) == pytest.approx(1, abs=0.2)
