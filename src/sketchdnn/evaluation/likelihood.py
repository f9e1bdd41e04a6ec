"""How many bits a system needs for the sketches of a split: three figures that must not be mistaken for one another.

| name | what it is |
|---|---|
| `authors` | the estimate of the authors' code; it bounds nothing (docs/equations.md) |
| `density` | the bound on −log2 of a density: differential bits, which move with the unit and with `last_std` |
| `grid` | the bound on −log2 of a probability on a grid: the figure to compare with a model of tokens on that grid |
| `grid_set` | `grid` less log2 of the number of matrices that hold the same sketch, since order carries no meaning |
| `tokens` | of a model of tokens, exactly: −log2 of the probability of the sequence, on its own grid |

A system that knows the order of rows (`System.ordered`) gives other orders other probabilities, and nothing can be
taken off: the set is at least as likely as this order of it, so `grid` itself bounds `grid_set`. So it is with a model
of tokens, whose `grid` is exact, and there only if the grid is its own. What a system cannot say is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.codec import expand, smaller_end_first
from sketchdnn.systems import RowForm, System
from sketchdnn.systems.row_denoiser import RowDenoiser

from .estimate import Estimate, EvaluationError, mean_estimate, ratio_estimate

DRAWS = 16
BATCH = 256
GRID = Bins(bits=8)
# The sketch is read off at the first step whose noise is at least this many cells wide, and on the grid its parameters
# are drawn with this share of that noise. Both were chosen with a first model on 32 validation sketches, as a bound
# allows: noise one cell wide costs 15 bits a sketch more, and shares from 0.5 to 0.7 differ by one.
NOISE_IN_CELLS = 0.5
SHARE_OF_NOISE = 0.6


@dataclass(frozen=True, slots=True)
class Bits:
    """Means over sketches. Bits a primitive come by two divisors, which the paper's table mixes."""

    per_sketch: Estimate
    per_primitive: Estimate  # all bits by all primitives, as the 8.19 = 84.80/10.35 of Vitruvion in the paper's table
    per_row: Estimate  # by all 16 rows, empty ones included: the paper's 5.08 = 81.33/16


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound, and what it is made of in bits per sketch: by term, and by part of a row. Each way adds up to it."""

    bits: Bits
    terms: Mapping[str, Estimate]
    parts: Mapping[str, Estimate]
    last_std: float | None  # of the parameters when the sketch is read off; none if nothing is bounded, but exact


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """All figures of one system on some sketches. Intervals hold the choice of sketches and the draws of t."""

    sketches: int
    mean_primitives: float
    draws: int
    seed: int
    read_at: int | None  # none if it is exact
    grid_levels: int  # between −1 and 1 unless told, the outermost cells open
    authors: Bits | None
    density: Bound | None
    grid: Bound | None
    grid_set: Bits | None
    tokens: Bits | None = None


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
    _check(compact, draws, batch)
    device = next(system.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    steps = system.draw_steps(len(compact), draws, generator, width=NOISE_IN_CELLS * _cell(grid))
    tick = _ticker(on_progress, math.ceil(len(compact) / batch) * (2 * draws + 3))

    found: list[_Found] = []
    for first in range(0, len(compact), batch):
        x0 = clean_rows(compact[first : first + batch], system.rows, device)
        places = slice(first, first + len(x0))
        some = None if steps is None else replace(steps, t=steps.t[:, places], count=steps.count[:, places].to(device))
        noise = _heard(seeded_noise(seed, torch.arange(first, places.stop, device=device)), tick)
        with torch.no_grad():
            found.append(_look(system, x0, noise, some, grid))
    on_progress(1.0)
    if all(one.grid is None and one.density is None for one in found):
        raise EvaluationError(f"a '{system.name}' cannot say how likely a sketch is")

    counts = torch.cat([one.primitives for one in found]).cpu()
    on_grid, density, authors = ([getattr(one, name) for one in found] for name in ("grid", "density", "authors"))
    bound = _bound(on_grid, counts)
    off = 0.0 if system.ordered else torch.cat([one.arrangements for one in found]).cpu()
    exact = not isinstance(found[0].density, Elbo)
    return Likelihoods(
        sketches=len(compact),
        mean_primitives=float(counts.double().mean()),
        draws=draws if steps is not None else 0,
        seed=seed,
        read_at=None if steps is None else steps.read_at,
        grid_levels=grid.levels,
        authors=_summed(authors, counts),
        density=None if exact else _bound(density, counts),
        grid=bound,
        grid_set=None if bound is None else _bits(_nats(on_grid) - off, counts),
        tokens=_summed(density, counts) if exact else None,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a system says of some sketches: bounds with their terms, or exact nats."""

    primitives: Int[Tensor, " sketch"]
    arrangements: Float[Tensor, " sketch"]
    grid: _Said
    density: _Said
    authors: Float[Tensor, " sketch"] | None = None


