"""Which rows of a training sketch the completion tasks make known, and the frames of known parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.outlines import slot
from support.sketch_sets import parts, polygon, rows, square

from sketchdnn.geometry import Circle, Line, Point, Primitive, Sketch
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.systems import load_preset
from sketchdnn.systems.system import ConditionMask
from sketchdnn.training.completion_tasks import (
    Frame,
    Rows,
    apply_frame,
    connections,
    num_task_draws,
    sample_frame,
    sample_task,
)
from sketchdnn.training.config import RunError, TrainConfig
from sketchdnn.training.corpus import to_device
from sketchdnn.training.run import Run

DRAWS = num_task_draws(layout.MAX_PRIMITIVES)
# Numbers that select a task of completion, the fourth of the nine choices: chance, type, task.
RANDOM, OPEN, FEATURES, ONE, SIDE = (0.0, 0.0, 0.1), (0.0, 0.0, 0.4), (0.0, 0.0, 0.6), (0.0, 0.0, 0.8), (0.0, 0.0, 0.9)
# An outline of four lines, a hole, a slot of two lines and two arcs, a diagonal of construction.
PLATE: list[Primitive] = [
    *square(),
    Circle((0.5, 0.5), 0.1),
    *slot(0.4, 0.1),
    Line((-1, -1), (1, 1), construction=True),
]
OUTLINE, HOLE, SLOT, DIAGONAL = range(4), [4], range(5, 9), [9]


def rows_of(compact: Compact) -> Rows:
    corpus = to_device(compact, "cpu")
    return Rows(corpus.kind, corpus.construction, corpus.params)


def task(
    drawing: list[Primitive],
    choices: tuple[float, ...],
    *,
    seed: float = 0.0,
    links: float = 0.0,
    share: float = 1.0,
    bare: float = 0.0,
    extra: float = 0.0,
    direction: float = 0.0,
    by_row: float = 0.5,
    below: int = 0,
) -> ConditionMask:
    """The mask of one sketch for given numbers."""
    numbers = [*choices, seed, links, share, bare, extra, direction, *[by_row] * layout.MAX_PRIMITIVES]
    return sample_task(torch.tensor([numbers]), rows_of(rows(drawing)), 0.5, below)


def known(mask: ConditionMask) -> list[int]:
    assert torch.equal(mask.params, mask.construction)
    return mask.params[0].nonzero().flatten().tolist()


def test_curves_with_a_common_end_are_connected() -> None:
    (joined,) = connections(rows_of(rows(PLATE)))
    assert torch.equal(joined, joined.T)
    assert joined[:4, :4].sum() == 4 + 2 * 4  # each corner of the outline, both ways
    assert joined[5:9, 5:9].sum() == 4 + 2 * 4
    assert joined.sum() == 12 + 12 + 1 + 7  # hole, diagonal and the six empty rows have themselves alone


def test_hidden_stretch_of_an_outline_is_connected() -> None:
    assert known(task(PLATE, OPEN)) == [1, 2, 3, *HOLE, *SLOT, *DIAGONAL]
    assert known(task(PLATE, OPEN, links=0.2)) == [2, *HOLE, *SLOT, *DIAGONAL]
    assert known(task(PLATE, OPEN, links=0.2, bare=0.9)) == [2]
    assert known(task(PLATE, OPEN, seed=0.55, bare=0.9)) == [6, 7, 8]


def test_features_are_all_that_is_not_the_outline() -> None:
    for choices in (FEATURES, (0.0, 0.0, 0.5)):  # also at the end of the task before
        assert known(task(PLATE, choices)) == list(OUTLINE)
    # The diagonal is as large, but construction.
    assert known(task(PLATE[4:], FEATURES)) == [1, 2, 3, 4]


def test_one_feature_is_hidden_beside_random_rows() -> None:
    assert known(task(PLATE, ONE, seed=0.4)) == [*OUTLINE, *SLOT, *DIAGONAL]
    assert known(task(PLATE, ONE, seed=0.6)) == [*OUTLINE, *HOLE, *DIAGONAL]
    assert known(task(PLATE, ONE, seed=0.6, share=0.2)) == []


def test_one_side_is_known() -> None:
    sides = [task(PLATE[:5], SIDE, direction=direction) for direction in (0.1, 0.3, 0.6, 0.9)]
    assert [known(side) for side in sides] == [[0, 2, 3], [0, 1, 2, 4], [0, 1, 3], [1, 2, 3, 4]]


def test_beside_a_part_the_number_or_the_kinds_may_be_known() -> None:
    part, empty = [1, 2, 3, *HOLE, *SLOT, *DIAGONAL], list(range(10, 16))
    assert known(task(PLATE, OPEN, extra=0.4)) == part
    assert known(task(PLATE, OPEN, extra=0.6)) == [*part, *empty]
    kinds = task(PLATE, OPEN, extra=0.9)
    assert known(kinds) == part
    assert kinds.kind.all()


def test_conditions_without_a_part() -> None:
    assert known(task(PLATE, (0.0, 0.9, 0.0))) == list(range(10, 16))
    kinds = task(PLATE, (0.0, 0.7, 0.0))
    assert kinds.kind.all()
    assert not kinds.params.any()
    assert not task(PLATE, (0.6, 0.0, 0.0)).kind.any()


def test_smaller_sketches_always_have_a_condition() -> None:
    empty = list(range(10, 16))
    assert known(task(PLATE, (0.9, 0.9, 0.0), below=11)) == empty
    assert known(task(PLATE, (0.9, 0.7, 0.0), below=11)) == empty
    assert known(task(PLATE, (0.9, *OPEN[1:]), below=11)) == [1, 2, 3, *HOLE, *SLOT, *DIAGONAL]
    assert known(task(PLATE, (0.9, *RANDOM[1:]), share=0.0, below=11)) == empty  # no part: at least the number
    assert known(task(PLATE, (0.9, 0.9, 0.0), below=10)) == []


def sampled(count: int, below: int) -> tuple[Rows, ConditionMask]:
    sketches = rows_of(parts(count))
    uniform = torch.rand(count, DRAWS, generator=torch.Generator().manual_seed(0))
    return sketches, sample_task(uniform, sketches, 0.5, below)


def test_something_is_left_to_complete_and_empty_rows_are_known_together() -> None:
    sketches, mask = sampled(400, 0)
    has_part = (mask.params & sketches.present).any(dim=1)
    assert 0.2 < float(has_part.float().mean()) < 0.35
    assert (~mask.params & sketches.present).any(dim=1).all()
    empty = (mask.params | sketches.present).all(dim=1) | ~(mask.params & ~sketches.present).any(dim=1)
    assert empty.all()
    _, mask = sampled(400, layout.MAX_PRIMITIVES + 1)
    assert (mask.kind.any(dim=1) | sketches.present.all(dim=1)).all()


def test_frame_scales_and_moves_sketches_with_a_known_part() -> None:
    compact = parts(60)
    sketches = rows_of(compact)
    nothing, everything = (torch.full((60, layout.MAX_PRIMITIVES), value) for value in (False, True))
    uniform = torch.rand(60, 4, generator=torch.Generator().manual_seed(0))
    frame = sample_frame(uniform, ConditionMask(nothing, nothing, nothing), sketches)
    assert torch.equal(apply_frame(sketches.kind, sketches.params, frame), sketches.params)
    frame = sample_frame(uniform, ConditionMask(everything, everything, everything), sketches)
    assert 15 < int((frame.scale < 1).sum()) < 45
    assert float(frame.scale.min()) >= 0.4
    params = apply_frame(sketches.kind, sketches.params, frame)
    placed = decode_compact(Compact(compact.kind, compact.construction, params.numpy()))
    for decoded, before, scale, shift in zip(
        placed, decode_compact(compact), frame.scale.tolist(), frame.shift.tolist(), strict=True
    ):
        expected = before.sketch.moved(scale, tuple(shift))
        assert all(abs(a - b) < 1e-4 for a, b in zip(numbers(decoded.sketch), numbers(expected), strict=True))
        assert max(map(abs, numbers(decoded.sketch))) < 1 + 1e-4


def numbers(sketch: Sketch) -> list[float]:
    """The coordinates of ends, centers and points."""
    found = []
    for p in sketch:
        found += [*p.at] if isinstance(p, Point) else [*p.center] if isinstance(p, Circle) else [*p.start, *p.end]
    return found


def test_empty_rows_stay_zero_in_a_frame() -> None:
    sketches = rows_of(rows(polygon((0, 0), (1, 0), (0, 1))))
    params = apply_frame(sketches.kind, sketches.params, Frame(torch.tensor([0.5]), torch.tensor([[0.5, -0.5]])))
    assert not params[0, 3:].any()
    assert params[0, 0].tolist() == [0.5, -0.5, 1.0, -0.5, 0.0]


def test_training_on_completion_tasks() -> None:
    config = TrainConfig(
        batch_size=16, steps=3, completion_tasks=True, conditional_below=8, large_oversampling=2, warmup=0
    )
    run = Run(load_preset("tiny").make(), to_device(parts(40), "cpu"), config)
    while not run.done:
        run.advance()
    assert run.first_bad_step() is None
    with pytest.raises(RunError, match="needs completion_tasks"):
        replace(config, completion_tasks=False)
