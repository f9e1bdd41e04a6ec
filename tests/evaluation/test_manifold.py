"""Precision, recall, density and coverage agree with prdc, and say what they should of sets that are easy to judge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from prdc import compute_prdc
from torch import Tensor

from sketchdnn.evaluation import manifold
from sketchdnn.evaluation.estimates import EvaluationError
from sketchdnn.evaluation.metrics import PrecisionRecall, authors_precision_recall, density_coverage, precision_recall


def draw(count: int, seed: int, shift: float = 0.0, dimensions: int = 8) -> Tensor:
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed)) + shift


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_all_four_agree_with_prdc(k: int, shift: float) -> None:
    real, fake = draw(300, 0), draw(200, 1, shift)
    theirs = compute_prdc(real.numpy(), fake.numpy(), k)
    pr, dc = precision_recall(real, fake, k), density_coverage(real, fake, k)
    ours = {
        "precision": pr.precision.value,
        "recall": pr.recall.value,
        "density": dc.density.value,
        "coverage": dc.coverage.value,
    }
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_three_neighbors_unless_told_otherwise() -> None:
    """As in the paper of Kynkäänniemi et al."""
    real, fake = draw(300, 0), draw(200, 1, 0.7)
    theirs = compute_prdc(real.numpy(), fake.numpy(), 3)
    found = precision_recall(real, fake)
    assert (found.precision.value, found.recall.value) == pytest.approx(
        (theirs["precision"], theirs["recall"]), rel=1e-3
    )
    assert found != precision_recall(real, fake, 4)


@given(st.integers(6, 30), st.integers(6, 30), st.integers(0, 2**20))
def test_roles_swap_and_order_and_chunks_do_not_count(n: int, m: int, seed: int) -> None:
    real, fake = draw(n, seed), draw(m, seed + 1, 0.5)
    for score in (precision_recall, authors_precision_recall):
        found = score(real, fake)
        assert score(fake, real) == PrecisionRecall(found.recall, found.precision)
        assert score(real.flip(0), fake.roll(3, 0)) == found
    whole = density_coverage(real, fake), precision_recall(real, fake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifold, "_ROWS", 4)
        assert (density_coverage(real, fake), precision_recall(real, fake)) == whole


Score = Callable[[Tensor, Tensor], PrecisionRecall]


@pytest.mark.parametrize("score", [precision_recall, authors_precision_recall])
def test_a_set_covers_itself_and_nothing_far_away(score: Score) -> None:
    real, far = draw(100, 0, 8.0), draw(100, 1, -8.0)
    for found, expected in ((score(real, real), 1.0), (score(real, far), 0.0)):
        assert (found.precision.value, found.recall.value) == (expected, expected)


@pytest.mark.parametrize("score", [precision_recall, authors_precision_recall])
def test_fakes_of_one_mode_are_precise_but_recall_half(score: Score) -> None:
    here, there = draw(200, 0) + torch.tensor([6.0] * 4 + [0.0] * 4), draw(200, 1) + torch.tensor([0.0] * 4 + [6.0] * 4)
    fake = draw(200, 2) + torch.tensor([6.0] * 4 + [0.0] * 4)
    found = score(torch.cat([here, there]), fake)
    assert found.recall.value <= 0.5
    assert found.precision.value > 1.5 * found.recall.value
    assert density_coverage(torch.cat([here, there]), fake).coverage.value <= 0.5


def test_copies_are_inside_though_their_balls_have_no_extent() -> None:
    """Five copies of each real sketch: the third neighbor is a copy, at distance 0."""
    real = draw(10, 0, dimensions=300).repeat_interleave(5, dim=0) * 7
    assert precision_recall(real, real.flip(0)).precision.value == 1


def test_the_authors_balls_ignore_length_and_are_smaller() -> None:
    real, fake = draw(200, 0, 0.5), draw(200, 1, 0.5)
    found = authors_precision_recall(real, fake)
    lengths = torch.rand(200, 1, generator=torch.Generator().manual_seed(5)) + 0.5
    assert authors_precision_recall(real * lengths, fake) == found
    same_length = [torch.nn.functional.normalize(rows, dim=1) for rows in (real, fake)]
    assert found.precision.value < precision_recall(*same_length).precision.value


def test_the_authors_count_by_hand() -> None:
    """Reals on a circle, one step apart: the three nearest lie 1, 1 and 2 steps off, so a ball reaches 0.95 · 4/3.

    Fakes come in fours a long way apart, 0.01 steps from one another: their balls are tiny, and hold the one real at
    their middle but not its neighbors.
    """
    step = 2 * np.pi / 600
    reals = torch.arange(600, dtype=torch.float64) * step
    huddle = torch.tensor([-0.015, -0.005, 0.005, 0.015], dtype=torch.float64) * step

    def on_circle(angle: Tensor) -> Tensor:
        return torch.stack([angle.cos(), angle.sin()], 1) * 3

    def score(real: Tensor, at: float) -> tuple[float, float]:
        found = authors_precision_recall(
            on_circle(real), on_circle(torch.cat([huddle, huddle + 300 * step]) + at * step)
        )
        return found.precision.value, found.recall.value

    assert score(reals, 0.0) == (1.0, pytest.approx(2 / 600))
    # Past the end of an arc of reals, a ball reaches 0.95 · (1 + 2 + 3)/3 = 1.9 steps.
    arc = torch.cat([reals[:50], reals[300:350]])
    assert score(arc, -1.85)[0] == 1.0
    assert score(arc, -1.95)[0] == 0.0


def test_intervals_hold_what_other_fakes_score() -> None:
    real = draw(300, 0)
    found = [(precision_recall(real, draw(80, i, 0.5)), density_coverage(real, draw(80, i, 0.5))) for i in range(1, 61)]
    for values in ([f[0].precision for f in found], [f[1].density for f in found]):
        mean = np.mean([v.value for v in values])
        assert np.mean([v.low <= mean <= v.high for v in values]) > 0.85


def test_too_few_for_the_neighbors_are_refused() -> None:
    with pytest.raises(EvaluationError, match="at least 6"):
        density_coverage(draw(5, 0), draw(9, 1))
