"""The error of a denoiser at each noise level, beside the noise: where coordinates fall short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.generation.engine import device_of, fast_inference
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.systems import System
from sketchdnn.training.corpus import to_device

STEPS = (1, 5, 20, 50, 100, 200, 400, 800)
_COUNT = 1000


def measure_errors(system: System, dataset: Dataset, steps: Sequence[int] = STEPS) -> list[dict[str, Any]]:
    """Noise and error of the ends of lines, as root mean squares, and the share of right kinds.

    Held-out sketches, whose larger side is 2 here, are noised to each step and denoised at once. Lines have the same
    coordinates in every variant. An error above the noise means that the input alone would be a better estimate.

    Args:
        system: A system that denoises rows.
        dataset: Its corpus; the first sketches of the validation split are taken.
        steps: The steps t.
    """
    device = device_of(system)
    corpus = to_device(dataset.split("validation").compact[:_COUNT], device)
    index = torch.arange(len(corpus), device=device)
    x0 = corpus.batch(index, torch.zeros_like(index), system.rows)
    lines = corpus.kind == Kind.LINE.value
    columns = layout.PARAMS_OF_KIND[Kind.LINE]
    source = seeded_noise(0, index)
    process: Any = system.process.to(device)
    denoise: Any = system.denoise
    rows = []
    for number, step in enumerate(steps):
        t = torch.full_like(index, step)
        level = process.params.at(t[:1])
        with torch.no_grad(), fast_inference(system):
            prediction = denoise(process.diffuse(x0, t, source(number)), t)
        errors = (prediction.params - x0.params)[..., columns][lines].float()
        right = prediction.kind_logits.argmax(dim=-1) == corpus.kind
        rows.append(
            {
                "t": step,
                "noise": float((level.var / level.alpha_bar).sqrt()) / dataset.half_extent,
                "error": float(errors.square().mean().sqrt()) / dataset.half_extent,
                "right_kinds": float(right.float().mean()),
            }
        )
    return rows
