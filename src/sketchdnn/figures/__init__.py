"""The paper's figures and ours, each as numbers first and then as a drawing of them."""

from .bias import Measured, measure_bias, write_bias
from .schedule import Survival, label_survival, write_schedule
from .simplex import Clouds, label_clouds, write_simplex

__all__ = [
    "Clouds",
    "Measured",
    "Survival",
    "label_clouds",
    "label_survival",
    "measure_bias",
    "write_bias",
    "write_schedule",
    "write_simplex",
]
