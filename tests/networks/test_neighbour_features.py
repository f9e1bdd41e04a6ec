"""What a row is told of others near it: ways to them in units of the noise, whatever the order of rows."""

from __future__ import annotations

import torch
from support.random_batches import normal_batch
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.networks.set_denoiser import NUM_FEATURES, SCALES, neighbours
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch

# Of one end at one scale: the way to ends (x, y), how much; along x, how much; to images along x, how much; so for y.
OF_END = 3 * len(SCALES)
ALONG = 2 * len(SCALES)
PER_PLACE = OF_END + 4 * ALONG


def sketch(*rows: tuple[Kind, list[float]]) -> SketchBatch:
    """One sketch of sixteen rows, those beyond being empty."""
    kind = torch.zeros(1, layout.MAX_PRIMITIVES, layout.NUM_KINDS)
    params = torch.zeros(1, layout.MAX_PRIMITIVES, layout.NUM_PARAMS)
    kind[..., layout.NONE] = 1
    for row, (what, numbers) in enumerate(rows):
        kind[0, row] = torch.eye(layout.NUM_KINDS)[what]
        params[0, row, layout.PARAMS_OF_KIND[what]] = torch.tensor(numbers)
    return SketchBatch(torch.zeros(1, layout.MAX_PRIMITIVES, 2), kind, params)


def to_ends(told: Tensor, row: int, end: int) -> Tensor:
    """Scale by scale: the way to ends of other rows, and how much there is."""
    return told[0, row, end * PER_PLACE :][:OF_END].reshape(-1, 3)


def along(told: Tensor, row: int, end: int, axis: int, *, image: bool = False) -> Tensor:
    """Scale by scale: the way along an axis to any other place, or to the image of any, and how much there is."""
    return told[0, row, end * PER_PLACE + OF_END + (2 * axis + image) * ALONG :][:ALONG].reshape(-1, 2)


def of_radius(told: Tensor, row: int) -> Tensor:
    return told[0, row, 2 * PER_PLACE :].reshape(-1, 2)


def test_an_end_is_told_the_way_to_the_end_that_is_near() -> None:
    far = 1000.0
    told = neighbours(sketch((Kind.LINE, [0, 0, far, 0]), (Kind.ARC, [-far, 7, 0.5, -0.25, 3.0])))
    assert told.shape == (1, layout.MAX_PRIMITIVES, NUM_FEATURES)
    for scale, found in zip(SCALES, to_ends(told, 0, 0), strict=True):
        amount = found[2]
        assert 0.9 < amount < 1
        torch.testing.assert_close(found[:2], amount * torch.tensor([0.5, -0.25]) / scale)
    torch.testing.assert_close(to_ends(told, 1, 1)[:, :2], -to_ends(told, 0, 0)[:, :2])
    assert to_ends(told, 0, 1).abs().max() == 0  # alone


def test_its_own_other_end_is_no_neighbor_but_may_be_level_with_it() -> None:
    told = neighbours(sketch((Kind.LINE, [0, 0, 0.5, 0.1])))
    assert to_ends(told, 0, 0).abs().max() == 0
    for scale, found in zip(SCALES, along(told, 0, 0, axis=1), strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.1 / scale)
        assert found[1] > 0.9
    torch.testing.assert_close(along(told, 0, 1, axis=0)[:, 0], -along(told, 0, 0, axis=0)[:, 0])


def test_a_place_is_told_the_way_to_images_in_both_axes() -> None:
    told = neighbours(sketch((Kind.CIRCLE, [70, 100, 1]), (Kind.POINT, [-70.5, 300])))
    for scale, found in zip(SCALES, along(told, 0, 0, axis=0, image=True), strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.5 / scale)
        assert found[1] > 0.9
    assert along(told, 0, 0, axis=1, image=True).abs().max() == 0
    on_the_axis = neighbours(sketch((Kind.POINT, [0.25, 50])))
    found = along(on_the_axis, 0, 0, axis=0, image=True)[0, 0]
    torch.testing.assert_close(found, torch.tensor(-0.5 / SCALES[0]), rtol=0.02, atol=0)


def test_circles_have_no_ends_to_meet_but_places_and_radii() -> None:
    circles = neighbours(
        sketch((Kind.CIRCLE, [0, 0, 5.0]), (Kind.CIRCLE, [0.2, 900, 5.5]), (Kind.LINE, [0, 0, 300, 300]))
    )
    assert to_ends(circles, 2, 0).abs().max() == 0
    assert along(circles, 0, 0, axis=0)[0, 1] > 0.9
    for scale, found in zip(SCALES, of_radius(circles, 0), strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.5 / scale)
        assert found[1] > 0.9
    assert of_radius(circles, 2)[:, 1].min() >= 0


def test_empty_rows_are_nobodys_neighbors() -> None:
    one = sketch((Kind.LINE, [0, 0, 1, 1]))
    assert neighbours(one)[0, 1:, : 2 * PER_PLACE].reshape(15, 2, PER_PLACE)[..., :OF_END].abs().max() > 0  # they see
    assert to_ends(neighbours(one), 0, 0).abs().max() == 0  # but are not seen
    nothing = sketch()
    assert neighbours(nothing).abs().max() == 0


def test_rows_in_another_order_are_told_the_same() -> None:
    batch = normal_batch(4)
    rows = SketchBatch(batch.construction, batch.kind.softmax(dim=-1), batch.params)
    order = torch.stack([torch.randperm(16, generator=torch.Generator().manual_seed(n)) for n in range(4)])
    plain, moved = neighbours(rows), neighbours(rows.permuted(order))
    assert plain.abs().max() > 0.1
    torch.testing.assert_close(moved, plain.gather(1, order[..., None].expand_as(plain)))


def test_a_sketch_elsewhere_is_told_the_same_but_of_images() -> None:
    lines = [[0.0, 0, 1, 0.2], [1.1, 0.3, 2, 2], [0.1, 0.2, 2.2, 1.9]]
    plain = neighbours(sketch(*((Kind.LINE, numbers) for numbers in lines)))
    moved = neighbours(sketch(*((Kind.LINE, [number + 3 for number in numbers]) for numbers in lines)))
    for row in range(3):
        torch.testing.assert_close(to_ends(moved, row, 0), to_ends(plain, row, 0), atol=2e-5, rtol=1e-3)
        for axis in (0, 1):
            for_x = (along(one, row, 1, axis) for one in (moved, plain))
            torch.testing.assert_close(*for_x, atol=2e-5, rtol=1e-3)
            image = (along(one, row, 1, axis, image=True) for one in (moved, plain))
            assert not torch.allclose(*image, atol=1e-2)


def test_numbers_stay_numbers_however_far_or_large_they_are() -> None:
    batch = normal_batch(2)
    rows = SketchBatch(batch.construction, (100 * batch.kind).softmax(dim=-1), 1e6 * batch.params)
    assert neighbours(rows).isfinite().all()
