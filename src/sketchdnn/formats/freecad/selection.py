"""The constraints that FreeCAD's solver can be given together.

FreeCAD refuses a sketch in which one constraint follows from others, so redundant ones are switched off: they stay in
the file, inactive. So are constraints that the sketch does not satisfy.

Relations use the equations of `sketchdnn.constraints`. Their rank is computed where the sketch is drawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from sketchdnn.constraints import equations as eq
from sketchdnn.constraints.equations import Equation, Form, Sum, between, build, outside, residual, row_lengths, vector
from sketchdnn.constraints.variables import Floats, Ints, Pair, VariableMerging, Variables
from sketchdnn.constraints.well_constrained import missing_dimensions, possible_dimensions
from sketchdnn.geometry import Arc, Constraint, Kind, Part, Primitive, Ref, Sketch
from sketchdnn.geometry.proximity import component_roots

from .constraints import Relations, to_relations
from .elements import DIMENSIONS, X_AXIS, GeoId, PointPos, Relation, RelationType
from .notes import Selected

REDUNDANT = "redundant: it follows from the others and is switched off"
MISSED = "the sketch as it is does not keep it: it is switched off"
TOO_SMALL = "what it refers to is too small or too close together to be solved: it is switched off"
UNSAID = "FreeCAD has no such constraint for what it refers to: it is only noted here"
OUTSIDE = "it refers to something outside the sketch: it is only noted here"

# The same in a report of what writing has changed.
REPORTED = {
    REDUNDANT: "a constraint switched off in FreeCAD: it follows from the others",
    MISSED: "a constraint switched off in FreeCAD: the geometry does not satisfy it ('sketchdnn constrain' moves it)",
    TOO_SMALL: "a constraint switched off in FreeCAD: what it refers to is too small or too close together",
    UNSAID: "a constraint only noted in the file: FreeCAD has no such constraint for what it refers to",
    OUTSIDE: "a constraint only noted in the file: it refers to something outside the sketch",
}

# The largest residual of a constraint that holds, as a share of the size or in radians.
HOLDS = 1e-5
# A smaller share of the sketch is rounding.
_ROUNDING = 1e-9
# An equation that differs from every combination of others by a smaller share of itself follows from them.
_INDEPENDENT = 1e-7
# More connected equations are all taken as independent: FreeCAD itself needs minutes for them.
_MAX_EQUATIONS = 1500
_BLOCK = 64
_R, _P = RelationType, PointPos


def select_relations(sketch: Sketch) -> list[Selected]:
    """The relations of each constraint of a sketch, switched off where FreeCAD's solver would refuse them."""
    if not len(sketch):
        return [Selected(constraint, (), UNSAID) for constraint in sketch.constraints]
    variables = Variables(sketch.primitives)
    selected = _name_contacts([_select(c, variables) for c in sketch.constraints], variables)
    is_on = [[r.is_solved for r in s.relations] for s in selected]
    solved = [r for s, on in zip(selected, is_on, strict=True) for r in compress(s.relations, on)]
    is_needed = iter(independent(solved, variables))
    keep = [[not is_solved or next(is_needed) for is_solved in on] for on in is_on]
    return list(map(_without_redundant, selected, keep))


def fully_dimensioned(sketch: Sketch) -> Sketch:
    """The sketch with the dimensions that FreeCAD needs to call it fully constrained, and none that it would refuse."""

    def accepted(offered: Sequence[Constraint]) -> list[Constraint]:
        whole = replace(sketch, constraints=(*sketch.constraints, *offered))
        return [s.constraint for s in select_relations(whole)[len(sketch.constraints) :] if not s.note]

    active = [s.constraint for s in select_relations(sketch) if any(r.is_solved for r in s.relations)]
    chosen = missing_dimensions(sketch, active)
    taken = accepted(chosen)
    if len(taken) < len(chosen):  # a constraint that only FreeCAD supports, such as an angle, makes one redundant
        taken = accepted([*taken, *(c for c in possible_dimensions(sketch.primitives) if c not in taken)])
    return replace(sketch, constraints=(*sketch.constraints, *taken))


