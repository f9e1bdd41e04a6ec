"""Scores of a set of sketches, or of a system: how like the data, how sound, how new, and under which protocol."""

from .compare import compare_systems, write_tables
from .estimate import Estimate
from .evaluate import Evaluation, evaluate
from .protocol import Protocol
from .report import load_report, write_report
from .run import Request, Run
from .samples import Samples, draw_samples, read_samples
from .settings import FAST, Settings

__all__ = [
    "FAST",
    "Estimate",
    "Evaluation",
    "Protocol",
    "Request",
    "Run",
    "Samples",
    "Settings",
    "compare_systems",
    "draw_samples",
    "evaluate",
    "load_report",
    "read_samples",
    "write_report",
    "write_tables",
]
