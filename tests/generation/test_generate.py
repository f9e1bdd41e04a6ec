"""Generation and variations: sketch i does not depend on the request, has the requested size, and meets conditions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from support.generation import copy_as, draw, randomized
from support.sketch_sets import polygon
from support.small_systems import small_system
from support.strategies import numbers

from sketchdnn import SketchDNN
from sketchdnn.data.procedural import procedural
from sketchdnn.errors import SketchError
from sketchdnn.generation import GeneratedSketch, GenerateRequest, stream
from sketchdnn.generation.complete import check_method
from sketchdnn.generation.conditions import MAX_ATTEMPTS, Conditions, find_shortfall, score_sketch, sketch_key
from sketchdnn.generation.engine import CPU_BATCH, choose_batch_size
from sketchdnn.generation.generate import noised_start
from sketchdnn.geometry import Circle, Kind, Sketch, normalize
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.layout import NONE, NUM_KINDS
from sketchdnn.systems import SYSTEMS, load_preset
from sketchdnn.systems.sketchdnn import SketchDNNSystem

OUTLINE = polygon((10, 10), (50, 10), (50, 20), (30, 20), (30, 40), (10, 40))
BRACKET = Sketch((*OUTLINE, Circle((20, 30), 4), Circle((42, 15), 2)), units="in")


@pytest.fixture(scope="module")
def system() -> SketchDNNSystem:
    return small_system(knows=False)


def vary(system: SketchDNNSystem, count: int, **options: Any) -> list[GeneratedSketch]:
    return list(draw(system, count, init_sketch=BRACKET, **options))


def test_sketch_does_not_depend_on_the_count_or_the_start_index(system: SketchDNNSystem) -> None:
    for drawn in (draw, vary):
        few, many = (list(drawn(system, count, seed=3, steps=8)) for count in (3, 20))
        assert [each.index for each in many] == list(range(20))
        assert few == many[:3]  # to the bit
        assert len({each.sketch.primitives for each in many}) == 20
        assert list(drawn(system, 1, seed=3, steps=8, start_index=13)) == many[13:14]
        assert list(drawn(system, 9, seed=3, steps=8, start_index=11)) == many[11:]


def test_every_system_generates_and_refuses_what_it_cannot_do() -> None:
    part = procedural(0, 1)
    for name in SYSTEMS:
        system = randomized(load_preset("tiny", name).make())
        few, many = list(draw(system, 2, steps=8, size=2, trajectory_frames=4)), list(draw(system, 18, steps=8, size=2))
        assert [each.sketch for each in few] == [each.sketch for each in many[:2]]
        for each in few:
            times = [frame.t for frame in each.trajectory]
            assert (times, times[-1]) == (sorted(set(times), reverse=True), 0)
            assert 1 <= len(times) <= 4  # a system of tokens may be done at once
            last = Sketch(tuple(item.primitive for item in each.trajectory[-1].likely()))
            assert normalize(last, 1.0)[0].primitives == each.sketch.primitives
        wanted = Conditions(primitives=(1, 16))
        assert all(1 <= len(each.sketch) <= 16 for each in draw(system, 2, steps=4, conditions=wanted))
        if system.conditioning_methods:
            check_method(system, "conditional")
        else:
            with pytest.raises(SketchError, match="cannot complete a sketch"):
                check_method(system, "conditional")
        if system.max_steps is None:
            with pytest.raises(SketchError, match="does not denoise, so it cannot vary a sketch"):
                next(draw(system, 1, init_sketch=part, steps=4))
        else:
            assert len(list(draw(system, 1, init_sketch=part, steps=4))) == 1


# Half of the sketches of the untrained system are so.
WIDE = (1.0, 1.3)


@pytest.mark.parametrize("conditions", [Conditions(aspect=WIDE, best_of=3), Conditions(primitives=(9, 11))])
def test_repeated_sketch_does_not_depend_on_the_request(system: SketchDNNSystem, conditions: Conditions) -> None:
    """Attempts share batches with other sketches and with attempts ahead."""
    whole = list(draw(system, 20, seed=3, steps=4, conditions=conditions))
    assert max(each.attempts for each in whole) > 1
    assert all(each.shortfall or find_shortfall(conditions, each.sketch) is None for each in whole)
    for first, count in ((0, 3), (5, 1), (17, 3)):
        some = list(draw(system, count, seed=3, steps=4, start_index=first, conditions=conditions))
        assert some == whole[first : first + count]


def test_best_of_keeps_the_highest_score_and_reports_too_few(system: SketchDNNSystem) -> None:
    plain = [each.sketch for each in draw(system, 4, steps=4)]
    best = list(draw(system, 4, steps=4, conditions=Conditions(best_of=6)))
    assert [each.attempts for each in best] == [6] * 4
    for each, sketch in zip(best, plain, strict=True):
        assert each.score == score_sketch(each.sketch) >= score_sketch(sketch)
    assert [each.sketch for each in best] != plain
    # About half of the attempts pass, which is not thirty of fifty-three.
    for each in draw(system, 2, steps=3, conditions=Conditions(aspect=(1.0, 1.2), best_of=30)):
        assert each.shortfall is None
        assert each.attempts == MAX_ATTEMPTS + 29
        assert "not of 30: no more of 53 attempts" in str(each.best_of_shortfall)


def test_closest_attempt_is_kept_and_progress_rises_to_the_count(system: SketchDNNSystem) -> None:
    flat = Conditions(aspect=(1e-4, 2e-4))
    for each, plain in zip(draw(system, 3, steps=3, conditions=flat), draw(system, 3, steps=3), strict=True):
        assert each.attempts == MAX_ATTEMPTS
        assert "of its height" in str(each.shortfall)
        shortfall, before = find_shortfall(flat, each.sketch), find_shortfall(flat, plain.sketch)
        assert shortfall is not None
        assert before is not None
        assert shortfall.distance <= before.distance
    reports: list[float] = []
    list(draw(system, CPU_BATCH + 2, steps=3, conditions=Conditions(aspect=WIDE), on_progress=reports.append))
    assert (reports, reports[-1]) == (sorted(reports), CPU_BATCH + 2)


class Repeating(SketchDNNSystem):
    """Draws one and the same sketch in every other row."""

    def sample(self, *arguments: Any) -> SketchBatch:
        batch = super().sample(*arguments)
        same = torch.arange(len(batch))
        same[::2] = 0
        return batch[same]


def test_repeated_and_empty_sketches_are_drawn_again(system: SketchDNNSystem) -> None:
    repeating = copy_as(Repeating, system)
    plain, unique = (
        {sketch_key(each.sketch) for each in draw(repeating, 20, steps=4, conditions=conditions)}
        for conditions in (Conditions(), Conditions(unique=True))
    )
    assert len(plain) < 20 == len(unique)
    drawn, plain = list(draw(copy_as(EmptyAtFirst, system), 8, steps=4)), list(draw(system, 8, steps=4))
    assert [each.attempts for each in drawn] == [1, 1, 1, 1, 1, 2, 1, 1]
    assert [each.sketch for each in drawn if each.attempts == 1] == [each.sketch for each in plain if each.index != 5]
    assert drawn[5].sketch != plain[5].sketch


class EmptyAtFirst(SketchDNNSystem):
    """Draws an empty sketch in the sixth place of the first batch."""

    calls = 0

    def sample(self, noise: Any, options: Any) -> SketchBatch:  # type: ignore[override]
        batch = super().sample(noise, options)
        if options.steps == 4:  # not the step that compares rounding
            EmptyAtFirst.calls += 1
            if EmptyAtFirst.calls == 1:
                batch.kind[5] = torch.eye(NUM_KINDS)[NONE]
        return batch


def test_invalid_requests_are_refused(system: SketchDNNSystem) -> None:
    cases: list[tuple[dict[str, Any], str]] = [({"count": 0}, "at least 1"), ({"best_of": 0}, "at least 1")]
    cases += [({"seed": -1}, "seed"), ({"seed": 2**64}, "seed"), ({"primitives": 20}, "do not fit")]
    cases += [({"start_index": index}, "numbered from 0") for index in (-1, 2**32)]
    cases += [({"size": 0.0}, "large"), ({"size": float("nan")}, "large"), ({"units": "furlong"}, "no unit")]
    cases += [
        ({"steps": 0}, "steps"),
        ({"steps": 51}, "1 to 50 steps"),
        ({"sampler": "euler"}, "'euler' is no sampler"),
    ]
    cases += [({"strength": 0.5}, "init_sketch"), ({"init_sketch": BRACKET, "size": 4}, "leave size out")]
    cases += [({"init_sketch": Sketch(tuple(Circle((i, 0), 0.4) for i in range(17)))}, "17 primitives")]
    cases += [({"init_sketch": BRACKET, "strength": s}, "strength") for s in (0.0, -1.0, 1.1, float("nan"))]
    cases += [({"kinds": {"spline": 3}}, "'spline' is no kind")]
    for options, message in cases:
        with pytest.raises(SketchError, match=message):
            SketchDNN(system).generate(**{"count": 1, **options})
    with pytest.raises(SketchError, match="compile is for a GPU"):
        stream(system, GenerateRequest(compile=True))  # at once, not when the first sketch is taken


class Believing(SketchDNNSystem):
    """Predicts its input."""

    def denoise(self, batch_t: SketchBatch, *_: Any, **__: Any) -> Prediction:
        return Prediction(20 * batch_t.construction, 20 * batch_t.kind, batch_t.params)


def test_strength_goes_from_the_initial_sketch_to_ordinary_generation(system: SketchDNNSystem) -> None:
    for each in vary(copy_as(Believing, system), 3, strength=0.02, steps=50):
        assert ([p.kind for p in each.sketch], each.sketch.units) == ([p.kind for p in BRACKET], "in")
        for p, q in zip(each.sketch, BRACKET, strict=True):
            # A line may be reversed.
            ours, theirs = (sorted(numbers(primitive)) for primitive in (p, q))
            assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 4.0

    def kinds(drawn: Sequence[GeneratedSketch]) -> list[list[tuple[object, bool]]]:
        return [[(p.kind, p.construction) for p in each.sketch] for each in drawn]

    plain = list(draw(system, 4, seed=2, steps=10))
    assert kinds(vary(system, 4, seed=2, strength=1.0, steps=10)) == kinds(plain)
    # Of quadratically spaced steps, as many lie below the start.
    for strength, start, steps in ((1.0, 50, 20), (0.5, 12, 10), (0.1, 1, 1)):
        assert noised_start(system, BRACKET, strength)[0].t == start
        (each,) = vary(system, 1, strength=strength, steps=20, trajectory_frames=100, sampler="predictor_corrector")
        assert len({frame.t for frame in each.trajectory}) == steps
    impossible = Conditions(aspect=(500.0, 501.0))
    (each,) = vary(copy_as(Believing, system), 1, strength=0.02, steps=4, conditions=impossible)
    assert "of its height, not 500 to 501" in str(each.shortfall)


def test_variation_shares_its_steps_and_needs_an_extent(
    system: SketchDNNSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = list[int]()
    choose_batch_size(system, 1, CPU_BATCH)  # compares rounding now, so that only sampling is counted
    denoise = system.denoise

    def counted(batch_t: SketchBatch, t: torch.Tensor, *arguments: Any) -> Prediction:
        times.append(int(t[0]))
        return denoise(batch_t, t, *arguments)

    monkeypatch.setattr(system, "denoise", counted)
    assert system.default_sampler == "restart"
    (each,) = vary(system, 1, strength=0.8, steps=20)
    assert (each.attempts, len(times)) == (1, 16)
    assert times[0] == max(times) == noised_start(system, BRACKET, 0.8)[0].t
    assert sum(before <= after for before, after in pairwise(times)) == 1  # up once
    with pytest.raises(SketchError, match="drew nothing"):
        vary(copy_as(Dwindling, system), 1, strength=0.9, steps=4, conditions=Conditions(unique=True))


class Dwindling(SketchDNNSystem):
    """Leaves one point, which has no extent."""

    def denoise(self, batch_t: SketchBatch, *_: Any, **__: Any) -> Prediction:
        kind = torch.full_like(batch_t.kind, -20.0)
        kind[..., -1] = 20.0
        kind[:, 0] = 20.0 * torch.eye(kind.shape[-1])[Kind.POINT]
        return Prediction(batch_t.construction, kind, batch_t.params)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_variation_starts_on_the_device_of_the_system() -> None:
    assert len(vary(small_system().to_device("cuda"), 2, steps=4)) == 2  # type: ignore[arg-type]


def test_bundled_model_draws_closed_shapes() -> None:
    """Ten steps are enough to tell it from noise."""
    sketches = SketchDNN.from_pretrained().generate(6, seed=0, steps=10)
    assert all(6 <= len(sketch) <= 16 for sketch in sketches)
    assert sum(map(score_sketch, sketches)) > 2
