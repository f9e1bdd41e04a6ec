"""Conditioning: known parts stay to the bit, the rest follows their conditional distribution."""

from dataclasses import replace

import pytest
import torch
from support.denoisers import SAMPLERS, TARGET, run, sketches, zero
from support.toys import process_of, random_noise

from benchmarks.oracles import oracle
from sketchdnn.diffusion.gaussian import log_linear_snr
from sketchdnn.diffusion.process import authors_process, our_process
from sketchdnn.diffusion.samplers import sample_ancestral, sample_ddim
from sketchdnn.diffusion.sampling import Conditioning, Progress, condition_on_rows, step_sequence
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat, relevant


def some_rows(batch: int) -> torch.Tensor:
    return torch.rand(batch, 16, generator=torch.Generator().manual_seed(9)) < 0.4


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("method", ["repaint", "conditional"])
def test_known_rows_stay_to_the_bit(sampler, method) -> None:
    x0, rows = sketches(5), some_rows(5)
    known = condition_on_rows(x0, rows, method=method, resamples=2, jump=3)
    for process in (our_process(30), authors_process(30)):
        denoise, steps = TARGET.denoiser(process), step_sequence(30, 12)
        result = run(sampler, denoise, process, random_noise(0, 5), conditioning=known, steps=steps)
        assert torch.equal(result.flat()[rows], x0.flat()[rows])
        assert result.flat().isfinite().all()
        assert not torch.equal(result.params[~rows], x0.params[~rows])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_parts_of_rows_may_be_known(sampler) -> None:
    x0, none = sketches(4), torch.zeros(4, 16, dtype=torch.bool)
    params = torch.zeros(4, 16, 14, dtype=torch.bool)
    params[..., ::2] = True
    known = Conditioning(x0, construction=none, kind=~none, params=params)
    result = run(sampler, zero, our_process(20), random_noise(0, 4), conditioning=known)
    assert torch.equal(result.kind, x0.kind)
    assert torch.equal(result.params[params], x0.params[params])
    assert (result.params[~params].abs() < 1e-6).all()
    assert ((result.construction > 0) & (result.construction < 1)).all()


def test_known_parts_replace_predictions_and_inputs_and_nothing_else() -> None:
    x0, rows, other = sketches(6), some_rows(6), sketches(6, seed=1)
    known = condition_on_rows(x0, rows)
    result = run(sample_ancestral, oracle(other), our_process(20), random_noise(0, 6), conditioning=known)
    assert torch.equal(result.params[~rows], other.params[~rows])
    assert torch.equal(result.kind.argmax(-1)[~rows], other.kind.argmax(-1)[~rows])
    x0, none = sketches(3), torch.zeros(3, 16, dtype=torch.bool)

    def points(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        logits = torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0]).expand_as(batch_t.kind)
        return Prediction(batch_t.construction * 0, logits, torch.ones_like(batch_t.params))

    known = Conditioning(x0, none, ~none, none[..., None].expand(-1, -1, 14))
    result = run(sample_ancestral, points, our_process(20), random_noise(0, 3), conditioning=known)
    torch.testing.assert_close(result.params, relevant(x0.kind.argmax(-1)).float(), atol=1e-6, rtol=0)
    x0, rows, steps = sketches(3), some_rows(3), list[int]()

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        assert torch.equal(batch_t.flat()[rows], x0.flat()[rows])
        assert ((batch_t.kind[~rows] > 0) & (batch_t.kind[~rows] < 1)).all()
        steps.append(int(t[0]))
        return zero(batch_t, t)

    known = condition_on_rows(x0, rows, method="conditional")
    run(sample_ancestral, denoise, our_process(10), random_noise(0, 3), conditioning=known)
    assert steps == list(range(10, 0, -1))


