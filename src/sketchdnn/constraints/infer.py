"""Which constraints a drawn sketch means.

Every place is taken to be off by up to the tolerance, independently. A relation is believed if that explains by how
much it is missed: its residual against its derivative by all numbers that are still free. So rounds go from the certain
to the subtle: first which places are one, then directions, then what touches, then sizes and symmetry. After each round
the sketch is solved, which averages its errors away and leaves fewer free numbers: what already follows has no freedom
left and is not said again, so the set is minimal, and what would contradict it is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, GeometryError, Part, Ref, Sketch

from . import candidates
from .candidates import Looks
from .contacts import Classes, contacts
from .equations import Equation, Form, System, equations_of
from .rank import Span, spanned
from .solve import settle
from .variables import Floats, Variables

# More numbers than this would take many seconds: pairs of everything are looked at, several times.
MOST_NUMBERS = 600
# How far off a drawn place may be, as a share of the sketch's size.
TOLERANCE = 0.005
# Three standard deviations of an error that is anywhere within ±1.
_SURE = 3**0.5
# Below this share of itself, a demand's new part is only the sketch's own inexactness.
_NEW = 0.05
# What moves by more tolerances than this, or shrinks below this share of itself, was not meant to.
_STRAIN = 6.0
_SHRUNK = 0.3
# Between rounds the sketch need only agree with itself much better than it was drawn.
_ENOUGH = 1e-3


def infer(sketch: Sketch, tolerance: float = TOLERANCE) -> tuple[Constraint, ...]:
    """The constraints a sketch means, round by round: in each, those that settle most and are missed least come first.

    What followed from those before it, when its turn came, is not among them; `solve` names what turns out to follow.

    >>> from sketchdnn.geometry import Line
    >>> corner = Sketch((Line((0, 0), (10, 0.01)), Line((10.01, 0), (10, 8))))
    >>> [str(constraint.type) for constraint in infer(corner)]
    ['coincident', 'horizontal', 'vertical']
    """
    if not 0 < tolerance < 0.1:
        raise GeometryError(f"a tolerance is a share of the size, between 0 and 0.1, not {tolerance}")
    if not len(sketch):
        return ()
    variables = Variables(sketch.primitives)
    if len(variables.x) > MOST_NUMBERS:
        raise GeometryError(f"a sketch of {len(variables.x)} free numbers is too large to infer constraints from")
    drawing = _Drawing(variables, tolerance)
    drawing.join_places()
    drawing.believe(candidates.levels(drawing.looks()))
    level = {c.refs[0].primitive for c in drawing.believed if c.type in _LEVEL}
    looks = drawing.looks()
    drawing.believe(
        [
            *candidates.directions(looks, {i for i in level if i is not None}),
            *candidates.smooth(list(contacts(drawing.believed, variables)), looks),
        ]
    )
    looks = drawing.looks()
    drawing.believe([*candidates.collinear(looks), *candidates.on_curves(looks)])
    looks = drawing.looks()
    shared = set(contacts(drawing.believed, variables))
    touching = candidates.touching(looks, shared)
    drawing.believe([*candidates.smooth(list(shared), looks), *touching, *candidates.equals(looks)])
    looks = drawing.looks()
    drawing.believe([*candidates.middles(looks), *candidates.mirrored(looks), *candidates.aligned(looks)])
    return tuple(drawing.believed)


_LEVEL = (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL)


class _Drawing:
    """A sketch while its constraints are found: what is believed so far, and the numbers that agree with it."""

    def __init__(self, variables: Variables, tolerance: float) -> None:
        self.variables, self.tolerance = variables, tolerance
        self.believed: list[Constraint] = []
        self.equations: list[Equation] = []
        self.x = variables.x
        self.span = Span(len(variables.x))
        self.classes = Classes(variables.count)

    def looks(self) -> Looks:
        reach = 2 * _SURE * self.tolerance
        return Looks(self.variables, self.classes, self.variables.features(self.x), reach)

    def join_places(self) -> None:
        """Places that are one, nearest pairs first; never two of one primitive, which would leave nothing of it."""
        variables = self.variables
        at = variables.features(self.x)[: 2 * variables.count].reshape(-1, 2)
        off = np.abs(at[:, None] - at[None]).max(axis=2)
        # Both coordinates are off by two errors; the root of 2 makes that three standard deviations again.
        first, second = np.nonzero(np.triu(off <= 2**0.5 * _SURE * self.tolerance, 1))
        owners = [{i} for i, _ in variables.places]
        for n in np.lexsort((second, first, off[first, second].round(9))).tolist():
            a, b = self.classes.find(int(first[n])), self.classes.find(int(second[n]))
            if a == b or owners[a] & owners[b]:
                continue
            self.classes.join(a, b)
            owners[min(a, b)] = owners[a] | owners[b]
            self.believed.append(_one_place(variables, int(first[n]), int(second[n])))
        self._solve()

    def believe(self, guesses: Iterable[Constraint]) -> None:
        """Take in what the tolerance explains, closest first, and solve."""
        guessed = list(guesses)
        if not guessed:
            return
        f = self.variables.features(self.x)
        shared = contacts(self.believed, self.variables)
        demands = [equations_of(guess, self.variables, f, shared) or [] for guess in guessed]
        equations = [e for demand in demands for e in demand]
        missed, by_features = System(equations, self.variables.num_features).evaluate(f)
        rows = by_features @ self.variables.derivatives(self.x)
        length = np.linalg.norm(rows, axis=1)
        new = np.linalg.norm(self.span.beyond(rows), axis=1)
        allowed = _SURE * self.tolerance * new
        most = [_most(guess, e) for guess, demand in zip(guessed, demands, strict=True) for e in demand]
        allowed = np.minimum(allowed, most)
        is_new = new > _NEW * length
        settled = np.abs(missed) <= _NEW * self.tolerance * length  # nothing is left to say, nor to contradict
        fine = np.where(is_new, np.abs(missed) <= allowed, settled)
        share = np.where(is_new, np.abs(missed) / np.maximum(allowed, 1e-300), 0.0)
        ends = np.cumsum([len(demand) for demand in demands]).tolist()
        spans = [slice(end - len(demand), end) for demand, end in zip(demands, ends, strict=True)]
        hopeful = [i for i, s in enumerate(spans) if s.stop > s.start and fine[s].all() and is_new[s].any()]
        before = len(self.believed)
        for i in sorted(hopeful, key=lambda i: (-int(is_new[spans[i]].sum()), float(share[spans[i]].max().round(9)))):
            added = [self.span.add(row, _NEW) for row in rows[spans[i]]]
            if any(added):
                self.believed.append(guessed[i])
        if len(self.believed) > before:
            self._solve(before)

    def _solve(self, before: int = 0) -> None:
        """Agree with what is believed; what strains the sketch, of the constraints since `before`, is not believed."""
        x = self._settled()
        strained = self._strained(x)
        if strained:
            recent = [c for c in self.believed[before:] if strained.isdisjoint(ref.primitive for ref in c.refs)]
            self.believed[before:] = recent
            x = self._settled()
            if self._strained(x):
                del self.believed[before:]
                x = self._settled()
        self.x = x
        if self.equations:
            rows = self.system.evaluate(self.variables.features(x))[1] @ self.variables.derivatives(x)
            self.span = spanned(rows, 1e-4)

    def _settled(self) -> Floats:
        f = self.variables.features(self.x)
        shared = contacts(self.believed, self.variables)
        self.equations = [e for c in self.believed for e in equations_of(c, self.variables, f, shared) or ()]
        self.system = System(self.equations, self.variables.num_features)
        return (
            settle(self.variables, self.system, self.x, steps=4, enough=_ENOUGH * self.tolerance)
            if self.equations
            else self.x
        )

    def _strained(self, x: Floats) -> set[int | None]:
        """Primitives that moved further than the tolerance explains, or lost most of their size."""
        variables = self.variables
        moves = np.abs(variables.moves(x))
        owners = [*(i for i, _ in variables.places), *variables.radius]
        strained: set[int | None] = {owners[k] for k in np.flatnonzero(moves > _STRAIN * self.tolerance)}
        was, now = variables.sizes(variables.x), variables.sizes(x)
        return strained | {i for i, size in now.items() if size < _SHRUNK * was[i]}


def _most(guess: Constraint, equation: Equation) -> float:
    """How far off an angle may be at most. Curves that meet almost smoothly are meant to, however short they are."""
    if equation.form is not Form.SINE:
        return float("inf")
    return candidates.MOST_BEND if guess.type is ConstraintType.TANGENT else candidates.MOST_TURN


def _one_place(variables: Variables, a: int, b: int) -> Constraint:
    (i, part), (j, other) = variables.places[a], variables.places[b]
    if part is Part.CENTER and other is Part.CENTER:
        return Constraint(ConstraintType.CONCENTRIC, (Ref(i), Ref(j)))
    return Constraint(ConstraintType.COINCIDENT, (Ref(i, part), Ref(j, other)))
