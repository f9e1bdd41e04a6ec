"""From a picture of a drawing to a sketch: page, ink, strokes, curves, constraints.

Geometry alone, without torch; a network may propose further candidates.
"""

from .overlay import overlay
from .reading import read_picture
from .tracer import TraceOptions, TraceResult, trace

__all__ = ["TraceOptions", "TraceResult", "overlay", "read_picture", "trace"]
