"""The fit of the order of suggestions."""

import numpy as np
import pytest

from benchmarks.suggestion_order import Choice, fit_choices
from sketchdnn.generation.order import WEIGHTS, OrderFeatures


def choices(weights: OrderFeatures, count: int = 150, ideas: int = 6) -> list[Choice]:
    """Parts with random ideas, of which one is chosen with a probability proportional to exp(4 · merit)."""
    rng = np.random.default_rng(0)
    result = []
    for _ in range(count):
        features = rng.normal(size=(ideas, len(weights)))
        chosen = int(np.argmax(4 * features @ np.array(weights) + rng.gumbel(size=ideas)))
        result.append(Choice(np.roll(features, -chosen, axis=0)))
    return result


def test_fit_finds_the_weights_by_which_was_chosen() -> None:
    true = OrderFeatures(score=1.0, agreement=0.5, axes=-0.5, freedom=-1.0, curves=0.0, misfit=0.25)
    fit = fit_choices(choices(true))
    assert fit.weights.score == 1
    assert fit.weights == pytest.approx(true, abs=0.2)
    for value, low, high in zip(fit.weights, fit.low, fit.high, strict=True):
        assert low <= value <= high
    assert fit.fitted_first.value > fit.used_first.value
    assert [row[0] for row in fit.rows()] == list(OrderFeatures._fields)
    assert f"{WEIGHTS.axes:g}" in fit.markdown("command")
