"""The order of suggestions: a weighted sum of features.

The weights are those of a conditional logit model. `python -m benchmarks fit-order` fits them so that what was hidden
from real sketches ranks before the candidates for them (docs/completion.md).
"""

from __future__ import annotations

from typing import NamedTuple


class OrderFeatures(NamedTuple):
    """What the order of a candidate depends on; also the weights of these.

    Attributes:
        score: The design score.
        agreement: Share of the sampled candidates with the same idea.
        axes: Number of axes, upright or level, about which the whole is symmetric.
        freedom: Degrees of freedom that were added, after repair.
        curves: Number of curves that the model added. Those of geometry do not count: they repeat the part.
        misfit: How far the sketch is from filling its frame.
    """

    score: float
    agreement: float = 0.0
    axes: float = 0.0
    freedom: float = 0.0
    curves: float = 0.0
    misfit: float = 0.0

    def merit(self, weights: OrderFeatures) -> float:
        """The weighted sum."""
        return sum(weight * value for weight, value in zip(weights, self, strict=True))


WEIGHTS = OrderFeatures(score=1.0, agreement=0.5, axes=0.4, freedom=-0.2, curves=0.08, misfit=-0.1)
