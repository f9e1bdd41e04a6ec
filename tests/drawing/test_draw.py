"""Pictures drawn by hand: noise with the stated statistics, placement, seeds, and every kind of noise has an effect."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from sketchdnn.drawing import HAND, INERTIA, PHOTO, PRECISE, DrawingOptions, Pictures, draw
from sketchdnn.drawing.hand import matern32
from sketchdnn.drawing.paper import homography, jpeg, project
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch
from sketchdnn.representation import encode

PART = Sketch(
    (
        Line((-1, -0.6), (1, -0.6)),
        Line((1, -0.6), (1, 0.2)),
        Arc((0.6, 0.2), 0.4, 0.0, math.pi / 2),
        Line((0.6, 0.6), (-1, 0.6)),
        Line((-1, 0.6), (-1, -0.6), construction=True),
        Circle((-0.3, 0.0), 0.25),
        Point((0.5, -0.2)),
    )
)


def pictures(options: DrawingOptions, count: int = 1, seed: int = 0) -> Pictures:
    rows = encode([PART] * count)
    tensors = (torch.from_numpy(rows.kind.astype(np.int64)), torch.from_numpy(rows.construction))
    return draw(*tensors, torch.from_numpy(rows.params), options, torch.Generator().manual_seed(seed))


def test_precise_picture_has_ink_on_the_curves_and_nowhere_else() -> None:
    picture = pictures(replace(PRECISE, size=256))
    at = torch.tensor([p.at(0.33) for p in PART if not isinstance(p, Point) and not p.construction])
    pixels = (256 * project(picture.placement, at[None].float())[0]).floor().long()
    assert picture.gray[0, pixels[:, 1], pixels[:, 0]].max() < 0.5
    away = (256 * project(picture.placement, torch.tensor([[[0.4, 0.2], [-0.3, 0.0], [-0.7, -0.3]]]))[0]).long()
    assert picture.gray[0, away[:, 1], away[:, 0]].min() == 1
    assert 0.01 < (1 - picture.gray).mean() < 0.1


def test_construction_is_dashed() -> None:
    picture = pictures(replace(PRECISE, size=256))
    x, steps = -1.0, torch.linspace(-0.55, 0.55, 200)
    at = torch.stack((torch.full_like(steps, x), steps), -1)[None]
    pixels = (256 * project(picture.placement, at)[0]).floor().long()
    dark = (picture.gray[0, pixels[:, 1], pixels[:, 0]] < 0.5).float()
    assert 0.4 < dark.mean() < 0.85
    assert (dark.diff() < 0).sum() >= 5


@pytest.mark.parametrize("options", [PRECISE, HAND, INERTIA, PHOTO])
def test_same_seed_gives_same_pictures_and_another_seed_others(options: DrawingOptions) -> None:
    first, second = pictures(options), pictures(options)
    assert torch.equal(first.gray, second.gray)
    assert torch.equal(first.placement, second.placement)
    assert first.gray.min() >= 0
    assert first.gray.max() <= 1
    other = (first.gray - pictures(options, seed=1).gray).abs()
    # Without noise only the start of a circle is random, which moves its pixels a little.
    assert (other.max() < 0.2) == (options is PRECISE)


KINDS = (
    ("wobble", 0.02), ("point_wobble", 0.05), ("overshoot", 0.02), ("broken", 1.0), ("pressure", 0.3), ("texture", 0.5),
    ("shift", 0.05), ("rotation", 10.0), ("shear", 10.0), ("scale", 0.2), ("perspective", 0.05), ("page_edge", 1.0),
    ("grid", 1.0), ("grain", 0.05), ("shading", 0.5), ("blur", 0.01), ("jpeg", 100.0), ("circle_gap", 30.0),
)  # fmt: skip


@pytest.mark.parametrize(("name", "amount"), KINDS)
def test_every_kind_of_noise_changes_the_picture(name: str, amount: float) -> None:
    noisy = pictures(replace(PRECISE, **{name: amount})).gray  # type: ignore[arg-type]
    assert (noisy - pictures(PRECISE).gray).abs().max() > 0.05


def test_doubled_strokes_add_ink() -> None:
    single, double = (pictures(replace(HAND, doubled=share), seed=3).gray for share in (0.0, 1.0))
    assert (1 - double).sum() > 1.4 * (1 - single).sum()


@pytest.mark.parametrize("distance", [0.2, 0.5, 1.0])
def test_process_has_the_covariance_of_matern_three_halves(distance: float) -> None:
    length, scale, samples = torch.full((20_000, 1), 2.0), torch.tensor(0.5), 41
    values = matern32(length, scale, samples, torch.Generator().manual_seed(0))[:, 0]
    step = round(distance / (2.0 / (samples - 1)))
    covariance = (values[:, 5] * values[:, 5 + step]).mean()
    r = math.sqrt(3) * distance / 0.5
    assert values.var(dim=0).sub(1).abs().max() < 0.06
    assert abs(float(covariance) - (1 + r) * math.exp(-r)) < 0.04


def test_wobble_is_a_share_of_the_diagonal() -> None:
    line = encode([Sketch((Line((-1, 0), (1, 0)),))])
    tensors = [torch.from_numpy(a) for a in (line.kind.astype(np.int64), line.construction, line.params)]
    batch = [t.expand(64, *t.shape[1:]) for t in tensors]
    drawn = draw(*batch, replace(PRECISE, wobble=0.02, size=128), torch.Generator().manual_seed(0))
    dark = 1 - drawn.gray
    rows = (dark.sum(2) * torch.arange(128)).sum(1) / dark.sum((1, 2))
    # The diagonal is 2, which is 0.84 of the side; averaged along the stroke, the process varies a little less.
    expected = 0.02 * 0.84 * 128
    assert 0.5 * expected < float(rows.std()) < 1.1 * expected


def test_pen_with_inertia_stays_near_the_curve_but_not_on_it() -> None:
    ideal, drawn = pictures(PRECISE).gray < 0.5, pictures(INERTIA).gray < 0.5
    near = torch.nn.functional.max_pool2d(ideal.float()[:, None], 21, 1, 10)[:, 0] > 0
    assert (drawn & near).sum() > 0.95 * drawn.sum()
    assert (drawn & ideal).sum() < 0.8 * drawn.sum()


def test_homography_moves_the_corners() -> None:
    shift = 0.1 * torch.rand((3, 4, 2), generator=torch.Generator().manual_seed(0))
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert torch.allclose(project(homography(shift), corners.expand(3, 4, 2)), corners + shift, atol=1e-5)


def test_jpeg_without_quantization_keeps_the_picture() -> None:
    picture = torch.rand((2, 20, 20), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(jpeg(picture, torch.zeros(2)), picture, atol=0.02)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(SketchError, match="wobble must lie in"):
        DrawingOptions(wobble=3.0)
