"""FreeCAD documents (`.FCStd`): every sketch in one, constraints included, and documents that FreeCAD opens."""

from .file import FORMAT

__all__ = ["FORMAT"]
