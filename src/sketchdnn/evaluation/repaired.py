"""The same samples after repair: how like the data they are then, whether ends meet, and what was done to them.

Scores of a system are always those of what it drew. These stand beside them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.generation.repair import RepairResult, repair_sketches
from sketchdnn.geometry import Sketch, normalize
from sketchdnn.representation import Compact

from .clusters import clustered_share
from .estimate import Estimate, share_estimate
from .gaps import end_gaps
from .samples import MOST_PRIMITIVES, OnProgress, Samples, normalized
from .scores import Judge, Seen
from .settings import Settings, Sizes
from .stages import Stages
from .validity import validity
from .wording import plain

# Ends this close meet, whatever a program rounds to; the larger side of a sketch is 2.
EXACT_END = 1e-6


@dataclass(frozen=True, slots=True)
class RepairedSamples:
    """Row by row the samples after repair, normalized, and what was done to each. What repair left nothing of is as it
    was drawn."""

    compact: Compact
    mended: tuple[RepairResult, ...]
    lost: int = 0


def repair_samples(
    samples: Samples, count: int, *, workers: int = 1, on_progress: OnProgress = lambda done: None
) -> RepairedSamples:
    """The first samples, repaired."""
    raw = samples.sketches[:count]
    mended = repair_sketches([Sketch(sketch.primitives) for sketch in raw], workers=workers, on_progress=on_progress)
    usable = [_can_be_judged(done.sketch) for done in mended]
    chosen = [done.sketch if good else sketch for sketch, done, good in zip(raw, mended, usable, strict=True)]
    return RepairedSamples(normalized(chosen)[1], tuple(mended), usable.count(False))


def after_repair(
    samples: Samples,
    test: Compact,
    judge: Judge,
    seen: Seen,
    sizes: Sizes,
    settings: Settings,
    stages: Stages,
    workers: int,
) -> dict[str, Any]:
    """That section of a report: of as many samples as are compared or looked at one by one."""
    count = min(len(samples), max(sizes.test, sizes.train, settings.validity))
    with stages("repair") as tell:
        found = repair_samples(samples, count, workers=workers, on_progress=tell)
    with stages("validity after repair") as tell:
        looked_at = plain(validity(found.compact[: settings.validity], tell))
    some = settings.validity
    return {
        "sketches": count,
        "scores": judge.scores_again("repaired", found.compact, seen, sizes),
        "validity": looked_at,
        "exact_ends": {
            "samples": plain(exact_ends(samples.compact[:some])),
            "repaired": plain(exact_ends(found.compact[:some])),
            "test": plain(exact_ends(test[:some])),
        },
        **_account(found),
    }


def exact_ends(compact: Compact) -> Estimate:
    """The share of ends of lines and arcs that an end of another meets exactly."""
    gaps = end_gaps(compact)
    return clustered_share((gaps <= EXACT_END).sum(axis=(1, 2)), (~np.isnan(gaps)).sum(axis=(1, 2)))


def _account(found: RepairedSamples) -> dict[str, Any]:
    """What was done, how often, and how far anything moved."""
    repairs = [done.report for done in found.mended]
    moves = np.array([each.displacement for each in repairs])
    kinds = Counter(kind for each in repairs for kind in each.kinds)
    warnings = Counter(each.warning for each in repairs if each.warning)
    return {
        "changed": plain(share_estimate(int((moves > 0).sum()), len(moves))),
        "displacement": plain(
            {"median": np.median(moves), "most_of_95": np.quantile(moves, 0.95), "most": moves.max()}
        ),
        "dof": plain(float(np.median([each.dof for each in repairs]))),
        "actions": dict(kinds.most_common()),
        "warnings": dict(warnings.most_common(20)),
        "lost": found.lost,
    }


def _can_be_judged(sketch: Sketch) -> bool:
    try:
        normalize(sketch)
    except GeometryError:
        return False
    return len(sketch) <= MOST_PRIMITIVES
