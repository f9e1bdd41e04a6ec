"""What is in a corpus, as numbers that add up over its parts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sketchdnn.geometry import MM_PER_UNIT, Kind
from sketchdnn.representation import Compact

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class Summary:
    """Counts of sketches and of their rows.

    `sizes` counts sketches by the larger side of their box, in mm, as the exponent of the half-decade it falls into
    (2 is 10 to 10^1.5 mm), for those whose file names a unit.
    """

    splits: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    construction: Counter[str] = field(default_factory=Counter)
    primitives: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    licences: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Summary) -> None:
        for name in self.__slots__:
            getattr(self, name).update(getattr(other, name))


def summarize(table: pa.Table, rows: Compact, split: str, half_extent: float) -> Summary:
    """The counts of one part."""
    kinds, construction = (
        Counter({kind.label: int(((rows.kind == kind) & where).sum()) for kind in Kind})
        for where in (True, rows.construction)
    )
    counts = np.bincount(rows.counts).tolist()
    units = table["units"].to_pylist()
    return Summary(
        splits=Counter({split: len(rows)}),
        kinds=kinds,
        construction=construction,
        primitives=Counter({n: count for n, count in enumerate(counts) if count}),
        sizes=Counter(
            math.floor(2 * math.log10(2 * half_extent * scale * MM_PER_UNIT[unit]))
            for scale, unit in zip(table["scale"].to_pylist(), units, strict=True)
            if unit
        ),
        units=Counter(units),
        licences=Counter(zip(table["source"].to_pylist(), table["licence"].to_pylist(), strict=True)),
    )
