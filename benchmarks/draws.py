"""What a device drew, kept in a file: time on it is dear, and judging needs none of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sketchdnn.errors import FormatError
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact
from sketchdnn.systems import System


def kept_draws(
    path: Path | None, facts: Mapping[str, str], draw: Callable[[], Mapping[str, Tensor]]
) -> Mapping[str, Tensor]:
    """The tensors of a file that was drawn for the same facts; else drawn now, and kept if a file is named."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file

    if path is None:
        return draw()
    if path.exists():
        try:
            with safe_open(path, "pt") as file:
                if file.metadata() != dict(facts):
                    raise FormatError(path, "was drawn for something else; name another file")
                return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        except (OSError, SafetensorError) as error:
            raise FormatError(path, f"cannot be read ({error})") from error
    drawn = draw()
    with atomic_write(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in drawn.items()}, temporary, metadata=dict(facts))
    return drawn


def fingerprint(compact: Compact) -> str:
    """By which rows are known."""
    return _hash((compact.kind, compact.construction, compact.params))


def weights_fingerprint(system: System) -> str:
    """By which a model is known, wherever it is."""
    return _hash(weight.cpu().numpy() for weight in system.state_dict().values())


def _hash(arrays: Iterable[NDArray[np.generic]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
