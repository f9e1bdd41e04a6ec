"""Drawing: the same sketch for the same number, whatever is asked for beside it, at the size asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from support.generation import draw

from sketchdnn import SketchDNN
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditions import MAX_ATTEMPTS, Conditions, find_shortfall, score_sketch, sketch_key
from sketchdnn.generation.generate import CPU_BATCH
from sketchdnn.geometry import bounds
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
    assert [drawing.index for drawing in many] == list(range(20))
    assert few == many[:3]  # to the bit
    assert len({drawing.sketch.primitives for drawing in many}) == 20


def test_a_range_of_numbers_is_a_part_of_the_whole(system: systems.SketchDNN) -> None:
    whole = list(draw(system, 20, seed=3, steps=6))
    assert list(draw(system, 1, seed=3, steps=6, start_index=13)) == whole[13:14]
    assert list(draw(system, 9, seed=3, steps=6, start_index=11)) == whole[11:]


# Half of what the untrained system draws is so.
WIDE = Conditions(aspect=(1.0, 1.3))


@pytest.mark.parametrize("conditions", [WIDE, Conditions(aspect=(1.0, 1.3), best_of=3), Conditions(primitives=(9, 11))])
def test_what_is_drawn_again_does_not_depend_on_what_is_asked_for_beside_it(
    system: systems.SketchDNN, conditions: Conditions
) -> None:
    """Redraws share batches, with other sketches or with attempts ahead, as it comes."""
    whole = list(draw(system, 20, seed=3, steps=4, conditions=conditions))
    assert max(drawing.attempts for drawing in whole) > 1
    assert all(drawing.shortfall or find_shortfall(conditions, drawing.sketch) is None for drawing in whole)
    for start_index, count in ((0, 3), (5, 1), (17, 3)):
        some = list(draw(system, count, seed=3, steps=4, start_index=start_index, conditions=conditions))
        assert some == whole[start_index : start_index + count]


def test_the_best_of_several_is_the_best_of_them(system: systems.SketchDNN) -> None:
    plain = [drawing.sketch for drawing in draw(system, 4, steps=4)]
    best = list(draw(system, 4, steps=4, conditions=Conditions(best_of=6)))
    assert [drawing.attempts for drawing in best] == [6] * 4
    for drawing, sketch in zip(best, plain, strict=True):
        assert drawing.score == score_sketch(drawing.sketch) >= score_sketch(sketch)
    assert [drawing.sketch for drawing in best] != plain


def test_what_cannot_be_met_comes_close_and_says_so(system: systems.SketchDNN) -> None:
    flat = Conditions(aspect=(1e-4, 2e-4))
    closest = list(draw(system, 3, steps=3, conditions=flat))
    first_tries = list(draw(system, 3, steps=3))
    for drawing, plain in zip(closest, first_tries, strict=True):
        assert drawing.attempts == MAX_ATTEMPTS
        assert drawing.shortfall is not None
        assert "of its height" in drawing.shortfall
        lack, before = find_shortfall(flat, drawing.sketch), find_shortfall(flat, plain.sketch)
        assert lack is not None
        assert before is not None
        assert lack.distance <= before.distance


class Repeating(systems.SketchDNN):
    """Draws one and the same sketch in every other row."""

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        same = torch.arange(len(batch))
        same[::2] = 0
        return batch[same]


def test_no_two_are_alike_if_that_is_asked_for(system: systems.SketchDNN) -> None:
    repeating = Repeating(system.config)
    repeating.load_state_dict(system.state_dict())
    keys = [
        [sketch_key(drawing.sketch) for drawing in draw(repeating, 20, steps=4, conditions=conditions)]
        for conditions in (Conditions(), Conditions(unique=True))
    ]
    assert len(set(keys[0])) < 20
    assert len(set(keys[1])) == 20


def test_frames_end_in_the_sketch(system: systems.SketchDNN) -> None:
    for drawing in draw(system, 3, steps=6, trajectory_frames=3):
        assert len(drawing.trajectory) == 3
        kinds = [primitive.kind for primitive in drawing.sketch]
        assert [item.primitive.kind for item in drawing.trajectory[-1].likely()] == kinds
        assert [moment.t for moment in drawing.trajectory] == sorted({m.t for m in drawing.trajectory}, reverse=True)
        assert drawing.trajectory[-1].t == 0
    assert next(draw(system, 1, steps=6)).trajectory == ()


def test_memory_does_not_grow_with_the_count(system: systems.SketchDNN) -> None:
    """A million sketches are begun, not finished: the first come at once."""
    stream = draw(system, 1_000_000, steps=2)
    assert [next(stream).index for _ in range(CPU_BATCH + 1)] == list(range(CPU_BATCH + 1))


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

    is_restrictive = 0

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        if options["steps"] == 4:  # not the step that the engine tries the size of a batch with
            EmptyAtFirst.is_restrictive += 1
            if EmptyAtFirst.is_restrictive == 1:
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
    list(draw(system, CPU_BATCH + 2, steps=3, on_progress=heard.append))
    assert heard == sorted(heard)
    assert heard[-1] == CPU_BATCH + 2


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": 0}, "at least one"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"first": -1}, "numbered from 0"),
        ({"first": 2**32}, "numbered from 0"),
        ({"best_of": 0}, "at least 1"),
        ({"primitives": 20}, "do not fit"),
        ({"primitives": (9, 8)}, "smaller number first"),
        ({"kinds": {"spline": 3}}, "'spline' is no kind"),
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
