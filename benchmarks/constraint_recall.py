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
from sketchdnn.constraints.equation_set import constraint_residuals, unmerged_equations
from sketchdnn.constraints.equations import arc_equations, build, outside, row_lengths, row_space
from sketchdnn.constraints.variables import Floats, VariableMerging, Variables
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Sketch, bounds
from sketchdnn.geometry.constraints import LENGTHS

# Tolerances as shares of the size: a designer's constraint holds, an inferred one is right.
HOLDS, RIGHT = 1e-6, 1e-4
# An equation of which at most this share is new to others follows from them.
DEPENDENT = 1e-5
ON_CURVE = "on or along"
# Dimensions, and constraints that only the file's program can evaluate, are not inferred.
NOT_INFERRED = LENGTHS | {ConstraintType.ANGLE, ConstraintType.FIX, ConstraintType.OTHER}


@dataclass(frozen=True, slots=True)
class JitteredSketch:
    """A clean sketch, the jittered sketch, and the mean displacement of its points and radii."""

    clean: Sketch
    sketch: Sketch
    displacement: float


@dataclass(frozen=True, slots=True)
class Inference:
    """Constraints inferred in a jittered sketch, and the solved sketch; None if solving failed.

    `conflicting` are inferred constraints that the solver left out.
    """

    constraints: tuple[Constraint, ...]
    solved: Sketch | None
    conflicting: tuple[Constraint, ...] = ()


@dataclass
class RecallScore:
    """Counts by type of constraint, and residuals and displacements by sketch, as shares of the size."""

    true: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    residuals: list[float] = field(default_factory=list)
    displacements: list[float] = field(default_factory=list)
    jitters: list[float] = field(default_factory=list)
    sketches: int = 0
    failed: int = 0

    def recall(self, name: str) -> float:
        return self.recalled[name] / max(self.true[name], 1)

    def precision(self, name: str | None = None) -> float:
        """The precision of one type of constraint, or of all."""
        if name is not None:
            return self.right[name] / max(self.inferred[name], 1)
        return sum(self.right.values()) / max(sum(self.inferred.values()), 1)

    def add(self, jittered: JitteredSketch, inference: Inference) -> None:
        """Add one sketch."""
        clean, solved = jittered.clean, inference.solved
        self.sketches += 1
        if solved is None:
            self.failed += 1
        else:
            kept = [constraint for constraint in inference.constraints if constraint not in inference.conflicting]
            self.residuals.append(max((r or 0.0 for r in constraint_residuals(solved, kept)), default=0.0))
            self.displacements.append(float(displacements(jittered.sketch, solved).mean()))
            self.jitters.append(jittered.displacement)
        true = clean.constraints
        implied = implied_constraints(solved, inference.constraints, true) if solved else [False] * len(true)
        for constraint, residual, is_implied in zip(true, constraint_residuals(clean, true), implied, strict=True):
            if residual is not None and residual <= HOLDS:
                self.true[constraint_name(constraint)] += 1
                self.recalled[constraint_name(constraint)] += is_implied
        residuals = constraint_residuals(clean, inference.constraints)
        for constraint, residual in zip(inference.constraints, residuals, strict=True):
            if residual is not None:
                self.inferred[str(constraint.type)] += 1
                self.right[str(constraint.type)] += residual <= RIGHT


def measure_recall(sketches: Sequence[Sketch], jitter: float, tolerance: float, seed: int = 0) -> RecallScore:
    """Jitter each sketch, infer and solve its constraints, and compare them with the clean sketch."""
    score = RecallScore()
    for jittered in jitter_sketches(sketches, jitter, seed):
        score.add(jittered, infer_and_solve(jittered, tolerance))
    return score


def infer_and_solve(jittered: JitteredSketch, tolerance: float) -> Inference:
    """Our own inference on a jittered sketch."""
    try:
        constraints = infer(jittered.sketch, tolerance)
    except GeometryError:  # the sketch is too large
        return Inference((), None)
    solution = solve(jittered.sketch, constraints)
    return Inference(constraints, solution.sketch if solution.warning is None else None, solution.conflicting)


def implied_constraints(
    sketch: Sketch, given: Sequence[Constraint], candidates: Sequence[Constraint], holds: float = HOLDS
) -> list[bool]:
    """Whether each candidate holds, and still holds after any motion that the given constraints allow."""
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    values = np.zeros(variable_map.num_free)
    equations_given = arc_equations(variables) + [e for own in unmerged_equations(given, variables) for e in own]
    span = row_space(build(equations_given, variable_map).evaluate(values)[1], 1e-9)
    implied = []
    for equations in unmerged_equations(candidates, variables):
        residuals, rows = build(equations, variable_map).evaluate(values)
        dependent = row_lengths(outside(rows, span)) <= DEPENDENT * row_lengths(rows)
        implied.append(bool(equations) and bool((np.abs(residuals) <= holds).all() and dependent.all()))
    return implied


