"""Vitruvion and SketchGen: exact likelihood, legal tokens, seeded draws, and sketches learnt by heart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch
from torch import Tensor

from sketchdnn.diffusion.likelihood import Bins
from sketchdnn.diffusion.noise import seeded_noise, uniform
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, condition_on_rows
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, relevant
from sketchdnn.systems import ConfigError
from sketchdnn.systems.baselines.tokens import system as models
from sketchdnn.systems.baselines.tokens.tokens import LEVELS, NUM_VALUES, START, STOP, TOKEN_GRID, quantize, tokenize
from sketchdnn.systems.registry import config_from_dict
from sketchdnn.systems.system import sample_condition_mask

SMALL = models.TokenDecoderConfig(width=32, depth=2, heads=2)
CONFIGS = {
    "vitruvion": models.VitruvionConfig(SMALL),
    "vitruvion by sweep": models.VitruvionConfig(SMALL, arcs="sweep", order="stored", top_p=1.0),
    "sketchgen": models.TokenConfig(SMALL),
    "sketchgen as stored": models.TokenConfig(SMALL, order="stored", temperature=0.8),
}


def made(config: models.TokenConfig, std: float = 0.1) -> models.TokenSystem:
    torch.manual_seed(0)
    system = models.Vitruvion(config) if isinstance(config, models.VitruvionConfig) else models.SketchGen(config)
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=std)
    return system.eval()


@pytest.fixture(params=CONFIGS)
def system(request: pytest.FixtureRequest) -> models.TokenSystem:
    return made(CONFIGS[request.param])


def noise_of(*samples: int) -> object:
    return seeded_noise(1, torch.tensor(samples))


def nats(system: models.TokenSystem, x0: SketchBatch) -> Tensor:
    found = system.likelihood(x0, noise_of(0), None)
    assert found is not None
    return found.detach()


def one_by_one(system: models.TokenSystem, x0: SketchBatch) -> Tensor:
    """−Σ log p(token | those before), asked of the cached network token by token, as when it draws."""
    tokens = tokenize(x0, system.syntax, system.config.order)
    cache, total = models.Cache(tokens.value.shape[1]), torch.zeros(len(x0), dtype=torch.float64)
    value = torch.full_like(tokens.value[:, :1], START)
    place = torch.full_like(value, system.syntax.end + 1)
    position = torch.zeros_like(value)
    for n in range(tokens.value.shape[1]):
        logits = system.network(value, place, position, cache)[:, 0].double()
        if system.masks_syntax:
            logits[~system.syntax.legal[tokens.place[:, n]]] = -math.inf
        chance = logits.softmax(dim=-1)
        assert torch.allclose(chance.sum(dim=-1), torch.ones(len(x0), dtype=torch.float64))
        value, place = tokens.value[:, n : n + 1], tokens.place[:, n : n + 1]
        total -= torch.where(tokens.real[:, n], chance.gather(1, value)[:, 0].log(), 0.0)
        position = tokens.row[:, n : n + 1] + 1 if system.position_of == "primitive" else torch.full_like(value, n + 1)
    return total


def test_likelihood_is_of_the_sequence_whose_order_may_be_sorted_away(system: models.TokenSystem) -> None:
    x0 = clean_batch(5)
    with torch.no_grad():
        assert torch.allclose(nats(system, x0), one_by_one(system, x0), atol=1e-3)
    x0 = clean_batch(5)
    order = torch.rand(5, 16, generator=torch.Generator().manual_seed(2)).argsort(dim=-1)
    plain, permuted = nats(system, x0), nats(system, x0.permuted(order))
    if system.config.order == "sorted":
        assert torch.equal(plain, permuted)
    else:
        assert bool(((plain - permuted).abs() > 1e-3).all())


def test_the_loss_is_nats_a_row_by_sort_and_trains_every_weight(system: models.TokenSystem) -> None:
    x0 = clean_batch(4)
    nothing = sample_condition_mask(torch.rand(4, 19), torch.zeros(4, 16, dtype=torch.long), 0.0)
    loss = system.loss(x0, torch.ones(4, dtype=torch.long), normal_batch(4), nothing)
    assert torch.allclose(loss.per_sample.detach().double() * 16, nats(system, x0), rtol=1e-4)
    for part in (loss.params_per_sample, loss.kind_per_sample, loss.construction_per_sample):
        assert bool((part > 0).all())
    with torch.autocast("cpu", torch.bfloat16):
        batch, half = system.sample(noise_of(0, 1, 2)), system.loss(x0, None, None, None)
    assert batch.params.dtype == half.per_sample.dtype == torch.float32
    assert torch.allclose(half.per_sample, loss.per_sample, rtol=0.05)
    loss.total.backward()
    assert not [name for name, weight in system.named_parameters() if weight.grad is None]


def compiled_loss(system: models.TokenSystem, **options: object) -> Callable[[SketchBatch], Tensor]:
    return torch.compile(lambda batch: system.loss(batch, None, None, None).per_sample, dynamic=False, **options)


def test_the_loss_can_be_compiled_whole_and_own_samples_are_likely() -> None:
    system, x0 = made(CONFIGS["vitruvion"]), clean_batch(2)
    compiled = compiled_loss(system, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x0), system.loss(x0, None, None, None).per_sample, rtol=1e-4)
    # Drawn without nucleus, the mean of −log p is the entropy: less than what another model's draws cost.
    one, other = (made(models.TokenConfig(SMALL, order="stored", top_p=1.0), std) for std in (0.5, 0.45))
    drawn, foreign = (model.sample(noise_of(*range(64))) for model in (one, other))
    assert float(nats(one, drawn).mean()) < float(nats(one, foreign).mean())


def test_samples_are_clean_rows_reported_token_by_token(system: models.TokenSystem) -> None:
    batch = system.sample(noise_of(*range(32)))
    for label in (batch.kind, batch.construction):
        assert bool((label.sum(dim=-1) == 1).all())
        assert bool((label.max(dim=-1).values == 1).all())
    kind = batch.kind.argmax(dim=-1)
    assert not batch.params[~relevant(kind)].any()
    empty = kind == layout.NONE
    assert bool((empty[:, 1:] >= empty[:, :-1]).all())  # nothing comes after the stop
    assert len(kind.unique()) == layout.NUM_KINDS
    steps: list[Progress] = []
    batch = system.sample(noise_of(0, 1), SamplingOptions(on_step=steps.append))
    assert [one.number for one in steps[:-1]] == list(range(1, len(steps)))
    assert (steps[-1].number, steps[-1].s) == (steps[-1].total, 0)
    assert all(one.t == one.s + 1 for one in steps)
    assert torch.equal(steps[-1].batch.flat(), batch.flat())
    counts = [int((one.batch.kind.argmax(dim=-1) != layout.NONE).sum()) for one in steps]
    assert counts == sorted(counts)  # primitive by primitive


def test_illegal_tokens_are_never_drawn(system: models.TokenSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by a network that wants nothing else."""
    legal_of = system.syntax.legal
    seen, sample_token = Counter[int](), models.sample_token

    def watched(logits: Tensor, legal: Tensor, *rest: object) -> Tensor:
        value = sample_token(logits + 50.0 * ~legal, legal, *rest)
        assert bool(legal.gather(1, value[:, None]).all())
        seen.update(value.tolist())
        return value

    monkeypatch.setattr("sketchdnn.systems.baselines.tokens.system.sample_token", watched)
    system.sample(noise_of(*range(24)))
    assert len(seen) > NUM_VALUES // 2
    assert bool(legal_of.any(dim=1).all())


