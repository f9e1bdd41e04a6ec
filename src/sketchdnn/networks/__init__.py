"""Denoisers: noisy rows and a step in, a prediction of the clean sketch out."""

from .dit import DiT, DiTConfig

__all__ = ["DiT", "DiTConfig"]
