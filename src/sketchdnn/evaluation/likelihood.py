"""Bits of the sketches of a split under a system: several figures that must not be mixed up.

| name | meaning |
|---|---|
| `authors` | the estimate of the authors' code; not a bound (docs/equations.md) |
| `density` | bound on −log2 of a density: differential bits, which depend on the unit and on `last_std` |
| `grid` | bound on −log2 of a probability on a grid: comparable with a token model on that grid |
| `grid_set` | `grid` minus log2 of the number of matrices of the same sketch, since row order carries no meaning |
| `tokens` | exact −log2 of the probability of the token sequence on the grid of a token model |

A system that depends on the order of rows (`System.ordered`) gives other orders other probabilities, so nothing is
subtracted: the set is at least as likely as one order of it, and `grid` itself bounds `grid_set`. The same holds for a
token model, whose `grid` is exact and only available on its own grid. Figures that a system cannot give are None.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion.likelihood import (
    Bins,
    Elbo,
    authors_estimate,
    log_arrangements,
    num_primitives,
    reconstruction,
)
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.process import JointProcess
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.batch import SketchBatch, expand, smaller_end_first
from sketchdnn.systems import RowForm, System
from sketchdnn.systems.row_denoiser import RowDenoiser

from .estimates import Estimate, EvaluationError, OnProgress, ignore, mean_estimate, ratio_estimate

DRAWS = 16
BATCH = 256
GRID = Bins(bits=8)
# The reconstruction step is the first whose noise is at least this many cells wide, and on the grid the parameters are
# drawn with this share of that noise. Both were chosen with a first model on 32 validation sketches, as a bound allows:
# noise one cell wide costs 15 bits a sketch more, and shares from 0.5 to 0.7 differ by one bit.
NOISE_IN_CELLS = 0.5
NOISE_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Bits:
    """Means over sketches. Bits per primitive have two divisors, which the paper's table mixes."""

    per_sketch: Estimate
    per_primitive: Estimate  # all bits by all primitives, as the 8.19 = 84.80/10.35 of Vitruvion in the paper's table
    per_row: Estimate  # by all 16 rows, empty ones included: the paper's 5.08 = 81.33/16


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound and its parts in bits per sketch: by term, and by part of a row. Each decomposition adds up to it."""

    bits: Bits
    terms: Mapping[str, Estimate]
    parts: Mapping[str, Estimate]
    last_std: float | None  # of the parameters at the reconstruction step; None if the figure is exact


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """All figures of one system on a set of sketches. Intervals cover the choice of sketches and the draws of t."""

    sketches: int
    mean_primitives: float
    draws: int
    seed: int
    reconstruction_step: int | None  # None if the figure is exact
    grid_levels: int  # from −1 to 1 by default, the outermost cells open
    authors: Bits | None
    density: Bound | None
    grid: Bound | None
    grid_set: Bits | None
    tokens: Bits | None = None


def measure_likelihood(
    system: System,
    compact: Compact,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    batch: int = BATCH,
    grid: Bins = GRID,
    on_progress: OnProgress = ignore,
) -> Likelihoods:
    """Bound the likelihood of sketches, on the device of the system, from `draws` steps t per sketch.

    Noise and steps depend on the index of a sketch, so `batch` only affects the memory used.

    Raises:
        EvaluationError: For sketches without a likelihood, or a system that cannot compute one.
    """
    _check(compact, draws, batch)
    device = next(system.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    steps = system.draw_steps(len(compact), draws, generator, width=NOISE_IN_CELLS * _cell_width(grid))
    calls, total = itertools.count(1), math.ceil(len(compact) / batch) * (2 * draws + 3)

    def counted(noise: NoiseSource) -> NoiseSource:
        """Report progress with every call for noise, which precedes every call of the network."""

        def draw(number: int) -> SketchBatch:
            on_progress(min(1.0, next(calls) / total))
            return noise(number)

        return draw

    results: list[_Nats] = []
    for first in range(0, len(compact), batch):
        x0 = clean_batch(compact[first : first + batch], system.rows, device)
        index = slice(first, first + len(x0))
        part = None if steps is None else replace(steps, t=steps.t[:, index], count=steps.count[:, index].to(device))
        noise = counted(seeded_noise(seed, torch.arange(first, index.stop, device=device)))
        with torch.no_grad():
            results.append(_measure_batch(system, x0, noise, part, grid))
    on_progress(1.0)
    primitives, orders, on_grid, density, authors = zip(*results, strict=True)
    if not any(isinstance(nats, Elbo | Tensor) for nats in (*on_grid, *density)):
        raise EvaluationError(f"a '{system.name}' cannot compute the likelihood of a sketch")
    counts = torch.cat(primitives).cpu()
    bound = _bound(on_grid, counts)
    arrangements = 0.0 if system.ordered else torch.cat(orders).cpu()
    exact = not isinstance(density[0], Elbo)
    return Likelihoods(
        sketches=len(compact),
        mean_primitives=float(counts.double().mean()),
        draws=draws if steps is not None else 0,
        seed=seed,
        reconstruction_step=None if steps is None else steps.read_at,
        grid_levels=grid.levels,
        authors=_total_bits(authors, counts),
        density=None if exact else _bound(density, counts),
        grid=bound,
        grid_set=None if bound is None else _bits(_join_nats(on_grid) - arrangements, counts),
        tokens=_total_bits(density, counts) if exact else None,
    )


_BoundOrNats = Elbo | Tensor | None


class _Nats(NamedTuple):
    """The likelihoods of a batch: bounds with their terms, or exact nats."""

    primitives: Int[Tensor, " sketch"]
    arrangements: Float[Tensor, " sketch"]
    grid: _BoundOrNats
    density: _BoundOrNats
    authors: Float[Tensor, " sketch"] | None = None


def _measure_batch(system: System, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, grid: Bins) -> _Nats:
    counts = num_primitives(x0), log_arrangements(x0, grid)
    if not isinstance(system, RowDenoiser) or steps is None:
        return _Nats(*counts, system.likelihood(x0, noise, steps, bins=grid), system.likelihood(x0, noise, steps))
    # The terms that density and grid share are computed once.
    process, step = system.process, steps.read_at
    variance = float(process.params.var[step])
    bound = system.likelihood(x0, noise, steps, bins=grid, last_variance=NOISE_SHARE**2 * variance)
    continuous = reconstruction(system.denoise, process, x0, noise(0), variance, step, None)
    density = replace(bound, reconstruction=continuous, last_variance=variance)
    if not isinstance(process, JointProcess):
        return _Nats(*counts, bound, density)
    return _Nats(*counts, bound, density, authors_estimate(system.denoise, process, x0, noise, steps).total)


def clean_batch(compact: Compact, form: RowForm, device: torch.device | str = "cpu") -> SketchBatch:
    """Sketches as the clean batch x0 that a system is trained on."""
    kind, construction, params = (
        torch.from_numpy(np.array(array)).to(device) for array in (compact.kind, compact.construction, compact.params)
    )
    if form.canonical_lines:
        params = smaller_end_first(kind, params)
    return expand(kind, construction, params, arc_scalar=form.arc_scalar, none_construction=form.none_construction)


def _check(compact: Compact, draws: int, batch: int) -> None:
    if len(compact) < 2:
        raise EvaluationError(f"a likelihood needs two sketches at least to have an interval, not {len(compact)}")
    if draws < 1 or batch < 1:
        raise EvaluationError(f"draws and batch must be at least 1, not {draws} and {batch}")
    if compact.kind.shape[1] != layout.MAX_PRIMITIVES:
        raise EvaluationError(f"sketches must come in {layout.MAX_PRIMITIVES} rows, not {compact.kind.shape[1]}")
    if not np.isfinite(compact.params).all():
        raise EvaluationError("a sketch holds numbers that are not finite: it has no likelihood")
    if (compact.counts == 0).any():
        raise EvaluationError("a sketch without a primitive has no bits per primitive; leave it out")


def _cell_width(grid: Bins) -> float:
    """The cell width of the narrowest column."""
    low, high = torch.as_tensor(grid.low), torch.as_tensor(grid.high)
    return float((high - low).min()) / grid.levels


def _bound(results: Sequence[_BoundOrNats], counts: Int[Tensor, " sketch"]) -> Bound | None:
    """The bound over all batches, with terms and parts if the batches have them."""
    bounds = [result for result in results if isinstance(result, Elbo)]
    if not bounds:
        exact = _total_bits(results, counts)
        return None if exact is None else Bound(exact, {}, {}, None)
    names = ("prior", "diffusion", "reconstruction")
    terms = {name: _mean_bits(torch.cat([getattr(bound, name).total for bound in bounds]).cpu()) for name in names}
    parts = {}
    for part in ("construction", "kind", "params"):
        sums = [sum(getattr(getattr(bound, name), part) for name in names) for bound in bounds]
        parts[part] = _mean_bits(torch.cat(sums).cpu())
    return Bound(_bits(_join_nats(results), counts), terms, parts, math.sqrt(bounds[0].last_variance))


def _total_bits(results: Sequence[_BoundOrNats], counts: Int[Tensor, " sketch"]) -> Bits | None:
    return None if any(result is None for result in results) else _bits(_join_nats(results), counts)


def _join_nats(results: Sequence[_BoundOrNats]) -> Float[Tensor, " sketch"]:
    nats = [result.nats if isinstance(result, Elbo) else result for result in results]
    return torch.cat([part for part in nats if part is not None]).cpu()


def _bits(nats: Float[Tensor, " sketch"], counts: Int[Tensor, " sketch"]) -> Bits:
    per_primitive = ratio_estimate((nats / math.log(2)).numpy(), counts.numpy())
    return Bits(_mean_bits(nats), per_primitive, _mean_bits(nats / layout.MAX_PRIMITIVES))


def _mean_bits(nats: Float[Tensor, " sketch"]) -> Estimate:
    return mean_estimate((nats / math.log(2)).numpy())
