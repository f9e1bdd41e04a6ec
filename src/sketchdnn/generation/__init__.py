"""What a person asks for: sketches, as many as wanted, at a real size, in files."""

from .complete import Completion, complete
from .conditions import Conditions
from .files import write_sketches
from .generate import draw
from .like import draw_like
from .model import SketchDNN
from .search import Drawing

__all__ = [
    "Completion",
    "Conditions",
    "Drawing",
    "SketchDNN",
    "complete",
    "draw",
    "draw_like",
    "write_sketches",
]
