"""Conditions on generated sketches: what a user may require, and how far a sketch is from it.

The number and the kinds of primitives are passed to the model as conditioning (`conditioning.py`). Every other
condition is met by rejection: a sketch that fails is sampled again with other noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sketchdnn.design import DefectKind, score_design
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Kind, Line, Point, Primitive, Profile, Sketch, bounds, normalize, overlaps, profile
from sketchdnn.geometry.proximity import TOLERANCE
from sketchdnn.geometry.quantities import parse_int_range, parse_kind_counts, parse_range
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import encode_table, layout
from sketchdnn.representation.hashing import symmetric_keys
from sketchdnn.systems import System, TrainingIndex
from sketchdnn.systems.training_index import HASH_GRID_LEVELS

# Attempts at a sketch before the closest one is returned, with a note on what it lacks.
MAX_ATTEMPTS = 24
# Ends this close, as a fraction of the size, count as joined before repair: samplers leave such gaps.
CLOSE_TOLERANCE = 0.01
# Least size of the largest outline of a closed sketch, as a fraction of the whole sketch, construction included.
# 97 % of the real sketches that can be extruded have it.
MIN_OUTLINE_RATIO = 0.5
# Least design score of a closed sketch: two thirds of the real test sketches that can be extruded have it.
MIN_DESIGN_SCORE = 0.71
# Defects that no closed sketch has, whatever its score: these, and from this amount on narrow strips and specks
# (below 1/80 of the size) and lines that are not quite level or upright (within 2.5 degrees).
_REFUSED = frozenset(map(DefectKind, ("touch", "overlap", "outside", "nested", "stray", "near row", "near radius")))
_REFUSED_SMALL = frozenset((DefectKind.THIN, DefectKind.SPECK, DefectKind.NEAR_ANGLE))
_SMALL = 0.5

Range = tuple[float, float]
_EXAMPLES = {"primitives": "8..16", "construction": "0.1..0.3", "aspect": "0.5..2"}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Requirements on every sketch of a run. None or False means no requirement; ranges include both ends.

    Attributes:
        primitives: Number of primitives.
        kinds: Exact number of primitives of each named kind, construction geometry not counted. Without `primitives`
            the sketch holds nothing else; with it, the rest is construction or of other kinds.
        count_construction: Count construction geometry in `kinds` too.
        construction: Fraction of primitives that are construction geometry.
        aspect: Width of the bounding box over its height.
        closed: The sketch can be extruded, and its largest outline has at least `MIN_OUTLINE_RATIO` of its size. Ends
            are joined within `CLOSE_TOLERANCE` of the size, or exactly if sketches are repaired. A repaired sketch that
            is no variation must also be free of faults of design (`design_fault`).
        unique: No two sketches of the run are equal up to symmetry, on a grid of 6 bits.
        novel: No sketch equals a training sketch in the same sense.
        best_of: Number of sketches that meet all conditions, of which the one of the highest score is kept.
    """

    primitives: tuple[int, int] | None = None
    kinds: Mapping[Kind, int] | None = None
    count_construction: bool = False
    construction: Range | None = None
    aspect: Range | None = None
    closed: bool = False
    unique: bool = False
    novel: bool = False
    best_of: int = 1

    def __post_init__(self) -> None:
        _check_range("number of primitives", self.primitives, 1)
        _check_range("share of construction", self.construction, 0, 1)
        _check_range("aspect ratio", self.aspect, 0)
        if self.aspect is not None and self.aspect[1] <= 0:
            raise SketchError("an aspect ratio, width over height, is above 0")
        if self.kinds is not None:
            _check_kinds(self.kinds, self.primitives)
        elif self.count_construction:
            raise SketchError("count_construction sets what kinds counts: name kinds as well, or leave it out")
        if self.best_of < 1:
            raise SketchError(f"the best is chosen of at least 1 sketch, not {self.best_of}")

    @classmethod
    def parse(cls, **options: Any) -> Conditions:
        """Conditions from values or from words: 12, (8, 16) or "8..16"; {"line": 8} or "line=8"; "0.1..0.3".

        >>> Conditions.parse(primitives="8..16", aspect="2") == Conditions(primitives=(8, 16), aspect=(2.0, 2.0))
        True
        """
        for name, example in _EXAMPLES.items():
            value, parse = options.get(name), parse_int_range if name == "primitives" else parse_range
            if isinstance(value, str):
                options[name] = parse(value, name, example)
            elif isinstance(value, int):
                options[name] = (value, value)
        if options.get("kinds") is not None:
            options["kinds"] = parse_kind_counts(options["kinds"], "kinds")
        return cls(**options)

    @property
    def is_restrictive(self) -> bool:
        """Whether any condition other than `best_of` is set."""
        return replace(self, best_of=1) != Conditions()

    @property
    def primitive_range(self) -> tuple[int, int] | None:
        """The number of primitives, which `kinds` alone implies too."""
        if self.primitives is None and self.kinds is not None:
            return (sum(self.kinds.values()),) * 2
        return self.primitives

    def to_json(self) -> dict[str, Any]:
        """The conditions that are set, as a manifest holds them: ranges as typed, kinds by name."""
        content: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, tuple):
                value = format_range(value, "..")
            elif isinstance(value, Mapping):
                value = _format_kinds(value)
            if value != each.default:
                content[each.name] = value
        return content


