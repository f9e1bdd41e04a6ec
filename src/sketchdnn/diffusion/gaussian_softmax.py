"""Gaussian-Softmax diffusion of labels: Gaussian diffusion of logits, followed by a softmax.

A label y is a vector of D probabilities, a point of the simplex. A one-hot label contains zeros, which have no finite
logarithm. Therefore it is smoothed first: y' = k·y + (1 − k)/D. The factor k is the paper's `label_smoothing`. It is
the weight of the label, not of the uniform part: k = 1 means no smoothing, k = 0 the uniform distribution.

A `Level` is the noise level of a step: ᾱ_t and 1 − ᾱ_t. Step s is less noisy than step t: s < t. Labels such as
`eqn:discrete_forward_transition` are those of equations in the source of the SketchDNN paper (see docs/equations.md).

`GaussianSoftmax` is the distribution of a diffused label: the softmax of a Gaussian.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl
from torch.nn.functional import one_hot

from . import gaussian
from .gaussian import Level

# Probabilities, their logarithms up to a constant, and standard normal noise, along the last axis.
Label = Float[Tensor, "*rows cat"]
Logits = Float[Tensor, "*rows cat"]
LabelNoise = Float[Tensor, "*rows cat"]
# How `reverse_logits` computes the logits of a predicted label.
ReverseLogitsMethod = Literal["log", "2log", "expected"]
REVERSE_LOGITS_METHODS: tuple[ReverseLogitsMethod, ...] = get_args(ReverseLogitsMethod)

# Uniform numbers are clamped to [_TINY, 1 − _TINY], so that their logarithms are finite. These bounds correspond to
# ±7 standard deviations of the normal noise, which samples do not reach in practice.
_TINY = 1e-12


def smooth(y0: Label, label_smoothing: float) -> Label:
    """Smooth a label: y'_0 = k·y_0 + (1 − k)/D. With k = `label_smoothing` = 1 it is unchanged."""
    return label_smoothing * y0 + (1 - label_smoothing) / y0.shape[-1]


def diffuse(y0: Label, noise: LabelNoise, level_t: Level, label_smoothing: float) -> Label:
    """Compute y_t directly from a one-hot y_0, eqn:discrete_cumulative_transition."""
    return gaussian.diffuse(smooth(y0, label_smoothing).log(), noise, level_t).softmax(dim=-1)


def step_forward(y_s: Label, noise: LabelNoise, level_s: Level, level_t: Level) -> Label:
    """Compute y_t from the less noisy y_s, eqn:discrete_forward_transition. All entries of y_s must be positive."""
    return gaussian.step_forward(y_s.log(), noise, level_s, level_t).softmax(dim=-1)


def step_back(logits0: Logits, y_t: Label, noise: LabelNoise, level_s: Level, level_t: Level) -> Label:
    """Compute y_s from y_t and the logits of a (predicted) y_0, eqn:discrete_reverse_transition."""
    mean, std = gaussian.posterior(logits0, y_t.log(), level_s, level_t)
    return (mean + std * noise).softmax(dim=-1)


def draw_label(y0_hat: Label, noise: LabelNoise) -> Label:
    """Draw a one-hot label with the probabilities ŷ_0 by the Gumbel-max method.

    The standard normal `noise` is transformed to uniform and then to Gumbel noise.
    """
    label = (y0_hat.double().log() + _gumbel(noise)).argmax(dim=-1)
    return one_hot(label, y0_hat.shape[-1]).to(y0_hat)


def draw_label_with_gradient(logits: Logits, noise: LabelNoise) -> Label:
    """Draw a one-hot label from its logits; its gradient is that of a softmax (straight-through Gumbel-softmax).

    The values are those of `draw_label`. The gradient is that of softmax(logits + Gumbel noise), Jang et al. 2017.
    """
    gumbel = _gumbel(noise).to(logits)
    soft = (logits + gumbel).softmax(dim=-1)
    hard = one_hot(soft.argmax(dim=-1), logits.shape[-1]).to(soft)
    return hard + (soft - soft.detach())


def _gumbel(noise: LabelNoise) -> LabelNoise:
    """Gumbel noise from standard normal noise, in double precision."""
    uniform: Tensor = torch.special.ndtr(noise.double()).clamp(_TINY, 1 - _TINY)
    return -(-uniform.log()).log()


