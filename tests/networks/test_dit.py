"""The paper's network: its exact size, and that no row knows its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch

from sketchdnn.diffusion.process import Denoiser, our_process
from sketchdnn.networks import DiT, DiTConfig
from sketchdnn.representation.batch import Prediction, SketchBatch

SMALL = DiTConfig(width=32, depth=3, heads=4, num_steps=100)


def small(config: DiTConfig = SMALL, *, trained: bool = True) -> DiT:
    """A small network; `trained` moves the zeros that it starts with."""
    torch.manual_seed(0)
    network = DiT(config)
    if trained:
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return network.eval()


def noisy(count: int = 5) -> tuple[SketchBatch, torch.Tensor]:
    t = torch.arange(1, count + 1) * 20
    return our_process(100).diffuse(clean_batch(count), t, normal_batch(count)), t


def flat(prediction: Prediction) -> torch.Tensor:
    return SketchBatch(prediction.construction_logits, prediction.kind_logits, prediction.params).flat()


def test_default_size() -> None:
    with torch.device("meta"):
        network = DiT()
    assert sum(parameter.numel() for parameter in network.parameters()) == 138_167_829


def test_permuted_rows_give_the_permuted_prediction() -> None:
    network = small()
    batch, t = noisy()
    order = torch.rand(5, 16, generator=torch.Generator().manual_seed(3)).argsort(dim=-1)
    said, permuted = flat(network(batch, t)), flat(network(batch.permuted(order), t))
    expected = said.gather(1, order[..., None].expand_as(said))
    assert (permuted - expected).abs().max() < 1e-5
    assert (permuted - said).abs().max() > 0.1


def test_positions_break_equivariance() -> None:
    network = small(replace(SMALL, positions=True))
    batch, t = noisy()
    order = torch.arange(15, -1, -1).expand(5, 16)
    said, permuted = flat(network(batch, t)), flat(network(batch.permuted(order), t))
    assert (permuted - said.flip(1)).abs().max() > 0.1
    plain = sum(p.numel() for p in small().parameters())
    assert sum(p.numel() for p in network.parameters()) == plain + 16 * 32


def test_rows_interact() -> None:
    network = small()
    batch, t = noisy()
    moved = replace(batch, params=batch.params.clone())
    moved.params[:, 0] += 1
    change = (flat(network(moved, t)) - flat(network(batch, t))).abs().amax(dim=-1)
    assert (change > 1e-4).all()


def test_samples_do_not_interact() -> None:
    network = small()
    batch, t = noisy()
    torch.testing.assert_close(flat(network(batch[2:3], t[2:3]))[0], flat(network(batch, t))[2])


def test_step_is_ignored_initially() -> None:
    """Scales and shifts start at zero: every norm is a plain one."""
    batch, t = noisy()
    fresh, trained = small(trained=False), small()
    assert torch.equal(flat(fresh(batch, t)), flat(fresh(batch, t.flip(0))))
    assert not torch.allclose(flat(trained(batch, t)), flat(trained(batch, t.flip(0))), atol=1e-2)


def test_every_parameter_has_a_gradient() -> None:
    network = small()
    batch, t = noisy()
    flat(network(batch, t)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_first_and_last_step_have_an_embedding() -> None:
    network = small()
    batch, _ = noisy(2)
    assert flat(network(batch, torch.tensor([1, 100]))).isfinite().all()
    with pytest.raises(IndexError):
        network(batch, torch.tensor([0, 101]))


def test_output_is_float32_under_mixed_precision() -> None:
    denoise: Denoiser = small()
    batch, t = noisy()
    with torch.autocast("cpu", torch.bfloat16):
        prediction = denoise(batch, t)
    assert prediction.params.dtype == prediction.kind_logits.dtype == torch.float32
    assert prediction.params.shape == batch.params.shape
    torch.testing.assert_close(prediction.kind.sum(-1), torch.ones(5, 16))


def test_fewer_rows_than_sixteen() -> None:
    for config in (SMALL, replace(SMALL, positions=True)):
        batch, t = noisy()
        some = SketchBatch(batch.construction[:, :9], batch.kind[:, :9], batch.params[:, :9])
        assert small(config)(some, t).params.shape == (5, 9, 14)


@pytest.mark.parametrize("wrong", [{"width": 30}, {"depth": 0}, {"heads": 0}, {"num_steps": 0}])
def test_impossible_shape_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(SMALL, **wrong)
