"""The sketches to evaluate: sampled from a system or read from files, normalized, and optionally repaired.

Everything that is lost on the way is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sketchdnn.errors import FormatError, GeometryError, display_path
from sketchdnn.formats import Skipped, scan
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.generation.repair import RepairResult, repair_sketches
from sketchdnn.geometry import Sketch, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, decode_compact, encode_table
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System

from .estimates import OnProgress, ignore
from .protocol import MIN_SKETCHES

# Larger sketches are left out and counted: every sketch of a set takes as many rows as the largest.
MAX_SAMPLE_PRIMITIVES = 128

NO_EXTENT = "a sketch of no extent"
TOO_MANY = f"a sketch of more than {MAX_SAMPLE_PRIMITIVES} primitives"
TOO_SMALL = "a primitive too small beside its sketch"


@dataclass(frozen=True, slots=True)
class Samples:
    """Sketches, and the same ones normalized as rows.

    `skipped` counts sketches that were left out; `rejected` and `repaired` count primitives; `empty_draws` counts
    samples without primitives, which were drawn again. `origin` describes the source for the report.
    """

    name: str
    sketches: Sequence[Sketch]
    compact: Compact
    origin: dict[str, Any] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    empty_draws: int = 0

    def __len__(self) -> int:
        return len(self.compact)

    @property
    def sha256(self) -> str:
        """The hash of the normalized rows."""
        arrays = (self.compact.kind, self.compact.construction, self.compact.params)
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


class NormalizedSketches(NamedTuple):
    """Sketches that can be normalized, their rows, and the reasons why other sketches and primitives were dropped."""

    sketches: list[Sketch]
    compact: Compact
    skipped: Counter[str]
    rejected: Counter[str]


class RepairedSamples(NamedTuple):
    """Samples after repair, normalized, and the repair of each. A sample of which nothing is left stays unrepaired."""

    compact: Compact
    repairs: tuple[RepairResult, ...]
    lost: int = 0


def generate_samples(system: System, name: str, request: GenerateRequest, on_progress: OnProgress = ignore) -> Samples:
    """The sketches of a request, on the device of the system."""
    options = request.sampling(system)
    drawings = list(stream(system, request, lambda done: on_progress(done / request.count)))
    normalized = normalize_sketches([drawing.sketch for drawing in drawings])
    for drawing in drawings:
        normalized.rejected.update(drawing.rejected)
    origin = {"kind": "model", "sampler": options.sampler_name, "steps": options.steps, "seed": request.seed}
    repaired = Counter(reason for drawing in drawings for reason in drawing.repaired)
    empty_draws = sum(drawing.attempts - 1 for drawing in drawings)
    return Samples(name, *normalized[:2], origin, normalized.skipped, normalized.rejected, repaired, empty_draws)


def read_samples(path: Path, count: int) -> Samples:
    """The first `count` sketches of a file, folder or archive; unreadable ones are counted.

    Raises:
        FormatError: If fewer than `MIN_SKETCHES` are usable.
    """
    skipped: Counter[str] = Counter()
    sketches: list[Sketch] = []
    for item in scan(path):
        if isinstance(item, Skipped):
            skipped[item.reason] += item.count
        elif isinstance(item, Sketch):
            if len(sketches) == count:
                break
            sketches.append(item)
    normalized = normalize_sketches(sketches)
    skipped.update(normalized.skipped)
    usable = len(normalized.sketches)
    if usable < MIN_SKETCHES:
        reasons = "".join(f"; left out: {number:,} × {reason}" for reason, number in skipped.most_common(3))
        held = {0: "no sketch", 1: "only one sketch"}.get(usable, f"only {usable} sketches")
        raise FormatError(path, f"holds {held} that can be scored, and scores need at least {MIN_SKETCHES}{reasons}")
    name = display_path(path.resolve().name)
    return Samples(name, *normalized[:2], {"kind": "samples"}, skipped, normalized.rejected)


def repair_samples(
    samples: Samples, count: int, *, workers: int = 1, on_progress: OnProgress = ignore
) -> RepairedSamples:
    """Repair the first `count` samples, with up to `workers` processes."""
    raw = samples.sketches[:count]
    repairs = repair_sketches([Sketch(sketch.primitives) for sketch in raw], workers=workers, on_progress=on_progress)
    usable = [_can_be_scored(repair.sketch) for repair in repairs]
    sketches = [r.sketch if good else sketch for sketch, r, good in zip(raw, repairs, usable, strict=True)]
    return RepairedSamples(normalize_sketches(sketches).compact, tuple(repairs), usable.count(False))


def normalize_split(compact: Compact, *, is_normalized: bool) -> Compact:
    """The rows of a corpus in the normalized frame; unchanged if the corpus was prepared so."""
    return compact if is_normalized else normalize_sketches([d.sketch for d in decode_compact(compact)]).compact


def normalize_sketches(sketches: Sequence[Sketch]) -> NormalizedSketches:
    """Normalize sketches and encode them; count those that cannot be, and primitives lost to single precision."""
    skipped: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    usable: list[Sketch] = []
    normalized: list[Sketch] = []
    for sketch in sketches:
        if len(sketch) > MAX_SAMPLE_PRIMITIVES:
            skipped[TOO_MANY] += 1
            continue
        try:
            normalized.append(normalize(Sketch(sketch.primitives))[0])
        except GeometryError:
            skipped[NO_EXTENT] += 1
            continue
        usable.append(sketch)
    compact = _encode(normalized)
    lost = _collapsed_rows(compact)
    for index in np.flatnonzero(lost.any(axis=1)).tolist():
        sketch = normalized[index]
        remaining = tuple(p for p, is_lost in zip(sketch, lost[index].tolist(), strict=False) if not is_lost)
        rejected[TOO_SMALL] += len(sketch) - len(remaining)
        normalized[index] = Sketch(remaining)
    # The dropped primitives are below single precision, so the frame of the rest does not change.
    return NormalizedSketches(usable, _encode(normalized) if lost.any() else compact, skipped, rejected)


def _encode(sketches: Sequence[Sketch]) -> Compact:
    largest = max((len(sketch) for sketch in sketches), default=0)
    return encode_table(sketches_to_table(sketches), max_primitives=max(MAX_PRIMITIVES, largest))


def _collapsed_rows(compact: Compact) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """`sketch, prim`: primitives that are invalid in single precision, each checked as a sketch of its own."""
    alone = Compact(compact.kind.reshape(-1, 1), compact.construction.reshape(-1, 1), compact.params.reshape(-1, 1, 5))
    return collapsed(alone).reshape(compact.kind.shape)


def _can_be_scored(sketch: Sketch) -> bool:
    try:
        normalize(sketch)
    except GeometryError:
        return False
    return len(sketch) <= MAX_SAMPLE_PRIMITIVES
