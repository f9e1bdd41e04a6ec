"""Exact denoisers of distributions in closed form: references for samplers and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.gaussian import Level, like, root
from sketchdnn.diffusion.process import Denoiser, JointProcess, check_simplex
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant


def oracle(x0: SketchBatch) -> Denoiser:
    """A denoiser that returns the sketch at every step."""

    def denoise(batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction:
        return Prediction(x0.construction.log(), x0.kind.log(), x0.params)

    return denoise


@dataclass(frozen=True, slots=True)
class RowTarget:
    """Independent rows: a random kind, construction with one probability (never in an empty row), and each parameter
    of that kind from N(0, std²); zeros elsewhere, as in a sketch."""

    kind: tuple[float, ...]
    construction: float = 0.0
    std: float = 0.0

    def __post_init__(self) -> None:
        check_simplex(torch.tensor(self.kind), "kind")
        if len(self.kind) != layout.NUM_KINDS or not 0 <= self.construction <= 1 or self.std < 0:
            raise ValueError(f"kind has {layout.NUM_KINDS} chances, construction is one, std is not negative: {self}")

    def sample(
        self, batch: int, rows: int = layout.MAX_PRIMITIVES, *, generator: torch.Generator, dtype: torch.dtype
    ) -> SketchBatch:
        """Clean rows of this target."""
        chances = torch.tensor(self.kind, dtype=torch.float64)
        kind = torch.multinomial(chances, batch * rows, replacement=True, generator=generator).reshape(batch, rows)
        aid = torch.rand(batch, rows, generator=generator) < self.construction
        aid &= kind != layout.NONE
        params = self.std * torch.randn(batch, rows, layout.NUM_PARAMS, generator=generator, dtype=dtype)
        return SketchBatch(
            one_hot(aid.long(), layout.NUM_CONSTRUCTION).to(dtype),
            one_hot(kind, layout.NUM_KINDS).to(dtype),
            params * relevant(kind),
        )

    def denoiser(self, process: JointProcess) -> Denoiser:
        """E[X_0 | X_t], exactly: Bayes' rule over kind and construction, with every column as evidence.

        Parameters are those of each kind were it the true one, if the process superposes them; else their expectation.
        """
        log_prior = torch.tensor(self.kind, dtype=torch.float64).log()[:, None] + self._log_construction()

        def denoise(batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction:
            at, x_t = process.levels(t), batch_t.params
            prior = log_prior.to(x_t)
            columns = one_hot(torch.tensor(layout.KIND_OF_PARAM), layout.NUM_KINDS).to(x_t)
            kind = _label_evidence(batch_t.kind, at.kind, process.label_smoothing)
            if self.std > 0:
                kind = kind + _spread_evidence(x_t, at.params, self.std) @ columns
            construction = _label_evidence(batch_t.construction, at.construction, process.label_smoothing)
            joint = prior + kind[..., :, None] + construction[..., None, :]
            kind_logits, construction_logits = joint.logsumexp(dim=-1), joint.logsumexp(dim=-2)
            gain = root(at.params.alpha_bar) * self.std**2 / (at.params.alpha_bar * self.std**2 + at.params.var)
            params = like(gain, x_t) * x_t
            if process.superposition == "none":
                params = params * (kind_logits.softmax(dim=-1) @ columns.T)
            return Prediction(construction_logits, kind_logits, params)

        return denoise

    def _log_construction(self) -> Float[Tensor, "kind 2"]:
        chance = torch.full((layout.NUM_KINDS,), self.construction, dtype=torch.float64)
        chance[layout.NONE] = 0.0
        return torch.stack([1 - chance, chance], dim=-1).log()


def _label_evidence(y_t: Tensor, level: Level, label_smoothing: float) -> Float[Tensor, "batch prim cat"]:
    """log p(y_t | label c), up to what all labels share, from the Gaussian-Softmax density.

    The logits of all labels are equally long and each is high in its own place, so log y_t[c] tells them apart.
    """
    low = (1 - label_smoothing) / y_t.shape[-1]
    height = math.log((label_smoothing + low) / low)
    return like(height * root(level.alpha_bar) / level.var, y_t) * y_t.log()


def _spread_evidence(x_t: Tensor, level: Level, std: float) -> Float[Tensor, "batch prim 14"]:
    """log p(x_t | this column is in use) − log p(x_t | it is zero)."""
    var_used = level.var + level.alpha_bar * std**2
    return (x_t**2 * like(1 / level.var - 1 / var_used, x_t) - like(torch.log(var_used / level.var), x_t)) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over samples and its standard error."""

    mean: float
    standard_error: float
    count: int


def estimate(values: Float[Tensor, " batch"]) -> Estimate:
    """The mean of independent values."""
    values = values.double()
    return Estimate(float(values.mean()), float(values.std()) / math.sqrt(len(values)), len(values))


def entropy(probabilities: tuple[float, ...]) -> float:
    """In nats."""
    return -sum(p * math.log(p) for p in probabilities if p > 0)
