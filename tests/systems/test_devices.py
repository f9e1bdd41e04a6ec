"""Devices by name: one spelling everywhere, and a sentence for what is none or not there."""

from __future__ import annotations

import pytest
import torch

from sketchdnn.errors import SketchError
from sketchdnn.systems.devices import find_device


@pytest.mark.parametrize("name", ["tpu", "cpu:3", "cuda:x", "cuda:", "auto:1", ""])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(SketchError, match="use auto, cpu, cuda or cuda:1"):
        find_device(name)


def test_auto_is_a_gpu_where_there_is_one() -> None:
    assert find_device() == find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_an_absent_gpu_is_refused() -> None:
    with pytest.raises(SketchError, match="no CUDA device"):
        find_device("cuda")
