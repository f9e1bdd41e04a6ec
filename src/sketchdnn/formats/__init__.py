"""How sketches are written down: one module a format, reader beside writer, and one registry that knows them all."""

from .conversion import Conversion, convert
from .format import Format
from .found import FormatError, Found, Losses, Reading, Skipped, gather, shown
from .registry import FORMATS, format_of, read, scan, write, writer_of

__all__ = [
    "FORMATS",
    "Conversion",
    "Format",
    "FormatError",
    "Found",
    "Losses",
    "Reading",
    "Skipped",
    "convert",
    "format_of",
    "gather",
    "read",
    "scan",
    "shown",
    "write",
    "writer_of",
]
