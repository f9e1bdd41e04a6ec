"""Sketches as rows of a model, and the number and the kinds of primitives as its conditioning.

A system is trained with two kinds of conditioning (`systems.system.sample_condition_mask`): all empty rows, or the kind
of every row and nothing else. Rows are not ordered, so the empty ones are put last.

A sketch that fills all rows has no empty row to condition on, and one or two empty rows are too weak: of 16 sketches
that a first model sampled with 8, 10, 12, 13, 14 and 15 primitives, 16, 16, 16, 16, 13 and 8 had as many. With so few
empty rows the kinds are conditioned on instead, those of a training sketch with as many primitives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.noise import uniform
from sketchdnn.diffusion.sampling import Conditioning
from sketchdnn.geometry import Arc, Circle, Kind, Line, Primitive, Sketch
from sketchdnn.representation import SketchBatch, encode, expand, layout
from sketchdnn.systems import RowForm, System, TrainingIndex

from .conditions import Conditions
from .engine import INDEX_BITS

# Numbers of primitives, one a kind.
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
# A noise index that no sampler reaches.
_MIXTURE_NOISE = 2**31 - 2
# With fewer empty rows than this, the kinds are conditioned on instead.
MIN_EMPTY_ROWS = 3
# Smaller primitives, as a fraction of half the frame, collapse in single precision.
_MIN_EXTENT = 1e-6
_KINDS_AND_NONE = np.array([*Kind, layout.NONE])
_ZERO_COUNTS = np.zeros(len(Kind), np.int64)


def choose_conditioning(
    conditions: Conditions, seed: int, noise_ids: Int[Tensor, " batch"], system: System
) -> Conditioning | None:
    """The conditioning of the samples of these noise ids; None without a condition on the number of primitives.

    A range is resolved at random: the choice depends on the seed and the sketch, not on the attempt, and is distributed
    as in the training corpus. A system without conditioning meets conditions by rejection.
    """
    if conditions.primitive_range is None or not system.conditioning_methods:
        return None
    indices = noise_ids & (1 << INDEX_BITS) - 1
    chance = uniform(seed, indices, _MIXTURE_NOISE, (1,))[:, 0].cpu().numpy().astype(np.float64)
    mixtures = _choose_mixtures(conditions, system.training_index, chance)
    counts = mixtures.sum(axis=1)
    by_kind = np.full(len(mixtures), conditions.kinds is not None)
    if system.training_index is not None:
        by_kind |= counts > layout.MAX_PRIMITIVES - MIN_EMPTY_ROWS
    fill = layout.MAX_PRIMITIVES - counts[:, None]
    kinds = np.stack([np.repeat(_KINDS_AND_NONE, row) for row in np.hstack([mixtures, fill])])
    known = by_kind[:, None] | (np.arange(layout.MAX_PRIMITIVES) >= counts[:, None])
    # Where not `by_kind`, the known rows are empty ones, known in all columns.
    whole = torch.from_numpy(known & ~by_kind[:, None]).to(noise_ids.device)
    kind, known_kind = (torch.from_numpy(each).to(noise_ids.device) for each in (kinds, known))
    construction = one_hot(torch.zeros_like(kind), layout.NUM_CONSTRUCTION).float()
    params = construction.new_zeros((*kind.shape, layout.NUM_PARAMS))
    batch = SketchBatch(construction, one_hot(kind, layout.NUM_KINDS).float(), params)
    # The authors' rows leave the construction label of an empty row blank: it cannot be conditioned on.
    known_label = whole if system.rows.none_construction == "one_hot" else torch.zeros_like(whole)
    known_params = whole[..., None].expand_as(params)
    return Conditioning(batch, known_label, known_kind, known_params, system.conditioning_methods[0])


def encode_sketches(sketches: Sequence[Sketch], form: RowForm, device: torch.device | str = "cpu") -> SketchBatch:
    """Sketches in model coordinates as clean rows of the form that a system was trained on."""
    compact = encode(sketches, canonical_lines=form.canonical_lines)
    columns = (torch.from_numpy(part).to(device) for part in (compact.kind, compact.construction, compact.params))
    return expand(*columns, arc_scalar=form.arc_scalar, none_construction=form.none_construction)


def drop_tiny(sketch: Sketch, scale: float) -> Sketch:
    """The primitives of a sketch that are large enough for model coordinates of that scale, without constraints."""
    return Sketch(tuple(p for p in sketch if _extent(p) >= _MIN_EXTENT * scale))


def choose_added_kinds(
    part: Sketch, primitives: int, chance: Floats, index: TrainingIndex | None
) -> list[tuple[Kind, ...]]:
    """The kinds to add to a part to reach a number of primitives, for each uniform random number."""
    present = np.bincount([p.kind for p in part], minlength=len(Kind))
    mixtures = _choose_mixtures(Conditions(primitives=(primitives, primitives)), index, chance, present)
    return [tuple(Kind(kind) for kind in np.repeat(np.array(Kind), mixture - present)) for mixture in mixtures]


def _extent(primitive: Primitive) -> float:
    """What must not vanish in single precision: the distance of a curve's ends, or the radius of a circle."""
    if isinstance(primitive, Line | Arc):
        return math.dist(primitive.start, primitive.end)
    return primitive.radius if isinstance(primitive, Circle) else math.inf


def _choose_mixtures(
    conditions: Conditions, index: TrainingIndex | None, chance: Floats, at_least: Counts = _ZERO_COUNTS
) -> Counts:
    """The number of primitives of each kind, for each uniform random number.

    The candidates are the mixtures of training sketches that meet the conditions, weighted by their frequency. Where
    there are none, all possible mixtures are, and each number of primitives has the same probability.
    """
    mixtures, weights = _candidate_mixtures(conditions, index, at_least)
    cumulative = np.cumsum(weights)
    return np.asarray(mixtures[np.searchsorted(cumulative[:-1], chance * cumulative[-1], side="right")])


def _candidate_mixtures(conditions: Conditions, index: TrainingIndex | None, at_least: Counts) -> tuple[Counts, Floats]:
    low, high = conditions.primitive_range or (0, 0)
    required = conditions.kinds or {}
    if index is not None:
        counts = index.kind_counts.sum(axis=1)
        fits = (counts >= low) & (counts <= high) & (index.kind_counts >= at_least).all(axis=1)
        for kind, number in required.items():
            fits &= index.kind_counts[:, kind] == number
        if fits.any():
            return index.kind_counts[fits], index.frequency[fits].astype(np.float64)
    choices = [(required[kind],) if kind in required else range(int(at_least[kind]), high + 1) for kind in Kind]
    possible = np.array([mixture for mixture in product(*choices) if low <= sum(mixture) <= high], np.int64)
    counts = possible.sum(axis=1)
    return possible, 1 / np.bincount(counts)[counts]
