"""Old names in files and command lines, and what they are called now."""

from __future__ import annotations

from typing import Any

SAMPLERS = {"closing": "restart", "corrected": "predictor_corrector"}


def current_sampler(name: str) -> str:
    """The present name of a sampler."""
    return SAMPLERS.get(name, name)


# Keys of evaluation reports.
REPORT_KEYS = {
    "neighbours": "neighbors",
    "found": "in_training",
    "real_found": "real_in_training",
    "unique_of_equal": "unique_same_size",
    "equal": "same_size",
    "specks": "tiny",
    "errors": "z_score",
    "read_at": "reconstruction_step",
    "drawing": "decoding",
    "most_of_95": "p95",
    "most": "max",
    "drawing sketches": "sampling",
}


def rename_report_keys(value: Any) -> Any:
    """A report, or a part of one, with the present names of its keys."""
    if isinstance(value, dict):
        return {REPORT_KEYS.get(key, key): rename_report_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rename_report_keys(item) for item in value]
    return value
