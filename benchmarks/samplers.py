"""Quality of sampling: of every sampler against its time, and from every noise level.

`score_samplers` gives the table that the default of `generate` is chosen by. `score_noise_levels` noises real sketches
to a level and denoises them. With a perfect network as many would close as in the data, at every level; the level where
they no longer do is one where the network has something to learn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.samplers import single_pass
from sketchdnn.diffusion.sampling import FEW_STEP, SamplingOptions, Start
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.features import Extractor, sketch_features
from sketchdnn.evaluation.metrics import frechet_distance, kernel_distance, precision_recall
from sketchdnn.evaluation.samples import generate_samples, normalize_sketches
from sketchdnn.evaluation.validity import (
    LOOSE_TOLERANCE,
    construction_distribution,
    deviations,
    is_closed,
    kind_distribution,
    measure_gaps,
)
from sketchdnn.generation import GenerateRequest
from sketchdnn.generation.engine import device_of, fast_inference, max_batch_size
from sketchdnn.generation.quality import STEPS
from sketchdnn.generation.repair import available_cores, repair_sketches
from sketchdnn.geometry import Sketch, profile
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.representation.batch import decode
from sketchdnn.systems import System
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.corpus import to_device

from .results import OnStage, device_name, ignore_stage, markdown_table, percent, rich_table

# The samplers and steps that are compared by default.
SETTINGS: tuple[tuple[str, int], ...] = (
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
# Few evaluations, for a model with a student: the student, and its teacher with the samplers that could replace it.
FEW_STEP_SETTINGS: tuple[tuple[str, int], ...] = (
    *((FEW_STEP, steps) for steps in (1, 2, 4, 8, 16, 50)),
    *((sampler, steps) for sampler in ("restart", "ancestral", "ddim", "dpm++") for steps in (1, 2, 4, 8, 16, 50)),
)
_COLUMNS = (
    "sampler",
    "steps",
    "seconds",
    "FID",
    "KID × 1000",
    "precision",
    "recall",
    "ends within 0.02",
    "all ends met",
    "closed",
    "closed after repair",
    "median gap",
    "largest share off",
)
# Sketches that are repaired: more would take longer than to sample them.
MAX_REPAIRED = 512
_PAGE = """# Samplers and steps

`{command}` on {device}: {count:,} sketches of seed 0 per row, scored against as many training sketches. The floor,
other training sketches in place of generated ones, is FID {floor}. Seconds are of sampling and decoding, after a
warm-up. The last column names the kind, or construction, whose share of all primitives differs most from the training
split's, relative to it. Closed: there is a loop and every curve is part of one; ends within 0.02 count as joined.
After repair no gap is allowed; it is the share of at most {repaired:,} sketches.

{table}
"""


@dataclass(frozen=True, slots=True)
class SamplerScore:
    """A sampler with its steps. `share_off` names the kind whose share differs most from the data's."""

    sampler: str
    steps: int
    seconds: float
    fid: float
    kid: float
    precision: float
    recall: float
    within: float
    all_met: float
    closed: float
    repaired_closed: float
    median_gap: float
    share_off: str

    def row(self) -> tuple[str, ...]:
        return (
            self.sampler,
            f"{self.steps}",
            f"{self.seconds:.1f}",
            *(_number(*each) for each in ((self.fid, 2), (1000 * self.kid, 2), (self.precision, 3), (self.recall, 3))),
            f"{self.within:.1%}",
            f"{self.all_met:.1%}",
            f"{self.closed:.1%}",
            f"{self.repaired_closed:.1%}",
            f"{self.median_gap:.4f}",
            self.share_off,
        )


@dataclass(frozen=True, slots=True)
class SamplerBenchmark:
    """All samplers of a run, from the same noise and scored against the same sketches."""

    device: str
    count: int
    floor: float
    scores: tuple[SamplerScore, ...]

    def table(self) -> Table:
        rows = (score.row() for score in self.scores)
        return rich_table(f"Sampling {self.count:,} sketches, {self.device}", _COLUMNS, rows)

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        table = markdown_table(_COLUMNS, (score.row() for score in self.scores))
        facts = {"device": self.device, "count": self.count, "repaired": MAX_REPAIRED}
        return _PAGE.format(command=command, floor=_number(self.floor, 2), table=table, **facts)


