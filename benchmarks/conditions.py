"""How often a model draws what it was asked for, at the first attempt and after some more, and leaves alone what was
given.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from sketchdnn.data.procedural import procedural
from sketchdnn.diffusion.conditioning import Conditioning, condition_on_rows
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditioning import choose_conditioning, encode_sketches
from sketchdnn.generation.conditions import CLOSE_TOLERANCE, MAX_ATTEMPTS, Conditions, find_shortfall, trained_range
from sketchdnn.generation.engine import Engine, SampleId, device_of, max_batch_size
from sketchdnn.generation.generate import STEPS
from sketchdnn.geometry import Kind, Sketch, normalize
from sketchdnn.representation import from_flat
from sketchdnn.representation.codec import decode
from sketchdnn.systems import System

OnProgress = Callable[[str], None]
# As many sketches in a batch, where the device likes large ones.
_GPU_CHUNK = 500
_EVERY_KIND = np.array([[4, 2, 1, 1], [8, 2, 0, 0], [6, 0, 6, 0], [4, 4, 2, 2]])


@dataclass(frozen=True, slots=True)
class Measured:
    """Of `requests` of one sort, how many were met at the first attempt and in the end, and how many attempts it took
    for the last of them.
    """

    name: str
    requests: int
    first: int
    met: int
    attempts: int


@dataclass(frozen=True, slots=True)
class ConditionsMeasured:
    """All sorts of requests, on one device in so many steps of a sampler."""

    device: str
    sampler: str
    steps: int
    seconds: float
    rows: tuple[Measured, ...]

    def table(self) -> Table:
        """As a person reads it."""
        title = f"What was asked for, in {self.steps} {self.sampler} steps, {self.device}, {self.seconds:.0f} s"
        table = Table("", "requests", "met at once", "met in the end", "attempts at the most", title=title)
        for row in self.rows:
            table.add_row(*_cells(row))
        return table

    def markdown(self, command: str) -> str:
        """The same for a page, with the command that makes it."""
        lines = [
            "# Conditions",
            "",
            f"`{command}`, {self.device}, {self.seconds:.0f} s, {self.steps} {self.sampler} steps.",
            "",
            "| | requests | met at once | met in the end | attempts at the most |",
            "|---|---|---|---|---|",
            *(f"| {' | '.join(_cells(row))} |" for row in self.rows),
            "",
            "All of it is of sketches as drawn, before any repair.",
            "Numbers of primitives go evenly through all the model was trained on. Kinds are mixtures of training",
            "sketches, as often as they occur there. Of given primitives, half of a built-in part's, it is asked that",
            f"they come out equal to the bit. Ends count as joined within {CLOSE_TOLERANCE} of the size. A sketch is",
            f"drawn {MAX_ATTEMPTS} times at the most.",
            "",
        ]
        return "\n".join(lines)


def measure_conditions(
    system: System,
    requests: int = 500,
    *,
    seed: int = 0,
    steps: int = STEPS,
    sampler: str | None = None,
    on_stage: OnProgress = lambda what: None,
) -> ConditionsMeasured:
    """So many requests of each sort, and as many to leave given primitives as they are."""
    if requests < 1:
        raise SketchError(f"at least one request must be measured, not {requests}")
    sorts = {
        "number of primitives": _counts(system, requests),
        "number of each kind": _kinds(system, requests),
        "number of lines and of primitives": _lines(system, requests),
        "closed profile": [Conditions(closed=True)] * requests,
    }
    sampler = system.resolve(SamplingOptions(sampler, steps)).sampler_name
    begin = time.perf_counter()
    rows = []
    for name, conditions in sorts.items():
        on_stage(name)
        rows.append(_met(name, system, conditions, seed, steps, sampler))
    on_stage("given primitives")
    rows.append(_unchanged(system, requests, seed, steps, sampler))
    device = device_of(system)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return ConditionsMeasured(where, sampler, steps, time.perf_counter() - begin, tuple(rows))


def _met(name: str, system: System, requests: Sequence[Conditions], seed: int, steps: int, sampler: str) -> Measured:
    """Draw until each request is met, or the attempts run out."""

    def given_of(samples: Tensor) -> Conditioning | None:
        each = [
            choose_conditioning(requests[int(s) & 0xFFFFFFFF], seed, samples[i : i + 1], system)
            for i, s in enumerate(samples)
        ]
        return _together([given for given in each if given is not None])

    engine = Engine(system, seed, SamplingOptions(sampler, steps), given_of, max_batch=_chunk(system, len(requests)))
    wanting, first, last = list(range(len(requests))), 0, 0
    for attempt in range(MAX_ATTEMPTS):
        drawn = engine.draw([SampleId(number, attempt) for number in wanting])
        before = len(wanting)
        wanting = [n for n, one in zip(wanting, drawn, strict=True) if not _exact(requests[n], one.sketch)]
        first = first if attempt else len(requests) - len(wanting)
        last = attempt + 1 if len(wanting) < before else last
        if not wanting:
            break
    return Measured(name, len(requests), first, len(requests) - len(wanting), last)


def _exact(asked: Conditions, sketch: Sketch) -> bool:
    """Whether it is what was asked for: numbers are counted here once more."""
    if find_shortfall(asked, sketch) is not None:
        return False
    found = Counter(p.kind for p in sketch)
    low, high = asked.primitive_range or (0, len(sketch))
    return low <= len(sketch) <= high and all(found[kind] == number for kind, number in (asked.kinds or {}).items())


def _unchanged(system: System, requests: int, seed: int, steps: int, sampler: str) -> Measured:
    """Give half of the primitives of built-in parts, and see whether they come out as they went in."""
    parts = [normalize(procedural(seed, number))[0] for number in range(requests)]
    half = torch.tensor([(len(part) + 1) // 2 for part in parts])
    batch = encode_sketches(parts, system.rows)
    device = device_of(system)
    told = torch.arange(batch.kind.shape[1])[None, :] < half[:, None]
    method = system.conditioning_methods[0]

    def given_of(samples: Tensor) -> Conditioning | None:
        which = samples.cpu()
        return condition_on_rows(batch[which].to(device), told[which].to(device), method=method)

    engine = Engine(system, seed, SamplingOptions(sampler, steps), given_of, max_batch=_chunk(system, requests))
    drawn = engine.draw([SampleId(number) for number in range(requests)])
    truth = decode(batch, system.rows.arc_scalar)
    same = sum(
        one.sketch.primitives[:count] == known.sketch.primitives[:count]
        for one, known, count in zip(drawn, truth, half.tolist(), strict=True)
    )
    return Measured("given primitives unchanged", requests, same, same, 1)


def _together(each: Sequence[Conditioning]) -> Conditioning | None:
    if not each:
        return None
    batch = from_flat(torch.cat([given.batch.flat() for given in each]))
    construction, kind, params = (
        torch.cat(parts) for parts in zip(*((g.construction, g.kind, g.params) for g in each), strict=True)
    )
    return Conditioning(batch, construction, kind, params, each[0].method)


def _chunk(system: System, requests: int) -> int:
    device = device_of(system)
    return max_batch_size(device) if device.type == "cpu" else min(_GPU_CHUNK, requests)


def _counts(system: System, requests: int) -> list[Conditions]:
    low, high = trained_range(system)
    return [Conditions(primitives=(low + i % (high - low + 1),) * 2) for i in range(requests)]


def _kinds(system: System, requests: int) -> list[Conditions]:
    """Mixtures at even distances through all training sketches, sorted by their mixture."""
    if system.training_index is None:
        mixtures = _EVERY_KIND[np.arange(requests) % len(_EVERY_KIND)]
    else:
        rising = np.cumsum(system.training_index.frequency)
        places = (np.arange(requests) + 0.5) / requests * rising[-1]
        mixtures = system.training_index.kind_counts[np.searchsorted(rising, places, side="right")]
    counts = [dict(zip(Kind, mixture.tolist(), strict=True)) for mixture in mixtures]
    return [Conditions(kinds=each, count_construction=True) for each in counts]


def _lines(system: System, requests: int) -> list[Conditions]:
    """Four to seven lines, and as many primitives as may be."""
    span = trained_range(system)
    count = (max(span[0], 8), span[1])
    return [
        Conditions(primitives=count, kinds={Kind.LINE: 4 + i % 4}, count_construction=True) for i in range(requests)
    ]


def _cells(row: Measured) -> list[str]:
    share = [f"{100 * number / row.requests:.1f} %" for number in (row.first, row.met)]
    return [row.name, str(row.requests), *share, str(row.attempts)]
