"""Generate parametric CAD sketches by joint continuous-discrete diffusion.

>>> import sketchdnn
>>> plate = sketchdnn.Sketch((sketchdnn.Circle((0, 0), 5),), units="mm")
>>> len(plate)
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchdnn.formats import read, write
    from sketchdnn.generation import SketchDNN
    from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch

__all__ = ["Arc", "Circle", "Line", "Point", "Sketch", "SketchDNN", "read", "write"]

_ROOM_OF = dict.fromkeys(__all__, "geometry") | {"read": "formats", "write": "formats", "SketchDNN": "generation"}


def __getattr__(name: str) -> Any:
    """Each name is fetched when it is first used, so that importing the package costs nothing."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'sketchdnn' has no attribute '{name}'")
    return getattr(import_module(f"sketchdnn.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