def score_samplers(
    system: System,
    dataset: Dataset,
    extractor: Extractor | None,
    settings: Sequence[tuple[str, int]] = SETTINGS,
    count: int = 10_000,
    on_stage: OnStage = ignore_stage,
    *,
    max_repaired: int = MAX_REPAIRED,
) -> SamplerBenchmark:
    """Sample with each sampler and score the sketches.

    Args:
        system: The model, on the device of the extractor.
        dataset: The corpus; its training split must hold twice `count` sketches.
        extractor: The features of FID; None leaves out the scores that need them.
        settings: Samplers and their steps.
        count: Sketches per sampler.
        on_stage: Called with the name of each stage.
        max_repaired: Sketches per sampler that are repaired.
    """
    train = dataset.split("train").compact
    if len(train) < 2 * count:
        raise SketchError(f"{count:,} sketches need a training split of twice as many; this one has {len(train):,}")
    order = np.random.default_rng(0).permutation(len(train))
    reference, floor = None, math.nan
    if extractor is not None:
        on_stage("features of training sketches")
        reference, others = (
            sketch_features(train[np.sort(order[start : start + count])], extractor) for start in (0, count)
        )
        floor = frechet_distance(reference, others)
    on_stage("warming up")
    generate_samples(system, "", GenerateRequest(count=count, seed=1, steps=2, repair=False))
    scores = []
    for sampler, steps in settings:
        on_stage(f"{sampler}, {steps} steps")
        start = time.perf_counter()
        request = GenerateRequest(count=count, seed=0, steps=steps, sampler=sampler, repair=False)
        samples = generate_samples(system, sampler, request)
        seconds = time.perf_counter() - start
        distances = (math.nan,) * 4
        if extractor is not None and reference is not None:
            features = sketch_features(samples.compact, extractor)
            overlap = precision_recall(reference, features)
            kid = kernel_distance(reference, features).value
            distances = frechet_distance(reference, features), kid, overlap.precision.value, overlap.recall.value
        ends = measure_gaps(samples.compact)
        sketches = [decoded.sketch for decoded in decode_compact(samples.compact)]
        closed = sum(is_closed(profile(sketch, LOOSE_TOLERANCE)) for sketch in sketches)
        repaired = repair_sketches(sketches[:max_repaired], workers=available_cores())
        scores.append(
            SamplerScore(
                sampler,
                steps,
                seconds,
                *distances,
                ends.within_loose.value,
                ends.sketches_within_loose.value,
                closed / len(sketches),
                sum(is_closed(profile(result.sketch)) for result in repaired) / max(len(repaired), 1),
                ends.median.value,
                _largest_deviation(samples.compact, train),
            )
        )
    return SamplerBenchmark(device_name(str(device_of(system))), count, floor, tuple(scores))


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _largest_deviation(samples: Compact, real: Compact) -> str:
    shares = [
        deviation
        for measure in (kind_distribution, construction_distribution)
        for deviation in deviations(measure(samples), measure(real))
    ]
    worst = max(shares, key=lambda deviation: abs(deviation.relative))
    return f"{worst.name} {worst.relative:+.0%}"


# σ of the noise of a coordinate relative to the signal, where the size of a sketch is 2. The last is pure noise.
NOISE_LEVELS = (0.03, 0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 4.0, float("inf"))
_LEVEL_COLUMNS = ("σ", "evaluations", "closed", "ends within 0.02", "same number of primitives")


@dataclass(frozen=True, slots=True)
class LevelScore:
    """Sketches denoised from one level. σ = 0 stands for the real sketches."""

    sigma: float
    evaluations: int
    closed: Estimate
    within: Estimate
    same_count: Estimate

    def row(self) -> tuple[str, ...]:
        sigma = "real sketches" if self.sigma == 0 else "noise alone" if self.sigma == np.inf else f"{self.sigma:.3f}"
        return (sigma, f"{self.evaluations}", *map(percent, (self.closed, self.within, self.same_count)))


