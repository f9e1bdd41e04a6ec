"""The paper's failure cases, counted: no pattern, gaps, redundant overlaps; and what weight on the prediction does to
each, and to variety."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from benchmarks.samples import packed, unpacked
from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.samplers import sample_authors
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.curves import MIRROR_TOLERANCE, end_gaps, mirror_symmetric
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.samples import normalize_sketches, normalize_split
from sketchdnn.evaluation.validity import GAP_LOOSE as NEAR
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, construction_distribution, kind_distribution
from sketchdnn.generation.engine import device_of, fast_inference
from sketchdnn.generation.repair import repair_sketches
from sketchdnn.geometry import Kind, overlaps
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, SketchBatch, decode_compact, encode_table, from_flat
from sketchdnn.representation.codec import decode
from sketchdnn.representation.symmetric import symmetric_keys
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.system import System

from .completion import percent
from .samples import kept_draws, weights_fingerprint

WEIGHTS = (1.0, 1.25, 1.5, 2.0)
OURS, REPAIRED, REAL = "ours", "ours, repaired", "real test sketches"
CHUNK, CPU_CHUNK = 5_000, 64
# 6 bits a coordinate, and a sketch is the same as its mirror images and quarter turns.
LEVELS = 64
LABELS = (*(kind.label for kind in Kind), "construction")
OnStage = Callable[[str], None]
COLUMNS = ("sampler", "no pattern", "a gap", "an overlap", *(f"{label}s" for label in LABELS[:-1]), "construction")


@dataclass(frozen=True, slots=True)
class Failures:
    """One set of sketches: shares of sketches that fail, shares of primitives by kind, and how many differ."""

    name: str
    sketches: int
    empty: int
    no_pattern: Estimate
    gap: Estimate
    overlap: Estimate
    shares: Mapping[str, float]
    distinct: int

    def row(self) -> tuple[str, ...]:
        failing = map(percent, (self.no_pattern, self.gap, self.overlap))
        shares = (f"{self.shares[label]:.2%}" for label in LABELS)
        return (self.name, *failing, *shares, f"{self.distinct:,} of {self.sketches:,}")


@dataclass(frozen=True, slots=True)
class FailureBench:
    """All sets of a run, drawn from the same noise."""

    count: int
    sampler: str  # of the row `ours`
    steps: int
    seconds: float | None  # of drawing; none if it was done before
    sets: tuple[Failures, ...]

    def table(self) -> Table:
        title = f"Failure cases among {self.count:,} sketches, {self.steps} steps; ours are {self.sampler}"
        table = Table(*COLUMNS, "distinct", title=title)
        for each in self.sets:
            table.add_row(*(cell.partition(" (")[0] for cell in each.row()))  # intervals are for the page
        return table

    def markdown(self, command: str) -> str:
        header = (*COLUMNS, "distinct")
        lines = [f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *(s.row() for s in self.sets))]
        empty = ", ".join(f"{each.name}: {each.empty:,}" for each in self.sets if each.empty) or "none"
        seconds = "" if self.seconds is None else f" Drawing all took {self.seconds:,.0f} s."
        return _PAGE.format(
            command=command,
            count=self.count,
            sampler=self.sampler,
            steps=self.steps,
            seconds=seconds,
            rows="\n".join(lines),
            empty=empty,
            near=NEAR,
            mirror=MIRROR_TOLERANCE,
            along=2 * LOOSE_TOLERANCE,
        )


def draw_failures(
    system: System,
    *,
    count: int = 10_000,
    steps: int = 50,
    weights: Sequence[float] = WEIGHTS,
    seed: int = 0,
    kept: Path | None = None,
    on_stage: OnStage = lambda stage: None,
) -> tuple[Mapping[str, SketchBatch], float | None]:
    """Draw in the system's own way, and in the authors' at several weights of the prediction, or take what was kept."""
    if not isinstance(system, SketchDNNSystem):
        raise SketchError("the weight of a prediction is a matter of diffusion, and this model is none")
    system.resolve(SamplingOptions(steps=steps))
    seconds: list[float] = []
    names = [OURS, *(f"authors', weight {weight:g}" for weight in weights)]

    def draw() -> Mapping[str, Tensor]:
        start = time.perf_counter()
        tensors: dict[str, Tensor] = {}
        for name, weight in zip(names, (None, *weights), strict=True):
            on_stage(f"drawing: {name}")
            batch = _sampled(system, count, seed, steps, weight)
            tensors |= {f"{name}.{part}": tensor for part, tensor in packed(batch).items()}
        seconds.append(time.perf_counter() - start)
        return tensors

    facts = {
        "count": count,
        "sampler": system.default_sampler,
        "steps": steps,
        "seed": seed,
        "weights": list(weights),
        "model": weights_fingerprint(system),
    }
    drawn = kept_draws(kept, {"failures": json.dumps(facts)}, draw)
    batches = {
        name: unpacked({part: drawn[f"{name}.{part}"] for part in ("kind", "construction", "params")}) for name in names
    }
    return batches, seconds[0] if seconds else None


def count_failures(
    drawn: Mapping[str, SketchBatch],
    seconds: float | None,
    steps: int,
    system: System,
    data: Path | None = None,
    on_stage: OnStage = lambda stage: None,
    workers: int = 1,
) -> FailureBench:
    """What fails in each set that this system drew, in ours after repair by so many `workers`, and in a test split."""
    sets = []
    for name, batch in drawn.items():
        on_stage(f"counting: {name}")
        sketches = [one.sketch for one in decode(batch, system.rows.arc_scalar) if len(one.sketch)]
        if not sketches:
            raise SketchError(f"{name}: nothing but empty sketches was drawn; use more steps or another model")
        rows = encode_table(sketches_to_table(sketches))
        sets.append(failures(name, normalize_split(rows, is_normalized=False), len(batch)))
        if name == OURS:
            on_stage(f"repairing: {name}")
            mended = [done.sketch for done in repair_sketches(sketches, workers=workers)]
            sets.append(failures(REPAIRED, normalize_sketches([each for each in mended if len(each)])[1], len(batch)))
    if data is not None:
        on_stage(f"counting: {REAL}")
        corpus = Dataset.open(data)
        test = normalize_split(corpus.split("test").compact, is_normalized=corpus.half_extent == 1)
        sets.append(failures(REAL, test, len(test)))
    return FailureBench(len(drawn[OURS]), system.default_sampler, steps, seconds, tuple(sets))


def failures(name: str, compact: Compact, count: int) -> Failures:
    """What fails in a set of normalized sketches; `count` were drawn, and those that are not here were empty."""
    gaps = end_gaps(compact)
    exists = ~np.isnan(gaps)
    ends, met = exists.sum(axis=(1, 2)), (gaps <= NEAR).sum(axis=(1, 2))
    # A sketch without ends has none that meet.
    scattered = (2 * met < ends) | (ends == 0)
    shares = {
        label: share.estimate.value
        for label, share in {**kind_distribution(compact), **construction_distribution(compact)}.items()
    }
    overlapping = [bool(overlaps(one.sketch, LOOSE_TOLERANCE)) for one in decode_compact(compact)]
    return Failures(
        name,
        len(compact),
        count - len(compact),
        share_estimate(int((scattered & ~mirror_symmetric(compact)).sum()), len(compact)),
        share_estimate(int((met < ends).sum()), len(compact)),
        share_estimate(sum(overlapping), len(compact)),
        shares,
        len(np.unique(symmetric_keys(compact, LEVELS))),
    )


def _sampled(system: SketchDNNSystem, count: int, seed: int, steps: int, weight: float | None) -> SketchBatch:
    """In its own way, as `generate` does, or in the authors' with a weight; as many steps and the same noise."""
    device = device_of(system)
    chunk = CPU_CHUNK if device.type == "cpu" else CHUNK
    options = SamplingOptions(steps=steps)

    def sample(noise: NoiseSource) -> SketchBatch:
        if weight is None:
            return system.sample(noise, options)
        return sample_authors(system.denoiser(), system.process, noise, options, prediction_weight=weight)

    drawn = []
    with torch.inference_mode(), fast_inference(system):
        for first in range(0, count, chunk):
            numbers = torch.arange(first, min(first + chunk, count), device=device)
            drawn.append(sample(seeded_noise(seed, numbers)).to("cpu"))
    return from_flat(torch.cat([batch.flat() for batch in drawn]))


_PAGE = """# The paper's failure cases, counted

    {command}

{count:,} sketches each, {steps} steps, from the same noise and the same weights of the network.{seconds} In brackets,
95 % intervals. Kinds and construction are shares of all primitives.

{rows}

- **no pattern**: fewer than half of the ends of lines and arcs have an end of another within {near:g} (larger side 2),
  and the sketch is not its own mirror image, left to right or top to bottom, within {mirror:g}.
- **a gap**: some end of a line or arc has no end of another within {near:g}. Construction lines count, and often end
  free in real sketches too: hence the last row.
- **an overlap**: some primitive lies along another that is as much construction as it is, within {along:g}.
- **distinct**: different sketches on a grid of 64 levels, mirror images and quarter turns counting as the same.
- **weight**: how much `log ŷ_0` counts in the reverse mean of labels. 1 is the paper's mean, 2 the authors' code, which
  the paper calls more weight on the prediction.
- **ours**: the sampler `{sampler}`, which `sketchdnn generate` draws with unless told otherwise.
- **repaired**: the sketches of `ours` after the repair that `sketchdnn generate` does. An end that lies on a line or
  an arc, between its ends, counts as a gap here too.

Sketches without any primitive, left out above: {empty}.
"""
