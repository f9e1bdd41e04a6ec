"""An untrained system for tests of what is asked of one, with a memory of some built-in parts."""

import torch

from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import build_training_index
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
