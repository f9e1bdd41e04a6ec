"""Variations: near the sketch for little strength, anything for all of it, and each the same whatever else is drawn."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from sketchdnn.generation.like import draw_like, noised_start
from support.generation import draw
from support.small_systems import small_system
from support.strategies import numbers

from sketchdnn.errors import SketchError
from sketchdnn.generation.conditions import Conditions
from sketchdnn.generation.engine import CPU_BATCH, choose_batch_size
from sketchdnn.geometry import Circle, Kind, Line, Sketch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems.sketchdnn import SketchDNN

CORNERS = [(10, 10), (50, 10), (50, 20), (30, 20), (30, 40), (10, 40)]
BRACKET = Sketch(
    (
        *(Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True)),
        Circle((20, 30), 4),
        Circle((42, 15), 2),
    ),
    units="in",
)


class Believing(SketchDNN):
    """Takes what it sees for the sketch."""

    def denoise(self, batch_t, t, given=None) -> Prediction:  # type: ignore[no-untyped-def]
        return Prediction(20 * batch_t.construction, 20 * batch_t.kind, batch_t.params)


def system(kind: type[SketchDNN] = SketchDNN) -> SketchDNN:
    small = small_system()
    other = kind(small.config)
    other.load_state_dict(small.state_dict())
    return other.eval()


def test_little_strength_gives_the_sketch_back_in_its_place() -> None:
    for drawing in draw_like(system(Believing), BRACKET, 3, strength=0.02, steps=50):
        assert [p.kind for p in drawing.sketch] == [p.kind for p in BRACKET]
        assert drawing.sketch.units == "in"
        for p, q in zip(drawing.sketch, BRACKET, strict=True):
            # A line may have been turned round.
            ours, theirs = (sorted(numbers(each)) for each in (p, q))
            assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 4.0


def test_all_strength_is_an_ordinary_draw() -> None:
    def kinds(drawings: object) -> list[list[tuple[object, bool]]]:
        return [[(p.kind, p.construction) for p in d.sketch] for d in drawings]  # type: ignore[attr-defined]

    small = system()
    assert kinds(draw_like(small, BRACKET, 4, seed=2, strength=1.0, steps=10)) == kinds(
        draw(small, 4, seed=2, steps=10)
    )


def test_a_variation_does_not_depend_on_how_many_are_asked_for() -> None:
    small = system()
    few, many = (list(draw_like(small, BRACKET, count, seed=1, steps=8)) for count in (2, 20))
    assert few == many[:2]
    assert len({drawing.sketch.primitives for drawing in many}) == 20
    later = list(draw_like(small, BRACKET, 2, seed=1, steps=8, start_index=18))
    assert later == many[18:]


def test_the_strength_is_the_share_of_steps_that_are_walked() -> None:
    """Of quadratically spaced steps, as many lie below the start."""
    small = system()  # of 50 steps of noise
    for strength, start, walked in ((1.0, 50, 20), (0.5, 12, 10), (0.1, 1, 1)):
        assert noised_start(small, BRACKET, strength)[0].t == start
        (drawing,) = draw_like(
            small, BRACKET, 1, strength=strength, steps=20, trajectory_frames=100, sampler="corrected"
        )
        assert len({moment.t for moment in drawing.trajectory}) == walked


def test_two_walks_of_a_variation_share_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    small, times = system(), list[int]()
    choose_batch_size(small, 1, CPU_BATCH)  # tried before, so that only walks are heard
    denoise = small.denoise

    def heard(batch_t, t, given=None) -> Prediction:  # type: ignore[no-untyped-def]
        times.append(int(t[0]))
        return denoise(batch_t, t, given)

    monkeypatch.setattr(small, "denoise", heard)
    assert small.default_sampler == "closing"
    (drawing,) = draw_like(small, BRACKET, 1, strength=0.8, steps=20)
    assert drawing.attempts == 1
    assert len(times) == 16
    assert times[0] == max(times) == noised_start(small, BRACKET, 0.8)[0].t
    assert sum(before <= after for before, after in pairwise(times)) == 1  # back up once


class Dwindling(SketchDNN):
    """Leaves a point of what it sees, which has no extent."""

    def denoise(self, batch_t, t, given=None) -> Prediction:  # type: ignore[no-untyped-def]
        kind = torch.full_like(batch_t.kind, -20.0)
        kind[..., -1] = 20.0
        kind[:, 0] = 20.0 * torch.eye(kind.shape[-1])[Kind.POINT]
        return Prediction(batch_t.construction, kind, batch_t.params)


def test_a_variation_without_extent_is_none() -> None:
    """It can be neither exported at a size nor told from others."""
    with pytest.raises(SketchError, match="drew nothing"):
        list(draw_like(system(Dwindling), BRACKET, 1, strength=0.9, steps=4, conditions=Conditions(unique=True)))


def test_conditions_are_met_or_missed_with_a_sentence() -> None:
    impossible = Conditions(aspect=(500.0, 501.0))
    (drawing,) = draw_like(system(Believing), BRACKET, 1, strength=0.02, steps=4, conditions=impossible)
    assert drawing.shortfall is not None
    assert "of its height, not 500 to 501" in drawing.shortfall


def test_what_cannot_be_is_refused() -> None:
    small = system()
    for strength in (0.0, -1.0, 1.1, float("nan")):
        with pytest.raises(SketchError, match="strength"):
            list(draw_like(small, BRACKET, 1, strength=strength))
    many = Sketch(tuple(Circle((i, 0), 0.4) for i in range(17)))
    with pytest.raises(SketchError, match="17 primitives"):
        list(draw_like(small, many, 1))
    with pytest.raises(SketchError, match="1 to 50 steps"):
        list(draw_like(small, BRACKET, 1, steps=51))
    with pytest.raises(SketchError, match="at least one"):
        draw_like(small, BRACKET, 0, steps=5)  # at once, not when the first is wanted


def test_it_begins_on_the_device_of_the_system() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    on_gpu = system().to_device("cuda")
    assert len(list(draw_like(on_gpu, BRACKET, 2, steps=4))) == 2
