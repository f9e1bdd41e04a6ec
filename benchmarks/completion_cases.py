"""What is hidden from real sketches: the tasks of completion, and how much of the hidden is recovered.

The tasks are what designers have: an outline that is open, an outline without its inner features, one side of a mirror
symmetric sketch, and a sketch that lacks one inner feature. All originals can be extruded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints import repair
from sketchdnn.data.candidates import assign_splits, text_keys
from sketchdnn.data.config import SPLITS, PrepareConfig
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.evaluation.samples import normalize_split
from sketchdnn.formats import scan
from sketchdnn.geometry import Arc, Circle, Line, Loop, Point, Primitive, Profile, Sketch, bounds, profile
from sketchdnn.geometry.mirror import Mirror
from sketchdnn.representation import decode_compact
from sketchdnn.representation.layout import MAX_PRIMITIVES

OPEN_OUTLINE, INNER_FEATURES, SYMMETRIC_HALF, SINGLE_FEATURE = TASKS = (
    "open outline",
    "inner features",
    "symmetric half",
    "single feature",
)
# Ends of the originals this close, as a fraction of the size, are joined.
JOINED = 1e-4
# Mirror images this close are equal, where the larger side is 2.
_SYMMETRIC = 0.01
# A primitive is recovered if every end, midpoint, center and radius is within this, where the larger side is 2.
RECOVERY_TOLERANCE = 0.05


class Case(NamedTuple):
    """A real sketch, normalized, in two parts.

    Attributes:
        task: Which of the tasks it belongs to.
        part: The primitives that are given.
        hidden: The other ones.
    """

    task: str
    part: Sketch
    hidden: tuple[Primitive, ...]


def held_out_sketches(data: Path, numbers: tuple[int, int], seed: int = 0, *, split: str = "test") -> Iterator[Sketch]:
    """Sketches of a split with so many primitives, in random order: without constraints, the larger side from −1 to 1.

    Args:
        data: A prepared corpus; or a file of sketches, of which those of the split are taken. A corpus has none with
            more than 16 primitives.
        numbers: The smallest and the largest number of primitives.
        seed: Of the order.
        split: The split.
    """
    rng = np.random.default_rng(seed)
    low, high = numbers
    if data.is_dir():
        corpus = Dataset.open(data)
        rows = normalize_split(corpus.split(split).compact, is_normalized=corpus.half_extent == 1)
        rows = rows[np.flatnonzero((rows.counts >= low) & (rows.counts <= high))]
        for number in rng.permutation(len(rows)):
            (decoded,) = decode_compact(rows[number : number + 1])
            yield decoded.sketch
        return
    found = [item for item in scan(data) if isinstance(item, Sketch) and low <= len(item) <= high]
    keys = text_keys([str(sketch.extra.get("group", "")) for sketch in found])
    in_split = np.flatnonzero(assign_splits(keys, PrepareConfig()) == SPLITS.index(split))
    for number in rng.permutation(in_split):
        box = bounds(found[number])
        if box.size > 0:
            x, y = box.center
            sketch = replace(found[number], constraints=(), extra={}, units=None)
            try:
                yield sketch.moved(1.0, (-x, -y)).moved(2 / box.size)
            except GeometryError:  # a primitive is too small beside the whole
                continue


def find_cases(sketches: Iterable[Sketch], count: int, seed: int = 0) -> list[Case]:
    """Up to `count` cases, as many of each task as there are; each sketch is used once."""
    rng = np.random.default_rng(seed)
    wanted = {task: count // len(TASKS) + (number < count % len(TASKS)) for number, task in enumerate(TASKS)}
    cases: dict[str, list[Case]] = {task: [] for task in TASKS}
    for sketch in filter(None, map(_with_exact_joints, sketches)):
        shape = profile(sketch)
        for task in sorted(TASKS, key=lambda task: len(cases[task]) - wanted[task]):
            if len(cases[task]) == wanted[task]:
                continue
            hidden = _hide(task, sketch, shape, rng)
            if hidden and (case := _make_case(task, sketch, hidden)) is not None:
                cases[task].append(case)
                break
        if all(len(cases[task]) == wanted[task] for task in TASKS):
            break
    found = [case for task in TASKS for case in cases[task]]
    if not found:
        raise SketchError("no test sketch of this size can be extruded, so there is nothing to complete")
    return found


def _with_exact_joints(sketch: Sketch) -> Sketch | None:
    """The sketch as a CAD program would give it, if it can be extruded: corpora hold single precision."""
    if not profile(sketch, JOINED).is_extrudable:
        return None
    result = repair(sketch, close=False)
    is_same = [p.kind for p in result.sketch] == [p.kind for p in sketch] and result.displacement <= JOINED
    return replace(result.sketch, constraints=()) if is_same and profile(result.sketch).is_extrudable else None


def count_recovered(
    hidden: Sequence[Primitive], added: Sequence[Primitive], tolerance: float = RECOVERY_TOLERANCE
) -> int:
    """The largest number of hidden primitives that can be paired with an added primitive each.

    >>> count_recovered([Line((0, 0), (1, 0))], [Line((1, 0.04), (0, 0)), Line((0, 0), (1, 0))])
    1
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not hidden or not added:
        return 0
    matches = np.array([[primitive_distance(a, b) <= tolerance for b in added] for a in hidden], np.int8)
    return int((maximum_bipartite_matching(csr_array(matches), perm_type="column") >= 0).sum())


