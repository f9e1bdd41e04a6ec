"""Drawing: the same sketch for the same number, whatever is asked for beside it, at the size asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from sketchdnn import SketchDNN
from sketchdnn.generation import draw
from sketchdnn.generation.generate import CHUNK
from sketchdnn.geometry import SketchError, bounds
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.layout import NONE, NUM_KINDS
from sketchdnn.systems import sketchdnn as systems


@pytest.fixture(scope="module")
def system() -> systems.SketchDNN:
    """Untrained, but moved off its start, so that what it draws depends on all of the noise."""
    torch.manual_seed(0)
    config = systems.SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=2, heads=2), num_steps=50)
    system = systems.SketchDNN(config)
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system.eval()


def test_a_sketch_does_not_depend_on_how_many_are_asked_for(system: systems.SketchDNN) -> None:
    few, many = (list(draw(system, count, seed=3, steps=6)) for count in (3, 20))
    assert [drawing.number for drawing in many] == list(range(20))
    assert few == many[:3]  # to the bit
    assert len({drawing.sketch.primitives for drawing in many}) == 20


def test_seeds_differ_and_repeat(system: systems.SketchDNN) -> None:
    one, same, other = (SketchDNN(system).generate(2, seed=seed, steps=4) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(("size", "units"), [(100.0, "mm"), (4.0, "in")])
def test_a_sketch_has_the_size_asked_for(system: systems.SketchDNN, size: float, units: str) -> None:
    for sketch in SketchDNN(system).generate(4, steps=4, size=size, units=units):
        assert sketch.units == units
        assert bounds(sketch).size == pytest.approx(size)
        assert bounds(sketch).center == pytest.approx((0, 0), abs=1e-6 * size)


class EmptyAtFirst(systems.SketchDNN):
    """Draws nothing in the fifth place until it is asked again."""

    asked = 0

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        EmptyAtFirst.asked += 1
        if EmptyAtFirst.asked == 1:
            batch.kind[5] = torch.eye(NUM_KINDS)[NONE]
        return batch


def test_an_empty_sketch_is_drawn_anew(system: systems.SketchDNN) -> None:
    stubborn = EmptyAtFirst(system.config)
    stubborn.load_state_dict(system.state_dict())
    drawn = list(draw(stubborn, 8, steps=4))
    assert [drawing.attempts for drawing in drawn] == [1, 1, 1, 1, 1, 2, 1, 1]
    plain = list(draw(system, 8, steps=4))
    assert [d.sketch for d in drawn if d.attempts == 1] == [d.sketch for d in plain if d.number != 5]
    assert drawn[5].sketch != plain[5].sketch


def test_progress_rises_to_the_count(system: systems.SketchDNN) -> None:
    heard: list[float] = []
    list(draw(system, CHUNK + 2, steps=3, on_progress=heard.append))
    assert heard == sorted(heard)
    assert heard[-1] == CHUNK + 2


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": 0}, "at least one"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"size": 0.0}, "large"),
        ({"size": float("nan")}, "large"),
        ({"steps": 0}, "steps"),
        ({"steps": 51}, "steps"),
        ({"sampler": "euler"}, "'euler' is no sampler"),
    ],
)
def test_what_cannot_be_drawn_is_refused(system: systems.SketchDNN, wrong: dict[str, float], complaint: str) -> None:
    with pytest.raises(SketchError, match=complaint):
        SketchDNN(system).generate(**{"count": 1, **wrong})  # type: ignore[arg-type]


def closed(ends: Sequence[tuple[float, float]], tolerance: float) -> float:
    """The share of ends that lie within `tolerance` of an end of another primitive; ends come in pairs."""
    places = torch.tensor(ends)
    apart = torch.cdist(places, places)
    index = torch.arange(len(places))
    apart[index, index] = apart[index, index ^ 1] = torch.inf
    return float((apart.amin(dim=1) < tolerance).float().mean())


def test_the_bundled_model_draws_closed_shapes() -> None:
    """Ten steps of fifty are enough to tell it from noise; the model card has the figures of the default."""
    sketches = SketchDNN.from_pretrained().generate(6, seed=0, steps=10)
    assert all(6 <= len(sketch) <= 16 for sketch in sketches)
    shares = []
    for sketch in sketches:
        ends = [end for p in sketch if hasattr(p, "end") for end in (p.start, p.end)]
        if len(ends) > 2:
            shares.append(closed(ends, tolerance=3.0))
    assert sum(shares) / len(shares) > 0.6
