"""Sets of sketches as compact rows: by hand, procedural, and random."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import strategies as st

from sketchdnn.data.procedural import procedural
from sketchdnn.geometry import Line, Primitive, Sketch, normalize
from sketchdnn.representation import Compact, encode
from support.outlines import polygon
from support.strategies import sketches


def rows(*drawings: Sequence[Primitive]) -> Compact:
    return encode([Sketch(tuple(drawing)) for drawing in drawings])


def square(half: float = 1.0) -> list[Primitive]:
    return polygon((-half, -half), (half, -half), (half, half), (-half, half))


def pulled_square(by: float) -> list[Primitive]:
    """A square whose last end is moved away from its corner."""
    return [*square()[:3], Line((-1, 1), (-1, -1 + by))]


@cache
def parts(count: int, seed: int = 0) -> Compact:
    return encode([normalize(procedural(seed, index))[0] for index in range(count)])


def shuffled(compact: Compact, seed: int) -> Compact:
    """The rows of each sketch in another order."""
    return compact.permuted(np.random.default_rng(seed).random(compact.kind.shape).argsort(axis=1))


sets = st.lists(sketches(), min_size=1, max_size=4).map(lambda some: encode([normalize(s)[0] for s in some]))
