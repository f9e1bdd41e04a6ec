"""Parameters of constraints that the official library does not know, kept beside the sequence they belong to.

One JSON object a sequence: the number of a constraint, counted as the sequence lists them from 0 without the edges that
tie parts to their entities, and its parameters. They are put back where a sequence is read.

    {"4": {"name": "Weight", "value": 2.0}}
"""

from __future__ import annotations

from collections.abc import Iterable

from sketchdnn.errors import SketchError
from sketchdnn.formats.json_files import dump_json, parse_json
from sketchdnn.geometry import Sketch

from .constraints import SUBNODE, Scalar, plain
from .ops import Op

Notes = dict[int, dict[str, Scalar]]
_LONGEST_NUMBER = 9
LOST_PARAMETER = "a constraint's parameter that is neither a number, a word nor a flag"

# The parameters that the official library knows: quantities as text, and the values of its enumerations.
_QUANTITIES = ("angle", "length")
_HALF_SPACES = ("LEFT", "RIGHT")
_FLAGS = (True, False, "TRUE", "FALSE", "True", "False")
_ENUMERATIONS: dict[str, tuple[bool | str, ...]] = {
    "direction": ("MINIMUM", "HORIZONTAL", "VERTICAL"),
    "halfSpace0": _HALF_SPACES,
    "halfSpace1": _HALF_SPACES,
    "alignment": ("ANTI_ALIGNED", "ALIGNED"),
    "aligned": _FLAGS,
    "clockwise": _FLAGS,
}


def apart(ops: Iterable[Op]) -> tuple[list[Op], Notes]:
    """A sequence with what the official library knows, and the notes that hold the rest."""
    official: list[Op] = []
    notes: Notes = {}
    number = 0
    for op in ops:
        if op.step is None or op.start == SUBNODE:
            official.append(op)
            continue
        known = {key: value for key, value in op.step.items() if _is_official(key, value)}
        if len(known) < len(op.step):
            notes[number] = {key: value for key, value in op.step.items() if key not in known}
        official.append(slice(op.start, op.stop, known))
        number += 1
    return official, notes


def lost_parameters(sketch: Sketch) -> int:
    """How many parameters of a sketch's constraints are no number, word or flag, and so are not written."""
    return sum(len(constraint.extra) - len(plain(constraint.extra)) for constraint in sketch.constraints)


def dump_notes(notes: Notes) -> bytes:
    """The notes of a sequence as text; none are no text."""
    return dump_json(notes).encode("ascii") if notes else b""


def load_notes(text: bytes) -> Notes:
    """The notes that text holds; `SketchError` if it is not such text."""
    if not text:
        return {}
    try:
        items = parse_json(text.decode("ascii"))
    except UnicodeDecodeError as error:
        raise SketchError("notes that are not ASCII") from error
    if not isinstance(items, dict):
        raise SketchError("notes that are not an object")
    if not all(len(key) <= _LONGEST_NUMBER and key.isdecimal() and isinstance(items[key], dict) for key in items):
        raise SketchError("a note without the number of its constraint, or without parameters")
    return {int(key): plain(note) for key, note in items.items()}


def _is_official(key: str, value: Scalar) -> bool:
    """Whether the official library knows a parameter and the value it has."""
    if key in _QUANTITIES:
        return isinstance(value, str)
    return isinstance(value, bool | str) and value in _ENUMERATIONS.get(key, ())
