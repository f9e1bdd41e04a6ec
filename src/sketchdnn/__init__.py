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
    from sketchdnn.errors import FormatError, SketchError
    from sketchdnn.formats import dumps, loads, read, write
    from sketchdnn.generation import CompleteRequest, Conditions, GenerateRequest, OutputOptions, SketchDNN
    from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch
    from sketchdnn.render import svg
    from sketchdnn.tracing import TraceOptions, trace

__version__ = "0.2.0"
__all__ = [
    "Arc", "Circle", "CompleteRequest", "Conditions", "FormatError", "GenerateRequest", "Line", "OutputOptions",
    "Point", "Sketch", "SketchDNN", "SketchError", "TraceOptions", "dumps", "loads", "read", "svg", "trace", "write",
]  # fmt: skip

_MODULE_OF = dict.fromkeys(("Arc", "Circle", "Line", "Point", "Sketch"), "geometry") | {
    **dict.fromkeys(("dumps", "loads", "read", "write"), "formats"),
    "FormatError": "errors",
    "SketchError": "errors",
    **dict.fromkeys(("CompleteRequest", "Conditions", "GenerateRequest", "OutputOptions", "SketchDNN"), "generation"),
    "svg": "render",
    **dict.fromkeys(("TraceOptions", "trace"), "tracing"),
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import sketchdnn` is fast."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'sketchdnn' has no attribute '{name}'")
    return getattr(import_module(f"sketchdnn.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
