"""How often generated sketches meet their conditions, at the first attempt and within all attempts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from sketchdnn.data.procedural import procedural
from sketchdnn.diffusion.sampling import Conditioning, SamplingOptions, condition_on_rows
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditioning import choose_conditioning, encode_sketches
from sketchdnn.generation.conditions import CLOSE_TOLERANCE, MAX_ATTEMPTS, Conditions, find_shortfall, trained_range
from sketchdnn.generation.engine import Engine, SampleId, device_of, max_batch_size
from sketchdnn.generation.quality import STEPS
from sketchdnn.geometry import Kind, Sketch, normalize
from sketchdnn.representation import from_flat
from sketchdnn.representation.batch import decode
from sketchdnn.systems import System

from .results import OnStage, device_name, ignore_stage, markdown_table, rich_table

_COLUMNS = ("", "requests", "met at once", "met in the end", "most attempts")
_GPU_BATCH = 500
# Numbers of lines, circles, arcs and points, for models without a training index.
_DEFAULT_MIXTURES = np.array([[4, 2, 1, 1], [8, 2, 0, 0], [6, 0, 6, 0], [4, 4, 2, 2]])


@dataclass(frozen=True, slots=True)
class ConditionScore:
    """Requests of one type: those met at the first attempt, those met in the end, and the attempts that took."""

    name: str
    requests: int
    first: int
    met: int
    attempts: int


@dataclass(frozen=True, slots=True)
class ConditionBenchmark:
    """All types of requests."""

    device: str
    sampler: str
    steps: int
    seconds: float
    scores: tuple[ConditionScore, ...]

    def table(self) -> Table:
        title = f"Conditions, {self.steps} {self.sampler} steps, {self.device}, {self.seconds:.0f} s"
        return rich_table(title, _COLUMNS, map(_cells, self.scores))

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(
            command=command,
            device=self.device,
            seconds=self.seconds,
            steps=self.steps,
            sampler=self.sampler,
            table=markdown_table(_COLUMNS, map(_cells, self.scores)),
            tolerance=CLOSE_TOLERANCE,
            attempts=MAX_ATTEMPTS,
        )


def measure_conditions(
    system: System,
    requests: int = 500,
    *,
    seed: int = 0,
    steps: int = STEPS,
    sampler: str | None = None,
    on_stage: OnStage = ignore_stage,
) -> ConditionBenchmark:
    """Measure `requests` requests of each type."""
    if requests < 1:
        raise SketchError(f"at least one request must be measured, not {requests}")
    conditions_by_type = {
        "number of primitives": _count_conditions(system, requests),
        "number of each kind": _kind_conditions(system, requests),
        "number of lines and of primitives": _line_conditions(system, requests),
        "closed profile": [Conditions(closed=True)] * requests,
    }
    options = system.resolve(SamplingOptions(sampler, steps))
    options = SamplingOptions(options.sampler_name, steps)
    start = time.perf_counter()
    scores = []
    for name, conditions in conditions_by_type.items():
        on_stage(name)
        scores.append(_score_conditions(name, system, conditions, seed, options))
    on_stage("given primitives")
    scores.append(_score_given_primitives(system, requests, seed, options))
    seconds = time.perf_counter() - start
    return ConditionBenchmark(device_name(device_of(system)), str(options.sampler), steps, seconds, tuple(scores))


def _score_conditions(
    name: str, system: System, requests: Sequence[Conditions], seed: int, options: SamplingOptions
) -> ConditionScore:
    """Sample until each request is met or the attempts run out."""

    def condition(samples: Tensor) -> Conditioning | None:
        conditionings = [
            choose_conditioning(requests[int(sample) & 0xFFFFFFFF], seed, samples[i : i + 1], system)
            for i, sample in enumerate(samples)
        ]
        return _concatenate([conditioning for conditioning in conditionings if conditioning is not None])

    engine = Engine(system, seed, options, condition, max_batch=_batch_size(system, len(requests)))
    unmet, first, last = list(range(len(requests))), 0, 0
    for attempt in range(MAX_ATTEMPTS):
        decoded = engine.draw([SampleId(number, attempt) for number in unmet])
        before = len(unmet)
        unmet = [n for n, sample in zip(unmet, decoded, strict=True) if not _is_met(requests[n], sample.sketch)]
        first = first if attempt else len(requests) - len(unmet)
        last = attempt + 1 if len(unmet) < before else last
        if not unmet:
            break
    return ConditionScore(name, len(requests), first, len(requests) - len(unmet), last)


def _is_met(conditions: Conditions, sketch: Sketch) -> bool:
    """Whether a sketch meets its conditions. Primitives are counted here independently of the library."""
    if find_shortfall(conditions, sketch) is not None:
        return False
    kinds = Counter(primitive.kind for primitive in sketch)
    low, high = conditions.primitive_range or (0, len(sketch))
    return low <= len(sketch) <= high and all(kinds[kind] == count for kind, count in (conditions.kinds or {}).items())


def _score_given_primitives(system: System, requests: int, seed: int, options: SamplingOptions) -> ConditionScore:
    """Give half of the primitives of built-in parts, and count the sketches that keep them to the bit."""
    parts = [normalize(procedural(seed, number))[0] for number in range(requests)]
    num_given = torch.tensor([(len(part) + 1) // 2 for part in parts])
    batch = encode_sketches(parts, system.rows)
    device = device_of(system)
    is_given = torch.arange(batch.kind.shape[1])[None, :] < num_given[:, None]
    method = system.conditioning_methods[0]

    def condition(samples: Tensor) -> Conditioning | None:
        index = samples.cpu()
        return condition_on_rows(batch[index].to(device), is_given[index].to(device), method=method)

    engine = Engine(system, seed, options, condition, max_batch=_batch_size(system, requests))
    samples = engine.draw([SampleId(number) for number in range(requests)])
    originals = decode(batch, system.rows.arc_scalar)
    unchanged = sum(
        sample.sketch.primitives[:count] == original.sketch.primitives[:count]
        for sample, original, count in zip(samples, originals, num_given.tolist(), strict=True)
    )
    return ConditionScore("given primitives unchanged", requests, unchanged, unchanged, 1)


def _concatenate(conditionings: Sequence[Conditioning]) -> Conditioning | None:
    if not conditionings:
        return None
    batch = from_flat(torch.cat([conditioning.batch.flat() for conditioning in conditionings]))
    masks = zip(*((c.construction, c.kind, c.params) for c in conditionings), strict=True)
    construction, kind, params = (torch.cat(parts) for parts in masks)
    return Conditioning(batch, construction, kind, params, conditionings[0].method)


def _batch_size(system: System, requests: int) -> int:
    device = device_of(system)
    return max_batch_size(device) if device.type == "cpu" else min(_GPU_BATCH, requests)


def _count_conditions(system: System, requests: int) -> list[Conditions]:
    """Numbers of primitives, evenly over the range of training."""
    low, high = trained_range(system)
    return [Conditions(primitives=(low + i % (high - low + 1),) * 2) for i in range(requests)]


def _kind_conditions(system: System, requests: int) -> list[Conditions]:
    """Mixtures of kinds at equal quantiles of the training sketches."""
    index = system.training_index
    if index is None:
        mixtures = _DEFAULT_MIXTURES[np.arange(requests) % len(_DEFAULT_MIXTURES)]
    else:
        cumulative = np.cumsum(index.frequency)
        quantiles = (np.arange(requests) + 0.5) / requests * cumulative[-1]
        mixtures = index.kind_counts[np.searchsorted(cumulative, quantiles, side="right")]
    counts = [dict(zip(Kind, mixture.tolist(), strict=True)) for mixture in mixtures]
    return [Conditions(kinds=kinds, count_construction=True) for kinds in counts]


def _line_conditions(system: System, requests: int) -> list[Conditions]:
    """Four to seven lines, and at least eight primitives."""
    low, high = trained_range(system)
    return [
        Conditions(primitives=(max(low, 8), high), kinds={Kind.LINE: 4 + i % 4}, count_construction=True)
        for i in range(requests)
    ]


def _cells(score: ConditionScore) -> list[str]:
    shares = [f"{100 * number / score.requests:.1f} %" for number in (score.first, score.met)]
    return [score.name, str(score.requests), *shares, str(score.attempts)]


_PAGE = """# Conditions

`{command}`, {device}, {seconds:.0f} s, {steps} {sampler} steps.

{table}

- All numbers are of raw sketches, before repair. A sketch is sampled at most {attempts} times.
- Numbers of primitives cover the range of training evenly. Kinds are mixtures of training sketches, as often as they
  occur there.
- Given primitives are half of those of a built-in part; they must come out equal to the bit.
- Ends within {tolerance} of the size count as joined.
"""
