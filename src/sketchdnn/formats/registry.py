"""The registry of formats: read and write any file by its suffix and content.

Whatever a file holds, reading it yields sketches, counted reasons, or one `FormatError`; no other exception escapes.
"""

# ruff: noqa: A002 - an argument `format` is what users expect

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, MissingFileError, SketchError, display_path, quoted
from sketchdnn.geometry import Sketch
from sketchdnn.io import remove_abandoned, temporary_folder

from . import dxf, freecad, hpsketch, json_files, onshape, sketchgraphs, solids, svg
from .archives import folder_members, is_tar, tar_files
from .checks import count_errors
from .format import DEFAULT_READ_OPTIONS, Format, Losses, ReadItem, ReadOptions, ReadResult, Skipped, collect

# The first format that recognizes a file reads it, so those that check the content come before those that check a name.
FORMATS: tuple[Format, ...] = (
    sketchgraphs.FORMAT, hpsketch.FORMAT, freecad.FORMAT, json_files.CORPUS, json_files.JSONL, json_files.JSON,
    onshape.FORMAT, svg.FORMAT, dxf.FORMAT, solids.STEP, solids.STL, solids.CADQUERY, solids.BUILD123D,
)  # fmt: skip
_COMPRESSED = (".gz", ".xz", ".svgz")
_HEAD_BYTES = 4096


