"""Gaussian and Gaussian-Softmax diffusion of sketches: pure maths, noise comes in as an argument."""

from .distribution import GaussianSoftmax
from .loss import Loss, authors_loss, our_loss, paper_loss
from .noise import seeded_noise
from .process import Denoiser, JointProcess, authors_process, our_process, paper_process
from .schedule import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr

__all__ = [
    "Denoiser",
    "GaussianSoftmax",
    "JointProcess",
    "Loss",
    "Schedule",
    "augment",
    "authors_cosine",
    "authors_loss",
    "authors_process",
    "cosine",
    "linear",
    "log_linear_snr",
    "our_loss",
    "our_process",
    "paper_loss",
    "paper_process",
    "seeded_noise",
]
