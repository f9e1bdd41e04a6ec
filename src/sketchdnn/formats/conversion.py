"""From any format to any other: one file, one stream of sketches, or a folder with a file for each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, GeometryError, SketchError, UnsuitableSketchError
from sketchdnn.formats.archives import check_no_overwrite
from sketchdnn.formats.format import Losses, Note, ReadItem, ReasonCounts, Skipped, short_reason
from sketchdnn.geometry import Sketch
from sketchdnn.io import flush_to_disk, remove_abandoned, temporary_folder

from .format import DEFAULT_READ_OPTIONS, Format, ReadOptions
from .registry import find_writer, scan, write

DEFAULT_FORMAT = "json"  # of the files in a folder
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class Conversion:
    """What became of a source: how many sketches were written, how often each reason kept something out, what was read
    otherwise than it is drawn (`notes`), and how often each reason changed something, such as a constraint that is
    switched off."""

    target: Path
    written: int = 0
    skipped: ReasonCounts = field(default_factory=ReasonCounts)
    changed: ReasonCounts = field(default_factory=ReasonCounts)
    notes: ReasonCounts = field(default_factory=ReasonCounts)

    def lose(self, losses: Losses, file: str = "") -> None:
        """Count what writing lost, in one file of several or in the only one."""
        for reasons, lost in ((self.skipped, losses.left_out), (self.changed, losses.changed)):
            for reason, count in lost.items():
                reasons.add(reason, count, file)


def convert(
    source: str | Path,
    target: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    units: str | None = None,
    reading: ReadOptions = DEFAULT_READ_OPTIONS,
    on_item: Callable[[ReadItem], None] = lambda found: None,
    on_file: Callable[[str], None] = lambda name: None,
    change: Callable[[Iterator[Sketch]], Iterator[Sketch]] = iter,
    **options: Any,
) -> Conversion:
    """Write all sketches of `source` to `target`, which is left alone unless at least one could be read.

    `target` is a folder if it is one, if it ends in a slash, or if `format` is named and it has no suffix. In a folder
    a sketch that the format cannot hold is counted and the others written. `change` is what becomes of the sketches on
    the way; `reading` are the options of `read`, `on_file` is that of `scan`, and `options` are those of `write`.
    """
    into_folder = str(target).endswith(("/", os.sep)) or Path(target).is_dir()
    target = Path(target)
    chosen = find_writer(target, format or (DEFAULT_FORMAT if into_folder else None), options)
    into_folder = into_folder or (format is not None and not target.suffix)
    if units is not None:
        Sketch(()).in_units(units)  # refuses what is no unit, which is no fault of the file
    result = Conversion(target)
    if not into_folder:
        check_no_overwrite([Path(source)], [target])
    remove_abandoned(target.parent)
    sketches = change(_counted(Path(source), result, units, reading, on_item, on_file))
    if into_folder:
        _write_each(sketches, Path(source), result, chosen, options)
    else:
        some = sketches if chosen.holds_many else _single(sketches, Path(source), target, chosen)
        result.lose(write(some, target, chosen.name, **options))
    return result


def _counted(
    source: Path,
    result: Conversion,
    units: str | None,
    reading: ReadOptions,
    on_item: Callable[[ReadItem], None],
    on_file: Callable[[str], None],
) -> Iterator[Sketch]:
    """The sketches as they are read. Fails at the end if there was none, so that nothing is left behind."""
    file, read = "", 0

    def begin(name: str) -> None:
        nonlocal file
        file = name
        on_file(name)

    for found in scan(source, reading, on_file=begin):
        on_item(found)
        if isinstance(found, Skipped):
            result.skipped.add(found.reason, found.count, file)
        elif isinstance(found, Note):
            result.notes.add(found.text, found.count, file)
        else:
            read += 1
            result.written += 1
            yield found if units is None else _measured(found, units, source / file)
    if not read:
        skipped = result.skipped
        reasons = "; ".join(f"{count} × {reason}{skipped.where(reason)}" for reason, count in skipped.most_common(5))
        raise FormatError(source, f"holds no sketch that can be read{': ' if reasons else ''}{reasons}")


def _measured(sketch: Sketch, units: str, source: Path) -> Sketch:
    try:
        return sketch.in_units(units)
    except GeometryError as error:
        raise FormatError(source, f"cannot be measured in {units}: {error}") from error


def _single(sketches: Iterable[Sketch], source: Path, target: Path, chosen: Format) -> Iterator[Sketch]:
    """Passes one sketch on, and says what to do about a second."""
    for index, sketch in enumerate(sketches):
        if index:
            raise FormatError(
                source,
                f"holds more than one sketch, and a {target.suffix} file takes one; "
                f"write to a .jsonl file, or to a folder with --format {chosen.name}",
            )
        yield sketch


def _write_each(
    sketches: Iterable[Sketch], source: Path, result: Conversion, chosen: Format, options: dict[str, Any]
) -> None:
    """A file a sketch. All are written aside first, so that a failure on the way leaves none behind."""
    folder, suffix = result.target, chosen.suffixes[0]
    names: set[str] = set()
    unfit: UnsuitableSketchError | None = None
    try:
        with temporary_folder(folder.parent) as aside:
            for number, sketch in enumerate(sketches, start=1):
                file = Path(aside, _name(sketch, number, names) + suffix)
                try:
                    result.lose(write(sketch, file, chosen.name, **options), file.name)
                except UnsuitableSketchError as error:
                    unfit = error
                    result.written -= 1
                    result.skipped.add(f"a sketch that {short_reason(error)}", file=file.name)
            if unfit is not None and not result.written:
                raise FormatError(folder, f"cannot be written: no sketch fits, the last one {unfit.reason}")
            files = list(aside.iterdir())
            check_no_overwrite([source], [folder / each.name for each in files])
            folder.mkdir(exist_ok=True)
            for whole in files:
                whole.replace(folder / whole.name)
            flush_to_disk(folder)
    except SketchError:
        raise
    except OSError as error:
        raise FormatError(folder, f"cannot be written ({error.strerror or error})") from error


def _name(sketch: Sketch, number: int, taken: set[str]) -> str:
    """The sketch's own id where it can be the name of a file, else its number."""
    name = str(sketch.extra.get("id", ""))
    # Some file systems do not tell upper from lower case.
    while not _SAFE_NAME.fullmatch(name) or name.lower() in taken:
        name, number = f"{number:06d}", number + 1
    taken.add(name.lower())
    return name
