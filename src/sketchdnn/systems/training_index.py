"""An index of the training set, stored beside the weights as `training_index.safetensors`.

It contains two things:

- A 64-bit hash of each training sketch, so that copies are recognized without storing the sketches. Two sketches have
  the same hash if one of the eight symmetries of the square (quarter turns and mirror images) maps one onto the other,
  with coordinates rounded to a grid of 64 levels.
- The counts of primitives by kind (lines, circles, arcs, points) that occur in the training set, and how often.
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

# Coordinates are rounded to this many levels before a sketch is hashed (6 bits).
HASH_GRID_LEVELS = 64
# The largest header that is read from a safetensors file. The header lists the tensors: 200 KiB for the largest model.
# The safetensors library itself would parse up to 100 MB.
MAX_HEADER_BYTES = 4 * 2**20
# The type and the number of axes of each tensor.
_TENSOR_SPECS = {"keys": (np.uint64, 1), "kind_counts": (np.int64, 2), "frequency": (np.int64, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class TrainingIndex:
    """Hashes of the training sketches, and their counts of primitives by kind.

    Attributes:
        keys: Distinct hashes of the training sketches in ascending order.
        kind_counts: In each row, a number of lines, circles, arcs and points that occurs in the training set.
        frequency: For each row of `kind_counts`, the number of training sketches with these counts.
    """

    keys: Keys
    kind_counts: NDArray[np.int64]
    frequency: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, (dtype, num_axes) in _TENSOR_SPECS.items():
            tensor: NDArray[np.generic] = getattr(self, name)
            if tensor.dtype != dtype or tensor.ndim != num_axes:
                raise SketchError(f"the training index has a tensor '{name}' of the wrong type or number of axes")
        if not len(self.frequency) or self.kind_counts.shape != (len(self.frequency), len(Kind)):
            raise SketchError("the tensors of the training index are empty or have shapes that do not match")
        if self.kind_counts.min() < 0 or self.frequency.min() < 1:
            raise SketchError("the training index contains counts that are too small")
        if bool((self.keys[1:] <= self.keys[:-1]).any()):
            raise SketchError("the training index contains hashes that are not in ascending order")

    @property
    def primitive_count_range(self) -> tuple[int, int]:
        """The smallest and the largest number of primitives of a training sketch."""
        counts = self.kind_counts.sum(axis=1)
        return int(counts.min()), int(counts.max())

    def contains(self, key: int) -> bool:
        """Return whether a training sketch has this hash."""
        position = int(np.searchsorted(self.keys, np.uint64(key)))
        return position < len(self.keys) and bool(self.keys[position] == np.uint64(key))


def build_training_index(
    train: Compact, min_primitives: int = 0, *, half_extent: float = 1.0, tight: bool = True
) -> TrainingIndex:
    """Build the index of a training split.

    Args:
        train: The training sketches.
        min_primitives: Smaller sketches are auxiliary training samples, not part of the target distribution. They are
            hashed, but not included in `kind_counts` and `frequency`.
        half_extent: The corpus scales each sketch so that the larger side of its box is 2 × half_extent.
        tight: True if that box is the tight bounding box, as for `normalize`: then the coordinates are only divided by
            `half_extent`. Otherwise each sketch is normalized before it is hashed.
    """
    per_kind = np.stack([(train.kind == kind).sum(axis=1) for kind in Kind], axis=1).astype(np.int64)
    per_kind = per_kind[per_kind.sum(axis=1) >= min_primitives]
    kind_counts, frequency = np.unique(per_kind, axis=0, return_counts=True)
    blocks = (train[begin : begin + CHUNK] for begin in range(0, len(train), CHUNK))
    normalized = (_scaled(block, half_extent) if tight else _normalized(block) for block in blocks)
    keys = [symmetric_keys(block, HASH_GRID_LEVELS) for block in normalized]
    return TrainingIndex(np.unique(np.concatenate(keys)), kind_counts, frequency.astype(np.int64))


def _scaled(block: Compact, half_extent: float) -> Compact:
    """Scale sketches from a box of ±half_extent to a box of ±1."""
    if half_extent == 1:
        return block
    params = np.array(block.params)
    params[..., : layout.BEND] /= np.float32(half_extent)
    return Compact(block.kind, block.construction, params)


def _normalized(block: Compact) -> Compact:
    """Normalize each sketch. A sketch without extent cannot be normalized; it is left out and has no hash."""
    normalized: list[Sketch] = []
    for decoded in decode_compact(block):
        with suppress(GeometryError):
            normalized.append(normalize(decoded.sketch)[0])
    return encode_table(sketches_to_table(normalized))


def write_training_index(index: TrainingIndex, path: Path) -> None:
    """Write the index to a safetensors file, atomically."""
    with atomic_write(path) as temporary:
        save_file({name: np.ascontiguousarray(getattr(index, name)) for name in _TENSOR_SPECS}, temporary)


def read_training_index(path: Path) -> TrainingIndex:
    """Read an index from a safetensors file. Tensors may also have their names of older versions.

    Raises:
        SketchError: The file cannot be read, or is not a training index.
    """
    try:
        check_safetensors_header(path)
        tensors = current_names(load_file(path), INDEX_TENSORS)
        return TrainingIndex(**{name: tensors[name] for name in _TENSOR_SPECS})
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise SketchError(f"the training index cannot be read ({error})") from error


def check_safetensors_header(path: Path) -> None:
    """Check that the header of a safetensors file is not too large to parse.

    The first 8 bytes of the file are the size of the header.

    Raises:
        ValueError: The header is larger than the file or than `MAX_HEADER_BYTES`.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > min(MAX_HEADER_BYTES, path.stat().st_size):
        raise ValueError(f"{path.name} declares a header of {size:,} bytes, which is too large")
