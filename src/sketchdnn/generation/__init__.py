"""What a person asks for: sketches, as many as wanted, at a real size, in files."""

from .files import write_sketches
from .generate import Drawing, draw
from .model import SketchDNN

__all__ = ["Drawing", "SketchDNN", "draw", "write_sketches"]
