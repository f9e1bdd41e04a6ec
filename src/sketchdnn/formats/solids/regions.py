"""What is extruded: the regions of a sketch's profile, each an outline with holes, in millimeters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sketchdnn.errors import FormatError, SketchError, UnsuitableSketchError
from sketchdnn.formats.format import Losses, format_losses
from sketchdnn.formats.polylines import Vertices, outline
from sketchdnn.geometry import Circle, Kind, Profile, Sketch, profile

HEIGHT = 10.0  # millimeters, where nobody says

Outline = Vertices | Circle


@dataclass(frozen=True, slots=True)
class Region:
    """Material inside `outer` and outside of `holes`. An island in a hole is a region of its own."""

    outer: Outline
    holes: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class Extrusion:
    """Regions raised to a height, and the area that they cover by our own reckoning."""

    regions: tuple[Region, ...]
    height: float
    area: float


def extrusion(sketch: Sketch, height: float, path: Path) -> Extrusion:
    """What to build for a file at `path`; a sketch that bounds no solid is refused with the reasons of its profile."""
    if not 0 < height < math.inf:
        raise SketchError(f"a height is a number of millimeters above 0, not {height}")
    try:
        sketch = sketch.in_units("mm")
    except SketchError as error:
        raise FormatError(path, f"cannot be measured in mm: {error}") from error
    found = profile(sketch)
    if not found.is_extrudable:
        raise UnsuitableSketchError(path, f"cannot be extruded: {' '.join((*found.reasons, *_advice(found)))}")
    outlines = [outline(loop, sketch.primitives) for loop in found.loops]
    regions = [
        Region(
            outlines[i], tuple(outlines[j] for j, hole in enumerate(found.loops) if hole.is_hole and hole.parent == i)
        )
        for i, loop in enumerate(found.loops)
        if not loop.is_hole
    ]
    return Extrusion(tuple(regions), float(height), found.area)


def losses(sketch: Sketch, name: str) -> Losses:
    """What a solid or script of the format `name` does not hold of a sketch."""
    lost = format_losses(sketch, name, units="mm")
    if construction := sum(p.construction for p in sketch):
        lost.left_out[f"construction geometry, which {name} cannot hold"] = construction
    if points := sum(p.kind is Kind.POINT and not p.construction for p in sketch):
        lost.left_out[f"a point, which {name} cannot hold"] = points
    if name == "stl" and (curves := sum(p.kind in (Kind.CIRCLE, Kind.ARC) and not p.construction for p in sketch)):
        lost.changed["a curve, which stl holds as flat facets"] = curves
    return lost


def _advice(found: Profile) -> Iterator[str]:
    """What helps against each of the reasons of a profile."""
    if found.chains:
        yield "Small gaps are closed by 'sketchdnn constrain', larger ones with its --close."
    elif not found.loops:
        yield "Draw a closed outline that is not construction."
    if found.overlaps:
        yield "Curves that lie on each other are merged by 'sketchdnn constrain'."
    if found.branches or found.meetings:
        yield "Trim curves that cross, touch or branch, or make them construction, in a CAD program."
