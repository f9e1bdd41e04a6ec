"""Notes beside a sequence: the parameters of its constraints that the official library refuses.

They are one JSON object that maps the index of a constraint, without the edges of subnodes, to its parameters:

    {"4": {"name": "Weight", "value": 2.0}}
"""

from __future__ import annotations

from collections.abc import Iterable

from sketchdnn.errors import SketchError
from sketchdnn.formats.json_files import dump_json, parse_json

from .constraints import Scalar, plain
from .pickles import SUBNODE, Op

# The parameters of the official library: quantities as text, and the values of its enumerations.
_FLAGS = (True, False, "TRUE", "FALSE", "True", "False")
_ENUMERATIONS: dict[str, tuple[bool | str, ...]] = {
    "direction": ("MINIMUM", "HORIZONTAL", "VERTICAL"), "halfSpace0": ("LEFT", "RIGHT"),
    "halfSpace1": ("LEFT", "RIGHT"), "alignment": ("ANTI_ALIGNED", "ALIGNED"), "aligned": _FLAGS, "clockwise": _FLAGS,
}  # fmt: skip
_LONGEST_INDEX = 9

Notes = dict[int, dict[str, Scalar]]


def split_notes(ops: Iterable[Op]) -> tuple[list[Op], bytes]:
    """A sequence with the parameters that the official library accepts, and notes that hold the others, if any."""
    official: list[Op] = []
    notes: Notes = {}
    index = 0
    for op in ops:
        if op.step is None or op.start == SUBNODE:
            official.append(op)
            continue
        accepted = {key: value for key, value in op.step.items() if _is_official(key, value)}
        if len(accepted) < len(op.step):
            notes[index] = {key: value for key, value in op.step.items() if key not in accepted}
        official.append(slice(op.start, op.stop, accepted))
        index += 1
    return official, dump_json(notes).encode("ascii") if notes else b""


def load_notes(text: bytes) -> Notes | None:
    """The notes of a sequence; None if the text is not valid."""
    try:
        items = parse_json(text.decode("ascii")) if text else {}
    except (UnicodeDecodeError, SketchError):
        return None
    if not isinstance(items, dict) or not all(
        len(key) <= _LONGEST_INDEX and key.isdecimal() and isinstance(note, dict) for key, note in items.items()
    ):
        return None
    return {int(key): plain(note) for key, note in items.items()}


def _is_official(key: str, value: Scalar) -> bool:
    """Whether the official library accepts a parameter with this value."""
    if key in ("angle", "length"):
        return isinstance(value, str)
    return isinstance(value, bool | str) and value in _ENUMERATIONS.get(key, ())
