"""Work in progress, in a folder beside the output: kept when a run is ended, taken up by the next one like it, and
turned into the output in one step at the end.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError
from sketchdnn.io import LOCK, atomic_write, exclusive_run, flush_to_disk, load_json, remove_abandoned
from sketchdnn.representation.layout import REPRESENTATION_VERSION

from .blocks import BLOCK_SIZE, Tally
from .config import SPLITS, PrepareConfig
from .sources import Input

# Raised whenever the same input and choices would give another result.
PIPELINE_VERSION = 2
DATASET, INPUTS = "dataset.json", "inputs.json"
_OLD = "old"
# The files of a corpus, below its folder: those of `store`, `report` and `prepare`. Whatever else is there is not ours.
_WRITTEN = re.compile(
    r"dataset\.json|inputs\.json|report\.json|report\.html|gallery\.png"
    rf"|({'|'.join(SPLITS)})/(kind|construction|params)\.npy"
    rf"|parquet/({'|'.join(SPLITS)})/part-\d+\.parquet"
)
_FOLDERS = {*SPLITS, "parquet", *(f"parquet/{split}" for split in SPLITS)}


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder of a run that is not finished."""

    out: Path
    fingerprint: str

    @property
    def folder(self) -> Path:
        return partial_folder(self.out)

    @property
    def result(self) -> Path:
        """What becomes the output."""
        return self.folder / "result"

    def chunk(self, task: int, number: int) -> Path:
        return self.folder / "chunks" / f"{task:06d}-{number:03d}.arrow"

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder for this run alone. What a killed run was about to put in place of the output comes back first."""
        try:
            with exclusive_run(self.folder, name=self.out):
                self._restore()
                yield
        finally:
            with suppress(OSError):  # work that is not done stays
                self.folder.rmdir()

    def open(self) -> None:
        """Take up what an earlier run of the same work left; anything else that is there is of no use."""
        mark = self.folder / "fingerprint"
        remove_abandoned(self.folder)
        if not _has(mark, self.fingerprint):
            there = [path for path in self.folder.iterdir() if path.name != LOCK]
            if there and not mark.is_file():
                raise FormatError(self.folder, "is in the way, and was not made by prepare; move it")
            for path in there:
                _remove(path)
            with atomic_write(mark) as temporary:
                temporary.write_text(self.fingerprint)
        chunks = self.folder / "chunks"
        try:
            chunks.mkdir(exist_ok=True)
        except OSError as error:
            raise FormatError(self.folder, f"cannot be written ({error.strerror})") from error
        remove_abandoned(chunks)
        _remove(self.result)

    def done(self, task: int) -> tuple[Tally, list[int]] | None:
        """The counts of a task that an earlier run finished, and how many candidates each of its chunks holds.

        Nothing if its record or one of its chunks is damaged: then it is done again.
        """
        try:
            record: Any = load_json(self._record(task))
            tally, chunks = Tally.from_record(record["tally"]), [int(size) for size in record["chunks"]]
            digests = [_digest(self.chunk(task, number)) for number in range(len(chunks))]
            return (tally, chunks) if digests == record["digests"] else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def finish(self, task: int, tally: Tally, chunks: list[int]) -> None:
        """Written last: a task without it is done again."""
        digests = [_digest(self.chunk(task, number)) for number in range(len(chunks))]
        record = {"chunks": chunks, "digests": digests, "tally": tally.to_record()}
        write_json(self._record(task), record, flush=False)  # damage is noticed, and made good

    def publish(self) -> None:
        """The result becomes the output, in place of an earlier one, of which all that is not prepare's stays."""
        for path in sorted(self.result.rglob("*")):
            flush_to_disk(path)
        old = self.folder / _OLD
        if self.out.exists():
            self.out.rename(old)
        self.result.rename(self.out)
        flush_to_disk(self.out.parent)
        if old.exists():
            _keep_others(old, self.out)
        self.discard()

    def discard(self) -> None:
        """Nothing of the work is kept."""
        for path in self.folder.iterdir():
            if path.name != LOCK:
                _remove(path)

    def _restore(self) -> None:
        """Undo or finish the replacement of an output that a kill interrupted."""
        old = self.folder / _OLD
        if not old.is_dir():
            return
        if self.out.exists():
            _keep_others(old, self.out)
            _remove(old)
        else:
            old.rename(self.out)

    def _record(self, task: int) -> Path:
        return self.folder / "chunks" / f"{task:06d}.json"


def partial_folder(out: Path) -> Path:
    """Where the work towards an output is kept until it is done."""
    out = out.resolve()
    return out.with_name(out.name + ".partial")


def fingerprint(inputs: Sequence[Input], config: PrepareConfig) -> str:
    """Equal for runs that would do the same work."""
    work = [PIPELINE_VERSION, REPRESENTATION_VERSION, BLOCK_SIZE, asdict(config), [asdict(i) for i in inputs]]
    return hashlib.blake2b(json.dumps(work).encode(), digest_size=16).hexdigest()


def check_output(out: Path, wanted: str, *, force: bool) -> bool:
    """Whether the output is already there; refuses to overwrite what is something else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not (out / DATASET).is_file():
        raise FormatError(out, "exists and is no prepared corpus; choose another folder")
    if force:
        return False
    try:
        inputs: Any = load_json(out / INPUTS)
        same = inputs["fingerprint"] == wanted
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise FormatError(out, "holds a corpus prepared from other input or with other choices; --force replaces it")
    return True


def write_json(path: Path, value: object, *, flush: bool = True) -> None:
    """Readable JSON, whole or not at all."""
    with atomic_write(path, flush=flush) as temporary:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _keep_others(old: Path, out: Path, below: str = "") -> None:
    """Move what prepare did not write from an earlier output to the one that took its place."""
    for path in old.iterdir():
        name = below + path.name
        if name in _FOLDERS and path.is_dir() and not path.is_symlink():
            _keep_others(path, out / path.name, f"{name}/")
        elif not _WRITTEN.fullmatch(name):
            out.mkdir(parents=True, exist_ok=True)
            path.rename(out / path.name)


def _has(path: Path, words: str) -> bool:
    try:
        return path.read_bytes() == words.encode()
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
