"""Which column holds what. No other module knows a column number.

A sketch is a matrix of `MAX_PRIMITIVES` rows. A row holds, in the paper's order, a one-hot construction flag, a one-hot
kind with NONE for an empty row, and the parameters of every kind side by side:

    construction (2) | line circle arc point none (5) | line (4) | circle (3) | arc (5) | point (2)

Departs from the paper: it says d = 20, but its own parts sum to 21.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Literal

from sketchdnn.geometry import Kind

# The scalar that bends an arc, and the construction flag of an empty row: paper, authors and ours differ.
ArcScalar = Literal["signed_radius", "sweep"]
NoneConstruction = Literal["one_hot", "zero"]

# Changes whenever a stored dataset or model would read differently; both carry it.
REPRESENTATION_VERSION = 1

MAX_PRIMITIVES = 16

PARAM_NAMES: Mapping[Kind, tuple[str, ...]] = {
    Kind.LINE: ("x1", "y1", "x2", "y2"),
    Kind.CIRCLE: ("x", "y", "radius"),
    Kind.ARC: ("x1", "y1", "x2", "y2", "bend"),  # bend: signed radius (paper, authors) or sweep (ours)
    Kind.POINT: ("x", "y"),
}

NONE = len(Kind)  # the class of an empty row, after the four kinds
NUM_CONSTRUCTION = 2
NUM_KINDS = len(Kind) + 1
NUM_PARAMS = sum(len(names) for names in PARAM_NAMES.values())
PART_WIDTHS = [NUM_CONSTRUCTION, NUM_KINDS, NUM_PARAMS]
ROW_WIDTH = sum(PART_WIDTHS)
# A compact row holds the parameters of its own kind alone, padded to the longest.
MAX_KIND_PARAMS = max(len(names) for names in PARAM_NAMES.values())

_ends = tuple(accumulate(len(PARAM_NAMES[kind]) for kind in Kind))
PARAMS_OF_KIND: Mapping[Kind, slice] = {
    kind: slice(end - len(PARAM_NAMES[kind]), end) for kind, end in zip(Kind, _ends, strict=True)
}
# The kind that each of the 14 parameter columns belongs to.
KIND_OF_PARAM: tuple[Kind, ...] = tuple(kind for kind in Kind for _ in PARAM_NAMES[kind])

# Places within the parameters of one kind, and so within a compact row. Lines and arcs both begin with their two ends.
START, END = slice(0, 2), slice(2, 4)
BEND = PARAM_NAMES[Kind.ARC].index("bend")
RADIUS = PARAM_NAMES[Kind.CIRCLE].index("radius")
