"""From sketches to what scores look at: pictures, and their features, kept on disk so that they are computed once.

Features are kept by blocks of sketches under a hash of what they came from: the rows, how they are drawn, and the
extractor. An interrupted run goes on where it was, and a damaged file is computed again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact

from .estimate import EvaluationError
from .raster import SIZE, STROKE, rasterize

BLOCK = 512
_NAME = "features"


class Extractor(Protocol):
    """Pictures to features, on a device; `sha256` tells one extractor from another."""

    @property
    def sha256(self) -> str: ...

    @property
    def device(self) -> torch.device: ...

    def features(self, images: UInt8[Tensor, "image size size"]) -> Float[Tensor, "image feature"]: ...


def default_cache() -> Path:
    """`sketchdnn/features` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The convention is to ignore a relative path.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "sketchdnn" / "features"


def sketch_features(
    compact: Compact,
    extractor: Extractor,
    *,
    cache: Path | None = None,
    on_progress: Callable[[float], None] | None = None,
    construction: bool = True,
) -> Float[Tensor, "sketch feature"]:
    """The features of normalized sketches, on the extractor's device. Without `cache` nothing is read or kept."""
    if not len(compact):
        raise EvaluationError("there are no sketches to take features of")
    found = []
    for start in range(0, len(compact), BLOCK):
        found.append(_block(compact[start : start + BLOCK], extractor, cache, construction))
        if on_progress is not None:
            on_progress(min(1.0, (start + BLOCK) / len(compact)))
    return torch.cat(found)


def comparable(
    a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"], at_least: int = 2
) -> tuple[Float[Tensor, "a feature"], Float[Tensor, "b feature"]]:
    """Two sets of features, refused with a sentence where no score can be had of them."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise EvaluationError(f"features of {tuple(a.shape)} and {tuple(b.shape)} cannot be compared")
    if min(len(a), len(b)) < at_least:
        raise EvaluationError(
            f"a comparison needs at least {at_least} sketches in both sets, not {len(a)} and {len(b)}"
        )
    if not (a.isfinite().all() and b.isfinite().all()):
        raise EvaluationError("some features are not finite numbers")
    return a, b


def _block(
    compact: Compact, extractor: Extractor, cache: Path | None, construction: bool
) -> Float[Tensor, "sketch feature"]:
    def draw(rows: Compact, device: torch.device) -> UInt8[Tensor, "sketch size size"]:
        return rasterize(rows, device=device, size=SIZE, stroke=STROKE, construction=construction)

    if cache is None:
        return extractor.features(draw(compact, extractor.device))
    # One picture is part of the key: when the drawing changes, what was kept no longer counts.
    probe = draw(compact[:1], torch.device("cpu")).numpy()
    path = cache / f"{_key(compact, probe, (SIZE, STROKE, construction, extractor.sha256))}.safetensors"
    kept = _kept(path, len(compact))
    if kept is not None:
        return kept.to(extractor.device)
    fresh = extractor.features(draw(compact, extractor.device))
    with atomic_write(path) as temporary:
        save_file({_NAME: fresh.cpu().contiguous()}, temporary)
    return fresh


def _key(compact: Compact, probe: np.ndarray, settings: tuple[object, ...]) -> str:
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=20)
    for array in (compact.kind, compact.construction, compact.params, probe):
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _kept(path: Path, count: int) -> Float[Tensor, "sketch feature"] | None:
    """What a file holds, if it is whole and fits."""
    try:
        features = load_file(path).get(_NAME)
    except (OSError, SafetensorError):
        return None
    fits = features is not None and features.ndim == 2 and len(features) == count and bool(features.isfinite().all())
    return features if fits else None
