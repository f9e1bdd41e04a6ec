"""Which relations demand something that others do not: the rank of their derivatives, at the sketch as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .equations import NOTHING, Geometry, gradients
from .relation import DIMENSIONS, Code, Relation

# A demand that differs from every combination of others by less than this part of itself follows from them.
INDEPENDENT = 1e-7
# A larger tangle of relations is taken as it is: FreeCAD itself needs minutes for it.
MOST_EQUATIONS = 1500
BLOCK = 64

Item = TypeVar("Item", bound=Hashable)


def independent(relations: Sequence[Relation], geometry: Geometry) -> list[bool]:
    """Whether each relation demands anything beyond the others; of those that follow from each other, some are kept."""
    demands = [_Demand(i, relation, *gradients(relation, geometry)) for i, relation in enumerate(relations)]
    kept = [True] * len(relations)
    for tangle in _tangles(demands):
        in_order = sorted(tangle, key=_precedence)  # stable: the same sketch is always written the same way
        for demand, adds in zip(in_order, _adds_rank(in_order), strict=True):
            kept[demand.index] = adds
    return kept


def classes(ties: Iterable[Sequence[Item]]) -> dict[Item, Item]:
    """What is tied to what, however far around: for each item the one that stands for its class."""
    leader: dict[Item, Item] = {}

    def find(item: Item) -> Item:
        while leader.setdefault(item, item) != item:
            leader[item] = leader[leader[item]]
            item = leader[item]
        return item

    for first, *others in ties:
        find(first)
        for other in others:
            leader[find(other)] = find(first)
    return {item: find(item) for item in list(leader)}


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a relation demands: by which numbers of the geometry (`where`), a row of derivatives for each equation."""

    index: int
    relation: Relation
    where: list[tuple[int, int]]
    rows: list[list[float]]


def _tangles(demands: Sequence[_Demand]) -> list[list[_Demand]]:
    """Groups that share no geometry: what is demanded in one cannot follow from another."""
    tangles: defaultdict[int, list[_Demand]] = defaultdict(list)
    leader = classes([geo for geo, _ in demand.where] for demand in demands)
    for demand in demands:
        tangles[leader[demand.where[0][0]]].append(demand)
    return list(tangles.values())


def _precedence(demand: _Demand) -> tuple[int, ...]:
    """What holds a sketch together goes before what aligns it, and that before what measures it.

    What demands two things goes before what demands one: when half of it follows from the rest, FreeCAD finds fault
    with one of the rest.
    """
    code = demand.relation.code
    return code in DIMENSIONS, -len(demand.rows), code is not Code.COINCIDENT, code is not Code.POINT_ON_OBJECT


def _adds_rank(demands: Sequence[_Demand]) -> list[bool]:
    """Whether each demand adds to the rank of those before it."""
    owners = [i for i, demand in enumerate(demands) for _ in demand.rows]
    if len(owners) > MOST_EQUATIONS:
        return [True] * len(demands)
    adds = [False] * len(demands)
    matrix = _unit_rows(demands)
    basis = np.zeros((min(matrix.shape), matrix.shape[1]))
    rank = 0
    for block in range(0, len(matrix), BLOCK):  # many rows at once, which is much faster than one by one
        before = rank
        for owner, row in zip(owners[block:], _beyond(matrix[block : block + BLOCK], basis[:before]), strict=False):
            rest = _beyond(row, basis[before:rank])
            length = float(np.linalg.norm(rest))
            if length > INDEPENDENT and rank < len(basis):
                basis[rank] = rest / length
                rank += 1
                adds[owner] = True
    return adds


def _unit_rows(demands: Sequence[_Demand]) -> NDArray[np.float64]:
    """A row for each equation and a column for each number; of no length where nothing is demanded."""
    column = {where: i for i, where in enumerate(dict.fromkeys(w for demand in demands for w in demand.where))}
    matrix = np.zeros((sum(len(demand.rows) for demand in demands), len(column)))
    equations = iter(matrix)
    for demand in demands:
        at = [column[where] for where in demand.where]
        for row, equation in zip(demand.rows, equations, strict=False):
            length = float(np.linalg.norm(row))
            if NOTHING < length < np.inf:  # a curve's own end, said to be on it, demands nothing
                equation[at] = np.divide(row, length)
    return matrix


def _beyond(rows: NDArray[np.float64], basis: NDArray[np.float64]) -> NDArray[np.float64]:
    """What rows have beyond the span of an orthonormal basis."""
    for _ in range(2):  # the second time for what rounding left
        rows = rows - (rows @ basis.T) @ basis
    return rows