def _select(constraint: Constraint, variables: Variables) -> Selected:
    """The first way to write a constraint that holds; if none does, the first way, switched off."""
    ways = to_relations(constraint, variables.primitives)
    if not ways:
        is_outside = any(ref.part is Part.EXTERNAL for ref in constraint.refs)
        return Selected(constraint, (), OUTSIDE if is_outside else UNSAID)
    problems = [_problem(way, variables) for way in ways]
    if "" in problems:
        return Selected(constraint, ways[problems.index("")])
    return Selected(constraint, tuple(replace(relation, active=False) for relation in ways[0]), problems[0])


def _problem(relations: Relations, variables: Variables) -> str:
    """Why relations cannot be solved, if so. Those that are switched off or only measure are always fine."""
    solved = [(r, relation_equations(r, variables)) for r in relations if r.is_solved]
    if any(_is_degenerate(relation, equations, variables) for relation, equations in solved):
        return TOO_SMALL
    holds = all(abs(residual(e, variables.f)) <= HOLDS for _, equations in solved for e in equations)
    return "" if holds else MISSED


def _name_contacts(selected: list[Selected], variables: Variables) -> list[Selected]:
    """Let tangent curves that share a point be tangent at it.

    Otherwise the solver would get the same equation twice: a curve through a point of another cannot come closer than
    tangent, so near a solution the distance between them does not change.
    """
    shared = _shared_points([r for s in selected for r in s.relations if r.is_solved], variables.primitives)

    def at_contact(relation: Relation) -> Relation:
        point = shared.get(frozenset(g.geo for g in relation.ids))
        if relation.type is not _R.TANGENT or any(g.pos is not _P.WHOLE for g in relation.ids) or point is None:
            return relation
        at_point = replace(relation, ids=(*relation.ids, point))
        return relation if _problem((at_point,), variables) else at_point

    return [replace(s, relations=tuple(map(at_contact, s.relations))) for s in selected]


def _shared_points(relations: Sequence[Relation], primitives: Sequence[Primitive]) -> dict[frozenset[int], GeoId]:
    """For each two curves that are joined at a point: such a point."""
    representative = _representatives([r.ids for r in relations if r.type is _R.COINCIDENT])
    on: defaultdict[GeoId, set[int]] = defaultdict(set)  # the curves through each point
    for geo, primitive in enumerate(primitives):
        if primitive.kind in (Kind.LINE, Kind.ARC):
            for g in (GeoId(geo, _P.START), GeoId(geo, _P.END)):
                on[representative.get(g, g)].add(geo)
    for relation in relations:
        match relation:
            case Relation(_R.POINT_ON_OBJECT, (point, curve)):
                on[representative.get(point, point)].add(curve.geo)
            case Relation(_R.SYMMETRIC, (start, end, middle)) if start.geo == end.geo and middle.pos is not _P.WHOLE:
                on[representative.get(middle, middle)].add(start.geo)
    return {frozenset((a, b)): g for g, curves in on.items() for a in curves for b in curves if a < b}


def _without_redundant(selected: Selected, keep: Sequence[bool]) -> Selected:
    """Switched off when all of it is redundant; when some of it is, the rest is enough."""
    if any(keep) or not selected.relations:
        return replace(selected, relations=tuple(compress(selected.relations, keep)))
    off = tuple(replace(relation, active=False) for relation in selected.relations)
    return Selected(selected.constraint, off, REDUNDANT)


def _representatives(ties: Sequence[tuple[GeoId, ...]]) -> dict[GeoId, GeoId]:
    """For each of the points that are tied together, however far around, the one that represents all of them."""
    parent: dict[GeoId, GeoId] = {}

    def find(item: GeoId) -> GeoId:
        while parent.setdefault(item, item) != item:
            parent[item] = item = parent[parent[item]]
        return item

    for a, b in ties:
        parent[find(b)] = find(a)
    return {item: find(item) for item in list(parent)}


