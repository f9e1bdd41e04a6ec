"""Validity of a set of sketches: end gaps, closed profiles, overlaps, degenerate primitives, and its composition.

Sketches are normalized (larger side 2) and their rows are valid; decoding counts what it repaired or rejected.
Profiles are measured at two tolerances, as shares of the sketch size: `EXACT_TOLERANCE` is the precision of files of
real sketches, `LOOSE_TOLERANCE` (0.02 of a larger side of 2) accepts what a sampler leaves open before repair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Kind, Profile, Sketch, overlaps, profile
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.proximity import TOLERANCE
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, decode_compact

from .curves import TINY, axis_aligned, check_sketches, end_gaps, has_primitive, mirror_symmetric, tiny_primitives
from .estimates import Estimate, OnProgress, clustered_median, clustered_share, effective_count, ignore, share_of

GAP_FINE, GAP_LOOSE = 0.005, 0.02
EXACT_TOLERANCE, LOOSE_TOLERANCE = TOLERANCE, 0.01
# Ends this close meet exactly, whatever a program rounds to.
EXACT_END = 1e-6
# Two shares agree within 15 % of the reference or within two standard errors.
MAX_RELATIVE, MAX_Z_SCORE = 0.15, 2.0
_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Gaps:
    """End gaps of a set: the median, and the shares of ends within 0.005 and 0.02 of another end.

    `sketches_within_loose` is the share of sketches, among those with ends, whose ends all have another within 0.02.
    """

    median: Estimate
    within_fine: Estimate
    within_loose: Estimate
    sketches_within_loose: Estimate


@dataclass(frozen=True, slots=True)
class Profiles:
    """Shares of sketches at one tolerance, without construction.

    `closed`: there is a loop and every curve is part of one. `extrudable`: also nothing crosses, touches, branches or
    overlaps. `overlapping`: some primitive lies along another with the same construction flag.
    `primitives_overlapping` is the share of primitives that do.
    """

    tolerance: float
    closed: Estimate
    extrudable: Estimate
    overlapping: Estimate
    primitives_overlapping: Estimate


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion with its interval by sketch, and its effective number of independent items."""

    estimate: Estimate
    independent: float


