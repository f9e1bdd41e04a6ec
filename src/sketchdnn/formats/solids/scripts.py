"""A script that rebuilds and extrudes a profile with CadQuery or build123d, for people to read and go on from.

Only numbers of the sketch get into the code, and only as literals: no name, id or other text of a file does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sketchdnn.formats.format import Format, Losses, single_sketch
from sketchdnn.formats.polylines import Vertices, arc_midpoint
from sketchdnn.geometry import Circle, Sketch, Vec
from sketchdnn.io import atomic_write

from .regions import HEIGHT, Extrusion, Outline, extrusion, losses

_CADQUERY = '''\
"""{what}. Written for CadQuery 2."""

import sys

import cadquery as cq

HEIGHT = {height}

{regions}
{part}

if "show_object" in globals():  # in CQ-editor
    show_object(part)  # noqa: F821
elif __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "part.step"
    cq.exporters.export(part, out)
    print(f"{{out}}: {{sum(solid.Volume() for solid in part.solids().vals())}} mm3")
'''

_BUILD123D = '''\
"""{what}. Written for build123d."""

import sys

from build123d import Circle, Line, Pos, ThreePointArc, export_step, extrude, make_face

HEIGHT = {height}

{regions}
{part}

if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "part.step"
    export_step(part, out)
    print(f"{{out}}: {{part.volume}} mm3")
'''


def cadquery_script(what: Extrusion) -> str:
    """A chain of calls for each region, the outline first, then its holes."""
    blocks = []
    for number, region in enumerate(what.regions, start=1):
        calls = [call for outline in (region.outer, *region.holes) for call in _chained(outline)]
        lines = "\n    ".join(['cq.Workplane("XY")', *calls, ".extrude(HEIGHT)"])
        blocks.append(f"region_{number} = (\n    {lines}\n)\n")
    rest = [f"part = part.union(region_{number})" for number in range(2, len(blocks) + 1)]
    return _filled(_CADQUERY, what, blocks, ["part = region_1", *rest])


def build123d_script(what: Extrusion) -> str:
    """A face for each outline and hole, in build123d's algebra."""
    blocks = []
    for number, region in enumerate(what.regions, start=1):
        names = [f"outline_{number}", *(f"hole_{number}_{k + 1}" for k in range(len(region.holes)))]
        faces = [_face(outline) for outline in (region.outer, *region.holes)]
        lines = [f"{name} = {face}" for name, face in zip(names, faces, strict=True)]
        blocks.append("\n".join([*lines, f"region_{number} = {' - '.join(names)}", ""]))
    extrudes = [f"extrude(region_{number}, HEIGHT, dir=(0, 0, 1))" for number in range(1, len(blocks) + 1)]
    return _filled(_BUILD123D, what, blocks, ["part = " + extrudes[0], *(f"part += {one}" for one in extrudes[1:])])


def _writer(script: Callable[[Extrusion], str], name: str) -> Callable[..., Losses]:
    def write(sketches: Iterable[Sketch], path: Path, *, height: float = HEIGHT) -> Losses:
        sketch = single_sketch(sketches, path)
        code = script(extrusion(sketch, height, path))
        with atomic_write(path) as temporary:
            temporary.write_text(code, encoding="ascii")
        return losses(sketch, name)

    return write


def _filled(template: str, what: Extrusion, blocks: list[str], part: list[str]) -> str:
    count = len(what.regions)
    title = f"A profile of {count} {'region' if count == 1 else 'regions'}, extruded, in millimeters"
    return template.format(what=title, height=_number(what.height), regions="\n".join(blocks), part="\n".join(part))


def _chained(outline: Outline) -> Iterator[str]:
    if isinstance(outline, Circle):
        yield f".moveTo{_place(outline.center)}"
        yield f".circle({_number(outline.radius)})"
        return
    yield f".moveTo{_place(outline[0].at)}"
    for start, middle, end in _ways(outline):
        if middle is not None:
            yield f".threePointArc({_place(middle)}, {_place(end)})"
        elif start != outline[-1].at:  # closing draws the last way, if it is straight
            yield f".lineTo{_place(end)}"
    yield ".close()"


def _face(outline: Outline) -> str:
    if isinstance(outline, Circle):
        return f"Pos{_place(outline.center)} * Circle({_number(outline.radius)})"
    ways = [
        f"Line({_place(start)}, {_place(end)})"
        if middle is None
        else f"ThreePointArc({_place(start)}, {_place(middle)}, {_place(end)})"
        for start, middle, end in _ways(outline)
    ]
    return "make_face(\n    [\n        " + ",\n        ".join(ways) + ",\n    ]\n)"


def _ways(wire: Vertices) -> Iterator[tuple[Vec, Vec | None, Vec]]:
    for corner, following in zip(wire, wire[1:] + wire[:1], strict=True):
        yield corner.at, arc_midpoint(corner, following.at), following.at


def _place(place: Vec) -> str:
    return f"({_number(place[0])}, {_number(place[1])})"


def _number(number: float) -> str:
    """A literal of twelve digits, and nothing but a literal."""
    return repr(float(f"{float(number):.12g}") + 0.0)


def _recognizes(path: Path, head: bytes) -> bool:
    return False  # a script is code, and code is not read


CADQUERY = Format(
    "cadquery",
    (".py", ".cadquery.py"),
    False,
    _recognizes,
    write=_writer(cadquery_script, "cadquery"),
    options=("height",),
)
BUILD123D = Format(
    "build123d",
    (".build123d.py",),
    False,
    _recognizes,
    write=_writer(build123d_script, "build123d"),
    options=("height",),
)
