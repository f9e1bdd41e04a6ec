"""Scripts that rebuild and extrude a profile with CadQuery or build123d, for people to read and extend.

The code holds only numbers of the sketch, as literals: no name, id or other text of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sketchdnn.formats.checks import fill_template
from sketchdnn.formats.format import Format
from sketchdnn.geometry import Circle, Vec

from .extrusion import Extrusion, Outline, outline_edges, solid_format


def cadquery_script(extrusion: Extrusion) -> str:
    """A CadQuery script: a chain of calls for each region, the outline first, then its holes."""
    blocks = []
    for number, region in enumerate(extrusion.regions, start=1):
        calls = [call for outline in (region.outer, *region.holes) for call in _calls(outline)]
        lines = "\n    ".join(['cq.Workplane("XY")', *calls, ".extrude(HEIGHT)"])
        blocks.append(f"region_{number} = (\n    {lines}\n)\n")
    rest = [f"part = part.union(region_{number})" for number in range(2, len(blocks) + 1)]
    return _fill("cadquery", extrusion, blocks, ["part = region_1", *rest])


def build123d_script(extrusion: Extrusion) -> str:
    """A build123d script in algebra mode: a face for each outline and hole."""
    blocks = []
    for number, region in enumerate(extrusion.regions, start=1):
        names = [f"outline_{number}", *(f"hole_{number}_{k + 1}" for k in range(len(region.holes)))]
        faces = [_face(outline) for outline in (region.outer, *region.holes)]
        lines = [f"{name} = {face}" for name, face in zip(names, faces, strict=True)]
        blocks.append("\n".join([*lines, f"region_{number} = {' - '.join(names)}", ""]))
    extrudes = [f"extrude(region_{number}, HEIGHT, dir=(0, 0, 1))" for number in range(1, len(blocks) + 1)]
    part = ["part = " + extrudes[0], *(f"part += {call}" for call in extrudes[1:])]
    return _fill("build123d", extrusion, blocks, part)


def _fill(library: str, extrusion: Extrusion, blocks: list[str], part: list[str]) -> str:
    count = len(extrusion.regions)
    title = f"A profile of {count} {'region' if count == 1 else 'regions'}, extruded, in millimeters"
    texts = {"title": title, "height": _number(extrusion.height), "regions": "\n".join(blocks), "part": "\n".join(part)}
    return fill_template(Path(__file__).parent / f"templates/{library}.py.jinja", **texts)


def _calls(outline: Outline) -> Iterator[str]:
    if isinstance(outline, Circle):
        yield f".moveTo{_point(outline.center)}"
        yield f".circle({_number(outline.radius)})"
        return
    yield f".moveTo{_point(outline[0].at)}"
    for start, middle, end in outline_edges(outline):
        if middle is not None:
            yield f".threePointArc({_point(middle)}, {_point(end)})"
        elif start != outline[-1].at:  # close() draws the last edge, if it is straight
            yield f".lineTo{_point(end)}"
    yield ".close()"


def _face(outline: Outline) -> str:
    if isinstance(outline, Circle):
        return f"Pos{_point(outline.center)} * Circle({_number(outline.radius)})"
    edges = []
    for start, middle, end in outline_edges(outline):
        name, points = ("Line", (start, end)) if middle is None else ("ThreePointArc", (start, middle, end))
        edges.append(f"{name}({', '.join(map(_point, points))})")
    return "make_face(\n    [\n        " + ",\n        ".join(edges) + ",\n    ]\n)"


def _point(point: Vec) -> str:
    return f"({_number(point[0])}, {_number(point[1])})"


def _number(number: float) -> str:
    """A literal of twelve digits."""
    return repr(float(f"{float(number):.12g}") + 0.0)


def _format(name: str, suffixes: tuple[str, ...], script: Callable[[Extrusion], str]) -> Format:
    return solid_format(name, suffixes, lambda extrusion, path: script(extrusion).encode("ascii"), is_text=True)


CADQUERY = _format("cadquery", (".py", ".cadquery.py"), cadquery_script)
BUILD123D = _format("build123d", (".build123d.py",), build123d_script)
