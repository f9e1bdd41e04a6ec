"""Samplers: functions from noise to sketches that can be read alone.

All but `sample_restart` run `sampling_loop` once and differ in its weights: a transition is a weighted sum of state,
prediction and noise for coordinates and for logits of labels, each on its own schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.loose import has_loose_end

from . import gaussian
from .gaussian import Level
from .gaussian_softmax import draw_label
from .noise import NoiseSource
from .process import Denoiser, JointProcess, LogitBatch, Noise
from .sampling import OnStep, Progress, SamplingOptions, Start, Weights, register_sampler, sampling_loop
from .timesteps import step_as_noisy_as

# How a prediction's label enters the reverse mean: as the process's logit of it, or drawn from its probabilities.
Labels = Literal["mean", "drawn"]

# `sample_restart`: the share of all steps that the first pass takes.
_FIRST_PASS = 0.72
# The standard deviation of the noise that the second pass starts from: 0.6 beside 0.8 of the sketch, σ = 0.75 where the
# larger side is 2. Most of the sketch is settled there, the joints between ends are not.
_RESTART_NOISE = 0.6
# With fewer steps the second pass repairs nothing.
_MIN_RESTART_STEPS = 4
# Noise draws that no first pass reaches.
_SECOND_PASS_DRAWS = 1 << 20


@register_sampler("ancestral")
def sample_ancestral(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    *,
    labels: Labels | None = None,
) -> SketchBatch:
    """The paper's sampler: each step is drawn from the posterior given the prediction.

    Small steps make no difference between `labels`. In long steps the mean loses the uncertainty of the label and
    favors common kinds; a drawn label has the right distribution at any step length (docs/decisions/0004). The default
    is `drawn` where the process uses expected logits, else `mean`.
    """
    labels = labels or ("drawn" if process.reverse_logits == "expected" else "mean")
    clean = partial(draw_labels, process) if labels == "drawn" else None
    return sampling_loop(denoise, process, noise, options, posterior_weights, clean=clean)


@register_sampler("ddim")
def sample_ddim(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions, *, eta: float = 0.0
) -> SketchBatch:
    """DDIM (Song et al. 2021) on coordinates and logits together.

    `eta` scales the noise of the ancestral sampler; 0 is deterministic.
    """
    _check_eta(eta)
    return sampling_loop(denoise, process, noise, options, partial(_ddim_rule, eta=eta))


@register_sampler("dpm++")
def sample_dpm_solver_pp(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """DPM-Solver++(2M), Lu et al. 2022: deterministic, of second order in λ = ½ log SNR.

    A step is a DDIM step with the prediction extrapolated from the last two. Where λ is infinite, from pure noise and
    to the clean end, it is of first order.
    """
    return sampling_loop(denoise, process, noise, options, solver_weights)


@register_sampler("authors")
def sample_authors(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    *,
    prediction_weight: float = 2.0,
) -> SketchBatch:
    """The authors' sampler: `prediction_weight`·log ŷ_0 in the reverse mean, and the last prediction is the sample.

    The weight (1 is the paper's mean) replaces the process's own `reverse_logits`. Above 1 labels gain certainty and
    lose variety: it is no longer the reverse of the process.
    """
    if not prediction_weight > 0:
        raise ValueError(f"prediction_weight must be above zero, not {prediction_weight}")
    plain = replace(process, reverse_logits="log")

    def weighted(prediction: Prediction, _: Callable[[], Noise]) -> LogitBatch:
        clean = plain.clean(prediction)
        return LogitBatch(prediction_weight * clean.construction, prediction_weight * clean.kind, clean.params)

    return sampling_loop(denoise, process, noise, options, posterior_weights, clean=weighted, end_on_prediction=True)


@register_sampler("predictor_corrector")
def sample_predictor_corrector(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    *,
    eta: float = 1.0,
    order: Literal[1, 2] = 2,
    labels: Labels = "mean",
) -> SketchBatch:
    """Predictor-corrector with one evaluation a step, after the stochastic Adams methods (SA-Solver, Xue et al. 2023).

    Other samplers hold the prediction constant from t to s, so long steps give coordinates too little variance. Here
    the prediction at s, which the next step needs anyway, corrects the step as if the prediction had moved there in a
    straight line over λ = ½ log SNR.

    Args:
        eta: Scale of the noise of the ancestral sampler, on coordinates.
        order: The predictor uses the last prediction (1), or a line through the last two (2).
        labels: `drawn` from the prediction (docs/decisions/0004), or solved by DPM-Solver++ without noise (`mean`).
    """
    _check_eta(eta)
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, not {order}")
    return sampling_loop(
        denoise,
        process,
        noise,
        options,
        partial(predictor_weights, eta=eta, order=order),
        label_weights=posterior_weights if labels == "drawn" else solver_weights,
        clean=partial(draw_labels, process) if labels == "drawn" else None,
        correction=partial(corrector_weight, eta=eta),
    )


@register_sampler("restart")
def sample_restart(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """`sample_predictor_corrector`, then a second pass from moderate noise for sketches with a loose end.

    Which ends meet is decided at little noise, and partly by chance: sampled again from more noise, a profile may close
    (docs/results/quality.md). The second pass takes its steps from the first, so that both together cost as much as
    one. Sketches without a loose end keep the result of the first pass.
    """
    if not (options.steps is None or isinstance(options.steps, int)):
        raise SketchError("'restart' splits the steps between two passes: pass their number, or use another sampler")
    most = options.first_step(process.num_steps)
    steps = most if options.steps is None else options.steps
    restart_at = min(most, step_as_noisy_as(process, _RESTART_NOISE))
    first = round(_FIRST_PASS * steps)
    second = min(steps - first, restart_at)
    run = partial(sample_predictor_corrector, denoise, process)
    if second < _MIN_RESTART_STEPS:
        return run(noise, replace(options, steps=steps))
    report = _TwoPassReport(second / first, options.on_step)
    sketches = run(noise, replace(options, steps=first, on_step=report.first_pass))
    # The whole batch is sampled again, so that no sketch depends on the others in its batch.
    report.active = has_loose_end(sketches)
    # Restart no noisier than the variation began.
    start = options.start
    if start is None or start.t > restart_at:
        start = Start(restart_at, sketches.most_likely())
    second_options = replace(options, steps=second, start=start, on_step=report.second_pass)
    again = run(lambda draw: noise(_SECOND_PASS_DRAWS + draw), second_options)
    return _choose(report.active, again, sketches)


class _TwoPassReport:
    """Reports two passes as one; in the second, sketches that are not sampled again stay as they are."""

    def __init__(self, ratio: float, on_step: OnStep | None) -> None:
        self.ratio, self.on_step = ratio, on_step  # approximate length of the second pass over that of the first
        self.active: Bool[Tensor, " batch"]
        self.last: Progress

    def first_pass(self, progress: Progress) -> None:
        self.last = replace(progress, total=progress.total + round(self.ratio * progress.total))
        self._report(self.last)

    def second_pass(self, progress: Progress) -> None:
        batch = _choose(self.active, progress.batch, self.last.batch)
        number, total = self.last.number + progress.number, self.last.number + progress.total
        self._report(replace(progress, number=number, total=total, batch=batch, active=self.active))

    def _report(self, progress: Progress) -> None:
        if self.on_step is not None:
            self.on_step(progress)


def single_pass(sampler: str) -> str:
    """The sampler of a single pass: `restart` consists of passes of `predictor_corrector`."""
    return "predictor_corrector" if sampler == "restart" else sampler


def posterior_weights(level_s: Level, level_t: Level, _: Level) -> Weights:
    """Those of q(x_s | x_t, x_0)."""
    of_x_t, of_x0, std = gaussian.posterior_weights(level_s, level_t)
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def ddim_weights(level_s: Level, level_t: Level, eta: float) -> Weights:
    """Noise of `eta` times the posterior's deviation; the rest is kept from x_t. With eta = 1 it is the posterior."""
    alpha_ts, var_ts = gaussian.transition(level_s, level_t)
    std = eta * gaussian.root(var_ts * level_s.var / level_t.var)
    # √(var_s − std²)/√var_t, with the difference written out so that it does not cancel.
    kept = alpha_ts * level_s.var + (1 - eta**2) * var_ts
    of_x_t = gaussian.root(level_s.var * kept) / level_t.var
    of_x0 = gaussian.root(level_s.alpha_bar) - gaussian.root(level_t.alpha_bar) * of_x_t
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def _ddim_rule(level_s: Level, level_t: Level, _: Level, eta: float) -> Weights:
    return ddim_weights(level_s, level_t, eta)


def solver_weights(level_s: Level, level_t: Level, earlier: Level) -> Weights:
    """A DDIM step with x̂_0 replaced by x̂_0 + w·(x̂_0 − previous x̂_0)."""
    plain = ddim_weights(level_s, level_t, 0.0)
    beyond = extrapolation(level_s, level_t, earlier)
    return plain._replace(x0=plain.x0 * (1 + beyond), previous=-plain.x0 * beyond)


def predictor_weights(level_s: Level, level_t: Level, earlier: Level, eta: float, order: int = 2) -> Weights:
    """A DDIM step with `eta`; at order 2 the prediction goes on in λ as it went between the last two."""
    plain = ddim_weights(level_s, level_t, eta)
    if order == 1:
        return plain
    # Where `extrapolation` goes half a step on, the prediction itself would be a whole step further.
    beyond = 2 * extrapolation(level_s, level_t, earlier) * corrector_weight(level_s, level_t, eta)
    return plain._replace(x0=plain.x0 + beyond, previous=-beyond)


def corrector_weight(level_s: Level, level_t: Level, eta: float) -> Float[Tensor, " steps"]:
    """The weight of a prediction that grows from 0 at t to 1 at s, linearly in λ: about half of a constant one's.

    A constant one has √ᾱ_s·(1 − e^−κ), this one √ᾱ_s·(1 − (1 − e^−κ)/κ). Zero where λ is infinite: there the whole step
    is at the one end, or there is no prediction at the other.
    """
    signal = gaussian.root(level_s.alpha_bar)
    gained = ddim_weights(level_s, level_t, eta).x0 / signal
    usable = (level_t.alpha_bar > 0) & (level_s.var > 0) & (gained > 0)
    gained = torch.where(usable, gained, 0.5)
    return torch.where(usable, signal * (1 + gained / torch.log1p(-gained)), 0.0)


def extrapolation(level_s: Level, level_t: Level, earlier: Level) -> Tensor:
    """How far DPM-Solver++(2M) extrapolates the last two predictions.

    Zero where a step in λ is infinite, or where no prediction was made at a noisier level before.
    """
    lambda_s, lambda_t, lambda_earlier = (_half_log_snr(level) for level in (level_s, level_t, earlier))
    ahead, behind = lambda_s - lambda_t, lambda_t - lambda_earlier
    usable = ahead.isfinite() & behind.isfinite() & (behind > 0)
    return torch.where(usable, torch.where(usable, ahead, 0.0) / (2 * torch.where(usable, behind, 1.0)), 0.0)


def draw_labels(process: JointProcess, prediction: Prediction, noise: Callable[[], Noise]) -> LogitBatch:
    """A prediction with its labels drawn; parameters stay superposed by the probabilities of their kinds."""
    fresh = noise()
    construction = draw_label(prediction.construction, fresh.construction)
    kind = draw_label(prediction.kind, fresh.kind)
    drawn = LogitBatch.from_sketch(SketchBatch(construction, kind, prediction.params), process.label_smoothing)
    return drawn._replace(params=process.clean(prediction).params)


def _check_eta(eta: float) -> None:
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must lie in 0..1, not {eta}")


def _half_log_snr(level: Level) -> Tensor:
    """±inf at the ends. Set there, not computed, so that masked-out values have a finite gradient."""
    noise, clean = level.alpha_bar == 0, level.var == 0
    half = (level.alpha_bar.masked_fill(noise, 1.0).log() - level.var.masked_fill(clean, 1.0).log()) / 2
    return half.masked_fill(noise, -math.inf).masked_fill(clean, math.inf)


def _choose(mask: Bool[Tensor, " batch"], where_true: SketchBatch, where_false: SketchBatch) -> SketchBatch:
    at = mask[:, None, None]
    return SketchBatch(
        torch.where(at, where_true.construction, where_false.construction),
        torch.where(at, where_true.kind, where_false.kind),
        torch.where(at, where_true.params, where_false.params),
    )