@dataclass(frozen=True, slots=True)
class NoiseLevelBenchmark:
    """All levels of a run, from the same sketches and the same noise."""

    count: int
    sampler: str
    steps: int
    scores: tuple[LevelScore, ...]

    def table(self) -> Table:
        title = f"{self.count:,} test sketches, noised and denoised, {self.sampler}"
        return rich_table(title, _LEVEL_COLUMNS, (score.row() for score in self.scores))

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        drops = ((a.closed.value - b.closed.value, a.row()[0], b.row()[0]) for a, b in pairwise(self.scores))
        lost, below, above = max(drops)
        return _LEVEL_PAGE.format(
            command=command,
            count=self.count,
            sampler=self.sampler,
            steps=self.steps,
            table=markdown_table(_LEVEL_COLUMNS, (score.row() for score in self.scores)),
            lost=100 * lost,
            below=below,
            above=above,
        )


def score_noise_levels(
    system: System,
    data: Path,
    *,
    count: int = 500,
    steps: int = STEPS,
    levels: Sequence[float] = NOISE_LEVELS,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> NoiseLevelBenchmark:
    """Noise test sketches to each level and denoise them with those of `steps` timesteps that lie below it."""
    if not isinstance(system, SketchDNNSystem):
        raise SketchError("noise levels need a model of the system sketchdnn; this model is of another system")
    options = system.resolve(SamplingOptions(steps=steps))
    test = Dataset.open(data).split("test").compact  # in the frame of training
    if len(test) < count:
        raise SketchError(f"{count:,} sketches need a test split of as many; this one has {len(test):,}")
    compact = test[np.sort(np.random.default_rng(seed).permutation(len(test))[:count])]
    real = [decoded.sketch for decoded in decode_compact(compact)]
    timesteps, sampler = options.timesteps(system.config.num_steps), single_pass(options.sampler_name)
    schedule = system.process.params.to("cpu")
    sigma = (schedule.var / schedule.alpha_bar.clamp(min=1e-300)).sqrt()
    scores = [_score_level(0.0, 0, real, real)]
    for level in sorted(levels):
        begin = max((t for t in timesteps if sigma[t] <= level or np.isinf(level)), default=0)
        if begin == 0:
            raise SketchError(f"none of {steps} steps has noise as low as {level:g}; use more steps")
        on_stage(f"σ = {level:g}")
        below = [t for t in timesteps if t <= begin]
        sketches = _denoise(system, compact, None if np.isinf(level) else begin, below, seed, sampler)
        scores.append(_score_level(np.inf if np.isinf(level) else float(sigma[begin]), len(below) - 1, real, sketches))
    return NoiseLevelBenchmark(count, sampler, steps, tuple(scores))


def _denoise(
    system: SketchDNNSystem, compact: Compact, begin: int | None, steps: Sequence[int], seed: int, sampler: str
) -> list[Sketch]:
    device = device_of(system)
    rows, batch_size = to_device(compact, device), max_batch_size(device)
    sketches: list[Sketch] = []
    for first in range(0, len(rows), batch_size):
        numbers = torch.arange(first, min(first + batch_size, len(rows)), device=device)
        clean = rows.batch(numbers, torch.zeros_like(numbers), system.rows)
        start = None if begin is None else Start(begin, clean)
        with torch.inference_mode(), fast_inference(system):
            batch = system.sample(seeded_noise(seed, numbers), SamplingOptions(sampler, steps, start=start))
        sketches += [decoded.sketch for decoded in decode(batch.to("cpu"), system.rows.arc_scalar)]
    return sketches


def _score_level(sigma: float, evaluations: int, real: Sequence[Sketch], sketches: Sequence[Sketch]) -> LevelScore:
    """Shares of all sketches; empty ones count as open and have no ends."""
    kept, compact, *_ = normalize_sketches(sketches)
    closed = sum(is_closed(profile(sketch, LOOSE_TOLERANCE)) for sketch in kept)
    same = sum(len(a) == len(b) for a, b in zip(real, sketches, strict=True))
    ends = measure_gaps(compact).within_loose
    count = len(sketches)
    return LevelScore(sigma, evaluations, share_estimate(closed, count), ends, share_estimate(same, count))


_LEVEL_PAGE = """# Where profiles fail to close

    {command}

{count:,} sketches of the test split, noised to a level and denoised with the last of {steps} `{sampler}` steps. σ is
the noise of a coordinate where the sketch's larger side is 2. In brackets, 95 % intervals.

{table}

- **closed**: there is a loop and every curve is part of one; ends within 0.02 count as joined.
- With a perfect network every row would have the first row's share of closed sketches. The largest drop is between
  {below} and {above}: {lost:.1f} points.
- With much noise a sketch becomes another one, which is not an error. The last column shows where this begins.
"""
