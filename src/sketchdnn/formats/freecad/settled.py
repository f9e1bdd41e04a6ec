"""A sketch with as many dimensions as FreeCAD needs to call it fully constrained, and none that it would refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sketchdnn.geometry import Constraint, Sketch

from .selection import Said, say


def settled(sketch: Sketch) -> Sketch:
    """The sketch with dimensions that fix what the constraints that FreeCAD keeps leave free."""
    from sketchdnn.constraints.well_constrained import missing_dimensions, possible_dimensions

    chosen = missing_dimensions(sketch, [said.constraint for said in say(sketch) if _is_kept(said)])
    taken = _accepted(sketch, chosen)
    if len(taken) < len(chosen):  # what it knows beyond us, such as an angle, has made one redundant
        taken = _accepted(sketch, [*taken, *(c for c in possible_dimensions(sketch.primitives) if c not in taken)])
    return replace(sketch, constraints=(*sketch.constraints, *taken))


def _accepted(sketch: Sketch, offered: Sequence[Constraint]) -> list[Constraint]:
    """Those that FreeCAD's solver can be given besides the sketch's own."""
    whole = replace(sketch, constraints=(*sketch.constraints, *offered))
    return [said.constraint for said in say(whole)[len(sketch.constraints) :] if not said.note]


def _is_kept(said: Said) -> bool:
    """Whether FreeCAD's solver is told of a constraint."""
    return any(relation.active and relation.driving for relation in said.relations)
