"""The paper's figures and ours: functions that compute, and functions that write."""

from benchmarks.failures import Failures, find_failures, write_failures
from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure

from .labels import (
    LabelSamples,
    LogitsBias,
    Survival,
    label_survival,
    measure_bias,
    sample_labels,
    write_bias,
    write_schedule,
    write_simplex,
)
from .sketches import (
    Denoising,
    record_denoising,
    sample_source,
    write_mixed_turing_test,
    write_pipeline,
    write_teaser,
    write_turing_test,
)

__all__ = [
    "Denoising",
    "Failures",
    "LabelSamples",
    "LogitsBias",
    "Source",
    "Survival",
    "find_failures",
    "label_survival",
    "measure_bias",
    "random_sample",
    "record_denoising",
    "sample_labels",
    "sample_source",
    "write_bias",
    "write_comparison_figure",
    "write_failures",
    "write_mixed_turing_test",
    "write_pipeline",
    "write_schedule",
    "write_simplex",
    "write_teaser",
    "write_turing_test",
]
