"""On a GPU, scores agree with those of the CPU, and a whole evaluation runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.evaluation_data import FakeExtractor, make_evaluator, small_corpus, small_model
from support.sketch_sets import parts
from torch import Tensor

from sketchdnn.evaluation import metrics
from sketchdnn.evaluation.estimates import to_json
from sketchdnn.evaluation.features import load_inception, sketch_features
from sketchdnn.evaluation.likelihood import measure_likelihood
from sketchdnn.evaluation.novelty import blurred_images, nearest_distances
from sketchdnn.systems import load_preset

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

SCORES = ("frechet_distance", "frechet_estimate", "frechet_at_infinity", "kernel_distance", "precision_recall")


def numbers(value: Any) -> list[float]:
    """All numbers of a JSON value, in order."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if items is None else [number for item in items for number in numbers(item)]


@pytest.mark.parametrize("name", [*SCORES, "authors_precision_recall", "density_coverage"])
@pytest.mark.parametrize("count", [40, 300], ids=["below full rank", "above"])
def test_scores_agree_with_the_cpu(name: str, count: int) -> None:
    generator, score = torch.Generator().manual_seed(0), getattr(metrics, name)
    a, b = (torch.relu(torch.randn(count, 64, generator=generator) + shift) for shift in (0.0, 0.3))
    a[:, :5], b[:, :5] = 0.0, 0.0
    here, there = (numbers(to_json(score(a.to(device), b.to(device)))) for device in ("cpu", "cuda"))
    assert there == pytest.approx(here, rel=1e-4, abs=1e-6)


def test_features_agree_with_the_cpu(inception_file: Path) -> None:
    here, there = (sketch_features(parts(8), load_inception(inception_file, device)) for device in ("cpu", "cuda"))
    assert there.device.type == "cuda"
    assert (there.cpu() - here).norm() < 1e-3 * here.norm()


def test_likelihoods_and_nearest_distances_agree_with_the_cpu() -> None:
    torch.manual_seed(0)
    system = load_preset("tiny").make().eval()
    results = [measure_likelihood(system.to_device(device), parts(12), draws=3) for device in ("cpu", "cuda")]
    for part in ("authors", "density", "grid", "grid_set"):
        here, there = (numbers(to_json(getattr(result, part))) for result in results)
        assert there == pytest.approx(here, rel=1e-2)
    images = blurred_images(parts(60)[:20]), blurred_images(parts(60)[10:])
    np.testing.assert_allclose(nearest_distances(*images, device="cuda"), nearest_distances(*images), atol=2e-3)


class GpuExtractor(FakeExtractor):
    """The fake extractor with features on the GPU."""

    def features(self, images: Tensor) -> Tensor:
        return super().features(images.cpu()).to(self.device)


def test_whole_evaluation(tmp_path: Path) -> None:
    small_corpus(tmp_path / "corpus")
    small_model(tmp_path / "model")
    evaluator = make_evaluator(tmp_path, extractor=lambda device: GpuExtractor(torch.device(device)), device="cuda")
    first = evaluator.evaluate(str(tmp_path / "model"), tmp_path / "one", is_model=True).report
    again = evaluator.evaluate(str(tmp_path / "one" / "samples.jsonl"), tmp_path / "two", is_model=False).report
    assert "CPU" not in first["device"]
    for name, estimate in first["scores"]["train"]["system"].items():
        assert again["scores"]["train"]["system"][name]["value"] == pytest.approx(estimate["value"], rel=1e-3, abs=1e-5)
