"""Old names in files and command lines, and what they are called now."""

from __future__ import annotations

SAMPLERS = {"closing": "restart", "corrected": "predictor_corrector"}


def current_sampler(name: str) -> str:
    """The present name of a sampler."""
    return SAMPLERS.get(name, name)
