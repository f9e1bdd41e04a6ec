"""Paper and camera: ruled squares, the edge of the page, grain, shading, blur and JPEG, for a batch of pictures."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Generator, Tensor
from torch.nn.functional import conv2d, interpolate, pad

from .noise import normal

_BLOCK = 8


def homography(shift: Tensor) -> Tensor:
    """The projective maps that move the corners of the unit square, `batch, 3, 3`.

    Args:
        shift: Moves of the corners (0, 0), (1, 0), (1, 1), (0, 1), `batch, 4, 2`.
    """
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], device=shift.device, dtype=shift.dtype)
    to = corners + shift
    batch = len(shift)
    x, y = corners.expand(batch, 4, 2).unbind(-1)
    u, v = to.unbind(-1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    rows_u = torch.stack((x, y, one, zero, zero, zero, -u * x, -u * y), dim=-1)
    rows_v = torch.stack((zero, zero, zero, x, y, one, -v * x, -v * y), dim=-1)
    solution = torch.linalg.solve(torch.cat((rows_u, rows_v), 1), torch.cat((u, v), 1)[..., None])[..., 0]
    return torch.cat((solution, torch.ones_like(solution[:, :1])), 1).reshape(batch, 3, 3)


def project(matrix: Tensor, at: Tensor) -> Tensor:
    """Points `batch, ..., 2` mapped by `batch, 3, 3`."""
    flat = at.reshape(len(at), -1, 2)
    mapped = flat @ matrix[:, :2, :2].transpose(1, 2) + matrix[:, None, :2, 2]
    scale = flat @ matrix[:, 2, :2, None] + matrix[:, 2, 2, None, None]
    return (mapped / scale).reshape(at.shape)


def pixel_grid(size: int, like: Tensor) -> Tensor:
    """The centers of the pixels in shares of the side, `size, size, 2`, x to the right and y down."""
    steps = (torch.arange(size, device=like.device, dtype=like.dtype) + 0.5) / size
    y, x = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack((x, y), dim=-1)


def ruled_squares(page: Tensor, spacing: Tensor, width: float, shade: Tensor) -> Tensor:
    """Darkness of ruled paper at places of the page, `batch, size, size`.

    Args:
        page: The place on the page of each pixel, `batch, size, size, 2`.
        spacing: Side of a square, `batch`.
        width: Width of a line.
        shade: Darkness of the lines, `batch`.
    """
    phase = torch.remainder(page / spacing[:, None, None, None] + 0.5, 1.0) - 0.5
    distance = phase.abs().amin(-1) * spacing[:, None, None]
    return shade[:, None, None] * ((width - distance) / width).clamp(0, 1)


def smooth_noise(batch: int, size: int, cells: int, like: Tensor, generator: Generator) -> Tensor:
    """Noise of standard deviation about one, smooth over a cell, `batch, size, size`."""
    coarse = normal((batch, 1, cells, cells), like, generator)
    return interpolate(coarse, (size, size), mode="bicubic", align_corners=False)[:, 0]


def blur(pictures: Tensor, deviation: Tensor) -> Tensor:
    """Gaussian blur with a standard deviation in pixels for each picture, `batch, size, size`."""
    reach = math.ceil(3 * float(deviation.max())) if len(deviation) else 0
    if reach < 1:
        return pictures
    batch, size = pictures.shape[:2]
    offsets = torch.arange(-reach, reach + 1, device=pictures.device, dtype=pictures.dtype)
    weights = torch.exp(-0.5 * (offsets / deviation[:, None].clamp_min(1e-3)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True))[:, None]
    padded = pad(pictures[None], (reach, reach, reach, reach), mode="replicate")
    across = conv2d(padded, weights[:, :, None], groups=batch)
    return conv2d(across, weights[:, :, :, None], groups=batch)[0].reshape(batch, size, size)


def jpeg(pictures: Tensor, step: Tensor) -> Tensor:
    """Quantize the cosine coefficients of blocks, coarser for higher frequencies, as JPEG does.

    Args:
        pictures: Gray from 0 to 1, `batch, size, size`.
        step: Quantization step of each picture in gray levels of 255, `batch`.
    """
    batch, size = pictures.shape[:2]
    rest = -size % _BLOCK
    padded = pad(pictures[:, None], (0, rest, 0, rest), mode="replicate")[:, 0]
    side = (size + rest) // _BLOCK
    blocks = padded.reshape(batch, side, _BLOCK, side, _BLOCK).transpose(2, 3)
    matrix = _cosines().to(pictures)
    coefficients = matrix @ (255 * (blocks - 0.5)) @ matrix.T
    frequency = torch.arange(_BLOCK, device=pictures.device, dtype=pictures.dtype)
    table = 1 + step[:, None, None, None, None] * (0.3 + 0.2 * (frequency[:, None] + frequency[None, :]))
    rounded = (coefficients / table).round() * table
    restored = (matrix.T @ rounded @ matrix) / 255 + 0.5
    return restored.transpose(2, 3).reshape(batch, size + rest, size + rest)[:, :size, :size].clamp(0, 1)


@cache
def _cosines() -> Tensor:
    """The orthonormal discrete cosine transform of a block."""
    k = torch.arange(_BLOCK, dtype=torch.float64)
    matrix = torch.cos(math.pi / _BLOCK * (k[None, :] + 0.5) * k[:, None]) * math.sqrt(2 / _BLOCK)
    matrix[0] /= math.sqrt(2)
    return matrix
