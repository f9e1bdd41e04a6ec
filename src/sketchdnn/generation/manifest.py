"""`manifest.json`: the request, the model, and one entry for each sketch, with its files and their hashes.

Entries are appended to a hidden log as sketches are written, so memory does not grow with their number. At the end the
logs of all processes become the manifest. The files of a sketch are logged with their hashes before they get their
names, so that the next run recognizes them even after a kill. A file that no run wrote, or that was changed since, is
never removed unless that is forced.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import sketchdnn
from sketchdnn.errors import FormatError
from sketchdnn.formats.manifest import GALLERY, MANIFEST, PAGE, PROGRAM, file_sha256, is_manifest, manifest_entries
from sketchdnn.io import PREFIX, atomic_write, create, exclusive_run, remove_abandoned

# Names of sketch files after their stem: nothing else is removed, whatever a manifest lists.
_NUMBERED = r"-\d{4,10}(\.trajectory)?\.\w{2,5}"
_LOG = re.compile(re.escape(PREFIX) + r"manifest-\d{5}\.part")


@dataclass(frozen=True, slots=True)
class ProcessShare:
    """The share of one process in a run of several, as `torchrun` starts them.

    Each process generates its own range of indices. They wait for each other only at the end, when the first one
    gathers what all have written.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0  # selects the device on this machine

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.world == 1

    @property
    def is_first(self) -> bool:
        """Whether this process gathers the results and prints."""
        return self.rank == 0

    def select(self, indices: range) -> range:
        """The part of a range that belongs to this process.

        >>> [ProcessShare(rank, 3).select(range(10, 20)) for rank in range(3)]
        [range(10, 13), range(13, 16), range(16, 20)]
        """
        count = len(indices)
        return indices[count * self.rank // self.world : count * (self.rank + 1) // self.world]

    def wait(self) -> None:
        """Wait for all processes."""
        if not self.is_alone:
            from torch import distributed

            distributed.barrier()


@contextmanager
def process_share() -> Iterator[ProcessShare]:
    """Join the processes that `torchrun` started, if it did, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield ProcessShare()
        return
    from torch import distributed

    distributed.init_process_group("gloo", timeout=timedelta(days=30))  # they may finish hours apart
    try:
        yield ProcessShare(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        distributed.destroy_process_group()


class EntryLog:
    """Entries of the manifest to be, one a line in a hidden file.

    The names and hashes of files are an entry of their own, without a number, before they appear.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.path = log_path(folder, rank)
        try:
            # Unbuffered: on a full disk a buffer would be written later.
            self._file = os.fdopen(create(self.path), "wb", buffering=0)
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def add(self, entry: Mapping[str, Any]) -> None:
        """Log an entry. It is on its way to the disk when this returns: the process may be stopped at any time."""
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_entries(logs: Iterable[Path], *, unfinished: bool = False) -> Iterator[dict[str, Any]]:
    """The entries of logs, in order, without a last line that was cut short.

    With `unfinished`, files that were announced last and have no entry are included.
    """
    for log in logs:
        announced = None
        try:
            with log.open(encoding="utf-8") as lines:
                for line in lines:
                    if not line.endswith("\n"):
                        continue
                    entry = json.loads(line)
                    if "number" in entry:
                        announced = None
                        yield entry
                    else:
                        announced = entry
        except OSError as error:
            raise FormatError(log, f"cannot be read ({error.strerror})") from error
        except (ValueError, RecursionError) as error:
            raise FormatError(log, "is damaged; remove it and start again") from error
        if unfinished and announced is not None:
            yield announced


def write_manifest(
    folder: Path, facts: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], gallery: Mapping[str, str]
) -> None:
    """Write the facts of a run, the hashes of the gallery, and all entries as `sketches`, one a line."""
    head = json.dumps({"program": f"{PROGRAM} {sketchdnn.__version__}", **facts}, indent=1, ensure_ascii=False)
    hashes = json.dumps({"files": list(gallery), "sha256": list(gallery.values())})
    with atomic_write(folder / MANIFEST) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.write(head.removesuffix("\n}") + f',\n "gallery": {hashes},\n "sketches": [')
        for number, entry in enumerate(entries):
            out.write(("," if number else "") + "\n  " + json.dumps(entry, ensure_ascii=False))
        out.write("\n ]\n}\n")


@contextmanager
def locked_folder(folder: Path, stem: str, share: ProcessShare, *, force: bool) -> Iterator[None]:
    """Hold a folder for this run alone, after the first process has cleaned up what a killed run left there."""
    with exclusive_run(folder) if share.is_first else nullcontext():
        if share.is_first:
            remove_abandoned(folder)
            _recover_manifest(folder)
            if not force:
                _check_unchanged(folder, stem)
        share.wait()
        yield


def remove_earlier_run(folder: Path, stem: str, *, force: bool = False) -> int:
    """Remove the sketches of that stem that an earlier manifest lists, the manifest and its gallery.

    Files that it does not list stay, and so do changed ones unless `force`. Returns how many sketch files were removed.
    """
    removed = 0
    try:
        for name, sha256 in _earlier_files(folder, stem):
            path = folder / name
            is_file = path.is_file() or path.is_symlink()
            if name not in (PAGE, GALLERY) and (_is_unchanged(path, sha256) or (force and is_file)):
                path.unlink()
                removed += 1
        if removed:
            for name in (PAGE, GALLERY, MANIFEST):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(folder / MANIFEST, f"lists files that cannot be removed ({error.strerror})") from error
    return removed


def _recover_manifest(folder: Path) -> None:
    """Write the manifest of a killed run, with what it had written by then."""
    logs = sorted(path for path in folder.iterdir() if _LOG.fullmatch(path.name))
    readable = [path for path in logs if path.is_file() and not path.is_symlink()]
    with suppress(ValueError):  # no run wrote it
        if next(read_entries(readable, unfinished=True), None) is not None:
            write_manifest(folder, {"finished": False}, read_entries(readable, unfinished=True), {})
    for path in logs:
        path.unlink()


def _check_unchanged(folder: Path, stem: str) -> None:
    """Refuse a folder where a file to be removed or replaced is not as an earlier run wrote it."""
    unlisted = {PAGE, GALLERY}
    changed = [] if is_manifest(folder / MANIFEST) else [MANIFEST]
    for name, sha256 in _earlier_files(folder, stem):
        unlisted.discard(name)
        if not _is_unchanged(folder / name, sha256):
            changed.append(name)
    reason = "is not as an earlier run wrote it; move it, name another folder, or replace it with --force"
    for name in (*changed, *sorted(unlisted)):
        if os.path.lexists(folder / name):
            raise FormatError(folder / name, reason)


def _earlier_files(folder: Path, stem: str) -> Iterator[tuple[str, str | None]]:
    """The files of that stem that a manifest lists, and its gallery, with their hashes."""
    sketch_name = re.compile(re.escape(stem) + _NUMBERED, re.ASCII)
    for files in manifest_entries(folder / MANIFEST):
        for name, sha256 in files.items():
            if sketch_name.fullmatch(name) or name in (PAGE, GALLERY):
                yield name, sha256


def _is_unchanged(path: Path, sha256: str | None) -> bool:
    return sha256 is not None and file_sha256(path) == sha256


def log_path(folder: Path, rank: int) -> Path:
    """The log of a process."""
    return folder / f"{PREFIX}manifest-{rank:05d}.part"
