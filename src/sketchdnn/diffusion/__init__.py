"""Gaussian and Gaussian-Softmax diffusion of sketches: pure functions, noise is an argument."""

from .gaussian import cosine
from .gaussian_softmax import GaussianSoftmax
from .noise import seeded_noise
from .process import JointProcess, our_process
from .samplers import sample_ddim
from .sampling import SamplingOptions, register_sampler, step_sequence

__all__ = [
    "GaussianSoftmax",
    "JointProcess",
    "SamplingOptions",
    "cosine",
    "our_process",
    "register_sampler",
    "sample_ddim",
    "seeded_noise",
    "step_sequence",
]
