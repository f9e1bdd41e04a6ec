"""Evaluate models and files of sketches against a corpus, and write one report for each.

`Evaluator` loads the corpus and the extractor once, and refuses bad requests before long work starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import sketchdnn
from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.sampling import SamplingOptions, find_sampler
from sketchdnn.errors import MissingFileError, display_path
from sketchdnn.formats import write
from sketchdnn.generation import GenerateRequest
from sketchdnn.generation.files import create_folder
from sketchdnn.generation.generate import check_seed_and_count
from sketchdnn.generation.quality import STEPS
from sketchdnn.geometry import Sketch
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.aliases import current_sampler
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.pretrained import check_model_sampling, model_hash

from . import validity
from .estimates import OnProgress, share_of, to_json
from .features import Extractor, default_cache, find_inception, load_inception
from .likelihood import measure_likelihood
from .novelty import measure_novelty
from .plots import GALLERY_SCORE, select_galleries
from .protocol import Protocol, Settings, Sizes, available_sizes, make_protocol, refuse_incomparable, size_warnings
from .report import SAMPLES, write_report
from .samples import RepairedSamples, Samples, generate_samples, normalize_split, read_samples, repair_samples
from .scores import CORRUPTIONS, FeatureSets, OnStage, Scorer, StageTimer, ignore_stage

# Images per minute through the Inception on one core of a CPU, approximately.
IMAGES_PER_MINUTE = 300
# Makes an extractor for a device.
MakeExtractor = Callable[[str], Extractor]
NEIGHBOR_BINS = np.linspace(0.0, 1.2, 13)


class References(NamedTuple):
    """The normalized real sketches: both splits, and the selection from each that samples are compared with.

    The selected training sketches are enough for two disjoint parts.
    """

    test: Compact
    train: Compact
    selected_test: Compact
    selected_train: Compact


class Evaluation(NamedTuple):
    """The report as JSON, and the samples."""

    report: dict[str, Any]
    samples: Samples


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The options of an evaluation. `seed`, `steps` and `sampler` apply to models; None is the model's own sampler."""

    data: Path
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    steps: int = STEPS
    sampler: str | None = None
    inception: Path | None = None
    device: str = "auto"
    cache: Path | None = None
    save_samples: bool = True
    command: str = ""
    workers: int = 1  # processes that repair samples


