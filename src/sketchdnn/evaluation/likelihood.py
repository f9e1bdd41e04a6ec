"""How many bits a system needs for the sketches of a split: three figures that must not be mistaken for one another.

| name | what it is |
|---|---|
| `authors` | the estimate of the authors' code; it bounds nothing (docs/equations.md) |
| `density` | the bound on −log2 of a density: differential bits, which move with the unit and with `last_std` |
| `grid` | the bound on −log2 of a probability on a grid: the figure to compare with a model of tokens on that grid |
| `grid_set` | `grid` less log2 of the number of matrices that hold the same sketch, since order carries no meaning |

A model of tokens in one canonical order already models the set: its figure stands beside `grid_set`. One that is
trained on any order pays log2 n! more, and stands beside neither unless that is taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.bits import log_arrangements, num_primitives
from sketchdnn.diffusion.likelihood import Elbo, Parts, authors_estimate, elbo, reconstruction
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.process import JointProcess
from sketchdnn.diffusion.step_draws import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import expand, smaller_end_first
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems import RowForm, System

from .estimate import Estimate, EvaluationError, mean_estimate

DRAWS = 16
BATCH = 256
GRID = Bins(bits=8)
# The sketch is read off at the first step whose noise is at least this many cells wide, and on the grid its parameters
# are drawn with this share of that noise. Both were chosen with the bundled model on 32 validation sketches, as a bound
# allows: noise one cell wide costs 15 bits a sketch more, and shares from 0.5 to 0.7 differ by one.
NOISE_IN_CELLS = 0.5
SHARE_OF_NOISE = 0.6


@dataclass(frozen=True, slots=True)
class Bits:
    """Means over sketches. Bits a primitive come by two divisors, which the paper's table mixes."""

    per_sketch: Estimate
    per_primitive: Estimate  # each sketch by its own number of primitives
    per_row: Estimate  # by all 16 rows, empty ones included: the paper's 5.08 = 81.33/16


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound, and what it is made of in bits per sketch: by term, and by part of a row. Each way adds up to it."""

    bits: Bits
    terms: Mapping[str, Estimate]
    parts: Mapping[str, Estimate]
    last_std: float  # of the parameters when the sketch is read off


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """All figures of one system on some sketches. Intervals hold the choice of sketches and the draws of t."""

    sketches: int
    mean_primitives: float
    draws: int
    seed: int
    read_at: int
    grid_levels: int  # between −1 and 1, the outermost cells open
    authors: Bits
    density: Bound
    grid: Bound
    grid_set: Bits


@runtime_checkable
class Denoising(Protocol):
    """What a system needs to be bounded here: a denoiser, and the process that it reverses."""

    process: JointProcess

    @property
    def rows(self) -> RowForm: ...

    def denoise(self, batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction: ...


def likelihood(
    system: System,
    compact: Compact,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    batch: int = BATCH,
    grid: Bins = GRID,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Likelihoods:
    """Bound these sketches, on the device that the system is on, from `draws` steps t for each of them.

    Noise and steps belong to a sketch's place, so `batch` only decides how much memory is used.
    """
    model = _check(system, compact, draws, batch)
    device = next(system.parameters()).device
    process = model.process
    read_at = step_as_noisy_as(process, NOISE_IN_CELLS * _cell(grid))
    variance = float(process.params.var[read_at])
    generator = torch.Generator().manual_seed(seed)
    steps = draw_steps(process.to("cpu"), len(compact), draws, generator, read_at=read_at)
    tick = _ticker(on_progress, math.ceil(len(compact) / batch) * (2 * draws + 3))

    found: list[tuple[SketchBatch, Parts, Elbo, Elbo]] = []
    for first in range(0, len(compact), batch):
        x0 = clean_rows(compact[first : first + batch], model.rows, device)
        places = slice(first, first + len(x0))
        some = StepDraws(steps.t[:, places], steps.count[:, places].to(device), read_at)
        noise = _heard(seeded_noise(seed, torch.arange(first, places.stop, device=device)), tick)
        with torch.no_grad():
            on_grid = elbo(
                model.denoise, process, x0, noise, some, bins=grid, last_variance=SHARE_OF_NOISE**2 * variance
            )
            plain = reconstruction(model.denoise, process, x0, noise(0), variance, read_at=read_at)
            authors = authors_estimate(model.denoise, process, x0, noise, some)
        found.append((x0, authors, replace(on_grid, reconstruction=plain, last_variance=variance), on_grid))

    counts = torch.cat([num_primitives(x0) for x0, *_ in found]).cpu()
    arrangements = torch.cat([log_arrangements(x0, grid) for x0, *_ in found]).cpu()
    on_grid_nats = torch.cat([one.nats for *_, one in found]).cpu()
    return Likelihoods(
        sketches=len(compact),
        mean_primitives=float(counts.double().mean()),
        draws=draws,
        seed=seed,
        read_at=read_at,
        grid_levels=grid.levels,
        authors=_bits(torch.cat([parts.total for _, parts, *_ in found]).cpu(), counts),
        density=_bound([one for *_, one, _ in found], counts),
        grid=_bound([one for *_, one in found], counts),
        grid_set=_bits(on_grid_nats - arrangements, counts),
    )


def clean_rows(compact: Compact, form: RowForm, device: torch.device | str = "cpu") -> SketchBatch:
    """Sketches as a system was trained to see them."""
    kind, construction, params = (
        torch.from_numpy(np.array(array)).to(device) for array in (compact.kind, compact.construction, compact.params)
    )
    if form.canonical_lines:
        params = smaller_end_first(kind, params)
    return expand(kind, construction, params, arc_scalar=form.arc_scalar, none_construction=form.none_construction)


def _check(system: System, compact: Compact, draws: int, batch: int) -> Denoising:
    if not isinstance(system, Denoising):
        raise EvaluationError(f"a '{system.name}' does not denoise, so its likelihood cannot be bounded this way")
    if len(compact) < 2:
        raise EvaluationError(f"a likelihood needs two sketches at least to have an interval, not {len(compact)}")
    if draws < 1 or batch < 1:
        raise EvaluationError(f"draws and batch must be at least 1, not {draws} and {batch}")
    if compact.kind.shape[1] != layout.MAX_PRIMITIVES:
        raise EvaluationError(f"sketches must come in {layout.MAX_PRIMITIVES} rows, not {compact.kind.shape[1]}")
    if not np.isfinite(compact.params).all():
        raise EvaluationError("a sketch holds numbers that are not finite: it has no likelihood")
    if (compact.counts == 0).any():
        raise EvaluationError("a sketch without a primitive has no bits a primitive; leave it out")
    return system


def _cell(grid: Bins) -> float:
    """The width of the narrowest column's cells."""
    low, high = torch.as_tensor(grid.low), torch.as_tensor(grid.high)
    return float((high - low).min()) / grid.levels


