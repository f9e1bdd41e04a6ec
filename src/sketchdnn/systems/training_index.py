"""What a model remembers of the corpus it was trained on: which sketches were in it, and what they were made of.

`known.safetensors` beside the weights holds a 64-bit key of every training sketch, which tells a copy (up to symmetry,
on a grid of 6 bits) but gives nothing of it away, and how often each mixture of kinds occurred.
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
from sketchdnn.representation.fingerprint import Keys
from sketchdnn.representation.symmetric import CHUNK, symmetric_keys

from .safetensors_files import check_header

GRID = 64  # levels: 6 bits
_PARTS = {"keys": (np.uint64, 1), "mixtures": (np.int64, 2), "often": (np.int64, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class TrainingIndex:
    """`keys` rise. A row of `mixtures` says how many lines, circles, arcs and points; `often`, of how many sketches."""

    keys: Keys
    mixtures: NDArray[np.int64]
    often: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, (kind, axes) in _PARTS.items():
            part: NDArray[np.generic] = getattr(self, name)
            if part.dtype != kind or part.ndim != axes:
                raise SketchError(f"what is known of the corpus has {name} of another form than we read")
        if self.mixtures.shape != (len(self.often), len(Kind)) or not len(self.often):
            raise SketchError("what is known of the corpus does not fit together")
        if self.mixtures.min() < 0 or self.often.min() < 1 or bool((self.keys[1:] <= self.keys[:-1]).any()):
            raise SketchError("what is known of the corpus holds numbers that cannot be")

    @property
    def primitives(self) -> tuple[int, int]:
        """The fewest and the most primitives of a training sketch."""
        counts = self.mixtures.sum(axis=1)
        return int(counts.min()), int(counts.max())

    def holds(self, key: int) -> bool:
        """Whether a training sketch has this key."""
        wanted = np.uint64(key)
        at = int(np.searchsorted(self.keys, wanted))
        return at < len(self.keys) and bool(self.keys[at] == wanted)


def build_training_index(
    train: Compact, min_primitives: int = 0, *, half_extent: float = 1.0, tight: bool = True
) -> TrainingIndex:
    """What to remember of a training split.

    Args:
        train: The sketches that a model is trained on. All of their keys are kept.
        min_primitives: Mixtures are counted of sketches of at least so many primitives, those that are to be drawn.
        half_extent: Half the larger side of the box that the corpus scaled its sketches to.
        tight: Whether that box is the one that `normalize` centers; if not, each sketch is normalized here.
    """
    per_kind = np.stack([(train.kind == kind).sum(axis=1) for kind in Kind], axis=1).astype(np.int64)
    per_kind = per_kind[per_kind.sum(axis=1) >= min_primitives]
    mixtures, often = np.unique(per_kind, axis=0, return_counts=True)
    blocks = (train[begin : begin + CHUNK] for begin in range(0, len(train), CHUNK))
    keys = [symmetric_keys(_scaled(block, half_extent) if tight else _normalized(block), GRID) for block in blocks]
    return TrainingIndex(np.unique(np.concatenate(keys)), mixtures, often.astype(np.int64))


def _scaled(block: Compact, half_extent: float) -> Compact:
    """Rows in a box of ±1."""
    if half_extent == 1:
        return block
    params = np.array(block.params)
    params[..., : layout.BEND] /= np.float32(half_extent)
    return Compact(block.kind, block.construction, params)


def _normalized(block: Compact) -> Compact:
    """Rows of the sketches, each normalized; one of no extent has no key."""
    placed: list[Sketch] = []
    for decoded in decode_compact(block):
        with suppress(GeometryError):
            placed.append(normalize(decoded.sketch)[0])
    return encode_table(sketches_to_table(placed))


def write_training_index(known: TrainingIndex, path: Path) -> None:
    """To a safetensors file, whole or not at all."""
    with atomic_write(path) as temporary:
        save_file({name: np.ascontiguousarray(getattr(known, name)) for name in _PARTS}, temporary)


def read_training_index(path: Path) -> TrainingIndex:
    """From a safetensors file; refuses what is none of ours."""
    try:
        check_header(path)
        parts = load_file(path)
        return TrainingIndex(**{name: parts[name] for name in _PARTS})
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise SketchError(f"what is known of the corpus cannot be read ({error})") from error
