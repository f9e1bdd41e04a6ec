"""How near samples are to training sketches, compared with real test sketches, with pictures of the nearest pairs.

The distance is that of `evaluation/novelty.py`: between blurred images, over the eight symmetries of the square, to the
nearest training sketch. Real test sketches are near to training sketches too, so they are the scale. A system that
memorizes is nearer than they are; a system whose samples are poor is farther away whatever it memorizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate
from sketchdnn.evaluation.novelty import GRIDS, Nearest, blurred_images, find_nearest, measure_repeats
from sketchdnn.evaluation.report import load_report
from sketchdnn.evaluation.samples import normalize_sketches, normalize_split
from sketchdnn.formats import read
from sketchdnn.geometry import Sketch
from sketchdnn.render.figures import INK, draw_sketch, panel_of_sketch, save_figure, sheet
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.representation.hashing import turned

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

Floats = NDArray[np.float64]
# The quantiles of the distances of test sketches that samples are compared with.
NEAR, MEDIAN = 0.05, 0.5
_RESAMPLES = 1000
# Pairs of a row of the picture, and their places among the samples sorted by distance.
COLUMNS = 10
PLACES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.95)
_SIDE, _GAP, _MARGIN, _HEAD = 62.0, 6.0, 84.0, 13.0
_PAGE = """# Memorization

    {command}

Are samples nearer to training sketches than real sketches are? The distance to the nearest training
sketch is between blurred images, over the eight symmetries of the square
(`evaluation/novelty.py`). Samples are raw; there are {test:,} test and {train:,} training sketches.
In brackets, 95 % intervals; those of distances are from resampling samples and test sketches.

{table}

- **within the nearest 5 %**: samples no farther away than the nearest 5 % of test sketches. A
  system that memorizes has a larger share than real sketches.
- **nearer than the median**: the same for half of the test sketches.
- **nearer than a test sketch**: how often a random sample is nearer than a random test sketch;
  equal distances count half. It is 50 % for new real sketches.
- **equal**: samples equal to a training sketch with coordinates rounded to that many levels, up to
  symmetry. `prepare` leaves test sketches out that are equal on 256 levels.

{verdicts}

![Pairs of a sketch and its nearest training sketch]({picture})

*Sorted by distance: the number above a pair is its place among all, the number below its distance.*

A distance says nothing about a system whose samples are poor: they are far from everything.
{kept}"""
_KEPT = """
## Kept reports

Of the reports in `{folder}` samples are not kept, only these measures. The intervals do not
include that of the test split. There, the nearest 5 % of the test split are exact mirror images of
training sketches if the corpus was prepared before such were left out; so the nearest quarter is
compared.

