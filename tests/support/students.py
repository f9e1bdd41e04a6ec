"""A small teacher for tests of distillation."""

import torch

from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


def small_teacher(seed: int = 0, *, width: int = 32, num_steps: int = 200) -> SketchDNNSystem:
    """With all inputs, and random weights that all matter."""
    torch.manual_seed(seed)
    inputs = {"self_conditioning": True, "proximity_features": True, "auxiliary": True}
    network = SetDenoiserConfig(width=width, depth=1, heads=2, octaves=2, time_features=4, dropout=0.1, **inputs)
    system = SketchDNNSystem(SketchDNNConfig(network=network, num_steps=num_steps))
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system.eval()
