"""Validation loss at fixed noise levels with fixed noise, and a preview of samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.io import atomic_write
from sketchdnn.render import gallery_png
from sketchdnn.representation.batch import decode, from_flat
from sketchdnn.systems import System
from sketchdnn.systems.system import sample_condition_mask

from .config import TrainConfig
from .corpus import Corpus
from .step import precision, random_numbers

# Fractions of T: dense at low noise, then even.
LEVELS = (0.0025, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
MAX_SKETCHES = 1024
PREVIEW_COUNT = 16
PREVIEW_STEPS = 100
# Not a likely seed of a run: validation has other noise than training.
_SEED = 0x76616C6964


def validate(system: System, corpus: Corpus, config: TrainConfig) -> dict[int, float]:
    """The mean unconditional loss at each level t; a system without timesteps has one mean, at 1."""
    device = corpus.params.device
    count = min(len(corpus), MAX_SKETCHES)
    size = min(count, max(1, config.batch_size))
    most = system.max_steps
    steps = [1] if most is None else sorted({max(1, round(level * most)) for level in LEVELS})
    sums = torch.zeros(len(steps), dtype=torch.float64, device=device)
    with evaluating(system, device):
        for start in range(0, count, size):
            index = torch.arange(start, min(start + size, count), device=device)
            numbers = random_numbers(_SEED, index, corpus.kind.shape[1])
            x0 = corpus.batch(index, torch.zeros_like(index), system.rows)
            mask = sample_condition_mask(numbers.choices[:, 2:], corpus.kind[index], 0.0)
            for i, t in enumerate(steps):
                loss = system.loss(x0, torch.full_like(index, t), from_flat(numbers.noise), mask)
                sums[i] += loss.per_sample.sum()
    return dict(zip(steps, (sums / count).tolist(), strict=True))


def save_preview(system: System, path: Path, seed: int) -> None:
    """Write a gallery of samples. The noise is the same for all previews of a run, so that they can be compared."""
    device = next(system.parameters()).device
    noise = seeded_noise(seed, torch.arange(PREVIEW_COUNT, device=device))
    with evaluating(system, device):
        batch = system.sample(noise, SamplingOptions(steps=min(PREVIEW_STEPS, system.max_steps or PREVIEW_STEPS)))
    sketches = [decoded.sketch for decoded in decode(batch, system.rows.arc_scalar)]
    with atomic_write(path) as temporary:
        gallery_png(sketches).save(temporary)


@contextmanager
def evaluating(system: System, device: torch.device) -> Iterator[None]:
    """Evaluation mode without gradients, in the precision of training."""
    training = system.training
    system.eval()
    with torch.no_grad(), precision(device):
        yield
    system.train(training)
