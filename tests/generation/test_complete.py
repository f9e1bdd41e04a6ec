"""Completion: the part comes back unchanged, in its own coordinates, and primitives are added to it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from support.generation import PART, copy_as, randomized
from support.small_systems import small_system
from support.strategies import sketches

from sketchdnn import SketchDNN
from sketchdnn.constraints import RoundOptions
from sketchdnn.errors import SketchError
from sketchdnn.generation import CompleteRequest, GeneratedSketch
from sketchdnn.generation import complete as complete_request
from sketchdnn.generation.completion_request import MAX_PART
from sketchdnn.generation.conditions import CLOSE_TOLERANCE
from sketchdnn.generation.distinct import SAME_IDEA, difference
from sketchdnn.geometry import Box, Circle, Kind, Line, Point, Sketch, bounds, profile
from sketchdnn.representation import SketchBatch
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNSystem


@pytest.fixture(scope="module")
def system() -> SketchDNNSystem:
    return small_system(knows=False)


CORNERS = ((0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0))
OUTLINE = Sketch(tuple(Line(a, b) for a, b in pairwise((*CORNERS, CORNERS[0]))), units="mm")
# Three sides of a plate with a hole.
OPEN_PLATE = Sketch((*OUTLINE.primitives[:3], Circle((20, 20), 6)), units="mm")


def complete(system: System, part: Sketch, count: int, **options: Any) -> list[GeneratedSketch]:
    """The completions, not repaired by default. Progress rises to their number."""
    reports: list[float] = []
    request = CompleteRequest(part=part, count=count, **{"repair": False, **options})
    results = list(complete_request(system, request, reports.append))
    assert (reports, reports[-1]) == (sorted(reports), count)
    return results


@pytest.mark.parametrize("method", ["conditional", "repaint"])
def test_part_comes_back_to_the_bit(system: System, method: str) -> None:
    results = complete(system, PART, 5, steps=16, method=method, kinds="circle=2")
    assert [each.index for each in results] == list(range(len(results)))
    assert len({each.sketch.primitives for each in results}) == len(results) >= 1
    for each in results:
        assert each.sketch.primitives[: each.num_given] == PART.primitives
        assert each.num_given == len(PART) < len(each.sketch) <= MAX_PRIMITIVES
        assert (each.sketch.constraints, each.sketch.units) == (PART.constraints, "in")
        assert each.sketch.extra["source"] == "a drawing"
        assert each.scale is not None
        assert 1 <= each.scale <= 2


@given(sketches(min_size=1))
@settings(max_examples=15)
def test_any_part_comes_back_to_the_bit(system: System, part: Sketch) -> None:
    try:
        results = list(complete_request(system, CompleteRequest(part=part, count=1, steps=2, repair=False)))
    except SketchError:
        return
    assert results[0].sketch.primitives[: len(part)] == part.primitives


def test_completions_depend_on_the_part_and_the_seed(system: System) -> None:
    few = complete(system, PART, 2, seed=3, steps=4)
    assert complete(system, PART, 2, seed=3, steps=4) == few  # to the bit
    assert complete(system, PART, 2, seed=4, steps=4) != few
    here = complete(system, PART, 2, steps=4)
    there = complete(system, PART.moved(0.25, (-300.0, 70.0)), 2, steps=4)
    for one, other in zip(here, there, strict=True):
        moved = one.sketch.moved(0.25, (-300.0, 70.0))
        assert [p.kind for p in moved] == [p.kind for p in other.sketch]
        assert bounds(other.sketch).low == pytest.approx(bounds(moved).low, abs=0.05 * bounds(moved).size)
        assert bounds(other.sketch).size == pytest.approx(bounds(moved).size, rel=0.05)
    small, large = (
        sum(bounds(each.sketch).size for each in complete(system, PART, 3, steps=4, scale=scale, goal="extend"))
        for scale in (1.0, "4")
    )
    assert large > 1.5 * small


def test_no_two_suggestions_are_alike(system: System) -> None:
    added = [each.sketch.primitives[len(OUTLINE) :] for each in complete(system, OUTLINE, 6, steps=4, kinds="circle=2")]
    assert len(added) > 2
    for number, one in enumerate(added):
        assert all(difference(one, other, 80.0) > SAME_IDEA for other in added[:number])


def test_more_like_a_suggestion_and_something_else(system: System) -> None:
    first, *others = complete(system, OUTLINE, 4, steps=8, kinds="circle=2")
    again = complete(system, OUTLINE, 4, steps=8, kinds="circle=2", unlike=[first.sketch])
    liked = complete(system, OUTLINE, 3, steps=8, kinds="circle=2", like=first.sketch)
    for each in (*again, *liked):
        added = each.sketch.primitives[len(OUTLINE) :]
        assert difference(added, first.sketch.primitives[len(OUTLINE) :], 80.0) > SAME_IDEA
    assert [each.sketch.primitives for each in others] == [each.sketch.primitives for each in again[:3]]
    with pytest.raises(SketchError, match="begins with the primitives of the part"):
        CompleteRequest(part=OUTLINE, like=OPEN_PLATE)
    with pytest.raises(SketchError, match="and adds some"):
        CompleteRequest(part=OUTLINE, unlike=[OUTLINE])


def test_additions_lie_in_the_window_and_are_of_the_kinds_asked_for(system: System) -> None:
    window = Box((0.0, 0.0), (40.0, 40.0))
    for words in (window, "0,0,40,40"):
        for each in complete(system, OUTLINE, 3, steps=4, inside=words):
            slack = CLOSE_TOLERANCE * bounds(each.sketch).size
            assert bounds(each.sketch.primitives[4:]).high[0] <= 40.0 + slack
    for kinds in ({Kind.CIRCLE: 2}, {"circle": 2}, "circle=2"):
        for each in complete(system, OUTLINE, 3, steps=4, kinds=kinds):
            curves = [p.kind for p in each.sketch.primitives[4:] if not p.construction]
            assert (each.shortfall is None) == (curves == [Kind.CIRCLE] * 2)
            assert each.shortfall is None or "not what was asked for" in each.shortfall


def test_large_parts_are_completed_where_they_are_open_or_in_the_window(system: System) -> None:
    """The model sees what is near; the rest stays, with its constraints."""
    holes = tuple(Circle((4.0 * i, 4.0 * j), 1.0) for i in range(2, 18) for j in range(2, 4))
    part = Sketch((*OPEN_PLATE.primitives[:3], *holes), units="mm")
    assert 17 <= len(part) <= MAX_PART
    for options in ({"goal": "close"}, {"inside": "0,20,80,40", "kinds": "circle=3", "goal": "inside"}):
        for each in complete(system, part, 3, steps=4, repair=True, **options):
            assert each.sketch.primitives[: len(part)] == part.primitives
            assert len(part) < len(each.sketch) <= len(part) + MAX_PRIMITIVES
            highest = max(each.sketch.primitives[len(part) :], key=lambda p: bounds([p]).low[1])
            assert bounds([highest]).high[1] > 14.0


class Echo(SketchDNNSystem):
    """Draws the first known row again in every free row."""

    def sample(self, noise: Any, options: Any) -> SketchBatch:  # type: ignore[override]
        batch = super().sample(noise, options)
        if options.conditioning is not None:  # not the step that compares rounding
            free = ~options.conditioning.kind
            for part in (batch.construction, batch.kind, batch.params):
                part[free] = part[:, :1].expand_as(part)[free]
        return batch


def test_completion_that_only_repeats_the_part_is_refused(system: SketchDNNSystem) -> None:
    with pytest.raises(SketchError, match="added nothing"):
        complete(copy_as(Echo, system), PART, 1, steps=2, geometry=False)


def test_number_of_primitives_is_met_or_the_closest_is_kept(system: System) -> None:
    for limits, least, most in ((9, 9, 9), ("7..8", 7, 8)):
        results = complete(system, OUTLINE, 6, steps=4, primitives=limits)
        for each in results:
            is_met = least <= len(each.sketch) <= most
            assert is_met if each.shortfall is None else ("primitives, not" in each.shortfall) != is_met
        met = [each.shortfall is None for each in results]
        assert met == sorted(met, reverse=True)  # those that meet it come first


def test_part_with_lines_too_short_for_the_model_is_completed(system: System) -> None:
    """Real SketchGraphs sketches have such: ends one bit apart, or apart only near zero."""
    tiny = (Line((1e-17, 15), (5e-17, 15)), Line((20.0, 10.0), (math.nextafter(20, 21), 10.0)))
    part = Sketch((*tiny, *PART.primitives[:3]), units="mm")
    for each in complete(system, part, 4, steps=3, scale=(1.0, 4.0), repair=True, kinds="circle=4"):
        assert each.sketch.primitives[:5] == part.primitives
        assert len(each.sketch) > 5


def test_invalid_parts_and_requests_are_refused_at_once(system: SketchDNNSystem) -> None:
    many = Sketch(tuple(Line((i, 0), (i, 1)) for i in range(MAX_PART + 1)))
    parts = [
        (Sketch(()), "is empty"),
        (many, "has 65 primitives, and at most 64"),
        (Sketch((Point((3, 4)),)), "extent"),
    ]
    parts += [(Sketch((Circle((0, 0), 1e-200),)), "no extent")]
    parts += [(Sketch((Line((0, 0), (5e-324, 0)), Line((0, 0), (0, 5e-324)))), "no extent")]
    parts += [(Sketch((Line((0, 0), (0, 0.01)), Line((9e8, 3e8), (9e8, 3e8 + 0.01)))), "too small")]
    for part, message in parts:
        with pytest.raises(SketchError, match=message):
            CompleteRequest(part=part)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"count": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"steps": 0}, "steps"),
        ({"scale": 5.0}, "1 to 4"),
        ({"method": "magic"}, "'magic' is no method"),
        ({"candidates": 0}, "at least one candidate"),
        ({"goal": "shrink"}, "'shrink' is no goal"),
        ({"kinds": "blob=2"}, "blob"),
        ({"inside": "0,0"}, "inside"),
        ({"sampler": "euler"}, "'euler' is no sampler"),
        ({"primitives": (8, 20)}, "not 8..20"),
        ({"primitives": 6}, "7 to 16 primitives in all, not 6"),
    ]
    for options, message in cases:
        with pytest.raises(SketchError, match=message):
            SketchDNN(system).complete(PART, **{"count": 1, **options})


def test_network_without_conditioning_repaints() -> None:
    torch.manual_seed(0)
    config = load_preset("authors").config
    paper = SketchDNNSystem(replace(config, network=replace(config.network, width=16, depth=1, heads=2)))
    with pytest.raises(SketchError, match="method repaint"):
        complete(paper, PART, 1)
    (each,) = complete(randomized(paper), PART, 1, method="repaint", steps=3, primitives=12)
    assert each.sketch.primitives[: len(PART)] == PART.primitives


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("method", ["conditional", "repaint"])
def test_gpu_completes(system: SketchDNNSystem, method: str) -> None:
    results = complete(copy.deepcopy(system).to_device("cuda"), PART, 3, steps=4, method=method, primitives=12)
    assert all(each.sketch.primitives[: len(PART)] == PART.primitives for each in results)


def test_bundled_model_closes_a_plate() -> None:
    """Most suggestions close it; what is inside lies in the material, and nothing crosses the part."""
    results = SketchDNN.from_pretrained().complete(OPEN_PLATE, 4, steps=12)
    assert all(each.primitives[:4] == OPEN_PLATE.primitives for each in results)
    assert sum(profile(each).is_extrudable for each in results) >= 3
    assert not any(profile(each).meetings for each in results)


def test_bundled_model_adds_rounded_features_inside_an_outline() -> None:
    model = SketchDNN.from_pretrained()
    for each in model.complete(OUTLINE, 2, steps=12, kinds="circle=2", rounding=RoundOptions(step=1.0)):
        shape = profile(each)
        assert shape.is_extrudable
        assert sum(loop.depth == 0 for loop in shape.loops) == 1 < len(shape.loops)
        radii = [p.radius for p in each.primitives[4:] if isinstance(p, Circle)]
        assert all(2 * radius == round(2 * radius) for radius in radii)
        assert each.primitives[:4] == OUTLINE.primitives
    with pytest.raises(SketchError, match="rounding needs"):
        CompleteRequest(part=OUTLINE, repair=False, rounding=RoundOptions())
