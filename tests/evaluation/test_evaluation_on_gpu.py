"""On a GPU everything is measured as on the CPU: the same scores from the same features, and a whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_sets import parts
from support.judging import SMALL, StandIn, small_corpus, small_model
from torch import Tensor

from sketchdnn.evaluation import EvaluationRequest, Evaluator
from sketchdnn.evaluation.estimates import to_json
from sketchdnn.evaluation.features import load_inception, sketch_features
from sketchdnn.evaluation.likelihood import measure_likelihood
from sketchdnn.evaluation.metrics import (
    authors_precision_recall,
    density_coverage,
    frechet_at_infinity,
    frechet_distance,
    frechet_estimate,
    kernel_distance,
    precision_recall,
)
from sketchdnn.evaluation.novelty import blurred_images, nearest_distances
from sketchdnn.systems import load_preset

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

SCORES = (
    *(frechet_distance, frechet_estimate, frechet_at_infinity, kernel_distance),
    *(precision_recall, authors_precision_recall, density_coverage),
)


def numbers(found: Any) -> list[float]:
    """All numbers of something measured, in order."""
    if isinstance(found, dict):
        return [number for value in found.values() for number in numbers(value)]
    return [found]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("count", [40, 300], ids=["below full rank", "above"])
def test_scores_are_those_of_the_cpu(score: Callable[[Tensor, Tensor], Any], count: int) -> None:
    """Some features never change, so that covariances have no full rank."""
    dice = torch.Generator().manual_seed(0)
    a, b = (torch.relu(torch.randn(count, 64, generator=dice) + shift) for shift in (0.0, 0.3))
    a[:, :5], b[:, :5] = 0.0, 0.0
    here, there = (numbers(to_json(score(a.to(device), b.to(device)))) for device in ("cpu", "cuda"))
    assert there == pytest.approx(here, rel=1e-4, abs=1e-6)


def test_distances_to_the_nearest_are_those_of_the_cpu() -> None:
    queries, known = blurred_images(parts(60)[:20]), blurred_images(parts(60)[10:])
    np.testing.assert_allclose(
        nearest_distances(queries, known, device="cuda"), nearest_distances(queries, known), atol=2e-3
    )


def test_features_are_those_of_the_cpu(inception_file: Path) -> None:
    here, there = (sketch_features(parts(8), load_inception(inception_file, device)) for device in ("cpu", "cuda"))
    assert there.device.type == "cuda"
    assert (there.cpu() - here).norm() < 1e-3 * here.norm()


def test_likelihoods_are_those_of_the_cpu() -> None:
    torch.manual_seed(0)
    system = load_preset("tiny").make().eval()
    found = [measure_likelihood(system.to_device(device), parts(12), draws=3) for device in ("cpu", "cuda")]
    for part in ("authors", "density", "grid", "grid_set"):
        here, there = (numbers(to_json(getattr(one, part))) for one in found)
        assert there == pytest.approx(here, rel=1e-2)


class OnGpu(StandIn):
    """The stand-in, its features handed to the GPU."""

    def features(self, images: Tensor) -> Tensor:
        return super().features(images.cpu()).to(self.device)


def test_a_whole_run(tmp_path: Path) -> None:
    small_corpus(tmp_path / "corpus")
    small_model(tmp_path / "model")
    request = EvaluationRequest(tmp_path / "corpus", settings=SMALL, steps=4, device="cuda", cache=tmp_path / "cache")
    run = Evaluator(request, extractor=lambda device: OnGpu(torch.device(device)))
    first = run.evaluate(str(tmp_path / "model"), tmp_path / "one", is_model=True).report
    again = run.evaluate(str(tmp_path / "one" / "samples.jsonl"), tmp_path / "two", is_model=False).report
    assert "CPU" not in first["device"]
    for name, estimate in first["scores"]["train"]["system"].items():
        assert again["scores"]["train"]["system"][name]["value"] == pytest.approx(estimate["value"], rel=1e-3, abs=1e-5)
