"""A set of sketches against a corpus: all that is measured, in one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sketchdnn
from sketchdnn.data.loader import Dataset
from sketchdnn.representation import Compact
from sketchdnn.systems import System

from . import raster
from .distributions import construction, counts, deviations, kinds, total_variation
from .features import Extractor
from .likelihood import likelihood
from .novelty import novelty
from .protocol import VERSION, Protocol, data_hash
from .repaired import after_repair
from .samples import Samples, normalized_split
from .scores import Judge
from .settings import Settings, Sizes, sizes_for, warnings_about
from .sheets import SCORE, chosen
from .stages import Stages
from .validity import validity
from .wording import plain

NEIGHBOR_BINS = np.linspace(0.0, 1.2, 13)


@dataclass(frozen=True, slots=True)
class References:
    """The real sketches, normalized: both splits whole, and those of each that samples are compared with.

    The chosen training sketches are enough for two parts that share none.
    """

    test: Compact
    train: Compact
    chosen_test: Compact
    chosen_train: Compact


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The report as JSON, and the sketches that its pictures show."""

    report: dict[str, Any]
    samples: Samples
    real: Compact


def open_references(dataset: Dataset, settings: Settings, samples: int) -> tuple[References, Sizes]:
    """The splits, and which of their sketches are compared; refuses a corpus that is too small."""
    already = dataset.config.frame == "tight" and dataset.config.half_extent == 1
    test, train = (normalized_split(dataset.split(name).compact, already=already) for name in (settings.split, "train"))
    sizes = sizes_for(settings, samples, len(test), len(train))
    dice = np.random.default_rng(settings.seed)
    which_test = dice.permutation(len(test))[: sizes.test]
    which_train = dice.permutation(len(train))[: max(sizes.test, 2 * sizes.train)]
    return References(test, train, test[which_test], train[which_train]), sizes


def evaluate(
    samples: Samples,
    dataset: Dataset,
    extractor: Extractor,
    settings: Settings,
    *,
    system: System | None = None,
    cache: Path | None = None,
    command: str = "",
    workers: int = 1,
    stages: Stages | None = None,
) -> Evaluation:
    """Measure everything. `system` is asked for likelihoods; sketches from a file have none.

    Features are kept in `cache`, so that those of the corpus are computed once. So many `workers` repair the samples,
    if they are also to be scored so.
    """
    stages = stages or Stages()
    references, sizes = open_references(dataset, settings, len(samples))
    protocol = protocol_of(samples.origin, len(samples), dataset, extractor, settings, sizes, system)
    judge = Judge(extractor, cache, stages, settings.seed)
    seen = judge.look(samples.compact, references.chosen_test, references.chosen_train, sizes)
    scores = judge.scores(seen, sizes, settings.split)
    floor = scores["test"]["floor"]
    real = references.chosen_test if settings.fast else references.test
    report = {
        "format": 1,
        "program": f"sketchdnn {sketchdnn.__version__}",
        "command": command,
        "device": _device_name(extractor.device),
        "protocol": protocol.to_json(),
        "system": {"name": samples.name, **samples.origin, "samples": len(samples), "samples_sha256": samples.sha256},
        "warnings": warnings_about(settings, sizes, len(samples)),
        "scores": scores,
        "corruption": judge.corruption(references.chosen_test, seen, floor) if settings.corruption else None,
        "validity": _validity(samples.compact, references.test, settings.validity, stages),
        "repaired": after_repair(samples, references.test, judge, seen, sizes, settings, stages, workers)
        if settings.repaired
        else None,
        "distributions": _distributions(samples.compact, references.test),
        "novelty": _novelty(samples.compact, references.train, real, str(extractor.device), stages),
        "likelihood": _likelihood(system, dataset.split(settings.split).compact, settings, stages),
        "drawing": _drawing(samples),
        "galleries": {"score": SCORE, **chosen(samples.compact)},
        "timings": plain(stages.seconds),
    }
    return Evaluation(report, samples, references.chosen_test)


