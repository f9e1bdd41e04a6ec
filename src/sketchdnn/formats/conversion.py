"""Conversion from any format to any other: to one file, or to a folder with a file for each sketch."""

# ruff: noqa: A002 - an argument `format` is what users expect

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError, UnsuitableSketchError
from sketchdnn.geometry import Sketch
from sketchdnn.io import flush_to_disk, remove_abandoned, temporary_folder

from .archives import check_no_overwrite
from .checks import in_units, short_reason
from .format import DEFAULT_READ_OPTIONS, Format, Losses, Note, ReadItem, ReadOptions, ReasonCounts, Skipped
from .registry import find_writer, scan, write

FOLDER_FORMAT = "json"  # of the files in a folder, by default
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class Conversion:
    """The result of a conversion.

    Attributes:
        target: The file or folder that was written.
        written: The number of sketches in it.
        skipped: Counts by reason of what was not read or not written.
        changed: Counts by reason of what was written with a change, such as a constraint that is inactive.
        notes: Counts of what was read with a change.
    """

    target: Path
    written: int = 0
    skipped: ReasonCounts = field(default_factory=ReasonCounts)
    changed: ReasonCounts = field(default_factory=ReasonCounts)
    notes: ReasonCounts = field(default_factory=ReasonCounts)

    def add_losses(self, losses: Losses, file: str = "") -> None:
        """Count the losses of writing one file."""
        for counts, lost in ((self.skipped, losses.left_out), (self.changed, losses.changed)):
            for reason, count in lost.items():
                counts.add(reason, count, file)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    format: str | None = None,
    units: str | None = None,
    read_options: ReadOptions = DEFAULT_READ_OPTIONS,
    on_item: Callable[[ReadItem], None] = lambda item: None,
    on_file: Callable[[str], None] = lambda name: None,
    transform: Callable[[Iterator[Sketch]], Iterator[Sketch]] = iter,
    **options: Any,
) -> Conversion:
    """Write all sketches of `source` to `target`. Without a readable sketch, nothing is written.

    Args:
        source: A file, folder or archive.
        target: A file, or a folder: an existing one, a path that ends in a slash, or a path without suffix if `format`
            is given. In a folder, a sketch that the format cannot hold is counted and the others are written.
        format: The name of the output format; by default that of the suffix, in a folder JSON.
        units: The unit of the written sketches.
        read_options: Options of `read`.
        on_item: Called with each item that is read.
        on_file: Called with the name of each file of a folder or archive.
        transform: Maps the stream of sketches before they are written.
        options: Options of `write`.
    """
    into_folder = str(target).endswith(("/", os.sep)) or Path(target).is_dir()
    source, target = Path(source), Path(target)
    chosen = find_writer(target, format or (FOLDER_FORMAT if into_folder else None), options)
    into_folder = into_folder or (format is not None and not target.suffix)
    if units is not None:
        Sketch(()).in_units(units)  # an unknown unit is not an error of the file
    result = Conversion(target)
    if not into_folder:
        check_no_overwrite([source], [target])
    remove_abandoned(target.parent)
    file = ""

    def start_file(name: str) -> None:
        nonlocal file
        file = name
        on_file(name)

    def read_sketches() -> Iterator[Sketch]:
        """The sketches as they are read. Raises at the end if there was none, so that no file is left."""
        count = 0
        for item in scan(source, read_options, on_file=start_file):
            on_item(item)
            if isinstance(item, Skipped):
                result.skipped.add(item.reason, item.count, file)
            elif isinstance(item, Note):
                result.notes.add(item.text, item.count, file)
            else:
                count += 1
                result.written += 1
                yield item if units is None else in_units(item, units, source / file)
        if not count:
            skipped = result.skipped
            reasons = "; ".join(f"{n} × {reason}{skipped.files(reason)}" for reason, n in skipped.most_common(5))
            raise FormatError(source, f"holds no sketch that can be read{': ' if reasons else ''}{reasons}")

    sketches = transform(read_sketches())
    if into_folder:
        _write_folder(sketches, source, result, chosen, options)
    else:
        result.add_losses(write(sketches, target, chosen.name, **options))
    return result


def _write_folder(
    sketches: Iterable[Sketch], source: Path, result: Conversion, chosen: Format, options: dict[str, Any]
) -> None:
    """Write a file a sketch. All are written to a temporary folder first, so that a failure leaves none behind."""
    folder, suffix = result.target, chosen.suffixes[0]
    names: set[str] = set()
    unsuitable = ""
    try:
        with temporary_folder(folder.parent) as temporary:
            for number, sketch in enumerate(sketches, start=1):
                file = Path(temporary, _file_name(sketch, number, names) + suffix)
                try:
                    result.add_losses(write(sketch, file, chosen.name, **options), file.name)
                except UnsuitableSketchError as error:
                    unsuitable = error.reason
                    result.written -= 1
                    result.skipped.add(f"a sketch that {short_reason(error)}", file=file.name)
            if unsuitable and not result.written:
                raise FormatError(folder, f"cannot be written: no sketch fits, the last one {unsuitable}")
            files = list(temporary.iterdir())
            check_no_overwrite([source], [folder / file.name for file in files])
            folder.mkdir(exist_ok=True)
            for file in files:
                file.replace(folder / file.name)
            flush_to_disk(folder)
    except SketchError:
        raise
    except OSError as error:
        raise FormatError(folder, f"cannot be written ({error.strerror or error})") from error


def _file_name(sketch: Sketch, number: int, used: set[str]) -> str:
    """The id of the sketch if it can be a file name, else its number."""
    name = str(sketch.extra.get("id", ""))
    # Some file systems do not distinguish upper and lower case.
    while not _SAFE_NAME.fullmatch(name) or name.lower() in used:
        name, number = f"{number:06d}", number + 1
    used.add(name.lower())
    return name
