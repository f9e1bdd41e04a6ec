"""Moments of a walk: which are kept, what each may be, and that the last is the sketch."""

from __future__ import annotations

import pytest
import torch
from sketchdnn.diffusion.walk import Progress
from support.generation import draw
from support.random_batches import clean_batch, random_prediction
from support.small_systems import small_system

from sketchdnn.generation.engine import SampleId
from sketchdnn.generation.trajectory import TrajectoryRecorder, decoded_primitives, superposed_primitives
from sketchdnn.geometry import Kind, Sketch, normalize
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import decode
from sketchdnn.systems import SYSTEMS, load_preset


def test_a_certain_row_is_one_primitive() -> None:
    batch = clean_batch(1)
    likely = [item for item in superposed_primitives(batch, "sweep") if item.chance == 1]
    (read,) = decode(batch, "sweep")
    assert [item.primitive for item in sorted(likely, key=lambda item: item.row)] == list(read.sketch)
    assert [item.primitive for item in decoded_primitives(batch, "sweep")] == list(read.sketch)


def test_chances_of_a_row_add_up_to_that_of_not_being_empty() -> None:
    rows = SketchBatch(
        torch.tensor([[[0.7, 0.3]]]), torch.tensor([[[0.4, 0.1, 0.2, 0.1, 0.2]]]), torch.full((1, 1, 14), 0.3)
    )
    rows.params[..., layout.PARAMS_OF_KIND[Kind.LINE]] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    rows.params[..., layout.PARAMS_OF_KIND[Kind.ARC]] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.1])
    found = list(superposed_primitives(rows, "sweep"))
    assert len(found) == 2 * len(Kind)
    assert sum(item.chance for item in found) == pytest.approx(0.8)
    dashed = {item.primitive.kind: item.chance for item in found if item.primitive.construction}
    assert dashed[Kind.LINE] == pytest.approx(0.12)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_last_moment_is_the_sketch(name: str) -> None:
    torch.manual_seed(0)
    system = load_preset("tiny", name).make().eval()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    for drawing in draw(system, 3, steps=8, size=2, trajectory_frames=4):
        times = [moment.t for moment in drawing.trajectory]
        assert times == sorted(set(times), reverse=True)
        assert times[-1] == 0
        assert 1 <= len(times) <= 4  # who draws tokens may be done at once
        last = Sketch(tuple(item.primitive for item in drawing.trajectory[-1].likely()))
        assert normalize(last, 1.0)[0].primitives == drawing.sketch.primitives


def test_there_are_no_more_moments_than_steps() -> None:
    (drawing,) = draw(small_system(), 1, steps=3, trajectory_frames=40)
    assert len(drawing.trajectory) == 3


def test_a_walk_that_begins_anew_is_recorded_anew() -> None:
    recorder, ask = TrajectoryRecorder(4, "sweep"), SampleId(0)
    for number in (1, 2, 1, 2, 3, 4):
        said = random_prediction(2)
        recorder.hear([ask], Progress(number, 4, 40 - 10 * number + 10, 40 - 10 * number, clean_batch(2), said))
    assert [moment.t for moment in recorder.taken(ask)] == [30, 20, 10, 0]
    assert recorder.taken(ask) == ()
