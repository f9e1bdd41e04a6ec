"""Round dimensions: lengths, radii, angles and positions that a person would choose, where the constraints allow.

The free dimensions of a constrained sketch are chosen in order of importance: overall size, radii, angles, lengths,
positions. All are set to round values, and the sketch is solved with its own constraints. Where that fails, or would
change which curves join or cross, the dimensions are added in halves, and a single one that fails gets a less round
value, or is left free.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import (
    MM_PER_UNIT,
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Profile,
    Ref,
    Sketch,
    Vec,
    bounds,
    profile,
)

from .dimensions import Datum, Dimension, DimensionKind, dimension_candidates, find_datum, independent_dimensions
from .round_values import Steps
from .solve import solve
from .variables import Primitives

_T = ConstraintType
# The largest move, as a share of the size.
MAX_MOVE = 0.02
# Coordinates are written in multiples of at most this share of the size, so that 80 is not 80.0000000001.
_GRID = 1e-10
# Angles this close to a multiple of half a degree are that angle.
_SAME_ANGLE = 1e-10
# A primitive keeps at least this share of its length, and at most its inverse.
_MIN_SHARE = 0.6
# Rounds of dimensions: each replaces those that were left by others.
_MAX_ROUNDS = 3
# More attempts to solve would take too long; what remains is left.
_MAX_SOLVES = 150
# More primitives would take too long.
MAX_PRIMITIVES = 150


class Origin(StrEnum):
    """Where the origin lies: as it is, or at the lower left corner or the center of the bounding box.

    `AUTO` is `KEEP` if a constraint refers to the origin or primitives are fixed, and else `CORNER`.
    """

    AUTO = "auto"
    KEEP = "keep"
    CORNER = "corner"
    CENTER = "center"


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How to round.

    Attributes:
        step: The step of all lengths; None chooses it from the size of the sketch and its units.
        units: The unit of the step; None means that of the sketch.
        origin: Where the origin lies.
        num_fixed: The first primitives, which do not move. The origin then stays, and positions are measured from the
            leftmost and the lowest point of these.
        max_move: The largest move of any point, as a share of the size.
    """

    step: float | None = None
    units: str | None = None
    origin: Origin = Origin.AUTO
    num_fixed: int = 0
    max_move: float = MAX_MOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", Origin(self.origin))
        if self.step is not None and not 0 < self.step < math.inf:
            raise GeometryError(f"lengths are rounded to a step above zero, not {self.step}")
        if self.units is not None and self.units not in MM_PER_UNIT:
            raise GeometryError(f"'{self.units}' is not a known unit; use one of {', '.join(MM_PER_UNIT)}")
        if not 0 < self.max_move <= 0.1:
            raise GeometryError(f"the largest move is a share of the size up to 0.1, not {self.max_move}")
        if self.num_fixed < 0:
            raise GeometryError(f"the number of fixed primitives is at least 0, not {self.num_fixed}")

    def to_json(self) -> dict[str, object]:
        """The entry of a manifest."""
        return {"step": self.step or "auto", "units": self.units, "origin": str(self.origin), "max_move": self.max_move}

    def steps(self, sketch: Sketch) -> Steps:
        """The steps of lengths for a sketch."""
        if self.step is None:
            return Steps.automatic(bounds(sketch).size, sketch.units)
        scale = 1.0
        if self.units and sketch.units:
            scale = MM_PER_UNIT[self.units] / MM_PER_UNIT[sketch.units]
        return Steps(float(f"{self.step * scale:.12g}"), is_given=True)


class RoundedDimension(NamedTuple):
    """A dimension with its round value, the value before, and whether the value is the preferred one."""

    constraint: Constraint
    before: float
    is_preferred: bool


