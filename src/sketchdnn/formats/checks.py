"""Checks that readers and writers share: size, number of sketches, units, losses, and reasons of errors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from sketchdnn.errors import FormatError, GeometryError, SketchError
from sketchdnn.geometry import Sketch

from .format import Losses, Note, ReadItem, Skipped

# The note of a drawing that states no unit.
NO_UNITS = Note("a drawing without units, its lengths taken as mm (--assume-units names another unit)")
# Keys of `Sketch.extra` that readers add to record the origin of a sketch. They describe the file that was read, so a
# writer that omits them does not report a loss.
_PROVENANCE = frozenset({"id", "source", "index", "group", "dropped_entities"})
_UNIT_NAMES = {"m": "meters", "mm": "millimeters"}


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a file of at most `limit` bytes.

    Raises:
        FormatError: The file is larger.
    """
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FormatError(path, f"is larger than {limit >> 20} MiB; that is not a sketch")
    return data


def short_reason(error: SketchError) -> str:
    """Shorten the message of an error to its first part, without indices, so that similar cases can be counted.

    >>> short_reason(SketchError("primitive 7: a line needs two different ends, both are (0, 0)"))
    'a line needs two different ends'
    """
    sentence = error.reason if isinstance(error, FormatError) else str(error)
    sentence = re.sub(r"^primitive \d+: ", "", sentence)
    # Details follow the first semicolon, colon or comma. A comma before a digit belongs to a number, as in 1,000.
    summary = re.split(r"[;:]|,(?!\d)", sentence)[0].strip()
    return re.sub(r"\bprimitive -?\d+", "a primitive", summary)[:100]


def losses_in_format(
    sketch: Sketch, name: str, *, constraints: bool = False, keys: Collection[str] = (), units: str | None = None
) -> Losses:
    """Count the parts of a sketch that a format cannot store.

    Args:
        sketch: The sketch that is written.
        name: The name of the format.
        constraints: Whether the format stores constraints.
        keys: The keys of `Sketch.extra` that the format stores.
        units: The unit of all files of the format; None if the format stores the unit of the sketch or no unit.
    """
    losses = Losses()
    if sketch.constraints and not constraints:
        losses.left_out[f"a constraint, which {name} cannot hold"] = len(sketch.constraints)
    if lost := len(sketch.extra.keys() - _PROVENANCE - set(keys)):
        losses.left_out[f"a name or other key of a sketch, which {name} cannot hold"] = lost
    if units is not None and sketch.units is None:
        losses.changed[f"a sketch without units, its lengths taken as {_UNIT_NAMES[units]}"] = 1
    return losses


def single_sketch(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """Return the only sketch, for a format with one sketch per file. At most two sketches are taken from `sketches`.

    Raises:
        FormatError: There is no sketch or more than one.
    """
    first_two = list(islice(sketches, 2))
    if len(first_two) != 1:
        number = "there are more" if first_two else "there is none"
        advice = "write many to a .jsonl file, or to a folder with --format"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {number}; {advice}")
    return first_two[0]


def in_units(sketch: Sketch, units: str, path: Path) -> Sketch:
    """A sketch in other units; `FormatError` for the file at `path` if its numbers become too large or small."""
    try:
        return sketch.in_units(units)
    except GeometryError as error:
        raise FormatError(path, f"cannot be measured in {units}: {error}") from error


def fill_template(path: Path, **values: object) -> str:
    """The text of a jinja2 template with values for its names."""
    from jinja2 import Template

    text: str = Template(path.read_text(encoding="utf-8"), keep_trailing_newline=True).render(values)
    return text


def count_errors(items: Iterable[ReadItem]) -> Iterator[ReadItem]:
    """The items of a file of many; if it cannot be read, that is counted."""
    try:
        yield from items
    except FormatError as error:
        yield Skipped(f"an unreadable file: {short_reason(error)}")