@pytest.mark.parametrize(("sampler", "options"), [*((s, {}) for s in SAMPLERS), (sample_ddim, {"eta": 0.5})])
@pytest.mark.parametrize("process", [our_process(50), process_of(log_linear_snr(50, 10, -1))], ids=["cosine", "log"])
def test_repainted_parts_follow_the_forward_process(sampler, options, process) -> None:
    """A known part at step s is a draw of q(x_s | x_0): its mean and variance show it."""
    x0 = from_flat(sketches(1).flat().expand(1000, -1, -1))
    known = condition_on_rows(x0, torch.ones(1000, 16, dtype=torch.bool), resamples=2)
    seen: list[Progress] = []
    options = {"conditioning": known, "steps": (50, 40, 25, 10, 0), "on_step": seen.append, **options}
    run(sampler, zero, process, random_noise(3, 1000), **options)
    for progress in seen:
        if progress.s == 0:
            continue
        level = process.params.at(progress.s)
        noise = (progress.batch.params - level.alpha_bar.sqrt().float() * x0.params) / level.var.sqrt().float()
        assert (noise * x0.params).mean().abs() < 0.003  # nothing of the sketch is left in it
        assert noise.mean().abs() < 0.01  # 224,000 numbers
        assert noise.var() == pytest.approx(1.0, abs=0.02)
        level = process.kind.at(progress.s)
        mean = (0.99 * x0.kind + 0.01 / 5).log() * level.alpha_bar.sqrt().float()
        noise = (progress.batch.kind.log() - mean) / level.var.sqrt().float()
        noise = noise - noise.mean(-1, keepdim=True)
        assert (noise * x0.kind).mean().abs() < 0.005
        assert noise.var() == pytest.approx(4 / 5, abs=0.02)


# Two correlated numbers of a row, each from N(0, 1).
RHO = 0.9


def completed(method, **options) -> torch.Tensor:
    process = replace(our_process(100), superposition="none")
    clean = method == "conditional"

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        """E[x_0 | x_t] of the pair in the first two parameters, in closed form."""
        level = process.params.at(int(t[0]))
        a, var = level.alpha_bar.sqrt().float(), level.var.float()
        covariance = torch.tensor([[1, RHO], [RHO, 1]])
        gain = torch.diag(torch.stack([torch.ones(()), a])) if clean else a * torch.eye(2)
        noise = torch.diag(torch.stack([torch.zeros(()), var])) if clean else var * torch.eye(2)
        weights = covariance @ gain @ torch.linalg.inv(gain @ covariance @ gain + noise)
        params = torch.zeros_like(batch_t.params)
        params[..., :2] = batch_t.params[..., :2] @ weights.T
        return Prediction(batch_t.construction * 0, batch_t.kind * 0, params)

    values = SketchBatch(torch.full((4000, 1, 2), 0.5), torch.full((4000, 1, 5), 0.2), torch.full((4000, 1, 14), 1.5))
    mask = torch.zeros(4000, 1, 14, dtype=torch.bool)
    mask[..., 0] = True
    none = torch.zeros(4000, 1, dtype=torch.bool)
    known = Conditioning(values, none, none, mask, method, **options)
    noise = random_noise(1, 4000, rows=1)
    return run(sample_ancestral, denoise, process, noise, conditioning=known, labels="logit").params[:, 0, 1]


def test_completions_are_as_documented() -> None:
    for method, resamples, mean, variance in (
        ("repaint", 1, 0.93, 0.34),
        ("repaint", 2, 1.14, 0.25),
        ("repaint", 5, 1.28, 0.19),
        ("repaint", 10, 1.31, 0.165),
        ("conditional", 1, RHO * 1.5, 1 - RHO**2),
    ):
        values = completed(method, resamples=resamples)
        assert values.mean() == pytest.approx(mean, abs=0.03)  # three standard errors
        assert values.var() == pytest.approx(variance, rel=0.1)
    assert float(completed("repaint", resamples=10, jump=2).mean()) == pytest.approx(RHO * 1.5, abs=0.05)


def test_impossible_conditioning_is_refused_by_name() -> None:
    x0 = sketches(2)
    rows, params = torch.ones(2, 16, dtype=torch.bool), torch.ones(2, 16, 14, dtype=torch.bool)
    for name, arguments in {
        r"conditioning\.kind": (x0, rows, rows.float(), params),
        r"conditioning\.construction": (x0, rows[:, :8], rows, params),
        r"conditioning\.params": (x0, rows, rows, rows),
        r"conditioning\.batch\.kind": (SketchBatch(x0.construction, 2 * x0.kind, x0.params), rows, rows, params),
        r"conditioning\.batch\.params": (SketchBatch(x0.construction, x0.kind, x0.params / 0), rows, rows, params),
        r"conditioning\.method": (x0, rows, rows, params, "guessed"),
        "resamples": (x0, rows, rows, params, "repaint", 0),
        "jump": (x0, rows, rows, params, "repaint", 1, 0),
    }.items():
        with pytest.raises(ValueError, match=name):
            Conditioning(*arguments)  # type: ignore[arg-type]
    known = Conditioning(x0, rows, rows, params)
    with pytest.raises(ValueError, match=r"conditioning\.batch"):
        run(sample_ancestral, zero, our_process(5), random_noise(0, 3), conditioning=known)
