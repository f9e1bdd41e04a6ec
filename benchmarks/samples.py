"""What a device drew, kept in a file: time on it is dear, and judging needs none of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import read
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.geometry import Sketch, bounds
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact, SketchBatch, decode_compact, layout
from sketchdnn.systems import System, from_pretrained


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


def drawn_sketches(count: int, *, model: str = "ours", seed: int = 0, samples: Path | None = None) -> list[Sketch]:
    """Draw so many, without repair, or take the first of a file or folder that holds them."""
    if samples is None:
        request = GenerateRequest(count=count, seed=seed, repair=False)
        found = [drawing.sketch for drawing in stream(from_pretrained(model), request)]
    else:
        found = list(read(samples).sketches)
    sketches = [sketch for sketch in found if sketch is not None and len(sketch) and bounds(sketch).size > 0][:count]
    if len(sketches) < count and samples is not None:
        raise SketchError(f"{count:,} sketches are to be measured, and {samples} holds {len(sketches):,}")
    return sketches


def real_sketches(data: Path, count: int, seed: int = 0) -> list[Sketch]:
    """So many of a corpus' test split, by lot."""
    test = Dataset.open(data).split("test").compact
    if len(test) < count:
        raise SketchError(f"{count:,} real sketches are to be measured, and the test split has {len(test):,}")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(test))[:count])
    return [decoded.sketch for decoded in decode_compact(test[chosen])]


def packed(batch: SketchBatch) -> dict[str, Tensor]:
    """The tensors of a batch."""
    kind, construction = (part.argmax(dim=-1).to(torch.uint8) for part in (batch.kind, batch.construction))
    return {"kind": kind.cpu(), "construction": construction.cpu(), "params": batch.params.float().cpu()}


def unpacked(tensors: Mapping[str, Tensor]) -> SketchBatch:
    """The batch of `packed` tensors."""
    return SketchBatch(
        one_hot(tensors["construction"].long(), layout.NUM_CONSTRUCTION).float(),
        one_hot(tensors["kind"].long(), layout.NUM_KINDS).float(),
        tensors["params"],
    )
