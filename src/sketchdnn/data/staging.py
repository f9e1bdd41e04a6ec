"""The staging folder of a preparation, beside the output.

An interrupted run leaves it, the next run of the same work resumes it, and in the end it becomes the output.
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

from .config import SPLITS, PrepareConfig, config_to_dict
from .sources import BLOCK_SIZE, Input, Tally

# Increased whenever the same input and settings would give another result.
PIPELINE_VERSION = 2
DATASET, INPUTS = "dataset.json", "inputs.json"
_OLD = "old"
# The files of a corpus, written by `store`, `report` and `prepare`. All others belong to the user.
_WRITTEN = re.compile(
    r"dataset\.json|inputs\.json|report\.json|report\.html|gallery\.png"
    rf"|({'|'.join(SPLITS)})/(kind|construction|params)\.npy"
    rf"|parquet/({'|'.join(SPLITS)})/part-\d+\.parquet"
)


@dataclass(frozen=True, slots=True)
class Staging:
    """The staging folder of an unfinished run."""

    out: Path
    fingerprint: str

    @property
    def folder(self) -> Path:
        return staging_folder(self.out)

    @property
    def result(self) -> Path:
        """The folder that becomes the output."""
        return self.folder / "result"

    def chunk(self, task: int, number: int) -> Path:
        return self.folder / "chunks" / f"{task:06d}-{number:03d}.arrow"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this run, and complete or undo the publication of a killed run."""
        try:
            with exclusive_run(self.folder, name=self.out):
                self._restore()
                yield
        finally:
            with suppress(OSError):  # it is not empty if work remains
                self.folder.rmdir()

    def open(self) -> None:
        """Resume an earlier run of the same work, or remove the remains of another."""
        mark = self.folder / "fingerprint"
        remove_abandoned(self.folder)
        if not mark.is_file() or mark.read_bytes() != self.fingerprint.encode():
            if not mark.is_file() and any(path.name != LOCK for path in self.folder.iterdir()):
                raise FormatError(self.folder, "is in the way, and was not made by prepare; move it")
            self.discard()
            with atomic_write(mark) as temporary:
                temporary.write_text(self.fingerprint)
        remove_abandoned(self.folder / "chunks")
        _remove(self.result)

    def load_task(self, task: int) -> tuple[Tally, list[int]] | None:
        """The counts and the chunk sizes of a finished task; None if it must be done again, also after damage."""
        try:
            record: Any = load_json(self._record(task))
            tally, chunks = Tally.from_record(record["tally"]), [int(size) for size in record["chunks"]]
            return (tally, chunks) if self._digests(task, chunks) == record["digests"] else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def save_task(self, task: int, tally: Tally, chunks: list[int]) -> None:
        """Record a finished task, after its chunks are written."""
        record = {"chunks": chunks, "digests": self._digests(task, chunks), "tally": tally.to_record()}
        write_json(self._record(task), record, flush=False)  # damage is detected when it is loaded

    def publish(self) -> None:
        """Make the result the output. The user's files in an earlier output are kept."""
        for path in sorted(self.result.rglob("*")):
            flush_to_disk(path)
        if self.out.exists():
            self.out.rename(self.folder / _OLD)
        self.result.rename(self.out)
        flush_to_disk(self.out.parent)
        self._restore()
        self.discard()

    def discard(self) -> None:
        """Remove all work."""
        for path in self.folder.iterdir():
            if path.name != LOCK:
                _remove(path)

    def _restore(self) -> None:
        """Undo or finish a publication that was interrupted."""
        old = self.folder / _OLD
        if not old.is_dir():
            return
        if self.out.exists():
            _keep_other_files(old, self.out)
            _remove(old)
        else:
            old.rename(self.out)

    def _record(self, task: int) -> Path:
        return self.folder / "chunks" / f"{task:06d}.json"

    def _digests(self, task: int, chunks: list[int]) -> list[str]:
        data = (self.chunk(task, number).read_bytes() for number in range(len(chunks)))
        return [hashlib.blake2b(content).hexdigest() for content in data]


def staging_folder(out: Path) -> Path:
    """The staging folder of an output."""
    out = out.resolve()
    return out.with_name(out.name + ".partial")


def fingerprint(inputs: Sequence[Input], config: PrepareConfig) -> str:
    """A hash of the input and the settings: equal for runs of the same work."""
    work = [PIPELINE_VERSION, REPRESENTATION_VERSION, BLOCK_SIZE, config_to_dict(config), [asdict(i) for i in inputs]]
    return hashlib.blake2b(json.dumps(work).encode(), digest_size=16).hexdigest()


def check_output(out: Path, expected: str, *, force: bool) -> bool:
    """Whether the output exists already.

    Raises:
        FormatError: The folder holds something else, or another corpus and `force` is not set.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if not (out / DATASET).is_file():
        raise FormatError(out, "exists and is no prepared corpus; choose another folder")
    if force:
        return False
    inputs: Any = None
    with suppress(OSError, ValueError):
        inputs = load_json(out / INPUTS)
    if not isinstance(inputs, dict) or inputs.get("fingerprint") != expected:
        raise FormatError(out, "holds a corpus prepared from other input or with other settings; --force replaces it")
    return True


def write_json(path: Path, value: object, *, flush: bool = True) -> None:
    """Write indented JSON atomically."""
    with atomic_write(path, flush=flush) as temporary:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _keep_other_files(old: Path, out: Path, below: str = "") -> None:
    """Move the user's files from an earlier output to the new one."""
    for path in old.iterdir():
        name = below + path.name
        if path.name in ("parquet", *SPLITS) and below in ("", "parquet/") and path.is_dir() and not path.is_symlink():
            _keep_other_files(path, out / path.name, f"{name}/")
        elif not _WRITTEN.fullmatch(name):
            out.mkdir(parents=True, exist_ok=True)
            path.rename(out / path.name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
