"""Samples to be measured: stored in a file, generated, read, or taken from a corpus."""

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


def cached_samples(
    path: Path | None, identity: Mapping[str, str], sample: Callable[[], Mapping[str, Tensor]]
) -> Mapping[str, Tensor]:
    """Tensors from a file, or sampled now and stored in it.

    Args:
        path: The file. Without one, nothing is stored.
        identity: What the samples depend on. A file with another identity is refused.
        sample: Returns the tensors.

    Raises:
        FormatError: The file cannot be read or has another identity.
    """
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file

    if path is None:
        return sample()
    if path.exists():
        try:
            with safe_open(path, "pt") as file:
                if file.metadata() != dict(identity):
                    raise FormatError(path, "holds samples of other settings; name another file")
                return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        except (OSError, SafetensorError) as error:
            raise FormatError(path, f"cannot be read ({error})") from error
    samples = sample()
    with atomic_write(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in samples.items()}, temporary, metadata=dict(identity))
    return samples


def pack(batch: SketchBatch) -> dict[str, Tensor]:
    """A sampled batch as small tensors: the labels that decoding reads, and every parameter."""
    kind, construction = (part.argmax(dim=-1).to(torch.uint8) for part in (batch.kind, batch.construction))
    return {"kind": kind.cpu(), "construction": construction.cpu(), "params": batch.params.float().cpu()}


def unpack(tensors: Mapping[str, Tensor], name: str) -> SketchBatch:
    """The batch that `pack` made, from tensors whose keys start with `name.`."""
    kind, construction, params = (tensors[f"{name}.{part}"] for part in ("kind", "construction", "params"))
    return SketchBatch(
        one_hot(construction.long(), layout.NUM_CONSTRUCTION).float(),
        one_hot(kind.long(), layout.NUM_KINDS).float(),
        params,
    )


def rows_hash(compact: Compact) -> str:
    """The SHA-256 of encoded sketches."""
    return _hash((compact.kind, compact.construction, compact.params))


def weights_hash(system: System) -> str:
    """The SHA-256 of a model's weights."""
    return _hash(weight.cpu().numpy() for weight in system.state_dict().values())


def _hash(arrays: Iterable[NDArray[np.generic]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def raw_sketches(count: int, *, model: str = "ours", seed: int = 0, samples: Path | None = None) -> list[Sketch]:
    """Sketches without repair: generated now, or the first of a file or folder."""
    if samples is None:
        request = GenerateRequest(count=count, seed=seed, repair=False)
        candidates = [drawing.sketch for drawing in stream(from_pretrained(model), request)]
    else:
        candidates = list(read(samples).sketches)
    sketches = [sketch for sketch in candidates if len(sketch) and bounds(sketch).size > 0][:count]
    if len(sketches) < count and samples is not None:
        raise SketchError(f"{count:,} sketches are to be measured, and {samples} holds {len(sketches):,}")
    return sketches


def real_sketches(data: Path, count: int, seed: int = 0) -> list[Sketch]:
    """A random sample of a corpus' test split."""
    test = Dataset.open(data).split("test").compact
    if len(test) < count:
        raise SketchError(f"{count:,} real sketches are to be measured, and the test split has {len(test):,}")
    index = np.sort(np.random.default_rng(seed).permutation(len(test))[:count])
    return [decoded.sketch for decoded in decode_compact(test[index])]
