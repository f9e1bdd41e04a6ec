"""Gaussian-Softmax diffusion of labels: Gaussian diffusion of logits, projected to the simplex.

A label y is a point of the simplex. A one-hot label is smoothed first (y' = k·y + (1 − k)/D), so that its logarithm is
finite; k is `label_smoothing`. `GaussianSoftmax` is the distribution of a diffused label: the softmax of a Gaussian.
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

Label = Float[Tensor, "*rows cat"]
ReverseLogits = Literal["log", "2log", "expected"]
REVERSE_LOGITS: tuple[ReverseLogits, ...] = get_args(ReverseLogits)

# Keeps the logarithm of a probability finite: beyond the range of normal noise of 32 bits.
_TINY = 1e-12


def smooth(y0: Label, label_smoothing: float) -> Label:
    """y'_0 = k·y_0 + (1 − k)/D."""
    return label_smoothing * y0 + (1 - label_smoothing) / y0.shape[-1]


def diffuse(y0: Label, noise: Label, level_t: Level, label_smoothing: float) -> Label:
    """y_t from one-hot y_0 in one shot, eqn:discrete_cumulative_transition."""
    return gaussian.diffuse(smooth(y0, label_smoothing).log(), noise, level_t).softmax(dim=-1)


def step_forward(y_s: Label, noise: Label, level_s: Level, level_t: Level) -> Label:
    """y_t from y_s, eqn:discrete_forward_transition; y_s has no zeros."""
    return gaussian.step_forward(y_s.log(), noise, level_s, level_t).softmax(dim=-1)


def step_back(logits0: Label, y_t: Label, noise: Label, level_s: Level, level_t: Level) -> Label:
    """y_s from y_t and the logits of a (predicted) y_0, eqn:discrete_reverse_transition."""
    mean, std = gaussian.posterior(logits0, y_t.log(), level_s, level_t)
    return (mean + std * noise).softmax(dim=-1)


def draw_label(y0_hat: Label, noise: Label) -> Label:
    """A one-hot label with the probabilities ŷ_0; `noise` is standard normal (Gumbel-max)."""
    uniform = torch.special.ndtr(noise.double()).clamp(_TINY, 1 - _TINY)
    gumbel = -(-uniform.log()).log()
    label = (y0_hat.double().log() + gumbel).argmax(dim=-1)
    return one_hot(label, y0_hat.shape[-1]).to(y0_hat)


def reverse_logits(y0_hat: Label, label_smoothing: float, method: ReverseLogits) -> Label:
    """The logits of a predicted label that go into the reverse mean.

    `log` (paper): log of the smoothed prediction. Departs from the paper, which smooths nothing here: a certain
    prediction would be infinite. `2log` (authors): twice that. `expected` (ours): Σ_c ŷ_0[c]·log y'_0(c), the
    expectation that the posterior mean, linear in log y'_0, needs; the log of the expectation is biased even with a
    perfect network.
    """
    if method == "expected":
        low = math.log((1 - label_smoothing) / y0_hat.shape[-1])
        high = math.log(label_smoothing + (1 - label_smoothing) / y0_hat.shape[-1])
        return low + (high - low) * y0_hat
    logits = smooth(y0_hat, label_smoothing).log()
    return 2 * logits if method == "2log" else logits


# Where the quadrature of `argmax_probs` ends, in standard deviations: beyond it lies 1e-23 of a normal.
_REACH = 10.0


