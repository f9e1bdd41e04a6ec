"""The weights of the order of suggestions: a conditional logit model on parts of real sketches.

For each part the ideas of `complete` are ranked with one more, what was hidden. The model is fitted so that this one is
chosen: the probability of an idea is proportional to exp(merit). Its weights are divided by that of the design score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.generation.order import WEIGHTS, OrderFeatures
from sketchdnn.generation.suggestions import Candidate
from sketchdnn.systems import System

from .completion import CompletionTask, is_original, original_candidates, sample_completions
from .completion_cases import find_cases, held_out_sketches
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

_PENALTY, _FOLDS, _RESAMPLES = 0.01, 5, 200
_COLUMNS = ("feature", "fitted", "used")

Floats = NDArray[np.float64]


class Choice(NamedTuple):
    """The features of the ideas for a part; the first row is the original."""

    features: Floats

    def is_first(self, weights: Floats) -> bool:
        merits = self.features @ weights
        return bool(merits[0] >= merits.max())


@dataclass(frozen=True, slots=True)
class OrderFit:
    """The fitted weights, and how often the original is first.

    Attributes:
        parts: Number of parts.
        weights: The fitted weights, that of the score 1.
        low: The lower ends of their 95 % intervals, by resampling of the parts.
        high: The upper ends.
        fitted_first: Share of parts whose original is first with weights fitted to the other parts.
        used_first: The same with the weights of the package.
    """

    parts: int
    weights: OrderFeatures
    low: OrderFeatures
    high: OrderFeatures
    fitted_first: Estimate
    used_first: Estimate

    def rows(self) -> Iterator[tuple[str, str, str]]:
        for name, value, low, high, used in zip(
            OrderFeatures._fields, self.weights, self.low, self.high, WEIGHTS, strict=True
        ):
            yield name, f"{value:.2f} ({low:.2f}–{high:.2f})", f"{used:g}"

    def table(self) -> Table:
        return rich_table(f"Weights of the order, from {self.parts:,} parts", _COLUMNS, self.rows())

    def sentences(self) -> Iterator[str]:
        yield f"the original is first, with weights fitted to the other parts: {percent(self.fitted_first)}"
        yield f"the original is first, with the weights of the package: {percent(self.used_first)}"

    def markdown(self, command: str) -> str:
        table, notes = markdown_table(_COLUMNS, self.rows()), "\n".join(f"- {each}." for each in self.sentences())
        return f"# Order of suggestions\n\n    {command}\n\n{self.parts:,} parts.\n\n{table}\n\n{notes}\n"


def fit_order(
    system: System,
    data: Path,
    numbers: tuple[int, int],
    parts: int,
    *,
    steps: int = 50,
    seed: int = 0,
    split: str = "train",
    cache: Path | None = None,
    on_stage: OnStage = ignore_stage,
) -> OrderFit:
    """Fit the weights on parts of a split.

    Raises:
        SketchError: If hardly any part has both an original that can stay and another idea.
    """
    cases = tuple(find_cases(held_out_sketches(data, numbers, seed, split=split), parts, seed))
    task = CompletionTask(cases, steps=steps)
    rounds = sample_completions(system, task, cache, on_stage)
    on_stage("repairing and scoring")
    choices = []
    for number, completion in enumerate(task.completions(system)):
        finisher, case, candidates = completion.finisher, cases[number], rounds[number]
        ideas = finisher.rank(
            [
                *finisher.finish(*finisher.geometric_candidates()),
                *finisher.finish(candidates.parts, candidates.completed),
                *original_candidates(case, finisher),
            ]
        )
        ideas = [idea for idea in ideas if idea.shortfall is None]
        originals = [idea for idea in ideas if is_original(case, idea.sketch)]
        others = [idea for idea in ideas if not is_original(case, idea.sketch)]
        if originals and others:
            choices.append(Choice(_features([originals[0], *others])))
    if len(choices) < _FOLDS:
        raise SketchError(f"only {len(choices)} parts have an original to choose; use more --parts")
    return fit_choices(choices, seed)


def fit_choices(choices: Sequence[Choice], seed: int = 0) -> OrderFit:
    """The weights by which the originals are chosen."""
    rng = np.random.default_rng(seed)
    fitted = _fit(choices)
    resampled = [_fit([choices[i] for i in rng.integers(len(choices), size=len(choices))]) for _ in range(_RESAMPLES)]
    ends = np.quantile([each / each[0] for each in resampled], (0.025, 0.975), axis=0)
    folds = rng.permutation(len(choices)) % _FOLDS
    first = 0
    for fold in range(_FOLDS):
        others = _fit([choice for choice, other in zip(choices, folds, strict=True) if other != fold])
        first += sum(choice.is_first(others) for choice, own in zip(choices, folds, strict=True) if own == fold)
    used = sum(choice.is_first(np.array(WEIGHTS)) for choice in choices)
    weights, low, high = (OrderFeatures(*map(float, each)) for each in (fitted / fitted[0], *ends))
    return OrderFit(
        len(choices),
        weights,
        low,
        high,
        share_estimate(first, len(choices)),
        share_estimate(used, len(choices)),
    )


def _features(ideas: Sequence[Candidate]) -> Floats:
    """The features of ideas. The original was in no frame, so the misfit is not compared."""
    return np.array([idea.features._replace(misfit=0.0) for idea in ideas], np.float64)


def _fit(choices: Sequence[Choice]) -> Floats:
    """The weights of largest penalized likelihood; that of the score is positive."""
    from scipy.optimize import minimize

    def loss(weights: Floats) -> tuple[float, Floats]:
        total, slope = _PENALTY * float(weights @ weights), 2 * _PENALTY * weights
        for choice in choices:
            merits = choice.features @ weights
            chances = np.exp(merits - merits.max())
            chances /= chances.sum()
            total -= float(np.log(chances[0])) / len(choices)
            slope = slope + (chances @ choice.features - choice.features[0]) / len(choices)
        return total, slope

    bounds = [(0.1, None), *[(None, None)] * (len(WEIGHTS) - 1)]
    return np.asarray(minimize(loss, np.array(WEIGHTS), method="L-BFGS-B", jac=True, bounds=bounds).x, np.float64)
