"""The sources of a corpus: files cut into tasks that are read in parallel, and blocks of sketches read from a task.

Tasks depend on the input alone, not on the number of workers. A SketchGraphs file is cut by sequences, a file of lines
by lines, small files are grouped, and procedural parts are numbered.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import FormatError, MissingFileError, SketchError
from sketchdnn.formats import ReadItem, ReadOptions, Skipped, detect_format, scan
from sketchdnn.formats.archives import folder_members
from sketchdnn.formats.checks import short_reason
from sketchdnn.formats.json_files import LINE_SUFFIXES, iter_lines, parse_record
from sketchdnn.geometry import Sketch
from sketchdnn.geometry.table import PrimitiveTable, sketches_to_table

from .procedural import procedural

# A handful of workers stay far below a gigabyte, and numpy is still efficient.
BLOCK_SIZE = 8192
# Limits on the texts and counts of files, which are not trusted.
MAX_TEXT, MAX_ENTITIES = 1000, 10**6


class Origins(NamedTuple):
    """The provenance of each sketch as text; "" if unknown."""

    id: Sequence[str]
    source: Sequence[str]
    licence: Sequence[str]
    group: Sequence[str]
    units: Sequence[str]

    def select(self, keep: NDArray[np.bool_]) -> Origins:
        return Origins(*(list(compress(column, keep)) for column in self))


@dataclass(slots=True)
class Tally:
    """Counts of found, refused and skipped items, which add up over blocks, tasks and files."""

    found: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    files: int = 0
    bad_files: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.found += other.found
        self.refused.update(other.refused)
        self.skipped.update(other.skipped)
        self.files += other.files
        self.bad_files.update(other.bad_files)

    def refuse(self, reason: str, count: int) -> None:
        self.refused += Counter({reason: count})  # without zeros

    def to_record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_record(record: dict[str, Any]) -> Tally:
        return Tally(**record | {name: Counter(record[name]) for name in ("refused", "skipped")})


@dataclass(frozen=True, slots=True)
class Block:
    """Sketches as a table, with the number of constraints and of dropped entities of each."""

    table: PrimitiveTable
    constraints: NDArray[np.int64]
    dropped: NDArray[np.int64]
    origins: Origins

    def select(self, keep: NDArray[np.bool_]) -> Block:
        return Block(self.table.select(keep), self.constraints[keep], self.dropped[keep], self.origins.select(keep))


def gather_blocks(items: Iterable[ReadItem], tally: Tally, source: str, group: str = "") -> Iterator[Block]:
    """The sketches of a stream in blocks; skipped items are counted in the tally.

    `source` and `group` are the defaults for sketches without their own.
    """
    defaults = {"id": "", "source": source, "licence": "", "group": group}
    sketches = _counted_sketches(items, tally)
    while some := list(islice(sketches, BLOCK_SIZE)):
        texts = [[as_text(s.extra.get(key)) or default for s in some] for key, default in defaults.items()]
        texts.append([sketch.units or "" for sketch in some])
        constraints = np.array([len(sketch.constraints) for sketch in some], np.int64)
        dropped = np.array([_count(sketch.extra.get("dropped_entities")) for sketch in some], np.int64)
        yield Block(sketches_to_table(some), constraints, dropped, Origins(*texts))


def _counted_sketches(items: Iterable[ReadItem], tally: Tally) -> Iterator[Sketch]:
    for item in items:
        if isinstance(item, Sketch):
            tally.found += 1
            yield item
        elif isinstance(item, Skipped) and item.is_sketch:
            tally.found += item.count
            tally.refuse(item.reason, item.count)
        elif isinstance(item, Skipped):
            tally.skipped[item.reason] += item.count


def as_text(value: object) -> str:
    """A value of a file, of any type, as text that can be encoded."""
    return "" if value is None else str(value)[:MAX_TEXT].encode(errors="backslashreplace").decode()


def _count(value: object) -> int:
    return min(value, MAX_ENTITIES) if isinstance(value, int) and value > 0 else 0


# A file of lines is read by several workers; each parses every n-th run of this many lines and skips the others.
LINES_PER_RUN = 256
BYTES_PER_STRIPE = 2**20
MAX_STRIPES = 16
FILES_PER_TASK = 64
# Splines are not flattened but counted as dropped entities.
_READ_OPTIONS = ReadOptions(curve_tolerance_mm=None)


class InputError(SketchError):
    """The input cannot be prepared; there is nothing to resume."""


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of the input.

    Attributes:
        kind: What is read.
        files: The files.
        names: Their names relative to the parent of the source; the first component is the default source of sketches.
        start: The first sequence or part; for lines, the stripe.
        stop: The end of the sequences or parts; for lines, the number of stripes.
        is_explicit: Whether an unreadable file is an error; a file found in a folder is only counted.
    """

    kind: Literal["sequences", "lines", "files", "procedural"]
    files: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    start: int = 0
    stop: int = 0
    is_explicit: bool = True


@dataclass(frozen=True, slots=True)
class Procedural:
    """The count and the seed of procedural parts."""

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1 or self.seed < 0:
            raise SketchError("procedural parts need a count of at least 1 and a seed of at least 0")


@dataclass(frozen=True, slots=True)
class Input:
    """A file and its fingerprint."""

    name: str
    bytes: int
    digest: str


