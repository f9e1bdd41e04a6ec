"""A sketch while its constraints are found: what is believed so far, and the numbers that agree with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType

from .candidates import MOST_BEND, MOST_TURN, Looks
from .contacts import contacts
from .equations import bodies, equations_of
from .joining import SURE, Joined, strained
from .nearest import settle
from .rank import seem_new, spanned
from .sharing import shared
from .system import Form, System, build

# Below this share of itself, a demand's new part is only the sketch's own inexactness.
_NEW = 0.05
# What is still missed by more of the tolerance than this, after solving, cannot be satisfied.
_UNMET = 0.2
# Between rounds the sketch need only agree with itself much better than it was drawn.
_ENOUGH = 1e-2


class Drawing:
    """What was joined, and what is believed besides. What is given is believed from the start."""

    def __init__(self, joined: Joined) -> None:
        variables, tolerance = joined.variables, joined.tolerance
        self.variables, self.tolerance, self.slots = variables, tolerance, joined.slots
        self.believed = list(joined.believed)
        self.contacts = contacts([*joined.given, *(c for c, _, _ in self.believed)], variables)
        f = self.slots.start[self.slots.slot]
        owners = np.repeat(variables.arcs, 2).tolist()
        known = [e for e, i in zip(bodies(variables), owners, strict=True) if i not in joined.fixed]
        for constraint in joined.given:
            if shared(constraint, variables) is None:
                known += equations_of(constraint, variables, f, self.contacts) or ()
        self.z = np.zeros(self.slots.free)
        self.system = build(known, self.slots)
        if known:
            self.system = self.system.take(seem_new(self.system.evaluate(self.z)[1], _NEW))
        self.owners = [0] * len(self.system)  # whose each equation is: the identity of a constraint that is believed
        self.z, _, rows = settle(self.system, self.z, steps=6, enough=_ENOUGH * tolerance)
        self.span = spanned(rows, 1e-4)
        self.looks = Looks(variables, joined.classes.leaders(), 2 * SURE * tolerance)
        self.looks.look(self.slots.features(self.z))

    def constraints(self) -> list[Constraint]:
        return [constraint for constraint, _, _ in self.believed]

    def believe(self, guesses: Iterable[Constraint]) -> None:
        """Take in what the tolerance explains, closest first, and solve."""
        guessed = list(guesses)
        if not guessed:
            return
        f = self.slots.features(self.z)
        demands = [equations_of(guess, self.variables, f, self.contacts) or [] for guess in guessed]
        equations = [e for demand in demands for e in demand]
        system = build(equations, self.slots)
        missed, rows = system.evaluate(self.z)
        missed = np.abs(missed)
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rest = rows - (rows @ self.span.T) @ self.span
        new = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        most = np.array([_most(guess, e.form) for guess, demand in zip(guessed, demands, strict=True) for e in demand])
        allowed = np.minimum(SURE * self.tolerance * new, most)
        is_new = new > _NEW * length
        settled = missed <= _NEW * self.tolerance * length  # nothing is left to say, nor to contradict
        fine = np.where(is_new, missed <= allowed, settled).tolist()
        share = np.where(is_new, missed / np.maximum(allowed, 1e-300), 0.0).round(9).tolist()
        adds, least = is_new.tolist(), (_NEW * length) ** 2
        hopeful: list[tuple[int, float, int, int, int]] = []
        end = 0
        for i, demand in enumerate(demands):
            start, end = end, end + len(demand)
            if end > start and all(fine[start:end]) and any(adds[start:end]):
                hopeful.append((-sum(adds[start:end]), max(share[start:end]), i, start, end))
        if not hopeful:
            return
        taken: list[int] = []
        before = len(self.believed)
        for _, by, i, start, end in sorted(hopeful):
            said = len(taken)
            for row in range(start, end):
                size = float(rest[row] @ rest[row])
                if size > least[row]:
                    unit = rest[row] / size**0.5
                    rest -= (rest @ unit)[:, None] * unit
                    taken.append(row)
            if len(taken) > said:
                self.owners += [id(guessed[i])] * (len(taken) - said)
                self.believed.append((guessed[i], len(taken) - said, by))
        if taken:
            self._solve(self.system.and_(system.take(taken)), before)

    def _solve(self, system: System, before: int) -> None:
        """Agree with what is believed; of the constraints since `before`, those are not believed that cannot be
        satisfied, or strain the sketch.
        """
        everything = set(range(len(self.variables.primitives)))
        for patience in (2, 1, 0):
            z, missed, rows = settle(system, self.z, steps=6, enough=_ENOUGH * self.tolerance)
            strain = strained(self.variables, self.slots.features(z), self.tolerance)
            unmet = np.abs(missed) > _UNMET * self.tolerance * np.sqrt(np.einsum("ij,ij->i", rows, rows))
            contrary = {self.owners[k] for k in np.flatnonzero(unmet).tolist()}
            if not strain and not contrary:
                break
            recent = [c for c, _, _ in self.believed[before:]]
            doubted = {id(c) for c in recent if id(c) in contrary}
            if not patience or not doubted:
                culprits = strain if strain and patience else everything
                doubted = {id(c) for c in recent if not culprits.isdisjoint(ref.primitive for ref in c.refs)}
            keep = [row for row, owner in enumerate(self.owners) if owner not in doubted]
            system, self.owners = system.take(keep), [self.owners[row] for row in keep]
            self.believed = [believed for believed in self.believed if id(believed[0]) not in doubted]
        else:
            z, _, rows = settle(system, self.z, steps=6, enough=_ENOUGH * self.tolerance)
        self.system, self.z = system, z
        self.span = spanned(rows, 1e-4)
        self.looks.look(self.slots.features(z))


def _most(guess: Constraint, form: Form) -> float:
    """How far off an angle may be at most. Curves that meet almost smoothly are meant to, however short they are."""
    if form is not Form.SINE:
        return float("inf")
    return MOST_BEND if guess.type is ConstraintType.TANGENT else MOST_TURN
