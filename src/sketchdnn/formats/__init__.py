"""File formats: a reader beside its writer for each, and one registry of all."""

from .conversion import Conversion, convert
from .format import DEFAULT_READ_OPTIONS, Format, Losses, Note, ReadItem, ReadOptions, ReadResult, Skipped, collect
from .registry import FORMATS, detect_format, dumps, find_writer, loads, read, scan, write

__all__ = [
    "DEFAULT_READ_OPTIONS", "FORMATS", "Conversion", "Format", "Losses", "Note", "ReadItem", "ReadOptions",
    "ReadResult", "Skipped", "collect", "convert", "detect_format", "dumps", "find_writer", "loads", "read", "scan",
    "write",
]  # fmt: skip
