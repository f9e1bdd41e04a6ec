"""The ancestral sampler of the multinomial process: labels are sampled at every step.

Noise of draw 0 starts a trajectory and every transition takes the next draw, as in `sampling_loop`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sketchdnn.diffusion import gaussian_softmax
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, Noise, begin_trajectory
from sketchdnn.diffusion.sampling import Conditioning, Progress, SamplingOptions, Start, predict
from sketchdnn.representation.batch import Prediction, SketchBatch

from .process import MultinomialProcess, fill_blank_flags


def sample_multinomial(
    denoise: Denoiser, process: MultinomialProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """Sketches from noise by the reverse of the multinomial process."""
    pure = noise(0)
    options.check_shapes(pure)
    transitions = options.transitions(process.num_steps)
    process = process.to(pure.params.device)
    conditioning = None if options.conditioning is None else options.conditioning.to(pure.params)
    denoise = begin_trajectory(denoise)

    batch = _initial_state(process, pure, conditioning, options.start)
    with torch.no_grad():
        for number, (t, s) in enumerate(transitions, start=1):
            fresh = noise(number)
            if s > t:
                batch = process.step_forward(batch, t, s, fresh)
                continue
            visible = batch if conditioning is None else conditioning.visible(batch)
            prediction = predict(denoise, visible, t, conditioning)
            batch = process.step_back(prediction, _params(process, prediction, conditioning), batch, s, t, fresh)
            if s == 0 and conditioning is not None:
                batch = conditioning.fill_rows(batch)
            if options.on_step is not None:
                options.on_step(Progress(number, len(transitions), t, s, batch, prediction))
    return batch


def _initial_state(
    process: MultinomialProcess, noise: Noise, conditioning: Conditioning | None, start: Start | None
) -> SketchBatch:
    """Uniform labels, or the start diffused by the noise; known parts begin where the forward process takes them."""
    t = process.num_steps if start is None else start.t
    if start is None:
        batch = SketchBatch(
            gaussian_softmax.draw_label(_uniform(noise.construction), noise.construction),
            gaussian_softmax.draw_label(_uniform(noise.kind), noise.kind),
            noise.params,
        )
    else:
        batch = process.diffuse(start.batch.to(noise.params), t, noise)
    if conditioning is None:
        return batch
    filled = conditioning.fill_rows(batch)
    # The flags of unknown rows are replaced by valid ones; their diffused values are not used.
    filled = SketchBatch(fill_blank_flags(filled.construction), filled.kind, filled.params)
    known = process.diffuse(filled, t, noise)
    construction, kind, params = conditioning.masks
    return SketchBatch(
        torch.where(construction, known.construction, batch.construction),
        torch.where(kind, known.kind, batch.kind),
        torch.where(params, known.params, batch.params),
    )


def _params(process: MultinomialProcess, prediction: Prediction, conditioning: Conditioning | None) -> Tensor:
    clean = process.clean_params(prediction)
    return clean if conditioning is None else torch.where(conditioning.params, conditioning.batch.params, clean)


def _uniform(like: Tensor) -> Tensor:
    return torch.full_like(like, 1 / like.shape[-1])