def independent(relations: Sequence[Relation], variables: Variables) -> list[bool]:
    """Whether each relation is independent of the others; of those that follow from each other, some are kept."""
    equations = [relation_equations(relation, variables) for relation in relations]
    geos = [[g.geo for g in relation.ids if g.geo >= 0] for relation in relations]
    roots = component_roots(len(variables.primitives), geos)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for i, numbers in enumerate(geos):
        groups[int(roots[numbers[0]])].append(i)
    keep = [True] * len(relations)

    def precedence(i: int) -> tuple[int, ...]:
        kind = relations[i].type
        return kind in DIMENSIONS, -len(equations[i]), kind is not _R.COINCIDENT, kind is not _R.POINT_ON_OBJECT

    for root, group in groups.items():
        # Joining constraints come first, then alignments, then dimensions; two equations before one: where half of a
        # relation follows from the rest, FreeCAD reports one of the rest.
        ordered = sorted(group, key=precedence)
        owners = [i for i in ordered for _ in equations[i]]
        members = np.flatnonzero(roots == root).tolist()
        if len(owners) <= _MAX_EQUATIONS:
            adds = _adding_owners([e for i in ordered for e in equations[i]], owners, members, variables)
            for i in group:
                keep[i] = i in adds
    return keep


def _adding_owners(
    equations: list[Equation], owners: list[int], members: Sequence[int], variables: Variables
) -> set[int]:
    """The owners of equations on some primitives that add to the rank of those before them."""
    variable_map = VariableMerging(variables).variable_map()
    columns = np.unique([variable_map.index[k] for i in members for k in variables.parameters(i)])
    local = variable_map.restrict(columns)
    arcs = [variables.parameters(i) for i in members if isinstance(variables.primitives[i], Arc)]
    arc_columns = np.searchsorted(columns, variable_map.index[np.array(arcs, dtype=int).reshape(-1, 7).T])
    basis = np.zeros((min(len(equations), len(columns)), len(columns)))
    adds: set[int] = set()
    rank = 0
    for start in range(0, len(equations), _BLOCK):  # many rows at once, which is much faster than one by one
        rows = build(equations[start : start + _BLOCK], local).evaluate(np.zeros(len(columns)))[1]
        _derive_by_angles(rows, arc_columns, local.start)
        length = row_lengths(rows)
        valid = (length > _ROUNDING) & (length < np.inf)  # a curve's own end is always on it
        rows = np.where(valid[:, None], rows / np.where(valid, length, 1.0)[:, None], 0.0)
        before = rank
        for owner, row in zip(owners[start:], _outside(rows, basis[:before]), strict=False):
            rest = _outside(row, basis[before:rank])
            size = float(np.linalg.norm(rest))
            if size > _INDEPENDENT and rank < len(basis):
                basis[rank] = rest / size
                rank += 1
                adds.add(owner)
    return adds


def _derive_by_angles(rows: Floats, arc_columns: Ints, values: Floats) -> None:
    """Replace derivatives by the ends of arcs with those by their angles, so that an arc's parameters are independent.

    Args:
        rows: The derivatives, changed in place. The angle takes the column of the end's x, the column of y is zero.
        arc_columns: For each arc the columns of its center, start, end and radius.
        values: The values of the columns.
    """
    cx, cy, *ends, radius = arc_columns
    for x, y in (ends[:2], ends[2:]):
        dx, dy = values[x] - values[cx], values[y] - values[cy]
        rows[:, cx] += rows[:, x]
        rows[:, cy] += rows[:, y]
        rows[:, radius] += (rows[:, x] * dx + rows[:, y] * dy) / values[radius]
        rows[:, x] = rows[:, y] * dx - rows[:, x] * dy
        rows[:, y] = 0.0