def read(path: str | Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> ReadResult:
    """All sketches of a file, folder or archive, with the counts of what was skipped or changed.

    Raises:
        FormatError: If the file is missing, damaged or in an unknown format.
    """
    return collect(scan(path, options))


def scan(
    path: str | Path, options: ReadOptions = DEFAULT_READ_OPTIONS, on_file: Callable[[str], None] = lambda name: None
) -> Iterator[ReadItem]:
    """The items of a file, folder or archive as a stream.

    In a folder or archive, a file that cannot be read is counted and the next one read. `on_file` is called with the
    name of each of its files before the items of that file.
    """
    path = Path(path)
    with _format_errors(path):
        if path.is_dir():
            for member in folder_members(path):
                on_file(display_path(member.path.relative_to(path)))
                for item in count_errors(scan(member.path, options)):
                    # A manifest names the sketches of its folder; `generate` stores a longer id in each.
                    if member.name is not None and isinstance(item, Sketch):
                        item = replace(item, extra={**item.extra, "id": member.name})
                    yield item
        elif is_tar(path, _head(path)):
            for file in tar_files(path):
                on_file("" if isinstance(file, Skipped) else display_path(file.name))
                yield from (file,) if isinstance(file, Skipped) else count_errors(_scan_file(file, options))
        else:
            yield from _scan_file(path, options)


def write(sketches: Sketch | Iterable[Sketch], path: str | Path, format: str | None = None, **options: Any) -> Losses:
    """Write one sketch or many, in the named format or the one of the suffix of `path`.

    Args:
        sketches: One sketch, or any iterable of sketches, which may be a stream.
        path: The file to write. It is written completely or not at all.
        format: The name of a format; by default the suffix decides.
        options: Options of the format: `height=5` (millimeters) of a solid or script, `polylines=True` of a DXF,
            `dimensions=True` of a FreeCAD document.

    Returns:
        What the file does not hold of the sketches, or holds with changes.
    """
    path = Path(path)
    chosen = find_writer(path, format, options)
    if chosen.write is None:
        raise FormatError(path, f"{chosen.name} is read only")
    return chosen.write((sketches,) if isinstance(sketches, Sketch) else sketches, path, **options) or Losses()


def dumps(sketches: Sketch | Iterable[Sketch], format: str = "json", **options: Any) -> str | bytes:
    """One sketch or many as the content of a file in the named format.

    >>> dumps(Sketch((), units="mm"))
    '{"primitives": [],\\n "units": "mm"}\\n'

    Args:
        sketches: One sketch, or an iterable of sketches where the format holds many.
        format: The name or suffix of a format: `"dxf"`, `"svg"`, `"freecad"`, `"jsonl.gz"`, …
        options: Options of the format, as in `write`.

    Returns:
        `str` for text formats, `bytes` for binary and compressed ones.
    """
    chosen = find_writer("", format, options)
    with _temporary_file(chosen, format) as path:
        write(sketches, path, chosen.name, **options)
        data = path.read_bytes()
        return data.decode() if chosen.is_text and path.suffix not in _COMPRESSED else data


def loads(data: str | bytes, format: str = "json", options: ReadOptions = DEFAULT_READ_OPTIONS) -> ReadResult:
    """The sketches in the content of a file, within the same bounds as `read`.

    >>> len(loads('{"primitives": [["C", 0, 0, 0, 5]], "units": "mm"}').sketches[0])
    1

    Raises:
        FormatError: If the data is not in the named format.
    """
    readable = [f for f in FORMATS if f.read]
    if (chosen := _by_name(format, readable)) is None:
        raise SketchError(f"'{format}' is no format that we read; use one of {', '.join(f.name for f in readable)}")
    with _temporary_file(chosen, format) as path:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return collect(_scan_file(path, options, chosen))


def detect_format(path: str | Path) -> Format:
    """The format of a file, by its content and its suffix."""
    path = Path(path)
    with _format_errors(path):
        head = _head(path)
        if is_tar(path, head):
            raise FormatError(path, "is an archive, and its files have formats of their own")
        # The reader of the suffix raises the most specific error for a file that no format recognizes.
        chosen = next((f for f in FORMATS if f.recognizes(path, head)), None) or _by_suffix(path, FORMATS)
    if chosen is None:
        readable = _suffixes(f for f in FORMATS if f.read)
        raise FormatError(path, f"is in no format that we read: {readable}, or a folder or tar of these")
    return chosen


def find_writer(path: str | Path, name: str | None = None, options: Collection[str] = ()) -> Format:
    """The format to write `path` in: the named one, or the one of its suffix. It must have these options."""
    writable = [f for f in FORMATS if f.write]
    chosen = _by_suffix(Path(path), writable) if name is None else _by_name(name, writable)
    if chosen is None and name is None:
        raise FormatError(path, f"cannot be written: its name must end in {_suffixes(writable)}, or in / for a folder")
    if chosen is None:
        raise SketchError(f"'{name}' is no format that we write; use one of {', '.join(f.name for f in writable)}")
    for option in options:
        if option not in chosen.write_options:
            others = ", ".join(f.name for f in writable if option in f.write_options) or "no format"
            raise SketchError(f"'{option}' is an option of {others}, not of {chosen.name}")
    return chosen


def _by_name(name: str, formats: Iterable[Format]) -> Format | None:
    names = {alias.lower(): f for f in reversed(list(formats)) for alias in (f.name, *(s[1:] for s in f.suffixes))}
    return names.get(name.lower())


def _scan_file(path: Path, options: ReadOptions, chosen: Format | None = None) -> Iterator[ReadItem]:
    with _format_errors(path):
        chosen = chosen or detect_format(path)
        if chosen.read is None:
            raise FormatError(path, f"is for other programs: {chosen.name} files are written here, not read")
        for item in chosen.read(path, options) if chosen.read_takes_options else chosen.read(path):
            if options.assume_units and isinstance(item, Sketch) and item.units is None:
                item = replace(item, units=options.assume_units)
            yield item


@contextmanager
def _temporary_file(chosen: Format, name: str) -> Iterator[Path]:
    """A path for a file in a format that was given by name or suffix. Errors do not mention the path."""
    suffix = f".{name}".lower()
    remove_abandoned()
    with temporary_folder() as folder:
        try:
            yield folder / f"data{suffix if suffix in chosen.suffixes else chosen.suffixes[0]}"
        except FormatError as error:
            raise type(error)(f"{chosen.name} data", error.reason) from error


@contextmanager
def _format_errors(path: Path) -> Iterator[None]:
    """Turn any exception into a `FormatError` that names the file."""
    try:
        yield
    except FormatError:
        raise
    except SketchError as error:
        raise FormatError(path, str(error)) from error
    except Exception as error:
        # Readers use a dozen parsers, each with its own errors.
        text = getattr(error, "strerror", None) or quoted((str(error).splitlines() or [""])[0]) or type(error).__name__
        kind = MissingFileError if isinstance(error, FileNotFoundError) and not path.exists() else FormatError
        raise kind(path, f"cannot be read ({text})") from error


def _head(path: Path) -> bytes:
    """The first bytes of a file; refuses a pipe or a device, which might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise FormatError(path, "is a folder" if path.is_dir() else "is not a regular file")
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise FormatError(path, "is empty")
    return head


def _by_suffix(path: Path, formats: Iterable[Format]) -> Format | None:
    """The format with the longest matching suffix: `.corpus.jsonl` before `.jsonl`."""
    name = path.name.lower()
    matches = [(len(s), f) for f in formats for s in f.suffixes if name.endswith(s.lower())]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _suffixes(formats: Iterable[Format]) -> str:
    return ", ".join(dict.fromkeys(f.suffixes[0] for f in formats))
