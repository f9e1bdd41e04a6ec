"""Where sketches come from: files cut into tasks that can be read side by side, and the reading of one.

Tasks depend on the input alone, never on how many workers there are. A SketchGraphs file is cut by sequences, a file of
lines by lines, small files go together, and procedural parts are numbered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sketchdnn.errors import FormatError, MissingFileError, SketchError
from sketchdnn.formats import ReadOptions, Skipped, detect_format, scan
from sketchdnn.formats.archives import folder_files
from sketchdnn.formats.format import short_reason
from sketchdnn.formats.json_files import LINE_SUFFIXES, iter_lines, parse_record
from sketchdnn.geometry import Sketch

from .blocks import BLOCK_SIZE, Block, Origins, Tally, gather_blocks, word
from .procedural import procedural

# A file of lines is read by several workers, each parsing every n-th run of this many lines: parsing costs far more
# than passing over lines.
RUN_OF_LINES = 256
BYTES_A_STRIPE = 2**20
MOST_STRIPES = 16
FILES_A_TASK = 64
# Curves are left out and counted: a spline as arcs is no sketch that anyone drew, and is refused as incomplete.
_READING = ReadOptions(flatten=None)


class InputError(SketchError):
    """What was asked for cannot be prepared: there is nothing to take up later."""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of the input. `start, stop` count sequences or parts; for lines they are stripe and stripes.

    `names` are those of the files, from the folder asked for on, which is the source of sketches that name none.
    `named` files were asked for by name, and one that cannot be read is an error; a file met in a folder is counted.
    """

    kind: Literal["sequences", "lines", "files", "procedural"]
    files: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    start: int = 0
    stop: int = 0
    named: bool = True


@dataclass(frozen=True, slots=True)
class Procedural:
    """How many built-in parts to draw, and from which seed."""

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1 or self.seed < 0:
            raise SketchError("procedural parts need a count of at least 1 and a seed of at least 0")


@dataclass(frozen=True, slots=True)
class Input:
    """A file and what tells it from another version of itself."""

    name: str
    bytes: int
    digest: str


def plan(
    sources: Sequence[Path], parts: Procedural | None = None, leave_out: Sequence[Path] = ()
) -> tuple[list[Task], list[Input]]:
    """The tasks that read all sources, and what the sources were; nothing below the folders in `leave_out`.

    Raises:
        FormatError: If a source lies in one of these folders, or is one.
    """
    hidden = [folder.resolve() for folder in leave_out]
    tasks: list[Task] = []
    inputs: list[Input] = []
    for source in sources:
        is_folder = source.is_dir()
        if any(source.resolve().is_relative_to(folder) for folder in hidden):
            raise FormatError(source, "is in the folder to write to; name another --out")
        files = folder_files(source) if is_folder else [source]
        files = [file for file in files if not any(file.resolve().is_relative_to(folder) for folder in hidden)]
        small: list[tuple[Path, str]] = []
        for file in files:
            name = file.relative_to(source.parent).as_posix() if is_folder else file.name
            name = name.encode(errors="backslashreplace").decode()
            try:
                inputs.append(_input(file, name))
                cut = _cut(file, name, named=not is_folder)
            except FormatError:
                if not is_folder:
                    raise
                cut = []  # one file of many: whoever reads it will count it
            tasks += cut
            if not cut:
                small.append((file, name))
        for first in range(0, len(small), FILES_A_TASK):
            some, names = zip(*small[first : first + FILES_A_TASK], strict=True)
            tasks.append(Task("files", some, names, named=not is_folder))
    if parts is not None:
        inputs.append(Input(f"procedural seed {parts.seed}", parts.count, ""))
        for start in range(0, parts.count, BLOCK_SIZE):
            stop = min(start + BLOCK_SIZE, parts.count)
            tasks.append(Task("procedural", names=(str(parts.seed),), start=start, stop=stop))
    return tasks, inputs


def read_task(task: Task, tally: Tally) -> Iterator[Block]:
    """The sketches of a task in blocks, none larger than `BLOCK_SIZE`."""
    if task.kind == "procedural":
        seed = int(task.names[0])
        yield from gather_blocks(
            (procedural(seed, index) for index in range(task.start, task.stop)), tally, "procedural"
        )
        return
    for file, name in zip(task.files, task.names, strict=True):
        # A file of lines is a file once, whichever stripe finishes first.
        tally.files += task.start == 0
        try:
            yield from _read_file(task, file, name, tally)
        except FormatError as error:
            if task.named:
                raise InputError(str(error)) from error
            tally.bad_files[name] = short_reason(error)


