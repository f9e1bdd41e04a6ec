"""The noise of a hand: a Gaussian process normal to the stroke, or a pen with inertia; ends, breaks and pressure."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from .noise import normal, uniform
from .strokes import Strokes

# Time constants of the pen with inertia: frequency and damping of the spring, as multiples of 1 / the time of a stroke.
_FREQUENCY, _DAMPING = (14.0, 30.0), (0.35, 0.7)
# Forces on the pen along a stroke, and their strength.
_JOLTS, _TREMOR = 24, 400.0


def matern32(length: Tensor, scale: Tensor, samples: int, generator: Generator) -> Tensor:
    """Gaussian processes with a Matérn-3/2 kernel of variance one at equal steps, `batch, prim, sample`.

    The process is Markov in its value and slope, so each sample follows from the one before it. This is exact.

    Args:
        length: The length of each curve, `batch, prim`.
        scale: The length scale of each, broadcast to `length`.
        samples: The number of samples.
        generator: Of the random numbers.
    """
    rate = math.sqrt(3.0) / scale
    step = length / (samples - 1)
    u = rate * step
    # In units where the slope is divided by the rate, the stationary covariance is the identity.
    decay = torch.exp(-u)
    a, b, c, d = decay * (1 + u), decay * u, -decay * u, decay * (1 - u)
    # Variance of the slope first: it never vanishes faster than that of the value.
    vss = (1 - c * c - d * d).clamp_min(1e-12)
    vfs = -(a * c + b * d)
    vff = (1 - a * a - b * b).clamp_min(0)
    root = vss.sqrt()
    cross = vfs / root
    rest = (vff - cross * cross).clamp_min(0).sqrt()
    shape = (*length.shape, samples, 2)
    z = normal(shape, length, generator)
    value, slope = z[..., 0, 0], z[..., 0, 1]
    values = [value]
    for k in range(1, samples):
        zs, zf = z[..., k, 1], z[..., k, 0]
        value, slope = a * value + b * slope + cross * zs + rest * zf, c * value + d * slope + root * zs
        values.append(value)
    return torch.stack(values, dim=-1)


def follow_with_inertia(at: Tensor, amount: Tensor, generator: Generator) -> Tensor:
    """The path of a pen that is a mass on a spring, pulled along a curve at a speed that starts and ends at rest.

    Args:
        at: The curves, `batch, prim, sample, 2`.
        amount: Scale of misplacement and tremor of each sketch, `batch`.
        generator: Of the random numbers.
    """
    batch, prims, samples, _ = at.shape
    frequency = math.pi * uniform((batch, prims, 1), *_FREQUENCY, at, generator)
    damping = uniform((batch, prims, 1), *_DAMPING, at, generator)
    steps = torch.linspace(0, 1, samples, device=at.device, dtype=at.dtype)
    eased = steps * steps * (3 - 2 * steps)
    place = eased * (samples - 1)
    low = place.floor().clamp_max(samples - 2).long()
    target = at[:, :, low] + (at[:, :, low + 1] - at[:, :, low]) * (place - low)[:, None]
    amount = amount[:, None, None]
    target = target + amount[..., None] * normal((batch, prims, 1, 2), at, generator)
    jolts = normal((batch * prims, 2, _JOLTS), at, generator)
    force = torch.nn.functional.interpolate(jolts, samples, mode="linear", align_corners=True)
    force = force.transpose(1, 2).reshape(batch, prims, samples, 2) * (amount * _TREMOR)[..., None]
    dt = 1.0 / (samples - 1)
    # Semi-implicit Euler steps are stable while the frequency times the step is below two.
    position, velocity = target[:, :, 0], torch.zeros_like(target[:, :, 0])
    path = [position]
    for k in range(1, samples):
        pull = frequency**2 * (target[:, :, k] - position) - 2 * damping * frequency * velocity + force[:, :, k]
        velocity = velocity + dt * pull
        position = position + dt * velocity
        path.append(position)
    return torch.stack(path, dim=2)


def stretch_ends(strokes: Strokes, deviation: float, generator: Generator) -> Tensor:
    """Positions with each open stroke lengthened or shortened at its ends along itself, `batch, prim, sample, 2`."""
    at = strokes.at
    share = deviation * normal((*at.shape[:2], 2), at, generator)
    share = torch.minimum(share, 0.3 * strokes.length[..., None])
    share = torch.maximum(share, -0.3 * strokes.length[..., None])
    steps = torch.linspace(0, 1, at.shape[2], device=at.device, dtype=at.dtype)
    first, last = at[:, :, :1], at[:, :, -1:]
    into = torch.nn.functional.normalize(at[:, :, 1:2] - first, dim=-1)
    out = torch.nn.functional.normalize(last - at[:, :, -2:-1], dim=-1)
    # The last tenth of a stroke takes up the change, so that its shape elsewhere stays.
    ramp = ((steps - 0.9) / 0.1).clamp_min(0)[:, None]
    return at + ramp * out * share[..., 1, None, None] - ramp.flip(0) * into * share[..., 0, None, None]


def pressure(strokes: Strokes, scale: Tensor, amount: float, generator: Generator) -> Tensor:
    """Relative width and ink along each stroke, around one, `batch, prim, sample`."""
    samples = strokes.at.shape[2]
    coarse = min(samples, 32)
    process = matern32(strokes.length.clamp_min(1e-3), 0.3 * scale[:, None], coarse, generator)
    smooth = torch.nn.functional.interpolate(process.flatten(0, 1)[:, None], samples, mode="linear", align_corners=True)
    return (1 + amount * smooth[:, 0].reshape(*strokes.length.shape, samples)).clamp(0.4, 1.8)


def breaks(strokes: Strokes, probability: float, generator: Generator) -> Tensor:
    """Which samples are drawn where a stroke may be interrupted once, `batch, prim, sample`."""
    at = strokes.at
    chance = uniform((*at.shape[:2], 3), 0, 1, at, generator)
    middle = 0.2 + 0.6 * chance[..., 1:2]
    half = 0.01 + 0.02 * chance[..., 2:3]
    steps = torch.linspace(0, 1, at.shape[2], device=at.device, dtype=at.dtype)
    is_out = (chance[..., :1] < probability) & ((steps - middle).abs() < half)
    return ~is_out
