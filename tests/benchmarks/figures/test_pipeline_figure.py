from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.generation import draw

from benchmarks.figures import watch, write_pipeline
from sketchdnn.errors import SketchError
from sketchdnn.geometry import normalize
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


@pytest.fixture(scope="module")
def system() -> SketchDNNSystem:
    torch.manual_seed(0)
    made = SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2), num_steps=100))
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return made.eval()


def test_one_walk_is_seen_from_noise_to_the_sketch_that_generate_draws_so(
    system: SketchDNNSystem, tmp_path: Path
) -> None:
    heard: list[float] = []
    walk = watch(system, count=2, seed=5, steps=20, shares=(1.0, 0.2), on_progress=heard.append)
    steps = [glimpse.t for glimpse in walk.glimpses]
    assert steps[0] == 100
    assert steps == sorted(steps, reverse=True)
    assert len(steps) == 2
    assert heard == sorted(heard)
    assert heard[-1] == 1
    noise = walk.glimpses[0].noisy.params
    assert abs(float(noise.std()) - 1) < 0.15
    assert system.default_sampler == "restart"  # two walks, of which the figure shows one that goes all the way
    drawn = list(draw(system, 2, seed=5, steps=20, size=2, sampler="predictor_corrector"))
    for sketch, drawing in zip(walk.sketches, drawn, strict=True):
        if drawing.attempts == 1:
            assert normalize(sketch, 1.0)[0].primitives == drawing.sketch.primitives
    first, second = (write_pipeline(tmp_path / name, walk) for name in "ab")
    assert [path.name for path in first] == ["pipeline.png", "pipeline.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_too_many_sketches_are_refused(system: SketchDNNSystem) -> None:
    with pytest.raises(SketchError, match="1 to 16"):
        watch(system, count=17)
