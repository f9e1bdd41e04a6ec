"""Completion: what was given comes back as it was, in its own coordinates, and something is added to it."""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from support.strategies import sketches

from benchmarks.packed_batches import packed, unpacked
from sketchdnn import SketchDNN
from sketchdnn.errors import SketchError
from sketchdnn.generation.complete import _check_part, complete
from sketchdnn.generation.conditioning import choose_added_kinds, encode_sketches
from sketchdnn.generation.inpainting import (
    COLLAPSED,
    DUPLICATE_TOLERANCE,
    RESAMPLES,
    CompletedPart,
    FramedPart,
    choose_frame,
    condition_on_parts,
    decode_completions,
    into_frame,
)
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Kind, Line, Point, Ref, Sketch, bounds, overlaps
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import SketchBatch, decode
from sketchdnn.representation.layout import MAX_PRIMITIVES, NONE
from sketchdnn.systems import Known, RowForm, load_preset
from sketchdnn.systems import sketchdnn as systems

PART = Sketch(
    (
        Line((110.3, 10), (10.1, 10)),  # the greater end first, which no model sees
        Line((110.3, 10), (110.3, 60)),
        Circle((30, 30), 8.7),
        Arc((100.3, 60), 10, 0.1, 1.3),
        Point((60, 20)),
        Line((60, 0), (60, 40), construction=True),
    ),
    (Constraint(ConstraintType.RADIUS, (Ref(2),), 8.7),),
    units="in",
    extra={"source": "a drawing"},
)


@pytest.fixture(scope="module")
def system() -> systems.SketchDNN:
    """Untrained, but moved off its start, so that what it draws depends on all of the noise."""
    torch.manual_seed(0)
    config = systems.SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=2, heads=2), num_steps=50)
    system = systems.SketchDNN(config)
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system.eval()


@pytest.mark.parametrize("way", ["given", "repaint"])
def test_what_was_given_comes_back_to_the_bit(system: systems.SketchDNN, way: str) -> None:
    done = list(complete(system, PART, 5, steps=16, way=way))  # type: ignore[arg-type]
    assert [one.index for one in done] == list(range(5))
    assert len({one.sketch.primitives for one in done}) == 5
    for one in done:
        assert one.sketch.primitives[: one.given] == PART.primitives
        assert one.given == len(PART) < len(one.sketch) <= MAX_PRIMITIVES
        assert (one.sketch.constraints, one.sketch.units) == (PART.constraints, "in")
        assert one.sketch.extra["source"] == "a drawing"
        assert 1 <= one.scale <= 2


@given(sketches(min_size=1, max_size=MAX_PRIMITIVES - 1))
@settings(max_examples=15)
def test_so_does_any_part_that_is_not_refused(system: systems.SketchDNN, part: Sketch) -> None:
    try:
        _check_part(part)
    except SketchError:
        return
    (one,) = complete(system, part, 1, steps=2, num_frames=2)
    assert one.sketch.primitives[: len(part)] == part.primitives


def test_a_completion_does_not_depend_on_how_many_are_asked_for(system: systems.SketchDNN) -> None:
    few, many = (list(complete(system, PART, count, seed=3, steps=16)) for count in (2, 6))
    assert few == many[:2]  # to the bit
    assert list(complete(system, PART, 2, seed=4, steps=16)) != few


def test_what_is_added_goes_with_the_part_wherever_it_is(system: systems.SketchDNN) -> None:
    here = list(complete(system, PART, 2, steps=4, num_frames=2))
    there = list(complete(system, PART.moved(0.25, (-300.0, 70.0)), 2, steps=4, num_frames=2))
    for one, other in zip(here, there, strict=True):
        moved = one.sketch.moved(0.25, (-300.0, 70.0))
        assert [p.kind for p in moved] == [p.kind for p in other.sketch]
        assert bounds(other.sketch).low == pytest.approx(bounds(moved).low, abs=0.05 * bounds(moved).size)
        assert bounds(other.sketch).size == pytest.approx(bounds(moved).size, rel=0.05)


