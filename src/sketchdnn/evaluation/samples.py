"""The sketches to be judged: drawn by a system, or read from any file; and what was lost on the way."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import FormatError, GeometryError, SketchError, display_path
from sketchdnn.formats import Note, Skipped, scan
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.geometry import Sketch, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, decode_compact, encode_table
from sketchdnn.representation.compact import collapsed
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System

from .settings import FEWEST

# Sketches of more are left out and counted: every sketch of a set takes the room of the largest.
MOST_PRIMITIVES = 128

NO_EXTENT = "a sketch of no extent"
TOO_MANY = f"a sketch of more than {MOST_PRIMITIVES} primitives"
TOO_SMALL = "a primitive too small beside its sketch"

OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Samples:
    """Sketches as they came and, row by row the same ones, normalized.

    `skipped` counts sketches that are not among them; `rejected` and `repaired` count primitives; `empty_draws` counts
    how often the system drew nothing and was asked again. `origin` says where they come from.
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
        """Of the normalized rows."""
        digest = hashlib.sha256()
        for array in (self.compact.kind, self.compact.construction, self.compact.params):
            digest.update(np.ascontiguousarray(array))  # type: ignore[arg-type]  # an array is a buffer
        return digest.hexdigest()


def draw_samples(
    system: System, name: str, count: int, *, seed: int, steps: int, sampler: str | None, on_progress: OnProgress
) -> Samples:
    """The sketches that `sketchdnn generate` draws of this seed, before any repair, on the system's device."""
    sampler = system.resolve(SamplingOptions(sampler, steps)).sampler_name

    def tell(done: float) -> None:
        on_progress(done / count)

    request = GenerateRequest(count=count, seed=seed, steps=steps, sampler=sampler, repair=False)
    drawings = list(stream(system, request, tell))
    sketches, compact, skipped, rejected = normalized([drawing.sketch for drawing in drawings])
    for drawing in drawings:
        rejected.update(drawing.rejected)
    return Samples(
        name=name,
        sketches=sketches,
        compact=compact,
        origin={"kind": "model", "sampler": sampler, "steps": steps, "seed": seed},
        skipped=skipped,
        rejected=rejected,
        repaired=Counter(reason for drawing in drawings for reason in drawing.repaired),
        empty_draws=sum(drawing.attempts - 1 for drawing in drawings),
    )


def read_samples(path: Path, count: int) -> Samples:
    """The first sketches of a file, folder or archive; what cannot be read is counted, and refused if nothing can."""
    skipped: Counter[str] = Counter()
    found: list[Sketch] = []
    for item in scan(path):
        if isinstance(item, Skipped):
            skipped[item.reason] += item.count
        elif isinstance(item, Note):
            continue
        elif len(found) == count:
            break
        else:
            found.append(item)
    sketches, compact, lost, rejected = normalized(found)
    skipped.update(lost)
    if len(sketches) < FEWEST:
        reasons = "".join(f"; left out: {number:,} × {reason}" for reason, number in skipped.most_common(3))
        held = {0: "no sketch", 1: "only one sketch"}.get(len(sketches), f"only {len(sketches)} sketches")
        raise FormatError(path, f"holds {held} that can be judged, and scores need at least {FEWEST}{reasons}")
    return Samples(display_path(path.resolve().name), sketches, compact, {"kind": "samples"}, skipped, rejected)


def normalized_split(compact: Compact, *, already: bool) -> Compact:
    """Rows of a corpus in the frame that sketches are judged in; `already` says that it was prepared so."""
    return compact if already else normalized([decoded.sketch for decoded in decode_compact(compact)])[1]


def normalized(sketches: Sequence[Sketch]) -> tuple[list[Sketch], Compact, Counter[str], Counter[str]]:
    """Those that can be normalized, the rows of each, why others are left out, and why single primitives are."""
    skipped: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    kept: list[Sketch] = []
    placed: list[Sketch] = []
    for sketch in sketches:
        if len(sketch) > MOST_PRIMITIVES:
            skipped[TOO_MANY] += 1
            continue
        try:
            small = normalize(Sketch(sketch.primitives))[0]
        except GeometryError:
            skipped[NO_EXTENT] += 1
            continue
        kept.append(sketch)
        placed.append(small)
    compact = _rows(placed)
    lost = _collapsed_rows(compact)
    for index in np.flatnonzero(lost.any(axis=1)).tolist():
        stay = tuple(p for p, gone in zip(placed[index], lost[index].tolist(), strict=False) if not gone)
        rejected[TOO_SMALL] += len(placed[index]) - len(stay)
        placed[index] = Sketch(stay)
    # What was dropped is smaller than single precision can tell: the rest needs no other frame.
    return kept, _rows(placed) if lost.any() else compact, skipped, rejected


def _rows(sketches: Sequence[Sketch]) -> Compact:
    most = max((len(sketch) for sketch in sketches), default=0)
    return encode_table(sketches_to_table(sketches), max_primitives=max(MAX_PRIMITIVES, most))


def _collapsed_rows(compact: Compact) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which primitives are none any more in single precision: each looked at as a sketch of its own."""
    alone = Compact(compact.kind.reshape(-1, 1), compact.construction.reshape(-1, 1), compact.params.reshape(-1, 1, 5))
    return collapsed(alone).reshape(compact.kind.shape)


def check_count(count: int) -> None:
    """Refuses a set too small to be one."""
    if count < FEWEST:
        raise SketchError(f"scores need a set of sketches: at least {FEWEST}, not {count}")
