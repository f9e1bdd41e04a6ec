"""Strokes to pixels: each sample is a soft disc, and a pixel takes the darkest disc that covers it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def stamp(at: Tensor, radius: Tensor, ink: Tensor, size: int) -> Tensor:
    """Draw discs.

    The darkest disc counts, so the result does not depend on the order of the discs.

    Args:
        at: Centers in pixels, x to the right and y down, `batch, disc, 2`.
        radius: Radii in pixels, `batch, disc`.
        ink: Darkness from 0 to 1; 0 draws nothing, `batch, disc`.
        size: Pixels a side.

    Returns:
        Darkness, `batch, size, size`.
    """
    batch = at.shape[0]
    reach = math.ceil(float(radius.max()) + 0.5) if radius.numel() else 0
    offsets = torch.arange(-reach, reach + 1, device=at.device)
    corner = at.floor()
    flat = torch.zeros(batch * size * size, device=at.device, dtype=at.dtype)
    first = torch.arange(batch, device=at.device)[:, None] * (size * size)
    for dy in offsets:
        y = corner[..., 1].long() + dy
        for dx in offsets:
            x = corner[..., 0].long() + dx
            # The center of pixel k lies at k + 0.5.
            distance = torch.hypot(x + 0.5 - at[..., 0], y + 0.5 - at[..., 1])
            dark = (radius + 0.5 - distance).clamp(0, 1) * ink
            inside = (x >= 0) & (x < size) & (y >= 0) & (y < size) & (dark > 0)
            place = (first + y.clamp(0, size - 1) * size + x.clamp(0, size - 1)).reshape(-1)
            flat.scatter_reduce_(0, place, torch.where(inside, dark, 0.0).reshape(-1), "amax", include_self=True)
    return flat.reshape(batch, size, size)
