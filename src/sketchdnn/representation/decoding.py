"""From rows back to sketches, with an account of what had to be repaired or left out. Numpy only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Circle, Kind, Line, Point, Primitive, Sketch, arc_from_sweep

from . import layout
from .compact import Compact

NOT_FINITE = "a number that is not finite"
NO_LENGTH = "a line of no length"
NO_RADIUS = "a circle whose radius is not above zero"
NO_CHORD = "an arc whose ends are one point"
SWEEP_OUT_OF_RANGE = "an arc whose sweep is not between 0 and 2π"
SHORT_RADIUS = "an arc of a radius below half its chord, made a semicircle"
NOT_A_PRIMITIVE = "numbers that make no primitive"


@dataclass(frozen=True, slots=True)
class Issue:
    """What was wrong with a row. `reason` is one of this module's sentences, so that cases can be counted."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A sketch and what it took to get it: rows changed to make sense, and rows left out because they make none."""

    sketch: Sketch
    repairs: tuple[Issue, ...] = ()
    rejects: tuple[Issue, ...] = ()


def decode_compact(compact: Compact) -> list[Decoded]:
    """The sketches of compact rows; primitives keep the order of their rows."""
    nothing: list[list[Issue]] = [[] for _ in range(len(compact))]
    return decode_rows(compact.kind, compact.construction, compact.params.astype(np.float64), nothing)


def decode_rows(
    kind: NDArray[np.integer],
    construction: NDArray[np.bool_],
    params: NDArray[np.float64],
    repairs: Iterable[list[Issue]],
) -> list[Decoded]:
    """Sketches of rows written as `Compact` writes them; `repairs` were made to each sketch on the way here."""
    decoded = []
    sketches = zip(kind.tolist(), construction.tolist(), params.tolist(), repairs, strict=True)
    for kinds, flags, rows, repaired in sketches:
        items = {
            row: _primitive(Kind(number), flag, numbers)
            for row, (number, flag, numbers) in enumerate(zip(kinds, flags, rows, strict=True))
            if number != layout.NONE
        }
        primitives = tuple(item for item in items.values() if not isinstance(item, str))
        rejects = tuple(Issue(row, item) for row, item in items.items() if isinstance(item, str))
        kept = tuple(issue for issue in repaired if not isinstance(items[issue.row], str))
        decoded.append(Decoded(Sketch(primitives), kept, rejects))
    return decoded


def _primitive(kind: Kind, construction: bool, numbers: list[float]) -> Primitive | str:
    """The primitive of a row, or why it is none."""
    used = numbers[: len(layout.PARAM_NAMES[kind])]
    if not all(map(math.isfinite, used)):
        return NOT_FINITE
    try:
        match kind:
            case Kind.LINE:
                x1, y1, x2, y2 = used
                return Line((x1, y1), (x2, y2), construction) if (x1, y1) != (x2, y2) else NO_LENGTH
            case Kind.CIRCLE:
                x, y, radius = used
                return Circle((x, y), radius, construction) if radius > 0 else NO_RADIUS
            case Kind.ARC:
                x1, y1, x2, y2, sweep = used
                if (x1, y1) == (x2, y2):
                    return NO_CHORD
                if not 0 < sweep < TAU:
                    return SWEEP_OUT_OF_RANGE
                return arc_from_sweep((x1, y1), (x2, y2), sweep, construction=construction)
            case Kind.POINT:
                x, y = used
                return Point((x, y), construction)
    except GeometryError:  # beyond the largest coordinate, or an arc too flat for any radius
        return NOT_A_PRIMITIVE
