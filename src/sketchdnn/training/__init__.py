"""Training: data on the device, the loss of a step, optimizers, checkpoints, several processes, and the loop."""

from .checkpoint import load_model

__all__ = ["load_model"]
