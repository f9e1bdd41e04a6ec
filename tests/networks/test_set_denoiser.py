"""Our denoiser: blind to order, and silent before training."""

from __future__ import annotations

import torch

from sketchdnn.networks.set_denoiser import SetDenoiser, SetDenoiserConfig
from sketchdnn.representation.batch import from_flat

SMALL = SetDenoiserConfig(width=64, depth=2, heads=2)


def _inputs(batch: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch, 16, 21, generator=generator)
    return rows, torch.randn(batch, generator=generator), torch.rand(batch, 16, 3, generator=generator).round()


def test_starts_with_zero_outputs() -> None:
    rows, noise, given = _inputs()
    prediction = SetDenoiser(SMALL)(from_flat(rows), noise, given)
    assert prediction.params.abs().max() == 0
    assert prediction.kind_logits.abs().max() == 0


def test_rows_in_another_order_give_outputs_in_that_order() -> None:
    torch.manual_seed(0)
    network = SetDenoiser(SMALL)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    rows, noise, given = _inputs()
    order = torch.randperm(16)
    plain = network(from_flat(rows), noise, given)
    moved = network(from_flat(rows[:, order]), noise, given[:, order])
    assert plain.params.abs().max() > 1e-3
    torch.testing.assert_close(moved.params, plain.params[:, order], atol=1e-5, rtol=0)
    torch.testing.assert_close(moved.kind_logits, plain.kind_logits[:, order], atol=1e-5, rtol=0)


def test_default_size_fits_the_weights_that_ship() -> None:
    with torch.device("meta"):
        count = sum(weight.numel() for weight in SetDenoiser(SetDenoiserConfig()).parameters())
    assert count == 41_141_781
