"""The set denoiser: equivariant, zero-initialized, and its inputs of previous predictions and proximity."""

from dataclasses import replace

import torch
from support.random_batches import clean_batch, normal_batch
from torch import Tensor

from sketchdnn.diffusion.process import parts
from sketchdnn.geometry import Kind
from sketchdnn.networks.set_denoiser import PROXIMITY_SCALES, SetDenoiser, SetDenoiserConfig, proximity_features
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, from_flat

SMALL = SetDenoiserConfig(width=64, depth=2, heads=2)
SELF_CONDITIONED = replace(SMALL, self_conditioning=True)


def make_inputs(batch: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch, 16, 21, generator=generator)
    return rows, torch.randn(batch, generator=generator), torch.rand(batch, 16, 3, generator=generator).round()


def make_network(config: SetDenoiserConfig) -> SetDenoiser:
    """A network with random weights but for the input of previous predictions, which is zero."""
    network = SetDenoiser(config)
    torch.manual_seed(0)
    for name, weight in network.named_parameters():
        if name != "embed_previous.weight":
            torch.nn.init.normal_(weight, std=0.05)
    return network


def test_size_permuted_rows_and_extra_inputs() -> None:
    rows, noise, mask = make_inputs()
    assert all(not part.any() for part in parts(SetDenoiser(SMALL)(from_flat(rows), noise, mask)))
    with torch.device("meta"):
        count = sum(weight.numel() for weight in SetDenoiser(SetDenoiserConfig()).parameters())
    assert count == 41_141_781
    network, order = make_network(SMALL), torch.randperm(16)
    plain = network(from_flat(rows), noise, mask)
    moved = network(from_flat(rows[:, order]), noise, mask[:, order])
    assert plain.params.abs().max() > 1e-3
    torch.testing.assert_close(moved.params, plain.params[:, order], atol=1e-5, rtol=0)
    torch.testing.assert_close(moved.kind_logits, plain.kind_logits[:, order], atol=1e-5, rtol=0)
    torch.manual_seed(3)
    plain = SetDenoiser(SMALL).state_dict()
    torch.manual_seed(3)
    extended = SetDenoiser(SELF_CONDITIONED).state_dict()
    assert (extended.pop("embed_previous.weight").abs().max(), extended.keys()) == (0, plain.keys())
    assert all(torch.equal(extended[name], weight) for name, weight in plain.items())
    expected = make_network(SMALL)(from_flat(rows), noise, mask)
    for previous in (None, clean_batch(3)):
        output = make_network(SELF_CONDITIONED)(from_flat(rows), noise, mask, previous)
        assert all(map(torch.equal, parts(output), parts(expected)))


def test_previous_prediction_counts_row_by_row_with_fourier_features() -> None:
    rows, noise, mask = make_inputs()
    network = make_network(SELF_CONDITIONED)
    torch.nn.init.normal_(network.embed_previous.weight, std=0.05)
    previous = clean_batch(3)
    plain, output = network(from_flat(rows), noise, mask), network(from_flat(rows), noise, mask, previous)
    assert not torch.allclose(output.params, plain.params, atol=1e-3)
    null = network(from_flat(rows), noise, mask, from_flat(torch.zeros_like(rows)))
    assert torch.equal(null.params, plain.params)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    moved = network(from_flat(rows[:, order]), noise, mask[:, order], from_flat(previous.flat()[:, order]))
    torch.testing.assert_close(moved.params, output.params[:, order], atol=1e-5, rtol=0)
    mixed = network(from_flat(rows), noise, mask, from_flat(previous.flat()[:, order]))
    assert not torch.allclose(mixed.params, output.params, atol=1e-3)
    network = make_network(SELF_CONDITIONED)
    width = previous.flat().shape[-1]
    assert network.embed_previous.in_features == width + 2 * SMALL.octaves * previous.params.shape[-1]
    with torch.no_grad():  # the Fourier features alone
        network.embed_previous.weight[:, width:].normal_(std=0.05, generator=torch.Generator().manual_seed(0))
    moved = replace(previous, params=previous.params + 0.01)
    one, other = (network(from_flat(rows), noise, mask, each).params for each in (previous, moved))
    assert not torch.allclose(one, other, atol=1e-3)


# Of one end at one scale: the offset to ends (x, y), a weight; along x and to images along x, weights; so for y.
END = 3 * len(PROXIMITY_SCALES)
ALONG = 2 * len(PROXIMITY_SCALES)
PER_PLACE = END + 4 * ALONG


