"""How sketches are written down: one module a format, reader beside writer, and one registry that knows them all."""

from .conversion import Conversion, convert
from .format import DEFAULT_READING, Format, ReadOptions
from .found import FormatError, Found, Losses, Note, Reading, Skipped, gather, quoted, shown
from .registry import FORMATS, format_of, read, scan, write, writer_of

__all__ = [
    "DEFAULT_READING",
    "FORMATS",
    "Conversion",
    "Format",
    "FormatError",
    "Found",
    "Losses",
    "Note",
    "ReadOptions",
    "Reading",
    "Skipped",
    "convert",
    "format_of",
    "gather",
    "quoted",
    "read",
    "scan",
    "shown",
    "write",
    "writer_of",
]