def reverse_logits(y0_hat: Label, label_smoothing: float, method: ReverseLogitsMethod) -> Logits:
    """Compute the logits of a predicted label ŷ_0 for the mean of the reverse step.

    Args:
        y0_hat: The predicted probabilities.
        label_smoothing: k of `smooth`.
        method: One of

            - `log` (the paper): the logarithm of the smoothed ŷ_0. The paper does not smooth here; without smoothing,
              a probability of zero gives an infinite logit.
            - `2log` (the authors' code): twice that.
            - `expected` (ours): the expectation of the logits of the smoothed one-hot label, if category c has
              probability ŷ_0[c]: Σ_c ŷ_0[c]·log y'_0(c). The posterior mean is linear in log y'_0, so this expectation
              is the correct input. The logarithm of an expectation, as in `log`, is biased even with a perfect network.
    """
    if method == "expected":
        # The two values of log y'_0 for a one-hot y_0: where y_0 is 0, and where it is 1.
        log_off = math.log((1 - label_smoothing) / y0_hat.shape[-1])
        log_on = math.log(label_smoothing + (1 - label_smoothing) / y0_hat.shape[-1])
        return log_off + (log_on - log_off) * y0_hat
    logits = smooth(y0_hat, label_smoothing).log()
    return 2 * logits if method == "2log" else logits


# `argmax_probs` integrates from −10 to 10 standard deviations. The normal probability outside is about 1e-23.
_INTEGRATION_LIMIT = 10.0


