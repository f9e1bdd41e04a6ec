"""Variations: near the sketch for little strength, anything for all of it, and each the same whatever else is drawn."""

from __future__ import annotations

import pytest
import torch
from small_systems import small_system
from strategies import numbers

from sketchdnn.generation.conditions import Conditions
from sketchdnn.generation.generate import draw
from sketchdnn.generation.like import draw_like, steps_like
from sketchdnn.geometry import Circle, Line, Sketch, SketchError
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
    later = list(draw_like(small, BRACKET, 2, seed=1, steps=8, first=18))
    assert later == many[18:]


def test_it_takes_as_many_steps_as_lie_below_its_start() -> None:
    assert steps_like(50, 2000, 2000) == 50
    assert steps_like(50, 500, 2000) == 25
    assert steps_like(50, 1, 2000) == 1
    assert steps_like(50, 3, 50) == 3


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
        list(draw_like(small, BRACKET, 0, steps=5))


def test_it_begins_on_the_device_of_the_system() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    on_gpu = system().to_device("cuda")
    assert len(list(draw_like(on_gpu, BRACKET, 2, steps=4))) == 2
