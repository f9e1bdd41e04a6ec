"""Scores of a set of sketches, or of a system: how like the data, how sound, how new, and under which protocol."""

from .compare import compare_systems
from .estimate import Estimate
from .evaluate import Evaluation, evaluate
from .protocol import Protocol
from .report import load_report
from .run import Request, Run
from .settings import FAST, Settings

__all__ = [
    "FAST",
    "Estimate",
    "Evaluation",
    "Protocol",
    "Request",
    "Run",
    "Settings",
    "compare_systems",
    "evaluate",
    "load_report",
]
