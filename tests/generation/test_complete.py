"""Completion: the part comes back unchanged, in its own coordinates, and primitives are added to it."""

from __future__ import annotations

import copy
import math
import sys
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
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, is_closed
from sketchdnn.generation import CompleteRequest, GeneratedSketch
from sketchdnn.generation import complete as complete_request
from sketchdnn.generation.complete import CompletedPart, FramedPart
from sketchdnn.geometry import Circle, Line, Point, Sketch, bounds, profile
from sketchdnn.representation import SketchBatch
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import System, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNSystem


@pytest.fixture(scope="module")
def system() -> SketchDNNSystem:
    return small_system(knows=False)


def complete(system: System, part: Sketch, count: int, **options: Any) -> list[GeneratedSketch]:
    """The completions, not repaired by default. Progress rises to their number."""
    reports: list[float] = []
    request = CompleteRequest(part=part, count=count, **{"repair": False, **options})
    results = list(complete_request(system, request, reports.append))
    assert (reports, reports[-1]) == (sorted(reports), count)
    return results


@pytest.mark.parametrize("method", ["conditional", "repaint"])
def test_part_comes_back_to_the_bit(system: System, method: str) -> None:
    results = complete(system, PART, 5, steps=16, method=method)
    assert [each.index for each in results] == list(range(5))
    assert len({each.sketch.primitives for each in results}) == 5
    for each in results:
        assert each.sketch.primitives[: each.num_given] == PART.primitives
        assert each.num_given == len(PART) < len(each.sketch) <= MAX_PRIMITIVES
        assert (each.sketch.constraints, each.sketch.units) == (PART.constraints, "in")
        assert each.sketch.extra["source"] == "a drawing"
        assert each.scale is not None
        assert 1 <= each.scale <= 2


@given(sketches(min_size=1, max_size=MAX_PRIMITIVES - 1))
@settings(max_examples=15)
def test_any_part_comes_back_to_the_bit(system: System, part: Sketch) -> None:
    try:
        request = CompleteRequest(part=part, count=1, steps=2, num_frames=2, repair=False)
    except SketchError:
        return
    (each,) = complete_request(system, request)
    assert each.sketch.primitives[: len(part)] == part.primitives


def test_completions_depend_on_the_part_but_not_on_the_count(system: System) -> None:
    few, many = (complete(system, PART, count, seed=3, steps=16) for count in (2, 6))
    assert few == many[:2]  # to the bit
    assert complete(system, PART, 2, seed=4, steps=16) != few
    here = complete(system, PART, 2, steps=4, num_frames=2)
    there = complete(system, PART.moved(0.25, (-300.0, 70.0)), 2, steps=4, num_frames=2)
    for one, other in zip(here, there, strict=True):
        moved = one.sketch.moved(0.25, (-300.0, 70.0))
        assert [p.kind for p in moved] == [p.kind for p in other.sketch]
        assert bounds(other.sketch).low == pytest.approx(bounds(moved).low, abs=0.05 * bounds(moved).size)
        assert bounds(other.sketch).size == pytest.approx(bounds(moved).size, rel=0.05)
    small, large = (
        sum(bounds(each.sketch).size for each in complete(system, PART, 6, steps=4, scale=scale))
        for scale in (1.0, "4")
    )
    assert large > 1.5 * small


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
        complete(copy_as(Echo, system), PART, 1, steps=2)


def test_number_of_primitives_is_met_or_the_closest_is_kept(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in complete(system, PART, 6, steps=4, primitives=9):
        assert len(each.sketch) <= 9
        assert (each.shortfall is None) == (len(each.sketch) == 9)
        if each.shortfall:
            assert each.attempts > 0
            assert "primitives, not 9" in each.shortfall
    # Whatever its score; all attempts are counted.
    added = iter([2, 1, 1, 1])  # of 3, attempt by attempt

    def decode(parts: list[FramedPart], *_: object) -> list[CompletedPart]:
        count = next(added)
        more = tuple(Circle((60, 20), 3 + i) for i in range(count))
        return [CompletedPart(Sketch(PART.primitives + more), count, misfit=float(count)) for _ in parts]

    monkeypatch.setattr(sys.modules[complete_request.__module__], "decode_completions", decode)
    (each,) = complete(system, PART, 1, steps=2, primitives=9)
    assert (len(each.sketch), each.attempts, each.shortfall) == (8, 4, "it has 8 primitives, not 9")
    added = iter([1, 3])
    (each,) = complete(system, PART, 1, steps=2, primitives="9..12")
    assert (len(each.sketch), each.attempts, each.shortfall) == (9, 2, None)  # whichever number was chosen


def test_part_with_lines_too_short_for_the_model_is_completed(system: System) -> None:
    """Real SketchGraphs sketches have such: ends one bit apart, or apart only near zero."""
    tiny = (Line((1e-17, 15), (5e-17, 15)), Line((20.0, 10.0), (math.nextafter(20, 21), 10.0)))
    part = Sketch((*tiny, *PART.primitives[:3]), units="mm")
    for each in complete(system, part, 4, steps=3, scale=(1.0, 4.0), repair=True, primitives=9):
        assert each.sketch.primitives[:5] == part.primitives
        assert len(each.sketch) > 5


def test_invalid_parts_and_requests_are_refused_at_once(system: SketchDNNSystem) -> None:
    many = [Sketch(tuple(Line((i, 0), (i, 1)) for i in range(count))) for count in (16, 17)]
    parts = [(Sketch(()), "is empty"), (many[0], "nothing to add"), (Sketch((Circle((0, 0), 1e-200),)), "no extent")]
    parts += [(many[1], "has 17 primitives, and a finished sketch at most 16"), (Sketch((Point((3, 4)),)), "no extent")]
    parts += [(Sketch((Line((0, 0), (5e-324, 0)), Line((0, 0), (0, 5e-324)))), "no extent")]
    parts += [(Sketch((Line((0, 0), (0, 0.01)), Line((9e8, 3e8), (9e8, 3e8 + 0.01)))), "too small")]
    for part, message in parts:
        with pytest.raises(SketchError, match=message):
            CompleteRequest(part=part)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"count": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"steps": 0}, "steps"),
    ]
    cases += [
        ({"scale": 5.0}, "1 to 4"),
        ({"method": "magic"}, "'magic' is no method"),
        ({"num_frames": 0}, "one frame"),
    ]
    cases += [({"sampler": "euler"}, "'euler' is no sampler"), ({"primitives": (8, 20)}, "not 8..20")]
    cases += [({"primitives": 6}, "7 to 16 primitives in all, not 6")]
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
    """Three sides of a plate with a hole: most completions close it."""
    corners = [(0.0, 40.0), (0.0, 0.0), (80.0, 0.0), (80.0, 40.0)]
    part = Sketch((*(Line(a, b) for a, b in pairwise(corners)), Circle((20, 20), 6)), units="mm")
    results = SketchDNN.from_pretrained().complete(part, 4, steps=12)
    assert all(each.primitives[:4] == part.primitives for each in results)
    assert sum(is_closed(profile(each, LOOSE_TOLERANCE)) for each in results) >= 2
    assert math.isfinite(sum(bounds(each).size for each in results))