def check_conditions(conditions: Conditions, system: System) -> None:
    """Refuse conditions that a model cannot meet or was not trained for."""
    low, high = trained_range(system)
    if conditions.primitive_range is not None:
        least, most = conditions.primitive_range
        if most > layout.MAX_PRIMITIVES:
            raise SketchError(f"{most} primitives do not fit: a sketch of this model has {layout.MAX_PRIMITIVES} rows")
        if least < low or most > high:
            few_kinds = conditions.primitives is None and most < low
            hint = f"; to have others beside these, ask for {low}..{high} primitives as well" if few_kinds else ""
            trained = f"this model was trained on sketches of {low} to {high} primitives"
            raise SketchError(f"{trained} and cannot be asked for {format_range((least, most))}{hint}")
    if conditions.novel and system.training_index is None:
        raise SketchError("this model has no record of its training sketches, so it cannot tell which are new")


def trained_range(system: System) -> tuple[int, int]:
    """The fewest and the most primitives of the training sketches; any number that fits, if there is no record."""
    return (1, layout.MAX_PRIMITIVES) if system.training_index is None else system.training_index.primitive_count_range


class Shortfall(NamedTuple):
    """Why a sketch fails the conditions, and its distance from them, in about the number of wrong primitives."""

    sentence: str
    distance: float


def find_shortfall(conditions: Conditions, sketch: Sketch, tolerance: float = CLOSE_TOLERANCE) -> Shortfall | None:
    """Why a sketch fails the conditions other than `unique` and `novel`; None if it meets them.

    Args:
        conditions: What is required.
        sketch: The sketch.
        tolerance: Ends this close, as a fraction of the size, are joined.
    """
    return _combine(_shortfalls(conditions, sketch, tolerance))


@dataclass(slots=True)
class ConditionChecker:
    """Checks the sketches of a run one after the other; `unique` depends on those accepted before."""

    conditions: Conditions
    training_index: TrainingIndex | None = None
    exact: bool = False  # as after repair: an outline is closed only if its ends meet exactly
    designed: bool = False  # a closed sketch must be free of faults of design
    accepted: set[int] = field(default_factory=set)

    def find_shortfall(self, sketch: Sketch) -> Shortfall | None:
        """Why a sketch fails the conditions; None if it meets them."""
        shortfalls = list(_shortfalls(self.conditions, sketch, TOLERANCE if self.exact else CLOSE_TOLERANCE))
        if self.conditions.unique or self.conditions.novel:
            key = sketch_key(sketch)
            if self.conditions.unique and key in self.accepted:
                shortfalls.append(Shortfall("it repeats another sketch of this run", 1.0))
            if self.conditions.novel and self.training_index is not None and self.training_index.contains(key):
                shortfalls.append(Shortfall("it is in the training corpus", 1.0))
        if self.conditions.closed and self.designed and not shortfalls and (fault := design_fault(sketch)):
            shortfalls.append(fault)
        return _combine(shortfalls)

    def accept(self, sketch: Sketch) -> None:
        """Record a sketch of the result, so that no later one may repeat it."""
        if self.conditions.unique:
            self.accepted.add(sketch_key(sketch))


def sketch_key(sketch: Sketch) -> int:
    """Equal for sketches that are equal up to symmetry and size, on the grid of 6 bits."""
    placed, _ = normalize(sketch)
    compact = encode_table(sketches_to_table([placed]), max_primitives=len(sketch))
    return int(symmetric_keys(compact, HASH_GRID_LEVELS)[0])


def joint_tolerance(part: Sequence[Primitive], size: float | None = None) -> float:
    """The tolerance for joints of a part, as a fraction of a size, by default its own: less beside short curves.

    With the full tolerance a narrow slot of a large part would have no width.

    >>> from sketchdnn.geometry import Line
    >>> joint_tolerance([Line((0, 0), (100, 0)), Line((100, 0), (100, 1))])
    0.0025
    """
    lengths = [p.length for p in part if not isinstance(p, Point) and not p.construction]
    size = bounds(part).size if size is None else size
    return max(TOLERANCE, min([CLOSE_TOLERANCE, *(length / size / 4 for length in lengths)]))


