"""The samplers: functions that turn noise into sketches by repeated denoising.

Each transition computes the next state as a weighted sum of the current state, the predictions of the clean sketch and
noise. It does so for the coordinates and for the logits of the labels, which have separate noise schedules. The
samplers differ in the weights. All run `sampling_loop` once, except `sample_restart`, which runs it twice.

Symbols: a transition goes from level t (the current state, noisier) to level s (the next state). `earlier` is the level
at which the previous prediction was made. x̂_0 is the prediction of the clean sketch, and λ = ½ log SNR.

"The paper" is SketchDNN (docs/equations.md); "the authors' code" is the implementation that they published.
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
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant
from sketchdnn.representation.loose import has_loose_end

from . import gaussian
from .flow import expected_x0
from .gaussian import Level
from .gaussian_softmax import draw_label
from .noise import NoiseSource
from .process import Denoiser, JointProcess, LogitBatch, Noise, choose
from .sampling import FEW_STEP, OnStep, Progress, SamplingOptions, Start, Weights, register_sampler, sampling_loop
from .timesteps import step_as_noisy_as

# How a predicted label distribution enters a step: as its (expected or log) logit, or as one label sampled from it.
LabelEstimate = Literal["logit", "sampled"]

# Constants of `sample_restart`.
# The fraction of all steps that the first pass takes.
_FIRST_PASS_FRACTION = 0.72
# The standard deviation of the noise that the second pass starts from. At this level x_t = 0.8·x_0 + 0.6·ε, a
# noise-to-signal ratio of 0.75; the larger side of a sketch is 2. Most of the sketch is determined at this level, but
# not yet which ends meet.
_RESTART_NOISE = 0.6
# The smallest number of steps of a second pass; fewer steps close no profile.
_MIN_RESTART_STEPS = 4
# Added to the draw number in the second pass, so that the passes never share noise.
_SECOND_PASS_DRAW_OFFSET = 1 << 20


@register_sampler("ancestral")
def sample_ancestral(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    *,
    labels: LabelEstimate | None = None,
) -> SketchBatch:
    """Sample each state from the posterior q(x_s | x_t, x̂_0), as the paper does.

    Args:
        labels: With short steps, both choices give the same distribution. With long steps, `logit` loses the
            uncertainty of the label and favors common kinds, while `sampled` keeps the right distribution
            (docs/decisions/0004). The default is `sampled` if the process uses expected logits, else `logit`.
    """
    labels = labels or ("sampled" if process.reverse_logits == "expected" else "logit")
    estimate_x0 = partial(sample_labels, process) if labels == "sampled" else None
    return sampling_loop(denoise, process, noise, options, posterior_weights, estimate_x0=estimate_x0)


@register_sampler("ddim")
def sample_ddim(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions, *, eta: float = 0.0
) -> SketchBatch:
    """Sample by DDIM (Song et al. 2021), for coordinates and for logits of labels.

    Args:
        eta: Factor of the noise: 1 is the noise of the ancestral sampler, 0 is deterministic.
    """
    _check_eta(eta)
    return sampling_loop(denoise, process, noise, options, lambda s, t, _: ddim_weights(s, t, eta))


@register_sampler("dpm++")
def sample_dpm_solver_pp(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """Sample by DPM-Solver++(2M) (Lu et al. 2022): deterministic, of second order in λ = ½ log SNR.

    A step is a DDIM step with an extrapolated prediction: the line through the current and the previous prediction,
    continued to the middle of the step. The first and the last step are plain DDIM steps, as λ is infinite for pure
    noise and for a clean sketch.
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
    """Sample as the authors' code does: multiply the predicted log-probabilities, and return the final prediction.

    The posterior mean takes `prediction_weight`·log ŷ_0 for the labels, whatever `process.reverse_logits` is.

    Args:
        prediction_weight: 1 is the posterior mean of the paper. Above 1, labels are more certain and less varied, and
            the sampler no longer reverses the diffusion process.
    """
    if not prediction_weight > 0:
        raise ValueError(f"prediction_weight must be greater than 0, not {prediction_weight}")
    log_process = replace(process, reverse_logits="log")

    def weighted_x0(prediction: Prediction, _: Callable[[], Noise]) -> LogitBatch:
        x0 = log_process.x0_logits(prediction)
        return LogitBatch(prediction_weight * x0.construction, prediction_weight * x0.kind, x0.params)

    return sampling_loop(
        denoise, process, noise, options, posterior_weights, estimate_x0=weighted_x0, end_on_prediction=True
    )


