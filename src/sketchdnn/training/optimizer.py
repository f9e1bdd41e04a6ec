"""What moves the weights: AdamW, or Muon for the matrices of blocks and AdamW for all else.

Muon (https://kellerjordan.github.io/posts/muon) takes a step of the same length in every direction that a matrix has,
where the gradient alone would follow a few of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .checkpoint import RunError
from .config import TrainConfig
from .sharding import units

_MOMENTUM = 0.95
# A step is as long as one of AdamW is on average, so that its rates carry over (arXiv 2502.16982).
_LENGTH = 0.2
# Five rounds of a polynomial that is steep at zero: all but the smallest singular values end between 0.7 and 1.2.
_ROUNDS, _POLYNOMIAL = 5, (3.4445, -4.7750, 2.0315)


def optimizer_of(system: nn.Module, config: TrainConfig, device: torch.device) -> torch.optim.Optimizer:
    """The optimizer that a run is told to use."""
    adamw: dict[str, Any] = {
        "lr": config.learning_rate,
        "betas": config.betas,
        "weight_decay": config.weight_decay,
        "fused": device.type == "cuda",
    }
    if config.optimizer == "adamw":
        return torch.optim.AdamW(system.parameters(), **adamw)
    matrices, others = split(system)
    if any(isinstance(weight, DTensor) for weight in matrices):
        raise RunError("muon needs its matrices whole, and --fsdp splits them; train without it, or with adamw")
    return Muon(matrices, torch.optim.AdamW(others, **adamw))


def split(system: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices of linear maps within blocks, which are the elements of lists of modules; and all other weights."""
    within = {id(part.weight) for unit in units(system) for part in unit.modules() if isinstance(part, nn.Linear)}
    weights = list(system.parameters())
    return [w for w in weights if id(w) in within], [w for w in weights if id(w) not in within]


class Muon(torch.optim.Optimizer):
    """Muon for `matrices`, and `others` for the rest: one optimizer to all who step, save or set a rate.

    Moves as `torch.optim.Muon` with Nesterov's momentum and the rates of AdamW, but takes matrices of one shape at
    once: few large kernels in place of many small ones.
    """

    def __init__(self, matrices: list[nn.Parameter], others: torch.optim.Optimizer) -> None:
        self.others = others
        own = {name: others.defaults[name] for name in ("lr", "weight_decay")}
        super().__init__([{"params": matrices}, *others.param_groups], own)
        self._share()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()  # there are new ones now

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step. As with AdamW, a weight without a gradient stays as it is."""
        rate, decay = self.param_groups[0]["lr"], self.param_groups[0]["weight_decay"]
        shapes: dict[torch.Size, list[Tensor]] = {}
        for weight in self.param_groups[0]["params"]:
            if weight.grad is not None:
                shapes.setdefault(weight.shape, []).append(weight)
        for shape, weights in shapes.items():
            updates = orthogonal(self._pushed(weights)).to(weights[0].dtype)
            torch._foreach_mul_(weights, 1 - rate * decay)
            torch._foreach_add_(weights, list(updates.unbind()), alpha=-rate * _LENGTH * math.sqrt(max(shape)))
        self.others.step()

    def _pushed(self, weights: list[Tensor]) -> Tensor:
        """The gradients as Nesterov has them, in a stack; what is kept of them is each weight's own."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        momenta = [self.state[weight]["momentum"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - _MOMENTUM)
        return torch.stack(torch._foreach_lerp(gradients, momenta, _MOMENTUM))

    def _share(self) -> None:
        """Both have the same state, and the same groups where they are of `others`."""
        self.others.state, self.others.param_groups = self.state, self.param_groups[1:]


def orthogonal(stack: Tensor) -> Tensor:
    """Matrices with about the singular vectors of those given and singular values near one: Newton–Schulz in bfloat16.

    A matrix of zeros stays one.
    """
    a, b, c = _POLYNOMIAL
    tall = stack.shape[-2] > stack.shape[-1]  # then its transpose has the smaller product with itself
    x = stack.bfloat16()
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)  # no singular value is larger than this norm
    for _ in range(_ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    # Laid out as weights are: an update of all of them at once is one kernel only then.
    return (x.mT if tall else x).contiguous()
