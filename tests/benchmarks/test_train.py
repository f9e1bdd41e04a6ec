from pathlib import Path

import pytest
from support.benchmarks import write_page

from benchmarks.train import EAGER, OURS, TrainBenchmark, TrainTiming, random_corpus, step_flops, time_train
from sketchdnn.errors import SketchError
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


def test_page_has_both_modes(tmp_path: Path) -> None:
    arguments = ["train", "--device", "cpu", "--preset", "tiny", "--batch", 4, "--repeats", 1]
    page = write_page(tmp_path / "page.md", *arguments)
    assert "`python -m benchmarks train --device cpu --preset tiny --batch 4 --eager-batch 4 --repeats 1`" in page
    assert all(words in page for words in ("× the eager loop", OURS, EAGER))


def test_flops_are_those_of_the_linear_layers() -> None:
    width, depth = 16, 2
    network = DiTConfig(width=width, depth=depth, heads=2, num_steps=10)
    system = SketchDNNSystem(SketchDNNConfig(network=network, variant="paper", num_steps=10))
    per_token = depth * 12 * width**2 + 2 * (21 * 4 * width + 4 * width * width)
    per_sketch = (2 * depth + 1) * 2 * width**2  # shift and scale of every norm, once for all tokens
    assert step_flops(system, random_corpus(4, "cpu"), 8) == 6 * 8 * (16 * per_token + per_sketch)


def test_best_batch_of_each_mode_is_compared() -> None:
    ours = ((10, 1.0, 1e12), (100, 2.0, 1e13), (1000, None, 1e14))
    timings = (*(TrainTiming("p", OURS, *values) for values in ours), TrainTiming("p", EAGER, 10, 2.0, 1e12))
    (sentence,) = TrainBenchmark("a device", 10.0, timings).sentences()
    assert sentence.startswith("p: 50 sketches/s, 10.0× the eager loop")
    assert "50.0% of the ceiling" in sentence
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_train(["tiny"], [1], [1], "tpu")
