"""Generation of sketches: requests, conditions, completion, repair, and galleries of files."""

from .complete import complete
from .completion_request import CompleteRequest
from .conditions import Conditions
from .files import OutputOptions, OutputSummary, write_sketches
from .generate import GeneratedSketch, GenerateRequest, stream
from .model import SketchDNN

__all__ = [
    "CompleteRequest",
    "Conditions",
    "GenerateRequest",
    "GeneratedSketch",
    "OutputOptions",
    "OutputSummary",
    "SketchDNN",
    "complete",
    "stream",
    "write_sketches",
]
