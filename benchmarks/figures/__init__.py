"""The paper's figures and ours, each as numbers first and then as a drawing of them."""

from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure

from .bias import Measured, measure_bias, write_bias
from .failures import Failures, find_failures, write_failures
from .guess import choose, write_guess, write_mixed_guess
from .pipeline import Denoising, watch, write_pipeline
from .schedule import Survival, label_survival, write_schedule
from .simplex import Clouds, label_clouds, write_simplex
from .teaser import write_teaser

__all__ = [
    "Clouds",
    "Denoising",
    "Failures",
    "Measured",
    "Source",
    "Survival",
    "choose",
    "find_failures",
    "label_clouds",
    "label_survival",
    "measure_bias",
    "random_sample",
    "watch",
    "write_bias",
    "write_comparison_figure",
    "write_failures",
    "write_guess",
    "write_mixed_guess",
    "write_pipeline",
    "write_schedule",
    "write_simplex",
    "write_teaser",
]
