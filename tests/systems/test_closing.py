"""The sampler `closing`: what has a loose end is drawn again from half-method, and all else stays as it is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from sketchdnn.systems.closing import closing
from support.generation import draw
from support.random_batches import clean_batch, random_prediction
from support.small_systems import small_system
from torch import Tensor

from sketchdnn.diffusion.conditioning import Conditioning, Way, condition_on_rows
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.sampling import OnStep, Progress, SamplingOptions, Start
from sketchdnn.diffusion.timesteps import step_as_noisy_as
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditioning import encode_sketches
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.loose import has_loose_end
from sketchdnn.systems import RowForm, System, from_pretrained

PROCESS = our_process(100, 0.99)
CLOSED, LOOSE, OTHER = (
    Sketch((Circle((0, 0), 1),)),
    Sketch((Line((-1, 0), (1, 0)),)),
    Sketch((Circle((0, 0), 0.5),)),
)


class Script:
    """A walk that comes to what it was told, and remembers what it was asked."""

    def __init__(self, *ends: list[Sketch]) -> None:
        self.ends = [encode_sketches(sketches, RowForm()) for sketches in ends]
        self.steps: list[int] = []
        self.starts: list[Start | None] = []
        self.noises: list[Tensor] = []

    def __call__(self, noise: NoiseSource, *, steps: int, start: Start | None, on_step: OnStep | None) -> SketchBatch:
        end = self.ends[len(self.steps)]
        self.steps.append(steps)
        self.starts.append(start)
        self.noises += [noise(number).params for number in range(steps + 1)]
        top = PROCESS.num_steps if start is None else start.t
        for number in range(1, steps + 1):
            batch = end if number == steps else clean_batch(len(end), seed=number)
            if on_step is None:
                continue
            on_step(Progress(number, steps, top - number + 1, 0 if number == steps else top - number, batch, SAID))
        return end


SAID = random_prediction(2)


def drawn(walk: Script, **how: Any) -> SketchBatch:
    asked: dict[str, Any] = {"steps": 50, "start": None, "on_step": None, **how}
    return closing(walk, PROCESS, seeded_noise(0, torch.arange(2)), SamplingOptions(), **asked)


def test_only_what_is_loose_is_drawn_again() -> None:
    walk = Script([CLOSED, LOOSE], [OTHER, OTHER])
    assert torch.equal(drawn(walk).flat(), encode_sketches([CLOSED, OTHER], RowForm()).flat())


def test_both_walks_share_the_steps_and_the_second_begins_with_what_was_drawn() -> None:
    walk = Script([CLOSED, LOOSE], [OTHER, OTHER])
    drawn(walk, steps=50)
    assert walk.steps == [36, 14]
    first, second = walk.starts
    assert first is None
    assert second is not None
    assert torch.equal(second.batch.flat(), walk.ends[0].settled().flat())
    assert float(PROCESS.params.var[second.t]) >= 0.6**2 > float(PROCESS.params.var[second.t - 1])
    assert all(not torch.equal(one, other) for i, one in enumerate(walk.noises) for other in walk.noises[:i])


def test_few_steps_and_little_noise_are_shared_too() -> None:
    for steps, expected in ((1, [1]), (12, [12]), (14, [10, 4])):
        walk = Script([CLOSED, CLOSED], [OTHER, OTHER])
        assert torch.equal(drawn(walk, steps=steps).flat(), walk.ends[0].flat())
        assert walk.steps == expected


# As noisy as a sketch is made that is drawn again.
HALFWAY = step_as_noisy_as(PROCESS, 0.6)


@pytest.mark.parametrize("t", [20, HALFWAY, HALFWAY + 1, 90])
def test_a_variation_goes_no_further_back_than_it_began(t: int) -> None:
    walk, start = Script([CLOSED, LOOSE], [OTHER, OTHER]), Start(t, clean_batch(2))
    drawn(walk, steps=15, start=start)
    first, second = walk.starts
    assert first is start
    assert second is not None
    if t <= HALFWAY:
        assert second is start  # with other noise
    else:
        assert second.t < t
        assert torch.equal(second.batch.flat(), walk.ends[0].settled().flat())
    assert all(not torch.equal(one, other) for i, one in enumerate(walk.noises) for other in walk.noises[:i])


def test_steps_are_a_number() -> None:
    with pytest.raises(SketchError, match="say how many, not which"):
        drawn(Script(), steps=[100, 50, 0])


@pytest.mark.parametrize("steps", [0, -1, 101])
def test_too_few_and_too_many_are_refused_at_once(steps: int) -> None:
    with pytest.raises(SketchError, match=f"1 to 100 steps, not {steps}"):
        drawn(Script(), steps=steps)


def test_it_tells_of_both_walks_as_of_one() -> None:
    walk, heard = Script([CLOSED, LOOSE], [OTHER, OTHER]), list[Progress]()
    end = drawn(walk, on_step=heard.append)
    assert [progress.number for progress in heard] == list(range(1, 51))
    assert {progress.total for progress in heard} == {50}
    assert all(progress.active is None for progress in heard[:36])
    for progress in heard[36:]:
        assert progress.active is not None
        assert progress.active.tolist() == [False, True]
        assert torch.equal(progress.batch.flat()[0], end.flat()[0])  # stands still
    assert torch.equal(heard[-1].batch.flat(), end.flat())


def test_the_bundled_model_keeps_what_closes_and_mends_some_of_the_rest() -> None:
    system = from_pretrained()
    # Two that close in 36 steps, and six that do not.
    noise = seeded_noise(0, torch.tensor([0, 1, 2, 3, 6, 8, 14, 35]))
    plain, closed = (
        system.sample(noise, SamplingOptions(sampler=name, steps=n))
        for name, n in (("predictor_corrector", 36), ("restart", 50))
    )
    loose = has_loose_end(plain)
    assert 3 <= int(loose.sum()) < 8
    assert torch.equal(closed.flat()[~loose], plain.flat()[~loose])
    assert not torch.isclose(closed.flat()[loose], plain.flat()[loose]).all(dim=-1).all(dim=-1).any()
    assert int(has_loose_end(closed).sum()) < int(loose.sum())


SIDES = tuple(Line(a, b) for a, b in pairwise([(-1, 0.5), (-1, -0.5), (1, -0.5), (1, 0.5)]))
PART = Sketch((*SIDES, Circle((-0.5, 0), 0.2)))


def completed(
    system: System, numbers: list[int], given: Conditioning
) -> tuple[SketchBatch, SketchBatch, list[Progress]]:
    """What the first walk comes to and what both do, and all that was heard of these."""
    heard, noise = list[Progress](), seeded_noise(0, torch.tensor(numbers))
    first = system.sample(noise, SamplingOptions(sampler="predictor_corrector", steps=12, conditioning=given))
    return (
        first,
        system.sample(noise, SamplingOptions(sampler="restart", steps=16, conditioning=given, on_step=heard.append)),
        heard,
    )


@pytest.mark.parametrize(("method", "resamples"), [("conditional", 1), ("repaint", 1), ("repaint", 3)])
def test_given_rows_stay_to_the_bit_whatever_is_drawn_again(method: Way, resamples: int) -> None:
    known = encode_sketches([PART] * 3, RowForm())
    rows = known.kind.argmax(dim=-1) != layout.NONE
    first, end, heard = completed(
        small_system(), [0, 1, 2], condition_on_rows(known, rows, method=method, resamples=resamples)
    )
    assert has_loose_end(first).all()
    assert not torch.isclose(end.flat()[~rows], first.flat()[~rows]).all(dim=-1).any()
    assert torch.equal(end.flat()[rows], known.flat()[rows])
    seen = heard if method == "conditional" else [progress for progress in heard if progress.s == 0]
    assert len(seen) == (16 if method == "conditional" else 2)
    assert all(torch.equal(progress.batch.flat()[rows], known.flat()[rows]) for progress in seen)
    shares = [progress.number / progress.total for progress in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_what_is_given_of_a_row_stays_too() -> None:
    """Kinds alone, as where so many of each are asked for."""
    known = clean_batch(3)
    every, none = torch.ones(3, 16, dtype=torch.bool), torch.zeros(3, 16, dtype=torch.bool)
    given = Conditioning(known, none, every, none[..., None].expand_as(known.params), "conditional")
    first, end, _ = completed(small_system(), [0, 1, 2], given)
    loose = has_loose_end(first)
    assert loose.any()
    assert not torch.isclose(end.params[loose], first.params[loose]).all(dim=-1).all(dim=-1).any()
    assert torch.equal(end.kind, known.kind)


def test_the_bundled_model_keeps_what_it_completes() -> None:
    known = encode_sketches([PART] * 3, RowForm())
    rows = known.kind.argmax(dim=-1) != layout.NONE
    first, end, _ = completed(from_pretrained(), [1, 2, 5], condition_on_rows(known, rows, method="conditional"))
    loose = has_loose_end(first)
    assert loose.any()
    assert torch.equal(end.flat()[~loose], first.flat()[~loose])
    assert not torch.isclose(end.flat()[loose], first.flat()[loose]).all(dim=-1).all(dim=-1).any()
    assert torch.equal(end.flat()[rows], known.flat()[rows])


def test_a_film_goes_from_noise_to_the_sketch_even_if_it_was_drawn_again() -> None:
    drawings = list(draw(from_pretrained(), 8, steps=16, trajectory_frames=16, size=4))
    films = [[moment.t for moment in drawing.trajectory] for drawing in drawings]
    assert any(len(times) < 12 for times in films)  # drawn again: its first end is left out
    for drawing, times in zip(drawings, films, strict=True):
        assert times == sorted(set(times), reverse=True)
        assert times[0] == films[0][0]
        assert times[-1] == 0
        last = Sketch(tuple(item.primitive for item in drawing.trajectory[-1].likely()))
        assert len(last) == len(drawing.sketch)
