"""A large problem as smaller ones: equations that share no free number are solved apart."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from .demands import Demands
from .sharing import Classes
from .system import Equation, System, build
from .variables import Ints

# Up to here one problem is solved faster than several.
_SMALL = 150
# Larger ones would take minutes.
MOST_NUMBERS = 2500


@dataclass(frozen=True, slots=True)
class Block:
    """Equations with their owners, over the numbers `columns` of a sketch."""

    system: System
    owners: list[int]
    columns: Ints
    too_large: bool = False


def blocks(demands: Demands) -> list[Block]:
    """The problems that demands fall apart into. Of one that is too large, only what its arcs are is kept."""
    slots = demands.slots
    if not demands.equations:
        return []
    if slots.free <= _SMALL:
        return [Block(build(demands.equations, slots), demands.owners, np.arange(slots.free))]
    found = []
    for members, columns in apart(demands):
        equations, owners = [demands.equations[i] for i in members], [demands.owners[i] for i in members]
        too_large = len(columns) > MOST_NUMBERS
        if too_large:
            found.append(Block(build([], slots), owners, columns, too_large=True))
            continue
        local = np.full(len(slots.start), len(columns))
        local[columns] = np.arange(len(columns))
        local[slots.free :] = len(columns) + np.arange(len(slots.start) - slots.free)
        part = replace(
            slots,
            slot=local[slots.slot],
            free=len(columns),
            start=np.concatenate([slots.start[columns], slots.start[slots.free :]]),
            root=slots.root[columns],
        )
        found.append(Block(build(equations, part), owners, columns))
    return found


def apart(demands: Demands) -> list[tuple[list[int], Ints]]:
    """Equations in groups, each with the free numbers that occur in it."""
    slots = demands.slots
    slot = slots.slot.tolist()
    used = [[k for k in {slot[i] for i in _features(e)} if k < slots.free] for e in demands.equations]
    classes = Classes(slots.free)
    for numbers in used:
        for k in numbers[1:]:
            classes.join(numbers[0], k)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for i, numbers in enumerate(used):
        groups[classes.find(numbers[0]) if numbers else -1].append(i)
    leaders = classes.leaders()
    return [(members, np.flatnonzero(leaders == leader)) for leader, members in groups.items()]


def _features(equation: Equation) -> list[int]:
    places = [k for sums in (equation.v, equation.w) for k, _ in sums]
    return [*(2 * k for k in places), *(2 * k + 1 for k in places), *(k for k, _ in equation.linear)]
