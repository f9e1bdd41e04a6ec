"""Small image-conditioned models for tests."""

from typing import Any

import torch

from sketchdnn.networks.image_encoder import ImageEncoderConfig
from sketchdnn.systems.image_conditioned import ImageConditionedSystem, make_image_model
from sketchdnn.systems.sketchdnn import SketchDNNSystem

SMALL_ENCODER = ImageEncoderConfig(width=16, depth=1, heads=2, size=32, adapter_width=16)


def small_image_model(trunk: SketchDNNSystem, rank: int = 0, *, trained: bool = True) -> ImageConditionedSystem:
    """With weights that all matter, or with new ones."""
    torch.manual_seed(1)
    model = make_image_model(trunk, SMALL_ENCODER, rank)
    for weight in model.parameters():
        if trained and weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.2)
    return model.eval()


def some_pictures(count: int, size: int = 32, **options: Any) -> torch.Tensor:
    """Random ink."""
    return torch.rand(count, size, size, generator=torch.Generator().manual_seed(2), **options).round()
