"""Inferred constraints against those of designers: of jittered sketches, and of sketches as their files hold them.

A designer's constraint counts if it holds in the clean sketch to 1e-6 of the size. It is recalled if the inferred
constraints imply it: it holds to 1e-6 in the solved sketch, and no motion that they leave free breaks it. An inferred
constraint is right if it holds in the clean sketch to 1e-4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.constrain import ConstrainOptions, constrain
from sketchdnn.constraints.equation_set import constraint_residuals, outside, row_lengths, row_space, unmerged_equations
from sketchdnn.constraints.equations import arc_equations, build
from sketchdnn.constraints.variables import Floats, VariableMerging, Variables
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Sketch, bounds
from sketchdnn.geometry.constraints import LENGTHS

TRUE, RIGHT = 1e-6, 1e-4
# An equation of which a larger share is new to others does not follow from them.
NEW = 1e-5
ON_CURVE = "on or along"


@dataclass
class Score:
    """Counts by kind, and per sketch what solving left and moved; lengths are shares of the size."""

    true: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    residuals: list[float] = field(default_factory=list)
    displacements: list[float] = field(default_factory=list)
    jitters: list[float] = field(default_factory=list)
    sketches: int = 0
    failed: int = 0

    def recall(self, kind: str) -> float:
        return self.recalled[kind] / max(self.true[kind], 1)

    def precision(self, kind: str | None = None) -> float:
        """Of one kind, or of all."""
        if kind is not None:
            return self.right[kind] / max(self.inferred[kind], 1)
        return sum(self.right.values()) / max(sum(self.inferred.values()), 1)


@dataclass(frozen=True, slots=True)
class Shaken:
    """A sketch as it was, as it lies now, and how far its places and radii moved in the mean."""

    clean: Sketch
    sketch: Sketch
    moved: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found in a shaken sketch, and the sketch that it was solved to; none where that failed.

    `left_out` are the constraints found that the solver refused, since they contradict others.
    """

    found: tuple[Constraint, ...]
    solved: Sketch | None
    left_out: tuple[Constraint, ...] = ()


def measure(sketches: Sequence[Sketch], jitter: float, tolerance: float, seed: int = 0) -> Score:
    """Shake each sketch, infer and solve, and compare with the sketch as it was."""
    score = Score()
    for one in shake_all(sketches, jitter, seed):
        count(score, one, judge(one, tolerance))
    return score


def judge(shaken: Shaken, tolerance: float) -> Judged:
    """What we make of a shaken sketch."""
    try:
        constraints = infer(shaken.sketch, tolerance)
    except GeometryError:  # it is too large
        return Judged((), None)
    solution = solve(shaken.sketch, constraints)
    return Judged(constraints, solution.sketch if solution.warning is None else None, solution.conflicting)


def count(score: Score, shaken: Shaken, judged: Judged) -> None:
    """Add one sketch to a score."""
    clean = shaken.clean
    score.sketches += 1
    if judged.solved is None:
        score.failed += 1
    else:
        kept = [constraint for constraint in judged.found if constraint not in judged.left_out]
        score.residuals.append(max((miss or 0.0 for miss in constraint_residuals(judged.solved, kept)), default=0.0))
        score.displacements.append(float(moves(shaken.sketch, judged.solved).mean()))
        score.jitters.append(shaken.moved)
    wanted = clean.constraints  # which nothing implies, where nothing could be solved
    implied = follows(judged.solved, judged.found, wanted) if judged.solved else [False] * len(wanted)
    for constraint, was, is_implied in zip(wanted, constraint_residuals(clean, wanted), implied, strict=True):
        if was is not None and was <= TRUE:
            score.true[kind_of(constraint)] += 1
            score.recalled[kind_of(constraint)] += is_implied
    for constraint, miss in zip(judged.found, constraint_residuals(clean, judged.found), strict=True):
        if miss is not None:
            score.inferred[str(constraint.type)] += 1
            score.right[str(constraint.type)] += miss <= RIGHT


def follows(
    sketch: Sketch, given: Sequence[Constraint], wanted: Sequence[Constraint], holds: float = 1e-6
) -> list[bool]:
    """Whether each wanted constraint holds, and still does after any move that the given ones allow."""
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    drawn = np.zeros(variable_map.num_free)
    known = arc_equations(variables) + [e for own in unmerged_equations(given, variables) for e in own]
    span = row_space(build(known, variable_map).evaluate(drawn)[1], 1e-9)
    implied = []
    for equations in unmerged_equations(wanted, variables):
        residuals, rows = build(equations, variable_map).evaluate(drawn)
        dependent = row_lengths(outside(rows, span)) <= NEW * row_lengths(rows)
        implied.append(bool(equations) and bool((np.abs(residuals) <= holds).all() and dependent.all()))
    return implied


