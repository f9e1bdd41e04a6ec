"""The bound against closed forms, cells of a grid, draws of steps, and arrangements of rows."""

import math
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toys import ARC_COLUMNS, ONLY_ARCS, every_step, process_of, random_noise
from torch.distributions import Normal, kl_divergence

from benchmarks.oracles import Estimate, RowTarget, entropy, estimate, oracle
from sketchdnn.diffusion import Bins, Elbo, elbo, likelihood
from sketchdnn.diffusion.gaussian import Schedule, authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion.gaussian_softmax import GaussianSoftmax
from sketchdnn.diffusion.likelihood import authors_estimate, diffusion, log_arrangements, log_normal_between, prior
from sketchdnn.diffusion.process import JointProcess, Superposition, authors_process, our_process, paper_process, parts
from sketchdnn.diffusion.timesteps import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant

SHARES = (0.55, 0.25, 0.12, 0.06, 0.02)
MIXED = RowTarget((0.4, 0.2, 0.15, 0.1, 0.15), construction=0.3, std=0.4)
DIMENSIONS = 16 * 5  # parameters of sixteen arcs


def sketches(target: RowTarget, batch: int, seed: int = 0) -> SketchBatch:
    return target.sample(batch, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bound(target: RowTarget, process: JointProcess, batch: int, draws: int, seed=0, read_at=1, **options) -> Elbo:
    steps = draw_steps(process, batch, draws, torch.Generator().manual_seed(seed + 1), read_at=read_at)
    noise = random_noise(seed + 2, batch, dtype=torch.float64)
    return elbo(target.denoiser(process), process, sketches(target, batch, seed), noise, steps, **options)


def closed_form(schedule: Schedule, std: float) -> float:
    """The bound per dimension for N(0, std²): the exact denoiser errs by the posterior variance of x_0."""
    alpha_bar, var = schedule.alpha_bar, schedule.var
    error = std**2 * var / (alpha_bar * std**2 + var)
    snr = alpha_bar[1:] / var[1:]
    reach = (alpha_bar[-1] * std**2 + var[-1] - 1 - var[-1].log()) / 2
    walk = ((snr[:-1] - snr[1:]) * error[2:]).sum() / 2
    return float(reach + walk + (2 * math.pi * var[1]).log() / 2 + error[1] / (2 * var[1]))


def exact_nll(std: float) -> float:
    return math.log(2 * math.pi * math.e * std**2) / 2


@pytest.mark.parametrize("schedule", [cosine(2000), linear(500), authors_cosine(2000)], ids=lambda s: s.name)
@pytest.mark.parametrize("std", [1.0, 0.5])
def test_bound_of_a_gaussian_has_its_closed_form(schedule: Schedule, std: float) -> None:
    per_dimension = estimate(bound(RowTarget(ONLY_ARCS, std=std), process_of(schedule), 300, 8).nats / DIMENSIONS)
    assert abs(per_dimension.mean - closed_form(schedule, std)) < 3 * per_dimension.standard_error
    assert per_dimension.standard_error < 0.05


@pytest.mark.parametrize("std", [1.0, 0.5])
def test_fine_steps_approach_the_exact_likelihood(std: float) -> None:
    """The estimate itself, against the exact density sketch by sketch, so that their spread does not count."""
    schedule, target = log_linear_snr(10_000), RowTarget(ONLY_ARCS, std=std)
    looseness = closed_form(schedule, std) - exact_nll(std)
    assert 0 < looseness < 0.01
    x = sketches(target, 1500).params[..., ARC_COLUMNS]
    exact = (math.log(2 * math.pi * std**2) / 2 + x**2 / (2 * std**2)).sum((1, 2))
    gap = estimate((bound(target, process_of(schedule), 1500, 80).nats - exact) / DIMENSIONS)
    assert gap.standard_error < 0.004
    assert abs(gap.mean - looseness) < 3 * gap.standard_error
    assert gap.mean < 0.01 + 3 * gap.standard_error


@pytest.mark.parametrize(
    ("schedule", "std_1", "std_half"),
    [
        (cosine(2000), 0.358, 0.356),
        (cosine(1000), 0.407, 0.402),
        (cosine(4000), 0.329, 0.328),
        (authors_cosine(2000), 0.078, 0.076),
        (linear(2000), 0.288, 0.284),
        (log_linear_snr(2000), 0.0225, 0.0191),
        (log_linear_snr(10_000), 0.0045, 0.0038),
    ],
    ids=lambda x: f"{x.name}-{x.num_steps}" if isinstance(x, Schedule) else "",
)
def test_looseness_of_schedules_is_as_documented(schedule: Schedule, std_1: float, std_half: float) -> None:
    for std, said in ((1.0, std_1), (0.5, std_half)):
        assert closed_form(schedule, std) - exact_nll(std) == pytest.approx(said, abs=6e-5 if said < 0.05 else 6e-4)


@pytest.mark.parametrize("process", [our_process(60), paper_process(60)], ids=["expected", "log"])
def test_diffusion_term_of_an_oracle_is_zero(process: JointProcess) -> None:
    x0 = sketches(MIXED, 4)
    nats = diffusion(oracle(x0), process, x0, random_noise(0, 4, dtype=torch.float64), every_step(process, 4))
    assert nats.total.abs().max() < 1e-20


@pytest.mark.parametrize("form", ["log", "2log", "expected"])
def test_diffusion_term_is_the_kl_of_two_posteriors(form) -> None:
    process = replace(our_process(40), reverse_logits=form)
    x0, noise = sketches(MIXED, 6), random_noise(5, 6, dtype=torch.float64)(1)
    said = Prediction(*(torch.randn_like(part) for part in parts(x0)))
    t = torch.tensor([2, 7, 15, 22, 31, 40])
    one = StepDraws(t[None], torch.ones(1, 6, dtype=torch.float64))
    nats = diffusion(lambda batch_t, t: said, process, x0, lambda _: noise, one)

    x_t, clean = process.diffuse(x0, t, noise), process.x0_logits(said)
    logits = {"construction": clean.construction, "kind": clean.kind}
    for i in range(6):
        at_s, at_t = process.levels(int(t[i]) - 1), process.levels(int(t[i]))
        for name, guessed in logits.items():
            label, x = getattr(x0, name)[i], getattr(x_t, name)[i].log()
            levels = getattr(at_s, name), getattr(at_t, name)
            true, std = mean_and_std((0.99 * label + 0.01 / label.shape[-1]).log(), x, *levels)
            guess, _ = mean_and_std(guessed[i], x, *levels)
            divergence = kl_divergence(GaussianSoftmax(true, std), GaussianSoftmax(guess, std)).sum()
            torch.testing.assert_close(getattr(nats, name)[i], divergence)
        true, std = mean_and_std(x0.params[i], x_t.params[i], at_s.params, at_t.params)
        guess, _ = mean_and_std(clean.params[i], x_t.params[i], at_s.params, at_t.params)
        torch.testing.assert_close(nats.params[i], kl_divergence(Normal(true, std), Normal(guess, std)).sum())


def mean_and_std(x0, x_t, level_s, level_t) -> tuple[torch.Tensor, torch.Tensor]:
    alpha = level_t.alpha_bar / level_s.alpha_bar
    forward, back = alpha / (1 - alpha), 1 / level_s.var
    var = 1 / (forward + back)
    return var * (alpha.sqrt() / (1 - alpha) * x_t + back * level_s.alpha_bar.sqrt() * x0), var.sqrt()


def test_bound_is_the_sum_of_its_terms() -> None:
    process = process_of(log_linear_snr(50, 10, -1))  # its last level is not pure noise
    x0 = sketches(MIXED, 3)
    nats, at = prior(process, x0), process.levels(50)
    level = at.params
    reached = Normal(level.alpha_bar.sqrt() * x0.params, level.var.sqrt())
    noise = Normal(torch.zeros_like(x0.params), 1.0)
    torch.testing.assert_close(nats.params, kl_divergence(reached, noise).sum((-2, -1)))
    logits = (0.99 * x0.kind + 0.01 / 5).log()
    reached = GaussianSoftmax(at.kind.alpha_bar.sqrt() * logits, at.kind.var.sqrt())
    noise = GaussianSoftmax(torch.zeros_like(logits), 1.0)
    torch.testing.assert_close(nats.kind, kl_divergence(reached, noise).sum(-1))
    assert prior(our_process(50), x0).total.abs().max() == 0
    x0 = sketches(MIXED, 20)
    result = bound(MIXED, process, 20, 2)
    torch.testing.assert_close(result.prior.total, prior(process, x0).total)
    assert (result.prior.total > 1).all()
    torch.testing.assert_close(result.nats, result.prior.total + result.diffusion.total + result.reconstruction.total)
    # A density depends on the last variance, in its reconstruction alone.
    assert (result.last_variance, result.read_at) == (float(process.params.var[1]), 1)
    other = bound(MIXED, process, 20, 2, last_variance=result.last_variance / 4)
    assert other.diffusion.total.equal(result.diffusion.total)
    assert not other.reconstruction.params.equal(result.reconstruction.params)


def test_expected_logits_bound_the_entropy_tighter_than_their_logarithm() -> None:
    result = bound(RowTarget(SHARES), our_process(2000), 1500, 12)
    per_label = (result.prior.kind + result.diffusion.kind + result.reconstruction.kind) / 16
    assert estimate(per_label).mean == pytest.approx(entropy(SHARES), rel=0.03)
    assert estimate(per_label).standard_error < 0.01 * entropy(SHARES)
    result = bound(RowTarget(SHARES), paper_process(2000), 500, 8)
    per_label = estimate((result.diffusion.kind + result.reconstruction.kind) / 16)
    assert per_label.mean == pytest.approx(1.61, abs=0.05)


def exact_nats(x0: SketchBatch, bins: Bins) -> torch.Tensor:
    """−log P of a mixed sketch on the grid: its rows are independent, so it is a sum."""
    kind, flag = x0.kind.argmax(-1), x0.construction.argmax(-1)
    of_kind = torch.tensor(MIXED.kind, dtype=torch.float64).log()[kind]
    of_flag = torch.where(flag == 1, math.log(MIXED.construction), math.log(1 - MIXED.construction))
    of_cells = bins.log_mass(x0.params, torch.zeros_like(x0.params), MIXED.std)
    rows = of_kind + of_flag * (kind != layout.NONE) + (of_cells * relevant(kind)).sum(-1)
    return -rows.sum(-1)


def grid_gap(process: JointProcess, bins: Bins, cells: float) -> Estimate:
    """What the bound exceeds the exact −log P by, in nats a row, read off where noise is so many cells wide."""
    read_at = step_as_noisy_as(process, cells * 2 / bins.levels)
    level = process.params.at(read_at)
    last = float(MIXED.std**2 * level.var / (level.alpha_bar * MIXED.std**2 + level.var))
    result = bound(MIXED, process, 500, 12, bins=bins, read_at=read_at, last_variance=last)
    return estimate((result.nats - exact_nats(sketches(MIXED, 500), bins)) / 16)


@pytest.mark.parametrize("superposition", ["max", "expected", "none"])
@pytest.mark.parametrize("bits", [4, 6])
def test_bound_on_a_grid_is_close(bits: int, superposition: Superposition) -> None:
    bins = Bins(bits)
    gap = grid_gap(process_of(log_linear_snr(2000), superposition=superposition), bins, 1.5)
    exact = exact_nats(sketches(MIXED, 500), bins)
    assert -3 * gap.standard_error < gap.mean < 0.02 * float(exact.mean()) / 16 + 3 * gap.standard_error
    assert gap.standard_error < 0.05


@pytest.mark.parametrize(
    ("bits", "exact", "at_1", "of_cosine", "of_log_linear"),
    [
        (4, 10.05, 7.42, (0.18, 0.07), (0.19, 0.07)),
        (6, 14.39, 3.69, (0.25, 0.11), (0.23, 0.10)),
        (8, 18.72, 1.60, (0.64, 0.27), (0.29, 0.16)),
    ],
)
def test_grid_table_is_as_documented(bits: int, exact: float, at_1: float, of_cosine, of_log_linear) -> None:
    bins, plain, even = Bins(bits), process_of(cosine(2000)), process_of(log_linear_snr(2000))
    per_row = estimate(exact_nats(sketches(MIXED, 4000), bins) / 16)
    assert abs(per_row.mean - exact) < 3 * per_row.standard_error
    gaps = [grid_gap(plain, bins, cells) for cells in (0, 1, 2)] + [grid_gap(even, bins, cells) for cells in (1, 2)]
    for gap, said in zip(gaps, (at_1, *of_cosine, *of_log_linear), strict=True):
        assert gap.standard_error < 0.1
        assert abs(gap.mean - said) < 3 * gap.standard_error


def test_noisy_zeros_count_and_flags_of_empty_rows_do_not() -> None:
    process, x0 = our_process(50), sketches(RowTarget(ONLY_ARCS, std=0.4), 4)
    process = replace(process, superposition="none")
    wrong = torch.where(relevant(x0.kind.argmax(-1)), x0.params, 0.1)
    unsure = Prediction(x0.construction.log(), x0.kind.log(), wrong)
    noise, steps = random_noise(0, 4, dtype=torch.float64), every_step(process, 4)
    assert (elbo(lambda *_: unsure, process, x0, noise, steps).diffusion.params > 1).all()
    assert authors_estimate(lambda *_: unsure, process, x0, noise, steps).total.abs().max() == 0
    process, x0 = our_process(20), sketches(RowTarget((0.0, 0.0, 0.0, 0.0, 1.0)), 3)
    flags = Prediction(-9.0 * x0.construction, x0.kind.log(), x0.params)
    noise, steps = random_noise(0, 3, dtype=torch.float64), every_step(process, 3)
    result = elbo(lambda *_: flags, process, x0, noise, steps)
    assert result.reconstruction.total.abs().max() == 0
    assert (result.diffusion.construction > 0).all()
    bare = SketchBatch(torch.zeros_like(x0.construction), x0.kind, x0.params)  # as the authors write them
    assert elbo(oracle(x0), process, bare, noise, steps).nats.isfinite().all()


def test_authors_estimate_is_no_bound() -> None:
    """For labels it falls below the entropy, which no bound can."""
    process, target = authors_process(2000), RowTarget(SHARES)
    x0 = sketches(target, 300)
    f_of_alpha_bar = replace(process, kind=process_of(process.params, process.label_smoothing).kind)
    steps = draw_steps(f_of_alpha_bar, 300, 16, torch.Generator().manual_seed(3))
    noise = random_noise(4, 300, dtype=torch.float64)
    nats = authors_estimate(target.denoiser(f_of_alpha_bar), process, x0, noise, steps)
    assert estimate(nats.kind / 16).mean < 0.5 * entropy(SHARES)


def columns(*values: float) -> torch.Tensor:
    """Each value in all 14 columns of a row of its own."""
    return torch.tensor(values, dtype=torch.float64)[:, None].expand(-1, 14)


@given(st.floats(-3, 3), st.floats(1e-3, 5), st.integers(1, 6))
def test_cells_sum_to_one(mean: float, std: float, bits: int) -> None:
    bins = Bins(bits)
    centers = -1 + (torch.arange(bins.levels, dtype=torch.float64) + 0.5) * 2 / bins.levels
    cells = columns(*centers.tolist())
    assert torch.equal(bins.index(cells)[:, 0], torch.arange(bins.levels))
    mass = bins.log_mass(cells, torch.full_like(cells, mean), std).exp()
    torch.testing.assert_close(mass.sum(0), torch.ones(14, dtype=torch.float64))


@given(st.floats(-30, 30), st.floats(1e-3, 10))
def test_cell_mass_is_exact_in_both_tails(left: float, width: float) -> None:
    """Against quadrature of the density, scaled by its largest value so that nothing underflows."""
    right = left + width
    nearest = min(max(0.0, left), right)
    x = torch.linspace(left, right, 20_001, dtype=torch.float64)
    log_mass = math.log(float(torch.trapezoid(torch.exp((nearest**2 - x**2) / 2), x))) - nearest**2 / 2
    log_mass -= math.log(2 * math.pi) / 2
    found = log_normal_between(torch.tensor(left, dtype=torch.float64), torch.tensor(right, dtype=torch.float64))
    assert float(found) == pytest.approx(log_mass, rel=1e-6, abs=1e-5)


def test_ranges_of_columns_steps_of_noise_levels_and_impossible_ones() -> None:
    bins = Bins(2, low=(-1.0,) * 13 + (0.0,), high=(1.0,) * 13 + (8.0,))
    assert bins.index(columns(-9.0, 0.1, 3.0))[:, [0, 13]].tolist() == [[0, 0], [2, 0], [3, 1]]
    for options in ({"bits": 0}, {"low": 1.0}, {"low": (0.0,) * 3}, {"high": math.inf}, {"high": math.nan}):
        with pytest.raises(ValueError, match=r"bits|low|high"):
            Bins(**options)
    process, generator = our_process(100), torch.Generator()
    for std in (1e-9, 0.05, 0.5, 0.999, 7.0):
        t = step_as_noisy_as(process, std)
        assert 1 <= t < 100
        assert t in (1, 99) or process.params.var[t - 1] < std**2 <= process.params.var[t]
    for batch, draws, read_at in ((2, 0, 1), (0, 1, 1), (2, 1, 0), (2, 1, 100)):
        with pytest.raises(ValueError, match="draws and batch" if read_at == 1 else "read_at"):
            draw_steps(process, batch, draws, generator, read_at=read_at)
    assert draw_steps(process, 2, 1, generator).read_at == 1


@pytest.mark.parametrize("read_at", [1, 5])
def test_drawn_steps_are_unbiased(read_at: int) -> None:
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


@settings(max_examples=20)
@given(st.integers(0, 2**30), st.integers(1, 5))
def test_arrangements_match_enumeration(seed: int, rows: int) -> None:
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


def test_arrangements_of_distinct_primitives() -> None:
    kind = torch.nn.functional.one_hot(torch.tensor([[0] * 10 + [4] * 6]), 5).double()
    params = torch.zeros(1, 16, 14, dtype=torch.float64)
    params[0, :10, 0] = torch.linspace(-0.9, 0.9, 10)
    x0 = SketchBatch(torch.tensor([[[1.0, 0.0]]]).expand(1, 16, 2), kind, params)
    assert likelihood.num_primitives(x0).tolist() == [10]
    expected = math.lgamma(17) - math.lgamma(7)
    assert float(log_arrangements(x0, Bins(8))) == pytest.approx(expected)
    for nats, bits in ((expected, 34.8), (math.lgamma(11), 21.8)):
        assert nats / math.log(2) == pytest.approx(bits, abs=0.05)
    # Sequences only tell the order of ten; which of sixteen rows are empty is extra.
    assert expected - math.lgamma(11) == pytest.approx(math.log(math.comb(16, 10)))


def test_bad_input_of_the_bound_is_refused_by_name() -> None:
    process, x0 = our_process(20), sketches(MIXED, 2)
    noise, steps = random_noise(0, 2, dtype=torch.float64), every_step(process, 2)

    for match, batch, draws, variance in (
        (r"x0\.kind", replace(x0, kind=x0.kind * 0.5 + 0.1), steps, None),
        (r"x0\.construction", replace(x0, construction=x0.construction * 0 + 0.5), steps, None),
        *((r"x0\.params", replace(x0, params=params), steps, None) for params in (x0.params + 1, x0.params * math.nan)),
        *(("last_variance", x0, steps, variance) for variance in (0.0, math.inf)),
        *(("steps", x0, StepDraws(steps.t + off, steps.count), None) for off in (-1, 1)),
        ("steps", x0, every_step(process, 3), None),
        ("noise", sketches(MIXED, 3), every_step(process, 3), None),
    ):
        with pytest.raises(ValueError, match=match):
            elbo(oracle(x0), process, batch, noise, draws, last_variance=variance)
