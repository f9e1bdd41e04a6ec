"""Attention over a few rows: what it computes, and that the GPU's own kernel computes the same."""

from importlib.util import find_spec

import pytest
import torch

from sketchdnn.networks.attention import attend


def plain(qkv: torch.Tensor) -> torch.Tensor:
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v).transpose(1, 2)


def random_qkv(rows: int, **options: object) -> torch.Tensor:
    return torch.randn(3, rows, 3, 2, 32, generator=torch.Generator().manual_seed(rows)).to(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 7, 16, 24])
def test_attention_is_a_softmax_of_products(rows: int) -> None:
    qkv = random_qkv(rows)
    torch.testing.assert_close(attend(qkv), plain(qkv), atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(
    not torch.cuda.is_available() or find_spec("triton") is None, reason="the kernel runs on a GPU with Triton"
)
@pytest.mark.parametrize("rows", [1, 7, 16, 24])
def test_kernel_agrees_forwards_and_backwards(rows: int) -> None:
    qkv = random_qkv(rows, device="cuda", dtype=torch.bfloat16).requires_grad_()
    exact = qkv.detach().float().requires_grad_()
    mixed, wanted = attend(qkv), plain(exact)
    torch.testing.assert_close(mixed.float(), wanted, atol=2e-2, rtol=2e-2)
    push = torch.randn_like(wanted)
    mixed.backward(push.to(mixed.dtype))
    wanted.backward(push)
    assert qkv.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(qkv.grad.float(), exact.grad, atol=5e-2, rtol=5e-2)
