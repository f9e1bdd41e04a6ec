"""Our SketchDNN: the set denoiser, preconditioned, reversing the joint process with the expected logit."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion import precondition
from sketchdnn.diffusion.loss import Loss, our_loss
from sketchdnn.diffusion.process import JointProcess, Noise, our_process
from sketchdnn.networks.set_denoiser import NUM_GIVEN_FLAGS, SetDenoiser, SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

# Keeps the logarithm of a noise level finite at both ends of the schedule.
_FLOOR = 1e-8
# A certain label as logits: far enough that its cross entropy vanishes, near enough that no arithmetic overflows.
_CERTAIN = 30.0


@dataclass(frozen=True, slots=True)
class SketchDNNConfig:
    """`data_std` is the standard deviation of the coordinates in the training set, in a box of [−1, 1]."""

    network: SetDenoiserConfig = field(default_factory=SetDenoiserConfig)
    num_steps: int = 2000
    label_smoothing: float = 0.99
    data_std: float = 0.55
    arc_scalar: layout.ArcScalar = "sweep"


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """Which labels and parameters of each row are known."""

    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim"]

    def stacked(self) -> Bool[Tensor, "batch prim 3"]:
        return torch.stack([self.construction, self.kind, self.params], dim=-1)


class SketchDNN(nn.Module):
    """A denoiser of the joint process: `denoise` for the samplers, `loss` for training."""

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__()
        self.config = config
        self.network = SetDenoiser(config.network)
        self.process: JointProcess = our_process(config.num_steps, config.label_smoothing)

    def to_device(self, device: torch.device | str) -> SketchDNN:
        """Weights and schedules both."""
        self.to(device)
        self.process = self.process.to(device)
        return self

    def denoise(self, batch_t: SketchBatch, t: Int[Tensor, " batch"], given: GivenFlags | None = None) -> Prediction:
        """The clean sketch, as far as the network can tell. Given parts of `batch_t` are shown clean."""
        level = self.process.params.at(t)
        scaled = precondition.scale_input(batch_t.params, level, self.config.data_std)
        if given is None:
            flags = scaled.new_zeros((*scaled.shape[:2], NUM_GIVEN_FLAGS))
        else:
            scaled = torch.where(given.params[..., None], batch_t.params, scaled)
            flags = given.stacked().to(scaled.dtype)
        noise = torch.log((level.var + _FLOOR) / (level.alpha_bar + _FLOOR)).to(scaled.dtype) / 6
        raw = self.network(SketchBatch(batch_t.construction, batch_t.kind, scaled), noise, flags)
        params = precondition.denoised(batch_t.params, raw.params, level, self.config.data_std)
        return Prediction(raw.construction_logits, raw.kind_logits, params)

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, given: GivenFlags) -> Loss:
        """Loss of predicting x0 from its noisy self; what is given is shown clean and costs nothing."""
        batch_t = _where(given, x0, self.process.diffuse(x0, t, noise))
        prediction = self.denoise(batch_t, t, given)
        known = Prediction(
            torch.where(given.construction[..., None], _CERTAIN * x0.construction, prediction.construction_logits),
            torch.where(given.kind[..., None], _CERTAIN * x0.kind, prediction.kind_logits),
            torch.where(given.params[..., None], x0.params, prediction.params),
        )
        return our_loss(known, x0, self.process.params.at(t), self.config.data_std)


def draw_given(uniform: Float[Tensor, "batch number"], kind: Int[Tensor, "batch prim"], share: float) -> GivenFlags:
    """What is given in training: nothing, but for a `share` of sketches some rows, all kinds, or which rows are empty.

    Takes 3 + rows uniform numbers a sketch.
    """
    chance, task, part = uniform[:, 0:1], uniform[:, 1:2], uniform[:, 2:3]
    some = chance < share
    rows = some & (task < 0.4) & (uniform[:, 3:] < part)
    kinds = some & (task >= 0.4) & (task < 0.7)
    empty = some & (task >= 0.7) & (kind == layout.NONE)
    return GivenFlags(construction=rows | empty, kind=rows | kinds | empty, params=rows | empty)


def _where(given: GivenFlags, clean: SketchBatch, noisy: SketchBatch) -> SketchBatch:
    return SketchBatch(
        torch.where(given.construction[..., None], clean.construction, noisy.construction),
        torch.where(given.kind[..., None], clean.kind, noisy.kind),
        torch.where(given.params[..., None], clean.params, noisy.params),
    )
