"""The numbers of the paper's two tables, as it prints them."""

from __future__ import annotations

from collections.abc import Mapping

# Of tab:fid-calculations and tab:nll-calculations, by system. What the paper leaves out is not here.
PAPER: Mapping[str, Mapping[str, float]] = {
    "sketchdnn": {"fid": 7.80, "precision": 0.246, "recall": 0.266, "per_sketch": 81.33, "per_primitive": 5.08},
    "sketchdnn-pos": {"fid": 10.26, "precision": 0.230, "recall": 0.245, "per_sketch": 83.03, "per_primitive": 5.18},
    "sketchdnn-cat": {"fid": 148.93, "precision": 0.117, "recall": 0.028, "per_sketch": 106.10, "per_primitive": 6.63},
    "latent": {"fid": 93.34, "precision": 0.134, "recall": 0.033},
    "vitruvion": {"fid": 16.04, "precision": 0.294, "recall": 0.176, "per_sketch": 84.80, "per_primitive": 8.19},
    "sketchgen": {"per_sketch": 88.22, "per_primitive": 8.60},
}
DIGITS: Mapping[str, int] = {"fid": 2, "precision": 3, "recall": 3, "per_sketch": 2, "per_primitive": 2}
LEFT_OUT = "not in the paper"

# The tables by the labels of the paper's source.
FID_TABLE, NLL_TABLE = "tab:fid-calculations", "tab:nll-calculations"


def paper_words(system: str, key: str) -> str:
    """
    >>> paper_words("latent", "fid"), paper_words("latent", "per_sketch")
    ('93.34', 'not in the paper')
    """
    value = PAPER[system].get(key)
    return LEFT_OUT if value is None else f"{value:.{DIGITS[key]}f}"
