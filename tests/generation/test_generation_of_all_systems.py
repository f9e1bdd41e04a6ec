"""`generate`, `complete` and variations with every system: it works, or a sentence says why it cannot."""

from __future__ import annotations

import pytest
import torch
from sketchdnn.generation.like import draw_like
from support.generation import draw

from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditions import Conditions
from sketchdnn.generation.inpainting import check_method
from sketchdnn.systems import SYSTEMS, System, load_preset


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> System:
    torch.manual_seed(0)
    made = load_preset("tiny", request.param).make().eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return made


def test_a_sketch_is_the_same_whatever_is_asked_for_beside_it(system: System) -> None:
    few, many = list(draw(system, 2, steps=4)), list(draw(system, 18, steps=4))
    assert [one.sketch for one in few] == [one.sketch for one in many[:2]]


def test_a_number_of_primitives_is_given_or_drawn_for(system: System) -> None:
    wanted = Conditions(primitives=(1, 16))
    assert all(1 <= len(one.sketch) <= 16 for one in draw(system, 2, steps=4, conditions=wanted))


def test_what_it_cannot_do_is_one_sentence(system: System) -> None:
    part = procedural(0, 1)
    if system.given_ways:
        check_method(system, "given")
    else:
        with pytest.raises(SketchError, match="draws sketches whole, so it cannot complete one"):
            check_method(system, "given")
    if system.max_steps is None:
        with pytest.raises(SketchError, match="takes no noise away, so it cannot vary a sketch"):
            next(draw_like(system, part, 1, steps=4))
    else:
        assert len(list(draw_like(system, part, 1, steps=4))) == 1
