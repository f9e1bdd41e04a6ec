"""Which sampler in how many steps: quality against time, which is what the default of `generate` is chosen by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.table import Table

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.features import Extractor, sketch_features
from sketchdnn.evaluation.metrics import frechet_distance, kernel_distance
from sketchdnn.evaluation.samples import generate_samples
from sketchdnn.evaluation.validity import construction_distribution, deviations, kind_distribution, measure_gaps
from sketchdnn.representation import Compact
from sketchdnn.systems import System

# What is compared unless told otherwise.
WAYS: tuple[tuple[str, int], ...] = (
    ("restart", 30),
    ("restart", 50),
    ("restart", 100),
    ("predictor_corrector", 15),
    ("predictor_corrector", 25),
    ("predictor_corrector", 30),
    ("predictor_corrector", 50),
    ("predictor_corrector", 100),
    ("ancestral", 15),
    ("ancestral", 25),
    ("ancestral", 50),
    ("ancestral", 100),
    ("ancestral", 200),
    ("ddim", 25),
    ("ddim", 50),
    ("ddim", 100),
    ("dpm++", 25),
    ("dpm++", 50),
    ("authors", 50),
    ("authors", 100),
)
_COLUMNS = ("sampler", "steps", "seconds", "FID", "KID × 1000", "ends within 0.02", "median gap", "largest share off")
_PAGE = """`{command}` on {device}: {count:,} sketches of seed 0 for each row, judged by as many training sketches. The
floor, other training sketches in place of drawn ones, is FID {floor:.2f}. Seconds are those of drawing and decoding,
after a first run to warm up. The last column names the kind, or construction, whose share of all primitives is furthest
from the training split's, relative to it."""


@dataclass(frozen=True, slots=True)
class SamplerScore:
    """One way of drawing. `share_off` names the kind whose share is furthest from the data's, relative to it."""

    sampler: str
    steps: int
    seconds: float
    fid: float
    kid: float
    within: float
    median_gap: float
    share_off: str

    def row(self) -> tuple[str, ...]:
        return (
            self.sampler,
            f"{self.steps}",
            f"{self.seconds:.1f}",
            f"{self.fid:.2f}",
            f"{1000 * self.kid:.2f}",
            f"{self.within:.1%}",
            f"{self.median_gap:.4f}",
            self.share_off,
        )


@dataclass(frozen=True, slots=True)
class SamplerBench:
    """All ways of a run, drawn from the same noise and judged by the same sketches."""

    device: str
    count: int
    floor: float
    scores: tuple[SamplerScore, ...]

    def table(self) -> Table:
        table = Table(*_COLUMNS, title=f"Drawing {self.count:,} sketches, {self.device}")
        for score in self.scores:
            table.add_row(*score.row())
        return table

    def markdown(self, command: str) -> str:
        lines = [
            "# Samplers and steps",
            _PAGE.format(command=command, device=self.device, count=self.count, floor=self.floor),
            "",
            f"| {' | '.join(_COLUMNS)} |",
            f"|{'---|' * len(_COLUMNS)}",
            *(f"| {' | '.join(score.row())} |" for score in self.scores),
            "",
        ]
        return "\n".join(lines)


def score_samplers(
    system: System,
    dataset: Dataset,
    extractor: Extractor,
    ways: Sequence[tuple[str, int]] = WAYS,
    count: int = 10_000,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> SamplerBench:
    """Draw with each, and score. The system is on the extractor's device."""
    train = dataset.split("train").compact
    if len(train) < 2 * count:
        raise SketchError(f"{count:,} sketches need a training split of twice as many; this one has {len(train):,}")
    order = np.random.default_rng(0).permutation(len(train))
    on_stage("features of training sketches")
    near, far = (sketch_features(_sorted(train, order[start : start + count]), extractor) for start in (0, count))
    floor = frechet_distance(near, far)
    on_stage("warming up")
    generate_samples(system, "", count, seed=1, steps=2, sampler=None, on_progress=lambda _: None)
    scores = tuple(_scored(system, train, near, extractor, count, ways, on_stage))
    device = extractor.device
    threads = torch.get_num_threads()
    on_cpu = f"{threads} CPU thread{'s' if threads > 1 else ''}"
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else on_cpu
    return SamplerBench(name, count, floor, scores)


def _scored(
    system: System,
    train: Compact,
    near: torch.Tensor,
    extractor: Extractor,
    count: int,
    ways: Sequence[tuple[str, int]],
    on_stage: Callable[[str], None],
) -> Iterator[SamplerScore]:
    for sampler, steps in ways:
        on_stage(f"{sampler}, {steps} steps")
        start = time.perf_counter()
        samples = generate_samples(
            system, sampler, count, seed=0, steps=steps, sampler=sampler, on_progress=lambda _: None
        )
        seconds = time.perf_counter() - start
        features = sketch_features(samples.compact, extractor)
        ends = measure_gaps(samples.compact)
        yield SamplerScore(
            sampler,
            steps,
            seconds,
            frechet_distance(near, features),
            kernel_distance(near, features).value,
            ends.within_loose.value,
            ends.median.value,
            _furthest(samples.compact, train),
        )


def _furthest(ours: Compact, real: Compact) -> str:
    both = [
        one
        for measure in (kind_distribution, construction_distribution)
        for one in deviations(measure(ours), measure(real))
    ]
    worst = max(both, key=lambda one: abs(one.relative))
    return f"{worst.name} {worst.relative:+.0%}"


def _sorted(compact: Compact, index: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Compact:
    return compact[np.sort(index)]
