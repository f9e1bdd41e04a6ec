"""Cells, draws of steps, and bits: what a likelihood is made of and what is made of it."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toys import every_step, random_noise

from benchmarks.oracles import RowTarget, estimate, oracle
from sketchdnn.diffusion.likelihood import (
    Bins,
    elbo,
    log_arrangements,
    log_factorial,
    log_normal_between,
    num_primitives,
)
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.timesteps import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.representation.batch import SketchBatch


def columns(*values: float) -> torch.Tensor:
    """Each value in all 14 columns of a row of its own."""
    return torch.tensor(values, dtype=torch.float64)[:, None].expand(-1, 14)


@given(st.floats(-3, 3), st.floats(1e-3, 5), st.integers(1, 6))
def test_cells_share_out_all_probability(mean: float, std: float, bits: int) -> None:
    bins = Bins(bits)
    centers = -1 + (torch.arange(bins.levels, dtype=torch.float64) + 0.5) * 2 / bins.levels
    cells = columns(*centers.tolist())
    assert torch.equal(bins.index(cells)[:, 0], torch.arange(bins.levels))
    mass = bins.log_mass(cells, torch.full_like(cells, mean), std).exp()
    torch.testing.assert_close(mass.sum(0), torch.ones(14, dtype=torch.float64))


@given(st.floats(-30, 30), st.floats(1e-3, 10))
def test_the_mass_of_a_cell_is_exact_in_both_tails(left: float, width: float) -> None:
    """Against quadrature of the density, scaled by its largest value so that nothing underflows."""
    right = left + width
    nearest = min(max(0.0, left), right)
    x = torch.linspace(left, right, 20_001, dtype=torch.float64)
    log_mass = math.log(float(torch.trapezoid(torch.exp((nearest**2 - x**2) / 2), x))) - nearest**2 / 2
    log_mass -= math.log(2 * math.pi) / 2
    found = log_normal_between(torch.tensor(left, dtype=torch.float64), torch.tensor(right, dtype=torch.float64))
    assert float(found) == pytest.approx(log_mass, rel=1e-6, abs=1e-5)


def test_fine_cells_approach_the_density() -> None:
    x = columns(0.1234)
    found = Bins(20).log_mass(x, torch.full_like(x, 0.1), 0.05) - math.log(2 / 2**20)
    density = torch.distributions.Normal(torch.tensor(0.1, dtype=torch.float64), 0.05).log_prob(x)
    torch.testing.assert_close(found, density, atol=1e-4, rtol=0)


def test_columns_may_have_ranges_of_their_own_and_what_lies_outside_is_in_the_outermost_cell() -> None:
    bins = Bins(2, low=(-1.0,) * 13 + (0.0,), high=(1.0,) * 13 + (8.0,))
    assert bins.index(columns(-9.0, 0.1, 3.0))[:, [0, 13]].tolist() == [[0, 0], [2, 0], [3, 1]]


@pytest.mark.parametrize(
    "options", [{"bits": 0}, {"low": 1.0}, {"low": (0.0,) * 3}, {"high": math.inf}, {"high": math.nan}]
)
def test_grids_that_are_none_are_refused(options) -> None:
    with pytest.raises(ValueError, match=r"bits|low|high"):
        Bins(**options)


@pytest.mark.parametrize("read_at", [1, 5])
def test_drawn_steps_estimate_any_sum_without_bias(read_at: int) -> None:
    process, terms = our_process(50), torch.rand(51, dtype=torch.float64) ** 4
    generator = torch.Generator().manual_seed(0)
    sums = []
    for _ in range(400):
        draws = draw_steps(process, 3, 2, generator, read_at=read_at)
        assert int(draws.t.min()) > read_at
        sums.append((terms[draws.t] * draws.count).mean(0))
    for sample in torch.stack(sums).unbind(dim=1):  # each sample on its own, not only their mean
        found = estimate(sample)
        assert abs(found.mean - float(terms[read_at + 1 :].sum())) < 4 * found.standard_error
    exact = every_step(process, 3, read_at=read_at)
    torch.testing.assert_close((terms[exact.t] * exact.count).mean(0), terms[read_at + 1 :].sum().expand(3))


def test_the_step_as_noisy_as_asked() -> None:
    process = our_process(100)
    for std in (1e-9, 0.05, 0.5, 0.999, 7.0):
        t = step_as_noisy_as(process, std)
        assert 1 <= t < 100
        assert t in (1, 99) or process.params.var[t - 1] < std**2 <= process.params.var[t]


def test_draws_that_make_no_sense_are_refused() -> None:
    generator = torch.Generator()
    with pytest.raises(ValueError, match="draws"):
        draw_steps(our_process(5), 2, 0, generator)
    for read_at in (0, 5):
        with pytest.raises(ValueError, match="read_at"):
            draw_steps(our_process(5), 2, 1, generator, read_at=read_at)


@settings(max_examples=20)
@given(st.integers(0, 2**30), st.integers(1, 5))
def test_arrangements_are_counted_as_by_hand(seed: int, rows: int) -> None:
    """Against a listing of all orders. Two cells make twins likely."""
    target = RowTarget((0.2, 0.1, 0.1, 0.3, 0.3), construction=0.5, std=0.5)
    x0 = target.sample(1, rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    bins = Bins(1)
    clean = [
        (int(k.argmax()), int(c.argmax()), *(bins.index(p) * (p != 0)).tolist())
        for k, c, p in zip(x0.kind[0], x0.construction[0], x0.params[0], strict=True)
    ]
    listed = len({tuple(clean[i] for i in order) for order in permutations(range(rows))})
    assert float(log_arrangements(x0, bins)) == pytest.approx(math.log(listed), abs=1e-9)


def test_distinct_primitives_can_be_placed_in_any_rows() -> None:
    kind = torch.nn.functional.one_hot(torch.tensor([[0] * 10 + [4] * 6]), 5).double()
    params = torch.zeros(1, 16, 14, dtype=torch.float64)
    params[0, :10, 0] = torch.linspace(-0.9, 0.9, 10)
    x0 = SketchBatch(torch.tensor([[[1.0, 0.0]]]).expand(1, 16, 2), kind, params)
    assert num_primitives(x0).tolist() == [10]
    expected = math.lgamma(17) - math.lgamma(7)
    assert float(log_arrangements(x0, Bins(8))) == pytest.approx(expected)
    for nats, bits in ((expected, 34.8), (float(log_factorial(10)), 21.8)):
        assert nats / math.log(2) == pytest.approx(bits, abs=0.05)
    # Sequences only tell the order of ten; which of sixteen rows are empty is extra.
    assert expected - float(log_factorial(10)) == pytest.approx(math.log(math.comb(16, 10)))


def sketches(batch: int) -> SketchBatch:
    target = RowTarget((0.4, 0.2, 0.15, 0.1, 0.15), construction=0.3, std=0.4)
    return target.sample(batch, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_likelihood_refuses_bad_input_by_name() -> None:
    process, x0 = our_process(20), sketches(2)
    noise, steps = random_noise(0, 2, dtype=torch.float64), every_step(process, 2)

    def refused(match: str, batch: SketchBatch = x0, steps: StepDraws = steps, **options) -> None:
        with pytest.raises(ValueError, match=match):
            elbo(oracle(x0), process, batch, noise, steps, **options)

    refused(r"x0\.kind", SketchBatch(x0.construction, x0.kind * 0.5 + 0.1, x0.params))
    refused(r"x0\.construction", SketchBatch(x0.construction * 0 + 0.5, x0.kind, x0.params))
    refused(r"x0\.params", SketchBatch(x0.construction, x0.kind, x0.params + 1))
    refused(r"x0\.params", SketchBatch(x0.construction, x0.kind, x0.params * math.nan))
    refused("last_variance", last_variance=0.0)
    refused("last_variance", last_variance=math.inf)
    refused("steps", steps=every_step(process, 3))
    refused("steps", steps=StepDraws(steps.t - 1, steps.count))
    refused("steps", steps=StepDraws(steps.t + 1, steps.count))
    refused("noise", sketches(3), every_step(process, 3))
