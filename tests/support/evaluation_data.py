"""Data for tests of the evaluation: a small corpus, a small model, and a fake extractor."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sketchdnn.data import PRESETS, Procedural, prepare
from sketchdnn.data.procedural import procedural
from sketchdnn.evaluation import FAST, EvaluationRequest, Evaluator, Settings
from sketchdnn.evaluation.features import Extractor
from sketchdnn.evaluation.scores import OnStage, ignore_stage
from sketchdnn.formats import write
from sketchdnn.geometry import Sketch
from sketchdnn.systems import load_preset, save_pretrained

# All measures of few sketches.
SMALL = Settings(
    count=24, against_test=16, against_train=20, validity=16, likelihood_sketches=4, likelihood_draws=2, corruption=True
)
SMALL_FAST = replace(FAST, count=16, against_test=12, validity=12, likelihood=False)


@dataclass(frozen=True)
class FakeExtractor:
    """Coarse images times a random matrix, in place of the Inception. Its name is part of every protocol."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sha256: str = "a fake extractor for tests"

    def features(self, images: Tensor) -> Tensor:
        coarse = torch.nn.functional.avg_pool2d(255 - images[:, None].float(), 23, ceil_mode=True).flatten(1) / 255
        mixed = torch.randn(coarse.shape[1], 32, generator=torch.Generator().manual_seed(0))
        return torch.relu(coarse @ mixed)


def small_corpus(folder: Path) -> Path:
    """A corpus of 92 training and 43 test sketches."""
    config = replace(PRESETS["ours"], fractions=(0.6, 0.1, 0.3))
    prepare([], folder, config, parts=Procedural(160, 3), workers=1)
    return folder


def small_model(folder: Path, name: str = "sketchdnn") -> Path:
    """An untrained model with random weights, so that its samples depend on the noise."""
    torch.manual_seed(0)
    system = load_preset("tiny", name).make()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    save_pretrained(system, folder)
    return folder


def make_evaluator(
    folder: Path,
    on_stage: OnStage = ignore_stage,
    extractor: Callable[[str], Extractor] = lambda device: FakeExtractor(),
    **changes: Any,
) -> Evaluator:
    """An evaluator of the corpus in a folder, with four steps for a model."""
    options = {"settings": SMALL, "steps": 4, "device": "cpu", "cache": folder / "cache", **changes}
    return Evaluator(EvaluationRequest(folder / "corpus", **options), on_stage=on_stage, extractor=extractor)


def procedural_sketches(count: int, seed: int = 11) -> list[Sketch]:
    return [procedural(seed, index) for index in range(count)]


def sample_file(path: Path, count: int = 24, seed: int = 11) -> Path:
    write(procedural_sketches(count, seed), path)
    return path
