"""Round dimensions: lengths, radii, angles and positions that a person would choose, where the constraints allow.

The free dimensions of a constrained sketch are chosen in order of importance: overall size, radii, angles, lengths,
positions. All are set to round values, and the sketch is solved with its own constraints. Where that fails, or would
change which curves join or cross, the dimensions are added in halves, and a single one that fails gets a less round
value, or is left free.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, pairwise
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
from sketchdnn.geometry.constraints import ref_point

from .equation_set import unmerged_equations
from .equations import Span, arc_equations, build
from .round_values import Steps, round_angles
from .solve import solve
from .variables import Constraints, Primitives, VariableMerging, variables_of

_T = ConstraintType
# The largest move, as a share of the size.
MAX_MOVE = 0.02
# Values below this share of the size are zero.
_ZERO = 1e-7
# Coordinates are written in multiples of at most this share of the size, so that 80 is not 80.0000000001.
_GRID = 1e-10
# Angles this close to a multiple of half a degree are that angle.
_SAME_ANGLE = 1e-10
# A primitive keeps at least this share of its length, and at most its inverse.
_MIN_SHARE = 0.6
# Values of one kind within so many steps of each other get one value.
_ALIKE = 1.0
# One pass for each value: the share of a dimension that must be independent of those before it.
_MIN_NEW = (0.1, 1e-3)
_DEPENDENT = 1e-6
# Rounds of dimensions: each replaces those that were left by others.
_MAX_ROUNDS = 3
# More attempts to solve would take too long; what remains is left.
_MAX_SOLVES = 150
# More primitives would take too long.
MAX_PRIMITIVES = 150
_ORIGIN, _X_AXIS, _Y_AXIS = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))
_POINTS = {Line: (Part.START, Part.END), Circle: (Part.CENTER,), Arc: (Part.CENTER, Part.START, Part.END)}


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

    def steps(self, sketch: Sketch) -> Steps:
        """The steps of lengths for a sketch."""
        if self.step is None:
            return Steps.automatic(bounds(sketch).size, sketch.units)
        scale = 1.0
        if self.units and sketch.units:
            scale = MM_PER_UNIT[self.units] / MM_PER_UNIT[sketch.units]
        return Steps(float(f"{self.step * scale:.12g}"), is_given=True)


class RoundedDimension(NamedTuple):
    """A dimension with its round value, and the value before."""

    constraint: Constraint
    before: float


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
        steps, datum = options.steps(placed), _datum(placed, options.num_fixed)
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


class _Kind(StrEnum):
    """What a dimension measures, which decides on its round values."""

    SIZE = "size"
    POSITION = "position"
    ANGLE = "angle"


class _Dimension(NamedTuple):
    """A dimension: its name, its constraint with the measured value, and its round values, the preferred first.

    `zero` is the constraint that replaces it at zero.
    """

    name: str
    kind: _Kind
    constraint: Constraint
    targets: tuple[float, ...] = ()
    zero: Constraint | None = None

    @property
    def value(self) -> float:
        return self.constraint.value or 0.0

    def at(self, target: float) -> Constraint:
        """The constraint with another value; a distance along an axis is above zero, from the lower point."""
        if target == 0 and self.zero is not None:
            return self.zero
        if target < 0 and self.kind is _Kind.POSITION:
            return replace(self.constraint, refs=self.constraint.refs[::-1], value=-target)
        return replace(self.constraint, value=target)

    def with_targets(self, value: float, steps: Steps) -> _Dimension:
        """The dimension with the round values near a value."""
        if self.kind is _Kind.ANGLE:
            return self._replace(targets=tuple(round_angles(value)))
        find = steps.sizes if self.kind is _Kind.SIZE else steps.positions
        return self._replace(targets=tuple(dict.fromkeys(find(value))))


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
        self.accepted: list[tuple[_Dimension, Constraint]] = []
        self.left: list[LeftDimension] = []
        self.num_solves = 0

    def accept(self, group: Sequence[_Dimension]) -> None:
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

    def _try(self, added: Sequence[tuple[_Dimension, Constraint]]) -> str | None:
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
            if constraint.value is not None:
                names[dimension.name] += 1
                number = "" if dimension.name in ("width", "height") else f"_{names[dimension.name]}"
                constraint = replace(constraint, extra={"label": f"{dimension.name}{number}"})
            rounded.append(RoundedDimension(constraint, dimension.value))
        primitives = _exact(self.solution.sketch, self.fixed)
        constraints = (*self.sketch.constraints, *(d.constraint for d in rounded))
        sketch = replace(self.sketch, primitives=primitives, constraints=constraints)
        return RoundResult(sketch, tuple(rounded), tuple(self.left), self.solution.displacement, step)


def _round_all(rounding: _Rounding, steps: Steps, datum: _Datum) -> None:
    """Round all dimensions. Those that are left are replaced by others in the next round."""
    tried: set[tuple[object, ...]] = set()
    for _ in range(_MAX_ROUNDS):
        sketch = rounding.solution.sketch
        offered = [d for d in _dimensions(sketch, datum) if (d.constraint.type, d.constraint.refs) not in tried]
        ready = [d for d in (_with_targets(d, steps) for d in offered) if d.targets]
        own = [constraint for _, constraint in rounding.accepted]
        chosen = _independent(ready, [*rounding.constraints, *own], sketch.primitives, rounding.fixed)
        if not chosen:
            break
        tried |= {(d.constraint.type, d.constraint.refs) for d in chosen}
        num_left = len(rounding.left)
        rounding.accept(_alike(chosen, steps))
        if len(rounding.left) == num_left:
            break
    _drop_replaced(rounding)


def _drop_replaced(rounding: _Rounding) -> None:
    """Forget dimensions that were left, where the sketch is determined by others."""
    own = [constraint for _, constraint in rounding.accepted]
    given = [*rounding.constraints, *own]
    sketch = rounding.solution.sketch
    left = [_Dimension("", _Kind.SIZE, item.constraint) for item in rounding.left]
    free = {id(d.constraint) for d in _independent(left, given, sketch.primitives, rounding.fixed)}
    rounding.left = [item for item in rounding.left if id(item.constraint) in free]


def _with_targets(dimension: _Dimension, steps: Steps) -> _Dimension:
    return dimension.with_targets(dimension.value, steps)


def _alike(dimensions: Sequence[_Dimension], steps: Steps) -> list[_Dimension]:
    """Dimensions of one kind with nearly the same value get one value."""
    result = list(dimensions)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for k, dimension in enumerate(dimensions):
        if dimension.kind is _Kind.SIZE:
            groups[dimension.name].append(k)
    for members in groups.values():
        members.sort(key=lambda k: (dimensions[k].value, k))
        cluster: list[int] = []
        for k in [*members, -1]:
            value = dimensions[k].value if k >= 0 else math.inf
            if cluster and value - dimensions[cluster[0]].value > _ALIKE * _step_at(dimensions[cluster[0]], steps):
                mean = math.fsum(dimensions[i].value for i in cluster) / len(cluster)
                for i in cluster:
                    result[i] = dimensions[i].with_targets(mean, steps)
                cluster = []
            cluster.append(k)
    return [dimension for dimension in result if dimension.targets]


def _step_at(dimension: _Dimension, steps: Steps) -> float:
    """How far apart values may be to be meant as one: half of the step, or a small share of a small value."""
    return min(steps.step / 2, dimension.value / 20)


class _Datum(NamedTuple):
    """The points from which horizontal and vertical positions are measured."""

    x: Ref = _ORIGIN
    y: Ref = _ORIGIN


def _datum(sketch: Sketch, num_fixed: int) -> _Datum:
    """The origin; where primitives are fixed, the leftmost and the lowest of their points."""
    points = [(ref_point(ref, sketch.primitives) or (0.0, 0.0), ref) for ref in _point_refs(sketch.primitives)]
    own = [(at, ref) for at, ref in points if ref.primitive is not None and ref.primitive < num_fixed]
    if not own:
        return _Datum()
    x, y = (min(own, key=lambda item: item[0][axis])[1] for axis in (0, 1))
    return _Datum(x, y)


def _point_refs(primitives: Primitives) -> list[Ref]:
    return [Ref(i, part) for i, p in enumerate(primitives) for part in _parts(p)]


def _parts(p: Primitive) -> tuple[Part, ...]:
    return (Part.POINT,) if isinstance(p, Point) else _POINTS[type(p)]


def _dimensions(sketch: Sketch, datum: _Datum) -> Iterator[_Dimension]:
    """All dimensions of a sketch, in order of importance."""
    primitives = sketch.primitives
    box = bounds(sketch)
    zero = _ZERO * box.size
    yield from _overall(sketch, zero)
    rounds = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Circle | Arc)]
    for i, p in sorted(rounds, key=lambda item: (-item[1].radius, item[0])):
        kind, factor = (_T.DIAMETER, 2.0) if isinstance(p, Circle) else (_T.RADIUS, 1.0)
        yield _Dimension(str(kind), _Kind.SIZE, Constraint(kind, (Ref(i),), factor * p.radius))
    lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
    lines.sort(key=lambda item: (-item[1].length, item[0]))
    oblique = {i for i, line in lines if min(_extent(line)) > zero}
    angled = {i: math.atan2(p.end[1] - p.start[1], p.end[0] - p.start[0]) for i, p in lines if i in oblique}
    angled = {i: angle for i, angle in angled.items() if round_angles(angle)}
    for i, angle in angled.items():
        yield _Dimension("angle", _Kind.ANGLE, Constraint(_T.ANGLE, (Ref(i),), angle))
    for i, line in lines:
        if i not in oblique or i in angled:
            yield _Dimension("length", _Kind.SIZE, Constraint(_T.LENGTH, (Ref(i),), line.length))
    yield from _pitches(sketch, zero)
    for i, line in lines:
        if i in oblique and i not in angled:
            yield from _extents(i, line)
    for i, p in rounds:
        if isinstance(p, Arc) and round_angles(p.sweep):
            yield _Dimension("sweep", _Kind.ANGLE, Constraint(_T.ANGLE, (Ref(i),), p.sweep))
    for ref in sorted(_point_refs(primitives), key=lambda ref: ref.part is not Part.CENTER):
        yield from _position(ref, datum, primitives)


def _extent(line: Line) -> Vec:
    return abs(line.end[0] - line.start[0]), abs(line.end[1] - line.start[1])


def _overall(sketch: Sketch, zero: float) -> Iterator[_Dimension]:
    """The width and the height, where points are at the far sides."""
    shown = [i for i, p in enumerate(sketch) if not p.construction] or list(range(len(sketch)))
    box = bounds([sketch.primitives[i] for i in shown])
    refs = [ref for ref in _point_refs(sketch.primitives) if ref.primitive in shown]
    places = [(ref_point(ref, sketch.primitives) or (0.0, 0.0), ref) for ref in refs]
    for axis, name, kind in ((0, "width", _T.HORIZONTAL_DISTANCE), (1, "height", _T.VERTICAL_DISTANCE)):
        low = [ref for at, ref in places if abs(at[axis] - box.low[axis]) <= zero]
        high = [ref for at, ref in places if abs(at[axis] - box.high[axis]) <= zero]
        if low and high and box.high[axis] - box.low[axis] > zero:
            size = box.high[axis] - box.low[axis]
            yield _Dimension(name, _Kind.SIZE, Constraint(kind, (low[0], high[0]), size))


def _pitches(sketch: Sketch, zero: float) -> Iterator[_Dimension]:
    """The distances between neighboring circles in a row or column."""
    centers = [(p.center, Ref(i, Part.CENTER)) for i, p in enumerate(sketch) if isinstance(p, Circle)]
    for along, kind in ((0, _T.HORIZONTAL_DISTANCE), (1, _T.VERTICAL_DISTANCE)):
        ordered = sorted(centers, key=lambda item: (round(item[0][1 - along] / zero), item[0][along]))
        for (a, first), (b, second) in pairwise(ordered):
            if abs(a[1 - along] - b[1 - along]) <= zero and b[along] - a[along] > zero:
                yield _Dimension("pitch", _Kind.SIZE, Constraint(kind, (first, second), b[along] - a[along]))


def _extents(i: int, line: Line) -> Iterator[_Dimension]:
    """The horizontal and the vertical extent of an oblique line."""
    start, end = Ref(i, Part.START), Ref(i, Part.END)
    for axis, name, kind in ((0, "run", _T.HORIZONTAL_DISTANCE), (1, "rise", _T.VERTICAL_DISTANCE)):
        by = line.end[axis] - line.start[axis]
        yield _Dimension(name, _Kind.SIZE, Constraint(kind, (start, end) if by > 0 else (end, start), abs(by)))


def _position(ref: Ref, datum: _Datum, primitives: Primitives) -> Iterator[_Dimension]:
    """The distances of a point from the datum along both axes."""
    at = ref_point(ref, primitives) or (0.0, 0.0)
    for axis, name, kind, base, line, level in (
        (0, "x", _T.HORIZONTAL_DISTANCE, datum.x, _Y_AXIS, _T.VERTICAL),
        (1, "y", _T.VERTICAL_DISTANCE, datum.y, _X_AXIS, _T.HORIZONTAL),
    ):
        if ref != base:
            by = at[axis] - (ref_point(base, primitives) or (0.0, 0.0))[axis]
            is_origin = base == _ORIGIN
            zero = Constraint(_T.POINT_ON_CURVE, (ref, line)) if is_origin else Constraint(level, (base, ref))
            yield _Dimension(name, _Kind.POSITION, Constraint(kind, (base, ref), by), zero=zero)


def _independent(
    dimensions: Sequence[_Dimension], given: Constraints, primitives: Primitives, fixed: Collection[int]
) -> list[_Dimension]:
    """The dimensions that do not follow from constraints, nor from dimensions before them."""
    variables = variables_of(tuple(primitives))
    variable_map = VariableMerging(variables, fixed).variable_map()
    zeros = np.zeros(variable_map.num_free)
    span = Span(variable_map.num_free)
    known = [*arc_equations(variables), *chain.from_iterable(unmerged_equations(given, variables))]
    for row in build(known, variable_map).evaluate(zeros)[1]:
        span.add(row, _DEPENDENT)
    equations = unmerged_equations([d.constraint for d in dimensions], variables)
    owners = [k for k, own in enumerate(equations) for _ in own]
    rows = build([*chain.from_iterable(equations)], variable_map).evaluate(zeros)[1]
    chosen: set[int] = set()
    for share in _MIN_NEW:
        for k, row in zip(owners, rows, strict=True):
            if k not in chosen and span.add(row, share):
                chosen.add(k)
    return [dimensions[k] for k in sorted(chosen)]


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
                angles = {"start_angle": _exact_angle(start_angle), "sweep": _exact_angle(sweep)}
                return replace(p, center=point(center), radius=exact(radius), **angles)
            case Point(at):
                return replace(p, at=point(at))

    return tuple(p if i in fixed else shorten(p) for i, p in enumerate(sketch))


def _exact_angle(angle: float) -> float:
    nearest = math.radians(round(2 * math.degrees(angle)) / 2)
    return nearest if abs(nearest - angle) <= _SAME_ANGLE else angle