_Said = Elbo | Tensor | None


def _look(system: System, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, grid: Bins) -> _Found:
    counted = num_primitives(x0), log_arrangements(x0, grid)
    if not isinstance(system, RowDenoiser) or steps is None:
        on_grid = system.likelihood(x0, noise, steps, bins=grid)
        return _Found(*counted, on_grid, system.likelihood(x0, noise, steps))
    # A denoiser is asked once for what its density and its grid share.
    process, read_at = system.process, steps.read_at
    variance = float(process.params.var[read_at])
    bound = system.bound(x0, noise, steps, bins=grid, last_variance=SHARE_OF_NOISE**2 * variance)
    plain = reconstruction(system.denoise, process, x0, noise(0), variance, read_at=read_at)
    density = replace(bound, reconstruction=plain, last_variance=variance)
    if not isinstance(process, JointProcess):
        return _Found(*counted, bound, density)
    return _Found(*counted, bound, density, authors_estimate(system.denoise, process, x0, noise, steps).total)


def clean_rows(compact: Compact, form: RowForm, device: torch.device | str = "cpu") -> SketchBatch:
    """Sketches as a system was trained to see them."""
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
        raise EvaluationError("a sketch without a primitive has no bits a primitive; leave it out")


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


def _bound(found: list[_Said], counts: Int[Tensor, " sketch"]) -> Bound | None:
    """What the batches say together, by term and part where it is a sum of them."""
    bounds = [one for one in found if isinstance(one, Elbo)]
    if not bounds:
        exact = _summed(found, counts)
        return None if exact is None else Bound(exact, {}, {}, None)
    terms = {
        name: torch.cat([getattr(one, name).total for one in bounds]).cpu()
        for name in ("prior", "diffusion", "reconstruction")
    }
    parts = {
        name: torch.cat(
            [sum(getattr(term, name) for term in (one.prior, one.diffusion, one.reconstruction)) for one in bounds]
        ).cpu()
        for name in ("construction", "kind", "params")
    }
    return Bound(
        _bits(_nats(found), counts),
        {name: _mean_bits(nats) for name, nats in terms.items()},
        {name: _mean_bits(nats) for name, nats in parts.items()},
        math.sqrt(bounds[0].last_variance),
    )


def _summed(found: list[_Said], counts: Int[Tensor, " sketch"]) -> Bits | None:
    return None if any(one is None for one in found) else _bits(_nats(found), counts)


def _nats(found: list[_Said]) -> Float[Tensor, " sketch"]:
    nats = [one.nats if isinstance(one, Elbo) else one for one in found]
    return torch.cat([one for one in nats if one is not None]).cpu()


def _bits(nats: Float[Tensor, " sketch"], counts: Int[Tensor, " sketch"]) -> Bits:
    per_primitive = ratio_estimate((nats / math.log(2)).numpy(), counts.numpy())
    return Bits(_mean_bits(nats), per_primitive, _mean_bits(nats / layout.MAX_PRIMITIVES))


def _mean_bits(nats: Float[Tensor, " sketch"]) -> Estimate:
    return mean_estimate((nats / math.log(2)).numpy())
