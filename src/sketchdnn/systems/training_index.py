"""An index of the training set, stored beside the weights: which sketches were in it, and their mixtures of kinds.

`training_index.safetensors` holds a 64-bit key of every training sketch, by which copies are recognized (up to
symmetry, on a grid of 6 bits) without storing the sketch, and how often each mixture of kinds occurs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Kind, Sketch, normalize
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact, decode_compact, encode_table, layout
from sketchdnn.representation.hashing import CHUNK, Keys, symmetric_keys

from .aliases import INDEX_TENSORS, current_names

GRID = 64  # levels: 6 bits
# The table of tensors of the largest model takes 200 KiB; the library would parse 100 MB.
MAX_HEADER_BYTES = 4 * 2**20
_PARTS = {"keys": (np.uint64, 1), "kind_counts": (np.int64, 2), "frequency": (np.int64, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class TrainingIndex:
    """Keys and kinds of the training sketches.

    Attributes:
        keys: One of each sketch, rising.
        kind_counts: In each row the number of lines, circles, arcs and points of a mixture.
        frequency: The number of sketches of each mixture.
    """

    keys: Keys
    kind_counts: NDArray[np.int64]
    frequency: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, (kind, axes) in _PARTS.items():
            part: NDArray[np.generic] = getattr(self, name)
            if part.dtype != kind or part.ndim != axes:
                raise SketchError(f"the training index has {name} of an unknown form")
        if self.kind_counts.shape != (len(self.frequency), len(Kind)) or not len(self.frequency):
            raise SketchError("the parts of the training index do not fit together")
        if self.kind_counts.min() < 0 or self.frequency.min() < 1 or bool((self.keys[1:] <= self.keys[:-1]).any()):
            raise SketchError("the training index holds impossible numbers")

    @property
    def primitives(self) -> tuple[int, int]:
        """The fewest and the most primitives of a training sketch."""
        counts = self.kind_counts.sum(axis=1)
        return int(counts.min()), int(counts.max())

    def contains(self, key: int) -> bool:
        """Whether a training sketch has this key."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        return at < len(self.keys) and bool(self.keys[at] == np.uint64(key))


def build_training_index(
    train: Compact, min_primitives: int = 0, *, half_extent: float = 1.0, tight: bool = True
) -> TrainingIndex:
    """The index of a training split.

    Args:
        train: The training sketches.
        min_primitives: Mixtures count only sketches of at least so many primitives, the target distribution.
        half_extent: Half the larger side of the box that the corpus scaled its sketches to.
        tight: Whether that box is the one that `normalize` centers; if not, each sketch is normalized here.
    """
    per_kind = np.stack([(train.kind == kind).sum(axis=1) for kind in Kind], axis=1).astype(np.int64)
    per_kind = per_kind[per_kind.sum(axis=1) >= min_primitives]
    kind_counts, frequency = np.unique(per_kind, axis=0, return_counts=True)
    blocks = (train[begin : begin + CHUNK] for begin in range(0, len(train), CHUNK))
    keys = [symmetric_keys(_scaled(block, half_extent) if tight else _normalized(block), GRID) for block in blocks]
    return TrainingIndex(np.unique(np.concatenate(keys)), kind_counts, frequency.astype(np.int64))


def _scaled(block: Compact, half_extent: float) -> Compact:
    """Rows in a box of ±1."""
    if half_extent == 1:
        return block
    params = np.array(block.params)
    params[..., : layout.BEND] /= np.float32(half_extent)
    return Compact(block.kind, block.construction, params)


def _normalized(block: Compact) -> Compact:
    """Rows of the sketches, each normalized; a sketch of no extent has no key."""
    placed: list[Sketch] = []
    for decoded in decode_compact(block):
        with suppress(GeometryError):
            placed.append(normalize(decoded.sketch)[0])
    return encode_table(sketches_to_table(placed))


def write_training_index(index: TrainingIndex, path: Path) -> None:
    """Write a safetensors file, atomically."""
    with atomic_write(path) as temporary:
        save_file({name: np.ascontiguousarray(getattr(index, name)) for name in _PARTS}, temporary)


def read_training_index(path: Path) -> TrainingIndex:
    """Read a safetensors file, also one with the old names of its tensors.

    Raises:
        SketchError: The file cannot be read, or is no training index.
    """
    try:
        check_safetensors_header(path)
        parts = current_names(load_file(path), INDEX_TENSORS)
        return TrainingIndex(**{name: parts[name] for name in _PARTS})
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise SketchError(f"the training index cannot be read ({error})") from error


def check_safetensors_header(path: Path) -> None:
    """Refuse a file whose table of tensors is larger than the file or than any model needs."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > min(MAX_HEADER_BYTES, path.stat().st_size):
        raise ValueError(f"{path.name} has a header of {size:,} bytes")
