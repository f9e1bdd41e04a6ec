"""AdamW, or Muon for the matrices of blocks and AdamW for all other weights.

Muon (https://kellerjordan.github.io/posts/muon) orthogonalizes the momentum of a matrix: its update has about the same
length in every singular direction.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .config import RunError, TrainConfig
from .distributed import sharding_units

_MOMENTUM = 0.95
# Root mean square of an update, about that of AdamW, so that learning rates carry over (arXiv 2502.16982).
_UPDATE_RMS = 0.2
# Newton–Schulz: all but the smallest singular values end between 0.7 and 1.2.
_ITERATIONS, _POLYNOMIAL = 5, (3.4445, -4.7750, 2.0315)


def make_optimizer(system: nn.Module, config: TrainConfig, device: torch.device) -> torch.optim.Optimizer:
    """The optimizer that `config.optimizer` names."""
    adamw: dict[str, Any] = {
        "lr": config.learning_rate,
        "betas": config.betas,
        "weight_decay": config.weight_decay,
        "fused": device.type == "cuda",
    }
    if config.optimizer == "adamw":
        return torch.optim.AdamW(system.parameters(), **adamw)
    matrices, others = split_parameters(system)
    if any(isinstance(weight, DTensor) for weight in matrices):
        raise RunError("muon needs whole matrices, and --fsdp shards them; train without --fsdp, or with adamw")
    return Muon(matrices, torch.optim.AdamW(others, **adamw))


def split_parameters(system: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The weight matrices of linear layers in blocks (the elements of module lists), and all other weights."""
    linear = (part for unit in sharding_units(system) for part in unit.modules() if isinstance(part, nn.Linear))
    matrices = {id(layer.weight) for layer in linear}
    weights = list(system.parameters())
    return [w for w in weights if id(w) in matrices], [w for w in weights if id(w) not in matrices]


class Muon(torch.optim.Optimizer):
    """Muon for `matrices` and another optimizer for the rest, with one interface.

    The update is that of `torch.optim.Muon` with Nesterov momentum and the learning rates of AdamW. Matrices of equal
    shape are processed as one batch, in a few large kernels.
    """

    def __init__(self, matrices: list[nn.Parameter], others: torch.optim.Optimizer) -> None:
        self.others = others
        own = {name: others.defaults[name] for name in ("lr", "weight_decay")}
        super().__init__([{"params": matrices}, *others.param_groups], own)
        self._share()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all weights that have a gradient."""
        rate, decay = self.param_groups[0]["lr"], self.param_groups[0]["weight_decay"]
        shapes: dict[torch.Size, list[Tensor]] = {}
        for weight in self.param_groups[0]["params"]:
            if weight.grad is not None:
                shapes.setdefault(weight.shape, []).append(weight)
        for shape, weights in shapes.items():
            updates = orthogonalize(self._nesterov(weights)).to(weights[0].dtype)
            torch._foreach_mul_(weights, 1 - rate * decay)
            torch._foreach_add_(weights, list(updates.unbind()), alpha=-rate * _UPDATE_RMS * math.sqrt(max(shape)))
        self.others.step()

    def _nesterov(self, weights: list[Tensor]) -> Tensor:
        """The gradients with Nesterov momentum, stacked."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)
        return torch.stack(torch._foreach_lerp(gradients, momenta, _MOMENTUM))

    def _share(self) -> None:
        """Let `others` use the state and the groups of this optimizer."""
        self.others.state, self.others.param_groups = self.state, self.param_groups[1:]


def orthogonalize(stack: Tensor) -> Tensor:
    """Matrices with the same singular vectors and singular values near one: Newton–Schulz iteration in bfloat16.

    A zero matrix stays zero.
    """
    a, b, c = _POLYNOMIAL
    tall = stack.shape[-2] > stack.shape[-1]  # the Gram matrix of the transpose is smaller
    x = stack.bfloat16()
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)  # at least the largest singular value
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    # Contiguous, so that the update of all weights is one kernel.
    return (x.mT if tall else x).contiguous()
