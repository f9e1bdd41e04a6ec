"""Several ways to constrain one sketch: from coincidences only to a fully dimensioned sketch.

All are made from one inference. Each adds to the sketch's own constraints, which come first in every result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, ConstraintType, Sketch, bounds

from .constrain import ConstrainOptions, ConstrainResult, constrain, with_freedom
from .dimensions import independent_dimensions, ordinate_dimensions
from .repair import ActionKind
from .rounding import Origin, RoundOptions, round_dimensions
from .solve import solve
from .variables import Constraints
from .well_constrained import missing_dimensions

_T = ConstraintType
_MEETING = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.POINT_ON_CURVE})
_COPYING = frozenset({_T.EQUAL, _T.SYMMETRIC, _T.MIDPOINT})
# The actions of a repair that are kept where only ends and centers are joined.
_MEETING_ACTIONS = frozenset(
    {ActionKind.DROP, ActionKind.MERGE, ActionKind.SNAP, ActionKind.EXTEND, ActionKind.TRIM, ActionKind.CLOSE}
    | {ActionKind.CONSTRUCTION}
)
# The names of the alternatives, in their order.
NAMES = (
    "Coincidences",
    "Geometric relations",
    "Equal and symmetric",
    "Lengths",
    "Lengths without equalities",
    "Ordinate dimensions",
    "Rounded dimensions",
)
# Values that agree in so many digits are equal.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ConstrainAlternative:
    """One way to constrain a sketch.

    Attributes:
        name: What is added.
        result: The result.
        constraints: The number of constraints without a value.
        dimensions: The number of constraints with a value.
    """

    name: str
    result: ConstrainResult
    constraints: int
    dimensions: int


def alternatives(sketch: Sketch, options: ConstrainOptions | None = None) -> list[ConstrainAlternative]:
    """Constrain a sketch in several ways, from the fewest constraints to the most.

    Args:
        sketch: The sketch. Its constraints stay first, as `constrain` leaves them.
        options: The tolerance, the repair and the rounding. `dimensions` has no effect: some alternatives have them.

    Returns:
        At least one alternative; of equal ones, only the first. A sketch that cannot be constrained has one, whose
        result has a warning.

    >>> from sketchdnn.geometry import Line
    >>> corners = [(0, 0), (40, 0.1), (40.1, 30), (0, 30)]
    >>> rectangle = Sketch(tuple(Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])), units="mm")
    >>> [(a.name, a.constraints, a.dimensions, a.result.dof) for a in alternatives(rectangle)][:2]
    [('Coincidences', 4, 0, 8), ('Geometric relations', 8, 0, 4)]
    """
    options = options or ConstrainOptions()
    every = constrain(sketch, replace(options, dimensions=False, rounding=None))
    results: list[ConstrainAlternative] = []
    seen: set[object] = set()
    for name, result in zip(NAMES, _results(sketch, every, options), strict=False):
        key = _key(result.sketch)
        adds = len(result.sketch.constraints) > result.num_own or result.sketch.primitives != sketch.primitives
        if adds and key not in seen:
            seen.add(key)
            results.append(_alternative(name, result))
    return results or [_alternative("Nothing", every)]


def _alternative(name: str, result: ConstrainResult) -> ConstrainAlternative:
    dimensions = sum(c.value is not None for c in result.sketch.constraints)
    count = len(result.sketch.constraints) - dimensions
    return ConstrainAlternative(name, result, count, dimensions)


def _results(sketch: Sketch, every: ConstrainResult, options: ConstrainOptions) -> Iterator[ConstrainResult]:
    """The results in the order of `NAMES`; `every` has all relations and no dimensions."""
    if every.warning and not every.sketch.constraints:
        return
    meeting = _only(every, _MEETING)
    actions = tuple(action for action in every.actions if action.kind in _MEETING_ACTIONS)
    yield _as_drawn(sketch, replace(meeting, actions=actions), every.displacement)
    relations = _only(every, frozenset(_T) - _COPYING)
    yield with_freedom(relations)
    yield every
    yield _dimensioned(every)
    yield _dimensioned(relations)
    yield _dimensioned(_with_ordinates(every))
    rounding = options.rounding or RoundOptions(origin=Origin.KEEP)
    rounded = round_dimensions(every.sketch, rounding)
    if rounded.warning is None and rounded.rounded:
        yield _dimensioned(replace(every, sketch=rounded.sketch, rounding=rounded))


def _only(result: ConstrainResult, types: Collection[ConstraintType]) -> ConstrainResult:
    """The result with the sketch's own constraints, and of the inferred ones those of some types."""
    constraints = result.sketch.constraints
    own, inferred = constraints[: result.num_own], constraints[result.num_own :]
    kept = (*own, *(c for c in inferred if c.type in types))
    return replace(result, sketch=replace(result.sketch, constraints=kept))


def _as_drawn(sketch: Sketch, result: ConstrainResult, max_move: float) -> ConstrainResult:
    """The result solved from where its primitives were drawn: with fewer constraints, less moves."""
    sources = result.sources or [(i,) for i in range(len(result.sketch))]
    primitives = list(result.sketch.primitives)
    for i, own in enumerate(sources):
        drawn = sketch.primitives[own[0]] if len(own) == 1 else primitives[i]
        if drawn.kind is primitives[i].kind:
            primitives[i] = replace(drawn, construction=primitives[i].construction)
    drawn_sketch = replace(result.sketch, primitives=tuple(primitives))
    try:
        solution = solve(drawn_sketch, max_move=2 * max_move)
    except (SketchError, np.linalg.LinAlgError):
        return with_freedom(result)
    if solution.warning or solution.conflicting:
        return with_freedom(result)
    return with_freedom(replace(result, sketch=solution.sketch, displacement=solution.displacement))


def _dimensioned(result: ConstrainResult) -> ConstrainResult:
    """The result with dimensions for all that is free."""
    return _with(result, missing_dimensions(result.sketch))


def _with_ordinates(result: ConstrainResult) -> ConstrainResult:
    """The result with positions of all points from the lower left one, as far as they are free."""
    sketch = result.sketch
    if not len(sketch):
        return result
    candidates = list(ordinate_dimensions(sketch))
    chosen = independent_dimensions(candidates, sketch.constraints, sketch.primitives, ())
    zero = 10.0**-_DIGITS * bounds(sketch).size
    return _with(result, [d.at(0.0 if abs(d.value) <= zero else d.value) for d in chosen])


def _with(result: ConstrainResult, added: Constraints) -> ConstrainResult:
    sketch = replace(result.sketch, constraints=(*result.sketch.constraints, *added))
    return with_freedom(replace(result, sketch=sketch))


def _key(sketch: Sketch) -> object:
    """Equal for the same constraints, in any order, on the same geometry."""

    def value_of(constraint: Constraint) -> str:
        return "" if constraint.value is None else f"{constraint.value:.{_DIGITS}g}"

    constraints = frozenset((c.type, c.refs, value_of(c)) for c in sketch.constraints)
    size = bounds(sketch).size or 1.0
    places = tuple(round(value / size, _DIGITS) for p in sketch for value in _numbers(p))
    return constraints, places


def _numbers(primitive: object) -> Iterator[float]:
    for name in ("start", "end", "center", "at"):
        place = getattr(primitive, name, None)
        if isinstance(place, tuple):
            yield from place
    yield getattr(primitive, "radius", 0.0)