def test_the_room_is_that_of_the_frame(system: systems.SketchDNN) -> None:
    small, large = (
        [bounds(one.sketch).size for one in complete(system, PART, 6, steps=4, scale=scale)] for scale in (1.0, 4.0)
    )
    assert sum(large) > 1.5 * sum(small)


class Echo(systems.SketchDNN):
    """Draws the first given row again in every row that is free."""

    def sample(self, noise: object, **options: object) -> SketchBatch:
        batch = super().sample(noise, **options)  # type: ignore[arg-type]
        given = options.get("given")
        if given is None:  # the step that the engine tries the size of a batch with
            return batch
        free = ~given.kind  # type: ignore[attr-defined]
        for part in (batch.construction, batch.kind, batch.params):
            part[free] = part[:, :1].expand_as(part)[free]
        return batch


def test_what_only_repeats_the_part_is_left_out(system: systems.SketchDNN) -> None:
    echo = Echo(system.config)
    echo.load_state_dict(system.state_dict())
    with pytest.raises(SketchError, match="added nothing"):
        list(complete(echo, PART, 1, steps=2))


def test_repeats_among_what_is_added_are_left_out_too() -> None:
    square = Sketch((Line((-1, -1), (1, -1)), Line((-1, 1), (1, 1))))
    again = (Line((1, -1.004), (-1, -1)), Line((-0.5, 1), (0.5, 1)), Circle((0, 0), 0.5), Circle((0, 0.003), 0.5))
    frame = choose_frame(bounds(square), (1, 1), 0, 1, ())[1]
    known = condition_on_parts([FramedPart(Sketch(square.primitives + again), frame, 0)], RowForm(), "given")
    (one,) = decode_completions([FramedPart(square, frame, 0)], known.batch, "sweep")
    assert one.sketch.primitives[2:] == pytest.approx((Circle((0, 0), 0.5),))
    assert (one.added, one.repeated) == (1, 3)
    assert not overlaps(one.sketch, DUPLICATE_TOLERANCE)
    assert one.misfit == pytest.approx(0)


def test_the_number_of_primitives_is_kept_or_what_is_wanting_is_said(system: systems.SketchDNN) -> None:
    for one in complete(system, PART, 4, steps=4, primitives=9):
        assert len(one.sketch) <= 9
        assert (one.shortfall is None) == (len(one.sketch) == 9)
        if one.shortfall:
            assert one.attempts > 0
            assert "9 primitives were asked for" in one.shortfall


