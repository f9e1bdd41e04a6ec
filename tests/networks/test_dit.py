"""The paper's network: its exact size, and that no row knows its place."""

from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch

from sketchdnn.diffusion.process import Denoiser, our_process, parts
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
    return torch.cat(parts(prediction), dim=-1)


def test_sizes_interaction_of_rows_and_embedding_of_steps() -> None:
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in DiT().parameters()) == 138_167_829
    for wrong in ({"width": 30}, {"depth": 0}, {"heads": 0}, {"num_steps": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            replace(SMALL, **wrong)
    network, (batch, t) = small(), noisy()
    moved = replace(batch, params=batch.params.clone())
    moved.params[:, 0] += 1
    output = flat(network(batch, t))
    assert ((flat(network(moved, t)) - output).abs().amax(dim=-1) > 1e-4).all()
    torch.testing.assert_close(flat(network(batch[2:3], t[2:3]))[0], output[2])
    batch, t = noisy()
    fresh, trained = small(trained=False), small()
    assert torch.equal(flat(fresh(batch, t)), flat(fresh(batch, t.flip(0))))
    assert not torch.allclose(flat(trained(batch, t)), flat(trained(batch, t.flip(0))), atol=1e-2)
    assert flat(trained(batch[:2], torch.tensor([1, 100]))).isfinite().all()
    with pytest.raises(IndexError):
        trained(batch[:2], torch.tensor([0, 101]))


def test_permuted_rows_give_the_permuted_prediction() -> None:
    """Unless rows have positions, which are vectors of their own."""
    order = torch.rand(5, 16, generator=torch.Generator().manual_seed(3)).argsort(dim=-1)
    batch, t = noisy()
    plain, positioned = small(), small(replace(SMALL, positions=True))
    for network in (plain, positioned):
        output, permuted = flat(network(batch, t)), flat(network(batch.permuted(order), t))
        expected = output.gather(1, order[..., None].expand_as(output))
        assert ((permuted - expected).abs().max() < 1e-5) == (network is plain)
        assert (permuted - output).abs().max() > 0.1
        fewer = SketchBatch(batch.construction[:, :9], batch.kind[:, :9], batch.params[:, :9])
        assert network(fewer, t).params.shape == (5, 9, 14)
    sizes = [sum(p.numel() for p in network.parameters()) for network in (plain, positioned)]
    assert sizes[1] == sizes[0] + 16 * 32


def test_parameters_have_gradients_and_outputs_are_float32() -> None:
    network = small()
    batch, t = noisy()
    flat(network(batch, t)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    denoise: Denoiser = small()
    batch, t = noisy()
    with torch.autocast("cpu", torch.bfloat16):
        prediction = denoise(batch, t)
    assert prediction.params.dtype == prediction.kind_logits.dtype == torch.float32
    assert prediction.params.shape == batch.params.shape
    # Both ends and the sum of the blocks are in single precision: half precision would have 8 bits.
    assert not torch.equal(prediction.params, prediction.params.bfloat16().float())
    sums: list[torch.dtype] = []
    network.blocks[-1].register_forward_hook(lambda module, inputs, output: sums.append(output.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        network(batch, t)
    assert sums == [torch.float32]
    torch.testing.assert_close(prediction.kind.sum(-1), torch.ones(5, 16))
