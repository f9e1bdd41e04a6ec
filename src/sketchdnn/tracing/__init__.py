"""From a picture of a drawing to a sketch: page, ink, strokes, curves, constraints. Geometry alone, no network."""

from .reading import read_picture
from .trace import TraceOptions, TraceResult, trace

__all__ = ["TraceOptions", "TraceResult", "read_picture", "trace"]