def _read_file(task: Task, file: Path, name: str, tally: Tally) -> Iterator[Block]:
    if task.kind == "sequences":
        yield _sequences(file, task.start, task.stop, tally)
    elif task.kind == "lines":
        yield from gather_blocks(_stripe(file, task.start, task.stop), tally, name.split("/")[0])
    else:
        # Sketches of one document are variants of one thing, unless their file says otherwise.
        yield from gather_blocks(scan(file, _READING), tally, name.split("/")[0], group=name)


def _cut(file: Path, name: str, *, named: bool) -> list[Task]:
    """The tasks of a file that is worth cutting; none for any other."""
    lower = file.name.lower()
    if lower.endswith(".npy") and _format_name(file) == "sketchgraphs":
        from sketchdnn.formats.sketchgraphs import count

        total = count(file)
        return [
            Task("sequences", (file,), (name,), start, min(start + BLOCK_SIZE, total), named)
            for start in range(0, total, BLOCK_SIZE)
        ]
    if lower.endswith(LINE_SUFFIXES) and _format_name(file) in ("corpus", "jsonl"):
        stripes = min(MOST_STRIPES, 1 + file.stat().st_size // BYTES_A_STRIPE)
        return [Task("lines", (file,), (name,), stripe, stripes, named) for stripe in range(stripes)]
    return []


def _format_name(file: Path) -> str:
    try:
        return detect_format(file).name
    except FormatError:
        return ""  # whoever reads it will say what is wrong


def _sequences(file: Path, start: int, stop: int, tally: Tally) -> Block:
    """The fast road: straight into columns. A sequence that cannot be read is a sketch without primitives."""
    from sketchdnn.formats.sketchgraphs import read_table
    from sketchdnn.formats.sketchgraphs.container import open_sequences

    found = read_table(file, start, stop)
    count = found.table.num_sketches
    tally.found += count
    tally.left_out.update(found.skipped)
    sequences = open_sequences(file)
    ids = _Names(count, lambda index: word(sequences.sketch_id(start + index)))
    # Official names are a document, a part and a sketch; sketches of one document are variants of one thing.
    has_documents = sequences.ids is not None and sequences.ids.dtype.names is not None
    groups = _Names(count, lambda index: ids[index].split("/")[0] if has_documents else "")
    origins = Origins(ids, ["sketchgraphs"] * count, [""] * count, groups, ["m"] * count)
    return Block(found.table, found.constraints, found.dropped, origins)


class _Names(Sequence[str]):
    """Words that are made when asked for: most sketches are refused and need none."""

    def __init__(self, count: int, name: Callable[[int], str]) -> None:
        self._count, self._name = count, name

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._name(range(self._count)[index])


def _stripe(file: Path, stripe: int, stripes: int) -> Iterator[Sketch | Skipped]:
    try:
        for number, line in enumerate(iter_lines(file)):
            if number // RUN_OF_LINES % stripes != stripe:
                continue
            try:
                yield line if isinstance(line, Skipped) else parse_record(line)
            except SketchError as error:
                yield Skipped(short_reason(error), is_sketch=True)
    except OSError as error:
        raise FormatError(file, f"cannot be read ({error.strerror})") from error


def _input(file: Path, name: str) -> Input:
    """Size, and a digest of the first and last bytes and the time of writing: enough to notice a change at once."""
    edge = 2**16
    try:
        stat = file.stat()
        if not file.is_file():
            return Input(name, 0, "")  # a pipe would never end; whoever reads it will refuse it
        with file.open("rb") as stream:
            ends = stream.read(edge)
            stream.seek(max(0, stat.st_size - edge))
            ends += stream.read(edge)
    except FileNotFoundError as error:
        raise MissingFileError(file, f"cannot be read ({error.strerror})") from error
    except OSError as error:
        raise FormatError(file, f"cannot be read ({error.strerror})") from error
    seen = hashlib.blake2b(ends + str(stat.st_mtime_ns).encode(), digest_size=16)
    return Input(name, stat.st_size, seen.hexdigest())
