"""The ancestral sampler of the multinomial process: each step draws every label anew, and parameters as the paper does.

Noise of draw 0 starts a trajectory and every move takes the next draw, as in `walk`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from . import labels
from .cat_process import CatProcess, told_flag
from .given import Given
from .noise import NoiseSource
from .process import Denoiser, Noise
from .walk import OnStep, Progress, Start, check_walk, moves_of, predicted


def cat_ancestral(
    denoise: Denoiser,
    process: CatProcess,
    noise: NoiseSource,
    *,
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """Sketches of some noise, by the reverse of the multinomial process."""
    pure = noise(0)
    first = process.num_steps if start is None else start.t
    steps = range(first, -1, -1) if steps is None else steps
    check_walk(steps, process.num_steps, pure, given, start)
    process = process.to(pure.params.device)
    given = None if given is None else given.to(pure.params)
    moves = moves_of(steps, given)

    batch = _first(process, pure, given, start)
    with torch.no_grad():
        for number, (t, s) in enumerate(moves, start=1):
            fresh = noise(number)
            if s > t:
                batch = process.step_forward(batch, t, s, fresh)
                continue
            prediction = predicted(denoise, _shown(batch, given), t, given)
            batch = process.step_back(prediction, _params(process, prediction, given), batch, s, t, fresh)
            if s == 0 and given is not None:
                batch = given.keep(batch)
            if on_step is not None:
                on_step(Progress(number, len(moves), t, s, batch, prediction))
    return batch


def _first(process: CatProcess, noise: Noise, given: Given | None, start: Start | None) -> SketchBatch:
    """Labels of no meaning, or what noise makes of the start; given parts as the forward process would leave them."""
    t = process.num_steps if start is None else start.t
    if start is None:
        batch = SketchBatch(
            labels.draw(_alike(noise.construction), noise.construction),
            labels.draw(_alike(noise.kind), noise.kind),
            noise.params,
        )
    else:
        batch = process.diffuse(start.batch.to(noise.params), t, noise)
    if given is None:
        return batch
    theirs = process.diffuse(_whole(given, batch), t, noise)
    construction, kind, params = given.masks
    return SketchBatch(
        torch.where(construction, theirs.construction, batch.construction),
        torch.where(kind, theirs.kind, batch.kind),
        torch.where(params, theirs.params, batch.params),
    )


def _whole(given: Given, other: SketchBatch) -> SketchBatch:
    """What is given, with something harmless where nothing is."""
    kept = given.keep(other)
    return SketchBatch(told_flag(kept.construction), kept.kind, kept.params)


def _params(process: CatProcess, prediction: Prediction, given: Given | None) -> Tensor:
    clean = process.clean_params(prediction)
    return clean if given is None else torch.where(given.params, given.batch.params, clean)


def _shown(batch: SketchBatch, given: Given | None) -> SketchBatch:
    """What the network sees of a state."""
    return given.keep(batch) if given is not None and given.way == "clean" else batch


def _alike(like: Tensor) -> Tensor:
    return torch.full_like(like, 1 / like.shape[-1])
