"""The walk from noise to a sketch that all samplers share. What they differ in is a table of numbers, made beforehand.

A step takes each part of a row, coordinates or logits, to a weighted sum of its state, its predictions and noise. Noise
of draw 0 starts a trajectory and every step takes the next draw; nothing else is random. Which way to go is decided by
whole numbers, never by a look at a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from . import gaussian, latent
from .check import check_shape, check_step, check_steps
from .given import Given
from .latent import Latent
from .noise import NoiseSource
from .process import Denoiser, JointProcess, Noise
from .schedule import Level


@dataclass(frozen=True, slots=True)
class Progress:
    """One step done: for a progress bar, a preview or an animation."""

    number: int  # from 1
    total: int
    t: int
    s: int
    batch: SketchBatch  # X_s; at s = 0 the sample itself
    prediction: Prediction  # of X_0, made at t
    walking: Bool[Tensor, " batch"] | None = None  # which it is of; `prediction` means nothing for others


OnStep = Callable[[Progress], None]


class Start(NamedTuple):
    """Where a walk begins if not in pure noise: clean sketches, which the noise of draw 0 takes to step t."""

    t: int
    batch: SketchBatch


class Weights(NamedTuple):
    """x_s = of_x_t·x_t + of_x0·x̂_0 + of_before·(the prediction before) + std·noise; one number a step each, float64."""

    of_x_t: Float[Tensor, " steps"]
    of_x0: Float[Tensor, " steps"]
    of_before: Float[Tensor, " steps"]
    std: Float[Tensor, " steps"]


# The weights of steps from t to s. The third level is where the walk was one move earlier: if it is noisier than t,
# then a prediction was made there; at the start of the walk, and after going back up, it is not.
WeightsOf = Callable[[Level, Level, Level], Weights]
# How much of what the next prediction says otherwise a step from t to s is corrected by.
CorrectionOf = Callable[[Level, Level], Float[Tensor, " steps"]]
# What a prediction puts into the sum, with noise for it should it be wanted.
CleanOf = Callable[[Prediction, Callable[[], Noise]], Latent]


def walk(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    weights_of: WeightsOf,
    *,
    steps: Sequence[int] | None,
    given: Given | None,
    on_step: OnStep | None,
    start: Start | None = None,
    clean_of: CleanOf | None = None,
    end_on_prediction: bool = False,
    label_weights_of: WeightsOf | None = None,
    correction_of: CorrectionOf | None = None,
) -> SketchBatch:
    """Draw sketches. `clean_of` makes of a prediction what goes into the sum; by default the process does.

    If it is to be random, it takes noise of its own: draws that no step uses. With a `start`, steps go from its t.
    Labels may have weights of their own. With a `correction_of`, coordinates are corrected once the prediction where
    they arrived is known, which the next step needs anyway.
    """
    first = process.num_steps if start is None else start.t
    steps = range(first, -1, -1) if steps is None else steps
    pure = noise(0)
    check_walk(steps, process.num_steps, pure, given, start)
    given = None if given is None else given.to(pure.params)
    clean_of = clean_of or (lambda prediction, _: latent.of_clean(process.clean(prediction)))
    moves = moves_of(steps, given)
    table = _table(process, moves, weights_of, label_weights_of or weights_of, pure.params)
    corrections = None if correction_of is None else _corrections(process, moves, correction_of, pure.params)

    state = _first(latent.of_noise(pure), process, given, start)
    clean = before = state  # stand in for the predictions before the first, with weight zero
    batch = _shown(state, given)
    with torch.no_grad():
        for number, (t, s) in enumerate(moves, start=1):
            fresh = latent.of_noise(noise(number))
            if s < t:
                prediction = predicted(denoise, batch, t, given)
                after = clean_of(prediction, partial(noise, len(moves) + number))
                if given is not None:
                    after = given.tell(after, process.label_smoothing)
                if corrections is not None and number > 1:
                    by = _correction(corrections[number - 2], table[-1][number - 2, 2], after, clean, before)
                    state = state._replace(params=state.params + by)
                before, clean = clean, after
            state = Latent(*map(_combined, (part[number - 1] for part in table), state, clean, before, fresh))
            batch = _shown(state, given)
            if s == 0:
                batch = _as_it_is(prediction, clean) if end_on_prediction else state.batch()
                batch = batch if given is None else given.keep(batch)
            if s < t and on_step is not None:
                on_step(Progress(number, len(moves), t, s, batch, prediction))
    return batch


def _table(
    process: JointProcess,
    moves: Sequence[tuple[int, int]],
    weights_of: WeightsOf,
    label_weights_of: WeightsOf,
    like: Tensor,
) -> list[Float[Tensor, "moves 4"]]:
    """The weights of every move for each part of a row, cast last."""
    t, s = torch.tensor(moves).unbind(dim=1)
    down = s < t
    before = t.roll(1)
    low, high = torch.minimum(s, t), torch.maximum(s, t)
    table = []
    parts = ((process.construction, label_weights_of), (process.kind, label_weights_of), (process.params, weights_of))
    for schedule, of in parts:
        schedule = schedule.to("cpu")
        back = torch.stack(of(schedule.at(low), schedule.at(high), schedule.at(before)), dim=-1)
        alpha_ts, var_ts = gaussian.transition(schedule.at(low), schedule.at(high))
        nothing = torch.zeros_like(var_ts)
        forth = torch.stack(Weights(gaussian.root(alpha_ts), nothing, nothing, gaussian.root(var_ts)), dim=-1)
        table.append(torch.where(down[:, None], back, forth).to(like))
    return table


def _corrections(
    process: JointProcess, moves: Sequence[tuple[int, int]], correction_of: CorrectionOf, like: Tensor
) -> Float[Tensor, " moves"]:
    """Of every move, cast last; what went up again is forgotten and needs none."""
    t, s = torch.tensor(moves).unbind(dim=1)
    schedule = process.params.to("cpu")
    found = correction_of(schedule.at(torch.minimum(s, t)), schedule.at(torch.maximum(s, t)))
    return torch.where(s < t, found, 0.0).to(like)


def _correction(weight: Tensor, of_before: Tensor, after: Latent, clean: Latent, before: Latent) -> Tensor:
    """What `after` says otherwise than `clean`, in place of what was extrapolated from `clean` and `before`."""
    return weight * (after.params - clean.params) + of_before * (clean.params - before.params)


def _combined(weights: Float[Tensor, " 4"], x_t: Tensor, x0: Tensor, before: Tensor, noise: Tensor) -> Tensor:
    of_x_t, of_x0, of_before, std = weights.unbind()
    return of_x_t * x_t + of_x0 * x0 + of_before * before + std * noise


def _first(noise: Latent, process: JointProcess, given: Given | None, start: Start | None) -> Latent:
    """Noise, or what it makes of the start; given parts begin as the forward process would leave them there."""
    levels = latent.levels(process, process.num_steps if start is None else start.t)

    def diffused(batch: SketchBatch) -> Latent:
        return Latent(*map(gaussian.diffuse, latent.of_sketch(batch, process.label_smoothing), noise, levels))

    state = noise if start is None else diffused(start.batch.to(noise.params))
    return state if given is None else latent.where(given.masks, diffused(given.batch), state)


def _shown(state: Latent, given: Given | None) -> SketchBatch:
    """What the network sees of a state."""
    return given.keep(state.batch()) if given is not None and given.way == "clean" else state.batch()


def predicted(denoise: Denoiser, batch: SketchBatch, t: int, given: Given | None) -> Prediction:
    """What the network says, in the precision of the walk, and what is known better."""
    said = denoise(batch, torch.full((len(batch),), t, device=batch.params.device))
    parts = SketchBatch(said.construction_logits, said.kind_logits, said.params)
    check_shape(parts, "what denoise returns", like=batch)
    parts = parts.to(batch.params)
    prediction = Prediction(parts.construction, parts.kind, parts.params)
    return prediction if given is None else given.correct(prediction)


def _as_it_is(prediction: Prediction, clean: Latent) -> SketchBatch:
    """The prediction as a sketch."""
    return SketchBatch(prediction.construction, prediction.kind, clean.params)


def moves_of(steps: Sequence[int], given: Given | None) -> list[tuple[int, int]]:
    """From where to where each move goes: down the steps, and up again before each stretch that is walked anew.

    The last step is taken once: nothing would follow that could fit itself to what comes out.
    """
    down = list(pairwise(steps))
    if given is None or given.resamples == 1:
        return down
    moves: list[tuple[int, int]] = []
    last = len(down) - 1
    for first in range(0, last, given.jump):
        stretch = down[first : min(first + given.jump, last)]
        up = (stretch[-1][1], stretch[0][0])
        moves += [*stretch, up] * (given.resamples - 1) + stretch
    return [*moves, down[last]]


def check_walk(
    steps: Sequence[int], num_steps: int, noise: SketchBatch, given: Given | None, start: Start | None
) -> None:
    """Refuses steps, noise, given parts and a start that do not go together."""
    check_shape(noise, "noise")
    first = num_steps
    if start is not None:
        check_step(start.t, num_steps, "start.t", lowest=1)
        check_shape(start.batch, "start.batch", like=noise)
        first = start.t
    check_steps(steps, num_steps)
    if steps[0] != first or steps[-1] != 0:
        raise ValueError(f"steps must go from {first} to 0, not from {steps[0]} to {steps[-1]}")
    if given is not None:
        check_shape(given.batch, "given.batch", like=noise)
