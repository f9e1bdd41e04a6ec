"""Work in progress, in a folder beside the output: kept when a run is ended, taken up by the next one like it, and
turned into the output in one step at the end.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sketchdnn.formats import FormatError
from sketchdnn.formats.atomic import replacing
from sketchdnn.formats.bounded_json import load_json
from sketchdnn.representation.layout import REPRESENTATION_VERSION

from .blocks import BLOCK_SIZE, Tally
from .config import PrepareConfig
from .sources import Input

# Raised whenever the same input and choices would give another result.
PIPELINE_VERSION = 1
DATASET, INPUTS = "dataset.json", "inputs.json"


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

    def open(self) -> None:
        """Take up what an earlier run of the same work left; anything else that is there is of no use."""
        mark = self.folder / "fingerprint"
        if self.folder.exists() and not (mark.is_file() and mark.read_text() == self.fingerprint):
            if any(self.folder.iterdir()) and not mark.is_file():
                raise FormatError(self.folder, "is in the way, and was not made by prepare; move it")
            shutil.rmtree(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "chunks").mkdir(exist_ok=True)
        except OSError as error:
            raise FormatError(self.folder, f"cannot be written ({error.strerror})") from error
        with replacing(mark) as temporary:
            temporary.write_text(self.fingerprint)
        shutil.rmtree(self.result, ignore_errors=True)

    def done(self, task: int) -> tuple[Tally, list[int]] | None:
        """The counts of a task that an earlier run finished, and how many candidates each of its chunks holds."""
        path = self._record(task)
        if not path.is_file():
            return None
        record: Any = load_json(path)
        return Tally.from_record(record["tally"]), record["chunks"]

    def finish(self, task: int, tally: Tally, chunks: list[int]) -> None:
        """Written last: a task without it is done again."""
        write_json(self._record(task), {"chunks": chunks, "tally": tally.to_record()})

    def publish(self) -> None:
        """The result becomes the output, in place of an earlier one."""
        if self.out.exists():
            self.out.rename(self.folder / "old")
        self.result.rename(self.out)
        self.discard()

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _record(self, task: int) -> Path:
        return self.folder / "chunks" / f"{task:06d}.json"


def partial_folder(out: Path) -> Path:
    """Where the work towards an output is kept until it is done."""
    out = out.absolute()
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


def write_json(path: Path, value: object) -> None:
    """Readable JSON, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