def moves(before: Sketch, after: Sketch) -> Floats:
    """The move of each point of a sketch, and the change of each radius, as shares of the size before."""
    was, now = Variables(before.primitives), Variables(after.primitives)
    points = slice(0, 2 * was.num_points)
    f = was.f.copy()
    shift = np.array(now.shift) - was.shift
    f[points] = ((now.f[points].reshape(-1, 2) * now.scale + shift) / was.scale).ravel()
    f[was.radii] = now.f[now.radii] * now.scale / was.scale
    return np.abs(was.moves(f))


def shake_all(sketches: Sequence[Sketch], jitter: float, seed: int = 0) -> list[Shaken]:
    """All sketches, shaken; without those of which an arc would turn inside out."""
    rng = np.random.default_rng(seed)
    shaken = []
    for clean in sketches:
        try:
            shaken.append(Shaken(clean, *shake(clean, jitter, rng)))
        except GeometryError:
            continue
    return shaken


def shake(sketch: Sketch, jitter: float, rng: np.random.Generator) -> tuple[Sketch, float]:
    """Every number (coordinates of ends and centers, radii, lengths along an arc) moves by up to ±jitter of the size;
    also how far places and radii moved in the mean.
    """
    most = jitter * bounds(sketch).size

    def off(*numbers: float) -> list[float]:
        return [number + float(rng.uniform(-most, most)) for number in numbers]

    def one(p: Primitive) -> Primitive:
        match p:
            case Line():
                a, b, c, d = off(*p.start, *p.end)
                return replace(p, start=(a, b), end=(c, d))
            case Point():
                a, b = off(*p.at)
                return replace(p, at=(a, b))
            case Circle():
                a, b, radius = off(*p.center, p.radius)
                return replace(p, center=(a, b), radius=radius)
            case Arc():
                a, b, radius, begin, end = off(*p.center, p.radius, p.start_angle * p.radius, p.end_angle * p.radius)
                sweep = (end - begin) / p.radius
                return replace(p, center=(a, b), radius=radius, start_angle=begin / p.radius, sweep=sweep)

    shaken = replace(sketch, primitives=tuple(one(p) for p in sketch), constraints=())
    return shaken, float(moves(sketch, shaken).mean())


def kind_of(constraint: Constraint) -> str:
    """SketchGraphs says coincident for a place on a curve too."""
    if str(constraint.type) == "coincident" and any(ref.part is Part.WHOLE for ref in constraint.refs):
        return ON_CURVE
    return str(constraint.type)


# What is not inferred: dimensions, and what only the file's program knows.
_NOT_INFERRED = LENGTHS | {ConstraintType.ANGLE, ConstraintType.FIX, ConstraintType.OTHER}


@dataclass(frozen=True, slots=True)
class Authored:
    """How many constraints hold in the files, and how many of them follow from what was inferred."""

    repairing: bool
    origin: bool
    inside: int
    found_inside: int
    outside: int
    found_outside: int


def measure_authored(sketches: Sequence[Sketch]) -> list[Authored]:
    """Forget the constraints of sketches and infer them again, in four ways.

    A sketch in which a repair drops or merges something does not count: its references have changed.
    """
    return [_measure(sketches, repairing, origin) for repairing in (True, False) for origin in (False, True)]


def _measure(sketches: Sequence[Sketch], repairing: bool, origin: bool) -> Authored:
    true, found = [0, 0], [0, 0]
    for sketch in sketches:
        wanted = [c for c in sketch.constraints if c.type not in _NOT_INFERRED]
        done = constrain(replace(sketch, constraints=()), ConstrainOptions(repair=repairing, origin=origin)).sketch
        if len(done) != len(sketch):
            continue
        implied = follows(done, done.constraints, wanted)
        for c, missed, is_implied in zip(wanted, constraint_residuals(sketch, wanted), implied, strict=True):
            if missed is not None and missed <= TRUE:
                is_outside = any(ref.primitive is None for ref in c.refs)
                true[is_outside] += 1
                found[is_outside] += is_implied
    return Authored(repairing, origin, true[0], found[0], true[1], found[1])