def test_tokens_are_greedy_towards_temperature_zero_and_else_independent() -> None:
    config = replace(CONFIGS["sketchgen"], top_p=1.0)
    drawn = [made(replace(config, temperature=t), std=0.3).sample(noise_of(0, 1, 2)).flat() for t in (0.0, 1e-6, 1.0)]
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0][0], drawn[0][1])  # noise has no say
    assert not torch.equal(drawn[0], drawn[2])
    # A network that knows nothing draws every legal value as often, whatever it drew before.
    system = made(models.TokenConfig(SMALL, top_p=1.0), std=0.0)
    drawn = system.sample(noise_of(*range(400)))
    ends = drawn.of_kind(Kind.LINE)[drawn.kind.argmax(dim=-1) == Kind.LINE]
    assert len(ends) > 200
    assert float(ends.T.corrcoef().triu(1).abs().max()) < 0.2
    assert ends.std(dim=0).tolist() == pytest.approx([LEVELS / 30 / 12**0.5] * 4, rel=0.1)


@pytest.mark.parametrize("name", ["vitruvion by sweep", "sketchgen"])
def test_each_greedy_token_is_the_likeliest_legal_one(name: str) -> None:
    """By the network that sees the whole sequence at once: what is drawn with a cache is the same model."""
    system = made(replace(CONFIGS[name], temperature=0.0), std=0.3)
    tokens = tokenize(system.sample(noise_of(0)), system.syntax)
    with torch.no_grad():
        count = int(tokens.real.sum())
        value = torch.cat([torch.tensor([[START]]), tokens.value[:, :-1]], dim=1)
        place = torch.cat([torch.tensor([[system.syntax.end + 1]]), tokens.place[:, :-1]], dim=1)
        position = torch.arange(value.shape[1])[None]
        if system.position_of == "primitive":
            position = torch.cat([torch.tensor([[0]]), tokens.row[:, :-1] + 1], dim=1)
        logits = system.network(value, place, position)
        likeliest = logits.masked_fill(~system.syntax.legal[tokens.place], -math.inf).argmax(dim=-1)
    assert count > 10
    assert torch.equal(likeliest[:, :count], tokens.value[:, :count])


