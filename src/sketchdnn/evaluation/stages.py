"""How long each stage took, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

# Told the stage and the share of it that is done.
OnStage = Callable[[str, float], None]


class Stages:
    """Times stages by name; a name that comes again goes on counting. On a GPU it waits for what is under way."""

    def __init__(self, on_stage: OnStage = lambda name, share: None, device: str = "cpu") -> None:
        self.seconds: dict[str, float] = {}
        self._on_stage = on_stage
        self._device = torch.device(device)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        self._on_stage(name, 0.0)
        start = time.perf_counter()
        try:
            yield lambda share: self._on_stage(name, min(1.0, share))
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self._on_stage(name, 1.0)
