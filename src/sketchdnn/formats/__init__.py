"""How sketches are written down: one module a format, reader beside writer, and one registry that knows them all."""

from .conversion import Conversion, convert
from .format import DEFAULT_READING, Format, ReadOptions
from .found import Found, Losses, Note, Reading, Skipped, gather
from .registry import FORMATS, format_of, read, scan, write, writer_of

__all__ = [
    "DEFAULT_READING",
    "FORMATS",
    "Conversion",
    "Format",
    "Found",
    "Losses",
    "Note",
    "ReadOptions",
    "Reading",
    "Skipped",
    "convert",
    "format_of",
    "gather",
    "read",
    "scan",
    "write",
    "writer_of",
]
