"""Design intent: what repair makes of near symmetry and of pieces of a line, and whether it was meant.

Raw samples are compared before and after repair and beside real sketches. Real sketches with noise show whether a
symmetry that repair finds is one of the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.table import Table

from sketchdnn.constraints import repair
from sketchdnn.design import DefectKind, score_design
from sketchdnn.design.anatomy import EXACT, Anatomy
from sketchdnn.design.regularity import mirror_offset
from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.formats import scan
from sketchdnn.geometry import Sketch, bounds, profile

from .completion_cases import JOINED
from .constraint_recall import jitter_sketch
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

# Sources with coordinates on a grid of about 95 levels, and the others.
GRID = ("hpsketch", "whucad")
GRID_STEP = 1 / 80
SYMMETRIC = 2 * EXACT
# Of repaired sketches.
_EXACTLY = 1e-5
NEARLY = (
    DefectKind.NEAR_MIRROR,
    DefectKind.NEAR_ROW,
    DefectKind.NEAR_LEVEL,
    DefectKind.NEAR_CENTER,
    DefectKind.NEAR_RADIUS,
)


@dataclass(frozen=True, slots=True)
class Features:
    """What a set of sketches looks like to a designer: shares, and the median design score."""

    count: int
    symmetric: Estimate
    in_pieces: Estimate
    nearly: Estimate
    extrudable: Estimate
    score: float

    @classmethod
    def of(cls, sketches: Sequence[Sketch]) -> Features:
        kinds = [{each.kind for each in score_design(sketch).defects} for sketch in sketches]
        offsets = [_mirror_offset(sketch) for sketch in sketches]
        shares = (
            share_estimate(sum(each), len(sketches))
            for each in (
                [offset <= SYMMETRIC for offset in offsets],
                [DefectKind.SPLIT in each for each in kinds],
                [not each.isdisjoint(NEARLY) for each in kinds],
                [profile(sketch).is_extrudable for sketch in sketches],
            )
        )
        symmetric, in_pieces, nearly, extrudable = shares
        score = float(np.median([score_design(sketch).value for sketch in sketches]))
        return cls(len(sketches), symmetric, in_pieces, nearly, extrudable, score)

    def cells(self) -> list[str]:
        shares = (self.symmetric, self.in_pieces, self.nearly, self.extrudable)
        return [f"{self.count:,}", *map(percent, shares), f"{self.score:.2f}"]


@dataclass(frozen=True, slots=True)
class Truth:
    """Symmetry of real sketches, and of the same with noise after repair.

    `found` are symmetric after repair, `meant` in the original, `right` both. `on_grid` are symmetric after repair, and
    in the original to within a step of its grid. `unchanged` are the originals that repair without noise leaves as they
    are.
    """

    count: int
    meant: int
    found: int
    right: int
    on_grid: int
    unchanged: int

    def cells(self) -> list[str]:
        shares = ((self.right, self.found), (self.on_grid, self.found), (self.right, self.meant))
        exact = percent(share_estimate(self.unchanged, self.count))
        return [f"{self.count:,}", *(f"{percent(share_estimate(*share))} of {share[1]:,}" for share in shares), exact]


@dataclass(frozen=True, slots=True)
class IntentBenchmark:
    """The features of sets of sketches, and the truth about symmetry by source."""

    features: dict[str, Features]
    truth: dict[str, Truth]
    noise: float

    def rows(self) -> Iterator[tuple[str, ...]]:
        labels = ("sketches", "mirror symmetric", "with a line or arc in pieces", "nearly regular", "can be extruded")
        columns = [each.cells() for each in self.features.values()]
        for k, label in enumerate((*labels, "median design score")):
            yield (label, *(cells[k] for cells in columns))

    def table(self) -> Table:
        return rich_table("Design intent in repair", ("", *self.features), self.rows())

    def sentences(self) -> Iterator[str]:
        for source, each in self.truth.items():
            count, precision, within, recall, unchanged = each.cells()
            found = f"symmetric after noise and repair: right {precision} (to a grid step {within}), recall {recall}"
            yield f"{source}, {count} sketches: {found}; unchanged without noise {unchanged}"

    def markdown(self, command: str) -> str:
        header = ("source", "sketches", "right", "right to a grid step", "found again", "unchanged without noise")
        return _PAGE.format(
            command=command,
            features=markdown_table(("", *self.features), self.rows()),
            truth=markdown_table(header, ((source, *each.cells()) for source, each in self.truth.items())),
            noise=f"{self.noise:.2%}".replace("%", " %"),
            tolerance=SYMMETRIC,
        )


def measure_intent(
    raw: Sequence[Sketch], data: Path, *, count: int, noise: float, seed: int = 0, on_stage: OnStage = ignore_stage
) -> IntentBenchmark:
    """Measure raw samples before and after repair, and real sketches with noise.

    Args:
        raw: Samples without repair.
        data: A file of real sketches that name their source.
        count: Real sketches of either group of sources.
        noise: How far off points are, as a share of the size.
        seed: Of the choice and the noise.
        on_stage: Called with what is being done.
    """
    on_stage("reading")
    real = _extrudable(data, count, seed)
    on_stage(f"repairing {len(raw):,} samples")
    features = {"raw": Features.of(raw), "repaired": Features.of([repair(sketch).sketch for sketch in raw])}
    truth = {}
    for source, sketches in real.items():
        on_stage(f"real sketches, {source}")
        features[f"real, {source}"] = Features.of(sketches)
        truth[source] = _measure_truth(sketches, noise, np.random.default_rng(seed))
    return IntentBenchmark(features, truth, noise)


def _extrudable(data: Path, count: int, seed: int) -> dict[str, list[Sketch]]:
    """Sketches of 8 to 16 primitives that can be extruded, of sources with a grid and of the others."""
    found: dict[str, list[Sketch]] = {"on a grid": [], "without a grid": []}
    for item in scan(data):
        if isinstance(item, Sketch) and 8 <= len(item) <= 16 and bounds(item).size > 0:
            found["on a grid" if item.extra.get("source") in GRID else "without a grid"].append(item)
    rng = np.random.default_rng(seed)
    return {
        source: list(_first((sketches[k] for k in rng.permutation(len(sketches))), count))
        for source, sketches in found.items()
    }


def _first(sketches: Iterable[Sketch], count: int) -> Iterator[Sketch]:
    taken = 0
    for sketch in sketches:
        if taken < count and profile(sketch, JOINED).is_extrudable:
            taken += 1
            yield replace(sketch, constraints=())


def _measure_truth(sketches: Sequence[Sketch], noise: float, rng: np.random.Generator) -> Truth:
    count = meant = found = right = on_grid = unchanged = 0
    for sketch in sketches:
        try:
            jittered, _ = jitter_sketch(sketch, noise, rng)
        except GeometryError:  # noise leaves nothing of a primitive
            continue
        count += 1
        before, after = _mirror_offset(sketch), _mirror_offset(repair(jittered, close=False).sketch)
        meant += before <= SYMMETRIC
        found += after <= _EXACTLY
        right += before <= SYMMETRIC and after <= _EXACTLY
        on_grid += before <= GRID_STEP and after <= _EXACTLY
        unchanged += repair(sketch, close=False).displacement <= EXACT
    return Truth(count, meant, found, right, on_grid, unchanged)


def _mirror_offset(sketch: Sketch) -> float:
    return mirror_offset(Anatomy(sketch))


_PAGE = """# Design intent in repair

    {command}

Raw samples of a model before and after repair, beside real sketches of 8 to 16 primitives that can be extruded. In
brackets, 95 % intervals.

{features}

- **mirror symmetric**: every primitive has a mirror image about one upright or level axis, within {tolerance:g} of the
  size.
- **nearly regular**: there is a near-miss of a symmetry, a row, a level, a common center or an equal radius.
- **on a grid**: HPSketch and WHUCAD, whose coordinates have about 95 levels. **without a grid**: FreeCAD and
  SketchGraphs.

The same real sketches with noise of {noise} of the size, repaired:

{truth}

- **right**: of those that are symmetric to the last digit after repair, the originals were symmetric.
- **right to a grid step**: their originals were symmetric to within a step of the grid, {step:g} of the size.
- **found again**: of the originals that were symmetric, those that are so after noise and repair.
- **unchanged without noise**: the originals in which repair moves nothing by more than 0.001 of the size.
""".replace("{step:g}", f"{GRID_STEP:g}")
