"""The decoder looks back only, and with a cache it says what it says without."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sketchdnn.systems.baselines.tokens.decoder import Cache, TokenDecoder, TokenDecoderConfig

SIZES = {"values_in": 12, "places_in": 5, "positions": 20, "values_out": 11}


def made(**config: object) -> TokenDecoder:
    torch.manual_seed(0)
    network = TokenDecoder(TokenDecoderConfig(width=32, depth=3, heads=4, **config), **SIZES)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return network.eval()


def some_tokens(batch: int = 3, length: int = 15) -> tuple[Tensor, Tensor, Tensor]:
    dice = torch.Generator().manual_seed(1)
    sizes = (SIZES[name] for name in ("values_in", "places_in", "positions"))
    return tuple(torch.randint(size, (batch, length), generator=dice) for size in sizes)


def test_a_token_is_not_known_before_it_comes() -> None:
    network, (value, place, position) = made(), some_tokens()
    before = network(value, place, position)
    value[:, 9] = (value[:, 9] + 1) % SIZES["values_in"]
    after = network(value, place, position)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.allclose(before[:, 9:], after[:, 9:], atol=1e-3)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_value_place_and_position_all_count(part: int) -> None:
    network, tokens = made(), some_tokens()
    before = network(*tokens)
    tokens[part][:, 0] = (tokens[part][:, 0] + 1) % 5
    assert not torch.allclose(before, network(*tokens), atol=1e-3)


def test_one_at_a_time_with_a_cache_is_the_same_as_all_at_once() -> None:
    network, tokens = made(), some_tokens()
    cache = Cache(capacity=15)
    steps = [network(*(part[:, n : n + 1] for part in tokens), cache) for n in range(15)]
    assert cache.length == 15
    assert torch.allclose(torch.cat(steps, dim=1), network(*tokens), atol=1e-4)


def test_the_default_has_vitruvions_size() -> None:
    network = TokenDecoder(TokenDecoderConfig(), **SIZES)
    assert 21.2e6 < sum(weight.numel() for weight in network.parameters()) < 21.5e6


def test_dropout_is_for_training_alone() -> None:
    network, tokens = made(dropout=0.5), some_tokens()
    assert torch.equal(network(*tokens), network(*tokens))
    network.train()
    assert not torch.equal(network(*tokens), network(*tokens))


def test_impossible_sizes_are_refused() -> None:
    for wrong in ({"width": 0}, {"width": 30, "heads": 4}, {"dropout": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            TokenDecoderConfig(**wrong)
