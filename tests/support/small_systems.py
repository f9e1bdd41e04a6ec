"""Small systems with random weights, so that their output depends on all inputs."""

from typing import Any

import torch

from sketchdnn.diffusion.sampling import FEW_STEP
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import build_training_index
from sketchdnn.systems.registry import SYSTEMS
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from support.sketch_sets import parts


def small_system(seed: int = 0, *, knows: bool = True) -> SketchDNNSystem:
    """Moved off its start, so that what it draws depends on all it is shown."""
    torch.manual_seed(seed)
    system = SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=2, heads=2), num_steps=50))
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    if knows:
        system.training_index = build_training_index(parts(200))
    return system.eval()


def plain_samplers(name: str) -> list[str]:
    """The samplers of a system that need no student."""
    return [sampler for sampler in SYSTEMS[name].samplers if sampler != FEW_STEP]


def random_system(
    name: str, network: SetDenoiserConfig, extra: str | None, *, zero: bool = False, **settings: Any
) -> RowDenoiser[Any]:
    """A denoiser of rows with 50 steps. The `extra` weights are drawn last, or left at the zeros they start with."""
    system_class = SYSTEMS[name]
    system = system_class(system_class.config_class(network=network, num_steps=50, **settings))
    torch.manual_seed(0)
    for part, weight in system.named_parameters():
        if part != extra:
            torch.nn.init.normal_(weight, std=0.05)
    if extra is not None and not zero:
        torch.nn.init.normal_(system.get_parameter(extra), std=0.2)
    return system.eval()