def _ticker(on_progress: Callable[[float], None], total: int) -> Callable[[], None]:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        on_progress(min(1.0, done / total))

    return tick


def _heard(noise: NoiseSource, tick: Callable[[], None]) -> NoiseSource:
    """Every call of the network asks for noise first, so that is where progress is heard."""

    def draw(number: int) -> SketchBatch:
        tick()
        return noise(number)

    return draw


def _bound(found: list[Elbo], counts: Int[Tensor, " sketch"]) -> Bound:
    """What the batches say together."""
    terms = {
        name: torch.cat([getattr(one, name).total for one in found]).cpu()
        for name in ("prior", "diffusion", "reconstruction")
    }
    parts = {
        name: torch.cat(
            [sum(getattr(term, name) for term in (one.prior, one.diffusion, one.reconstruction)) for one in found]
        ).cpu()
        for name in ("construction", "kind", "params")
    }
    return Bound(
        _bits(torch.cat([one.nats for one in found]).cpu(), counts),
        {name: _mean_bits(nats) for name, nats in terms.items()},
        {name: _mean_bits(nats) for name, nats in parts.items()},
        math.sqrt(found[0].last_variance),
    )


def _bits(nats: Float[Tensor, " sketch"], counts: Int[Tensor, " sketch"]) -> Bits:
    return Bits(_mean_bits(nats), _mean_bits(nats / counts), _mean_bits(nats / layout.MAX_PRIMITIVES))


def _mean_bits(nats: Float[Tensor, " sketch"]) -> Estimate:
    return mean_estimate((nats / math.log(2)).numpy())