def protocol_of(
    origin: Mapping[str, Any],
    samples: int,
    dataset: Dataset,
    extractor: Extractor,
    settings: Settings,
    sizes: Sizes,
    system: System | None,
) -> Protocol:
    """All that the scores depend on; `origin` is that of so many samples."""
    has_bits = settings.likelihood and system is not None
    whole = len(dataset.split(settings.split))
    return Protocol(
        version=VERSION,
        size=raster.SIZE,
        stroke=raster.STROKE,
        margin=raster.MARGIN,
        point_radius=raster.POINT_RADIUS,
        construction_ink=raster.CONSTRUCTION_INK,
        extractor=extractor.sha256,
        data=data_hash(dataset, settings.split),
        against_test=sizes.test,
        against_train=sizes.train,
        validity=settings.validity,
        seed=settings.seed,
        likelihood_sketches=min(whole, settings.likelihood_sketches or whole) if has_bits else 0,
        likelihood_draws=settings.likelihood_draws if has_bits else 0,
        fast=settings.fast,
        samples=samples,
        sampler=origin.get("sampler", ""),
        steps=origin.get("steps", 0),
        sample_seed=origin.get("seed", 0),
    )


def _validity(ours: Compact, real: Compact, most: int, stages: Stages) -> dict[str, Any]:
    with stages("validity") as tell:
        return {
            "samples": plain(validity(ours[:most], lambda done: tell(done / 2))),
            "test": plain(validity(real[:most], lambda done: tell(0.5 + done / 2))),
        }


def _distributions(ours: Compact, real: Compact) -> dict[str, Any]:
    found: dict[str, Any] = {"samples": len(ours), "test": len(real)}
    for name, measure in (("kinds", kinds), ("construction", construction), ("counts", counts)):
        mine, theirs = measure(ours), measure(real)
        found[name] = {
            "total_variation": plain(total_variation(mine, theirs)),
            "deviations": [{**plain(one), "is_within": one.is_within} for one in deviations(mine, theirs)],
        }
    found["counts"]["deviations"].sort(key=lambda one: int(one["name"]))
    return found


def _novelty(ours: Compact, train: Compact, real: Compact, device: str, stages: Stages) -> dict[str, Any]:
    with stages("novelty") as tell:
        found = novelty(ours, train, real, device=device, on_progress=tell)
    facts: dict[str, Any] = plain(found)
    for name in ("samples", "test"):
        facts["neighbours"][name] = _histogram(getattr(found.neighbors, name))
    return facts


def _histogram(distances: tuple[float, ...]) -> dict[str, float]:
    """Shares by bin: ten thousand single distances say no more to anybody."""
    hits, _ = np.histogram(np.clip(distances, NEIGHBOR_BINS[0], NEIGHBOR_BINS[-1]), NEIGHBOR_BINS)
    names = [f"{low:.1f}–{high:.1f}" for low, high in pairwise(NEIGHBOR_BINS.tolist())]
    return {name: plain(hit / max(1, len(distances))) for name, hit in zip(names, hits, strict=True)}


def _likelihood(system: System | None, real: Compact, settings: Settings, stages: Stages) -> dict[str, Any] | None:
    """In the corpus's own frame, which is what a system was trained on."""
    if not settings.likelihood or system is None:
        return None
    some = real[: settings.likelihood_sketches]
    with stages("likelihood") as tell:
        found = likelihood(system, some, draws=settings.likelihood_draws, seed=settings.seed, on_progress=tell)
    facts: dict[str, Any] = plain(found)
    return facts


def _drawing(samples: Samples) -> dict[str, Any]:
    def sorted_counts(counter: Counter[str]) -> dict[str, int]:
        return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))

    return {
        "primitives": int(samples.compact.counts.sum()),
        "repaired": sorted_counts(samples.repaired),
        "rejected": sorted_counts(samples.rejected),
        "skipped": sorted_counts(samples.skipped),
        "empty_draws": samples.empty_draws,
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