def plan(
    sources: Sequence[Path], parts: Procedural | None = None, exclude: Sequence[Path] = ()
) -> tuple[list[Task], list[Input]]:
    """The tasks that read all sources, and the fingerprints of the sources.

    Args:
        sources: Files and folders.
        parts: Procedural parts to add.
        exclude: Folders that are not read.

    Raises:
        FormatError: A source is in an excluded folder.
    """
    hidden = [folder.resolve() for folder in exclude]

    def is_hidden(path: Path) -> bool:
        return any(path.resolve().is_relative_to(folder) for folder in hidden)

    tasks: list[Task] = []
    inputs: list[Input] = []
    for source in sources:
        is_folder = source.is_dir()
        if is_hidden(source):
            raise FormatError(source, "is in the folder to write to; name another --out")
        files = [member.path for member in folder_members(source)] if is_folder else [source]
        small: list[tuple[Path, str]] = []
        for file in (file for file in files if not is_hidden(file)):
            name = file.relative_to(source.parent).as_posix().encode(errors="backslashreplace").decode()
            cut: list[Task] = []
            try:
                inputs.append(_input(file, name))
                cut = _cut(file, name, is_explicit=not is_folder)
            except FormatError:  # of a file in a folder, it is counted when it is read
                if not is_folder:
                    raise
            tasks += cut
            if not cut:
                small.append((file, name))
        for first in range(0, len(small), FILES_PER_TASK):
            some, names = zip(*small[first : first + FILES_PER_TASK], strict=True)
            tasks.append(Task("files", some, names, is_explicit=not is_folder))
    if parts is not None:
        inputs.append(Input(f"procedural seed {parts.seed}", parts.count, ""))
        tasks += [Task("procedural", (), (str(parts.seed),), *ends) for ends in _ranges(parts.count)]
    return tasks, inputs


def read_task(task: Task, tally: Tally) -> Iterator[Block]:
    """The sketches of a task in blocks of at most `BLOCK_SIZE`."""
    if task.kind == "procedural":
        seed = int(task.names[0])
        parts = (procedural(seed, index) for index in range(task.start, task.stop))
        yield from gather_blocks(parts, tally, "procedural")
        return
    for file, name in zip(task.files, task.names, strict=True):
        # The first stripe counts a file of lines.
        tally.files += task.start == 0
        source = name.split("/")[0]
        try:
            if task.kind == "sequences":
                yield _sequences(file, task.start, task.stop, tally)
            elif task.kind == "lines":
                yield from gather_blocks(_stripe(file, task.start, task.stop), tally, source)
            else:
                # Sketches of one document are variants by default.
                yield from gather_blocks(scan(file, _READ_OPTIONS), tally, source, group=name)
        except FormatError as error:
            if task.is_explicit:
                raise InputError(str(error)) from error
            tally.bad_files[name] = short_reason(error)


def _cut(file: Path, name: str, *, is_explicit: bool) -> list[Task]:
    """The tasks of a file that is read in parallel; none for other files."""
    lower = file.name.lower()
    if lower.endswith(".npy") and detect_format(file).name == "sketchgraphs":
        from sketchdnn.formats.sketchgraphs import count

        return [Task("sequences", (file,), (name,), *ends, is_explicit) for ends in _ranges(count(file))]
    if lower.endswith(LINE_SUFFIXES) and detect_format(file).name in ("corpus", "jsonl"):
        stripes = min(MAX_STRIPES, 1 + file.stat().st_size // BYTES_PER_STRIPE)
        return [Task("lines", (file,), (name,), stripe, stripes, is_explicit) for stripe in range(stripes)]
    return []


def _ranges(count: int) -> list[tuple[int, int]]:
    """The first and the last index of each block, exclusive."""
    return [(start, min(start + BLOCK_SIZE, count)) for start in range(0, count, BLOCK_SIZE)]


def _sequences(file: Path, start: int, stop: int, tally: Tally) -> Block:
    """Read sequences directly into columns. A sequence that cannot be read is a sketch without primitives."""
    from sketchdnn.formats.sketchgraphs import read_table
    from sketchdnn.formats.sketchgraphs.container import open_sequences

    columns = read_table(file, start, stop)
    count = columns.table.num_sketches
    tally.found += count
    tally.skipped.update(columns.skipped)
    sequences = open_sequences(file)
    ids = [as_text(sequences.sketch_id(start + index)) for index in range(count)]
    # Official names are document/part/sketch; sketches of one document are variants.
    has_documents = sequences.ids is not None and sequences.ids.dtype.names is not None
    groups = [name.split("/")[0] if has_documents else "" for name in ids]
    origins = Origins(ids, ["sketchgraphs"] * count, [""] * count, groups, ["m"] * count)
    return Block(columns.table, columns.constraints, columns.dropped, origins)


def _stripe(file: Path, stripe: int, stripes: int) -> Iterator[Sketch | Skipped]:
    try:
        for number, line in enumerate(iter_lines(file)):
            if number // LINES_PER_RUN % stripes != stripe:
                continue
            try:
                yield line if isinstance(line, Skipped) else parse_record(line)
            except SketchError as error:
                yield Skipped(short_reason(error), is_sketch=True)
    except OSError as error:
        raise FormatError(file, f"cannot be read ({error.strerror})") from error


def _input(file: Path, name: str) -> Input:
    """The size, and a digest of the first and last bytes and the modification time."""
    edge = 2**16
    try:
        stat = file.stat()
        if not file.is_file():
            return Input(name, 0, "")  # a pipe would never end; reading it is refused
        with file.open("rb") as stream:
            ends = stream.read(edge)
            stream.seek(max(0, stat.st_size - edge))
            ends += stream.read(edge)
    except OSError as error:
        kind = MissingFileError if isinstance(error, FileNotFoundError) else FormatError
        raise kind(file, f"cannot be read ({error.strerror})") from error
    digest = hashlib.blake2b(ends + str(stat.st_mtime_ns).encode(), digest_size=16)
    return Input(name, stat.st_size, digest.hexdigest())