class LeftDimension(NamedTuple):
    """A dimension with its measured value, and why it was left."""

    constraint: Constraint
    reason: str


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The rounded sketch. With a warning, it is the input.

    Attributes:
        sketch: The sketch with its constraints, followed by the rounded dimensions, which have names.
        rounded: The rounded dimensions. One that became zero is a constraint without a value.
        left: The dimensions that could not be rounded; they are free.
        displacement: The largest move, as a share of the size, apart from that of the origin.
        step: The step of large lengths.
        warning: Why nothing was rounded.
    """

    sketch: Sketch
    rounded: tuple[RoundedDimension, ...] = ()
    left: tuple[LeftDimension, ...] = ()
    displacement: float = 0.0
    step: float = 0.0
    warning: str | None = None

    @property
    def is_fully_rounded(self) -> bool:
        """Whether no dimension was left."""
        return self.warning is None and not self.left

    @property
    def summary(self) -> str:
        """The result in one line."""
        if self.warning:
            return f"not rounded: {self.warning}"
        left = f", {len(self.left)} left" if self.left else ""
        count = len(self.rounded)
        return f"{count} dimension{'s' * (count != 1)} rounded to steps of {self.step:g}{left}"


def round_dimensions(sketch: Sketch, options: RoundOptions | None = None) -> RoundResult:
    """Round the free dimensions of a sketch, whose constraints hold (`constrain` or `repair` makes them hold).

    >>> from sketchdnn.geometry import Circle
    >>> result = round_dimensions(Sketch((Circle((30.02, 9.98), 7.99), Circle((30.02, 9.98), 19.9)), units="mm"))
    >>> [primitive.radius for primitive in result.sketch], [d.constraint.value for d in result.rounded[:2]]
    ([8.0, 20.0], [40.0, 16.0])
    """
    options = options or RoundOptions()
    try:
        if not len(sketch) or bounds(sketch).size == 0:
            return RoundResult(sketch, warning="there is nothing to round")
        if len(sketch) > MAX_PRIMITIVES:
            return RoundResult(sketch, warning=f"only sketches of up to {MAX_PRIMITIVES} primitives are rounded")
        placed = _place(sketch, options)
        steps, datum = options.steps(placed), find_datum(placed, options.num_fixed)
        rounding = _Rounding(placed, options)
        if rounding.warning:
            return RoundResult(sketch, warning=rounding.warning)
        _round_all(rounding, steps, datum)
        return rounding.result(steps.step)
    except (SketchError, np.linalg.LinAlgError) as error:
        return RoundResult(sketch, warning=str(error))


def is_tied(sketch: Sketch) -> bool:
    """Whether a constraint ties the sketch to the origin, or to where it is drawn."""
    refs = [ref for c in sketch.constraints for ref in c.refs]
    return any(ref.primitive is None for ref in refs) or any(c.type is _T.FIX for c in sketch.constraints)


def _place(sketch: Sketch, options: RoundOptions) -> Sketch:
    """Move the sketch so that the origin is where it is wanted. Construction geometry does not count."""
    origin = options.origin
    if origin is Origin.KEEP or options.num_fixed or is_tied(sketch):
        return sketch
    box = bounds([p for p in sketch if not p.construction] or sketch)
    x, y = box.center if origin is Origin.CENTER else box.low
    return sketch.moved(1.0, (-x, -y))


class _Rounding:
    """The dimensions that were accepted and left so far, and the sketch with the accepted ones."""

    def __init__(self, sketch: Sketch, options: RoundOptions) -> None:
        self.sketch, self.fixed, self.max_move = sketch, range(min(options.num_fixed, len(sketch))), options.max_move
        first = solve(sketch, max_move=options.max_move, fixed=self.fixed)
        self.warning = first.warning
        dropped = {id(c) for c in (*first.conflicting, *first.unsupported, *first.skipped)}
        self.constraints = [c for c in sketch.constraints if id(c) not in dropped]
        self.profile = profile(first.sketch)
        self.solution = first
        self.accepted: list[tuple[Dimension, Constraint]] = []
        self.left: list[LeftDimension] = []
        self.num_solves = 0

    def accept(self, group: Sequence[Dimension]) -> None:
        """Accept all dimensions of a group; if that fails, its halves; a single one at its next round value."""
        if not group:
            return
        reason = self._try([(dimension, dimension.at(dimension.targets[0])) for dimension in group])
        if reason is None:
            return
        if len(group) > 1:
            half = len(group) // 2
            self.accept(group[:half])
            self.accept(group[half:])
            return
        (dimension,) = group
        for target in dimension.targets[1:]:
            if self._try([(dimension, dimension.at(target))]) is None:
                return
        self.left.append(LeftDimension(dimension.constraint, reason))

    def _try(self, added: Sequence[tuple[Dimension, Constraint]]) -> str | None:
        """Accept dimensions at these values; or return why that is not possible."""
        if self.num_solves >= _MAX_SOLVES:
            return "too many dimensions had to be tried one by one"
        self.num_solves += 1
        own = [constraint for _, constraint in (*self.accepted, *added)]
        solution = solve(self.sketch, (*self.constraints, *own), max_move=self.max_move, fixed=self.fixed)
        if solution.warning and "moves something" in solution.warning:
            return f"something would move by more than {self.max_move:.0%} of the size"
        if solution.warning or {id(c) for c in solution.conflicting} & {id(c) for c in (*self.constraints, *own)}:
            return "the constraints do not allow it"
        if not _keeps_lengths(self.sketch.primitives, solution.sketch.primitives):
            return "a primitive would collapse or grow too much"
        if not _keeps_profile(self.profile, profile(solution.sketch)):
            return "joints would open or curves would cross"
        self.solution = solution
        self.accepted += added
        return None

    def result(self, step: float) -> RoundResult:
        """The sketch with exact coordinates and named dimensions."""
        names: defaultdict[str, int] = defaultdict(int)
        rounded = []
        for dimension, constraint in self.accepted:
            is_preferred = constraint == dimension.at(dimension.targets[0])
            if constraint.value is not None:
                names[dimension.name] += 1
                is_only = dimension.name in ("width", "height") and names[dimension.name] == 1
                label = dimension.name if is_only else f"{dimension.name}_{names[dimension.name]}"
                constraint = replace(constraint, extra={"label": label})
            rounded.append(RoundedDimension(constraint, dimension.value, is_preferred))
        rounded = _at_origin(rounded)
        primitives = _exact(self.solution.sketch, self.fixed)
        constraints = (*self.sketch.constraints, *(d.constraint for d in rounded))
        sketch = replace(self.sketch, primitives=primitives, constraints=constraints)
        return RoundResult(sketch, tuple(rounded), tuple(self.left), self.solution.displacement, step)


def _at_origin(rounded: Sequence[RoundedDimension]) -> list[RoundedDimension]:
    """The dimensions, where a point on both axes is at the origin instead."""
    on_axes: defaultdict[Ref, list[RoundedDimension]] = defaultdict(list)
    for item in rounded:
        if item.constraint.type is _T.POINT_ON_CURVE:
            on_axes[item.constraint.refs[0]].append(item)
    result = list(rounded)
    for ref, items in on_axes.items():
        if len(items) == 2:
            at = result.index(items[0])
            result[at] = items[0]._replace(constraint=Constraint(_T.COINCIDENT, (ref, Ref(None, Part.ORIGIN))))
            result.remove(items[1])
    return result


def _round_all(rounding: _Rounding, steps: Steps, datum: Datum) -> None:
    """Round all dimensions. Those that are left are replaced by others in the next round."""
    tried: set[tuple[object, ...]] = set()
    for _ in range(_MAX_ROUNDS):
        sketch = rounding.solution.sketch
        offered = [
            d for d in dimension_candidates(sketch, datum) if (d.constraint.type, d.constraint.refs) not in tried
        ]
        ready = [d for d in (d.with_targets(d.value, steps) for d in offered) if d.targets]
        own = [constraint for _, constraint in rounding.accepted]
        chosen = independent_dimensions(ready, [*rounding.constraints, *own], sketch.primitives, rounding.fixed)
        if not chosen:
            break
        tried |= {(d.constraint.type, d.constraint.refs) for d in chosen}
        rounding.accept(_alike(chosen, steps))
    _drop_replaced(rounding)


def _drop_replaced(rounding: _Rounding) -> None:
    """Remove dimensions from `left` where the sketch is determined by others."""
    own = [constraint for _, constraint in rounding.accepted]
    given = [*rounding.constraints, *own]
    sketch = rounding.solution.sketch
    left = [Dimension("", DimensionKind.SIZE, item.constraint) for item in rounding.left]
    free = {id(d.constraint) for d in independent_dimensions(left, given, sketch.primitives, rounding.fixed)}
    rounding.left = [item for item in rounding.left if id(item.constraint) in free]


def _alike(dimensions: Sequence[Dimension], steps: Steps) -> list[Dimension]:
    """The dimensions; those of one kind with nearly the same value have the same targets."""
    result = list(dimensions)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for k, dimension in enumerate(dimensions):
        if dimension.kind is DimensionKind.SIZE:
            groups[dimension.name].append(k)
    for members in groups.values():
        members.sort(key=lambda k: (dimensions[k].value, k))
        cluster: list[int] = []
        for k in [*members, -1]:
            value = dimensions[k].value if k >= 0 else math.inf
            if cluster and value - dimensions[cluster[0]].value > _alike_within(dimensions[cluster[0]], steps):
                mean = math.fsum(dimensions[i].value for i in cluster) / len(cluster)
                for i in cluster:
                    result[i] = dimensions[i].with_targets(mean, steps)
                cluster = []
            cluster.append(k)
    return [dimension for dimension in result if dimension.targets]


def _alike_within(dimension: Dimension, steps: Steps) -> float:
    """The largest difference of values that become equal: half of the step, or a small share of a small value."""
    return min(steps.step / 2, dimension.value / 20)


def _keeps_lengths(before: Primitives, after: Primitives) -> bool:
    """Whether no primitive collapses or grows too much."""
    lengths = [(p.length, q.length) for p, q in zip(before, after, strict=True) if p.length > 0]
    return all(_MIN_SHARE <= b / a <= 1 / _MIN_SHARE for a, b in lengths)


def _keeps_profile(before: Profile, after: Profile) -> bool:
    """Whether the same curves form loops and chains, nested as before, and no others meet."""
    return (
        _loops(before) == _loops(after)
        and sorted(map(_members, before.chains)) == sorted(map(_members, after.chains))
        and {branch.primitives for branch in after.branches} <= {branch.primitives for branch in before.branches}
        and _meetings(after) <= _meetings(before)
    )


def _members(chain_or_loop: object) -> tuple[int, ...]:
    return tuple(sorted(edge.primitive_index for edge in chain_or_loop.edges))  # type: ignore[attr-defined]


def _loops(of: Profile) -> list[tuple[object, ...]]:
    members = [_members(loop) for loop in of.loops]
    parents = [() if loop.parent is None else members[loop.parent] for loop in of.loops]
    return sorted(zip(members, parents, strict=True))


def _meetings(of: Profile) -> set[tuple[int, int, bool]]:
    crossings = {(c.first, c.second, c.crosses) for c in of.contacts}
    return crossings | {(o.first, o.second, True) for o in of.overlaps}


def _exact(sketch: Sketch, fixed: Collection[int]) -> tuple[Primitive, ...]:
    """The primitives with coordinates that are short decimal numbers. Equal coordinates stay equal."""
    digits = -math.floor(math.log10(_GRID * bounds(sketch).size))

    def exact(value: float) -> float:
        return round(value, digits) + 0.0

    def point(at: Vec) -> Vec:
        return (exact(at[0]), exact(at[1]))

    def shorten(p: Primitive) -> Primitive:
        match p:
            case Line(start, end):
                return replace(p, start=point(start), end=point(end))
            case Circle(center, radius):
                return replace(p, center=point(center), radius=exact(radius))
            case Arc(center, radius, start_angle, sweep):
                start_angle, sweep = _exact_angle(start_angle), _exact_angle(sweep)
                return replace(p, center=point(center), radius=exact(radius), start_angle=start_angle, sweep=sweep)
            case Point(at):
                return replace(p, at=point(at))

    return tuple(p if i in fixed else shorten(p) for i, p in enumerate(sketch))


def _exact_angle(angle: float) -> float:
    nearest = math.radians(round(2 * math.degrees(angle)) / 2)
    return nearest if abs(nearest - angle) <= _SAME_ANGLE else angle
