"""Drawings made with ezdxf, and what we read of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ezdxf

from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions, ReadResult, collect
from sketchdnn.formats.dxf import FORMAT
from sketchdnn.geometry import Sketch

Draw = Callable[[Any, Any], None]
NO_FLATTENING = ReadOptions(curve_tolerance_mm=None)


def read(path: Path, options: ReadOptions = DEFAULT_READ_OPTIONS) -> ReadResult:
    return collect(FORMAT.read(path, options))


def drawn(
    path: Path, draw: Draw, version: str = "R2010", options: ReadOptions = DEFAULT_READ_OPTIONS, **saving: str
) -> ReadResult:
    """What we read when `draw(document, modelspace)` has drawn."""
    document = ezdxf.new(version)
    draw(document, document.modelspace())
    document.saveas(path, **saving)
    return read(path, options)


def only(reading: ReadResult) -> Sketch:
    assert len(reading) == 1
    return reading.sketches[0]