def displacements(before: Sketch, after: Sketch) -> Floats:
    """The displacement of each point of a sketch, and the change of each radius, as shares of the size before."""
    was, now = Variables(before.primitives), Variables(after.primitives)
    points = slice(0, 2 * was.num_points)
    f = was.f.copy()
    shift = np.array(now.shift) - was.shift
    f[points] = ((now.f[points].reshape(-1, 2) * now.scale + shift) / was.scale).ravel()
    f[was.radii] = now.f[now.radii] * now.scale / was.scale
    return np.abs(was.moves(f))


def jitter_sketches(sketches: Sequence[Sketch], jitter: float, seed: int = 0) -> list[JitteredSketch]:
    """All sketches, jittered, without those of which an arc would turn inside out."""
    rng = np.random.default_rng(seed)
    jittered = []
    for clean in sketches:
        try:
            jittered.append(JitteredSketch(clean, *jitter_sketch(clean, jitter, rng)))
        except GeometryError:
            continue
    return jittered


def jitter_sketch(sketch: Sketch, jitter: float, rng: np.random.Generator) -> tuple[Sketch, float]:
    """Move coordinates of ends and centers, radii and lengths along arcs by up to ±jitter of the size.

    Returns:
        The jittered sketch without constraints, and the mean displacement of its points and radii.
    """
    limit = jitter * bounds(sketch).size

    def shift(*values: float) -> list[float]:
        return [value + float(rng.uniform(-limit, limit)) for value in values]

    def jitter_primitive(p: Primitive) -> Primitive:
        match p:
            case Line():
                a, b, c, d = shift(*p.start, *p.end)
                return replace(p, start=(a, b), end=(c, d))
            case Point():
                a, b = shift(*p.at)
                return replace(p, at=(a, b))
            case Circle():
                a, b, radius = shift(*p.center, p.radius)
                return replace(p, center=(a, b), radius=radius)
            case Arc():
                a, b, radius, start, end = shift(*p.center, p.radius, p.start_angle * p.radius, p.end_angle * p.radius)
                sweep = (end - start) / p.radius
                return replace(p, center=(a, b), radius=radius, start_angle=start / p.radius, sweep=sweep)

    jittered = replace(sketch, primitives=tuple(jitter_primitive(p) for p in sketch), constraints=())
    return jittered, float(displacements(sketch, jittered).mean())


def constraint_name(constraint: Constraint) -> str:
    """The type of a constraint; SketchGraphs' coincident of a point and a curve has a name of its own."""
    if str(constraint.type) == "coincident" and any(ref.part is Part.WHOLE for ref in constraint.refs):
        return ON_CURVE
    return str(constraint.type)


@dataclass(frozen=True, slots=True)
class FileRecall:
    """Constraints that hold in files, and how many of them `constrain` implies.

    `internal` constraints are between primitives, `external` ones on the origin or an axis.
    """

    with_repair: bool
    origin: bool
    internal: int
    inferred_internal: int
    external: int
    inferred_external: int


def measure_file_recall(sketches: Sequence[Sketch]) -> list[FileRecall]:
    """Remove the constraints of sketches and infer them again, with and without repair and the origin.

    A sketch in which a repair drops or merges primitives does not count: its references have changed.
    """
    return [_measure_files(sketches, with_repair, origin) for with_repair in (True, False) for origin in (False, True)]


def _measure_files(sketches: Sequence[Sketch], with_repair: bool, origin: bool) -> FileRecall:
    true, inferred = [0, 0], [0, 0]
    for sketch in sketches:
        candidates = [c for c in sketch.constraints if c.type not in NOT_INFERRED]
        result = constrain(replace(sketch, constraints=()), ConstrainOptions(repair=with_repair, origin=origin)).sketch
        if len(result) != len(sketch):
            continue
        implied = implied_constraints(result, result.constraints, candidates)
        residuals = constraint_residuals(sketch, candidates)
        for constraint, residual, is_implied in zip(candidates, residuals, implied, strict=True):
            if residual is not None and residual <= HOLDS:
                is_external = any(ref.primitive is None for ref in constraint.refs)
                true[is_external] += 1
                inferred[is_external] += is_implied
    return FileRecall(with_repair, origin, true[0], inferred[0], true[1], inferred[1])
