"""The syntax of token models: the vocabulary, the legal tokens at each place, and the values of the levels.

A primitive is its kind, its construction flag and its numbers; a sketch is primitives and a stop token. Each sort of
token has a *place*, and each place has one successor, so legality is a table.

Numbers are quantized to 64 levels that are 1/30 apart, with 0 in the middle of one; so are ±1, halves, thirds and
tenths, and for sweeps the semicircle and the quarter. 0.6 % of the coordinates of the real corpus are within a
thousandth of a cell's border; with 64 cells that end at ±1 it would be 25 %, and 67 % of sweeps. 61 levels lie in the
box. The cells are `Bins(bits=6, low=LOW, high=HIGH)`, so that the bits of a diffusion model on this grid can be
compared. Levels that no row can have (a negative radius, a sweep beyond 2π) are illegal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout

# Arcs by ends and sweep, as in rows, or by start, middle and end, as in Vitruvion.
ArcTokens = Literal["sweep", "points"]

LEVEL_BITS = 6
LEVELS = 1 << LEVEL_BITS
MIDDLE = LEVELS // 2  # the level of 0
STEP = 1 / 30
LOW, HIGH = (-MIDDLE - 0.5) * STEP, (LEVELS - MIDDLE - 0.5) * STEP

# Values: the levels, then the kinds with NONE for stop, then the two flags. START precedes the first token.
FIRST_KIND = LEVELS
STOP = FIRST_KIND + layout.NONE
FIRST_FLAG = STOP + 1
NUM_VALUES = FIRST_FLAG + layout.NUM_CONSTRUCTION
START = NUM_VALUES

KIND_PLACE = 0
_POINT_NAMES = ("x1", "y1", "x", "y", "x2", "y2")


class Place(NamedTuple):
    """A sort of token: "kind", the "construction" flag of a kind, or one of its numbers."""

    kind: Kind | None
    name: str


@dataclass(frozen=True, slots=True)
class Syntax:
    """The tables of one syntax. At the last place, `end`, only stop is legal.

    `after` is the successor of a flag or a number, `first` the successor of a kind (or stop).
    """

    places: tuple[Place, ...]
    arcs: ArcTokens
    legal: Bool[Tensor, "place value"]
    after: Int[Tensor, " place"]
    first: Int[Tensor, " kind"]
    lowest: Int[Tensor, " number"]
    highest: Int[Tensor, " number"]
    level_values: Float[Tensor, "number level"]

    @property
    def end(self) -> int:
        return len(self.places)

    @property
    def names(self) -> dict[Kind, tuple[str, ...]]:
        """The numbers of each kind, in order."""
        return number_names(self.arcs)

    @property
    def longest(self) -> int:
        """The largest number of tokens of a primitive."""
        return 2 + max(map(len, self.names.values()))

    def length(self, rows: int) -> int:
        """The largest number of tokens of a sketch with that many rows, including stop."""
        return rows * self.longest + 1

    def to(self, device: torch.device | str) -> Syntax:
        return replace(
            self,
            legal=self.legal.to(device),
            after=self.after.to(device),
            first=self.first.to(device),
            lowest=self.lowest.to(device),
            highest=self.highest.to(device),
            level_values=self.level_values.to(device),
        )


def number_names(arcs: ArcTokens) -> dict[Kind, tuple[str, ...]]:
    """The numbers of each kind: those of rows, or three points for an arc."""
    return {kind: _POINT_NAMES if kind is Kind.ARC and arcs == "points" else layout.PARAM_NAMES[kind] for kind in Kind}


def make_syntax(arcs: ArcTokens) -> Syntax:
    """The syntax, on the CPU."""
    names = number_names(arcs)
    places = [Place(None, "kind")]
    for kind in Kind:
        places += [Place(kind, "construction"), *(Place(kind, name) for name in names[kind])]
    end = len(places)
    number_places = [place for place in places if place.name not in ("kind", "construction")]
    ranges = [_range(place.name) for place in number_places]

    legal = torch.zeros(end + 1, NUM_VALUES, dtype=torch.bool)
    after = torch.full((end + 1,), end)
    first = torch.full((layout.NUM_KINDS,), end)
    for index, place in enumerate(places):
        if place.kind is None:
            legal[index, FIRST_KIND : STOP + 1] = True
            continue
        after[index] = KIND_PLACE if place.name == names[place.kind][-1] else index + 1
        if place.name == "construction":
            first[place.kind] = index
            legal[index, FIRST_FLAG:] = True
        else:
            lowest, highest = _range(place.name)
            legal[index, lowest : highest + 1] = True
    legal[end, STOP] = True
    return Syntax(
        tuple(places),
        arcs,
        legal,
        after,
        first,
        lowest=torch.tensor([low for low, _ in ranges]),
        highest=torch.tensor([high for _, high in ranges]),
        level_values=torch.stack([_level_values(place.name) for place in number_places]),
    )


def _range(name: str) -> tuple[int, int]:
    """The smallest and the largest level of a number."""
    if name == "radius":
        return MIDDLE, LEVELS - 1
    if name == "bend":
        return MIDDLE - round(1 / STEP), MIDDLE + round(1 / STEP)
    return 0, LEVELS - 1


def _level_values(name: str) -> Float[Tensor, " level"]:
    """The value of each level: the middle of its cell, or of the valid part of the cell."""
    middle = (torch.arange(LEVELS, dtype=torch.float64) - MIDDLE) * STEP
    bounds = {"radius": (0.0, HIGH), "bend": (-1.0, 1.0)}.get(name)
    if bounds is not None:
        middle = ((middle - STEP / 2).clamp(*bounds) + (middle + STEP / 2).clamp(*bounds)) / 2
    return middle.float()
