"""Training pictures: those of `draw` without noise, and other ones with each kind of noise."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sketchdnn.drawing import PRECISE, draw
from sketchdnn.drawing.ink import NUM_NORMAL, NUM_UNIFORM, InkOptions, draw_ink
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch
from sketchdnn.representation.compact import encode

PART = Sketch(
    (
        Line((-0.9, -0.6), (0.9, -0.6)), Line((0.9, -0.6), (0.9, 0.1)), Line((-0.9, 0.1), (-0.9, -0.6)),
        Arc((0, 0.1), 0.9, 0.0, 3.14159), Circle((0.1, 0.2), 0.3), Point((-0.5, -0.3)),
        Arc((0.5, -0.3), 0.2, 2.0, 5.5), Line((0, -0.9), (0, 0.9), construction=True),
    )
)  # fmt: skip
EXACT = InkOptions(exact=1.0, rotation=0.0, skew=0.0, perspective=0.0, width=(1.5, 1.5), dot=(1.9, 1.9))


def rows(count: int = 1, sketch: Sketch = PART) -> tuple[Tensor, Tensor, Tensor]:
    compact = encode([sketch] * count)
    return (
        torch.from_numpy(compact.kind).long(), torch.from_numpy(compact.construction), torch.from_numpy(compact.params)
    )  # fmt: skip


def numbers(count: int = 1, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = (count, NUM_UNIFORM), (count, NUM_NORMAL)
    return torch.rand(shapes[0], generator=generator), torch.randn(shapes[1], generator=generator)


def test_without_noise_the_ink_is_that_of_drawings() -> None:
    kind, construction, params = rows()
    solid = torch.zeros_like(construction)
    ink = draw_ink(kind, solid, params, *numbers(), EXACT)
    # The same frame: half a side of 1.125, so 1 / 18 of the side around the box of −1 to 1.
    options = replace(PRECISE, margin=0.5 - 0.5 / 1.125, width=(1.5 / 128, 1.5 / 128))
    drawn = 1 - draw(kind, solid, params, options, torch.Generator().manual_seed(0)).gray
    assert (ink - drawn).abs().mean() < 0.003
    assert (ink - drawn).abs().max() < 0.5
    assert float(ink.sum()) == pytest.approx(float(drawn.sum()), rel=0.05)


def test_construction_is_dashed_and_empty_rows_are_not_drawn() -> None:
    axis = rows(sketch=Sketch((Line((0, -0.9), (0, 0.9), construction=True),)))
    solid = rows(sketch=Sketch((Line((0, -0.9), (0, 0.9)),)))
    one, other = (float(draw_ink(*each, *numbers(), EXACT).sum()) for each in (axis, solid))
    assert 0.4 * other < one < 0.8 * other
    assert not draw_ink(*rows(sketch=Sketch(())), *numbers(), EXACT).any()


def test_numbers_decide_and_pictures_do_not_depend_on_each_other() -> None:
    options = InkOptions(size=48)
    uniform, normal = numbers(4)
    every = draw_ink(*rows(4), uniform, normal, options)
    assert torch.equal(every, draw_ink(*rows(4), uniform, normal, options))
    alone = draw_ink(*rows(), uniform[2:3], normal[2:3], options)
    torch.testing.assert_close(every[2:3], alone)
    assert (every[0] - every[1]).abs().max() > 0.5
    assert every.min() >= 0
    assert every.max() <= 1


@pytest.mark.parametrize(
    "noise",
    [
        {"width": (3.0, 3.0)}, {"rotation": 10.0}, {"skew": 0.2}, {"perspective": 0.2}, {"unsteady": 0.9},
        {"wobble": (0.02, 0.02)}, {"misplaced": 0.05}, {"overshoot": 0.1}, {"circle_gap": 80.0}, {"broken": 1.0},
        {"doubled": 1.0, "misplaced": 0.01}, {"scratches": 1.0}, {"ragged": 1.0},
    ],
)  # fmt: skip
def test_each_kind_of_noise_changes_the_picture(noise: dict[str, float]) -> None:
    still = InkOptions(
        exact=0.0, width=(1.5, 1.5), unsteady=0, wobble=(0.0001, 0.0001), misplaced=0, overshoot=0, circle_gap=0,
        broken=0, doubled=0, scratches=0, ragged=0, rotation=0, skew=0, perspective=0,
    )  # fmt: skip
    one = draw_ink(*rows(8), *numbers(8), still)
    other = draw_ink(*rows(8), *numbers(8), replace(still, **noise))
    changed = (one - other).abs().amax(dim=(1, 2)) > 0.1
    assert changed.sum() >= 3
    assert bool(other.isfinite().all())


def test_degenerate_rows_give_finite_pictures() -> None:
    kind, construction, params = rows(4)
    params[:, 0, :] = 0
    params[:, 3, 4] = 0
    params[:, 6, 2:4] = params[:, 6, :2]
    assert bool(draw_ink(kind, construction, params, *numbers(4), InkOptions(size=32)).isfinite().all())
