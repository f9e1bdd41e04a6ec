"""The open corpus, one sketch in so many."""

import lzma
from collections import defaultdict
from contextlib import suppress
from itertools import islice
from pathlib import Path

from sketchdnn.errors import SketchError
from sketchdnn.formats.json_files import parse_record
from sketchdnn.geometry import Primitive

Drawings = dict[str, list[list[Primitive]]]


def spread(folder: Path, every: int) -> Drawings:
    """One sketch in so many, by source; those that five digits made impossible are left out."""
    found: Drawings = defaultdict(list)
    with lzma.open(folder / "open-sketches.jsonl.xz") as lines:
        for line in islice(lines, 0, None, every):
            with suppress(SketchError):
                sketch = parse_record(line)
                found[sketch.extra["source"]].append([*sketch])
    return found