def primitive_distance(a: Primitive, b: Primitive) -> float:
    """The largest distance between corresponding defining points and radii; infinite for another kind or flag."""
    if a.construction != b.construction:
        return math.inf
    match a, b:
        case Line(), Line():
            return min(
                _largest_distance((a.start, b.start), (a.end, b.end)),
                _largest_distance((a.start, b.end), (a.end, b.start)),
            )
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            return _largest_distance((a.start, b.start), (a.mid, b.mid), (a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case _:
            return math.inf


def _make_case(task: str, sketch: Sketch, hidden: set[int]) -> Case | None:
    """The case, if the part that is given has a closed or open curve and fits the model."""
    part = sketch.select([number for number in range(len(sketch)) if number not in hidden])
    has_curve = any(not p.construction and p.length > 0 for p in part)
    rest = tuple(p for number, p in enumerate(sketch) if number in hidden)
    # Of a part as large as the model's own sketches, rows are left for what is hidden.
    return Case(task, part, rest) if has_curve and len(rest) < MAX_PRIMITIVES else None


def _hide(task: str, sketch: Sketch, shape: Profile, rng: np.random.Generator) -> set[int]:
    """The primitives to hide; none if the task does not fit the sketch."""
    outer = max(shape.loops, key=lambda loop: abs(loop.area))
    inner = [loop for loop in shape.loops if loop.depth > 0]
    if task == OPEN_OUTLINE:
        edges = [edge.primitive_index for edge in outer.edges]
        if len(edges) < 3:
            return set()
        length, start = int(rng.integers(1, len(edges) // 2 + 1)), int(rng.integers(len(edges)))
        return {edges[(start + step) % len(edges)] for step in range(length)}
    if task == INNER_FEATURES:
        return set().union(*map(_members, inner))
    if task == SINGLE_FEATURE:
        return _members(inner[int(rng.integers(len(inner)))]) if len(inner) >= 2 else set()
    return _one_side(sketch)


def _members(loop: Loop) -> set[int]:
    return {edge.primitive_index for edge in loop.edges}


def _one_side(sketch: Sketch) -> set[int]:
    """The primitives wholly on one side of a mirror axis, upright or level through the center; none without one."""
    center = bounds(sketch).center
    for axis in (0, 1):
        images = [Mirror(axis, center[axis]).primitive(item) for item in sketch]
        if count_recovered(images, sketch.primitives, _SYMMETRIC) < len(sketch):
            continue
        side = {
            number
            for number, item in enumerate(sketch)
            if bounds([item]).low[axis] >= center[axis] - _SYMMETRIC
            and bounds([item]).high[axis] > center[axis] + _SYMMETRIC
        }
        if side:
            return side
    return set()


def _largest_distance(*pairs: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return max(math.dist(p, q) for p, q in pairs)