class GaussianSoftmax(Distribution):
    """GS(μ, σ²I): softmax(x) for x ~ N(μ, σ²I).

    `scale` broadcasts against `loc`: a number for all, (..., 1) for one a vector. The paper has one σ for all
    categories; with one each, its norm becomes a weighted norm, which reduces to it. Adding a constant
    to `loc` changes nothing.

    The density is with respect to the first D − 1 probabilities. It has no closed mean: E[softmax(x)] is an integral.

    >>> GaussianSoftmax(torch.zeros(3), 1.0).log_prob(torch.full((3,), 1 / 3)).isfinite()
    tensor(True)
    """

    arg_constraints = {"loc": constraints.real_vector, "scale": constraints.positive}  # noqa: RUF012 torch declares it so
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
            raise ValueError(
                f"scale of shape {tuple(scale.shape)} does not broadcast against loc of shape {tuple(loc.shape)}; "
                "one scale a vector has the shape (..., 1)"
            ) from None
        self.loc, self.scale = loc.expand(shape), scale.expand(shape)
        super().__init__(self.loc.shape[:-1], self.loc.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GaussianSoftmax:
        """The same distribution for a larger batch, without copying."""
        new: GaussianSoftmax = self._get_checked_instance(GaussianSoftmax, _instance)  # type: ignore[no-untyped-call]
        shape = torch.Size(batch_shape) + self.event_shape
        new.loc, new.scale = self.loc.expand(shape), self.scale.expand(shape)
        super(GaussianSoftmax, new).__init__(torch.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Points of the simplex, differentiable in `loc` and `scale`.

        In float32 a probability underflows to zero when logits are more than 87 apart.
        """
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        logits: Tensor = self.loc + self.scale * noise
        return logits.softmax(dim=-1)

    def log_prob(self, value: Float[Tensor, "*batch cat"]) -> Float[Tensor, "*batch"]:
        """The paper's density, −½‖ỹ − μ′‖²_⊥/σ² − log Z(σ) − Σ log y, in logits throughout."""
        if self._validate_args:
            self._validate_sample(value)
            if bool((value < torch.finfo(value.dtype).tiny).any()):
                raise ValueError("value must have no probability that is zero or too small for its logit to be finite")
        logits = value.log()
        distance = _squared_norm_perp(logits - self.loc, self.scale)
        return -(distance / 2 + _log_normalizer(self.scale) + logits.sum(dim=-1))

    def argmax_probs(self, num_nodes: int = 128) -> Float[Tensor, "*batch cat"]:
        """P(argmax = c) = ∫ φ(z) Π_{j≠c} Φ((μ_c + σ_c z − μ_j)/σ_j) dz, by the trapezium rule.

        For an integrand that is smooth and dies out at both ends that rule converges exponentially: with one σ, 128
        nodes are exact to rounding for up to 64 categories.
        """
        if num_nodes < 2:
            raise ValueError(f"num_nodes must be at least 2, not {num_nodes}")
        z = torch.linspace(-_REACH, _REACH, num_nodes, dtype=self.loc.dtype, device=self.loc.device)
        winner = self.loc[..., :, None] + self.scale[..., :, None] * z  # category, node
        # category, rival, node
        ahead = (winner[..., :, None, :] - self.loc[..., None, :, None]) / self.scale[..., None, :, None]
        itself = torch.eye(self.event_shape[0], dtype=torch.bool, device=z.device)[..., None]
        log_wins = torch.special.log_ndtr(ahead).masked_fill(itself, 0.0).sum(dim=-2)
        spacing = 2 * _REACH / (num_nodes - 1)
        return torch.exp(log_wins - z**2 / 2).sum(dim=-1) * (spacing / math.sqrt(2 * math.pi))


@register_kl(GaussianSoftmax, GaussianSoftmax)  # type: ignore[no-untyped-call, untyped-decorator]
def kl_gaussian_softmax(p: GaussianSoftmax, q: GaussianSoftmax) -> Float[Tensor, "*batch"]:
    """KL(p ‖ q). With equal scales it is ½‖μ_p − μ_q‖²_⊥/σ².

    Softmax is one-to-one on logits up to a shift, so this is the KL of two Gaussians in the D − 1 other directions.
    """
    if p.event_shape != q.event_shape:
        raise ValueError(f"p and q must have as many categories, not {p.event_shape[0]} and {q.event_shape[0]}")
    try:
        torch.broadcast_shapes(p.batch_shape, q.batch_shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise ValueError(
            f"p and q of batches {tuple(p.batch_shape)} and {tuple(q.batch_shape)} do not broadcast"
        ) from None
    # tr(Σ_q⁻¹ Σ_p) there: each direction's ratio of variances, less the share of the shift.
    ratio = (p.scale / q.scale) ** 2
    trace = (ratio * (1 - _precision_share(q.scale))).sum(dim=-1)
    spread: Tensor = (trace - (p.event_shape[0] - 1)) / 2 + _log_normalizer(q.scale) - _log_normalizer(p.scale)
    return _squared_norm_perp(p.loc - q.loc, q.scale) / 2 + spread


def _squared_norm_perp(v: Tensor, scale: Tensor) -> Tensor:
    """‖v/σ‖² without the part of v that is a shift: ‖v‖²_⊥/σ² of the paper when the scales are equal."""
    shift = (_precision_share(scale) * v).sum(dim=-1, keepdim=True)
    return (((v - shift) / scale) ** 2).sum(dim=-1)


def _log_normalizer(scale: Tensor) -> Tensor:
    """log Z: ½ log(D (2πσ²)^(D−1)) when the scales are equal; written so that no power of σ overflows."""
    log_scale = scale.log()
    total_precision = (-2 * log_scale).logsumexp(dim=-1)
    return (scale.shape[-1] - 1) / 2 * math.log(2 * math.pi) + log_scale.sum(dim=-1) + total_precision / 2


def _precision_share(scale: Tensor) -> Tensor:
    """σ_i⁻² / Σ_j σ_j⁻²: 1/D when the scales are equal."""
    return (-2 * scale.log()).softmax(dim=-1)
