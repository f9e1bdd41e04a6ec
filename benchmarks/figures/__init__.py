"""The paper's figures and ours, each as numbers first and then as a drawing of them."""

from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure

from .failures import Failures, find_failures, write_failures
from .labels import (
    Clouds,
    Measured,
    Survival,
    label_clouds,
    label_survival,
    measure_bias,
    write_bias,
    write_schedule,
    write_simplex,
)
from .sketches import Denoising, choose, watch, write_guess, write_mixed_guess, write_pipeline, write_teaser

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
