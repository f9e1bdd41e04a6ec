"""A sampler that corrects each step by what the network says where it arrived, at no further evaluation.

A step of `ancestral` or `ddim` takes the prediction for constant while noise falls from t to s. It is not: it moves on
the way, at random but where the data can go, and a long step that leaves this out draws coordinates that vary too
little. The prediction at s, which the next step needs anyway, shows how far it moved; the step is then taken again, in
effect, with a prediction that went there in a straight line over λ = ½ log SNR. This is the idea of stochastic Adams
methods (SA-Solver, Xue et al. 2023) with one evaluation a step. Labels are drawn (docs/decisions/0004) or, which the
first bundled model liked better beside this, solved for without noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.representation.batch import SketchBatch

from . import gaussian
from .given import Given
from .noise import NoiseSource
from .process import Denoiser, JointProcess
from .samplers import Labels, ddim_weights, drawn, extrapolation, posterior_weights, solver_weights
from .schedule import Level
from .walk import OnStep, Start, Weights, walk

Order = Literal[1, 2]


def corrected(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    eta: float = 1.0,
    order: Order = 2,
    labels: Labels = "mean",
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """Coordinates with `eta` of the noise of `ancestral`, corrected after each step.

    Where a step arrives before it is corrected is said by the last prediction (`order` 1) or by a line through the last
    two (2). Labels are `drawn` from the prediction, or go by its `mean` with a solver that needs no noise.
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must lie in 0..1, not {eta}")
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, not {order}")

    def weights(level_s: Level, level_t: Level, level_before: Level) -> Weights:
        return predictor_weights(level_s, level_t, level_before, eta, order)

    return walk(
        denoise,
        process,
        noise,
        weights,
        steps=steps,
        given=given,
        on_step=on_step,
        start=start,
        clean_of=partial(drawn, process) if labels == "drawn" else None,
        label_weights_of=posterior_weights if labels == "drawn" else solver_weights,
        correction_of=partial(corrector_weight, eta=eta),
    )


def predictor_weights(level_s: Level, level_t: Level, level_before: Level, eta: float, order: Order = 2) -> Weights:
    """A step of DDIM with `eta`; of second order, the prediction goes on in λ as it went between the last two."""
    plain = ddim_weights(level_s, level_t, eta)
    if order == 1:
        return plain
    # Where `extrapolation` goes half a step on, the prediction itself would be a whole step further.
    beyond = 2 * extrapolation(level_s, level_t, level_before) * corrector_weight(level_s, level_t, eta)
    return plain._replace(of_x0=plain.of_x0 + beyond, of_before=-beyond)


def corrector_weight(level_s: Level, level_t: Level, eta: float) -> Float[Tensor, " steps"]:
    """What a prediction counts that grows from 0 at t to 1 at s, linearly in λ; about half of what a constant one does.

    A constant one counts √ᾱ_s·(1 − e^−κ), this one √ᾱ_s·(1 − (1 − e^−κ)/κ). Nothing where λ is infinite: there the
    whole step is at the one end, or there is no prediction at the other.
    """
    signal = gaussian.root(level_s.alpha_bar)
    gained = ddim_weights(level_s, level_t, eta).of_x0 / signal
    usable = (level_t.alpha_bar > 0) & (level_s.var > 0) & (gained > 0)
    gained = torch.where(usable, gained, 0.5)
    return torch.where(usable, signal * (1 + gained / torch.log1p(-gained)), 0.0)