class Evaluator:
    """A corpus and an extractor, loaded once, for any number of evaluations.

    Args:
        request: The options; bad values are refused here.
        on_stage: Called with the name of each stage and the share of it that is done.
        extractor: Makes an extractor for a device; replaces the Inception in tests.
    """

    def __init__(
        self, request: EvaluationRequest, *, on_stage: OnStage = ignore_stage, extractor: MakeExtractor | None = None
    ) -> None:
        if request.sampler is not None:
            find_sampler(current_sampler(request.sampler))
        check_seed_and_count(request.seed, request.settings.count)
        self.request = request
        self.device = find_device(request.device)
        self.dataset = Dataset.open(request.data)
        self._sizes(request.settings.count)  # refuses a corpus that is too small
        if extractor is None:
            path = find_inception(request.inception)
            extractor = lambda device: load_inception(path, device)  # noqa: E731
        self._make_extractor = extractor
        self._extractor: Extractor | None = None
        self._on_stage = on_stage

    @property
    def num_images(self) -> int:
        """The number of images that the extractor processes for one system, with an empty cache."""
        settings, sizes = self.request.settings, self._sizes(self.request.settings.count)
        corrupted = len(CORRUPTIONS) * sizes.test if settings.corruption else 0
        samples = max(sizes.test, sizes.train) * (2 if settings.repaired else 1)
        return samples + sizes.test + max(sizes.test, 2 * sizes.train) + corrupted

    @property
    def minutes(self) -> float:
        """The approximate time for these images on the CPU of this machine."""
        return self.num_images / IMAGES_PER_MINUTE / max(1, torch.get_num_threads())

    def real_sketches(self, count: int = 100) -> list[Sketch]:
        """The first sketches of the reference split."""
        return [d.sketch for d in decode_compact(self.dataset.split(self.request.settings.split).compact[:count])]

    def check(self, name: str, *, is_model: bool) -> None:
        """Refuse what `evaluate` would refuse of a model or file by itself."""
        if is_model:
            self._load_model(name, self.request.sampler)
        else:
            self._read_samples(Path(name))

    def evaluate(
        self,
        name: str,
        out: Path,
        *,
        is_model: bool,
        expected: Protocol | None = None,
        label: str | None = None,
        sampler: str | None = None,
    ) -> Evaluation:
        """Evaluate a model or a file of sketches and write the report to `out`.

        Args:
            expected: A protocol that the report must be comparable with.
            label: The name of the system in the report, in place of the file name.
            sampler: Replaces the sampler of the request.
        """
        timer, request = StageTimer(self._on_stage, self.device), self.request
        system: System | None = None
        if is_model:
            with timer("loading the model"):
                system, sampler = self._load_model(name, sampler or request.sampler)
                create_folder(out)
                system = system.to_device(self.device)
            extractor = self._load_extractor(timer)  # refuses a wrong file before sketches are drawn
            self._refuse_incomparable(expected, name, request.settings.count, "model", extractor)
            samples = self._generate(system, sampler, name, out, timer)
        else:
            with timer("reading sketches"):
                samples = self._read_samples(Path(name))
                create_folder(out)
            extractor = self._load_extractor(timer)
            self._refuse_incomparable(expected, samples.name, len(samples), "samples", extractor)
        samples = samples if label is None else replace(samples, name=label)
        report, references = self._make_report(samples, system, extractor, timer)
        write_report(report, samples.compact, references.selected_test, out)
        return Evaluation(report, samples)

    def _generate(self, system: System, sampler: str, name: str, out: Path, timer: StageTimer) -> Samples:
        request = self.request
        with timer("sampling") as on_progress:
            options = GenerateRequest(
                count=request.settings.count, seed=request.seed, steps=request.steps, sampler=sampler, repair=False
            )
            samples = generate_samples(system, display_path(Path(name).resolve().name), options, on_progress)
        if request.save_samples:
            write(samples.sketches, out / SAMPLES)  # at once: sampling is expensive, and the rest may be interrupted
        return replace(samples, origin={**samples.origin, "system": system.name, "sha256": model_hash(name)})

    def _make_report(
        self, samples: Samples, system: System | None, extractor: Extractor, timer: StageTimer
    ) -> tuple[dict[str, Any], References]:
        settings, count = self.request.settings, len(samples)
        references, sizes = select_references(self.dataset, settings, count)
        protocol = make_protocol(self.dataset, extractor, settings, sizes, count, samples.origin)
        scorer = Scorer(extractor, self.request.cache or default_cache(), timer, settings.seed)
        features = scorer.extract(samples.compact, references.selected_test, references.selected_train, sizes)
        scores = scorer.score(features, sizes, settings.split)
        device = extractor.device
        report: dict[str, Any] = {
            "format": 1,
            "program": f"sketchdnn {sketchdnn.__version__}",
            "command": self.request.command,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU",
            "protocol": protocol.to_json(),
            "system": {"name": samples.name, **samples.origin, "samples": count, "samples_sha256": samples.sha256},
            "warnings": size_warnings(settings, sizes, count),
            "scores": scores,
            "corruption": None,
        }
        if settings.corruption:
            report["corruption"] = scorer.score_corruptions(references.selected_test, features, scores["test"]["floor"])
        with timer("validity") as on_progress:
            limit = settings.validity
            ours = validity.measure_validity(samples.compact[:limit], lambda done: on_progress(done / 2))
            real = validity.measure_validity(references.test[:limit], lambda done: on_progress(0.5 + done / 2))
            report["validity"] = {"samples": to_json(ours), "test": to_json(real)}
        report["repaired"] = None
        if settings.repaired:
            report["repaired"] = self._score_repaired(samples, references.test, scorer, features, sizes)
        report["distributions"] = _distributions(samples.compact, references.test)
        with timer("novelty") as on_progress:
            held_out = references.selected_test if settings.fast else references.test
            report["novelty"] = _novelty(samples.compact, references.train, held_out, str(device), on_progress)
        report["likelihood"] = None
        if settings.likelihood and system is not None:
            # In the frame of the corpus, which is that of the training data.
            sketches = self.dataset.split(settings.split).compact[: settings.likelihood_sketches]
            with timer("likelihood") as on_progress:
                draws, seed = settings.likelihood_draws, settings.seed
                bits = measure_likelihood(system, sketches, draws=draws, seed=seed, on_progress=on_progress)
            report["likelihood"] = to_json(bits)
        losses = {name: sorted(getattr(samples, name).items()) for name in ("repaired", "rejected", "skipped")}
        report["decoding"] = {
            "primitives": int(samples.compact.counts.sum()),
            **{name: dict(sorted(counts, key=itemgetter(1), reverse=True)) for name, counts in losses.items()},
            "empty_draws": samples.empty_draws,
        }
        report["galleries"] = {"score": GALLERY_SCORE, **select_galleries(samples.compact)}
        report["timings"] = to_json(timer.seconds)
        return report, references

    def _score_repaired(
        self, samples: Samples, test: Compact, scorer: Scorer, features: FeatureSets, sizes: Sizes
    ) -> dict[str, Any]:
        """Scores and validity of the samples after repair, and a summary of the repairs.

        The scores of a system are always those of its raw samples; these stand beside them.
        """
        limit = self.request.settings.validity
        count = min(len(samples), max(sizes.test, sizes.train, limit))
        with scorer.timer("repair") as on_progress:
            repaired = repair_samples(samples, count, workers=self.request.workers, on_progress=on_progress)
        with scorer.timer("validity after repair") as on_progress:
            measures = to_json(validity.measure_validity(repaired.compact[:limit], on_progress))
        sides = {"samples": samples.compact, "repaired": repaired.compact, "test": test}
        return {
            "sketches": count,
            "scores": scorer.score_repaired(repaired.compact, features, sizes),
            "validity": measures,
            "exact_ends": {name: to_json(validity.exact_ends(compact[:limit])) for name, compact in sides.items()},
            **_repair_summary(repaired),
        }

    def _load_model(self, name: str, sampler: str | None) -> tuple[System, str]:
        """The model on the CPU, and its sampler; refuses a sampler or steps that the model does not support."""
        options = SamplingOptions(sampler, self.request.steps)
        check_model_sampling(name, options)
        system = from_pretrained(name)
        return system, system.resolve(options).sampler_name

    def _read_samples(self, path: Path) -> Samples:
        if not path.exists():
            raise MissingFileError(path, "is not there")
        return read_samples(path, self.request.settings.count)

    def _refuse_incomparable(
        self, expected: Protocol | None, name: str, samples: int, kind: str, extractor: Extractor
    ) -> None:
        if expected is not None:
            sizes, origin = self._sizes(samples), {"kind": kind}
            protocol = make_protocol(self.dataset, extractor, self.request.settings, sizes, samples, origin)
            refuse_incomparable({"the reports so far": expected, name: protocol})

    def _sizes(self, samples: int) -> Sizes:
        settings = self.request.settings
        test, train = (len(self.dataset.split(name)) for name in (settings.split, "train"))
        return available_sizes(settings, samples, test, train)

    def _load_extractor(self, timer: StageTimer) -> Extractor:
        if self._extractor is None:
            with timer("loading the extractor"):
                self._extractor = self._make_extractor(self.device)
        return self._extractor