def _outside(rows: Floats, basis: Floats) -> Floats:
    return outside(outside(rows, basis), basis)  # twice, against rounding


def relation_equations(relation: Relation, variables: Variables) -> list[Equation]:
    """The equations of a relation. Unlike those of our constraints, they have only one reading."""
    g, ids, f, size = _Geometry(variables), relation.ids, variables.f, relation.value / variables.scale
    first, last = ids[0], ids[-1]
    match relation.type:
        case _R.COINCIDENT:
            return eq.same_point(g.point(first), g.point(last))
        case _R.HORIZONTAL | _R.VERTICAL:
            return [eq.level(*g.ends(ids), axis=1 if relation.type is _R.HORIZONTAL else 0)]
        case _R.DISTANCE_X | _R.DISTANCE_Y:
            a, b = g.ends(ids)
            return [eq.level(b, a, 0 if relation.type is _R.DISTANCE_X else 1, size)]
        case _R.DISTANCE if len(ids) == 2 and last.pos is _P.WHOLE:
            offset = g.on_curve(g.point(first), last)
            return [eq.closest([offset._replace(constant=side * size) for side in (1.0, -1.0)], f)]
        case _R.DISTANCE:
            return [Equation(Form.LENGTHS, between(*g.ends(ids)), constant=size)]
        case _R.RADIUS | _R.DIAMETER:
            factor = 1.0 if relation.type is _R.RADIUS else 2.0
            return [Equation(Form.NONE, linear=((variables.radius[first.geo], factor),), constant=size)]
        case _R.EQUAL:
            return eq.equal_sizes([g.circle(i) for i in ids], [g.line(i) for i in ids]) or []
        case _R.POINT_ON_OBJECT:
            return [g.on_curve(g.point(first), last)]
        case _R.SYMMETRIC:
            a, b, about = g.point(ids[0]), g.point(ids[1]), g.line(last) if last.pos is _P.WHOLE else None
            return eq.symmetric(a, b, about) if about else eq.midpoint(g.point(last), a, b)
        case _R.BLOCK:
            return eq.fixed((Ref(first.geo),), variables, f) or []
        case _R.ANGLE if len(ids) < 3:
            return [_angle(relation, g)]
    return _contact(relation, g) if len(ids) == 3 or first.pos is not _P.WHOLE else _curves(relation, g)


class _Geometry:
    """FreeCAD's references as points, lines and circles of the solver's variables."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables

    def point(self, g: GeoId) -> int:
        if g.geo < 0:
            return self.variables.point_index[None, Part.ORIGIN]
        kind = self.variables.primitives[g.geo].kind
        offset = {(Kind.LINE, _P.END): 1, (Kind.ARC, _P.START): 1, (Kind.ARC, _P.END): 2}.get((kind, g.pos), 0)
        return self.variables.first[g.geo] + offset

    def line(self, g: GeoId) -> Pair | None:
        """Two points of a line or axis, away from the end that is named."""
        ref = Ref(g.geo) if g.geo >= 0 else Ref(None, Part.X_AXIS if g.geo == X_AXIS.geo else Part.Y_AXIS)
        line = self.variables.ends(ref)
        return (line[1], line[0]) if line and g.pos is _P.END else line

    def circle(self, g: GeoId) -> Pair | None:
        return self.variables.circle(Ref(g.geo)) if g.geo >= 0 else None

    def ends(self, ids: Sequence[GeoId]) -> Pair:
        """Two points; of one reference the ends of a line, or the origin and a point."""
        if len(ids) == 2:
            return self.point(ids[0]), self.point(ids[1])
        line = self.line(ids[0]) if ids[0].pos is _P.WHOLE else None
        return line or (self.variables.point_index[None, Part.ORIGIN], self.point(ids[0]))

    def on_curve(self, point: int, g: GeoId) -> Equation:
        line, circle = self.line(GeoId(g.geo)), self.circle(g)
        return eq.on_line(point, line) if line else eq.on_circle(point, circle or (0, 0))

    def direction(self, point: int, g: GeoId) -> tuple[Sum, int]:
        """A vector at a point of a curve, and the number of quarter turns from there to the curve's tangent."""
        line = self.line(GeoId(g.geo))
        return (between(*line), 0) if line else (between(self.variables.first[g.geo], point), 1)


