"""Sketches as token sequences: the vocabulary, the legal tokens at each place, and conversion from rows and back.

A primitive is its kind, its construction flag and its numbers; a sketch is primitives and a stop token. Each sort of
token has a *place*, and each place has one successor, so legality is a table.

Numbers are quantized to 64 levels that are 1/30 apart, with 0 in the middle of one; so are ±1, halves, thirds and
tenths, and for sweeps the semicircle and the quarter. 0.6 % of the coordinates of the real corpus are within a
thousandth of a cell's border; with 64 cells that end at ±1 it would be 25 %, and 67 % of sweeps. 61 levels lie in the
box. The cells are `Bins(bits=6, low=LOW, high=HIGH)`, so that the bits of a diffusion model on this grid can be
compared. Levels that no row can have (a negative radius, a sweep beyond 2π) are illegal.

*Slots* are the form between rows and sequences: a matrix with one column per place of the syntax and one row per
primitive. A primitive fills the columns of its kind. A sequence is the filled slots followed by the stop token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.diffusion.likelihood import Bins
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, relevant

# Arcs by ends and sweep, as in rows, or by start, middle and end, as in Vitruvion.
ArcTokens = Literal["sweep", "points"]

LEVEL_BITS = 6
LEVELS = 1 << LEVEL_BITS
MIDDLE = LEVELS // 2  # the level of 0
STEP = 1 / 30
LOW, HIGH = (-MIDDLE - 0.5) * STEP, (LEVELS - MIDDLE - 0.5) * STEP
# The cells of the levels.
TOKEN_GRID = Bins(bits=LEVEL_BITS, low=LOW, high=HIGH)

# Values: the levels, then the kinds with NONE for stop, then the two flags. START precedes the first token.
FIRST_KIND = LEVELS
STOP = FIRST_KIND + layout.NONE
FIRST_FLAG = STOP + 1
NUM_VALUES = FIRST_FLAG + layout.NUM_CONSTRUCTION
START = NUM_VALUES

KIND_PLACE = 0


class Place(NamedTuple):
    """A sort of token: "kind", the "construction" flag of a kind, or one of its numbers."""

    kind: Kind | None
    name: str


@dataclass(frozen=True, slots=True)
class Syntax:
    """The tables of one syntax. At the last place, `end`, only stop is legal.

    `names` are the numbers of each kind, in order. `after` is the successor of a flag or a number, `first` the
    successor of a kind (or stop).
    """

    places: tuple[Place, ...]
    arcs: ArcTokens
    names: Mapping[Kind, tuple[str, ...]]
    legal: Bool[Tensor, "place value"]
    after: Int[Tensor, " place"]
    first: Int[Tensor, " kind"]
    lowest: Int[Tensor, " number"]
    highest: Int[Tensor, " number"]
    level_values: Float[Tensor, "number level"]

    @property
    def end(self) -> int:
        return len(self.places)

    def length(self, rows: int) -> int:
        """The largest number of tokens of a sketch with that many rows, including stop."""
        return rows * (2 + max(map(len, self.names.values()))) + 1

    def to(self, device: torch.device | str) -> Syntax:
        tables = ((field.name, getattr(self, field.name)) for field in fields(self))
        moved: dict[str, Any] = {name: table.to(device) for name, table in tables if isinstance(table, Tensor)}
        return replace(self, **moved)


def make_syntax(arcs: ArcTokens) -> Syntax:
    """The syntax, on the CPU. The numbers of a kind are those of rows, or three points for an arc."""
    names = dict(layout.PARAM_NAMES) | ({Kind.ARC: ("x1", "y1", "x", "y", "x2", "y2")} if arcs == "points" else {})
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
    lows, highs = torch.tensor(ranges).unbind(dim=1)
    level_values = torch.stack([_level_values(place.name) for place in number_places])
    return Syntax(tuple(places), arcs, names, legal, after, first, lows, highs, level_values)


def _range(name: str) -> tuple[int, int]:
    """The smallest and the largest level of a number."""
    ranges = {"radius": (MIDDLE, LEVELS - 1), "bend": (MIDDLE - round(1 / STEP), MIDDLE + round(1 / STEP))}
    return ranges.get(name, (0, LEVELS - 1))


def _level_values(name: str) -> Float[Tensor, " level"]:
    """The value of each level: the middle of its cell, or of the valid part of the cell."""
    middle = (torch.arange(LEVELS, dtype=torch.float64) - MIDDLE) * STEP
    if bounds := {"radius": (0.0, HIGH), "bend": (-1.0, 1.0)}.get(name):
        middle = ((middle - STEP / 2).clamp(*bounds) + (middle + STEP / 2).clamp(*bounds)) / 2
    return middle.float()


# Sorted from left to right by their numbers, so that a set has one sequence; or in the order of the rows.
Order = Literal["sorted", "stored"]

Slots = Int[Tensor, "batch prim place"]

# Three collinear points become an arc of the smallest sweep that the grid can represent.
_LEAST_BEND = STEP / 4


@dataclass(frozen=True, slots=True)
class Tokens:
    """The value, the place in the syntax and the row of each token; tokens after stop are not `real`."""

    value: Int[Tensor, "batch token"]
    place: Int[Tensor, "batch token"]
    row: Int[Tensor, "batch token"]
    real: Bool[Tensor, "batch token"]


def quantize(numbers: Float[Tensor, "*rows number"], syntax: Syntax) -> Int[Tensor, "*rows number"]:
    """The level (cell) of each number, in the order of the syntax."""
    cell = ((numbers.double() - LOW) / ((HIGH - LOW) / LEVELS)).floor()
    return torch.minimum(torch.maximum(cell.clamp(0, LEVELS - 1).long(), syntax.lowest), syntax.highest)


def dequantize(levels: Int[Tensor, "*rows number"], syntax: Syntax) -> Float[Tensor, "*rows number"]:
    """The value of each level."""
    return syntax.level_values[torch.arange(levels.shape[-1], device=levels.device), levels]


def tokenize(x0: SketchBatch, syntax: Syntax, order: Order = "stored") -> Tokens:
    """The sequences of clean rows with `arc_scalar="sweep"`; empty rows have no tokens."""
    kind = x0.kind.argmax(dim=-1)
    flag = x0.construction.argmax(dim=-1)
    levels = quantize(_numbers(x0, syntax), syntax)
    if order == "sorted":
        rows = _keys(kind, flag, levels, syntax).argsort(dim=-1, stable=True)
        kind, flag = kind.gather(1, rows), flag.gather(1, rows)
        levels = levels.gather(1, rows[..., None].expand_as(levels))
    return _pack(*_slots(kind, flag, levels, syntax), syntax)


def slots_to_rows(slots: Slots, finished: Int[Tensor, " batch"], syntax: Syntax) -> SketchBatch:
    """Composite rows of the first `finished` primitives of each sketch; the rest is empty."""
    rows = torch.arange(slots.shape[1], device=slots.device)
    kind = torch.where(rows < finished[:, None], slots[..., KIND_PLACE] - FIRST_KIND, layout.NONE)
    flag = slots.gather(2, syntax.first[kind.clamp(max=layout.NONE - 1)][..., None])[..., 0] - FIRST_FLAG
    flag = torch.where(kind == layout.NONE, 0, flag)
    is_number = [index for index, place in enumerate(syntax.places) if place.name not in ("kind", "construction")]
    widths = ((of.value, len(names)) for of, names in syntax.names.items())
    own = torch.cat([(kind == of)[..., None].expand(*kind.shape, width) for of, width in widths], dim=-1)
    # Unused slots get the level of 0 to avoid invalid arithmetic; they are masked afterwards.
    numbers = dequantize(torch.where(own, slots[..., is_number], MIDDLE), syntax)
    params = torch.where(relevant(kind), _params(numbers, syntax), 0.0)
    flags, kinds = one_hot(flag, layout.NUM_CONSTRUCTION), one_hot(kind, layout.NUM_KINDS)
    return SketchBatch(flags.to(params), kinds.to(params), params)


def _slots(kind: Tensor, flag: Tensor, levels: Tensor, syntax: Syntax) -> tuple[Slots, Bool[Tensor, "*slots"]]:
    """The slots of each row, and a mask of those that it fills."""
    values, used = [FIRST_KIND + kind[..., None]], [(kind != layout.NONE)[..., None]]
    begin = 0
    for of, names in syntax.names.items():
        values += [FIRST_FLAG + flag[..., None], levels[..., begin : begin + len(names)]]
        used.append((kind == of.value)[..., None].expand(*kind.shape, 1 + len(names)))
        begin += len(names)
    return torch.cat(values, dim=-1), torch.cat(used, dim=-1)


def _pack(slots: Slots, used: Bool[Tensor, "batch prim place"], syntax: Syntax) -> Tokens:
    """The filled slots as sequences. All shapes are static, so that it can be compiled."""
    batch, rows, places = slots.shape
    length = syntax.length(rows)
    flat = used.flatten(1)
    count = flat.sum(dim=1, keepdim=True)
    filled = used[..., KIND_PLACE]
    primitives = filled.sum(dim=1, keepdim=True)
    # Unfilled slots are written to an extra column, which is removed.
    at = torch.where(flat, flat.cumsum(dim=1) - 1, length)

    def packed(values: Tensor, rest: Tensor) -> Tensor:
        return rest.expand(batch, length + 1).scatter(1, at, values.expand(batch, rows, places).flatten(1))[:, :length]

    place = torch.arange(places, device=slots.device)
    row = (filled.cumsum(dim=1) - 1)[..., None]
    token = torch.arange(length, device=slots.device)
    where_stop = torch.where(primitives < rows, KIND_PLACE, syntax.end)
    places_packed = packed(place, torch.full_like(count, syntax.end))
    value, where = packed(slots, torch.full_like(count, STOP)), torch.where(token == count, where_stop, places_packed)
    return Tokens(value, where, packed(row, primitives), token <= count)


def _keys(kind: Tensor, flag: Tensor, levels: Tensor, syntax: Syntax) -> Int[Tensor, "batch prim"]:
    """Sort keys of rows: their levels in order, then kind and flag; empty rows come last."""
    most = max(map(len, syntax.names.values()))
    keys = torch.full_like(kind, 1 << (LEVEL_BITS * most + 4))
    begin = 0
    for of, names in syntax.names.items():
        key = torch.zeros_like(kind)
        for column in range(most):
            key = key << LEVEL_BITS
            if column < len(names):
                key = key | levels[..., begin + column]
        keys = torch.where(kind == of.value, key << 4 | kind << 1 | flag, keys)
        begin += len(names)
    return keys


def _numbers(x0: SketchBatch, syntax: Syntax) -> Float[Tensor, "batch prim number"]:
    """The numbers of all kinds, concatenated in the order of the syntax."""
    if syntax.arcs == "sweep":
        return x0.params
    return torch.cat([_points(x0.of_kind(k)) if k is Kind.ARC else x0.of_kind(k) for k in Kind], dim=-1)


def _params(numbers: Float[Tensor, "batch prim number"], syntax: Syntax) -> Float[Tensor, "batch prim 14"]:
    if syntax.arcs == "sweep":
        return numbers
    parts = torch.split(numbers, [len(names) for names in syntax.names.values()], dim=-1)
    return torch.cat([_ends(part) if k is Kind.ARC else part for k, part in zip(Kind, parts, strict=True)], dim=-1)


def _points(arc: Float[Tensor, "*rows 5"]) -> Float[Tensor, "*rows 6"]:
    """Start, middle and end of arcs given by their ends and bend = sweep/π − 1.

    The middle of the arc is right of the middle of the chord, by half the chord times tan(sweep/4).
    """
    start, end = arc[..., layout.START], arc[..., layout.END]
    rise = torch.tan((arc[..., layout.BEND :] + 1) * (math.pi / 4))
    return torch.cat([start, (start + end + rise * _right(end - start)) / 2, end], dim=-1)


def _ends(points: Float[Tensor, "*rows 6"]) -> Float[Tensor, "*rows 5"]:
    """Ends and bend of the arcs through three points, by the distance of the second from the chord.

    Its position along the chord is ignored. If it is left of the chord, the ends are swapped.
    """
    start, middle, end = torch.split(points, 2, dim=-1)
    chord = end - start
    beside = ((2 * middle - start - end) * _right(chord)).sum(dim=-1, keepdim=True)
    rise = beside / (chord**2).sum(dim=-1, keepdim=True).clamp(min=1e-12)
    bend = (rise.abs().atan() * (4 / math.pi) - 1).clamp(_LEAST_BEND - 1, 1 - _LEAST_BEND)
    swap = rise < 0
    return torch.cat([torch.where(swap, end, start), torch.where(swap, start, end), bend], dim=-1)


def _right(direction: Float[Tensor, "*rows 2"]) -> Float[Tensor, "*rows 2"]:
    """A quarter turn clockwise."""
    x, y = direction.unbind(dim=-1)
    return torch.stack([y, -x], dim=-1)
