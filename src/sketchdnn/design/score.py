"""The design score of a sketch: a logistic regression on its defects.

The feature of each kind of defect is log(1 + the sum of the amounts of its defects). The weights are fitted on real and
corrupted real sketches by `python -m benchmarks design-score --fit`, and none is negative: more defects never score
higher.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Sketch

from .anatomy import Anatomy
from .defect import Defect, DefectKind
from .regularity import find_irregularities
from .structure import find_structural_defects

WEIGHTS = "weights.json"


@dataclass(frozen=True, slots=True)
class DesignScore:
    """How much a sketch looks like a designer's.

    Attributes:
        value: From 0 to 1, comparable with a probability: how likely the sketch is a real one rather than a corrupted
            one, if both are equally frequent.
        defects: What lowers it, the most costly first.
    """

    value: float
    defects: tuple[Defect, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """The coefficients of the logistic regression: log odds = intercept − Σ weight · feature."""

    intercept: float
    weights: Mapping[DefectKind, float]

    def value(self, amounts: Mapping[DefectKind, float]) -> float:
        """The score of a sketch with these features."""
        odds = self.intercept - sum(self.weights.get(kind, 0.0) * amount for kind, amount in amounts.items())
        return 1 / (1 + math.exp(-odds))


@cache
def load_weights() -> Weights:
    """The weights that come with the package."""
    content = json.loads(files("sketchdnn.design").joinpath(WEIGHTS).read_text(encoding="utf-8"))
    return Weights(content["intercept"], {DefectKind(kind): weight for kind, weight in content["weights"].items()})


def score_design(sketch: Sketch, num_given: int = 0) -> DesignScore:
    """Score a sketch by its defects.

    Args:
        sketch: The sketch.
        num_given: How many of the first primitives are a designer's own part. Defects among these alone do not count.

    >>> from sketchdnn.geometry import Circle, Line
    >>> corners = [(0, 0), (4, 0), (4, 3), (0, 3)]
    >>> plate = [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])]
    >>> centered = score_design(Sketch((*plate, Circle((2, 1.5), 0.5))))
    >>> moved = score_design(Sketch((*plate, Circle((2.1, 1.3), 0.5))))
    >>> moved.value < centered.value
    True
    """
    weights = load_weights()
    try:
        defects = find_defects(sketch, num_given)
    except GeometryError:  # empty, or of no extent
        return DesignScore(0.0, ())
    costly = [each for each in defects if weights.weights.get(each.kind, 0.0) > 0]
    costly.sort(key=lambda each: -weights.weights[each.kind] * each.amount)
    return DesignScore(weights.value(features(defects)), tuple(costly))


def find_defects(sketch: Sketch, num_given: int = 0) -> list[Defect]:
    """All defects that involve a primitive beyond the first `num_given`."""
    anatomy = Anatomy(sketch)
    found = [*find_structural_defects(anatomy), *find_irregularities(anatomy)]
    return [each for each in found if each.kind is DefectKind.OPEN or max(each.primitives) >= num_given]


def features(defects: list[Defect]) -> dict[DefectKind, float]:
    """The feature of each kind of defect that occurs."""
    total: dict[DefectKind, float] = {}
    for each in defects:
        total[each.kind] = total.get(each.kind, 0.0) + each.amount
    return {kind: math.log1p(amount) for kind, amount in total.items()}