@register_sampler("predictor_corrector")
def sample_predictor_corrector(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    *,
    eta: float = 1.0,
    labels: LabelEstimate = "logit",
) -> SketchBatch:
    """Sample by a predictor-corrector method with one network evaluation per step.

    It follows the stochastic Adams methods (SA-Solver, Xue et al. 2023). Other samplers treat the prediction as
    constant from t to s; with long steps the coordinates then get too little variance. Here the prediction made at s
    corrects the coordinates of the step from t to s: the corrected step assumes that the prediction changed linearly in
    λ = ½ log SNR. The next step needs the prediction at s anyway, so the correction costs no evaluation.

    Args:
        eta: Factor of the noise on coordinates; 1 is the noise of the ancestral sampler.
        labels: `sampled` samples labels and takes posterior steps (docs/decisions/0004). `logit` takes the steps of
            DPM-Solver++, without noise.
    """
    _check_eta(eta)
    weights, correction = partial(predictor_weights, eta=eta), partial(corrector_weight, eta=eta)
    run = partial(sampling_loop, denoise, process, noise, options, weights, correction=correction)
    if labels == "sampled":
        return run(label_weights=posterior_weights, estimate_x0=partial(sample_labels, process))
    return run(label_weights=solver_weights)


@register_sampler("restart")
def sample_restart(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """Run `sample_predictor_corrector`, then sample sketches with a loose end again from a moderate noise level.

    A loose end is an end of a line or arc that meets no other end. Which ends meet is decided at low noise levels,
    partly at random. So a second pass from a higher noise level may close the profile (docs/results/quality.md). The
    two passes share the given number of steps: together they cost as much as one pass with all steps. Sketches without
    a loose end keep the result of the first pass.
    """
    if not (options.steps is None or isinstance(options.steps, int)):
        raise SketchError("the sampler 'restart' has two passes: pass a number of steps, or use another sampler")
    max_steps = options.first_step(process.num_steps)
    num_steps = max_steps if options.steps is None else options.steps
    restart_t = min(max_steps, step_as_noisy_as(process, _RESTART_NOISE))
    first_steps = round(_FIRST_PASS_FRACTION * num_steps)
    second_steps = min(num_steps - first_steps, restart_t)
    sample = partial(sample_predictor_corrector, denoise, process)
    if second_steps < _MIN_RESTART_STEPS:
        return sample(noise, replace(options, steps=num_steps))
    report = _TwoPassReport(second_steps / first_steps, options.on_step)
    sketches = sample(noise, replace(options, steps=first_steps, on_step=report.first_pass))
    report.resampled_mask = has_loose_end(sketches)
    # When generating variations of a given sketch at a lower noise level than the restart level, the second pass starts
    # from that sketch and level again.
    start = options.start
    if start is None or start.t > restart_t:
        start = Start(restart_t, sketches.most_likely())
    second_options = replace(options, steps=second_steps, start=start, on_step=report.second_pass)
    # The whole batch is sampled again, even sketches without a loose end, so that no result depends on the other
    # sketches of the batch.
    resampled = sample(lambda draw: noise(_SECOND_PASS_DRAW_OFFSET + draw), second_options)
    return choose([report.resampled_mask[:, None, None]] * 3, resampled, sketches)


@register_sampler(FEW_STEP)
def sample_few_step(
    denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions, *, eta: float = 1.0
) -> SketchBatch:
    """Sample with a student of distillation (docs/few_steps.md), in 1 to 8 steps. Labels end as one-hot.

    Args:
        denoise: The student: a function of the state, its step t and the next step s.
        process: The joint process.
        noise: The source of noise.
        options: The options of the run.
        eta: 0 for the student of a flow map, which takes deterministic steps with its mean prediction. 1 for a student
            that generates clean sketches: a step samples the labels, keeps the parameters of these kinds, and goes on
            from the posterior q(x_s | x_t, x_0).
    """
    _check_eta(eta)
    return sampling_loop(
        denoise,
        process,
        noise,
        options,
        lambda s, t, _: ddim_weights(s, t, eta),
        estimate_x0=partial(sample_rows, process)
        if eta > 0
        else lambda prediction, _: expected_x0(process, prediction),
        two_time=True,
        end_one_hot=True,
    )


class _TwoPassReport:
    """Reports the progress of two passes as that of one.

    During the second pass, it reports the result of the first pass for sketches that are not sampled again.
    """

    def __init__(self, steps_ratio: float, on_step: OnStep | None) -> None:
        self.steps_ratio = steps_ratio  # steps of the second pass / steps of the first pass, approximately
        self.on_step = on_step or (lambda _: None)  # the callback of the caller
        self.resampled_mask: Bool[Tensor, " batch"]  # sketches that the second pass replaces; set after the first pass
        self.previous: Progress  # the latest report of the first pass

    def first_pass(self, progress: Progress) -> None:
        self.previous = replace(progress, total=progress.total + round(self.steps_ratio * progress.total))
        self.on_step(self.previous)

    def second_pass(self, progress: Progress) -> None:
        batch = choose([self.resampled_mask[:, None, None]] * 3, progress.batch, self.previous.batch)
        number, total = self.previous.number + progress.number, self.previous.number + progress.total
        self.on_step(replace(progress, number=number, total=total, batch=batch, active=self.resampled_mask))


def single_pass(sampler: str) -> str:
    """Return the name of the sampler that each pass runs: `predictor_corrector` for `restart`, else the name itself."""
    return "predictor_corrector" if sampler == "restart" else sampler


def posterior_weights(level_s: Level, level_t: Level, _: Level) -> Weights:
    """Return the weights that sample from the posterior q(x_s | x_t, x_0)."""
    of_x_t, of_x0, std = gaussian.posterior_weights(level_s, level_t)
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def ddim_weights(level_s: Level, level_t: Level, eta: float) -> Weights:
    """Return the weights of a DDIM step.

    The noise is `eta` times the standard deviation of the posterior. The remaining variance of x_s comes from the noise
    in x_t. With eta = 1 the step samples from the posterior.
    """
    alpha_ts, var_ts = gaussian.transition(level_s, level_t)
    std = eta * gaussian.root(var_ts * level_s.var / level_t.var)
    # The weight of x_t is √(var_s − std²)/√var_t. The difference is written as var_s·remaining_var/var_t, to avoid
    # catastrophic cancellation.
    remaining_var = alpha_ts * level_s.var + (1 - eta**2) * var_ts
    of_x_t = gaussian.root(level_s.var * remaining_var) / level_t.var
    of_x0 = gaussian.root(level_s.alpha_bar) - gaussian.root(level_t.alpha_bar) * of_x_t
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def solver_weights(level_s: Level, level_t: Level, earlier: Level) -> Weights:
    """Return the weights of a DPM-Solver++(2M) step.

    It is a DDIM step with x̂_0 + w·(x̂_0 − previous x̂_0) in place of x̂_0, where w is the `extrapolation`.
    """
    ddim = ddim_weights(level_s, level_t, 0.0)
    w = extrapolation(level_s, level_t, earlier)
    return ddim._replace(x0=ddim.x0 * (1 + w), previous=-ddim.x0 * w)


def predictor_weights(level_s: Level, level_t: Level, earlier: Level, eta: float) -> Weights:
    """Return the weights of the predictor: a step with the noise of DDIM with `eta`, before the correction.

    The prediction changes linearly in λ over the step, at the rate from the previous to the current
    prediction.
    """
    ddim = ddim_weights(level_s, level_t, eta)
    # `extrapolation` returns r/2 (midpoint of the step), while `corrector_weight` needs the change over the whole step,
    # r; hence the factor 2.
    change = 2 * extrapolation(level_s, level_t, earlier) * corrector_weight(level_s, level_t, eta)
    return ddim._replace(x0=ddim.x0 + change, previous=-change)


def corrector_weight(level_s: Level, level_t: Level, eta: float) -> Float[Tensor, " steps"]:
    """Return the weight of a change of the prediction that grows linearly in λ, from 0 at t to 1 at s.

    In a DDIM step a constant prediction has the weight √ᾱ_s·(1 − e^−κ). This defines κ: it is λ_s − λ_t for eta = 0,
    and twice that for eta = 1. A prediction that grows linearly from 0 to 1 has the weight √ᾱ_s·(1 − (1 − e^−κ)/κ),
    about half of it in a short step. The weight is 0 if λ is infinite at s or t: no correction is possible there.
    """
    signal = gaussian.root(level_s.alpha_bar)
    one_minus_exp = ddim_weights(level_s, level_t, eta).x0 / signal  # 1 − e^−κ
    usable = (level_t.alpha_bar > 0) & (level_s.var > 0) & (one_minus_exp > 0)
    # 0.5 is a dummy value that keeps the masked-out results, and their gradients, finite.
    one_minus_exp = torch.where(usable, one_minus_exp, 0.5)
    return torch.where(usable, signal * (1 + one_minus_exp / torch.log1p(-one_minus_exp)), 0.0)


def extrapolation(level_s: Level, level_t: Level, earlier: Level) -> Tensor:
    """Return w = r/2, the weight of (x̂_0 − previous x̂_0) in DPM-Solver++(2M).

    r = (λ_s − λ_t) / (λ_t − λ_earlier) is the length of the step relative to the previous one. The result is 0 if one
    of the two lengths is infinite, or if no prediction was made at a noisier level before.
    """
    lambda_s, lambda_t, lambda_earlier = (_half_log_snr(level) for level in (level_s, level_t, earlier))
    next_step, previous_step = lambda_s - lambda_t, lambda_t - lambda_earlier
    usable = next_step.isfinite() & previous_step.isfinite() & (previous_step > 0)
    # The dummy values 0 and 1 keep the masked-out results, and their gradients, finite.
    numerator = torch.where(usable, next_step, 0.0)
    return torch.where(usable, numerator / (2 * torch.where(usable, previous_step, 1.0)), 0.0)


def sample_labels(process: JointProcess, prediction: Prediction, noise: Callable[[], Noise]) -> LogitBatch:
    """Return x̂_0 with labels sampled from the predicted distributions.

    The parameters are those of `process.x0_logits`: combined by the predicted probabilities of the kinds, not by the
    sampled kind.
    """
    fresh = noise()
    construction = draw_label(prediction.construction, fresh.construction)
    kind = draw_label(prediction.kind, fresh.kind)
    params = process.x0_logits(prediction).params
    return LogitBatch.from_sketch(SketchBatch(construction, kind, params), process.label_smoothing)


def sample_rows(process: JointProcess, prediction: Prediction, noise: Callable[[], Noise]) -> LogitBatch:
    """Return x̂_0 as a clean sketch: sampled labels, and the parameters of the sampled kind only."""
    fresh = noise()
    construction = draw_label(prediction.construction, fresh.construction)
    kind = draw_label(prediction.kind, fresh.kind)
    params = prediction.params * relevant(kind.argmax(dim=-1))
    return LogitBatch.from_sketch(SketchBatch(construction, kind, params), process.label_smoothing)


def _check_eta(eta: float) -> None:
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must be between 0 and 1, not {eta}")


def _half_log_snr(level: Level) -> Tensor:
    """Return λ = ½ log SNR: −inf for pure noise, +inf for a clean state.

    The infinite values are filled in, not computed, so that masked-out values have a finite gradient.
    """
    is_noise, is_clean = level.alpha_bar == 0, level.var == 0
    half = (level.alpha_bar.masked_fill(is_noise, 1.0).log() - level.var.masked_fill(is_clean, 1.0).log()) / 2
    return half.masked_fill(is_noise, -math.inf).masked_fill(is_clean, math.inf)