def test_levels_are_the_cells_of_a_grid_that_others_can_be_judged_on() -> None:
    system = made(CONFIGS["sketchgen"])
    generator = torch.Generator().manual_seed(0)
    params = torch.rand(500, 16, 14, generator=generator) * 2 - 1
    params[..., 4 + layout.RADIUS].abs_()
    params[:50] = (params[:50] * 60).round() / 60  # on borders, and in the middle
    assert torch.equal(TOKEN_GRID.index(params), quantize(params, system.syntax))
    x0 = clean_batch(3)
    assert torch.equal(system.likelihood(x0, noise_of(0), None, bins=TOKEN_GRID), nats(system, x0))
    assert system.likelihood(x0, noise_of(0), None, bins=Bins(bits=8)) is None
    three_points = made(CONFIGS["vitruvion"])
    assert three_points.grid is None
    assert three_points.likelihood(x0, noise_of(0), None, bins=TOKEN_GRID) is None


def test_unsupported_options_are_refused(system: models.TokenSystem) -> None:
    with pytest.raises(SketchError, match="cannot draw with ddim; use ancestral"):
        system.sample(noise_of(0), SamplingOptions(sampler="ddim"))
    given = condition_on_rows(clean_batch(1), torch.zeros(1, 16, dtype=torch.bool))
    with pytest.raises(SketchError, match="cannot be conditioned"):
        system.sample(noise_of(0), SamplingOptions(conditioning=given))
    for wrong in ({"top_p": 0.0}, {"top_p": 1.5}, {"temperature": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            config_from_dict(system.config_class, wrong, "here")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_says_what_the_processor_says(system: models.TokenSystem) -> None:
    x0 = clean_batch(4)
    here, drawn = nats(system, x0), system.sample(noise_of(0, 1, 2, 3))
    system.to_device("cuda")
    there = x0.to("cuda")
    assert torch.allclose(nats(system, there).cpu(), here, rtol=1e-3)
    assert torch.allclose(compiled_loss(system)(there).double().cpu() * 16, here, rtol=1e-3)
    again = system.sample(seeded_noise(1, torch.arange(4, device="cuda")))
    # A token whose chance is on the brink may be chosen otherwise, and what follows with it.
    assert sum(map(torch.equal, again.flat().cpu(), drawn.flat())) >= 3


def test_values_are_chosen_as_often_as_their_chances_say() -> None:
    chances = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05])
    many = 20_000
    logits = chances.log().expand(many, -1)
    legal = torch.tensor([True, True, True, True, False]).expand(many, -1)
    where = uniform(3, torch.arange(many), 0, ())
    free = torch.bincount(models.sample_token(logits, legal, where), minlength=5) / many
    assert torch.allclose(free, torch.tensor([0.5, 0.2, 0.15, 0.1, 0.0]) / 0.95, atol=0.01)
    # The likeliest two hold 0.737 of what is legal: the third is needed for 0.8.
    nucleus = torch.bincount(models.sample_token(logits, legal, where, top_p=0.8), minlength=5) / many
    assert torch.allclose(nucleus, torch.tensor([0.5, 0.2, 0.15, 0.0, 0.0]) / 0.85, atol=0.01)
    cold = torch.bincount(models.sample_token(logits, legal, where, temperature=0.5), minlength=5) / many
    squared = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.0]) ** 2
    assert torch.allclose(cold, squared / squared.sum(), atol=0.01)
    legal, logits = torch.zeros(1, NUM_VALUES, dtype=torch.bool), torch.zeros(1, NUM_VALUES)
    legal[0, [3, STOP]] = True
    logits[0, 3] = 40.0
    for where in (0.0, 0.5, 1.0):
        assert int(models.sample_token(logits, legal, torch.tensor([where]), top_p=0.9)) == 3


SIZES = {"values": 11, "places": 5, "positions": 20}


def decoder(**config: object) -> models.TokenDecoder:
    torch.manual_seed(0)
    network = models.TokenDecoder(models.TokenDecoderConfig(width=32, depth=3, heads=4, **config), **SIZES)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return network.eval()


def some_tokens(batch: int = 3, length: int = 15) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    return tuple(torch.randint(size, (batch, length), generator=rng) for size in SIZES.values())


@pytest.mark.parametrize("part", [0, 1, 2])
def test_value_place_and_position_count_from_their_token_on(part: int) -> None:
    network, tokens = decoder(), some_tokens()
    before = network(*tokens)
    tokens[part][:, 9] = (tokens[part][:, 9] + 1) % 5
    after = network(*tokens)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.allclose(before[:, 9:], after[:, 9:], atol=1e-3)


def test_cache_changes_nothing_and_default_size_is_vitruvions() -> None:
    network, tokens = decoder(), some_tokens()
    cache = models.Cache(capacity=15)
    steps = [network(*(part[:, n : n + 1] for part in tokens), cache) for n in range(15)]
    assert cache.length == 15
    assert torch.allclose(torch.cat(steps, dim=1), network(*tokens), atol=1e-4)
    network = decoder(dropout=0.5)
    assert torch.equal(network(*tokens), network(*tokens))
    network.train()
    assert not torch.equal(network(*tokens), network(*tokens))
    network = models.TokenDecoder(models.TokenDecoderConfig(), **SIZES)
    assert 21.2e6 < sum(weight.numel() for weight in network.parameters()) < 21.5e6
    for wrong in ({"width": 0}, {"width": 30, "heads": 4}, {"dropout": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            models.TokenDecoderConfig(**wrong)
