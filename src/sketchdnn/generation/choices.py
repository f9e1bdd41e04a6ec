"""What the model is told before it draws: which rows stay empty, or of which kind each row is.

Training showed it both (`systems.system.sample_condition_mask`): all empty rows as they are, or the kind of every row
and nothing else. The order of rows means nothing to it, so empty ones come last.

A sketch that fills all rows has no empty one to show, and one or two are easily taken for rows that happen to be known:
of 16 sketches that a first model was asked to draw with 8, 10, 12, 13, 14 and 15 primitives, 16, 16, 16, 16, 13 and 8
had them. With so few empty rows the kinds are given instead, those of some training sketch with as many primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.conditioning import Conditioning
from sketchdnn.diffusion.noise import uniform
from sketchdnn.geometry import Kind, Sketch
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import System, TrainingIndex

from .conditions import Conditions
from .engine import NUMBER_BITS

# A draw of noise that no walk comes to.
CHOICE_DRAW = 2**31 - 2
# Fewer empty rows than this are not enough to tell the model by.
ENOUGH_EMPTY = 3
_WITH_NONE = np.array([*Kind, layout.NONE])
_NOTHING = (0,) * len(Kind)


def given_for(
    conditions: Conditions,
    seed: int,
    numbers: Int[Tensor, " batch"],
    system: System,
    rows: int = layout.MAX_PRIMITIVES,
) -> Conditioning | None:
    """What is given of the sketches of these numbers, with or without their attempts; None if nothing is.

    A system that can be given nothing has to draw until the conditions are met.
    """
    if conditions.count is None or not system.conditioning_methods:
        return None
    # Without the attempt: what was chosen for a sketch stays when it is drawn again.
    own = numbers & (1 << NUMBER_BITS) - 1
    chance = uniform(seed, own, CHOICE_DRAW, (1,))[:, 0].cpu().numpy().astype(np.float64)
    chosen = _chosen(*_mixtures(conditions, system.training_index), chance)
    count = chosen.sum(axis=1)
    by_kind = np.full(len(chosen), conditions.kinds is not None)
    if system.training_index is not None:
        by_kind |= count > rows - ENOUGH_EMPTY
    row = np.arange(rows)
    kinds = np.stack([np.repeat(_WITH_NONE, [*mixture, rows - mixture.sum()]) for mixture in chosen])
    return _given(kinds, by_kind[:, None] | (row >= count[:, None]), by_kind, system, numbers.device)


def kinds_beside(
    part: Sketch, primitives: int, chance: NDArray[np.float64], known: TrainingIndex | None
) -> list[tuple[Kind, ...]]:
    """The kinds of what is to be added to a part until there are so many primitives, for each uniform number."""
    has = np.bincount([p.kind for p in part], minlength=len(Kind))
    chosen = _chosen(*_mixtures(Conditions(primitives=(primitives, primitives)), known, has), chance)
    return [tuple(Kind(kind) for kind in np.repeat(np.array(Kind), mixture - has)) for mixture in chosen]


def _chosen(mixtures: NDArray[np.int64], often: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
    """A mixture for each uniform number, as often as it is to be."""
    rising = np.cumsum(often)
    chosen: NDArray[np.int64] = mixtures[np.searchsorted(rising[:-1], chance * rising[-1], side="right")]
    return chosen


def _mixtures(
    conditions: Conditions, known: TrainingIndex | None, least: Sequence[int] | NDArray[np.int64] = _NOTHING
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many of each kind, at `least` so many, a sketch may hold, and how often it is to be so.

    Those of training sketches that meet the conditions; where none does, all that do, each number of primitives as
    likely as another.
    """
    low, high = conditions.count or (0, 0)
    named = conditions.kinds or {}
    if known is not None:
        counts = known.mixtures.sum(axis=1)
        fits = (counts >= low) & (counts <= high) & (known.mixtures >= least).all(axis=1)
        for kind, number in named.items():
            fits &= known.mixtures[:, kind] == number
        if fits.any():
            return known.mixtures[fits], known.often[fits].astype(np.float64)
    ways = [(named[kind],) if kind in named else range(int(least[kind]), high + 1) for kind in Kind]
    possible = np.array([way for way in product(*ways) if low <= sum(way) <= high], np.int64)
    counts = possible.sum(axis=1)
    return possible, 1 / np.bincount(counts)[counts]


def _given(
    kinds: NDArray[np.int64],
    told: NDArray[np.bool_],
    by_kind: NDArray[np.bool_],
    system: System,
    device: torch.device,
) -> Conditioning:
    """The kind of told rows is given; where that is not all there is to tell, they are empty, and given wholly."""
    kind, known = torch.from_numpy(kinds).to(device), torch.from_numpy(told).to(device)
    whole = known & ~torch.from_numpy(by_kind).to(device)[:, None]
    flags = one_hot(torch.zeros_like(kind), layout.NUM_CONSTRUCTION).float()
    params = flags.new_zeros((*kind.shape, layout.NUM_PARAMS))
    batch = SketchBatch(flags, one_hot(kind, layout.NUM_KINDS).float(), params)
    # The authors leave the flag of an empty row blank: then there is nothing to be told about it.
    flag = whole if system.rows.none_construction == "one_hot" else torch.zeros_like(whole)
    return Conditioning(batch, flag, known, whole[..., None].expand_as(params), system.conditioning_methods[0])