def test_of_those_that_miss_the_number_the_closest_is_kept(
    system: systems.SketchDNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However good another looks; and all attempts at it are told."""
    added = iter([2, 1, 1, 1])  # of 3 that are wanted, attempt by attempt

    def drawn(walks: list[FramedPart], *_: object) -> list[CompletedPart]:
        count = next(added)
        more = tuple(Circle((60, 20), 3 + i) for i in range(count))
        return [CompletedPart(Sketch(PART.primitives + more), count, misfit=float(count)) for _ in walks]

    monkeypatch.setattr(sys.modules[complete.__module__], "finished", drawn)
    (one,) = complete(system, PART, 1, steps=2, primitives=9)
    assert (len(one.sketch), one.attempts) == (8, 4)
    assert one.shortfall == "9 primitives were asked for, and it has 8"
    added = iter([1, 3])
    (one,) = complete(system, PART, 1, steps=2, primitives=(9, 12))
    assert (len(one.sketch), one.attempts, one.shortfall) == (9, 2, None)  # whichever number fell to it


def test_what_is_added_is_of_kinds_that_go_with_the_part() -> None:
    """A number is asked for by the kinds of a training sketch that could hold the part; of any, where none could."""
    known = Known(
        np.zeros(0, np.uint64), np.array([[3, 3, 1, 1], [9, 0, 0, 0], [3, 1, 2, 2]]), np.array([1, 8, 1], np.int64)
    )
    chance = np.linspace(0, 0.999, 40)
    assert set(choose_added_kinds(PART, 8, chance, known)) == {(Kind.CIRCLE,) * 2, (Kind.ARC, Kind.POINT)}
    free = choose_added_kinds(PART, 9, chance, known)
    assert {len(kinds) for kinds in free} == {3}
    assert {kind for kinds in free for kind in kinds} == set(Kind)


@pytest.mark.slow
def test_the_bundled_model_adds_as_many_as_it_is_asked_to() -> None:
    corner = Sketch((Line((0, 0), (60, 0)), Line((60, 0), (60, 40)), Circle((30, 20), 8), Line((0, 0), (0, 40))))
    for one in complete(SketchDNN.from_pretrained().system, corner, 4, steps=20, primitives=(9, 12)):
        assert one.shortfall is None
        assert 9 <= len(one.sketch) <= 12
        assert one.sketch.primitives[:4] == corner.primitives


@pytest.mark.parametrize("form", [RowForm(), RowForm("signed_radius", "zero", canonical_lines=False)])
def test_rows_are_the_part_in_its_frame(form: RowForm) -> None:
    frame = choose_frame(bounds(PART), (1.5, 1.5), 0, 1, ())[1]
    adding = (Kind.CIRCLE, Kind.CIRCLE, Kind.ARC)
    known = condition_on_parts([FramedPart(PART, frame, 0), FramedPart(PART, frame, 1, adding)], form, "repaint")
    assert known.resamples == RESAMPLES
    assert known.kind.sum(dim=1).tolist() == [6, MAX_PRIMITIVES]
    assert known.construction.sum(dim=1).tolist() == [6, 6]
    assert known.params[..., 0].sum(dim=1).tolist() == [6, 6]
    assert known.batch.kind[1, 6:].argmax(dim=-1).tolist() == [*adding, *[NONE] * (MAX_PRIMITIVES - 9)]
    placed = into_frame(PART, frame)
    (decoded, _) = decode(known.batch, form.arc_scalar)
    line = decoded.sketch.primitives[0]
    assert isinstance(line, Line)
    assert (line.start < line.end) == form.canonical_lines
    assert [p.length for p in decoded.sketch] == pytest.approx([p.length for p in placed], rel=1e-4, abs=1e-6)
    assert [p.construction for p in decoded.sketch] == [p.construction for p in placed]


def test_kept_rows_decode_alike(system: systems.SketchDNN) -> None:
    from sketchdnn.diffusion.noise import seeded_noise

    batch = system.sample(seeded_noise(0, torch.arange(4)), steps=3)
    assert decode(unpacked(packed(batch)), "sweep") == decode(batch, "sweep")


def test_progress_rises_to_the_count(system: systems.SketchDNN) -> None:
    heard: list[float] = []
    list(complete(system, PART, 6, steps=3, primitives=9, on_progress=heard.append))
    assert heard == sorted(heard)
    assert heard[-1] == 6


def test_a_part_with_lines_too_short_for_the_model_is_completed(system: systems.SketchDNN) -> None:
    """Real SketchGraphs sketches have such: ends one bit apart, or apart only near zero."""
    tiny = (Line((1e-17, 15), (5e-17, 15)), Line((20.0, 10.0), (math.nextafter(20, 21), 10.0)))
    part = Sketch((*tiny, *PART.primitives[:3]), units="mm")
    for one in complete(system, part, 4, steps=3, scale=(1.0, 4.0), repair=True, primitives=9):
        assert one.sketch.primitives[:5] == part.primitives
        assert len(one.sketch) > 5


def test_what_collapses_in_the_coordinates_of_the_part_is_dropped_and_said() -> None:
    """Far from the origin numbers are 1.5e-5 apart: a line that short is none, and the rest stays."""
    part = Sketch((Line((1e11, 0), (1e11 + 10, 0)), Line((1e11 + 10, 0), (1e11 + 10, 10))))
    frame = choose_frame(bounds(part), (1.0, 1.0), 0, 1, ())[1]
    drawn = Sketch((*into_frame(part, frame), Line((0.5, 0.5), (0.5 + 1e-7, 0.5)), Circle((0, 0), 0.5)))
    form = RowForm()
    (one,) = decode_completions([FramedPart(part, frame, 0)], encode_sketches([drawn], form), form.arc_scalar)
    assert one.sketch.primitives[:2] == part.primitives
    assert [p.kind for p in one.sketch.primitives[2:]] == [Kind.CIRCLE]
    assert (one.added, one.rejected) == (1, (COLLAPSED,))


def many(count: int) -> Sketch:
    return Sketch(tuple(Line((i, 0), (i, 1)) for i in range(count)))


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (Sketch(()), "is empty"),
        (many(17), "has 17 primitives, and a finished sketch at most 16"),
        (many(16), "nothing to add"),
        (Sketch((Point((3, 4)),)), "no extent"),
        (Sketch((Line((0, 0), (0, 0.01)), Line((9e8, 3e8), (9e8, 3e8 + 0.01)))), "too small"),
    ],
)
def test_a_part_that_cannot_be_completed_is_refused(system: systems.SketchDNN, part: Sketch, complaint: str) -> None:
    with pytest.raises(SketchError, match=complaint):
        complete(system, part, 1)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": 0}, "at least one"),
        ({"seed": -1}, "seed"),
        ({"room": 5.0}, "1 to 4"),
        ({"way": "magic"}, "'magic' is no way"),
        ({"steps": 0}, "steps"),
        ({"tries": 0}, "at least one try"),
        ({"sampler": "euler"}, "'euler' is no sampler"),
        ({"primitives": 6}, "7 to 16 primitives in all, not 6"),
        ({"primitives": (8, 20)}, "not 8..20"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    system: systems.SketchDNN, wrong: dict[str, object], complaint: str
) -> None:
    with pytest.raises(SketchError, match=complaint):
        SketchDNN(system).complete(PART, **{"count": 1, **wrong})  # type: ignore[arg-type]


def test_a_network_that_was_not_trained_for_it_repaints() -> None:
    torch.manual_seed(0)
    config = load_preset("authors").config
    paper = systems.SketchDNN(replace(config, network=replace(config.network, width=16, depth=1, heads=2))).eval()
    with pytest.raises(SketchError, match="--way repaint"):
        complete(paper, PART, 1)
    for weight in paper.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    (one,) = complete(paper, PART, 1, way="repaint", steps=3, primitives=12)
    assert one.sketch.primitives[: len(PART)] == PART.primitives


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("way", ["given", "repaint"])
def test_a_gpu_completes_too(system: systems.SketchDNN, way: str) -> None:
    moved = copy.deepcopy(system).to_device("cuda")
    done = list(complete(moved, PART, 3, steps=4, way=way, primitives=12))  # type: ignore[arg-type]
    assert all(one.sketch.primitives[: len(PART)] == PART.primitives for one in done)


def test_the_bundled_model_closes_a_plate() -> None:
    """Three sides of a plate with a hole: most completions close it."""
    from sketchdnn.evaluation.profiles import LOOSE, is_closed
    from sketchdnn.geometry import profile

    corners = [(0.0, 40.0), (0.0, 0.0), (80.0, 0.0), (80.0, 40.0)]
    sides = tuple(Line(a, b) for a, b in pairwise(corners))
    part = Sketch((*sides, Circle((20, 20), 6)), units="mm")
    done = SketchDNN.from_pretrained().complete(part, 4, steps=12)
    assert all(one.primitives[:4] == part.primitives for one in done)
    assert sum(is_closed(profile(one, LOOSE)) for one in done) >= 2
    assert math.isfinite(sum(bounds(one).size for one in done))


def test_part_of_vanishing_extent_is_refused() -> None:
    for tiny in (5e-324, 1e-200):
        for part in (Sketch((Line((0, 0), (tiny, 0)), Line((0, 0), (0, tiny)))), Sketch((Circle((0, 0), tiny),))):
            with pytest.raises(SketchError, match="no extent"):
                _check_part(part)
