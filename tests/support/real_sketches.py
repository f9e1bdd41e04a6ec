"""The open corpus, parsed by hand so that geometry can be tested without the rooms above it."""

import json
import lzma
from collections import defaultdict
from itertools import islice
from pathlib import Path

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Circle, Line, Point, Primitive, arc_from_angles

Drawings = dict[str, list[list[Primitive]]]


def spread(folder: Path, every: int) -> Drawings:
    """One sketch in so many, by source; those that five digits made impossible are left out."""
    found: Drawings = defaultdict(list)
    with lzma.open(folder / "open-sketches.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in islice(lines, 0, None, every):
            record = json.loads(line)
            try:
                found[record["source"]].append([_primitive(*row) for row in record["primitives"]])
            except GeometryError:
                continue
    return found


def _primitive(letter: str, construction: int, x: float, y: float, *rest: float) -> Primitive:
    flag = bool(construction)
    match letter:
        case "L":
            return Line((x, y), (rest[0], rest[1]), flag)
        case "C":
            return Circle((x, y), rest[0], flag)
        case "A":
            return arc_from_angles((x, y), rest[0], rest[1], rest[2], construction=flag)
        case _:
            return Point((x, y), flag)