def select_references(dataset: Dataset, settings: Settings, samples: int) -> tuple[References, Sizes]:
    """The splits and the seeded selection from each; refuses a corpus that is too small."""
    is_normalized = dataset.config.frame == "tight" and dataset.config.half_extent == 1
    test, train = (
        normalize_split(dataset.split(name).compact, is_normalized=is_normalized) for name in (settings.split, "train")
    )
    sizes = available_sizes(settings, samples, len(test), len(train))
    rng = np.random.default_rng(settings.seed)
    test_index = rng.permutation(len(test))[: sizes.test]
    train_index = rng.permutation(len(train))[: max(sizes.test, 2 * sizes.train)]
    return References(test, train, test[test_index], train[train_index]), sizes


def _repair_summary(repaired: RepairedSamples) -> dict[str, Any]:
    """The kinds of repair and their number, and how far anything moved."""
    repairs = [repair.report for repair in repaired.repairs]
    moves = np.array([repair.displacement for repair in repairs])
    kinds = Counter(kind for repair in repairs for kind in repair.kinds)
    warnings = Counter(repair.warning for repair in repairs if repair.warning)
    return {
        "changed": to_json(share_of(moves > 0)),
        "displacement": to_json({"median": np.median(moves), "p95": np.quantile(moves, 0.95), "max": moves.max()}),
        "dof": to_json(float(np.median([repair.dof for repair in repairs]))),
        "actions": dict(kinds.most_common()),
        "warnings": dict(warnings.most_common(20)),
        "lost": repaired.lost,
    }


def _distributions(samples: Compact, real: Compact) -> dict[str, Any]:
    result: dict[str, Any] = {"samples": len(samples), "test": len(real)}
    for name, measure in validity.DISTRIBUTIONS.items():
        ours, reference = measure(samples), measure(real)
        result[name] = {
            "total_variation": to_json(validity.total_variation(ours, reference)),
            "deviations": [{**to_json(d), "is_within": d.is_within} for d in validity.deviations(ours, reference)],
        }
    result["counts"]["deviations"].sort(key=lambda deviation: int(deviation["name"]))
    return result


def _novelty(samples: Compact, train: Compact, real: Compact, device: str, on_progress: OnProgress) -> dict[str, Any]:
    """The novelty of samples, with the shares of their distances by bin in place of the distances."""
    novelty = measure_novelty(samples, train, real, device=device, on_progress=on_progress)
    bins = [f"{low:.1f}–{high:.1f}" for low, high in pairwise(NEIGHBOR_BINS.tolist())]
    for name in ("samples", "test"):
        distances = novelty["neighbors"][name]
        hits, _ = np.histogram(np.clip(distances, NEIGHBOR_BINS[0], NEIGHBOR_BINS[-1]), NEIGHBOR_BINS)
        novelty["neighbors"][name] = dict(zip(bins, hits / len(distances), strict=True))
    return dict(to_json(novelty))
