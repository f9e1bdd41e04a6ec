"""Devices by the names that people give them."""

from __future__ import annotations

import torch

from sketchdnn.errors import SketchError

AUTO = "auto"


def find_device(asked: str = AUTO, local: int | None = None) -> str:
    """The device to work on, `cpu`, `cuda` or `cuda:N`; refuses one that is none or not there.

    Args:
        asked: `auto` is a GPU where there is one. `cuda` without a number is the current GPU.
        local: The number of the GPU where none is named, as for one of several processes.

    >>> find_device("cpu")
    'cpu'
    """
    kind, _, number = asked.partition(":")
    if kind not in (AUTO, "cpu", "cuda") or (":" in asked and not (kind == "cuda" and number.isdecimal())):
        raise SketchError(f"'{asked}' is no device; use auto, cpu, cuda or cuda:1")
    if kind == "cpu" or (kind == AUTO and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise SketchError(f"there is no '{asked}' here: no CUDA device that PyTorch can use; use cpu or auto")
    index = int(number) if number else local
    if (index or 0) >= torch.cuda.device_count():
        raise SketchError(
            f"there is no 'cuda:{index}' here, only {torch.cuda.device_count()} such devices from cuda:0 on"
        )
    return "cuda" if index is None else f"cuda:{index}"