def one_sketch(*rows: tuple[Kind, list[float]]) -> SketchBatch:
    kind = torch.zeros(1, layout.MAX_PRIMITIVES, layout.NUM_KINDS)
    params = torch.zeros(1, layout.MAX_PRIMITIVES, layout.NUM_PARAMS)
    kind[..., layout.NONE] = 1
    for row, (name, numbers) in enumerate(rows):
        kind[0, row] = torch.eye(layout.NUM_KINDS)[name]
        params[0, row, layout.PARAMS_OF_KIND[name]] = torch.tensor(numbers)
    return SketchBatch(torch.zeros(1, layout.MAX_PRIMITIVES, 2), kind, params)


def to_ends(features: Tensor, row: int, end: int) -> Tensor:
    return features[0, row, end * PER_PLACE :][:END].reshape(-1, 3)


def along(features: Tensor, row: int, end: int, axis: int, *, image: bool = False) -> Tensor:
    return features[0, row, end * PER_PLACE + END + (2 * axis + image) * ALONG :][:ALONG].reshape(-1, 2)


def test_offsets_of_ends_places_images_and_radii() -> None:
    far = 1000.0
    features = proximity_features(one_sketch((Kind.LINE, [0, 0, far, 0]), (Kind.ARC, [-far, 7, 0.5, -0.25, 3.0])))
    for scale, found in zip(PROXIMITY_SCALES, to_ends(features, 0, 0), strict=True):
        amount = found[2]
        assert 0.9 < amount < 1
        torch.testing.assert_close(found[:2], amount * torch.tensor([0.5, -0.25]) / scale)
    torch.testing.assert_close(to_ends(features, 1, 1)[:, :2], -to_ends(features, 0, 0)[:, :2])
    assert to_ends(features, 0, 1).abs().max() == 0  # alone
    features = proximity_features(one_sketch((Kind.LINE, [0, 0, 0.5, 0.1])))
    assert to_ends(features, 0, 0).abs().max() == 0
    for scale, found in zip(PROXIMITY_SCALES, along(features, 0, 0, axis=1), strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.1 / scale)
        assert found[1] > 0.9
    torch.testing.assert_close(along(features, 0, 1, axis=0)[:, 0], -along(features, 0, 0, axis=0)[:, 0])
    features = proximity_features(one_sketch((Kind.CIRCLE, [70, 100, 1]), (Kind.POINT, [-70.5, 300])))
    for scale, found in zip(PROXIMITY_SCALES, along(features, 0, 0, axis=0, image=True), strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.5 / scale)
        assert found[1] > 0.9
    assert along(features, 0, 0, axis=1, image=True).abs().max() == 0
    on_the_axis = proximity_features(one_sketch((Kind.POINT, [0.25, 50])))
    found = along(on_the_axis, 0, 0, axis=0, image=True)[0, 0]
    torch.testing.assert_close(found, torch.tensor(-0.5 / PROXIMITY_SCALES[0]), rtol=0.02, atol=0)
    circles = proximity_features(
        one_sketch((Kind.CIRCLE, [0, 0, 5.0]), (Kind.CIRCLE, [0.2, 900, 5.5]), (Kind.LINE, [0, 0, 300, 300]))
    )
    assert to_ends(circles, 2, 0).abs().max() == 0
    assert along(circles, 0, 0, axis=0)[0, 1] > 0.9
    of_radius = circles[0, :, 2 * PER_PLACE :].unflatten(-1, (-1, 2))
    for scale, found in zip(PROXIMITY_SCALES, of_radius[0], strict=True):
        torch.testing.assert_close(found[0], found[1] * 0.5 / scale)
        assert found[1] > 0.9
    assert of_radius[2, :, 1].min() >= 0
    one = one_sketch((Kind.LINE, [0, 0, 1, 1]))
    of_empty = proximity_features(one)[0, 1:, : 2 * PER_PLACE].reshape(15, 2, PER_PLACE)[..., :END]
    assert of_empty.abs().max() > 0  # features of empty rows describe others
    assert to_ends(proximity_features(one), 0, 0).abs().max() == 0  # but empty rows are in no features
    assert proximity_features(one_sketch()).abs().max() == 0


def test_proximity_features_are_equivariant() -> None:
    batch = normal_batch(4)
    rows = SketchBatch(batch.construction, batch.kind.softmax(dim=-1), batch.params)
    order = torch.stack([torch.randperm(16, generator=torch.Generator().manual_seed(n)) for n in range(4)])
    plain, moved = proximity_features(rows), proximity_features(rows.permuted(order))
    assert plain.abs().max() > 0.1
    torch.testing.assert_close(moved, plain.gather(1, order[..., None].expand_as(plain)))
    large = SketchBatch(batch.construction, (100 * batch.kind).softmax(dim=-1), 1e6 * batch.params)
    assert proximity_features(large).isfinite().all()
