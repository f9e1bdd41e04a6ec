from __future__ import annotations

from pathlib import Path

import pytest
import torch
from random_batches import clean_batch

from sketchdnn.figures import watch, write_pipeline
from sketchdnn.figures.pipeline import superposed
from sketchdnn.generation import draw
from sketchdnn.geometry import Kind, SketchError, normalise
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.systems.sketchdnn import SketchDNN, SketchDNNConfig


@pytest.fixture(scope="module")
def system() -> SketchDNN:
    torch.manual_seed(0)
    made = SketchDNN(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2), num_steps=100))
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return made.eval()


def test_a_certain_row_is_one_primitive() -> None:
    batch = clean_batch(1)
    certain = [(row, primitive) for row, primitive, chance in superposed(batch, "sweep") if chance == 1]
    (read,) = decode(batch, "sweep")
    assert [primitive for _, primitive in sorted(certain, key=lambda item: item[0])] == list(read.sketch)


def test_chances_of_a_row_add_up_to_that_of_not_being_empty() -> None:
    rows = SketchBatch(
        torch.tensor([[[0.7, 0.3]]]), torch.tensor([[[0.4, 0.1, 0.2, 0.1, 0.2]]]), torch.full((1, 1, 14), 0.3)
    )
    rows.params[..., layout.PARAMS_OF_KIND[Kind.LINE]] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    rows.params[..., layout.PARAMS_OF_KIND[Kind.ARC]] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.1])
    found = list(superposed(rows, "sweep"))
    assert len(found) == 2 * len(Kind)
    assert sum(chance for *_, chance in found) == pytest.approx(0.8)
    dashed = {p.kind: chance for _, p, chance in found if p.construction}
    assert dashed[Kind.LINE] == pytest.approx(0.12)


def test_the_walk_is_seen_from_noise_to_the_sketch_that_generate_draws(system: SketchDNN, tmp_path: Path) -> None:
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
    drawn = list(draw(system, 2, seed=5, steps=20, size=2))
    for sketch, drawing in zip(walk.sketches, drawn, strict=True):
        if drawing.attempts == 1:
            assert normalise(sketch, 1.0)[0].primitives == drawing.sketch.primitives
    first, second = (write_pipeline(tmp_path / name, walk) for name in "ab")
    assert [path.name for path in first] == ["pipeline.png", "pipeline.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_too_many_sketches_are_refused(system: SketchDNN) -> None:
    with pytest.raises(SketchError, match="1 to 16"):
        watch(system, count=17)