def _angle(relation: Relation, g: _Geometry) -> Equation:
    """The sweep of an arc, or the angle from one line to another; a half turn off is as far off as can be."""
    ids, value = relation.ids, relation.value
    arc = g.variables.primitives[ids[0].geo] if len(ids) == 1 else None
    if isinstance(arc, Arc):
        center = g.variables.first[ids[0].geo]
        v, w = between(center, center + 1), between(center, center + 2)
        is_opposite = abs(arc.sweep - value) > math.pi / 2
    else:
        line, other = g.line(ids[0] if len(ids) == 2 else X_AXIS), g.line(ids[-1])
        v, w = between(*(line or (0, 0))), between(*(other or (0, 0)))
        (vx, vy), (wx, wy) = vector(v, g.variables.f), vector(w, g.variables.f)
        is_opposite = math.cos(value) * (vx * wx + vy * wy) + math.sin(value) * (vx * wy - vy * wx) < 0
    return Equation(Form.SINE, v, w, constant=-2.0 * is_opposite, turn=(math.cos(value), -math.sin(value)))


def _contact(relation: Relation, g: _Geometry) -> list[Equation]:
    """Curves that are tangent, perpendicular or at an angle at a point: an end of the first, of both, or a third."""
    first, second = relation.ids[:2]
    point = other = g.point(relation.ids[-1] if len(relation.ids) == 3 else first)
    equations: list[Equation] = []
    if len(relation.ids) == 2 and second.pos is _P.WHOLE:
        equations = [g.on_curve(point, second)]
    elif len(relation.ids) == 2:
        other = g.point(second)
        equations = eq.same_point(point, other)
    (v, quarter), (w, other_quarter) = g.direction(point, first), g.direction(other, second)
    angle = {_R.TANGENT: 0.0, _R.PERPENDICULAR: math.pi / 2}.get(relation.type, -relation.value)
    angle += (other_quarter - quarter) * math.pi / 2
    return [*equations, Equation(Form.SINE, v, w, turn=(math.cos(angle), math.sin(angle)))]


def _curves(relation: Relation, g: _Geometry) -> list[Equation]:
    """Curves that are parallel, tangent or perpendicular anywhere; a line comes first."""
    first, second = sorted(relation.ids, key=lambda i: g.line(i) is None)
    line, other, circle = g.line(first), g.line(second), g.circle(second)
    if line and other and relation.type is _R.TANGENT:
        return [eq.on_line(end, line) for end in other]
    if line and other:
        turn = eq.SQUARE if relation.type is _R.PERPENDICULAR else eq.ALONG
        return [Equation(Form.SINE, between(*line), between(*other), turn=turn)]
    if line and circle:
        is_tangent = relation.type is _R.TANGENT
        return [eq.tangent_line(line, circle, g.variables.f) if is_tangent else eq.on_line(circle[0], line)]
    return [eq.tangent_circles(g.circle(first) or (0, 0), circle or (0, 0), g.variables.f)]


def _is_degenerate(relation: Relation, equations: Sequence[Equation], variables: Variables) -> bool:
    """Whether a relation is on a line without length, or needs the direction of a vector without length."""
    vectors = [between(*line) for g in relation.ids if (line := _Geometry(variables).line(g))]
    for e in equations:
        if e.form in (Form.OFFSET, Form.SINE) or (relation.type is _R.TANGENT and e.form is Form.LENGTHS and not e.w):
            vectors.append(e.v)
        if e.form is Form.SINE:
            vectors.append(e.w)
    return any(math.hypot(*vector(terms, variables.f)) < _ROUNDING for terms in vectors)
