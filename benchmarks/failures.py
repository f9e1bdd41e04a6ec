"""The paper's failure cases: their shares, also by weight of the prediction, and the figure of the worst samples.

| the paper's figure 5 | score in the figure | marked |
|---|---|---|
| gaps between primitives | ends away from other ends and curves, then the widest gap | rings |
| extraneous primitives | length of overlapping curves | both curves, one as a wide band |
| no discernible pattern | crossings of curves | crosses |

The larger side of a sketch is 2, as everywhere in `evaluation`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.samplers import sample_authors
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.curves import MIRROR_TOLERANCE, end_gaps, mirror_symmetric
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.samples import normalize_sketches, normalize_split
from sketchdnn.evaluation.validity import GAP_LOOSE, LOOSE_TOLERANCE, construction_distribution, kind_distribution
from sketchdnn.generation.engine import device_of, fast_inference
from sketchdnn.generation.repair import repair_sketches
from sketchdnn.geometry import Arc, Kind, Line, Point, Sketch, Vec, normalize, overlaps, profile, tessellate
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.render import Style, strokes
from sketchdnn.render.figures import (
    BLUE,
    INK,
    ORANGE,
    Panel,
    draw_sketch,
    draw_stroke,
    panel_of_sketch,
    polyline,
    save_figure,
    sheet,
)
from sketchdnn.representation import Compact, SketchBatch, decode_compact, encode, encode_table, from_flat
from sketchdnn.representation.batch import decode
from sketchdnn.representation.hashing import symmetric_keys
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.system import System

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table
from .samples import cached_samples, pack, unpack, weights_hash

WEIGHTS = (1.0, 1.25, 1.5, 2.0)
OURS, REPAIRED, REAL = "ours", "ours, repaired", "real test sketches"
GPU_BATCH, CPU_BATCH = 5_000, 64
# Distinct sketches differ on this grid; mirror images and quarter turns are the same sketch.
GRID_LEVELS = 64
LABELS = (*(kind.label for kind in Kind), "construction")
COLUMNS = (
    "sampler",
    "no pattern",
    "a gap",
    "an overlap",
    *(f"{label}s" for label in LABELS[:-1]),
    "construction",
    "distinct",
)


@dataclass(frozen=True, slots=True)
class FailureShares:
    """One set of sketches: shares of failing sketches, shares of primitives by kind, and the distinct sketches."""

    name: str
    sketches: int
    empty: int
    no_pattern: Estimate
    gap: Estimate
    overlap: Estimate
    shares: Mapping[str, float]
    distinct: int

    def row(self) -> tuple[str, ...]:
        failures = map(percent, (self.no_pattern, self.gap, self.overlap))
        shares = (f"{self.shares[label]:.2%}" for label in LABELS)
        return (self.name, *failures, *shares, f"{self.distinct:,} of {self.sketches:,}")


@dataclass(frozen=True, slots=True)
class FailureBenchmark:
    """All sets of a run, from the same noise."""

    count: int
    sampler: str  # of the row `ours`
    steps: int
    seconds: float | None  # of sampling; None if the samples were stored
    sets: tuple[FailureShares, ...]

    def table(self) -> Table:
        title = f"Failure cases among {self.count:,} sketches, {self.steps} steps; ours are {self.sampler}"
        return rich_table(title, COLUMNS, (shares.row() for shares in self.sets))

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        empty = ", ".join(f"{shares.name}: {shares.empty:,}" for shares in self.sets if shares.empty) or "none"
        return _PAGE.format(
            command=command,
            count=self.count,
            sampler=self.sampler,
            steps=self.steps,
            seconds="" if self.seconds is None else f" Sampling took {self.seconds:,.0f} s.",
            table=markdown_table(COLUMNS, (shares.row() for shares in self.sets)),
            empty=empty,
            near=GAP_LOOSE,
            mirror=MIRROR_TOLERANCE,
            along=2 * LOOSE_TOLERANCE,
        )


def sample_for_failures(
    system: System,
    *,
    count: int = 10_000,
    steps: int = 50,
    weights: Sequence[float] = WEIGHTS,
    seed: int = 0,
    cache: Path | None = None,
    on_stage: OnStage = ignore_stage,
) -> tuple[Mapping[str, SketchBatch], float | None]:
    """Samples of the default sampler, and of the authors' sampler at several weights of the prediction.

    Returns:
        The batches by name, and the seconds of sampling; None if the samples were stored.
    """
    if not isinstance(system, SketchDNNSystem):
        raise SketchError("failure cases need a model of the system sketchdnn; this model is of another system")
    system.resolve(SamplingOptions(steps=steps))
    seconds: list[float] = []
    names = [OURS, *(f"authors', weight {weight:g}" for weight in weights)]

    def sample() -> Mapping[str, Tensor]:
        start = time.perf_counter()
        tensors: dict[str, Tensor] = {}
        for name, weight in zip(names, (None, *weights), strict=True):
            on_stage(f"sampling: {name}")
            batch = _sample_batch(system, count, seed, steps, weight)
            tensors |= {f"{name}.{part}": tensor for part, tensor in pack(batch).items()}
        seconds.append(time.perf_counter() - start)
        return tensors

    settings = {
        "count": count,
        "sampler": system.default_sampler,
        "steps": steps,
        "seed": seed,
        "weights": list(weights),
        "model": weights_hash(system),
    }
    samples = cached_samples(cache, {"failures": json.dumps(settings)}, sample)
    return {name: unpack(samples, name) for name in names}, seconds[0] if seconds else None


def count_failures(
    samples: Mapping[str, SketchBatch],
    seconds: float | None,
    steps: int,
    system: System,
    data: Path | None = None,
    on_stage: OnStage = ignore_stage,
    workers: int = 1,
) -> FailureBenchmark:
    """Failure shares of every sample set, of ours after repair, and of the test split of a corpus if one is given."""
    sets = []
    for name, batch in samples.items():
        on_stage(f"counting: {name}")
        sketches = [decoded.sketch for decoded in decode(batch, system.rows.arc_scalar) if len(decoded.sketch)]
        if not sketches:
            raise SketchError(f"{name}: all sketches are empty; use more steps or another model")
        rows = encode_table(sketches_to_table(sketches))
        sets.append(failure_shares(name, normalize_split(rows, is_normalized=False), len(batch)))
        if name == OURS:
            on_stage(f"repairing: {name}")
            repaired = [result.sketch for result in repair_sketches(sketches, workers=workers)]
            compact = normalize_sketches([sketch for sketch in repaired if len(sketch)])[1]
            sets.append(failure_shares(REPAIRED, compact, len(batch)))
    if data is not None:
        on_stage(f"counting: {REAL}")
        corpus = Dataset.open(data)
        test = normalize_split(corpus.split("test").compact, is_normalized=corpus.half_extent == 1)
        sets.append(failure_shares(REAL, test, len(test)))
    return FailureBenchmark(len(samples[OURS]), system.default_sampler, steps, seconds, tuple(sets))


def failure_shares(name: str, compact: Compact, count: int) -> FailureShares:
    """The failure shares of normalized sketches; `count` includes the empty sketches, which are not in `compact`."""
    gaps = end_gaps(compact)
    ends, met = (~np.isnan(gaps)).sum(axis=(1, 2)), (gaps <= GAP_LOOSE).sum(axis=(1, 2))
    scattered = (2 * met < ends) | (ends == 0)
    shares = {
        label: share.estimate.value
        for label, share in {**kind_distribution(compact), **construction_distribution(compact)}.items()
    }
    overlapping = [bool(overlaps(decoded.sketch, LOOSE_TOLERANCE)) for decoded in decode_compact(compact)]
    return FailureShares(
        name,
        len(compact),
        count - len(compact),
        share_estimate(int((scattered & ~mirror_symmetric(compact)).sum()), len(compact)),
        share_estimate(int((met < ends).sum()), len(compact)),
        share_estimate(sum(overlapping), len(compact)),
        shares,
        len(np.unique(symmetric_keys(compact, GRID_LEVELS))),
    )


def _sample_batch(system: SketchDNNSystem, count: int, seed: int, steps: int, weight: float | None) -> SketchBatch:
    """Samples of the default sampler, or of the authors' with a weight; the same steps and noise."""
    device = device_of(system)
    batch_size = CPU_BATCH if device.type == "cpu" else GPU_BATCH
    options = SamplingOptions(steps=steps)

    def sample(noise: NoiseSource) -> SketchBatch:
        if weight is None:
            return system.sample(noise, options)
        return sample_authors(system.denoiser(), system.process, noise, options, prediction_weight=weight)

    batches = []
    with torch.inference_mode(), fast_inference(system):
        for first in range(0, count, batch_size):
            numbers = torch.arange(first, min(first + batch_size, count), device=device)
            batches.append(sample(seeded_noise(seed, numbers)).to("cpu"))
    return from_flat(torch.cat([batch.flat() for batch in batches]))