Distribution = Mapping[str, Share]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One share in two sets.

    `relative` is the difference over the reference (infinite if only the reference is 0). `z_score` is the difference
    in standard errors, computed as if both sets had the same share.
    """

    name: str
    value: float
    reference: float
    relative: float
    z_score: float

    @property
    def is_within(self) -> bool:
        """No more than 15 % or two standard errors."""
        return abs(self.relative) <= MAX_RELATIVE or abs(self.z_score) <= MAX_Z_SCORE


def measure_validity(compact: Compact, on_progress: OnProgress = ignore) -> dict[str, Any]:
    """Measure every sketch of a set. About 30 s for 10,000 sketches on one core, nearly all of it the profiles.

    Returns:
        The gaps, the profiles at two tolerances, the distributions, and shares. `tiny`: primitives smaller than 0.005.
        `flat`: sketches narrower or lower than that. `symmetric`: sketches equal to their mirror image.
        `axis_aligned`: lines within half a degree of an axis.
    """
    check_sketches(compact)
    sketches = [decoded.sketch for decoded in decode_compact(compact)]
    box = table_bounds(sketches_to_table(sketches))
    flat = (box[:, 2:] - box[:, :2]).min(axis=1) < TINY
    lines = compact.kind == Kind.LINE
    return {
        "sketches": len(compact),
        "gaps": measure_gaps(compact),
        "exact": measure_profiles(sketches, EXACT_TOLERANCE, lambda done: on_progress(done / 2)),
        "loose": measure_profiles(sketches, LOOSE_TOLERANCE, lambda done: on_progress(0.5 + done / 2)),
        "tiny": clustered_share(tiny_primitives(compact).sum(axis=1), compact.counts),
        "flat": share_of(flat),
        "symmetric": share_of(mirror_symmetric(compact)),
        "axis_aligned": clustered_share(axis_aligned(compact).sum(axis=1), lines.sum(axis=1)),
        **{name: measure(compact) for name, measure in DISTRIBUTIONS.items()},
    }


def measure_gaps(compact: Compact) -> Gaps:
    """The gaps between ends of lines and arcs; intervals are by sketch."""
    distance = end_gaps(compact)
    exists = ~np.isnan(distance)
    totals = exists.sum(axis=(1, 2))
    fine, loose = ((distance <= limit).sum(axis=(1, 2)) for limit in (GAP_FINE, GAP_LOOSE))
    with_ends = totals > 0
    return Gaps(
        clustered_median(distance[exists], np.nonzero(exists)[0]),
        clustered_share(fine, totals),
        clustered_share(loose, totals),
        clustered_share((loose == totals) & with_ends, with_ends.astype(np.int64)),
    )


def exact_ends(compact: Compact) -> Estimate:
    """The share of ends of lines and arcs that meet another end exactly."""
    gaps = end_gaps(compact)
    return clustered_share((gaps <= EXACT_END).sum(axis=(1, 2)), (~np.isnan(gaps)).sum(axis=(1, 2)))


def measure_profiles(
    sketches: list[Sketch], tolerance: float = EXACT_TOLERANCE, on_progress: OnProgress = ignore
) -> Profiles:
    """Closed profiles and overlapping primitives of a set of sketches."""
    count = len(sketches)
    closed, extrudable = np.zeros(count, bool), np.zeros(count, bool)
    overlapping = np.zeros(count, np.int64)
    for i, sketch in enumerate(sketches):
        outline = profile(sketch, tolerance)
        closed[i], extrudable[i] = is_closed(outline), outline.is_extrudable
        overlapping[i] = len({index for pair in overlaps(sketch, tolerance) for index in (pair.first, pair.second)})
        if i % _REPORT_EVERY == 0:
            on_progress(i / count)
    primitives = np.array([len(sketch) for sketch in sketches], np.int64)
    overlap_share = clustered_share(overlapping, primitives)
    return Profiles(tolerance, share_of(closed), share_of(extrudable), share_of(overlapping > 0), overlap_share)


def is_closed(outline: Profile) -> bool:
    """Whether a profile has a loop and no open chain."""
    return bool(outline.loops) and not outline.chains


def kind_distribution(compact: Compact) -> Distribution:
    """The share of each kind among all primitives."""
    return {kind.label: _share(compact.kind == kind, compact) for kind in Kind}


def construction_distribution(compact: Compact) -> Distribution:
    """The shares of construction and of regular geometry among all primitives."""
    return {
        "construction": _share(compact.construction & has_primitive(compact), compact),
        "regular": _share(~compact.construction & has_primitive(compact), compact),
    }


def count_distribution(compact: Compact) -> Distribution:
    """The share of sketches for each number of primitives that occurs."""
    counts, ones = compact.counts, np.ones(len(compact), np.int64)
    return {
        str(count): Share(clustered_share(counts == count, ones), effective_count(counts == count, ones))
        for count in np.unique(counts).tolist()
    }


DISTRIBUTIONS = {"kinds": kind_distribution, "construction": construction_distribution, "counts": count_distribution}


def total_variation(a: Distribution, b: Distribution) -> float:
    """Half the sum of the absolute differences of shares: 0 for equal distributions, 1 for disjoint ones."""
    return sum(abs(_find(a, name)[0] - _find(b, name)[0]) for name in dict.fromkeys([*b, *a])) / 2


def deviations(distribution: Distribution, reference: Distribution) -> tuple[Deviation, ...]:
    """The difference of each share from the reference."""
    result = []
    for name in dict.fromkeys([*reference, *distribution]):
        (value, count), (expected, expected_count) = _find(distribution, name), _find(reference, name)
        difference, error = value - expected, _pooled_error(value, count, expected, expected_count)
        result.append(Deviation(name, value, expected, _ratio(difference, expected), _ratio(difference, error)))
    return tuple(result)


def _share(hits: NDArray[np.bool_], compact: Compact) -> Share:
    by_sketch, totals = hits.sum(axis=1), compact.counts
    return Share(clustered_share(by_sketch, totals), effective_count(by_sketch, totals))


def _find(distribution: Distribution, name: str) -> tuple[float, float]:
    """A share and the effective count behind it; for a missing name, 0 and the largest count of the others."""
    if name in distribution:
        return distribution[name].estimate.value, distribution[name].independent
    return 0.0, max((share.independent for share in distribution.values()), default=0.0)


def _pooled_error(share: float, count: float, other: float, other_count: float) -> float:
    """The standard error of the difference of two shares under the pooled share of both sets."""
    if not min(count, other_count) > 0:
        return math.nan
    pooled = (share * count + other * other_count) / (count + other_count)
    return math.sqrt(pooled * (1 - pooled) * (1 / count + 1 / other_count))


def _ratio(difference: float, unit: float) -> float:
    if difference == 0:
        return 0.0
    return difference / unit if unit > 0 else math.copysign(math.inf, difference)