@lru_cache(maxsize=128)
def outlines_of(primitives: tuple[Primitive, ...], tolerance: float = TOLERANCE) -> Profile:
    """The profile of primitives; the last ones are kept, since candidates for one part are looked at many times."""
    return profile(primitives, tolerance)


def closure_faults(
    sketch: Sketch, tolerance: float = CLOSE_TOLERANCE, min_outline: float = MIN_OUTLINE_RATIO
) -> Iterator[Shortfall]:
    """Why a sketch is not closed, one fault after the other.

    Args:
        sketch: The sketch.
        tolerance: Ends this close, as a fraction of the size, are joined.
        min_outline: The least size of the largest outline, as a fraction of that of the sketch.

    >>> from sketchdnn.geometry import Circle
    >>> list(closure_faults(Sketch((Circle((0, 0), 2), Circle((3, 0), 2)))))
    [Shortfall(sentence='curves cross or touch in 2 places', distance=2.0)]
    """
    outlines = outlines_of(sketch.primitives, tolerance)
    if chains := len(outlines.chains):
        yield Shortfall(f"{chains} {'chain is' if chains == 1 else 'chains are'} left open", float(chains))
    elif not outlines.loops:
        yield Shortfall("nothing in it closes", float(max(len(sketch), 1)))
    for count, noun, sentence in (
        (len(outlines.branches), "place", "more than two ends meet in {}"),
        (len(outlines.contacts), "place", "curves cross or touch in {}"),
        (len(outlines.overlaps), "pair", "{} of curves overlap"),
    ):
        if count:
            yield Shortfall(sentence.format(_format_count(count, noun)), float(count))
    if not outlines.is_complete:
        yield Shortfall("so many curves come close to each other that not all could be looked at", float(len(sketch)))
    ratio = _outline_ratio(sketch, outlines)
    if outlines.loops and ratio < min_outline:
        yield Shortfall(f"its largest outline is {ratio:.2f} of its size, not at least {min_outline:g}", 1.0)


def design_fault(sketch: Sketch) -> Shortfall | None:
    """The fault of design for which a closed sketch is refused; None without one.

    >>> from sketchdnn.geometry import Circle
    >>> design_fault(Sketch((Circle((0, 0), 9), Circle((0, 0), 4))))
    >>> fault = design_fault(Sketch((Circle((0, 0), 9), Circle((2, 1), 4), Circle((2.5, 1.5), 2))))
    >>> fault.sentence
    'circle 2 lies inside a hole'
    """
    score = score_design(sketch)
    clear = [
        each
        for each in score.defects
        if each.kind in _REFUSED or (each.kind in _REFUSED_SMALL and each.amount >= _SMALL)
    ]
    if score.value >= MIN_DESIGN_SCORE and not clear:
        return None
    sentence = (clear or score.defects)[0].sentence if score.defects else "it has no extent"
    return Shortfall(sentence, 1 - score.value)


def score_sketch(sketch: Sketch) -> float:
    """How well a sketch can be extruded, at most 1: closed − overlapping − gap / 2, all at `CLOSE_TOLERANCE`.

    - closed: fraction of non-construction curves that lie in a loop without crossing, contact or branch; times
      the outline's fraction of the size over `MIN_OUTLINE_RATIO` if it is smaller.
    - overlapping: fraction of the primitives that lie along another.
    - gap: largest distance between joined ends over the tolerance.

    >>> corners = [(0, 0), (2, 0), (2, 1), (0, 1)]
    >>> plate = [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])]
    >>> score_sketch(Sketch(tuple(plate))), score_sketch(Sketch(tuple(plate[:3])))
    (1.0, 0.0)
    """
    curves = [p for p in sketch if not isinstance(p, Point) and not p.construction]
    outlines = profile(sketch, CLOSE_TOLERANCE)
    looped = {edge.primitive_index for loop in outlines.loops for edge in loop.edges}
    looped -= {number for contact in outlines.contacts for number in (contact.first, contact.second)}
    looped -= {number for branch in outlines.branches for number in branch.primitives}
    closed = len(looped) / max(len(curves), 1) * min(1.0, _outline_ratio(sketch, outlines) / MIN_OUTLINE_RATIO)
    overlapping = {number for pair in overlaps(sketch, CLOSE_TOLERANCE) for number in (pair.first, pair.second)}
    return closed - len(overlapping) / max(len(sketch), 1) - _largest_gap(curves) / 2


def format_range(limits: Range, separator: str = " to ") -> str:
    """A range in words: one number if both ends are equal."""
    return f"{limits[0]:g}" if limits[0] == limits[1] else f"{limits[0]:g}{separator}{limits[1]:g}"


