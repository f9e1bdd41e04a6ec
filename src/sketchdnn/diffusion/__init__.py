"""Gaussian and Gaussian-Softmax diffusion of sketches: pure maths, noise comes in as an argument."""

from .bins import Bins
from .bits import report_bits
from .distribution import GaussianSoftmax
from .given import Given, given_rows
from .likelihood import Elbo, elbo
from .loss import Loss, authors_loss, our_loss, paper_loss
from .noise import seeded_noise
from .process import Denoiser, JointProcess, authors_process, our_process, paper_process
from .samplers import ancestral, authors, ddim, dpm_solver_pp, step_sequence
from .schedule import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr
from .step_draws import draw_steps

__all__ = [
    "Bins",
    "Denoiser",
    "Elbo",
    "GaussianSoftmax",
    "Given",
    "JointProcess",
    "Loss",
    "Schedule",
    "ancestral",
    "augment",
    "authors",
    "authors_cosine",
    "authors_loss",
    "authors_process",
    "cosine",
    "ddim",
    "dpm_solver_pp",
    "draw_steps",
    "elbo",
    "given_rows",
    "linear",
    "log_linear_snr",
    "our_loss",
    "our_process",
    "paper_loss",
    "paper_process",
    "report_bits",
    "seeded_noise",
    "step_sequence",
]
