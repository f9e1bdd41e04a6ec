"""Which constraints a drawn sketch means.

Every place is taken to be off by up to the tolerance, independently. A relation is believed if that explains by how
much it is missed: its residual against its derivative by all numbers that are still free. So rounds go from the certain
to the subtle: first which places are one, then directions, then what touches, then sizes and symmetry. After each round
the sketch is solved, which averages its errors away and leaves fewer free numbers: what already follows has no freedom
left and is not said again, so the set is minimal, and what would contradict it is not believed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, ConstraintType, Sketch

from . import candidates
from .contacts import contacts
from .drawing import Drawing
from .joining import Believed, Joined
from .pieces import MOST_TOGETHER, by_pieces
from .variables import variables_of

# How far off a drawn place may be, as a share of the sketch's size.
TOLERANCE = 0.005
# More numbers than this are not looked at together: each with each, that would take many seconds.
MOST_NUMBERS = 600


def infer(
    sketch: Sketch,
    tolerance: float = TOLERANCE,
    *,
    given: Sequence[Constraint] = (),
    fixed: Collection[int] = (),
) -> tuple[Constraint, ...]:
    """The constraints a sketch means, ranked by how much each explains: first which places are one, then what settles
    more numbers at once, then what is missed by less of what it may miss.

    What followed from others, when its turn came, is not among them; `solve` names what turns out to follow. What is
    `given` is believed first and not repeated in the answer; primitives in `fixed` cannot move. A very large sketch is
    looked at in pieces; `skipped` says what that leaves out.

    >>> from sketchdnn.geometry import Line
    >>> corner = Sketch((Line((0, 0), (10, 0.01)), Line((10.01, 0), (10, 8))))
    >>> [str(constraint.type) for constraint in infer(corner)]
    ['coincident', 'vertical', 'horizontal']
    """
    if not 0 < tolerance < 0.1:
        raise GeometryError(f"a tolerance is a share of the size, between 0 and 0.1, not {tolerance}")
    if not len(sketch):
        return ()
    variables = variables_of(sketch.primitives)
    large = variables.num_features > MOST_NUMBERS
    joined = Joined(variables, tolerance, given, fixed, local=large)
    believed = by_pieces(joined, _believed) if large else _believed(joined)
    return tuple(constraint for constraint, _, _ in sorted(believed, key=_rank))


def is_large(sketch: Sketch) -> bool:
    """Whether a sketch is too large to be looked at as a whole."""
    return bool(len(sketch)) and variables_of(sketch.primitives).num_features > MOST_NUMBERS


def skipped(sketch: Sketch) -> str | None:
    """What `infer` does not look at in a sketch as large as this, in a sentence."""
    if not is_large(sketch):
        return None
    return (
        f"the sketch has {len(sketch)} primitives: only where places meet and which lines are level was looked for in "
        f"all of it, everything else within neighborhoods of up to {MOST_TOGETHER}"
    )


def plain(sketch: Sketch, tolerance: float, given: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Coincident, concentric, horizontal and vertical constraints of a sketch of any size, beyond those given."""
    joined = Joined(variables_of(sketch.primitives), tolerance, given, (), local=True)
    return tuple(constraint for constraint, _, _ in sorted(joined.believed, key=_rank))


def _believed(joined: Joined) -> list[Believed]:
    """What is believed of a drawing, round by round."""
    drawing = Drawing(joined)
    variables, given, looks = joined.variables, joined.given, drawing.looks
    level = {c.refs[0].primitive for c in (*given, *drawing.constraints()) if c.type in _LEVEL}
    drawing.believe(
        [
            *candidates.directions(looks, {i for i in level if i is not None}),
            *candidates.smooth(list(drawing.contacts), looks),
        ]
    )
    drawing.believe([*candidates.collinear(looks), *candidates.on_curves(looks)])
    believed = drawing.constraints()
    if any(c.type is ConstraintType.POINT_ON_CURVE for c in believed):
        drawing.contacts = contacts([*given, *believed], variables)
    smooth = {frozenset(ref.primitive for ref in c.refs) for c in believed if c.type is ConstraintType.TANGENT}
    rough = [pair for pair in drawing.contacts if pair not in smooth]
    touching = candidates.touching(looks, set(drawing.contacts))
    drawing.believe([*candidates.smooth(rough, looks), *touching, *candidates.equals(looks)])
    drawing.believe([*candidates.middles(looks), *candidates.mirrored(looks), *candidates.aligned(looks)])
    return drawing.believed


_LEVEL = (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL)
_MEETING = (ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC)


def _rank(believed: Believed) -> tuple[bool, int, float]:
    constraint, removed, share = believed
    return constraint.type not in _MEETING, -removed, share