{table}
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Normalized samples of a system."""

    name: str
    compact: Compact


@dataclass(frozen=True, slots=True)
class Memorization:
    """The measures of one source; `nearest` and `compact` are for the picture."""

    name: str
    count: int
    near: Estimate
    below_median: Estimate
    nearer: Estimate
    repeats: Mapping[int, Estimate]
    median: float
    compact: Compact
    nearest: Nearest

    @property
    def verdict(self) -> str:
        """What the share within the nearest 5 % says."""
        if self.near.low > NEAR:
            return "more samples than test sketches are that near to a training sketch"
        if self.near.high < NEAR:
            return "fewer samples than test sketches are that near to a training sketch"
        return "as many samples as test sketches are that near to a training sketch, within the interval"


@dataclass(frozen=True, slots=True)
class MemorizationResult:
    """All sources; `real` is the test split, `kept` the table of kept reports."""

    sources: Sequence[Memorization]
    real: Memorization
    train: Compact
    kept: Sequence[Sequence[str]] = ()
    kept_folder: str = ""

    def table(self) -> Table:
        return rich_table("Distance to the nearest training sketch", _HEADER, self._rows())

    def sentences(self) -> Iterator[str]:
        yield from (f"{source.name}: {source.verdict}" for source in self.sources)

    def markdown(self, command: str, picture: str = "memorization.png") -> str:
        """The page; `picture` is the file that `draw_pairs` writes beside it."""
        kept = ""
        if self.kept:
            kept = _KEPT.format(folder=self.kept_folder, table=markdown_table(_KEPT_HEADER, self.kept))
        verdicts = "\n".join(f"- {sentence}." for sentence in self.sentences())
        table = markdown_table(_HEADER, self._rows())
        facts = {"command": command, "verdicts": verdicts, "picture": picture, "kept": kept}
        return _PAGE.format(table=table, test=self.real.count, train=len(self.train), **facts)

    def _rows(self) -> Iterator[list[str]]:
        for one in (*self.sources, self.real):
            shares = (one.near, one.below_median, one.nearer, *(one.repeats[levels] for levels in GRIDS))
            yield [one.name, f"{one.count:,}", f"{one.median:.3f}", *map(percent, shares)]


_HEADER = (
    "",
    "sketches",
    "median distance",
    "within the nearest 5 %",
    "nearer than the median",
    "nearer than a test sketch",
    *(f"equal, {levels} levels" for levels in GRIDS),
)
_KEPT_HEADER = (
    "system",
    "samples",
    "median distance",
    "of test sketches",
    "within the nearest 25 %",
    "of test sketches",
    "equal, 24 levels",
    "of test sketches",
)
_REAL = "test split"


def measure_memorization(
    data: Path,
    samples: Mapping[str, Path],
    *,
    reports: Path | None = None,
    device: str = "cpu",
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> MemorizationResult:
    """Compare the samples of some files with the test split of a corpus.

    Args:
        data: The corpus that the systems were trained on.
        samples: Files of raw samples by the name of their system.
        reports: A folder of kept reports, for a second table.
        device: Where distances are computed.
        seed: Of resampling.
        on_stage: Called with the name of each stage.
    """
    dataset = Dataset.open(data)
    plain = dataset.tight and dataset.half_extent == 1
    train, test = (normalize_split(dataset.split(name).compact, is_normalized=plain) for name in ("train", "test"))
    sources = [Source(name, _read(name, path)) for name, path in samples.items()]
    references = blurred_images(train)
    on_stage("searching for the test split")
    real = find_nearest(blurred_images(test), references, device=device)
    rng = np.random.default_rng(seed)
    measured = []
    for source in sources:
        on_stage(f"searching for {source.name}")
        nearest = find_nearest(blurred_images(source.compact), references, device=device)
        measured.append(_measure(source, nearest, real, train, test, rng))
    of_test = _measure(Source(_REAL, test), real, real, train, test, rng)
    kept = () if reports is None else kept_reports(reports)
    return MemorizationResult(measured, of_test, train, kept, reports.name if reports else "")


def _read(name: str, path: Path) -> Compact:
    compact = normalize_sketches(list(read(path).sketches)).compact
    if not len(compact):
        raise SketchError(f"{path} holds no sketch of {name} that can be compared")
    return compact


def _measure(
    source: Source, nearest: Nearest, real: Nearest, train: Compact, test: Compact, rng: np.random.Generator
) -> Memorization:
    near, below_median, nearer = compare_distances(nearest.distance, real.distance, rng)
    is_test = nearest is real
    repeats = {
        levels: measure_repeats(source.compact, train, test, levels)["real_in_training" if is_test else "in_training"]
        for levels in GRIDS
    }
    median = float(np.median(nearest.distance))
    return Memorization(
        source.name, len(source.compact), near, below_median, nearer, repeats, median, source.compact, nearest
    )


def compare_distances(ours: Floats, real: Floats, rng: np.random.Generator) -> tuple[Estimate, Estimate, Estimate]:
    """Three shares of samples with 95 % intervals from resampling both sets.

    Those within the 5 % quantile and the median of the real distances, and how often a sample is nearer than a real
    sketch.
    """
    drawn = [_shares(rng.choice(ours, len(ours)), np.sort(rng.choice(real, len(real)))) for _ in range(_RESAMPLES)]
    low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
    values = _shares(ours, np.sort(real))
    near, below_median, nearer = (
        Estimate(value, min(value, a), max(value, b))
        for value, a, b in zip(values, low.tolist(), high.tolist(), strict=True)
    )
    return near, below_median, nearer


def _shares(ours: Floats, real: Floats) -> tuple[float, float, float]:
    """The three shares for real distances in ascending order."""
    limits = np.quantile(real, (NEAR, MEDIAN))
    below = np.searchsorted(real, ours, side="left")
    not_above = np.searchsorted(real, ours, side="right")
    farther = 1 - (below + not_above) / 2 / len(real)
    return float((ours <= limits[0]).mean()), float((ours <= limits[1]).mean()), float(farther.mean())


def kept_reports(folder: Path) -> list[list[str]]:
    """The distances in kept reports, a row for each."""
    rows = []
    for path in sorted(folder.glob("*/report/report.json")):
        report = load_report(path.parent)
        novelty = report["novelty"]
        neighbors = novelty["neighbors"]
        coarse = next(each for each in _as_list(novelty["repeats"]) if each["levels"] == GRIDS[0])
        rows.append(
            [
                str(report["system"]["name"]),
                f"{novelty['samples']:,}",
                f"{neighbors['median']['value']:.3f}",
                f"{neighbors['real_median']['value']:.3f}",
                *(percent(Estimate(**neighbors[f"{real}closer_than_25"])) for real in ("", "real_")),
                *(percent(Estimate(**coarse[f"{real}in_training"])) for real in ("", "real_")),
            ]
        )
    return rows


def _as_list(value: Any) -> list[dict[str, Any]]:
    """Older reports have one grid."""
    return value if isinstance(value, list) else [value]


def draw_pairs(result: MemorizationResult, folder: Path, name: str) -> list[Path]:
    """Pairs of a sketch and its nearest training sketch, for each source: from the nearest pair to far ones.

    The training sketch is turned so that it matches. Below each pair is the distance.
    """
    sources = [*result.sources, result.real]
    pitch = _SIDE + _GAP
    height = _HEAD + 2 * pitch + 14.0
    with sheet(_MARGIN + COLUMNS * pitch, height * len(sources)) as (figure, axes):
        for number, source in enumerate(sources):
            top = height * (len(sources) - number) - _HEAD
            order = np.argsort(source.nearest.distance, kind="stable")
            text = {"fontsize": 8, "color": INK, "va": "center", "parse_math": False}
            axes.text(4, top - pitch / 2, source.name, ha="left", fontweight="bold", **text)
            axes.text(4, top - 1.5 * pitch, "nearest in training", ha="left", **text)
            for column, place in enumerate(PLACES):
                chosen = int(order[round(place * (len(order) - 1))])
                x = _MARGIN + (column + 0.5) * pitch
                axes.text(x, top + 5, f"{100 * place:g} %", ha="center", **text)
                for row, sketch in enumerate(_pair(source, chosen, result.train)):
                    draw_sketch(axes, sketch, panel_of_sketch(sketch, x, top - (row + 0.5) * pitch, _SIDE))
                axes.text(x, top - 2 * pitch - 3, f"{source.nearest.distance[chosen]:.3f}", ha="center", **text)
        return save_figure(figure, folder, name)


def _pair(source: Memorization, index: int, train: Compact) -> tuple[Sketch, Sketch]:
    """A sketch, turned to match, and its nearest training sketch."""
    nearest = source.nearest
    sketch = turned(source.compact[index : index + 1], int(nearest.symmetry[index]))
    number = int(nearest.reference[index])
    neighbor = train[number : number + 1]
    first, second = (decode_compact(compact)[0].sketch for compact in (sketch, neighbor))
    return first, second
