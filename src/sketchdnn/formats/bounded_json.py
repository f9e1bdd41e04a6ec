"""JSON files that say how something is made: read strictly and within bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

# A description of a corpus or a model takes a few KiB; a report with all its curves, a few MiB.
LARGEST_FILE = 16 * 2**20


def load_json(path: Path) -> object:
    """What a file holds; raises `ValueError` for text that is not JSON, too long or too deeply nested, or holds NaN."""
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"it holds {word} where a number belongs")