def _outline_ratio(sketch: Sketch, outlines: Profile) -> float:
    """Size of the largest outline over that of the whole sketch; 0 without an outline."""
    sizes = [bounds([sketch.primitives[edge.primitive_index] for edge in loop.edges]).size for loop in outlines.outer]
    return max(sizes, default=0.0) / bounds(sketch).size if sizes else 0.0


def _largest_gap(curves: Sequence[Primitive]) -> float:
    """Largest distance from an end to the nearest end of another curve, of those within the tolerance, over it."""
    ends = np.array([end for curve in curves if isinstance(curve, Line | Arc) for end in (curve.start, curve.end)])
    if len(ends) <= 2:
        return 0.0
    distance = np.hypot(*np.moveaxis(ends[:, None] - ends, -1, 0))
    owner = np.arange(len(ends)) // 2
    nearest = np.where(owner[:, None] == owner, np.inf, distance).min(axis=1) / (CLOSE_TOLERANCE * bounds(curves).size)
    return float(nearest[nearest <= 1].max(initial=0.0))


def _shortfalls(conditions: Conditions, sketch: Sketch, tolerance: float) -> Iterator[Shortfall]:
    count = len(sketch)
    if conditions.primitive_range is not None and (off := _outside(count, conditions.primitive_range)):
        yield Shortfall(f"it has {count} primitives, not {format_range(conditions.primitive_range)}", off)
    if conditions.kinds is not None:
        counts = Counter(p.kind for p in sketch if conditions.count_construction or not p.construction)
        besides = "" if conditions.count_construction else " besides construction"
        for kind, required in conditions.kinds.items():
            if off := abs(counts[kind] - required):
                yield Shortfall(f"it has {_format_count(counts[kind], kind.label)}{besides}, not {required}", off)
    if conditions.construction is not None:
        share = sum(p.construction for p in sketch) / max(count, 1)
        if off := _outside(share, conditions.construction):
            yield Shortfall(
                f"{share:.2f} of it is construction, not {format_range(conditions.construction)}", off * count
            )
    if conditions.aspect is not None:
        yield from _aspect_shortfall(conditions.aspect, sketch)
    if conditions.closed:
        yield from closure_faults(sketch, tolerance)


def _aspect_shortfall(limits: Range, sketch: Sketch) -> Iterator[Shortfall]:
    """On a logarithmic scale: twice as wide is as far off as half as wide."""
    box = bounds(sketch)
    ratio = box.width / box.height if box.height else math.inf
    if _outside(ratio, limits):
        tiny = 1e-6
        off = _outside(math.log(min(max(ratio, tiny), 1 / tiny)), (math.log(max(limits[0], tiny)), math.log(limits[1])))
        yield Shortfall(f"its width is {ratio:.3g} of its height, not {format_range(limits)}", max(off, tiny))


def _combine(shortfalls: Iterable[Shortfall]) -> Shortfall | None:
    every = list(shortfalls)
    combined = Shortfall("; ".join(each.sentence for each in every), sum(each.distance for each in every))
    return combined if every else None


def _check_range(name: str, limits: Range | None, least: float, most: float = math.inf) -> None:
    if limits is None:
        return
    low, high = limits
    if not (math.isfinite(low) and math.isfinite(high) and least <= low and high <= most):
        allowed = f"{least} to {most}" if most < math.inf else f"at least {least}"
        raise SketchError(f"a {name} is {allowed}, not {format_range(limits)}")
    if low > high:
        raise SketchError(f"a {name} from {low} to {high} is empty: put the smaller number first")


def _check_kinds(kinds: Mapping[Kind, int], primitives: tuple[int, int] | None) -> None:
    words, total = _format_kinds(kinds), sum(kinds.values())
    if not kinds or min(kinds.values()) < 0:
        raise SketchError(f"kinds are asked for by how many of each there are, none or more, not '{words}'")
    if primitives is None:
        if total == 0:
            raise SketchError(f"'{words}' leaves the other kinds open; set the number of primitives as well")
        return
    asked = f"the {format_range(primitives)} asked for"
    if total > primitives[1]:
        raise SketchError(f"'{words}' makes {total} primitives, more than {asked}")
    if total < primitives[0] and len(kinds) == len(Kind):
        raise SketchError(f"'{words}' makes {total} primitives of all kinds, fewer than {asked}")


def _outside(value: float, limits: Range) -> float:
    """Distance of a value from a range; 0 within it."""
    return max(limits[0] - value, value - limits[1], 0.0)


def _format_kinds(kinds: Mapping[Kind, int]) -> str:
    return ",".join(f"{kind.label}={number}" for kind, number in kinds.items())


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
