"""From candidates to suggestions: what is left out, what comes first, and whose ideas they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from sketchdnn.generation import CompleteRequest
from sketchdnn.generation.engine import SampleId
from sketchdnn.generation.framing import CompletedPart, FramedPart
from sketchdnn.generation.generate import GeneratedSketch
from sketchdnn.generation.suggestions import Finisher
from sketchdnn.geometry import Circle, Line, Placement, Point, Primitive, Sketch

CORNERS = ((0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0), (0.0, 0.0))
PLATE = Sketch(tuple(Line(a, b) for a, b in pairwise(CORNERS)))
CENTERED, AXIS = Circle((40, 20), 8), Line((0, 20), (80, 20), construction=True)
FRAME = Placement((40.0, 20.0), 40.0)


def suggest(*ideas: tuple[Primitive, ...], part: Sketch = PLATE, **options: Any) -> list[GeneratedSketch]:
    """The suggestions, if the model has these ideas and each is a sample of its own."""
    finisher = Finisher(CompleteRequest(part=part, **options), part, "inside")
    parts = [FramedPart(part, FRAME, SampleId(number)) for number in range(len(ideas))]
    completed = [CompletedPart(replace(part, primitives=(*part, *idea)), len(idea), 0.0) for idea in ideas]
    candidates = finisher.finish(*finisher.geometric_candidates()) + finisher.finish(parts, completed)
    return finisher.choose(candidates)


def added(each: GeneratedSketch) -> tuple[Primitive, ...]:
    return each.sketch.primitives[each.num_given :]


def test_points_and_lone_construction_are_no_suggestions() -> None:
    results = suggest((Point((20, 20)),), (AXIS,), (CENTERED, Point((5, 5)), AXIS))
    assert [{p.kind for p in added(each)} for each in results] == [{CENTERED.kind, AXIS.kind}]
    asked = suggest((Point((20, 20)),), kinds="point=1")
    assert [added(each) for each in asked] == [(Point((20, 20)),)]


def test_symmetric_and_fully_placed_comes_first() -> None:
    first, *others = suggest((Circle((22, 27), 5),), (CENTERED,), (Circle((31, 13), 9), Circle((63, 24), 4)))
    assert added(first) == (CENTERED,)
    assert others  # the others are ideas too


def test_what_is_far_worse_than_the_best_is_left_out() -> None:
    crowded = tuple(Circle((9.0 + 9 * k, 6.1 + 3.3 * k), 4.2 + 0.2 * k) for k in range(8))
    assert [added(each) for each in suggest((CENTERED,), crowded, geometry=False)] == [(CENTERED,)]
    assert len(suggest(crowded, geometry=False)) == 1


def test_construction_makes_no_other_idea() -> None:
    assert len(suggest((CENTERED,), (CENTERED, AXIS))) == 1


def test_at_most_half_are_of_geometry_where_the_model_has_enough() -> None:
    part = replace(PLATE, primitives=(*PLATE, Circle((10, 10), 4)))
    ideas = [(Circle((40, 20), 9),), (Circle((60, 20), 5),), (Circle((40, 30), 3),)]
    origins = [each.origin for each in suggest(*ideas, part=part, count=4)]
    assert sorted(map(str, origins)) == ["geometry"] * 2 + ["model"] * 2
    few = [each.origin for each in suggest(ideas[2], part=part, count=4)]
    assert sorted(map(str, few)) == ["geometry"] * 3 + ["model"]
    alone = [each.origin for each in suggest(*ideas, part=part, count=4, geometry=False)]
    assert set(alone) == {"model"}
