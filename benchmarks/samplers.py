"""Which sampler in how many steps: quality against time, which is what the default of `generate` is chosen by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.samplers import single_pass
from sketchdnn.diffusion.sampling import SamplingOptions, Start
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.features import Extractor, sketch_features
from sketchdnn.evaluation.metrics import frechet_distance, kernel_distance
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
from sketchdnn.generation.generate import STEPS
from sketchdnn.geometry import Sketch, profile
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.representation.codec import decode
from sketchdnn.systems import System
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.corpus import to_device

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
    generate_samples(system, "", GenerateRequest(count=count, seed=1, steps=2, repair=False))
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
        request = GenerateRequest(count=count, seed=0, steps=steps, sampler=sampler, repair=False)
        samples = generate_samples(system, sampler, request)
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


# σ, the noise of a coordinate beside what is left of it; the size of a sketch is 2. The last is nothing but noise.
LEVELS = (0.03, 0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 4.0, float("inf"))
_LEVEL_COLUMNS = ("σ", "evaluations", "closed", "ends within 0.02", "as many primitives as before")


@dataclass(frozen=True, slots=True)
class LevelScore:
    """Sketches drawn again from one level; those of no noise are the real ones themselves."""

    sigma: float
    evaluations: int
    closed: Estimate
    within: Estimate
    same_count: Estimate

    def row(self) -> tuple[str, ...]:
        sigma = "real sketches" if self.sigma == 0 else "noise alone" if self.sigma == np.inf else f"{self.sigma:.3f}"
        return (sigma, f"{self.evaluations}", *map(_percent, (self.closed, self.within, self.same_count)))


@dataclass(frozen=True, slots=True)
class LevelBench:
    """All levels of a run: the same sketches, the same noise."""

    count: int
    sampler: str
    steps: int
    scores: tuple[LevelScore, ...]

    def table(self) -> Table:
        table = Table(*_LEVEL_COLUMNS, title=f"{self.count:,} test sketches, noised and drawn again, {self.sampler}")
        for score in self.scores:
            table.add_row(*(cell.partition(" (")[0] for cell in score.row()))
        return table

    def markdown(self, command: str) -> str:
        rows = [_LEVEL_COLUMNS, ("---",) * len(_LEVEL_COLUMNS), *(score.row() for score in self.scores)]
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        falls = ((a.closed.value - b.closed.value, a.row()[0], b.row()[0]) for a, b in pairwise(self.scores))
        lost, below, above = max(falls)
        return _LEVEL_PAGE.format(
            command=command,
            count=self.count,
            sampler=self.sampler,
            steps=self.steps,
            rows=lines,
            lost=100 * lost,
            below=below,
            above=above,
        )


def score_levels(
    system: System,
    data: Path,
    *,
    count: int = 500,
    steps: int = STEPS,
    levels: Sequence[float] = LEVELS,
    seed: int = 0,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> LevelBench:
    """Noise some test sketches to each level, by the steps of a whole walk that lie below it, and draw them again."""
    if not isinstance(system, SketchDNNSystem):
        raise SketchError("only a sketchdnn can go on from a noisy sketch whose noise is known; this model is another")
    options = system.resolve(SamplingOptions(steps=steps))
    test = Dataset.open(data).split("test").compact  # as the model learnt them, in whatever frame
    if len(test) < count:
        raise SketchError(f"{count:,} sketches need a test split of as many; this one has {len(test):,}")
    some = test[np.sort(np.random.default_rng(seed).permutation(len(test))[:count])]
    real = [one.sketch for one in decode_compact(some)]
    walk, sampler = options.timesteps(system.max_steps), single_pass(options.sampler_name)
    schedule = system.process.params.to("cpu")
    sigma = (schedule.var / schedule.alpha_bar.clamp(min=1e-300)).sqrt()
    scores = [_score(0.0, 0, real, real)]
    for level in sorted(levels):
        begin = max((t for t in walk if sigma[t] <= level or np.isinf(level)), default=0)
        if begin == 0:
            raise SketchError(f"a walk of {steps} steps has none with so little noise as {level:g}; take more steps")
        on_stage(f"σ = {level:g}")
        below = [t for t in walk if t <= begin]
        drawn = _drawn_again(system, some, None if np.isinf(level) else begin, below, seed, sampler)
        scores.append(_score(np.inf if np.isinf(level) else float(sigma[begin]), len(below) - 1, real, drawn))
    return LevelBench(count, sampler, steps, tuple(scores))


def _drawn_again(
    system: SketchDNNSystem, some: Compact, begin: int | None, steps: Sequence[int], seed: int, sampler: str
) -> list[Sketch]:
    device = device_of(system)
    rows, chunk, drawn = to_device(some, device), max_batch_size(device), []
    for first in range(0, len(rows), chunk):
        numbers = torch.arange(first, min(first + chunk, len(rows)), device=device)
        clean = rows.batch(numbers, torch.zeros_like(numbers), system.rows)
        start = None if begin is None else Start(begin, clean)
        with torch.inference_mode(), fast_inference(system):
            batch = system.sample(seeded_noise(seed, numbers), SamplingOptions(sampler, steps, start=start))
        drawn += [one.sketch for one in decode(batch.to("cpu"), system.rows.arc_scalar)]
    return drawn


def _score(sigma: float, evaluations: int, real: Sequence[Sketch], drawn: Sequence[Sketch]) -> LevelScore:
    """Closed is a matter of all of them; one of which nothing is left has no ends."""
    kept, compact, *_ = normalize_sketches(drawn)
    closed = sum(is_closed(profile(sketch, LOOSE_TOLERANCE)) for sketch in kept)
    same = sum(len(a) == len(b) for a, b in zip(real, drawn, strict=True))
    ends = measure_gaps(compact).within_loose
    return LevelScore(sigma, evaluations, share_estimate(closed, len(drawn)), ends, share_estimate(same, len(drawn)))


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} % ({100 * share.low:.1f}–{100 * share.high:.1f})"


_LEVEL_PAGE = """# Where profiles fail to close

    {command}

{count:,} sketches of the test split, noised to a level and drawn again from there with the last of {steps} `{sampler}`
steps. σ is the noise of a coordinate where the sketch's larger side is 2. In brackets, 95 % intervals.

{rows}

- **closed**: there is a loop and every curve is part of one, ends within 0.02 counting as met.
- With a perfect network every row would have the first row's share of closed sketches. Most of it is lost between
  {below} and {above}: {lost:.1f} points.
- With much noise a sketch becomes another one, which is no fault: the last column tells from where on.
"""