PANEL_SIDE, PANEL_GAP, HEAD_HEIGHT, CAPTION_HEIGHT, BOTTOM_MARGIN = 108.0, 18.0, 30.0, 34.0, 10.0
# The tolerance of tessellation for the distance of an end to a curve.
_TESSELLATION = 1e-3
_PALE = "#b4bac1"


@dataclass(frozen=True, slots=True)
class Case:
    """A failing sketch with its score and caption.

    The fault is at some points, or in pairs of primitives, the longer of each pair first.
    """

    number: int
    sketch: Sketch
    score: tuple[float, ...]
    caption: str
    points: tuple[Vec, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    marker: str = "o"  # matplotlib's marker at the points


@dataclass(frozen=True, slots=True)
class FailureMode:
    """A type of failure, its score, the number of failing sketches, and the worst of them."""

    name: str
    scored_by: str
    count: int
    worst: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """All failure modes of a set of sketches."""

    sketches: int
    modes: tuple[FailureMode, ...]


def find_failures(sketches: Sequence[Sketch], *, each: int = 4) -> Failures:
    """The `each` worst sketches of every failure mode; fewer if fewer fail."""
    if not sketches:
        raise SketchError("failures need at least one sample")
    if each < 1:
        raise SketchError(f"at least one case of each mode must be shown, not {each}")
    plain = [replace(normalize(sketch, 1.0)[0], extra={}) for sketch in sketches]
    modes = []
    for (name, scored_by), find_case in _MODES.items():
        cases = [case for number, sketch in enumerate(plain) if (case := find_case(number, sketch)) is not None]
        cases.sort(key=lambda case: (tuple(-part for part in case.score), case.number))
        modes.append(FailureMode(name, scored_by, len(cases), tuple(cases[:each])))
    return Failures(len(sketches), tuple(modes))


def write_failures(folder: Path, failures: Failures) -> list[Path]:
    """Write PNG and SVG: a row of the worst sketches per failure mode, with the fault marked and measured."""
    columns = max(1, *(len(mode.worst) for mode in failures.modes))
    row_height = HEAD_HEIGHT + PANEL_SIDE + CAPTION_HEIGHT
    width, height = columns * (PANEL_SIDE + PANEL_GAP) - PANEL_GAP, len(failures.modes) * row_height - BOTTOM_MARGIN
    with sheet(width, height) as (figure, axes):
        for number, mode in enumerate(failures.modes):
            top = height - number * row_height
            axes.text(0, top - 9, mode.name, fontsize=9.5, fontweight="bold", va="center", color=INK)
            summary = f"{mode.count} of {failures.sketches} samples; {mode.scored_by}"
            axes.text(0, top - 20, summary, fontsize=7, va="center", color="#555555")
            for column, case in enumerate(mode.worst):
                x, y = column * (PANEL_SIDE + PANEL_GAP) + PANEL_SIDE / 2, top - HEAD_HEIGHT - PANEL_SIDE / 2
                _draw_case(axes, case, panel_of_sketch(case.sketch, x, y, PANEL_SIDE))
                look = {"fontsize": 7, "ha": "center", "va": "top", "color": INK, "linespacing": 1.3}
                axes.text(x, y - PANEL_SIDE / 2 - 2, case.caption, **look)
        return save_figure(figure, folder, "failures")


def find_open_ends(number: int, sketch: Sketch) -> Case | None:
    """Ends of lines and arcs further than 0.02 from every other end and curve.

    Ends of construction do not count, but an end on a construction curve is not open.
    """
    solid = [isinstance(item, Line | Arc) and not item.construction for item in sketch]
    gaps = end_gaps(encode([sketch], max_primitives=len(sketch)))[0]
    ends: list[tuple[Vec, float]] = []
    for index, item in enumerate(sketch):
        if solid[index] and isinstance(item, Line | Arc):
            for at, gap in zip((item.start, item.end), gaps[index].tolist(), strict=True):
                if gap > GAP_LOOSE and (distance := min(gap, _distance_to_others(at, sketch, index))) > GAP_LOOSE:
                    ends.append((at, distance))
    if not ends:
        return None
    widest = max(distance for _, distance in ends)
    gap_words = f"widest gap {widest:.2f}" if math.isfinite(widest) else "nothing else to meet"
    caption = f"{len(ends)} of {2 * sum(solid)} ends open\n{gap_words}"
    return Case(number, sketch, (len(ends), widest), caption, tuple(at for at, _ in ends))


def find_overlaps(number: int, sketch: Sketch) -> Case | None:
    """Curves that lie along one another, both construction or both not."""
    items = list(sketch)
    pairs = [o for o in overlaps(sketch, LOOSE_TOLERANCE) if not isinstance(items[o.first], Point)]
    if not pairs:
        return None
    length = sum(overlap.length for overlap in pairs)
    caption = f"{_plural(len(pairs), 'pair')} on top of each other\n{length:.2f} drawn twice"
    by_length = [sorted((o.first, o.second), key=lambda i: -items[i].length) for o in pairs]
    return Case(number, sketch, (length,), caption, pairs=tuple((longer, shorter) for longer, shorter in by_length))


def find_crossings(number: int, sketch: Sketch) -> Case | None:
    """Crossings of curves away from their ends, without construction."""
    points = [contact.at for contact in profile(sketch, LOOSE_TOLERANCE).contacts if contact.crosses]
    if not points:
        return None
    return Case(number, sketch, (len(points),), _plural(len(points), "crossing"), tuple(points), marker="x")


_MODES: Mapping[tuple[str, str], Callable[[int, Sketch], Case | None]] = {
    (
        "Gaps",
        f"worst by number of ends further than {GAP_LOOSE} from any end or curve, larger side = 2",
    ): find_open_ends,
    ("Redundant primitives", "worst by length drawn twice, blue on orange; larger side = 2"): find_overlaps,
    ("Crossing curves", "worst by number of places where curves cross, construction aside"): find_crossings,
}


def _distance_to_others(at: Vec, sketch: Sketch, own: int) -> float:
    """The distance from a point to the nearest curve other than number `own`."""
    nearest = math.inf
    for index, item in enumerate(sketch):
        if index != own and not isinstance(item, Point):
            path = tessellate(item, _TESSELLATION)
            start, along = path[:-1], np.diff(path, axis=0)
            share = ((np.array(at) - start) * along).sum(axis=1) / (along**2).sum(axis=1)
            foot = start + np.clip(share, 0, 1)[:, None] * along
            nearest = min(nearest, float(np.hypot(*(foot - at).T).min()))
    return nearest


def _draw_case(axes: Any, case: Case, panel: Panel) -> None:
    style = Style().sized(panel.side)
    draw_sketch(axes, case.sketch, panel, replace(style, palette=(_PALE if case.pairs else "#5b6770",)))
    drawn = {id(stroke.primitive): stroke for stroke in strokes(case.sketch, panel.view, style)}
    items = list(case.sketch)
    for longer in {longer for longer, _ in case.pairs}:
        below = zip(*polyline(items[longer], panel), strict=True)
        axes.plot(*below, color=ORANGE, linewidth=4 * style.width, alpha=0.45, solid_capstyle="round")
    for _, shorter in case.pairs:
        stroke = drawn[id(items[shorter])]
        draw_stroke(axes, replace(stroke, color=BLUE, width=1.4 * stroke.width), panel)
    for at in case.points:
        x, y = panel.to_sheet(at)
        size = 8.0 if case.marker == "o" else 4.5
        axes.plot([x], [y], case.marker, color=ORANGE, markersize=size, markerfacecolor="none", markeredgewidth=1.1)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


_PAGE = """# The paper's failure cases

    {command}

{count:,} sketches each, {steps} steps, from the same noise and the same network.{seconds} In brackets, 95 % intervals.
Kinds and construction are shares of all primitives.

{table}

- **no pattern**: fewer than half of the ends of lines and arcs have an end of another within {near:g} (larger side 2),
  and the sketch is not its own mirror image, left to right or top to bottom, within {mirror:g}.
- **a gap**: some end of a line or arc has no end of another within {near:g}. Construction lines count; they
  often have open ends in real sketches too, as the last row shows.
- **an overlap**: some primitive lies along another with the same construction flag, within {along:g}.
- **distinct**: different sketches on a grid of 64 levels, where mirror images and quarter turns are the same.
- **weight**: the weight of `log ŷ_0` in the reverse mean of labels. 1 is the paper's mean, 2 the authors' code.
- **ours**: the sampler `{sampler}`, the default of `sketchdnn generate`.
- **repaired**: the sketches of `ours` after the repair of `sketchdnn generate`. An end on the inside of a line or an
  arc counts as a gap here too.

Sketches without primitives, left out above: {empty}.
"""
