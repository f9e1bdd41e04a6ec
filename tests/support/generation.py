"""Generation without repair, which untrained models make slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sketchdnn.generation import GeneratedSketch, GenerateRequest, stream
from sketchdnn.systems import System


def draw(
    system: System, count: int, *, on_progress: Callable[[float], None] = lambda done: None, **options: Any
) -> Iterator[GeneratedSketch]:
    """The sketches of a request with these options, by default not repaired."""
    return stream(system, GenerateRequest(count=count, **{"repair": False, **options}), on_progress)
