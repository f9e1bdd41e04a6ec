"""Gaussian and Gaussian-Softmax diffusion of sketches: pure functions, noise is an argument."""

from .gaussian import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr
from .gaussian_softmax import GaussianSoftmax
from .likelihood import Bins, Elbo, elbo
from .loss import Loss, authors_loss, our_loss, paper_loss
from .noise import seeded_noise
from .process import Denoiser, JointProcess, authors_process, our_process, paper_process
from .samplers import (
    sample_ancestral,
    sample_authors,
    sample_ddim,
    sample_dpm_solver_pp,
    sample_few_step,
    sample_predictor_corrector,
    sample_restart,
)
from .sampling import (
    SAMPLERS,
    Conditioning,
    Progress,
    Sampler,
    SamplingOptions,
    Start,
    condition_on_rows,
    register_sampler,
    step_sequence,
)
from .timesteps import draw_steps

__all__ = ["Schedule", "augment", "authors_cosine", "cosine", "linear", "log_linear_snr", "seeded_noise"]
__all__ += ["Denoiser", "GaussianSoftmax", "JointProcess", "authors_process", "our_process", "paper_process"]
__all__ += ["Bins", "Elbo", "Loss", "authors_loss", "draw_steps", "elbo", "our_loss", "paper_loss"]
__all__ += ["SAMPLERS", "Conditioning", "Progress", "Sampler", "SamplingOptions", "Start", "condition_on_rows"]
__all__ += ["register_sampler", "sample_ancestral", "sample_authors", "sample_ddim", "step_sequence"]
__all__ += ["sample_dpm_solver_pp", "sample_few_step", "sample_predictor_corrector", "sample_restart"]
