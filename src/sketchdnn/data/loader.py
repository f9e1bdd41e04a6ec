"""A prepared corpus as a dataset: its splits as memory-mapped arrays."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import FormatError, MissingFileError, display_path
from sketchdnn.formats.sketchgraphs.container import NPY_ERRORS
from sketchdnn.io import load_json
from sketchdnn.representation import Compact
from sketchdnn.representation.layout import NONE, REPRESENTATION_VERSION

from .config import SPLITS, PrepareConfig, config_from_dict
from .staging import DATASET
from .store import ARRAYS


@dataclass(frozen=True, slots=True)
class Split:
    """The sketches of one split, as memory-mapped arrays."""

    name: str
    compact: Compact

    def __len__(self) -> int:
        return len(self.compact)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A prepared corpus: its `dataset.json`, and the settings of its preparation."""

    folder: Path
    description: dict[str, Any]
    config: PrepareConfig

    @staticmethod
    def open(folder: str | Path) -> Dataset:
        """Open a folder that `prepare` wrote.

        Raises:
            FormatError: The folder is no corpus, is damaged, or is of another version.
        """
        folder = Path(folder)
        path = folder / DATASET
        try:
            description = load_json(path)
        except (FileNotFoundError, NotADirectoryError):
            raise _no_corpus(folder) from None
        except (OSError, ValueError) as error:
            raise FormatError(path, f"cannot be read ({error})") from error
        version = description.get("representation") if isinstance(description, dict) else None
        if not isinstance(description, dict) or version != REPRESENTATION_VERSION:
            raise FormatError(
                folder, f"was prepared for representation {version}, this is {REPRESENTATION_VERSION}; prepare it again"
            )
        try:
            config = config_from_dict(description["config"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(path, f"has invalid settings ({error}); prepare the corpus again") from error
        return Dataset(folder, description, config)

    @property
    def half_extent(self) -> float:
        """Half the larger side of the box of normalized sketches."""
        return self.config.half_extent

    @property
    def tight(self) -> bool:
        """Whether that box is the tight box of the sketch."""
        return self.config.frame == "tight"

    def split(self, name: str) -> Split:
        """A split, with its arrays checked against `dataset.json`."""
        if name not in SPLITS:
            raise FormatError(self.folder, f"has no split '{name}'; use one of {', '.join(SPLITS)}")
        try:
            count = int(self.description["counts"][name])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise FormatError(self.folder / DATASET, f"does not say how many sketches are in {name}") from None
        arrays = {array: self._array(name, array, count) for array in ARRAYS}
        if arrays["kind"].max(initial=0) > NONE:
            raise FormatError(self.folder / name / "kind.npy", "is damaged: it names kinds that do not exist")
        return Split(name, Compact(**arrays))

    def _array(self, split: str, name: str, count: int) -> NDArray[Any]:
        path = self.folder / split / f"{name}.npy"
        dtype, shape = ARRAYS[name]
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise MissingFileError(path, "is missing; prepare the corpus again") from None
        except (OSError, *NPY_ERRORS) as error:
            raise FormatError(path, f"is damaged ({error}); prepare the corpus again") from error
        if array.dtype != dtype or array.shape != (count, *shape):
            raise FormatError(
                path, f"does not fit {DATASET}: {array.dtype} {array.shape} where {(count, *shape)} is promised"
            )
        return array


def _no_corpus(path: Path) -> FormatError:
    """The error for a path that is no prepared corpus, with the command that prepares one."""
    command = f"sketchdnn prepare {shlex.quote(display_path(path))} --out corpus"
    if path.is_dir():
        return FormatError(
            path, f"is no prepared corpus: it has no {DATASET}; make one of its sketches with: {command}"
        )
    if path.exists():
        return FormatError(path, f"is a file, not a prepared corpus; make one of its sketches with: {command}")
    example = "sketchdnn prepare FILE --out corpus"
    return MissingFileError(path, f"is no prepared corpus, it does not exist; make one with: {example}")
