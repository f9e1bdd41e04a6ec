"""Draw a batch of sketches as pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from sketchdnn.geometry import Kind

from .hand import breaks, follow_with_inertia, matern32, pressure, stretch_ends
from .noise import normal, uniform
from .options import DrawingOptions
from .paper import blur, homography, jpeg, pixel_grid, project, ruled_squares, smooth_noise
from .raster import stamp
from .strokes import Strokes, dashes, diagonal, sample_strokes

# Samples of a curve for each pixel of the side: a curve about as long as three sides is drawn without gaps.
_SAMPLES_A_PIXEL = 2
_MIN_SAMPLES = 128
# Samples of a Gaussian process or of a pen; positions between them are interpolated.
_NOISE_SAMPLES = 128


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures and where the sketches are in them.

    Attributes:
        gray: From 0, black, to 1, white, `batch, size, size`.
        placement: Maps sketch coordinates to shares of the picture's side, x to the right and y down, `batch, 3, 3`.
    """

    gray: Tensor
    placement: Tensor


def draw(kind: Tensor, construction: Tensor, params: Tensor, options: DrawingOptions, generator: Generator) -> Pictures:
    """Draw sketches that are normalized: the larger side from −1 to 1.

    The same generator state gives the same pictures on one device.

    Args:
        kind: Kinds of compact rows, `batch, prim`.
        construction: Construction flags, `batch, prim`.
        params: Parameters of compact rows, `batch, prim, param`.
        options: The noise.
        generator: Of the random numbers, on the device of the tensors.
    """
    batch, size = len(kind), options.size
    samples = max(_MIN_SAMPLES, _SAMPLES_A_PIXEL * size)
    angle = uniform((*kind.shape, 1), 0, 2 * math.pi, params, generator)
    gap = torch.cat((angle, torch.full_like(angle, math.radians(options.circle_gap))), -1)
    strokes = sample_strokes(kind, construction, params, samples, gap)
    extent = diagonal(strokes)
    scale = (0.5 - options.margin) * (1 - uniform((batch,), 0, options.scale, params, generator))
    to_page = _affine(scale, options, generator)
    page_to_picture = homography(options.perspective * uniform((batch, 4, 2), -1, 1, params, generator))
    placement = page_to_picture @ to_page

    width = uniform((batch,), *options.width, params, generator)
    layers = [_stroke_layer(strokes, extent, placement, scale, width, options, generator)]
    if options.doubled:
        again = _stroke_layer(strokes, extent, placement, scale, width, options, generator)
        chosen = uniform((batch, kind.shape[1]), 0, 1, params, generator) < options.doubled
        at, radius, ink = again
        layers.append((at, radius, ink * chosen[..., None]))
    at, radius, ink = (torch.cat(parts, 1).flatten(1, 2) for parts in zip(*layers, strict=True))
    dark = stamp(size * at, size * radius, ink, size)
    return Pictures(_photograph(dark, page_to_picture, options, generator), placement)


def _affine(scale: Tensor, options: DrawingOptions, generator: Generator) -> Tensor:
    """From sketch coordinates to shares of the page, y down, `batch, 3, 3`."""
    batch = len(scale)
    turn = math.radians(options.rotation) * uniform((batch,), -1, 1, scale, generator)
    shear = torch.tan(math.radians(options.shear) * uniform((batch,), -1, 1, scale, generator))
    shift = options.shift * uniform((batch, 2), -1, 1, scale, generator)
    cos, sin = scale * turn.cos(), scale * turn.sin()
    matrix = torch.zeros((batch, 3, 3), device=scale.device, dtype=scale.dtype)
    matrix[:, 0, 0], matrix[:, 0, 1] = cos, cos * shear - sin
    matrix[:, 1, 0], matrix[:, 1, 1] = -sin, -(sin * shear + cos)
    matrix[:, :2, 2] = 0.5 + shift
    matrix[:, 2, 2] = 1
    return matrix


