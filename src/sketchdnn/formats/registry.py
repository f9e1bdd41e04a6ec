"""All formats in one place: read and write any file by its suffix and content.

Whatever a file holds, reading it gives sketches, counted reasons, or one `FormatError`; nothing else leaves this room.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, MissingFileError, SketchError, display_path, quoted
from sketchdnn.formats.archives import folder_members, is_tar, tar_files
from sketchdnn.formats.format import Losses, ReadItem, ReadResult, Skipped, collect, short_reason
from sketchdnn.geometry import Sketch

from . import dxf, freecad, hpsketch, json_files, onshape, sketchgraphs, solids, svg
from .format import DEFAULT_READ_OPTIONS, HEAD_BYTES, Format, ReadOptions

# A file is read by the first that recognizes it, so those that look at the content come before those that trust a name.
FORMATS: tuple[Format, ...] = (
    sketchgraphs.FORMAT,
    hpsketch.FORMAT,
    freecad.FORMAT,
    json_files.CORPUS,
    json_files.JSONL,
    json_files.JSON,
    onshape.FORMAT,
    svg.FORMAT,
    dxf.FORMAT,
    solids.STEP,
    solids.STL,
    solids.CADQUERY,
    solids.BUILD123D,
)


def read(path: str | Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> ReadResult:
    """All sketches of a file, folder or archive, and how often each reason kept something out."""
    return collect(scan(path, options))


def scan(
    path: str | Path, options: ReadOptions = DEFAULT_READ_OPTIONS, on_file: Callable[[str], None] = lambda name: None
) -> Iterator[ReadItem]:
    """The same as a stream. In a folder or archive, a file that cannot be read is counted and the next one read.

    `on_file` is called with the name of each file of a folder or archive before what is found in it.
    """
    path = Path(path)
    with _sentences(path):
        if path.is_dir():
            for member in folder_members(path):
                on_file(display_path(member.path.relative_to(path)))
                yield from _named(member.name, _counting(member.path, partial(scan, options=options)))
        elif is_tar(path, _head(path)):
            for file in tar_files(path):
                on_file("" if isinstance(file, Skipped) else display_path(file.name))
                if isinstance(file, Skipped):
                    yield file
                else:
                    yield from _counting(file, partial(_scan_file, options=options))
        else:
            yield from _scan_file(path, options)


def write(
    sketches: Sketch | Iterable[Sketch],
    path: str | Path,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Losses:
    """Write one sketch or many, in the named format or the one that the suffix of `path` means.

    Returns what the file does not hold of them, or holds changed.

    `options` are the format's own: `height=5` (millimeters) of a solid or script, `polylines=True` of a DXF,
    `dimensions=True` of a FreeCAD document.
    """
    path = Path(path)
    chosen = find_writer(path, format, options)
    if chosen.write is None:  # find_writer offers none such
        raise FormatError(path, f"{chosen.name} is read only")
    try:
        return chosen.write((sketches,) if isinstance(sketches, Sketch) else sketches, path, **options) or Losses()
    except SketchError:
        raise
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror or error})") from error


def detect_format(path: str | Path) -> Format:
    """The format of a file, by its content and its suffix."""
    path = Path(path)
    with _sentences(path):
        head = _head(path)
        if is_tar(path, head):
            raise FormatError(path, "is an archive, and its files have formats of their own")
        for candidate in FORMATS:
            if candidate.recognizes(path, head):
                return candidate
        by_name = _by_suffix(path, FORMATS)
    if by_name is None:
        readable = _suffixes(f for f in FORMATS if f.read)
        raise FormatError(path, f"is in no format that we read: {readable}, or a folder or tar of these")
    return by_name  # whose reader can say best what is wrong with it


def find_writer(path: str | Path, name: str | None = None, options: Collection[str] = ()) -> Format:
    """The format to write `path` in: the one named, or the one that its suffix means. It must have these options."""
    writable = [f for f in FORMATS if f.write]
    chosen = _by_suffix(Path(path), writable) if name is None else _by_name(name, writable)
    if chosen is None and name is None:
        end = f"its name must end in {_suffixes(writable)}, or in / for a folder"
        raise FormatError(path, f"cannot be written: {end}")
    if chosen is None:
        names = ", ".join(f.name for f in writable)
        raise SketchError(f"'{name}' is no format that we write; use one of {names}")
    for option in options:
        if option not in chosen.options:
            others = ", ".join(f.name for f in writable if option in f.options) or "no format"
            raise SketchError(f"'{option}' is an option of {others}, not of {chosen.name}")
    return chosen


def _by_name(name: str, formats: Iterable[Format]) -> Format | None:
    for candidate in formats:
        if name.lower() == candidate.name.lower() or f".{name}".lower() in map(str.lower, candidate.suffixes):
            return candidate
    return None


def _scan_file(path: Path, options: ReadOptions) -> Iterator[ReadItem]:
    with _sentences(path):
        found = detect_format(path)
        if found.read is None:
            raise FormatError(path, f"is for other programs: {found.name} files are written here, not read")
        for item in found.read(path, options) if found.is_drawing else found.read(path):
            if options.assume_units and isinstance(item, Sketch) and item.units is None:
                yield replace(item, units=options.assume_units)
            else:
                yield item


def _named(name: str | None, found: Iterator[ReadItem]) -> Iterator[ReadItem]:
    """Sketches of a folder with a manifest go by the name that they have there; `generate` writes a longer id."""
    for item in found:
        if name is not None and isinstance(item, Sketch):
            yield replace(item, extra={**item.extra, "id": name})
        else:
            yield item


def _counting(path: Path, scan_one: Callable[[Path], Iterator[ReadItem]]) -> Iterator[ReadItem]:
    try:
        yield from scan_one(path)
    except FormatError as error:
        yield Skipped(f"an unreadable file: {short_reason(error)}")


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file becomes one sentence that names it."""
    try:
        yield
    except FormatError:
        raise
    except SketchError as error:
        raise FormatError(path, str(error)) from error
    except Exception as error:
        # Readers stand on a dozen parsers, each with its own errors; this is the boundary where they end.
        detail = quoted((str(error).splitlines() or [""])[0]) or type(error).__name__
        strerror = getattr(error, "strerror", None)
        kind = MissingFileError if isinstance(error, FileNotFoundError) and not path.exists() else FormatError
        raise kind(path, f"cannot be read ({strerror or detail})") from error


def _head(path: Path) -> bytes:
    """The first bytes of a file; refuses a pipe or a device, which might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise FormatError(path, "is a folder" if path.is_dir() else "is not a regular file")
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise FormatError(path, "is empty")
    return head


def _by_suffix(path: Path, formats: Iterable[Format]) -> Format | None:
    """The longest suffix wins: `.corpus.jsonl` before `.jsonl`."""
    name = path.name.lower()
    matches = [(len(s), f) for f in formats for s in f.suffixes if name.endswith(s.lower())]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _suffixes(formats: Iterable[Format]) -> str:
    return ", ".join(dict.fromkeys(f.suffixes[0] for f in formats))