class GaussianSoftmax(Distribution):
    """GS(μ, σ²I): softmax(x) for x ~ N(μ, σ²I).

    Adding the same constant to all entries of `loc` does not change the distribution. `log_prob` is the density with
    respect to the first D − 1 probabilities. There is no closed formula for the mean E[softmax(x)].

    Args:
        loc: μ, the mean of the logits; the categories are the last axis.
        scale: σ, the standard deviation of the logits. A number, or a tensor that broadcasts against `loc`: shape
            (..., 1) for one σ per vector. The paper has one σ for all categories. A different σ for each category is
            allowed here; the paper's norm then becomes a norm weighted by 1/σ².

    >>> GaussianSoftmax(torch.zeros(3), 1.0).log_prob(torch.full((3,), 1 / 3)).isfinite()
    tensor(True)
    """

    arg_constraints = {"loc": constraints.real_vector, "scale": constraints.positive}  # noqa: RUF012 the base class declares no ClassVar
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor, scale: Tensor | float, validate_args: bool | None = None) -> None:
        if loc.ndim < 1 or loc.shape[-1] < 2:
            raise ValueError(f"loc must have at least two categories along its last axis, not shape {tuple(loc.shape)}")
        if not loc.is_floating_point():
            raise ValueError(f"loc must hold floating-point logits, not {loc.dtype}")
        scale = torch.as_tensor(scale, dtype=loc.dtype, device=loc.device)
        try:
            shape = torch.broadcast_shapes(loc.shape, scale.shape)  # type: ignore[no-untyped-call]
        except RuntimeError:
            shapes = f"scale of shape {tuple(scale.shape)} does not broadcast against loc of {tuple(loc.shape)}"
            raise ValueError(f"{shapes}; one scale per vector has the shape (..., 1)") from None
        self.loc, self.scale = loc.expand(shape), scale.expand(shape)
        super().__init__(self.loc.shape[:-1], self.loc.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GaussianSoftmax:
        """Expand the distribution to a larger batch, without copying."""
        new: GaussianSoftmax = self._get_checked_instance(GaussianSoftmax, _instance)  # type: ignore[no-untyped-call]
        shape = torch.Size(batch_shape) + self.event_shape
        new.loc, new.scale = self.loc.expand(shape), self.scale.expand(shape)
        super(GaussianSoftmax, new).__init__(torch.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw points of the simplex, differentiable in `loc` and `scale`.

        In float32 a probability can underflow to zero if logits differ by more than 87.
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        logits: Tensor = self.loc + self.scale * noise
        return logits.softmax(dim=-1)

    def log_prob(self, value: Float[Tensor, "*batch cat"]) -> Float[Tensor, "*batch"]:
        """Compute the logarithm of the paper's density: −½‖ỹ − μ‖²_⊥/σ² − log Z(σ) − Σ_c log y_c.

        y is `value`, ỹ = log y are its logits, μ is `loc` and σ is `scale`. ‖v‖_⊥ is the norm of v without its mean
        (see `_squared_norm_perp`). Z is the normalizer (see `_log_normalizer`).
        """
        if self._validate_args:
            self._validate_sample(value)
            if bool((value < torch.finfo(value.dtype).tiny).any()):
                raise ValueError("value has a probability that is zero or so small that its logit is not finite")
        logits = value.log()
        squared_distance = _squared_norm_perp(logits - self.loc, self.scale)
        return -(squared_distance / 2 + _log_normalizer(self.scale) + logits.sum(dim=-1))

    def argmax_probs(self, num_nodes: int = 128) -> Float[Tensor, "*batch cat"]:
        """Compute the probability of each category c to have the largest logit.

        P(argmax = c) = ∫ φ(z) Π_{j≠c} Φ((μ_c + σ_c z − μ_j)/σ_j) dz, where φ and Φ are the density and the cumulative
        distribution function of the standard normal. The integral is computed by the trapezoidal rule. It converges
        exponentially, because the integrand is smooth and tends to zero at both ends: if all σ are equal, 128 nodes
        are exact to rounding for up to 64 categories.
        """
        if num_nodes < 2:
            raise ValueError(f"num_nodes must be at least 2, not {num_nodes}")
        limit = _INTEGRATION_LIMIT
        z = torch.linspace(-limit, limit, num_nodes, dtype=self.loc.dtype, device=self.loc.device)
        # Axes: category c, node.
        logit = self.loc[..., :, None] + self.scale[..., :, None] * z
        # Axes: category c, other category j, node. The logit of c, standardized by the distribution of the logit of j.
        standardized = (logit[..., :, None, :] - self.loc[..., None, :, None]) / self.scale[..., None, :, None]
        is_same_category = torch.eye(self.event_shape[0], dtype=torch.bool, device=z.device)[..., None]
        # The logarithm of the probability that all other logits are smaller.
        log_prob_others = torch.special.log_ndtr(standardized).masked_fill(is_same_category, 0.0).sum(dim=-2)
        spacing = 2 * limit / (num_nodes - 1)
        return torch.exp(log_prob_others - z**2 / 2).sum(dim=-1) * (spacing / math.sqrt(2 * math.pi))


@register_kl(GaussianSoftmax, GaussianSoftmax)  # type: ignore[no-untyped-call, untyped-decorator]
def kl_gaussian_softmax(p: GaussianSoftmax, q: GaussianSoftmax) -> Float[Tensor, "*batch"]:
    """Compute KL(p ‖ q). If all scales are equal, it is ½‖μ_p − μ_q‖²_⊥/σ².

    Logits that differ by a constant (a shift) have the same softmax; otherwise softmax is one-to-one. So this is the KL
    divergence of two Gaussians in D − 1 dimensions: the logits without the direction of the shift.
    """
    if p.event_shape != q.event_shape:
        raise ValueError(f"p and q must have the same categories, not {p.event_shape[0]} and {q.event_shape[0]}")
    # tr(Σ_q⁻¹ Σ_p) in D − 1 dimensions: the sum of the ratios of variances, without the part of the shift.
    ratio = (p.scale / q.scale) ** 2
    trace = (ratio * (1 - _precision_weights(q.scale))).sum(dim=-1)
    variance_term: Tensor = (trace - (p.event_shape[0] - 1)) / 2 + _log_normalizer(q.scale) - _log_normalizer(p.scale)
    return _squared_norm_perp(p.loc - q.loc, q.scale) / 2 + variance_term


def _squared_norm_perp(v: Tensor, scale: Tensor) -> Tensor:
    """Compute ‖(v − shift)/σ‖², where the shift is the mean of v weighted by 1/σ².

    If all scales are equal, this is ‖v‖²_⊥/σ² of the paper.
    """
    shift = (_precision_weights(scale) * v).sum(dim=-1, keepdim=True)
    return (((v - shift) / scale) ** 2).sum(dim=-1)


def _log_normalizer(scale: Tensor) -> Tensor:
    """Compute log Z, the normalizer of the density. If all scales are equal, it is ½ log(D (2πσ²)^(D−1)).

    It is computed from log σ, because powers of σ could overflow.
    """
    log_scale = scale.log()
    log_total_precision = (-2 * log_scale).logsumexp(dim=-1)
    return (scale.shape[-1] - 1) / 2 * math.log(2 * math.pi) + log_scale.sum(dim=-1) + log_total_precision / 2


def _precision_weights(scale: Tensor) -> Tensor:
    """Compute σ_i⁻² / Σ_j σ_j⁻², the weights of a mean; 1/D if all scales are equal."""
    return (-2 * scale.log()).softmax(dim=-1)
