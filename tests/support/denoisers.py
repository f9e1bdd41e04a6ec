"""Denoisers and samplers for tests of sampling."""

from typing import Any

import torch

from benchmarks.oracles import RowTarget
from sketchdnn.diffusion import samplers
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, JointProcess
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.representation.batch import Prediction, SketchBatch

TARGET = RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), construction=0.3, std=0.5)
_NAMES = ("ancestral", "authors", "ddim", "dpm_solver_pp", "predictor_corrector")
SAMPLERS = [getattr(samplers, f"sample_{name}") for name in _NAMES]
_OPTIONS = ("steps", "conditioning", "start", "on_step")


def run(sampler: Any, denoise: Denoiser, process: JointProcess, noise: NoiseSource, **options: Any) -> SketchBatch:
    """Run a sampler; options that are not those of `SamplingOptions` are its own."""
    common = {name: options.pop(name) for name in _OPTIONS if name in options}
    batch: SketchBatch = sampler(denoise, process, noise, SamplingOptions(**common), **options)
    return batch


def sketches(batch: int, seed: int = 0) -> SketchBatch:
    """Random clean rows of `TARGET`."""
    return TARGET.sample(batch, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def wobbly(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    """An arbitrary denoiser that depends on every number of a row, and on nothing else."""
    level = (t / 100).cos()[:, None, None]
    mixed = batch_t.params * 0.8 + batch_t.kind.sum(-1, keepdim=True) * level
    return Prediction(2 * batch_t.construction + level, 3 * batch_t.kind - level, mixed)


def zero(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    return Prediction(batch_t.construction * 0, batch_t.kind * 0, batch_t.params * 0)


def identity(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    return Prediction(8 * batch_t.construction, 8 * batch_t.kind, batch_t.params)


def same(a: SketchBatch, b: SketchBatch) -> bool:
    return torch.equal(a.flat(), b.flat())
