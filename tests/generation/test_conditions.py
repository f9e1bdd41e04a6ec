"""What cannot be is refused with a sentence, before anything is drawn."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.small_systems import small_system

from sketchdnn.errors import SketchError
from sketchdnn.generation.conditions import NO_CONDITIONS, Conditions, check_conditions, trained_for
from sketchdnn.geometry import Kind


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"primitives": (0, 4)}, "at least 1"),
        ({"primitives": (9, 8)}, "smaller number first"),
        ({"construction": (0.2, 1.1)}, "0 to 1"),
        ({"construction": (math.nan, 0.5)}, "0 to 1"),
        ({"aspect": (-1.0, 2.0)}, "at least 0"),
        ({"aspect": (0.0, 0.0)}, "above 0"),
        ({"aspect": (1.0, math.inf)}, "at least 0"),
        ({"kinds": {}}, "how many of each"),
        ({"kinds": {Kind.LINE: -1}}, "line=-1"),
        ({"kinds": {Kind.POINT: 0}}, "leaves open"),
        ({"kinds": {Kind.LINE: 9, Kind.ARC: 4}, "primitives": (8, 12)}, "makes 13 primitives, more than the 8 to 12"),
        ({"kinds": dict.fromkeys(Kind, 2), "primitives": (9, 12)}, "fewer than the 9 to 12"),
        ({"best_of": 0}, "at least 1 sketch"),
    ],
)
def test_nonsense_is_refused(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SketchError, match=sentence):
        Conditions(**asked)


def test_what_does_not_fit_the_model_is_refused() -> None:
    system = small_system()
    low, high = trained_for(system)
    assert (low, high) == system.training_index.primitives  # type: ignore[union-attr]
    check_conditions(Conditions(primitives=(low, high)), system)
    with pytest.raises(SketchError, match="20 primitives do not fit: a sketch of this model has 16 rows"):
        check_conditions(Conditions(primitives=(20, 20)), system)
    with pytest.raises(SketchError, match=f"trained on sketches of {low} to {high} primitives"):
        check_conditions(Conditions(primitives=(low - 1, high)), system)
    with pytest.raises(SketchError, match=f"ask for {low}..{high} primitives as well"):
        check_conditions(Conditions(kinds={Kind.ARC: 1}), system)
    check_conditions(Conditions(kinds={Kind.ARC: 1}, primitives=(low, high)), system)


def test_a_model_that_knows_nothing_takes_any_number_but_cannot_tell_what_is_new() -> None:
    system = small_system(knows=False)
    check_conditions(Conditions(primitives=(1, 16)), system)
    with pytest.raises(SketchError, match="does not say what it was trained on"):
        check_conditions(Conditions(novel=True), system)
    with pytest.raises(SketchError, match="do not fit"):
        check_conditions(Conditions(kinds={Kind.LINE: 17}), system)


def test_kinds_alone_say_how_many_primitives_there_are() -> None:
    assert Conditions(kinds={Kind.LINE: 8, Kind.CIRCLE: 2}).count == (10, 10)
    assert Conditions(kinds={Kind.LINE: 8}, primitives=(9, 12)).count == (9, 12)
    assert NO_CONDITIONS.count is None
    assert not NO_CONDITIONS.asked
    assert Conditions(closed=True).asked
