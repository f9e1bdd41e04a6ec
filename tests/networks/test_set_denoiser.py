"""Our denoiser: blind to order, and silent before training."""

from __future__ import annotations

from dataclasses import replace

import torch
from support.random_batches import clean_batch

from sketchdnn.networks.set_denoiser import SetDenoiser, SetDenoiserConfig
from sketchdnn.representation.batch import from_flat

SMALL = SetDenoiserConfig(width=64, depth=2, heads=2)
HEARING = replace(SMALL, hears=True)


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


def _speaking(config: SetDenoiserConfig) -> SetDenoiser:
    """A network whose weights are no longer those of the start, what it hears with aside."""
    network = SetDenoiser(config)
    torch.manual_seed(0)
    for name, weight in network.named_parameters():
        if name != "heard.weight":
            torch.nn.init.normal_(weight, std=0.05)
    return network


def test_a_seed_starts_a_hearing_network_as_a_deaf_one_but_for_zeros() -> None:
    torch.manual_seed(3)
    deaf = SetDenoiser(SMALL).state_dict()
    torch.manual_seed(3)
    hearing = SetDenoiser(HEARING).state_dict()
    assert hearing.pop("heard.weight").abs().max() == 0
    assert hearing.keys() == deaf.keys()
    assert all(torch.equal(hearing[name], weight) for name, weight in deaf.items())


def test_at_the_start_what_is_heard_counts_for_nothing() -> None:
    rows, noise, given = _inputs()
    deaf, hearing = _speaking(SMALL), _speaking(HEARING)
    plain = deaf(from_flat(rows), noise, given)
    for before in (None, clean_batch(3)):
        told = hearing(from_flat(rows), noise, given, before)
        assert torch.equal(told.params, plain.params)
        assert torch.equal(told.kind_logits, plain.kind_logits)
        assert torch.equal(told.construction_logits, plain.construction_logits)


def test_what_is_heard_counts_row_by_row_and_silence_for_nothing() -> None:
    rows, noise, given = _inputs()
    network = _speaking(HEARING)
    assert network.heard is not None
    torch.nn.init.normal_(network.heard.weight, std=0.05)
    before = clean_batch(3)
    plain, told = network(from_flat(rows), noise, given), network(from_flat(rows), noise, given, before)
    assert not torch.allclose(told.params, plain.params, atol=1e-3)
    silent = network(from_flat(rows), noise, given, from_flat(torch.zeros_like(rows)))
    assert torch.equal(silent.params, plain.params)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    moved = network(from_flat(rows[:, order]), noise, given[:, order], from_flat(before.flat()[:, order]))
    torch.testing.assert_close(moved.params, told.params[:, order], atol=1e-5, rtol=0)
    # Rows that stay while what was said of them moves are other rows.
    mixed = network(from_flat(rows), noise, given, from_flat(before.flat()[:, order]))
    assert not torch.allclose(mixed.params, told.params, atol=1e-3)


def test_what_is_heard_of_fine_places_is_seen() -> None:
    network, before = _speaking(HEARING), clean_batch(3)
    assert network.heard is not None
    assert network.heard.in_features == before.flat().shape[-1] + 2 * SMALL.octaves * before.params.shape[-1]
    # Only what lies behind the plain numbers is listened to: waves of the places.
    with torch.no_grad():
        network.heard.weight[:, before.flat().shape[-1] :].normal_(std=0.05, generator=torch.Generator().manual_seed(0))
    rows, noise, given = _inputs()
    apart = replace(before, params=before.params + 0.01)
    one, other = (network(from_flat(rows), noise, given, said).params for said in (before, apart))
    assert not torch.allclose(one, other, atol=1e-3)
