"""A sketch: primitives, the constraints between them, and the unit their numbers are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sketchdnn.errors import GeometryError

from .constraints import LENGTHS, PARTS_OF_KIND, Constraint
from .primitives import Kind, Primitive, Vec, transformed
from .records import parse_sketch, sketch_to_dict

_METRIC = {"um": 1e-3, "mm": 1.0, "cm": 10.0, "dm": 100.0, "m": 1e3, "km": 1e6}
MM_PER_UNIT: Mapping[str, float] = _METRIC | {"mil": 0.0254, "in": 25.4, "ft": 304.8, "yd": 914.4}


@dataclass(frozen=True, slots=True)
class Sketch:
    """A set of primitives. Their order carries no meaning, but constraints refer to it.

    `units` is a key of `MM_PER_UNIT`, or None if unknown. `extra` holds other data of a file, such as `id`, `source`,
    `licence` and `group`.

    >>> from sketchdnn import Line
    >>> triangle = Sketch((Line((0, 0), (1, 0)), Line((1, 0), (0, 1)), Line((0, 1), (0, 0))), units="mm")
    >>> len(triangle), triangle.in_units("cm").primitives[0]
    (3, Line(start=(0.0, 0.0), end=(0.1, 0.0), construction=False))
    """

    primitives: tuple[Primitive, ...]
    constraints: tuple[Constraint, ...] = ()
    units: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.units is not None and self.units not in MM_PER_UNIT:
            raise GeometryError(f"{str(self.units)[:20]!r} is not a known unit; use one of {', '.join(MM_PER_UNIT)}")
        for constraint in self.constraints:
            for ref in constraint.refs:
                if ref.primitive is None:
                    continue
                beginning = f"a {constraint.type} constraint refers to"
                if ref.primitive >= len(self.primitives):
                    raise GeometryError(f"{beginning} primitive {ref.primitive}, not there")
                kind = self.primitives[ref.primitive].kind
                if ref.part not in PARTS_OF_KIND[kind]:
                    article = "an" if kind is Kind.ARC else "a"
                    raise GeometryError(f"{beginning} the {ref.part} of {article} {kind.label}")

    def __len__(self) -> int:
        return len(self.primitives)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.primitives)

    def to_dict(self, *, compact: bool = False) -> dict[str, Any]:
        """The sketch as data that `json` can write: the content of a `.json` file.

        >>> from sketchdnn import Circle
        >>> Sketch((Circle((0, 0), 5),), units="mm").to_dict()
        {'primitives': [{'type': 'circle', 'construction': False, 'center': [0, 0], 'radius': 5}], 'units': 'mm'}

        Args:
            compact: Primitives as rows such as `["L", 0, x1, y1, x2, y2]`, without extra keys of their own.
        """
        return sketch_to_dict(self, compact=compact)

    @classmethod
    def from_dict(cls, data: object) -> Sketch:
        """The sketch that `to_dict` data describes. The data is not trusted.

        Raises:
            SketchError: If the data describes no sketch.
        """
        return cls(*parse_sketch(data))

    def save(self, path: str | Path, format: str | None = None, **options: Any) -> None:  # noqa: A002
        """Write to a file: .json, .svg, .dxf, .FCStd, .step, …

        Args:
            path: The file.
            format: A format's name; by default that of the suffix.
            options: Options of the format, such as `height=5` (millimeters) of a solid.
        """
        import sketchdnn

        sketchdnn.write(self, path, format, **options)

    def _repr_svg_(self) -> str:
        """The picture in a notebook."""
        import sketchdnn

        return sketchdnn.svg(self)

    def moved(self, scale: float = 1.0, by: Vec = (0.0, 0.0)) -> Sketch:
        """Scale and move: every point p becomes scale·p + by; lengths of constraints are scaled too."""

        def point(p: Vec) -> Vec:
            return (scale * p[0] + by[0], scale * p[1] + by[1])

        return replace(
            self,
            primitives=tuple(transformed(p, point, lambda radius: scale * radius) for p in self.primitives),
            constraints=tuple(_rescale(c, scale) for c in self.constraints),
        )

    def select(self, indices: Sequence[int]) -> Sketch:
        """Some of the primitives, in the given order, and the constraints that refer to no others.

        >>> from sketchdnn import Circle
        >>> len(Sketch((Circle((0, 0), 5), Circle((9, 0), 2))).select([1]))
        1
        """
        number_of = {index: number for number, index in enumerate(indices)}
        kept = [c for c in self.constraints if all(ref.primitive in {None, *number_of} for ref in c.refs)]
        constraints = tuple(c.renumber(number_of) for c in kept)
        return replace(self, primitives=tuple(self.primitives[index] for index in indices), constraints=constraints)

    def in_units(self, units: str) -> Sketch:
        """The same sketch in other units. A sketch without units is assumed to be in them already."""
        converted = replace(self, units=units)  # refuses a unit that is not known
        if self.units is None or self.units == units:
            return converted
        return converted.moved(MM_PER_UNIT[self.units] / MM_PER_UNIT[units])


def _rescale(constraint: Constraint, scale: float) -> Constraint:
    if constraint.value is None or constraint.type not in LENGTHS or scale == 1:
        return constraint
    return replace(constraint, value=scale * constraint.value)
