"""`manifest.json`: what was asked for, by which model it was drawn, and what became of each sketch.

Entries go to a hidden file as sketches are written, so that a million of them need no memory; at the end they are put
together, whoever wrote them. The files of a sketch are noted there with their hashes before they get their names, so
that after a kill the next run knows them. A file that is not as a run wrote it is never removed unless that is forced.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import sketchdnn
from sketchdnn.errors import FormatError
from sketchdnn.formats.manifest import GALLERY, MANIFEST, PAGE, PROGRAM, file_sha256, is_manifest, manifest_entries
from sketchdnn.io import PREFIX, atomic_write, create, exclusive_run, remove_abandoned

from .share import Share

# What files of sketches are called after their stem: nothing else is taken for one, whatever a manifest says.
_NUMBERED = r"-\d{4,10}(\.trajectory)?\.\w{2,5}"
_PART = re.compile(re.escape(PREFIX) + r"manifest-\d{5}\.part")


class Spool:
    """Entries on their way to the manifest: one a line."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.path = _part(folder, rank)
        try:
            # Without a buffer, which a full disk would leave to be written later.
            self._file = os.fdopen(create(self.path), "wb", buffering=0)
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def begin(self, files: Mapping[str, str | None]) -> None:
        """Note the names and hashes that files are about to get."""
        self.add({"files": list(files), "sha256": list(files.values())})

    def add(self, entry: Mapping[str, Any]) -> None:
        """Written out at once: what follows may be stopped at any time."""
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """No more entries."""
        self._file.close()


def spools(folder: Path, world: int) -> list[Path]:
    """The parts of all processes, in the order of their numbers."""
    return [_part(folder, rank) for rank in range(world)]


def entries(parts: Iterable[Path], *, unfinished: bool = False) -> Iterator[dict[str, Any]]:
    """What was added, in order; a last line that was cut short is left out.

    With `unfinished`, the files that were begun last are an entry too.
    """
    for part in parts:
        begun = None
        try:
            with part.open(encoding="utf-8") as lines:
                for line in lines:
                    if not line.endswith("\n"):
                        continue
                    entry = json.loads(line)
                    if "number" in entry:
                        begun = None
                        yield entry
                    else:
                        begun = entry
        except OSError as error:
            raise FormatError(part, f"cannot be read ({error.strerror})") from error
        except (ValueError, RecursionError) as error:
            raise FormatError(part, "is damaged; remove it and start again") from error
        if unfinished and begun is not None:
            yield begun


def write_manifest(
    folder: Path, facts: Mapping[str, Any], found: Iterable[Mapping[str, Any]], gallery: Mapping[str, str]
) -> Path:
    """The facts, the hashes of the gallery, and all entries as `sketches`, one a line, written as they are read."""
    path = folder / MANIFEST
    head = json.dumps({"program": f"{PROGRAM} {sketchdnn.__version__}", **facts}, indent=1, ensure_ascii=False)
    pictures = json.dumps({"files": list(gallery), "sha256": list(gallery.values())})
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.write(head.removesuffix("\n}") + f',\n "gallery": {pictures},\n "sketches": [')
        for number, entry in enumerate(found):
            out.write(("," if number else "") + "\n  " + json.dumps(entry, ensure_ascii=False))
        out.write("\n ]\n}\n")
    return path


@contextmanager
def held(folder: Path, stem: str, share: Share, *, force: bool) -> Iterator[None]:
    """The folder for this run alone, rid of what a killed run left in it; the first of several processes sees to it."""
    with exclusive_run(folder) if share.leads else nullcontext():
        if share.leads:
            remove_abandoned(folder)
            recover(folder)
            if not force:
                check_unchanged(folder, stem)
        share.wait()
        yield


def recover(folder: Path) -> None:
    """Write the manifest that a killed run could not, of what it had written by then."""
    parts = sorted(path for path in folder.iterdir() if _PART.fullmatch(path.name))
    whole = [path for path in parts if path.is_file() and not path.is_symlink()]
    try:
        if next(entries(whole, unfinished=True), None) is not None:
            write_manifest(folder, {"finished": False}, entries(whole, unfinished=True), {})
    except ValueError:
        pass  # it is not what a run wrote
    for path in parts:
        path.unlink()


def check_unchanged(folder: Path, stem: str) -> None:
    """Refuse a folder where a file to be removed or replaced is not as an earlier run wrote it.

    Raises:
        FormatError: It names the file.
    """
    path = folder / MANIFEST
    if os.path.lexists(path) and not is_manifest(path):
        raise _changed(path)
    beside = {PAGE, GALLERY}
    for name, sha256 in _earlier(folder, stem):
        beside.discard(name)
        if os.path.lexists(folder / name) and not _is_same(folder / name, sha256):
            raise _changed(folder / name)
    for name in sorted(beside):
        if os.path.lexists(folder / name):
            raise _changed(folder / name)


def check_free(paths: Iterable[Path]) -> None:
    """Refuses to replace files: those of an earlier run are gone by now, so these are somebody else's."""
    for path in paths:
        if os.path.lexists(path):
            raise FormatError(path, "is in the way; move it, name another folder, or replace it with --force")


def clear_earlier(folder: Path, stem: str, *, force: bool = False) -> int:
    """Remove the sketches of that stem that an earlier run's manifest lists, it and its gallery; says how many.

    So that no sketch of another run lies among the new ones. Files that it does not list stay, and so do those that
    were changed, unless `force`.
    """
    path = folder / MANIFEST
    removed = 0
    try:
        for name, sha256 in _earlier(folder, stem):
            if name not in (PAGE, GALLERY) and (_is_same(folder / name, sha256) or (force and _is_file(folder / name))):
                (folder / name).unlink()
                removed += 1
        if removed:
            for name in (PAGE, GALLERY, MANIFEST):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(path, f"lists files that cannot be removed ({error.strerror})") from error
    return removed


def _earlier(folder: Path, stem: str) -> Iterator[tuple[str, str | None]]:
    """The files of that stem that a manifest lists, and its gallery, with their hashes."""
    ours = re.compile(re.escape(stem) + _NUMBERED, re.ASCII)
    for files in manifest_entries(folder / MANIFEST):
        for name, sha256 in files.items():
            if ours.fullmatch(name) or name in (PAGE, GALLERY):
                yield name, sha256


def _is_same(path: Path, sha256: str | None) -> bool:
    return sha256 is not None and file_sha256(path) == sha256


def _is_file(path: Path) -> bool:
    return path.is_file() or path.is_symlink()


def _changed(path: Path) -> FormatError:
    return FormatError(
        path, "is not as an earlier run wrote it; move it, name another folder, or replace it with --force"
    )


def _part(folder: Path, rank: int) -> Path:
    return folder / f"{PREFIX}manifest-{rank:05d}.part"
