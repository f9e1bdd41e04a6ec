"""Sets of sketches as compact rows: by hand, procedural, and random."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import strategies as st

from sketchdnn.data.procedural import procedural
from sketchdnn.geometry import Line, Primitive, Sketch, Vec, normalize
from sketchdnn.representation import Compact, encode
from support.strategies import sketches


def rows(*drawings: Sequence[Primitive]) -> Compact:
    """Sketches as compact rows, not normalized."""
    return encode([Sketch(tuple(drawing)) for drawing in drawings])


def polygon(*corners: Vec, construction: bool = False) -> list[Primitive]:
    """Lines from corner to corner and back to the first."""
    return [Line(a, b, construction) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]


def square(half: float = 1.0) -> list[Primitive]:
    """A square about the origin."""
    return polygon((-half, -half), (half, -half), (half, half), (-half, half))


def pulled_square(by: float) -> list[Primitive]:
    """A square whose last end is moved away from its corner."""
    return [*square()[:3], Line((-1, 1), (-1, -1 + by))]


@cache
def parts(count: int, seed: int = 0) -> Compact:
    """Procedural sketches, normalized."""
    return encode([normalize(procedural(seed, index))[0] for index in range(count)])


def shuffled(compact: Compact, seed: int) -> Compact:
    """The rows of each sketch in another order."""
    return compact.permuted(np.random.default_rng(seed).random(compact.kind.shape).argsort(axis=1))


sets = st.lists(sketches(), min_size=1, max_size=4).map(lambda some: encode([normalize(s)[0] for s in some]))
