"""The settings of a preparation, and presets of the paper, of its authors' code, and our own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from sketchdnn.errors import SketchError
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.representation.settings import check_settings, within

SPLITS = ("train", "validation", "test")
SAME_LEVELS = 256
# The order of rows and of line ends in the store.
Order = Literal["canonical", "drawn"]


@dataclass(frozen=True, slots=True)
class PrepareConfig:
    """Which sketches are kept, how they are normalized, when two are duplicates, and how they are split.

    - `constrained`: keep only sketches with entities ≤ constraints ≤ `max_constraints`, as the authors do. Entities
      that are no primitive count too.
    - `keep_incomplete`: keep sketches that lost an entity, as the authors do; otherwise they are refused.
    - `frame`: "tight" centers the tight box, its larger side 2·half_extent; "authors" takes their box.
    - `duplicates`: "sorted" compares sketches on the 8-bit grid of `representation.hashing`, as sets of rows; "authors"
      scales each row to its own smallest and largest number and compares sketches row by row, in order.
    - `order`: "canonical" sorts the rows of a sketch by kind and place, and the ends of lines if `canonical_lines`;
      "drawn" stores rows and ends in the order of the source. Which sketches are kept and their splits are the same.
    - `split_by`: "group" keeps variants of one model in one split; "sketch" spreads them.
    - `distinct_splits`: leave sketches out of a split that equal one of an earlier split (training, validation, test)
      up to the symmetries of the square, on the grid of `SAME_LEVELS` levels of `representation.hashing`.
    """

    preset: str = "ours"
    min_primitives: int = field(default=8, metadata=within(1, MAX_PRIMITIVES))
    max_primitives: int = field(default=16, metadata=within(1, MAX_PRIMITIVES))
    constrained: bool = False
    max_constraints: int = field(default=208, metadata=within(0, 10**9))
    keep_incomplete: bool = False
    frame: Literal["tight", "authors"] = "tight"
    half_extent: float = field(default=1.0, metadata=within(1e-6, 1e6))
    canonical_lines: bool = True
    duplicates: Literal["sorted", "authors"] = "sorted"
    order: Order = "canonical"
    split_by: Literal["group", "sketch"] = "group"
    fractions: tuple[float, float, float] = field(default=(0.8, 0.1, 0.1), metadata=within(0, 1))
    split_seed: int = field(default=0, metadata=within(0, 2**64 - 1))
    distinct_splits: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        if self.order not in get_args(Order):
            raise SketchError(f"order must be {' or '.join(get_args(Order))}, not '{self.order}'")
        if self.min_primitives > self.max_primitives:
            raise SketchError(
                f"no sketch has at least {self.min_primitives} primitives and {self.max_primitives} at most"
            )
        if not math.isclose(sum(self.fractions), 1):
            raise SketchError(f"the shares of {', '.join(SPLITS)} must add up to 1, not {self.fractions}")


def config_to_dict(config: PrepareConfig) -> dict[str, Any]:
    """The settings for `dataset.json`. `order` was added later: it is left out at its default."""
    table = asdict(config)
    if config.order == "canonical":
        del table["order"]
    return table


def config_from_dict(table: Mapping[str, Any]) -> PrepareConfig:
    """The settings in a `dataset.json`; unknown keys are ignored."""
    known = {field.name for field in fields(PrepareConfig)}
    values: dict[str, Any] = {name: value for name, value in table.items() if name in known}
    return PrepareConfig(**values | {name: tuple(v) for name, v in values.items() if isinstance(v, list)})


_PAPER = PrepareConfig(
    preset="paper", canonical_lines=False, split_by="sketch", fractions=(0.9, 0.05, 0.05), distinct_splits=False
)
_AUTHORS = replace(_PAPER, preset="authors", frame="authors", duplicates="authors", split_seed=4)
PRESETS: Mapping[str, PrepareConfig] = {
    "paper": replace(_PAPER, half_extent=0.5),
    "authors": replace(_AUTHORS, min_primitives=7, constrained=True, keep_incomplete=True),
    "ours": PrepareConfig(),
}
