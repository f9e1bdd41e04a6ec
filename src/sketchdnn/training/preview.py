"""A picture of what the model draws by now."""

from __future__ import annotations

from pathlib import Path

import torch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.io import atomic_write
from sketchdnn.render import gallery_png
from sketchdnn.representation.codec import decode
from sketchdnn.systems import System

from .run import precision

COUNT = 16
STEPS = 100


def save_preview(system: System, path: Path, seed: int) -> None:
    """A gallery of samples, the same noise every time, so that pictures of a run can be laid side by side."""
    device = next(system.parameters()).device
    noise = seeded_noise(seed, torch.arange(COUNT, device=device))
    training = system.training
    system.eval()
    with torch.no_grad(), precision(device):
        batch = system.sample(noise, SamplingOptions(steps=min(STEPS, system.max_steps or STEPS)))
    system.train(training)
    sketches = [decoded.sketch for decoded in decode(batch, system.rows.arc_scalar)]
    with atomic_write(path) as temporary:
        gallery_png(sketches).save(temporary)