def _stroke_layer(
    strokes: Strokes,
    extent: Tensor,
    placement: Tensor,
    scale: Tensor,
    width: Tensor,
    options: DrawingOptions,
    generator: Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """Positions, radii and ink of all samples in shares of the side, `batch, prim, sample`."""
    is_point = strokes.kind == Kind.POINT
    drawn = dashes(strokes, options.dash[0] / float(scale.mean()), options.dash[1] / float(scale.mean()))
    if options.overshoot:
        strokes = replace(strokes, at=_open_only(strokes, stretch_ends(strokes, options.overshoot * 2, generator)))
    at = _with_wobble(strokes, extent, options, generator)
    if options.point_wobble:
        noise = normal(at[:, :, :1].shape, at, generator)
        at = torch.where(
            is_point[..., None, None], strokes.at + options.point_wobble * extent[:, None, None, None] * noise, at
        )
    ink = uniform((len(width), 1, 1), *options.ink, at, generator).expand(at.shape[:3])
    radius = (width / 2)[:, None, None].expand(at.shape[:3])
    if options.pressure:
        relative = pressure(strokes, extent, options.pressure, generator)
        radius, ink = radius * relative, (ink * relative).clamp(0, 1)
    radius = torch.where(is_point[..., None], options.dot * (width / 2)[:, None, None], radius)
    if options.broken:
        drawn = drawn & (breaks(strokes, options.broken, generator) | is_point[..., None])
    return project(placement, at), radius, ink * (drawn & strokes.present[..., None])


def _open_only(strokes: Strokes, at: Tensor) -> Tensor:
    is_open = (strokes.kind == Kind.LINE) | (strokes.kind == Kind.ARC)
    return torch.where(is_open[..., None, None], at, strokes.at)


def _with_wobble(strokes: Strokes, extent: Tensor, options: DrawingOptions, generator: Generator) -> Tensor:
    """Positions moved by the hand, `batch, prim, sample, 2`."""
    if not options.wobble:
        return strokes.at
    samples = strokes.at.shape[2]
    coarse = min(samples, _NOISE_SAMPLES)
    if options.inertia:
        index = torch.linspace(0, samples - 1, coarse, device=strokes.at.device).round().long()
        path = follow_with_inertia(strokes.at[:, :, index], options.wobble * extent, generator)
        return _resample(path, samples)
    process = matern32(strokes.length.clamp_min(1e-6), options.wobble_length * extent[:, None], coarse, generator)
    offset = _resample(process[..., None], samples) * (options.wobble * extent)[:, None, None, None]
    return strokes.at + offset * strokes.normal


def _resample(values: Tensor, samples: int) -> Tensor:
    """Linear interpolation along the third dimension of `batch, prim, sample, channel`."""
    if values.shape[2] == samples:
        return values
    flat = values.flatten(0, 1).transpose(1, 2)
    dense = torch.nn.functional.interpolate(flat, samples, mode="linear", align_corners=True)
    return dense.transpose(1, 2).reshape(*values.shape[:2], samples, values.shape[3])


def _photograph(dark: Tensor, page_to_picture: Tensor, options: DrawingOptions, generator: Generator) -> Tensor:
    """Pictures of ink on paper, from the darkness of the ink."""
    batch, size = dark.shape[:2]
    if options.texture:
        teeth = normal(dark.shape, dark, generator)
        amount = uniform((batch, 1, 1), 0, options.texture, dark, generator)
        dark = dark * (1 - amount * teeth.abs().clamp(0, 1.5))
        dark = dark.clamp(0, 1)
    paper = torch.ones_like(dark)
    page = None
    if options.grid or options.page_edge:
        grid = pixel_grid(size, dark).expand(batch, size, size, 2)
        page = project(torch.linalg.inv(page_to_picture), grid)
    if options.grid and page is not None:
        shade = uniform((batch,), 0.1, 0.3, dark, generator)
        shade = shade * (uniform((batch,), 0, 1, dark, generator) < options.grid)
        paper = paper - ruled_squares(page, uniform((batch,), 0.04, 0.08, dark, generator), 1.0 / size, shade)
    gray = paper * (1 - dark)
    if options.page_edge and page is not None:
        border = uniform((batch, 1, 1, 1), 0.02, 0.06, dark, generator)
        inside = ((page > border) & (page < 1 - border)).all(-1)
        has_edge = uniform((batch, 1, 1), 0, 1, dark, generator) < options.page_edge
        table = uniform((batch, 1, 1), 0.15, 0.5, dark, generator)
        gray = torch.where(inside | ~has_edge, gray, table)
    if options.shading:
        light = smooth_noise(batch, size, 3, dark, generator).sigmoid()
        gray = gray * (1 - options.shading * light)
    if options.blur:
        gray = blur(gray, size * uniform((batch,), 0, options.blur, dark, generator))
    if options.grain:
        grain = normal(dark.shape, dark, generator)
        fibers = smooth_noise(batch, size, max(2, size // 4), dark, generator)
        gray = gray + options.grain * (0.7 * grain + 0.7 * fibers)
    if options.jpeg:
        gray = jpeg(gray, uniform((batch,), 0, options.jpeg, dark, generator))
    return gray.clamp(0, 1)
